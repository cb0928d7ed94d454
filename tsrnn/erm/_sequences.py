"""Sequences in X: rows of a table, an array (N, T, d_in), or a list of sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.typing import DataFrameGroupBy, SeriesGroupBy
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from tsrnn.data import quote

__all__ = [
    "Inputs",
    "Sequences",
    "check_columns_are_numbers",
    "check_is_table",
    "in_batches",
    "read_sequences",
]

LEGAL = (
    "X must be a table whose rows are series, an array of shape (N, T, d_in) with at least one "
    "step and one input, or a list of sequences of shape (T_i, d_in) or (T_i,)"
)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of the samples of a fit, which later samples must match.

    `n_features` is d_in, or for a table its columns, which are steps; `names` are the columns of
    a table if all have names.
    """

    n_features: int
    is_table: bool
    names: np.ndarray | None = None

    @property
    def n_inputs(self) -> int:
        """Inputs per step, d_in."""
        return 1 if self.is_table else self.n_features


@dataclass(frozen=True, eq=False)
class Sequences:
    """Stacked sequences: `values` of shape (rows, d_in) in float64, and `lengths` of shape (N,).

    `kind` is the form of X, "table", "array" or "list"; `flat` is True if sequences of X have one
    input without an axis; `columns` are those of a frame X.
    """

    values: np.ndarray
    lengths: np.ndarray
    kind: Literal["table", "array", "list"]
    inputs: Inputs
    flat: bool = False
    columns: Any = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> np.ndarray:
        """First row of each sequence."""
        return np.cumsum(self.lengths) - self.lengths

    def place(self, row: int) -> tuple[int, int]:
        """Return sample and step of a row."""
        sample = int(np.searchsorted(self.starts, row, side="right")) - 1
        return sample, row - int(self.starts[sample])

    def where(self, row: int, many_to_many: bool) -> str:
        """Return the place of a target as text: its sample, with `many_to_many` also its step."""
        return "sample {}, step {}".format(*self.place(row)) if many_to_many else f"sample {row}"

    def in_shape(self, rows: np.ndarray) -> Any:
        """Return values of all rows in the shape of X: an array (N, T, ...) or a list."""
        if self.kind == "list":
            return np.split(rows, self.starts[1:])
        return rows.reshape(len(self), -1, *rows.shape[1:])

    def aligned(self, chosen: np.ndarray) -> np.ndarray:
        """Copy sequences to an array (n, longest, d_in), aligned at their last steps."""
        if self.kind != "list":  # indexing samples of an array is faster than indexing rows
            return self.in_shape(self.values)[chosen]
        lengths = self.lengths[chosen, None]
        lags = np.arange(lengths.max())[::-1]
        block = self.values[self.starts[chosen, None] + lengths - 1 - lags]
        block[lags >= lengths] = 0.0  # indexed rows of other sequences, before the first step
        return block

    def restored(self, block: np.ndarray, chosen: np.ndarray) -> Any:
        """Return sequences of a block of `aligned` in the form of X, with their lengths."""
        if self.columns is not None:
            return pd.DataFrame(block[..., 0], columns=self.columns)
        block = block[..., 0] if self.flat else block
        if self.kind != "list":
            return block
        lengths = self.lengths[chosen]
        return [part[len(part) - n :] for part, n in zip(block, lengths, strict=True)]


def in_batches(lengths: np.ndarray, width: int, most: int) -> Iterator[np.ndarray]:
    """Yield positions of sequences, longest first, in batches of at most `most` padded numbers."""
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        size = max(1, most // (int(lengths[order[0]]) * width))
        yield order[:size]
        order = order[size:]


def read_sequences(
    X: Any, model: str, expected: Inputs | None = None, *, finite: bool = True
) -> Sequences:
    """Check X and stack its sequences, of shape (N, T), (N, T, d_in), (T_i,) or (T_i, d_in).

    Rows of a matrix, and lists of equal length, are series of one input. `expected` are the inputs
    of the fit, None at a fit; `finite` refuses NaN and infinity. Messages are those of
    scikit-learn, or name sample, step and input.
    """
    check_is_table(X, "X")
    if isinstance(X, pd.Series) and X.dtype == object:
        X = X.tolist()
    shapes = _item_shapes(X)
    if shapes is not None:
        sequences = _from_list(X, shapes)
    elif (array := _checked_array(X)).ndim > 2:
        sequences = _from_array(array, model)
    else:
        sequences = _from_table(X, model, expected)
    known = np.isfinite(sequences.values)
    if finite and not known.all():
        row, column = np.argwhere(~known)[0]
        kind = "NaN" if np.isnan(sequences.values[row, column]) else "infinity"
        raise ValueError(
            f"Input X contains {kind}: {(~known).sum()} values are not finite, the first at "
            f"{sequences.where(int(row), True)}, input {column}. Fill them in or drop these "
            "samples first"
        )
    n_inputs = sequences.inputs.n_inputs
    if expected is not None and n_inputs != expected.n_inputs:
        raise ValueError(
            f"X has {n_inputs} inputs per step, but {model} is expecting {expected.n_inputs} "
            "inputs per step, as X had in fit"
        )
    return sequences


def check_is_table(values: Any, what: str) -> None:
    """Refuse generators, lazy frames, groups, and frames with repeated names of columns.

    `what` is the name of the values in messages, such as "sample_weight".
    """
    lazy = hasattr(values, "collect")
    if lazy or isinstance(values, Iterator | DataFrameGroupBy | SeriesGroupBy):
        instead = "Call its collect()" if lazy else "Give a list of what it iterates over"
        raise TypeError(
            f"{what} must be an array, a list or a frame; got a {type(values).__name__}. {instead}"
        )
    if isinstance(values, pd.DataFrame) and not values.columns.is_unique:
        twice = values.columns[values.columns.duplicated()][0]
        raise ValueError(
            f"{what} must have columns of different names; {quote(twice)} is there more than once. "
            "Rename one, or drop it"
        )


def check_columns_are_numbers(frame: Any, what: str) -> None:
    """Refuse a frame with a column of text, dates or other objects."""
    if isinstance(frame, pd.Series):
        frame = frame.to_frame()
    if not hasattr(frame, "columns"):
        return
    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j] if hasattr(frame, "iloc") else frame[:, j]
        array, odd = np.asarray(column), []
        if array.dtype.kind in "SUMmV":
            odd = [*array.ravel()[:1]]
        elif array.dtype.kind == "O":
            odd = [value for value in array if not _is_number(value)]
        if odd:
            raise ValueError(
                f"{what} must hold numbers; its column {quote(name)} (dtype {column.dtype}) holds "
                f"{str(odd[0])!r}. Convert the column, or drop it"
            )


def _is_number(value: Any) -> bool:
    """Return True for a number, also complex or missing ones, which later checks refuse."""
    if isinstance(value, complex) or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return True
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _item_shapes(X: Any) -> list[tuple[int, ...]] | None:
    """Return the shapes of the items of a list of sequences; None if X is no such list."""
    is_list = isinstance(X, list | tuple)
    if not is_list and not (isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1):
        return None
    shapes: list[tuple[int, ...]] = []
    for i, item in enumerate(X):
        try:
            shapes.append(tuple(np.shape(item)))
        except ValueError as error:
            raise ValueError(
                f"sequence {i} of X must be an array of shape (T,) or (T, d_in); its rows differ "
                "in length"
            ) from error
    dims = {len(shape) for shape in shapes}
    if not shapes:
        raise ValueError(f"{LEGAL}; got an empty {type(X).__name__}")
    if 0 in dims or max(dims) > 2:
        return None
    is_table = all(isinstance(item, list | tuple) for item in X)
    return None if is_table and dims == {1} and len(set(shapes)) == 1 else shapes


def _checked_array(X: Any) -> Any:
    """Return X if it has dimensions, else as an array; refuse text and dates."""
    if np.ma.is_masked(X):
        raise ValueError("X is masked in places. Fill these in or drop their samples first")
    check_columns_are_numbers(X, "X")
    if hasattr(X, "ndim"):
        _check_type(getattr(X, "dtype", None), "X")
        return X
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{LEGAL}; got a {type(X).__name__} of other things") from error
    if array.ndim == 0 and array.dtype == object:
        raise TypeError(f"{LEGAL}; got {'None' if X is None else f'a {type(X).__name__}'}")
    _check_type(array.dtype, "X")
    return array


def _check_type(dtype: Any, what: str) -> None:
    """Refuse text and dates, which numpy would convert to numbers silently."""
    if getattr(dtype, "kind", "O") in "SUMm":
        raise ValueError(f"{what} must hold numbers; got {dtype}. Convert it first")


def _from_list(X: Any, shapes: list[tuple[int, ...]]) -> Sequences:
    widths = [shape[1] if len(shape) == 2 else 1 for shape in shapes]
    for i, (shape, width) in enumerate(zip(shapes, widths, strict=True)):
        if not shape[0] or not width:
            raise ValueError(
                f"every sequence of X must have at least one step and one input; sequence {i} has "
                f"shape {shape}"
            )
        if width != widths[0]:
            raise ValueError(
                "all sequences of X must have the same inputs per step; sequence 0 has "
                f"{widths[0]}, sequence {i} has {width}"
            )
    columns = [list(item.columns) for item in X if hasattr(item, "columns")]
    for i, names in enumerate(columns):
        if names != columns[0]:
            raise ValueError(
                "frames in a list must have the same columns in the same order, "
                f"{quote(columns[0])}; frame {i} has {quote(names)}"
            )
    parts = []
    for i, item in enumerate(X):
        if np.ma.is_masked(item):
            raise ValueError(
                f"sequence {i} of X is masked in places. Fill these in or drop it first"
            )
        check_columns_are_numbers(item, f"sequence {i} of X")
        array = np.asarray(item)
        if array.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: sequence {i} of X has {array.dtype}")
        _check_type(array.dtype, f"sequence {i} of X")
        try:
            parts.append(array.astype(np.float64).reshape(-1, widths[0]))
        except (TypeError, ValueError) as error:
            raise ValueError(f"sequence {i} of X must hold numbers; {error}") from error
    lengths = np.array([shape[0] for shape in shapes])
    flat = all(len(shape) == 1 for shape in shapes)
    return Sequences(np.concatenate(parts), lengths, "list", Inputs(widths[0], False), flat)


def _from_array(X: Any, model: str) -> Sequences:
    array = check_array(
        X, allow_nd=True, dtype=np.float64, ensure_all_finite=False, estimator=model, input_name="X"
    )
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"{LEGAL}; got shape {array.shape}")
    n, length, n_inputs = array.shape
    values = array.reshape(-1, n_inputs)
    return Sequences(values, np.full(n, length), "array", Inputs(n_inputs, False))


def _from_table(X: Any, model: str, expected: Inputs | None) -> Sequences:
    """Read a table; after a fit to a table, it must have the same columns."""
    # scikit-learn stores names and counts of columns in an estimator, whose class is named in
    # messages: a throw-away class of that name.
    columns: Any = type(model, (BaseEstimator,), {})()
    reset = expected is None or not expected.is_table
    if expected is not None and not reset:
        columns.n_features_in_, columns.feature_names_in_ = expected.n_features, expected.names
    array = validate_data(columns, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
    n, length = array.shape
    inputs = Inputs(length, True, getattr(columns, "feature_names_in_", None))
    values, names = array.reshape(-1, 1), getattr(X, "columns", None)
    return Sequences(values, np.full(n, length), "table", inputs, True, names)
