"""Plot of the effects of columns: curves over their values, responses by lag."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data import quote
from tsrnn.plotting._style import (
    BAND,
    GREY,
    PALE,
    SMALL,
    checked_count,
    colour,
    given_panels,
    legend_above,
    line_style,
    tidy,
    whole_ticks,
)

ACROSS = 3  # panels in a row of a new figure


def plot_effects(
    frame: pd.DataFrame, columns: Any = None, ax: Any = None, *, n: int = 8
) -> np.ndarray:
    """Draw the effects of columns, with a panel for each curve and each response by lag.

    Parameters
    ----------
    frame : DataFrame
        Result of ``effect_curves()`` of a fitted model for one target.
    columns : str or list of str, optional
        Columns to draw; by default the `n` with the largest effects.
    ax : sequence of matplotlib Axes, optional
        Axes of the panels; a new figure by default.
    n : int, default 8
        Number of columns by default.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (panels,)

    Raises
    ------
    ValueError
        If there are no effects, a column has none, or the number of axes is wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.plotting import plot_effects
    >>> line = {"column": "price", "kind": "curve", "of": "", "hour": float("nan")}
    >>> frame = pd.DataFrame([line | {"at": x, "effect": -x, "se": 0.1 * x} for x in (0.0, 1.0)])
    >>> [ax.get_xlabel() for ax in plot_effects(frame)]
    ['price']
    """
    names, n = list(frame["column"].unique()), checked_count(n, "n")
    if columns is None:
        sizes = frame["effect"].abs().groupby(frame["column"]).max()
        shown = sizes.sort_values(ascending=False, kind="stable").index[:n]
        chosen = [name for name in names if name in shown]
    else:
        alone = isinstance(columns, str) or not hasattr(columns, "__iter__")
        chosen = [columns] if alone else list(columns)
    known = {*names}
    if not names:
        raise ValueError(
            "there are no effects to draw: no column tells more than the past of the series. "
            "effects={...} of the forecaster keeps those that it names"
        )
    if not chosen or not all(isinstance(name, Hashable) and name in known for name in chosen):
        raise ValueError(
            f"columns must name columns with effects, which are {names}; got {quote(columns)}. "
            "Columns that tell no more than the past of the series have none"
        )
    kinds = frame["kind"].replace({"mark": "curve", "cumulated": "lag"})
    panels = [
        rows
        for name in chosen
        for _, rows in frame[frame["column"] == name].groupby([kinds, "of"], sort=False)
    ]
    axes = _axes(ax, len(panels))
    unit = "%" if frame.attrs.get("units") == "percent" else ""
    for panel, rows in zip(axes, panels, strict=True):
        draw = _draw_lags if (rows["kind"] == "lag").any() else _draw_curves
        draw(panel, rows)
        panel.axhline(0.0, color=PALE, linewidth=0.8, zorder=0)
        panel.set_ylabel(f"Effect, {unit}" if unit else "Effect", fontsize=SMALL)
        panel.xaxis.label.set_size(SMALL)
        tidy(panel)
    return axes


def _draw_curves(panel: Any, rows: pd.DataFrame) -> None:
    """Draw the curves of a column with their bands, by hour if there are several."""
    curves = rows[rows["kind"] == "curve"]
    for i, (_, curve) in enumerate(curves.groupby("hour", dropna=False, sort=False)):
        hour = curve["hour"].iloc[0]
        x, effect, error = (curve[name].to_numpy(float) for name in ("at", "effect", "se"))
        label = None if pd.isna(hour) else f"{hour:.0f}:00"
        style = line_style(i) | {"marker": ""}
        panel.plot(x, effect, **style, linewidth=1.4, label=label)
        low, high = effect - BAND * error, effect + BAND * error
        panel.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)
    marks = rows.loc[rows["kind"] == "mark", "at"].unique()
    panel.vlines(marks, 0, 0.035, color=GREY, linewidth=0.8, transform=panel.get_xaxis_transform())
    if curves["hour"].notna().any():
        panel.legend(fontsize=SMALL - 1, frameon=False)
    panel.set_xlabel(", ".join(filter(None, (rows["column"].iloc[0], rows["of"].iloc[0]))))


def _draw_lags(panel: Any, rows: pd.DataFrame) -> None:
    """Draw bars of the response by lag, and a line of their cumulated sums."""
    by_lag, sums = (rows[rows["kind"] == kind] for kind in ("lag", "cumulated"))
    bars = {"color": colour(0), "alpha": 0.55, "width": 0.7}
    panel.bar(by_lag["at"], by_lag["effect"], yerr=BAND * by_lag["se"], **bars, label="by lag",
              error_kw={"elinewidth": 1.0, "ecolor": GREY})  # fmt: skip
    panel.errorbar(
        sums["at"], sums["effect"], BAND * sums["se"], color=colour(1), marker="o", markersize=3,
        linewidth=1.2, elinewidth=0.8, label="cumulated",
    )  # fmt: skip
    panel.set_xlabel(f"Lag of a change of {rows['column'].iloc[0]} by 1")
    legend_above(panel)
    whole_ticks(panel)


def _axes(ax: Any, count: int) -> np.ndarray:
    if ax is not None:
        return given_panels(ax, count)
    import matplotlib.pyplot as plt

    across = min(count, ACROSS)
    down = -(-count // across)
    size = (3.4 * across + 0.6, 2.7 * down + 0.3)
    grid = plt.subplots(down, across, figsize=size, layout="constrained", squeeze=False)[1]
    for unused in grid.ravel()[count:]:
        unused.set_visible(False)
    return np.asarray(grid.ravel()[:count])
