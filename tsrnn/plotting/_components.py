"""Components of a series over time: level, trend and season."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.plotting._style import INK, colour, place_on_axis, tidy

_COMPONENTS = ("level", "trend", "season", "regression")


def plot_components(frame: pd.DataFrame, ax: Any = None) -> np.ndarray:
    """Draw the components of one series over time, a panel each.

    Parameters
    ----------
    frame : DataFrame
        What ``components()`` of a fitted model gave, of one series and target: a column of times,
        then ``level``, ``trend`` and ``season`` and, with exogenous columns, ``regression``.
        Components that the model does not have, all NaN, are left out.
    ax : sequence of matplotlib Axes, optional
        Where to draw, one a component; a new figure by default.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (components,)

    Raises
    ------
    ValueError
        If the frame has other columns, no rows, or several series, or the axes are more or fewer
        than the components.

    Examples
    --------
    >>> from tsrnn import ETS
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.plotting import plot_components
    >>> model = ETS("mul", "none", "mul").fit(load_elec_equip())
    >>> [ax.get_ylabel() for ax in plot_components(model.components())]
    ['Level', 'Season']
    """
    time, names = _columns(frame)
    axes = _axes(ax, len(names))
    for i, (panel, name) in enumerate(zip(axes, names, strict=True)):
        values = frame[name].to_numpy(dtype=float)
        x = place_on_axis(panel, pd.Index(frame[time], name=time))
        panel.plot(x, values, color=INK if name == "level" else colour(i), linewidth=1.2)
        panel.set_ylabel(name.capitalize())
        panel.margins(x=0.01)
        tidy(panel)
    return axes


def _columns(frame: Any) -> tuple[str, list[str]]:
    """Name of the column of times, and those of the components that are there."""
    names = [str(name) for name in getattr(frame, "columns", [])]
    keys = [name for name in names if name not in (*_COMPONENTS, "target")]
    if not keys or not set(_COMPONENTS) & set(names):
        raise ValueError(
            "the frame must be what components() gives: a column of times, then level, trend and "
            f"season; got {names or type(frame).__name__}"
        )
    there = [name for name in _COMPONENTS if name in names and frame[name].notna().any()]
    if not there:
        raise ValueError("there is nothing to draw: the frame has no rows with components")
    if frame.duplicated([keys[-1]]).any():
        raise ValueError("the frame holds several series; select the rows of one")
    return keys[-1], there


def _axes(ax: Any, count: int) -> np.ndarray:
    if ax is None:
        import matplotlib.pyplot as plt

        size = (8.0, 0.6 + 1.9 * count)
        grid = plt.subplots(
            count, 1, figsize=size, sharex=True, layout="constrained", squeeze=False
        )
        return np.asarray(grid[1].ravel())
    axes = np.ravel(np.asarray(ax, dtype=object))
    if len(axes) != count:
        raise ValueError(f"`ax` must be one axes a component, {count}; got {len(axes)}")
    return axes
