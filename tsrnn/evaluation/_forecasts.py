"""Frames of forecasts from several origins: checked, and laid out by window and step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

KEYS = ("unique_id", "ds", "cutoff", "y")
NAMES_SHOWN = 5
_BOUND = re.compile(r"(?P<model>.+)-(?P<side>lo|hi)-(?P<level>\d+(\.\d+)?)")

Ends = dict[float, dict[str, tuple[str, str]]]  # by level and model, columns of lower and upper


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of M models in W windows of H steps; a window is a series and a cutoff.

    Attributes
    ----------
    models : list of str
    ids : ndarray of shape (S,)
        Names of the series, in the order of the frame.
    series : int ndarray of shape (W,)
        Number of the series of each window; rising.
    cutoffs : str ndarray of shape (W,)
        For messages.
    time : int ndarray of shape (W,)
        Windows of different series with the same number are at the same time; see `_times`.
    step_size : int or None
        Fewest steps from a cutoff to the next of the same series, at most H; None where every
        series has a single window.
    y : ndarray of shape (W, H)
        NaN where the row is not compared.
    point : ndarray of shape (M, W, H)
    bounds : dict
        By level, lower and upper ends, shape (2, M, W, H); NaN where a model has none.
    """

    models: list[str]
    ids: np.ndarray
    series: np.ndarray
    cutoffs: np.ndarray
    time: np.ndarray
    step_size: int | None
    y: np.ndarray
    point: np.ndarray
    bounds: dict[float, np.ndarray]

    @property
    def horizon(self) -> int:
        """Steps of a window."""
        return self.y.shape[1]

    @property
    def known(self) -> np.ndarray:
        """Rows that are compared, shape (W, H)."""
        return ~np.isnan(self.y)

    @property
    def n_series(self) -> int:
        """Series that have a window."""
        return len(np.unique(self.series))

    def choose_models(self, models: Sequence[str]) -> Forecasts:
        """Some models, in the order asked for."""
        at = [self.models.index(name) for name in models]
        bounds = {level: ends[:, at] for level, ends in self.bounds.items()}
        return replace(self, models=list(models), point=self.point[at], bounds=bounds)

    def choose_windows(self, chosen: np.ndarray) -> Forecasts:
        """Some windows, by a mask of shape (W,)."""
        return replace(
            self,
            series=self.series[chosen],
            cutoffs=self.cutoffs[chosen],
            time=self.time[chosen],
            y=self.y[chosen],
            point=self.point[:, chosen],
            bounds={level: ends[:, :, chosen] for level, ends in self.bounds.items()},
        )


def lay_out(frame: Any, models: Sequence[str] | None = None) -> Forecasts:
    """Check a frame of forecasts and lay it out by window and step.

    Raises
    ------
    TypeError
        If it is no pandas DataFrame, or a column that must be numbers is not.
    ValueError
        If columns, models or the partner of a bound are missing, rows are there twice, windows
        have different numbers of steps, values are infinite or no actual value is known.
    """
    _check_frame(frame)
    found = model_columns(frame, models)
    names = list(found)
    columns = ["y", *names, *(c for own in found.values() for pair in own.values() for c in pair)]
    values = {name: _numbers(frame, name) for name in columns}
    series, ids = pd.factorize(frame["unique_id"])
    ds, cutoff = _ranks_in_time(frame)
    order = np.lexsort((ds, cutoff, series))
    first, steps = _shape(frame.iloc[order], series[order], cutoff[order], ds[order])
    grid = {name: value[order].reshape(-1, steps) for name, value in values.items()}
    if np.isnan(grid["y"]).all():
        raise ValueError(
            "the frame must have actual values to compare with; all of column 'y' is missing"
        )
    series, cutoff = series[order][first], cutoff[order][first]
    return Forecasts(
        models=names,
        ids=np.asarray(ids),
        series=series,
        cutoffs=frame["cutoff"].iloc[order[first]].astype(str).to_numpy(dtype=object),
        time=_times(series, cutoff),
        step_size=_step_size(series, cutoff, ds[order].reshape(-1, steps)),
        y=grid["y"],
        point=np.stack([grid[name] for name in names]),
        bounds={
            level: _ends(grid, names, {name: own.get(level, ()) for name, own in found.items()})
            for level in sorted({level for own in found.values() for level in own})
        },
    )


def model_columns(
    frame: pd.DataFrame, models: Sequence[str] | None = None
) -> dict[str, dict[float, tuple[str, str]]]:
    """Columns of a frame that are models, with their columns of intervals.

    Parameters
    ----------
    frame : DataFrame
    models : list of str, optional
        Of these columns only, in their order; by default all that are numeric and not one of
        ``KEYS`` or the end of an interval.

    Returns
    -------
    dict
        By model and level, rising, the columns of the lower and upper ends.

    Raises
    ------
    ValueError
        If there is no model, one asked for is not there, or an interval lacks an end or a model.
    """
    names = _models(frame, models)
    ends = _bounds(frame, names)
    return {
        name: {level: own[name] for level, own in ends.items() if name in own} for name in names
    }


def shown(names: Any) -> str:
    """Some of many names, for a message."""
    texts = [str(name) for name in list(names)]
    more = len(texts) - NAMES_SHOWN
    return ", ".join(texts[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _check_frame(frame: Any) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            "frame must be a pandas DataFrame as backtest gives it, with columns unique_id, ds, "
            f"cutoff, y and one for each model; got {type(frame).__name__}"
        )
    missing = [name for name in KEYS if name not in frame.columns]
    if missing:
        raise ValueError(
            f"frame must have the columns {', '.join(KEYS)} and one for each model; it lacks "
            f"{missing}. It has {list(map(str, frame.columns))}; rename columns, or reset_index() "
            "where they are in the index"
        )
    if not len(frame):
        raise ValueError("frame must have at least one row; it has none")
    twice = [str(name) for name in frame.columns[frame.columns.duplicated()]]
    if twice:
        raise ValueError(f"the columns of frame must have different names; twice: {shown(twice)}")
    for name in KEYS[:3]:
        lacking = int(frame[name].isna().sum())
        if lacking:
            raise ValueError(f"column {name!r} must have no missing values; {lacking} rows have")


def _models(frame: pd.DataFrame, asked: Sequence[str] | None) -> list[str]:
    """Columns of point forecasts."""
    others = [c for c in frame.columns if c not in KEYS and isinstance(c, str)]
    points = [c for c in others if not _BOUND.fullmatch(c)]
    if asked is None:
        found = [c for c in points if _is_number(frame[c])]
        if not found:
            raise ValueError(
                "frame must have a numeric column of forecasts for each model beside "
                f"{', '.join(KEYS)}; its other columns are {others or 'none'}"
            )
        return found
    if isinstance(asked, str) or not isinstance(asked, Sequence) or not len(asked):
        raise ValueError(f'models must be a list of columns such as ["ARMA"]; got {asked!r}')
    unknown = [name for name in asked if name not in points]
    if unknown:
        raise ValueError(f"models must be columns of frame, among {points}; got {unknown}")
    if len(set(asked)) < len(asked):
        raise ValueError(f"models must name each column once; got {list(asked)}")
    return list(asked)


def _is_number(column: pd.Series) -> bool:
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _bounds(frame: pd.DataFrame, models: list[str]) -> Ends:
    """Columns of lower and upper ends."""
    found: dict[float, dict[str, dict[str, str]]] = {}
    for column in frame.columns:
        match = _BOUND.fullmatch(column) if isinstance(column, str) else None
        if match is None or not 0 < float(match["level"]) < 100:
            continue
        if match["model"] not in frame.columns:
            raise ValueError(
                f"column {column!r} is the end of an interval of a model {match['model']!r}, of "
                "which frame has no column; add the point forecasts or drop the interval"
            )
        if match["model"] in models:
            own = found.setdefault(float(match["level"]), {}).setdefault(match["model"], {})
            own[match["side"]] = column
    ends: Ends = {}
    for level in sorted(found):
        for sides in found[level].values():
            _check_both_ends(sides)
        ends[level] = {model: (s["lo"], s["hi"]) for model, s in found[level].items()}
    return ends


def _check_both_ends(sides: dict[str, str]) -> None:
    if len(sides) == 1:
        (column,) = sides.values()
        raise ValueError(
            f"an interval needs both ends, -lo- and -hi-; of {column!r} the other is not there. "
            "Add it or drop this one"
        )


def _numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    """A column as floats, NaN where missing."""
    column = frame[name]
    if not _is_number(column):
        raise TypeError(f"column {name!r} must be numbers; its dtype is {column.dtype}")
    values = column.to_numpy(dtype=float, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise ValueError(
            f"column {name!r} must be finite; {len(infinite)} rows are not, the first "
            f"{_row(frame, infinite[0])}. Set them missing to leave them out"
        )
    return values


def _row(frame: pd.DataFrame, i: Any) -> str:
    """Which row, for a message."""
    row = frame.iloc[int(i)]
    return f"of series {row['unique_id']!r}, cutoff {row['cutoff']}, ds {row['ds']}"


def _ranks_in_time(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Timestamps and cutoffs as their ranks among all of both."""
    try:
        both = pd.concat([frame["ds"], frame["cutoff"]], ignore_index=True)
        codes, _ = pd.factorize(both, sort=True)
    except TypeError as error:
        raise TypeError(
            "columns 'ds' and 'cutoff' must be of one type, timestamps or integers; got "
            f"{frame['ds'].dtype} and {frame['cutoff'].dtype}"
        ) from error
    ds, cutoff = codes[: len(frame)], codes[len(frame) :]
    early = np.flatnonzero(ds <= cutoff)
    if len(early):
        raise ValueError(
            f"every ds must lie after its cutoff; {len(early)} rows do not, the first "
            f"{_row(frame, early[0])}"
        )
    return ds, cutoff


def _shape(
    rows: pd.DataFrame, series: np.ndarray, cutoff: np.ndarray, ds: np.ndarray
) -> tuple[np.ndarray, int]:
    """First rows of the windows and the number of steps of each, of rows in order."""
    fresh = (np.diff(series) != 0) | (np.diff(cutoff) != 0)
    twice = np.flatnonzero(~fresh & (np.diff(ds) == 0))
    if len(twice):
        raise ValueError(
            f"each unique_id, cutoff and ds must stand in one row; {len(twice)} are repeated, the "
            f"first {_row(rows, twice[0])}"
        )
    first = np.concatenate([[0], np.flatnonzero(fresh) + 1])
    lengths = np.diff(np.append(first, len(rows)))
    steps = int(np.bincount(lengths).argmax())
    odd = np.flatnonzero(lengths != steps)
    if len(odd):
        names, cutoffs = rows["unique_id"].iloc[first[odd]], rows["cutoff"].iloc[first[odd]]
        windows = zip(names, cutoffs, lengths[odd], strict=True)
        raise ValueError(
            f"all windows must have the same number of steps, {steps} as most have; {len(odd)} "
            f"have not: {shown(f'{name!r} at {c} ({n} steps)' for name, c, n in windows)}. Leave "
            "them out, or keep rows without an actual value with y missing"
        )
    return first, steps


def _times(series: np.ndarray, cutoff: np.ndarray) -> np.ndarray:
    """Number windows so that those of different series at the same time have the same number.

    They are matched by cutoff where one series has all cutoffs; else, as with series that end at
    different times, by their number counted from the last of the series.
    """
    most = int(np.bincount(series).max())
    values, codes = np.unique(cutoff, return_inverse=True)
    if len(values) == most:
        return codes
    last = np.searchsorted(series, series, side="right") - 1
    return most - 1 - (last - np.arange(len(series)))


def _step_size(series: np.ndarray, cutoff: np.ndarray, ds: np.ndarray) -> int | None:
    """Fewest steps of a window that lie up to the next cutoff of its series."""
    follows = series[1:] == series[:-1]
    if not follows.any():
        return None
    passed = (ds[:-1] <= cutoff[1:, None]).sum(axis=1)
    return max(1, int(passed[follows].min()))


def _ends(
    grid: dict[str, np.ndarray], models: list[str], ends: Mapping[str, Sequence[str]]
) -> np.ndarray:
    """Lower and upper ends, shape (2, M, W, H), NaN for models without the level."""
    found = np.full((2, len(models), *grid["y"].shape), np.nan)
    for i, name in enumerate(models):
        for side, column in enumerate(ends[name]):
            found[side, i] = grid[column]
    return found
