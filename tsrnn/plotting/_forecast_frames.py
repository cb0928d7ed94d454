"""One series' history, forecast, bands and held-out values, out of frames of any layout."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, NamedTuple

import pandas as pd

__all__ = ["Names", "Picture", "panel_labels", "read_picture"]

_BOUND = re.compile(r"(?P<base>.+)-(?P<side>lo|hi)-(?P<level>\d+(\.\d+)?)")


class Names(NamedTuple):
    """Which series and column to take, and the column names of long frames."""

    column: str | None
    series: Any
    id_col: str
    time_col: str
    target_col: str


class Picture(NamedTuple):
    """What is drawn; every series has time as its index."""

    name: str
    history: pd.Series
    point: pd.Series
    bands: dict[float, tuple[pd.Series, pd.Series]]
    actual: pd.Series | None


def read_picture(history: Any, forecast: Any, actual: Any, names: Names) -> Picture:
    """Take one series out of frames in the layouts that `predict` accepts and gives.

    Raises
    ------
    TypeError
        If one of them is no pandas Series or DataFrame.
    ValueError
        If the series or column is not determined or not there, or an interval has one bound only.
    """
    names = names._replace(series=_the_series(forecast, names))
    table = _one_table(forecast, "forecast", names)
    column = _point_column(table, names)
    past = _values(history, "history", column, names)
    label = str(past.name) if past.name is not None else column
    if names.series is not None:
        label = str(names.series) if label == names.target_col else f"{label}, {names.series}"
    held_out = None if actual is None else _values(actual, "actual", column, names)
    return Picture(label, past, table[column], _bands(table, column), held_out)


def panel_labels(
    forecast: Any, id_col: str, time_col: str, target_col: str
) -> tuple[list[Any], list[Any]]:
    """Series of a forecast, None for the only one without an id, and its columns of points."""
    names = Names(None, None, id_col, time_col, target_col)
    if not _is_long(forecast, names):
        return [None], _points(_one_table(forecast, "forecast", names), names)
    has_ids = id_col in forecast.columns
    ids = list(forecast[id_col].unique()) if has_ids else [None]
    front = {id_col, time_col, "cutoff"} if has_ids else {time_col, "cutoff"}
    rest = forecast[[name for name in forecast.columns if name not in front]]
    return ids, _points(rest, names)


def _is_long(frame: Any, names: Names) -> bool:
    return isinstance(frame, pd.DataFrame) and names.time_col in frame.columns


def _the_series(forecast: Any, names: Names) -> Any:
    """Find the id asked for, the only one where there is one, None where there are no ids."""
    if not (_is_long(forecast, names) and names.id_col in forecast.columns):
        if names.series is not None:
            raise ValueError(
                f"`series` selects from long frames with a column {names.id_col!r}; the forecast "
                "has none. Use `column` for a wide frame."
            )
        return None
    ids = forecast[names.id_col].unique()
    if names.series is None and len(ids) == 1:
        return ids[0]
    if not isinstance(names.series, Hashable) or names.series is None or names.series not in ids:
        came = "none was given" if names.series is None else f"got {names.series!r}"
        raise ValueError(
            f"`series` must be one of the {len(ids)} series of the forecast "
            f"({_listed(ids)}); {came}."
        )
    return names.series


def _one_table(frame: Any, what: str, names: Names) -> pd.DataFrame:
    """One series with time as index and values as columns."""
    if isinstance(frame, pd.Series):
        return frame.to_frame("forecast" if frame.name is None else str(frame.name))
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"`{what}` must be a pandas Series or DataFrame; got {type(frame).__name__}."
        )
    if not _is_long(frame, names):
        return frame
    if names.series is not None and names.id_col in frame.columns:
        rows = frame[names.id_col] == names.series
        if not rows.any():
            raise ValueError(f"`{what}` has no rows of the series {names.series!r}.")
        frame = frame[rows].drop(columns=names.id_col)
    return frame.drop(columns="cutoff", errors="ignore").set_index(names.time_col)


def _point_column(table: pd.DataFrame, names: Names) -> Any:
    points = _points(table, names)
    if names.column is None and len(points) == 1:
        return points[0]
    is_label = isinstance(names.column, Hashable) and names.column is not pd.NA
    if not is_label or names.column not in points:
        came = "none was given" if names.column is None else f"got {names.column!r}"
        raise ValueError(
            f"`column` must be one of the forecast's columns ({_listed(points)}); {came}."
        )
    return names.column


def _points(table: pd.DataFrame, names: Names) -> list[Any]:
    """Columns of point forecasts; the actual values of a backtest are none."""
    points = [name for name in table.columns if not _is_bound(name, table)]
    if names.column is None and len(points) > 1 and names.target_col in points:
        points.remove(names.target_col)
    return points


def _is_bound(name: Any, table: pd.DataFrame) -> bool:
    match = _BOUND.fullmatch(str(name))
    return match is not None and match["base"] in table.columns


def _bands(table: pd.DataFrame, column: str) -> dict[float, tuple[pd.Series, pd.Series]]:
    bounds: dict[float, dict[str, pd.Series]] = {}
    for name in table.columns:
        match = _BOUND.fullmatch(str(name))
        if match is not None and match["base"] == column:
            bounds.setdefault(float(match["level"]), {})[match["side"]] = table[name]
    halves = [level for level, sides in bounds.items() if len(sides) == 1]
    if halves:
        raise ValueError(
            f"an interval needs both bounds, -lo- and -hi-; the forecast of {column!r} has only "
            f"one at the levels {[f'{level:g}' for level in halves]}."
        )
    return {level: (sides["lo"], sides["hi"]) for level, sides in bounds.items()}


def _values(frame: Any, what: str, column: str, names: Names) -> pd.Series:
    """Observed values: the column of the forecast's name, the target, or the only one."""
    if isinstance(frame, pd.Series):
        return frame
    table = _one_table(frame, what, names)
    for name in (column, names.target_col):
        if name in table.columns:
            return table[name]
    if len(table.columns) == 1:
        return table.iloc[:, 0]
    raise ValueError(
        f"`{what}` must have the column {column!r} or {names.target_col!r}; "
        f"it has {_listed(table.columns)}."
    )


def _listed(values: Any, most: int = 5) -> str:
    texts = [repr(str(value)) for value in list(values)[:most]]
    return ", ".join(texts) + (", ..." if len(values) > most else "")
