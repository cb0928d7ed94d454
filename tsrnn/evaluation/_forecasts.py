"""Frames of forecasts from several origins: checked, laid out by window, cut to common rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_any_real_numeric_dtype

from tsrnn.data import listed, quote, show_label

KEYS = ("unique_id", "ds", "cutoff", "y")
NAMES_SHOWN = 5
LARGEST = 1e150  # sums of squares up to here do not overflow
_BOUND = re.compile(r"(?P<model>.+)-(?P<side>lo|hi)-(?P<level>\d+(\.\d+)?)")
_REPEATED = "RuntimeError: not fitted, as in an earlier window: "  # before that window's error


@dataclass(frozen=True, eq=False)
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
        Cutoffs as text, for messages.
    time : int ndarray of shape (W,)
        Windows of different series with the same number are at the same time; see `_match_times`.
    step_size : int or None
        Fewest steps between cutoffs of a series, at most H; None where every series has a single
        window.
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
        """Number of steps of a window."""
        return self.y.shape[1]

    @property
    def known(self) -> np.ndarray:
        """Rows that are compared, shape (W, H)."""
        return ~np.isnan(self.y)

    @property
    def n_series(self) -> int:
        """Number of series that have a window."""
        return len(np.unique(self.series))

    def choose_models(self, models: Sequence[str]) -> Forecasts:
        """Select models, in the order asked for."""
        at = [self.models.index(name) for name in models]
        bounds = {level: ends[:, at] for level, ends in self.bounds.items()}
        return replace(self, models=list(models), point=self.point[at], bounds=bounds)

    def choose_windows(self, chosen: np.ndarray) -> Forecasts:
        """Select windows, by a mask of shape (W,)."""
        by_window = {
            name: getattr(self, name)[chosen] for name in ("series", "cutoffs", "time", "y")
        }
        bounds = {level: ends[:, :, chosen] for level, ends in self.bounds.items()}
        return replace(self, **by_window, point=self.point[:, chosen], bounds=bounds)


def lay_out(frame: Any, models: Sequence[str] | None = None) -> Forecasts:
    """Check a frame of forecasts and lay it out by window and step."""
    _check_frame(frame)
    intervals = model_columns(frame, models)
    names = list(intervals)
    ends = [column for levels in intervals.values() for pair in levels.values() for column in pair]
    values = {name: _read_floats(frame, name) for name in ("y", *names, *ends)}
    series, ids = pd.factorize(frame["unique_id"])
    ds, cutoff = _rank_times(frame)
    order = np.lexsort((ds, cutoff, series))
    series, cutoff, ds = series[order], cutoff[order], ds[order]
    first, steps = _find_windows(frame.iloc[order], series, cutoff, ds)
    grid = {name: column[order].reshape(-1, steps) for name, column in values.items()}
    if np.isnan(grid["y"]).all():
        raise ValueError(
            "the frame must have actual values to compare with; all of column 'y' is missing"
        )
    bounds = {}
    for level in sorted({level for levels in intervals.values() for level in levels}):
        bounds[level] = np.full((2, len(names), *grid["y"].shape), np.nan)
        for i, levels in enumerate(intervals.values()):
            for side, column in enumerate(levels.get(level, ())):
                bounds[level][side, i] = grid[column]
    series, cutoff = series[first], cutoff[first]
    return Forecasts(
        models=names,
        ids=np.asarray(ids),
        series=series,
        cutoffs=frame["cutoff"].iloc[order[first]].astype(str).to_numpy(dtype=object),
        time=_match_times(series, cutoff),
        step_size=_step_size(series, cutoff, ds.reshape(-1, steps)),
        y=grid["y"],
        point=np.stack([grid[name] for name in names]),
        bounds=bounds,
    )


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
            f"{missing}. It has {quote(list(frame.columns))}; rename columns, or reset_index() "
            "where they are in the index"
        )
    if not len(frame):
        raise ValueError("frame must have at least one row; it has none")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(
            f"the columns of frame must have different names; twice: {list_names(twice)}"
        )
    for name in KEYS[:3]:
        lacking = int(frame[name].isna().sum())
        if lacking:
            raise ValueError(
                f"column {quote(name)} must have no missing values; {lacking} rows have"
            )


def model_columns(
    frame: pd.DataFrame, models: Sequence[str] | None = None
) -> dict[str, dict[float, tuple[str, str]]]:
    """Names of the columns of interval ends, by model and rising level.

    By default, models are all numeric columns except ``KEYS`` and interval ends.
    """
    names = _point_columns(frame, models)
    sides: dict[float, dict[str, dict[str, str]]] = {}  # by level and model, columns by side
    for column in frame.columns:
        match = _BOUND.fullmatch(column) if isinstance(column, str) else None
        if match is None or not 0 < float(match["level"]) < 100:
            continue
        if match["model"] not in frame.columns:
            raise ValueError(
                f"column {quote(column)} is the end of an interval of a model {match['model']!r}, "
                "of which frame has no column; add the point forecasts or drop the interval"
            )
        if match["model"] in names:
            by_model = sides.setdefault(float(match["level"]), {})
            by_model.setdefault(match["model"], {})[match["side"]] = column
    intervals: dict[str, dict[float, tuple[str, str]]] = {name: {} for name in names}
    for level, by_model in sorted(sides.items()):
        for name, ends in by_model.items():
            if len(ends) == 1:
                (column,) = ends.values()
                raise ValueError(
                    f"an interval needs both ends, -lo- and -hi-; of {quote(column)} the other is "
                    "not there. Add it or drop this one"
                )
            intervals[name][level] = ends["lo"], ends["hi"]
    return intervals


def _point_columns(frame: pd.DataFrame, asked: Sequence[str] | None) -> list[str]:
    others = [c for c in frame.columns if c not in KEYS and isinstance(c, str)]
    points = [c for c in others if not _BOUND.fullmatch(c)]
    if asked is None:
        numeric = [c for c in points if is_any_real_numeric_dtype(frame[c])]
        if not numeric:
            raise ValueError(
                "frame must have a numeric column of forecasts for each model beside "
                f"{', '.join(KEYS)}; its other columns are {others or 'none'}"
            )
        return numeric
    if isinstance(asked, str) or not isinstance(asked, Sequence) or not len(asked):
        raise ValueError(f'models must be a list of columns such as ["ARMA"]; got {asked!r}')
    unknown = [name for name in asked if name not in points]
    if unknown:
        raise ValueError(f"models must be columns of frame, among {points}; got {quote(unknown)}")
    if len(set(asked)) < len(asked):
        raise ValueError(f"models must name each column once; got {quote(list(asked))}")
    return list(asked)


def _read_floats(frame: pd.DataFrame, name: str) -> np.ndarray:
    """Column as floats, NaN where missing."""
    column = frame[name]
    if not is_any_real_numeric_dtype(column):
        raise TypeError(f"column {quote(name)} must be numbers; its dtype is {column.dtype}")
    values = column.to_numpy(dtype=float, na_value=np.nan)
    infinite = np.flatnonzero(np.abs(values) > LARGEST)
    if len(infinite):
        raise ValueError(
            f"column {quote(name)} must be finite; {len(infinite)} rows are not, or exceed "
            f"{LARGEST:g} in size, the first {_place_of(frame, infinite[0])}. Set them missing to "
            "leave them out"
        )
    return values


def _rank_times(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
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
            f"{_place_of(frame, early[0])}"
        )
    return ds, cutoff


def _place_of(frame: pd.DataFrame, i: Any) -> str:
    """Series and times of a row, for a message."""
    row = frame.iloc[int(i)]
    return (
        f"of series {quote(row['unique_id'])}, cutoff {quote(row['cutoff'])}, ds {quote(row['ds'])}"
    )


def _find_windows(
    rows: pd.DataFrame, series: np.ndarray, cutoff: np.ndarray, ds: np.ndarray
) -> tuple[np.ndarray, int]:
    """First row of each window, and the steps that all windows have; rows must be in order."""
    fresh = (np.diff(series) != 0) | (np.diff(cutoff) != 0)
    twice = np.flatnonzero(~fresh & (np.diff(ds) == 0))
    if len(twice):
        raise ValueError(
            f"each unique_id, cutoff and ds must stand in one row; {len(twice)} are repeated, the "
            f"first {_place_of(rows, twice[0])}"
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
            f"have not: "
            f"{list_names(f'{quote(name)} at {quote(c)} ({n} steps)' for name, c, n in windows)}. "
            "Leave them out, or keep rows without an actual value with y missing"
        )
    return first, steps


def _match_times(series: np.ndarray, cutoff: np.ndarray) -> np.ndarray:
    """Number windows; the same number means the same time across series.

    Windows are matched by cutoff if one series has all cutoffs. Else, as with series that end at
    different times, they are counted back from the last window of each series.
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


def common_rows(forecasts: Forecasts, facts: dict[str, Any]) -> tuple[Forecasts, list[str]]:
    """Keep rows with an actual value and a forecast of every model; note what is left out.

    `facts` are ``attrs["backtest"]`` of the frame, whose ``failures`` give reasons.
    """
    empty = np.isnan(forecasts.point).all(axis=(1, 2))
    if empty.all():
        raise ValueError(
            f"at least one model must have forecasts; all of {', '.join(forecasts.models)} are "
            "missing"
        )
    ids, series, names = forecasts.ids, forecasts.series, np.array(forecasts.models)
    notes = [
        f"{name} has no forecast at all and is left out{_reason(facts, name, ids)}."
        for name in names[empty]
    ]
    forecasts = forecasts.choose_models(list(names[~empty]))

    def series_of(windows: Any) -> np.ndarray:
        return ids[np.unique(series[windows])]

    missing = ~forecasts.known
    if missing.any():
        notes.append(
            f"{_count(missing, 'row')} without an actual value left out for every model, of "
            f"{list_names(series_of(missing.any(axis=1)))}."
        )
    failed = np.isnan(forecasts.point).all(axis=2)  # (M, W)
    for name, windows in zip(forecasts.models, failed, strict=True):
        if windows.any():
            pairs = zip(ids[series[windows]], forecasts.cutoffs[windows], strict=True)
            notes.append(
                f"{name} has no forecast in {_count(windows, 'window')} "
                f"({list_names(f'{show_label(label)} at {cutoff}' for label, cutoff in pairs)})"
                f"{_reason(facts, name, series_of(windows))}; left out for every model."
            )
    lacking = np.isnan(forecasts.point) & ~failed[:, :, None] & forecasts.known
    notes += [
        f"{name} lacks {_count(rows, 'forecast')} in windows it has otherwise, of "
        f"{list_names(series_of(rows.any(axis=1)))}; these rows are left out for every model."
        for name, rows in zip(forecasts.models, lacking, strict=True)
        if rows.any()
    ]
    known = forecasts.known & ~np.isnan(forecasts.point).any(axis=0)
    if not known.any():
        raise ValueError(
            "there must be rows with an actual value and a forecast of every model; there is none "
            f"for {', '.join(forecasts.models)}. Choose fewer with models="
        )
    gone = np.setdiff1d(series, series[known.any(axis=1)])
    if len(gone):
        notes.append(f"{len(gone)} series without a row left: {list_names(ids[gone])}.")
    kept = replace(forecasts, y=np.where(known, forecasts.y, np.nan))
    return kept.choose_windows(known.any(axis=1)), notes


def _reason(facts: dict[str, Any], model: str, ids: np.ndarray) -> str:
    """Most frequent error message of a model over series."""
    labels = set(map(str, ids))
    errors = [
        str(failure.get("error")).removeprefix(_REPEATED).rstrip(".: \n")
        for failure in facts.get("failures") or []
        if failure.get("model") == model
        and ("unique_id" not in failure or str(failure["unique_id"]) in labels)
    ]
    return f": {max(errors, key=errors.count)}" if errors else ""


def _count(mask: np.ndarray, noun: str) -> str:
    n = int(mask.sum())
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def list_names(names: Iterable[Any]) -> str:
    """Join the first labels for a message, and count the rest."""
    return listed(map(show_label, names), NAMES_SHOWN)
