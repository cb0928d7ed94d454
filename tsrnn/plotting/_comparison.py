"""Accuracy of models by step, their ranks and the coverage of their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.plotting._style import GREY, INK, PALE, PALETTE, SMALL, colour, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["plot_comparison"]

_NEEDED = ("accuracy", "by_step", "ranks", "critical_difference")
_DASHES = ("-", "--", ":")
_MARKERS = ("o", "s", "^")
_PANEL = (5.2, 3.4)  # inches
_LETTER = 0.66 * SMALL / 72  # inches, of the wider ones
_BESIDE = 4.8 * SMALL / 72  # what stands beside a name in the legend
_COVERAGE = "coverage-"


def plot_comparison(
    comparison: Any, measure: str | None = None, *, panels: Sequence[str] | None = None
) -> np.ndarray:
    """Draw a comparison of models: a measure by step, coverage by step, and mean ranks.

    Coverage is drawn where models have intervals, a dashed line at the level; ranks where there
    are some, with a bar as long as the critical difference from the best: models on it (filled)
    are not told apart from the best. A model has the same colour in each panel.

    Parameters
    ----------
    comparison : Comparison
        What `compare` gave, or anything with its tables ``accuracy``, ``by_step``, ``ranks`` and
        the number ``critical_difference``.
    measure : str, optional
        Column of ``by_step``; by default the one that models are sorted by.
    panels : sequence of str, optional
        Some of the panels: the measure, ``"coverage-80"`` and so on, ``"ranks"``.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (panels,)
        In a new figure, ``axes[0].figure``.

    Raises
    ------
    TypeError
        If it has no such tables.
    ValueError
        If the measure is not one of the columns, or a panel is not there.

    Examples
    --------
    >>> from tsrnn import backtest, compare
    >>> from tsrnn.baselines import Drift, Naive
    >>> from tsrnn.datasets import load_nile
    >>> from tsrnn.plotting import plot_comparison
    >>> frame = backtest([Drift(), Naive()], load_nile(), h=3, n_windows=20, step_size=1)
    >>> plot_comparison(compare(frame), "MAE")[0].get_ylabel()
    'MAE'
    """
    missing = [name for name in _NEEDED if not hasattr(comparison, name)]
    if missing:
        raise TypeError(
            f"`comparison` must be what compare() gives; got {type(comparison).__name__}, which "
            f"lacks {missing}."
        )
    table = comparison.by_step
    column = _measure(comparison, measure)
    there = [column, *(name for name in table.columns if str(name).startswith(_COVERAGE))]
    there += ["ranks"] * (len(comparison.ranks) > 0)
    panels = there if panels is None else list(panels)
    if not panels or not set(panels) <= set(there):
        raise ValueError(f"`panels` must be among {there}; got {panels}.")
    names = list(comparison.accuracy.index)
    columns = _legend_columns(names, _PANEL[0] * min(len(panels), 2))
    axes = _new_axes(len(panels), rows=math.ceil(len(names) / columns))
    lines: list[Line2D] = []
    for ax, panel in zip(axes, panels, strict=True):
        if panel == "ranks":
            _draw_ranks(ax, comparison.ranks, comparison.critical_difference, names)
        else:
            drawn = _draw_steps(ax, table[panel].unstack("model"), names, str(panel))
            lines = lines or drawn
    if lines:  # ranks have the names beside them
        _explain(axes[0], lines, columns)
    return axes


def _measure(comparison: Any, asked: str | None) -> str:
    columns = list(comparison.by_step.columns)
    name = getattr(comparison, "measure", columns[0]) if asked is None else asked
    if name not in columns:
        raise ValueError(f"`measure` must be one of {columns}; got {name!r}.")
    return str(name)


def _legend_columns(names: list[Any], width: float) -> int:
    """Names that stand side by side in a figure of some width."""
    widest = max(len(_short(name, width)) for name in names) * _LETTER + _BESIDE
    return max(1, min(len(names), 5, int(width / widest)))


def _short(name: Any, width: float) -> str:
    """A name that fits the width of a figure."""
    text, room = str(name), int((width - _BESIDE) / _LETTER)
    return text if len(text) <= room else text[: room - 3] + "..."


def _new_axes(count: int, rows: int) -> np.ndarray:
    """Axes of panels, the last across both columns if it is alone; above, rows of a legend."""
    import matplotlib.pyplot as plt

    wide = min(count, 2)
    high = math.ceil(count / wide)
    size = (_PANEL[0] * wide, _PANEL[1] * high + 0.2 * max(0, rows - 1))
    figure = plt.figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(high, wide)
    cells: list[Any] = [grid[i // wide, i % wide] for i in range(count)]
    if count % wide:
        cells[-1] = grid[high - 1, :]
    axes = np.empty(count, dtype=object)
    axes[:] = [figure.add_subplot(cell) for cell in cells]
    return axes


def _style(i: int) -> dict[str, Any]:
    turn = i // len(PALETTE)
    return {
        "color": colour(i),
        "linestyle": _DASHES[turn % len(_DASHES)],
        "marker": _MARKERS[turn % len(_MARKERS)],
    }


def _draw_steps(ax: Axes, table: pd.DataFrame, names: list[str], panel: str) -> list[Line2D]:
    """A line a model, and the level of a coverage; the lines of the models."""
    from matplotlib.ticker import MaxNLocator

    if panel.startswith(_COVERAGE):
        level = float(panel.removeprefix(_COVERAGE))
        ax.axhline(level / 100, color=GREY, linewidth=0.9, linestyle="--")
        panel = f"Coverage of the {level:g}% interval"
    size = 3.0 if len(table) < 13 else 0.0
    lines = []
    for i, name in enumerate(names):
        values = table[name].to_numpy(dtype=float)
        if not np.isnan(values).all():
            steps = table.index.to_numpy(dtype=float)
            lines += ax.plot(
                steps, values, label=str(name), linewidth=1.4, markersize=size, **_style(i)
            )
    ax.set(xlabel="Steps ahead", ylabel=panel)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(ax)
    return lines


def _draw_ranks(ax: Axes, ranks: pd.DataFrame, difference: float, names: list[str]) -> None:
    """Mean ranks from the best down, and the critical difference from the best."""
    ordered = ranks.sort_values("mean_rank", kind="stable")
    best = float(ordered["mean_rank"].iloc[0])
    ax.axvspan(best, best + difference, color=PALE, alpha=0.45, linewidth=0)
    place = range(len(ordered))
    for y, (name, rank, near) in zip(place, ordered.itertuples(), strict=True):
        style = _style(names.index(str(name)))
        face = style["color"] if near else "white"
        ax.plot(rank, y, markersize=7, markerfacecolor=face, **style)
    labels = [_short(name, _PANEL[0] / 2) for name in ordered.index]
    ax.set_yticks(list(place), labels, color=INK, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlabel(f"Mean rank (critical difference {difference:.3g})", fontsize=SMALL + 1)
    ax.margins(y=0.15)
    tidy(ax)


def _explain(ax: Axes, lines: list[Line2D], columns: int) -> None:
    """One legend for all panels, with names as they are: a legend would leave out "_x"."""
    place: dict[str, Any] = {"loc": "outside upper center", "ncols": columns}
    places = [str(i) for i in range(len(lines))]
    figure = ax.get_figure(root=True)
    assert figure is not None
    legend = figure.legend(lines, places, **place, frameon=False, fontsize=SMALL)
    for text, line in zip(legend.get_texts(), lines, strict=True):
        text.set_parse_math(False)
        text.set_text(_short(line.get_label(), figure.get_size_inches()[0]))
