"""History, forecast and intervals of one series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.plotting._forecast_frames import Names, Picture, panel_labels, read_picture
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

__all__ = ["plot_forecast", "plot_forecasts"]

_PANELS = 4  # of a new figure, if no more are asked for


def plot_forecast(
    history: pd.Series | pd.DataFrame,
    forecast: pd.Series | pd.DataFrame,
    ax: Axes | None = None,
    *,
    column: str | None = None,
    series: Any = None,
    last: int | None = None,
    levels: Sequence[float] | None = None,
    actual: pd.Series | pd.DataFrame | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> Axes:
    """Draw the history of one series, its forecast and the forecast's intervals.

    Parameters
    ----------
    history : Series or DataFrame
        The data the forecast follows, in the layout given to `fit`: a Series, a wide frame (a
        column a variable) or a long one (a row a series and time).
    forecast : Series or DataFrame
        What `predict` gave, with columns ``name``, ``name-lo-80``, ``name-hi-80``, ...
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    column : str, optional
        Which variable of a wide forecast, or which model or target of a long one. Not needed
        where there is one.
    series : object, optional
        Which series of a long forecast, by its id. Not needed where there is one.
    last : int, optional
        Draw only the last so many points of the history.
    levels : sequence of numbers, optional
        Which intervals to draw, such as ``[80]``; all by default.
    actual : Series or DataFrame, optional
        Values observed since, in the layout of the history.
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
        If the series, column or level asked for is not there or not determined, an interval has
        one bound only, or `last` is not a positive whole number.

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
    names = Names(column, series, id_col, time_col, target_col)
    picture = read_picture(history, forecast, actual, names)
    shown = _levels(picture, levels)
    past = picture.history if last is None else picture.history.iloc[-checked_count(last, "last") :]
    ax = new_axes(ax, 8.0, 3.6)
    x = place_on_axis(ax, past.index)
    ax.plot(x, past.to_numpy(dtype=float), color=INK, linewidth=1.2, label="history")
    _draw_bands(ax, picture, shown)
    x = place_on_axis(ax, picture.point.index)
    point = picture.point.to_numpy(dtype=float)
    ax.plot(x, point, color=colour(0), linewidth=1.8, label="forecast", **_marker(point))
    if picture.actual is not None:
        _draw_actual(ax, picture.actual)
    ax.set_ylabel(_with_unit(picture, history))
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
    levels: Sequence[float] | None = None,
    actual: pd.Series | pd.DataFrame | None = None,
    note: str = "",
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> np.ndarray:
    """Draw several forecasts as `plot_forecast` does, a panel a series and column.

    Parameters
    ----------
    history, forecast : Series or DataFrame
        As for `plot_forecast`.
    ax : matplotlib Axes or sequence of them, optional
        Where to draw, one a panel; a new figure by default.
    columns : str or list of str, optional
        Columns of the forecast; by default all, of a new figure the first four.
    series : id or list of ids, optional
        Series of a long forecast; by default all, as far as four panels hold them. What is left out
        is said below the panels.
    last : int, optional
        Draw only the last so many points of each history.
    levels : sequence of numbers, optional
        Which intervals to draw, such as ``[80]``; all by default.
    actual : Series or DataFrame, optional
        Values observed since, in the layout of the history.
    note : str
        To be said below the panels of a new figure.
    id_col, time_col, target_col : str
        Column names of long frames.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (panels,)

    Raises
    ------
    TypeError, ValueError
        As `plot_forecast`, or if there are more or fewer axes than panels.

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
    ids, points = panel_labels(forecast, id_col, time_col, target_col)
    chosen = points if columns is None else _as_list(columns)
    named = ids if series is None else _as_list(series)
    if ax is None and columns is None and len(chosen) > _PANELS:
        note = note or f"{_PANELS} of {len(chosen):,} columns; name others by columns="
        chosen = chosen[:_PANELS]
    room = max(_PANELS // max(len(chosen), 1), 1)
    if ax is None and series is None and len(named) > room:
        note = note or f"{room} of {len(named):,} series; name others by series="
        named = named[:room]
    panels = [(one, column) for one in named for column in chosen]
    if not panels:
        raise ValueError(
            f"series= and columns= must name at least one panel to draw; got series={series!r}, "
            f"columns={columns!r}. Leave them out to draw all"
        )
    axes = _panel_axes(ax, len(panels), note)
    for i, (own, (one, column)) in enumerate(zip(axes, panels, strict=True)):
        plot_forecast(
            history, forecast, own, column=column, series=one, last=last, levels=levels,
            actual=actual, id_col=id_col, time_col=time_col, target_col=target_col,
        )  # fmt: skip
        if i and ax is None:
            own.get_legend().remove()  # that of the first is that of all
    return axes


def _panel_axes(ax: Any, count: int, note: str) -> np.ndarray:
    """Axes of panels one below the other, side by side where they are many and even."""
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


def _levels(picture: Picture, levels: Sequence[float] | None) -> list[float]:
    """Levels to draw, the widest first so that the narrower ones lie on it."""
    chosen = list(picture.bands) if levels is None else [float(level) for level in levels]
    missing = [level for level in chosen if level not in picture.bands]
    if missing:
        raise ValueError(
            f"`levels` must be among those of the forecast, {_in_percent(picture.bands)}; "
            f"got {_in_percent(missing)} besides. Ask predict for them with level=."
        )
    return sorted(chosen, reverse=True)


def _in_percent(levels: Any) -> str:
    return "[" + ", ".join(f"{level:g}" for level in sorted(levels)) + "]"


def _draw_bands(ax: Axes, picture: Picture, levels: list[float]) -> None:
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


def _draw_actual(ax: Axes, actual: pd.Series) -> None:
    x = place_on_axis(ax, actual.index)
    style: dict[str, Any] = {"color": INK, "linewidth": 0.8, "marker": "o", "markersize": 3.2}
    ax.plot(x, actual.to_numpy(dtype=float), markerfacecolor="white", label="actual", **style)


def _marker(point: np.ndarray) -> dict[str, Any]:
    """Mark a single point, of which a line shows nothing."""
    return {"marker": "o"} if len(point) == 1 else {}


def _with_unit(picture: Picture, history: Any) -> str:
    """Add the unit that a data set states in its attrs."""
    units = getattr(history, "attrs", {}).get("units")
    unit = units.get(picture.history.name) if isinstance(units, dict) else units
    return f"{picture.name} ({unit})" if isinstance(unit, str) else picture.name
