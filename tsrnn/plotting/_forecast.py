"""Plots of forecasts: history, point forecasts and intervals."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.data import quote
from tsrnn.plotting._style import (
    GREY,
    INK,
    SMALL,
    checked_count,
    colour,
    legend_above,
    new_axes,
    place_on_axis,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = 4  # default number in a new figure
_BOUND = re.compile(r"(?P<base>.+)-(?P<side>lo|hi)-(?P<level>\d+(\.\d+)?)")


def plot_forecast(
    history: pd.Series | pd.DataFrame,
    forecast: pd.Series | pd.DataFrame,
    ax: Axes | None = None,
    *,
    column: str | None = None,
    series: Any = None,
    last: int | None = None,
    levels: float | Sequence[float] | None = None,
    actual: pd.Series | pd.DataFrame | None = None,
    outliers: pd.DataFrame | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> Axes:
    """Draw the history of one series, its forecast and the forecast's intervals.

    Parameters
    ----------
    history : Series or DataFrame
        Data before the forecast, in the layout given to `fit`: a Series, a wide frame (a column
        per variable) or a long frame (a row per series and time).
    forecast : Series or DataFrame
        Result of `predict`, with columns ``name``, ``name-lo-80``, ``name-hi-80``, ...
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.
    column : str, optional
        Variable of a wide forecast, or model or target of a long one; required if there are
        several.
    series : object, optional
        Id of the series of a long forecast; required if there are several.
    last : int, optional
        Number of last points of the history; all by default.
    levels : number or sequence of numbers, optional
        Levels of the intervals, such as ``[80]``; all by default.
    actual : Series or DataFrame, optional
        Later observations, in the layout of the history.
    outliers : DataFrame, optional
        Rows of the history to mark, such as `ParaRNNForecaster.outliers_`.
    id_col, time_col, target_col : str
        Column names of long frames.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `history`, `forecast` or `actual` is no pandas Series or DataFrame.
    ValueError
        If the series, column or level does not exist or is ambiguous, an interval has one bound
        only, or `last` is not a positive integer.

    Examples
    --------
    >>> from tsrnn.baselines import SeasonalNaive
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.plotting import plot_forecast
    >>> history = load_elec_equip()
    >>> forecast = SeasonalNaive().fit(history).predict(12, level=[80, 95])
    >>> ax = plot_forecast(history, forecast, last=60)
    >>> [line.get_label() for line in ax.get_lines()]
    ['history', 'forecast']
    """
    names = _Names(column, series, id_col, time_col, target_col)
    picture = _read_picture(history, forecast, actual, names)
    drawn = _levels(picture, levels)
    past = picture.history if last is None else picture.history.iloc[-checked_count(last, "last") :]
    ax = new_axes(ax, 8.0, 3.6)
    x = place_on_axis(ax, past.index)
    ax.plot(x, past.to_numpy(dtype=float), color=INK, linewidth=1.2, label="history")
    if outliers is not None:
        _mark_outliers(ax, past, outliers, names)
    _draw_bands(ax, picture, drawn)
    x = place_on_axis(ax, picture.point.index)
    point = picture.point.to_numpy(dtype=float)
    style: dict[str, Any] = {"color": colour(0), "linewidth": 1.8}
    style |= {"marker": "o"} if len(point) == 1 else {}  # a single point has no line
    ax.plot(x, point, label="forecast", **style)
    if picture.actual is not None:
        x = place_on_axis(ax, picture.actual.index)
        style = {"color": INK, "linewidth": 0.8, "marker": "o", "markersize": 3.2}
        y = picture.actual.to_numpy(dtype=float)
        ax.plot(x, y, markerfacecolor="white", label="actual", **style)
    units = getattr(history, "attrs", {}).get("units")  # as data sets state them
    unit = units.get(picture.history.name) if isinstance(units, dict) else units
    ax.set_ylabel(f"{picture.name} ({unit})" if isinstance(unit, str) else picture.name)
    tidy(ax)
    ax.margins(x=0.01)
    legend_above(ax)
    return ax


def plot_forecasts(
    history: pd.Series | pd.DataFrame,
    forecast: pd.Series | pd.DataFrame,
    ax: Any = None,
    *,
    columns: Any = None,
    series: Any = None,
    last: int | None = None,
    levels: float | Sequence[float] | None = None,
    actual: pd.Series | pd.DataFrame | None = None,
    outliers: pd.DataFrame | None = None,
    note: str = "",
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> np.ndarray:
    """Draw several forecasts, with a panel for each series and column.

    Parameters
    ----------
    history, forecast, last, levels, actual, outliers, id_col, time_col, target_col
        As in `plot_forecast`.
    ax : matplotlib Axes or sequence of Axes, optional
        Axes of the panels; a new figure by default.
    columns : str or list of str, optional
        Columns of the forecast; by default all, in a new figure the first four.
    series : id or list of ids, optional
        Series of a long forecast; by default all, in a new figure up to four panels. A note below
        the panels says what is left out.
    note : str
        Note below the panels of a new figure.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (panels,)

    Raises
    ------
    TypeError, ValueError
        As `plot_forecast`, or if the number of axes is wrong.

    Examples
    --------
    >>> from tsrnn.baselines import Drift
    >>> from tsrnn.datasets import load_macrodata
    >>> from tsrnn.plotting import plot_forecasts
    >>> history = load_macrodata()[["infl", "unemp"]]
    >>> axes = plot_forecasts(history, Drift().fit(history).predict(8, level=80), last=60)
    >>> [ax.get_ylabel() for ax in axes]
    ['infl (percent a year)', 'unemp (percent of the labour force)']
    """
    ids, points = _panel_labels(forecast, id_col, time_col, target_col)
    chosen = points if columns is None else _as_list(columns)
    named = ids if series is None else _as_list(series)
    if ax is None and columns is None and len(chosen) > _PANELS:
        note = note or f"{_PANELS} of {len(chosen):,} columns; name others by columns="
        chosen = chosen[:_PANELS]
    room = max(_PANELS // max(len(chosen), 1), 1)
    if ax is None and series is None and len(named) > room:
        note = note or f"{room} of {len(named):,} series; name others by series="
        named = named[:room]
    panels = [(label, column) for label in named for column in chosen]
    if not panels:
        raise ValueError(
            "series= and columns= must name at least one panel to draw; got "
            f"series={quote(series)}, columns={quote(columns)}. Leave them out to draw all"
        )
    axes = _panel_axes(ax, len(panels), note)
    for i, (panel, (label, column)) in enumerate(zip(axes, panels, strict=True)):
        plot_forecast(
            history, forecast, panel, column=column, series=label, last=last, levels=levels,
            actual=actual, outliers=outliers, id_col=id_col, time_col=time_col,
            target_col=target_col,
        )  # fmt: skip
        if i and ax is None:
            panel.get_legend().remove()  # the first legend serves all panels
    return axes


def _panel_axes(ax: Any, count: int, note: str) -> np.ndarray:
    """Axes of panels in one column, or in two if they are many and even."""
    if ax is not None:
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) != count:
            raise ValueError(
                f"`ax` must be one axes a panel, {count}; got {len(axes)}. Choose panels by "
                "series= and columns=."
            )
        return axes
    import matplotlib.pyplot as plt

    wide = 2 if count > _PANELS and count % 2 == 0 else 1
    high = count // wide
    size = (8.0 if wide == 1 else 12.0, 3.6 if count == 1 else 0.6 + 2.1 * high)
    figure, grid = plt.subplots(high, wide, figsize=size, layout="constrained", squeeze=False)
    if note:
        figure.supxlabel(note, fontsize=SMALL, color=GREY, x=0.01, ha="left")
    return np.asarray(grid.ravel())


def _as_list(labels: Any) -> list[Any]:
    return [labels] if isinstance(labels, str) or not np.iterable(labels) else list(labels)


def _levels(picture: _Picture, levels: float | Sequence[float] | None) -> list[float]:
    """Levels in decreasing order, so that narrow bands are drawn over wide ones."""
    chosen = [*picture.bands] if levels is None else [float(level) for level in _as_list(levels)]
    missing = [level for level in chosen if level not in picture.bands]
    if missing:
        raise ValueError(
            f"`levels` must be among those of the forecast, {_in_percent(picture.bands)}; "
            f"got {_in_percent(missing)} besides. Ask predict for them with level=."
        )
    return sorted(chosen, reverse=True)


def _in_percent(levels: Any) -> str:
    return "[" + ", ".join(f"{level:g}" for level in sorted(levels)) + "]"


def _draw_bands(ax: Axes, picture: _Picture, levels: list[float]) -> None:
    strengths = np.linspace(0.18, 0.36, len(levels)) if len(levels) > 1 else [0.25]
    for level, strength in zip(levels, strengths, strict=False):
        low, high = picture.bands[level]
        x = place_on_axis(ax, low.index)
        style: dict[str, Any] = {"color": colour(0), "alpha": strength}
        style["label"] = f"{level:g}% interval"
        lower, upper = low.to_numpy(dtype=float), high.to_numpy(dtype=float)
        if len(x) == 1:
            ax.vlines(x, lower, upper, linewidth=8, **style)
        else:
            ax.fill_between(x, lower, upper, linewidth=0, **style)


def _mark_outliers(ax: Axes, past: pd.Series, outliers: pd.DataFrame, names: _Names) -> None:
    """Draw crosses at gross errors, and diamonds at level shifts."""
    of_series = np.ones(len(outliers), bool)
    if names.series is not None and names.id_col in outliers.columns:
        of_series &= (outliers[names.id_col] == names.series).to_numpy()
    if "target" in outliers.columns:
        of_series &= (outliers["target"] == names.column).to_numpy()
    for kind, marker, label in (("error", "x", "error"), ("shift", "D", "level shift")):
        # A time column without a name is the first one.
        time_col = names.time_col if names.time_col in outliers else outliers.columns[0]
        times = outliers[time_col][of_series & (outliers["kind"] == kind).to_numpy()]
        marked = past[past.index.isin(times)]
        if len(marked):
            style: dict[str, Any] = {"color": colour(1), "marker": marker, "linestyle": ""}
            ax.plot(place_on_axis(ax, marked.index), marked.to_numpy(float), label=label, **style)


class _Names(NamedTuple):
    """Series and column to draw, and the column names of long frames."""

    column: str | None
    series: Any
    id_col: str
    time_col: str
    target_col: str


class _Picture(NamedTuple):
    """History, forecast, bands and actual values of one series, each with time as its index."""

    name: str
    history: pd.Series
    point: pd.Series
    bands: dict[float, tuple[pd.Series, pd.Series]]
    actual: pd.Series | None


def _read_picture(history: Any, forecast: Any, actual: Any, names: _Names) -> _Picture:
    """Read one series from frames in the layouts of `fit` and `predict`."""
    names = names._replace(series=_find_series(forecast, names))
    table = _table_of_series(forecast, "forecast", names)
    column = _point_column(table, names)
    past = _values(history, "history", column, names)
    label = str(past.name) if past.name is not None else column
    if names.series is not None:
        label = str(names.series) if label == names.target_col else f"{label}, {names.series}"
    held_out = None if actual is None else _values(actual, "actual", column, names)
    return _Picture(label, past, table[column], _bands(table, column), held_out)


def _panel_labels(
    forecast: Any, id_col: str, time_col: str, target_col: str
) -> tuple[list[Any], list[Any]]:
    """Ids of the series of a forecast, None without ids, and its columns of point forecasts."""
    names = _Names(None, None, id_col, time_col, target_col)
    if not _is_long(forecast, names):
        return [None], _points(_table_of_series(forecast, "forecast", names), names)
    has_ids = id_col in forecast.columns
    ids = list(forecast[id_col].unique()) if has_ids else [None]
    front = {id_col, time_col, "cutoff"} if has_ids else {time_col, "cutoff"}
    rest = forecast[[name for name in forecast.columns if name not in front]]
    return ids, _points(rest, names)


def _is_long(frame: Any, names: _Names) -> bool:
    return isinstance(frame, pd.DataFrame) and names.time_col in frame.columns


def _find_series(forecast: Any, names: _Names) -> Any:
    """Id of the series to draw; None if the forecast has no ids."""
    if not (_is_long(forecast, names) and names.id_col in forecast.columns):
        if names.series is not None:
            raise ValueError(
                f"`series` selects from long frames with a column {quote(names.id_col)}; the "
                "forecast has none. Use `column` for a wide frame."
            )
        return None
    ids = forecast[names.id_col].unique()
    if names.series is None and len(ids) == 1:
        return ids[0]
    if not isinstance(names.series, Hashable) or names.series is None or names.series not in ids:
        came = "none was given" if names.series is None else f"got {quote(names.series)}"
        raise ValueError(
            f"`series` must be one of the {len(ids)} series of the forecast "
            f"({_listed(ids)}); {came}."
        )
    return names.series


def _table_of_series(frame: Any, what: str, names: _Names) -> pd.DataFrame:
    """One series with time as index and values as columns."""
    if isinstance(frame, pd.Series):
        return frame.to_frame("forecast" if frame.name is None else frame.name)
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"`{what}` must be a pandas Series or DataFrame; got {type(frame).__name__}."
        )
    if not _is_long(frame, names):
        return frame
    if names.series is not None and names.id_col in frame.columns:
        rows = frame[names.id_col] == names.series
        if not rows.any():
            raise ValueError(f"`{what}` has no rows of the series {quote(names.series)}.")
        frame = frame[rows].drop(columns=names.id_col)
    return frame.drop(columns="cutoff", errors="ignore").set_index(names.time_col)


def _point_column(table: pd.DataFrame, names: _Names) -> Any:
    points = _points(table, names)
    if names.column is None and len(points) == 1:
        return points[0]
    is_label = isinstance(names.column, Hashable) and names.column is not pd.NA
    if not is_label or names.column not in points:
        came = "none was given" if names.column is None else f"got {quote(names.column)}"
        raise ValueError(
            f"`column` must be one of the forecast's columns ({_listed(points)}); {came}."
        )
    return names.column


def _points(table: pd.DataFrame, names: _Names) -> list[Any]:
    """Columns of point forecasts, without the actual values of a backtest."""
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
            f"an interval needs both bounds, -lo- and -hi-; the forecast of {quote(column)} has "
            f"only one at the levels {[f'{level:g}' for level in halves]}."
        )
    return {level: (sides["lo"], sides["hi"]) for level, sides in bounds.items()}


def _values(frame: Any, what: str, column: str, names: _Names) -> pd.Series:
    """Observed values: the column named like the forecast, the target, or the only column."""
    if isinstance(frame, pd.Series):
        return frame
    table = _table_of_series(frame, what, names)
    for name in (column, names.target_col):
        if name in table.columns:
            return table[name]
    if len(table.columns) == 1:
        return table.iloc[:, 0]
    raise ValueError(
        f"`{what}` must have the column {quote(column)} or {quote(names.target_col)}; "
        f"it has {_listed(table.columns)}."
    )


def _listed(values: Any, most: int = 5) -> str:
    texts = [quote(value) for value in list(values)[:most]]
    return ", ".join(texts) + (", ..." if len(values) > most else "")
