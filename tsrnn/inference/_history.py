"""Histories: lags of all variables before each row, as windows and as a table."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data import quote

RANK_TOLERANCE = 1e-10  # relative singular value of collinear columns, by rounding of float64
LEAST_TRAINING = 20  # fewest samples to fit a nuisance


def read_columns(
    role: str, values: Any, name: str, index: pd.Index | None = None, vary: bool = True
) -> pd.DataFrame:
    """Check and convert columns of numbers, of shape (T,) or (T, k), in time order.

    `role` names the argument in messages, `name` unnamed columns. `index` is a required index;
    `vary` refuses constant columns.
    """
    frame = named_columns(role, values, name, index)
    if frame.empty:
        raise ValueError(f"{role} must have rows and columns; got shape {frame.shape}")
    for column, values_of in frame.items():
        if not (
            pd.api.types.is_numeric_dtype(values_of) and not np.iscomplexobj(values_of.to_numpy())
        ):
            raise TypeError(
                f"column {quote(column)} of {role} must be of numbers; got dtype {values_of.dtype}"
            )
    frame = frame.astype(float)
    check_known(role, frame)
    if frame.columns.has_duplicates:
        repeated = list(frame.columns[frame.columns.duplicated()])
        raise ValueError(f"columns of {role} must have distinct names; got {quote(repeated)} twice")
    if not (frame.index.is_monotonic_increasing and frame.index.is_unique):
        raise ValueError(f"the index of {role} must increase; sort the rows by time")
    if index is not None and not frame.index.equals(index):
        raise ValueError(
            f"{role} must have the rows of y; got {len(frame)} rows from {quote(frame.index[0])} "
            f"on, and y has {len(index)} from {quote(index[0])} on. Join them first"
        )
    constant = constant_columns(role, frame)
    if constant and vary:
        raise ValueError(
            f"columns of {role} must vary; constant are {quote(constant)}. Leave them out"
        )
    return frame


def constant_columns(role: str, frame: pd.DataFrame) -> list[Any]:
    """Names of constant columns; a ValueError refuses columns whose squares overflow."""
    size = np.abs(frame.to_numpy()).max(axis=0)
    # A range below 1e-12 of the size is rounding. Halves, as the range itself may overflow.
    constant = frame.max().to_numpy() / 2 - frame.min().to_numpy() / 2 <= 5e-13 * size
    # Products of two squares must be within the range of floats.
    far = list(frame.columns[~constant & ~((size > 1e-75) & (size < 1e75))])
    if far:
        raise ValueError(
            f"columns of {role} must be between 1e-75 and 1e75 in size, for their squares; "
            f"{far} are not. Multiply or divide them by a number"
        )
    return list(frame.columns[constant])


def named_columns(role: str, values: Any, name: str, index: pd.Index | None) -> pd.DataFrame:
    """Convert a series, frame or array to a frame with names; an array takes the index."""
    if isinstance(values, pd.Series):
        frame = values.to_frame(name if values.name is None else str(values.name))
    elif isinstance(values, pd.DataFrame):
        frame = values.rename(columns=str)
    else:
        array = np.asarray(values)
        if array.ndim not in (1, 2):
            raise ValueError(f"{role} must have one or two dimensions; got shape {array.shape}")
        columns = array[:, None] if array.ndim == 1 else array
        k = columns.shape[1]
        frame = pd.DataFrame(columns, columns=[name] if k == 1 else
                             [f"{name}{i}" for i in range(1, k + 1)])  # fmt: skip
        if index is not None and len(index) == len(frame):
            frame.index = index
    return frame


def check_known(role: str, frame: pd.DataFrame) -> None:
    """Raise a ValueError for missing and infinite values, by column and row."""
    bad = ~np.isfinite(frame.to_numpy())
    if bad.any():
        rows = frame.index[bad.any(axis=1)]
        shown = ", ".join(map(quote, rows[:5])) + (", ..." if len(rows) > 5 else "")
        names = list(frame.columns[bad.any(axis=0)])
        raise ValueError(
            f"{role} must be known in all rows; {quote(names)} are missing or infinite in "
            f"{len(rows)}: {shown}. Cut the sample, or fill them in"
        )


def check_rank(frame: pd.DataFrame, what: str) -> None:
    """Raise a ValueError for columns that are linear combinations of earlier columns."""
    values = frame.to_numpy()
    centred = (values - values.mean(axis=0)) / values.std(axis=0)
    dependent, kept = [], np.empty((len(values), 0))
    for j, column in enumerate(frame):
        with_next = np.column_stack([kept, centred[:, j]])
        singular = np.linalg.svd(with_next, compute_uv=False)
        if with_next.shape[1] > len(values) or singular[-1] < RANK_TOLERANCE * singular[0]:
            dependent.append(column)
        else:
            kept = with_next
    if dependent:
        raise ValueError(
            f"{what} must not be collinear; {dependent} are linear combinations of the columns "
            "before them. Leave them out"
        )


def whole_number(name: str, value: Any, least: int) -> int:
    """Check that an argument is a whole number of at least `least`."""
    message = f"{name} must be a whole number of at least {least}; got {value!r}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(message)
    if value < least:
        raise ValueError(message)
    return int(value)


@dataclass(frozen=True, eq=False)
class History:
    """Lags of d variables before each of N rows."""

    windows: np.ndarray  # (N, p, d), oldest lag first
    names: tuple[str, ...]  # columns of `table`, such as "y.L1"
    rows: np.ndarray  # (N,), positions in the data

    @classmethod
    def of(
        cls, frame: pd.DataFrame, n_lags: int, ahead: int = 0, current: tuple[str, ...] = ()
    ) -> History:
        """History of each row with `n_lags` rows before and `ahead` rows after.

        Columns in `current` have lags 0, ..., p - 1 instead of 1, ..., p.
        """
        shift = np.array([column in current for column in frame], int)
        values = frame.to_numpy()
        rows = np.arange(n_lags, len(frame) - ahead)
        lags = np.arange(n_lags, 0, -1)
        places = rows[:, None, None] - lags[None, :, None] + shift[None, None, :]
        windows = values[places, np.arange(values.shape[1])[None, None, :]]
        names = [
            f"{column}.L{lag - moved}"
            for lag in lags
            for column, moved in zip(frame, shift, strict=True)
        ]
        return cls(windows, tuple(names), rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def table(self) -> np.ndarray:
        """Lags as columns, shape (N, p d)."""
        return self.windows.reshape(len(self.windows), -1)


def least_samples(n_folds: int, gap: int) -> int:
    """Fewest samples with which every fold leaves `LEAST_TRAINING` to train on."""
    if n_folds == 1:
        return LEAST_TRAINING
    n = LEAST_TRAINING + 2 * gap
    # A fold loses a block of at most ceil(n / n_folds) samples and the gap on both sides.
    while n - -(-n // n_folds) - 2 * gap < LEAST_TRAINING:
        n += 1
    return n


def check_length(
    n_rows: int, n_lags: int, ahead: int, n_folds: int, gap: int, columns: int
) -> None:
    """Raise a ValueError for too few rows, with the number needed.

    `columns` counts regressors of the last regression, which needs ten degrees of freedom.
    """
    needed = max(least_samples(n_folds, gap), columns + 10) + n_lags + ahead
    if n_rows < needed:
        raise ValueError(
            f"at least {needed} rows are needed for n_lags={n_lags}, n_folds={n_folds}, gap={gap}"
            f"{f' and a horizon of {ahead}' if ahead else ''} with {columns} regressors; got "
            f"{n_rows}. Take fewer lags or folds, or a longer series"
        )
