"""Plot of the components of a series: level, trend, season, and the effects of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.plotting._style import (
    BAND,
    GREY,
    INK,
    PALE,
    SMALL,
    checked_count,
    colour,
    given_panels,
    legend_above,
    place_on_axis,
    shorten,
    tidy,
)

LEAST_RANGE = (
    0.1  # smallest range of an axis over the range of the fit: small components look small
)
NOT_DRAWN = ("data", "fit", "network")  # columns without a panel
STATES = ("level", "trend", "cycle", "season", "regression", "calendar")
ERROR = "-se"


def plot_components(
    frame: pd.DataFrame, ax: Any = None, *, last: int | None = None, n: int = 8
) -> np.ndarray:
    """Draw the components of one series over time, a panel each.

    Parameters
    ----------
    frame : DataFrame
        Result of ``components()`` of a fitted model for one series and target: key columns that
        end with the time, then ``level``, ``trend`` and others. ``data`` and ``fit``, if they come
        first, share a panel, and rows with a value of ``network`` are shaded as the horizon.
        Columns ``-se`` are standard errors, drawn as 80 percent bands. Components with NaN only
        are left out.
    ax : sequence of matplotlib Axes, optional
        Axes of the panels; a new figure by default.
    last : int, optional
        Number of last rows before the horizon; all by default.
    n : int, default 8
        Number of columns with the largest effects.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (panels,)

    Raises
    ------
    ValueError
        If the frame has other columns, no rows, or several series, or the number of axes is wrong.

    Examples
    --------
    >>> from tsrnn import ETS
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.plotting import plot_components
    >>> model = ETS("mul", "none", "mul").fit(load_elec_equip())
    >>> [ax.get_ylabel() for ax in plot_components(model.components())]
    ['Level', 'Season']
    """
    time, names = _columns(frame, checked_count(n, "n"))
    has_data = "data" in frame
    n_rows = int(frame["network"].isna().sum()) if has_data else len(frame)
    if last is not None:
        frame = frame.iloc[max(n_rows - checked_count(last, "last"), 0) :]
        n_rows = min(n_rows, last)
    axes = _axes(ax, len(names) + has_data)
    if has_data:
        x = place_on_axis(axes[0], pd.Index(frame[time], name=time))
        axes[0].plot(x, frame["data"].to_numpy(float), color=INK, linewidth=1.0, label="data")
        fit = {"color": colour(0), "linewidth": 1.4}
        axes[0].plot(x, frame["fit"].to_numpy(float), **fit, label="fit and forecast")
        axes[0].set_ylabel("Data and fit")
        legend_above(axes[0])
    for i, (panel, name) in enumerate(zip(axes[has_data:], names, strict=True)):
        values = frame[name].to_numpy(dtype=float)
        x = place_on_axis(panel, pd.Index(frame[time], name=time))
        shade = INK if name == "level" else colour(i)
        panel.plot(x, values, color=shade, linewidth=1.2)
        if has_data:
            additive = name != "trend"
            least = LEAST_RANGE * np.ptp(frame["fit"].dropna()) if additive else 0.0
            _draw_band(panel, x, values, frame[name + ERROR].to_numpy(float), shade, least)
            if name != "level":
                panel.axhline(0.0, color=PALE, linewidth=0.8, zorder=0)
        panel.set_ylabel(shorten(name.capitalize() if name in STATES else name, 18))
    for panel in axes:
        if n_rows < len(frame):
            panel.axvspan(x[max(n_rows - 1, 0)], x[-1], color=GREY, alpha=0.12, linewidth=0)
        panel.margins(x=0.01)
        tidy(panel)
    if has_data:
        axes[0].figure.align_ylabels(axes)
        if frame.columns[0] != time:  # of ids
            axes[0].set_title(str(frame.iloc[0, 0]), loc="right", fontsize=SMALL)
    return axes


def _draw_band(
    panel: Any, x: np.ndarray, values: np.ndarray, error: np.ndarray, shade: str, least: float
) -> None:
    """Draw a band around a line, with limits that ignore the wide bands of the first rows."""
    low, high = values - BAND * error, values + BAND * error
    panel.fill_between(x, low, high, color=shade, alpha=0.18, linewidth=0)
    known = np.flatnonzero(np.isfinite(error))
    late = known[len(known) // 4 :]
    bottom = min(np.nanmin(values), low[late].min(initial=np.inf))
    top = max(np.nanmax(values), high[late].max(initial=-np.inf))
    room = max(0.05 * (top - bottom), (least - (top - bottom)) / 2)
    if room > 0:
        panel.set_ylim(bottom - room, top + room)


def _columns(frame: Any, n: int) -> tuple[str, list[str]]:
    """Name of the time column, and names of the components to draw."""
    names = list(getattr(frame, "columns", []))
    first = next((i for i, name in enumerate(names) if name in ("data", "level")), 0)
    if not first:
        raise ValueError(
            "the frame must be what components() gives: a column of times, then level, trend and "
            f"season; got {names or type(frame).__name__}"
        )
    keys = [name for name in names[:first] if name != "target"]
    errors = {f"{name}{ERROR}" for name in names}
    there = [
        name
        for name in names[first:]
        if name not in (*NOT_DRAWN, *errors) and frame[name].notna().any()
    ]
    if not there:
        raise ValueError("there is nothing to draw: the frame has no rows with components")
    if frame.duplicated([keys[-1]]).any():
        raise ValueError("the frame holds several series; select the rows of one")
    effects = frame[[name for name in there if name not in STATES]].abs().mean()
    shown = {*STATES, *effects.sort_values(ascending=False, kind="stable").index[:n]}
    return keys[-1], [name for name in there if name in shown]


def _axes(ax: Any, count: int) -> np.ndarray:
    if ax is not None:
        return given_panels(ax, count)
    import matplotlib.pyplot as plt

    size = (8.0, 0.6 + (1.9 if count < 4 else 1.35) * count)
    grid = plt.subplots(count, 1, figsize=size, sharex=True, layout="constrained", squeeze=False)
    return np.asarray(grid[1].ravel())
