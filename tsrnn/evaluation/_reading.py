"""Forecasts that come as frames, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import level_name
from tsrnn.data import Layout, write_stamps


def suffixes(levels: Sequence[float]) -> list[str]:
    """Of the columns of a model's forecasts: "" the point, then those of intervals."""
    ends = (f"-{side}-{level_name(level)}" for level in levels for side in ("lo", "hi"))
    return ["", *ends]


def read_forecasts(
    made: Any, layout: Layout, ids: pd.Index, times: np.ndarray, wanted: Sequence[str]
) -> dict[str, np.ndarray]:
    """Arrays of shape (S, h, C), by suffix, of what `predict` has given.

    Parameters
    ----------
    made : Series or DataFrame
    layout : Layout
        Of the data.
    ids : pandas.Index of shape (S,)
    times : ndarray of shape (S, h)
        That must be forecast.
    wanted : sequence of str
        Suffixes of the columns to read.

    Raises
    ------
    ValueError
        If rows are of other series or times than asked for, or a column is not there.
    """
    frame = made.to_frame() if isinstance(made, pd.Series) else made
    n_series, h = times.shape
    if not isinstance(frame, pd.DataFrame) or len(frame) != times.size:
        raise ValueError(
            f"predict must give a frame of {times.size} rows, {h} of each series; got "
            f"{type(made).__name__} of shape {getattr(made, 'shape', None)}"
        )
    stamps = frame.index if layout.time_col is None else frame[layout.time_col]
    _check_equal(stamps, write_stamps(times.ravel(), layout), "timestamps")
    if layout.id_col is not None:
        _check_equal(frame[layout.id_col], ids.repeat(h), "series")
    front = {layout.id_col, layout.time_col} - {None}
    rest = [column for column in frame.columns if column not in front]
    bases: list[Any] = list(layout.target_names)
    if len(bases) == 1 and rest and bases[0] not in rest:
        bases = rest[:1]  # long frames name the model in place of the target
    columns = {suffix: [_column(rest, base, suffix) for base in bases] for suffix in wanted}
    return {
        suffix: frame[names].to_numpy(dtype=float).reshape(n_series, h, len(names))
        for suffix, names in columns.items()
    }


def _column(there: list[Any], base: Any, suffix: str) -> Any:
    column = f"{base}{suffix}" if suffix else base
    if column not in there:
        raise ValueError(f"the forecasts have no column {column!r}; there are {there}")
    return column


def _check_equal(came: Any, expected: pd.Index, what: str) -> None:
    came = pd.Index(came)
    wrong = np.flatnonzero(np.asarray(came != expected))
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"forecasts are of other {what} than asked for: {came[row]!r} in place of "
            f"{expected[row]!r} in row {row}"
        )
