"""Plots of backtests, comparisons of models and diagnostics of errors."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_any_real_numeric_dtype

from tsrnn.data import quote, quoted
from tsrnn.plotting._style import (
    GREY,
    INK,
    PALE,
    SMALL,
    colour,
    line_style,
    place_on_axis,
    shorten,
    tidy,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_FRONT = ("unique_id", "ds", "cutoff", "y")
_END = re.compile(r"^(.*)-(lo|hi)-([0-9.]+)$")
_LONGEST_SERIES = 24  # letters of a label beside a panel
_LONGEST_MODEL = 80  # letters of a title
_TABLES = ("accuracy", "by_step", "ranks", "critical_difference")
_COVERAGE = "coverage-"
_PANEL = (5.2, 3.4)  # inches
_LETTER = 0.66 * SMALL / 72  # inches of a wide letter
_BESIDE = 4.8 * SMALL / 72  # inches of the line beside a name in the legend
_RANGE = (0.05, 0.95)  # quantiles over several series


def plot_backtest(
    frame: pd.DataFrame, series: Any = None, models: Sequence[str] | None = None
) -> np.ndarray:
    """Draw the forecasts of each window over the actual values, with a panel for each model.

    Of overlapping windows only some are drawn. Bands are the intervals of all levels. Actual
    values are a line with gaps between windows.

    Parameters
    ----------
    frame : DataFrame
        Result of `backtest`.
    series : object, optional
        Id of the series; the first by default.
    models : sequence of str, optional
        Models to draw; all by default.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (models,)

    Raises
    ------
    ValueError
        If the frame is no backtest, or the series or a model is not in it.

    Examples
    --------
    >>> from tsrnn import backtest
    >>> from tsrnn.baselines import Drift, Naive
    >>> from tsrnn.datasets import load_nile
    >>> from tsrnn.plotting import plot_backtest
    >>> frame = backtest([Drift(), Naive()], load_nile(), h=3, n_windows=4, step_size=3)
    >>> plot_backtest(frame).shape
    (2,)
    """
    import matplotlib.pyplot as plt

    names = _model_names(frame, models)
    if frame.empty:
        raise ValueError("there is nothing to draw: the frame has no rows")
    ids = frame["unique_id"]
    every = _select_series(frame, ids, ids.iloc[0] if series is None else series)
    # Windows that do not overlap, from the last one back.
    kept: list[Any] = []
    for cutoff, window in reversed(list(every.groupby("cutoff", sort=True))):
        if not kept or window["ds"].max() <= kept[-1]:
            kept.append(cutoff)
    rows = every[every["cutoff"].isin(kept)]
    _, axes = plt.subplots(
        len(names), 1, figsize=(8.0, 0.5 + 1.9 * len(names)), sharex=True, sharey=True,
        squeeze=False, layout="constrained",
    )  # fmt: skip
    label = shorten(rows["unique_id"].iloc[0], _LONGEST_SERIES)
    for i, (ax, name) in enumerate(zip(axes[:, 0], names, strict=True)):
        ax.set_ylabel(label, parse_math=False)
        _draw_actual(ax, every)
        _draw_windows(ax, rows, name, colour(i))
    return axes[:, 0]


def _model_names(frame: pd.DataFrame, chosen: Sequence[str] | None) -> list[str]:
    absent = [column for column in _FRONT if column not in frame.columns]
    if absent:
        raise ValueError(f"a backtest has the columns {', '.join(_FRONT)}; missing {absent}.")
    there = [
        str(name)
        for name in frame.columns
        if name not in _FRONT
        and not _END.match(str(name))
        and is_any_real_numeric_dtype(frame[name])
    ]
    names = there if chosen is None else list(chosen)
    unknown = [name for name in names if name not in there]
    if unknown or not names:
        raise ValueError(f"models must be among {there}; got {names}.")
    return names


def _select_series(frame: pd.DataFrame, ids: pd.Series | pd.Index, series: Any) -> pd.DataFrame:
    rows = frame[ids == series]
    if rows.empty:
        raise ValueError(
            f"there is no series {quote(series)}; the first ones are {quoted(ids.unique()[:5])}."
        )
    return rows


def _draw_actual(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the actual values, with gaps between windows."""
    actual = rows.drop_duplicates("ds").set_index("ds")["y"].sort_index()
    at: list[int] = []
    reached: Any = None
    for cutoff, window in rows.groupby("cutoff", sort=True)["ds"]:
        if reached is not None and cutoff > reached:
            at.append(int(actual.index.searchsorted(window.min())))
        reached = window.max() if reached is None else max(reached, window.max())
    x, y = place_on_axis(ax, actual.index), actual.to_numpy(dtype=float)
    alone = np.diff([0, *at, len(y)]).min() == 1  # single points need a marker
    ax.plot(
        np.insert(x, at, np.nan), np.insert(y, at, np.nan), color=INK, linewidth=0.9,
        marker="." if alone else None, markersize=4,
    )  # fmt: skip


def _draw_windows(ax: Axes, rows: pd.DataFrame, name: str, tint: str) -> None:
    """Draw the forecasts of a model and their bands, from the widest."""
    matches = [match for column in rows.columns if (match := _END.match(str(column)))]
    levels = [match[3] for match in matches if match[1] == name and match[2] == "lo"]
    for _, window in rows.groupby("cutoff"):
        x = place_on_axis(ax, pd.Index(window["ds"]))
        for level in sorted(levels, key=float, reverse=True):
            lower, upper = (
                window[f"{name}-{side}-{level}"].to_numpy(dtype=float) for side in ("lo", "hi")
            )
            ax.fill_between(x, lower, upper, color=tint, alpha=0.18, linewidth=0)
        marker = "o" if len(x) == 1 else None
        ax.plot(x, window[name].to_numpy(dtype=float), color=tint, linewidth=1.6, marker=marker)
    ax.set_title(name, fontsize=SMALL, loc="left", color=tint, parse_math=False)
    ax.set_xlabel("")
    tidy(ax)
    ax.margins(x=0.01)


def plot_comparison(
    comparison: Any, measure: str | None = None, *, panels: Sequence[str] | None = None
) -> np.ndarray:
    """Draw a comparison of models: a measure by step, coverage by step, and mean ranks.

    Coverage needs intervals; a dashed line is the level. In the panel of ranks a bar is the
    critical difference from the best model; models within it (filled) do not differ significantly
    from the best. A model has the same colour in each panel.

    Parameters
    ----------
    comparison : Comparison
        Result of `compare`, or an object with its tables ``accuracy``, ``by_step``, ``ranks`` and
        the number ``critical_difference``.
    measure : str, optional
        Column of ``by_step``; by default the measure that models are sorted by.
    panels : sequence of str, optional
        Panels to draw: the measure, ``"coverage-80"`` and so on, ``"ranks"``.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (panels,)
        Axes of a new figure, ``axes[0].figure``.

    Raises
    ------
    TypeError
        If the tables are missing.
    ValueError
        If the measure or a panel does not exist.

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
    missing = [name for name in _TABLES if not hasattr(comparison, name)]
    if missing:
        raise TypeError(
            f"`comparison` must be what compare() gives; got {type(comparison).__name__}, which "
            f"lacks {missing}."
        )
    table = comparison.by_step
    columns = list(table.columns)
    column = getattr(comparison, "measure", columns[0]) if measure is None else measure
    if column not in columns:
        raise ValueError(f"`measure` must be one of {columns}; got {quote(column)}.")
    there = [str(column), *(name for name in columns if str(name).startswith(_COVERAGE))]
    there += ["ranks"] * (len(comparison.ranks) > 0)
    panels = there if panels is None else list(panels)
    if not panels or not set(panels) <= set(there):
        raise ValueError(f"`panels` must be among {there}; got {panels}.")
    names = list(comparison.accuracy.index)
    width = _PANEL[0] * min(len(panels), 2)
    widest = max(len(_fit_name(name, width)) for name in names) * _LETTER + _BESIDE
    beside = max(1, min(len(names), 5, int(width / widest)))  # names in a row of the legend
    axes = _new_panels(len(panels), legend_rows=math.ceil(len(names) / beside))
    lines: list[Line2D] = []
    for ax, panel in zip(axes, panels, strict=True):
        if panel == "ranks":
            _draw_ranks(ax, comparison.ranks, comparison.critical_difference, names)
        else:
            drawn = _draw_steps(ax, table[panel].unstack("model"), names, str(panel))
            lines = lines or drawn
    if lines:  # the panel of ranks has labels
        _draw_legend(axes[0], lines, beside)
    return axes


def _fit_name(name: Any, width: float) -> str:
    """Shorten a name to a width in inches."""
    return shorten(name, int((width - _BESIDE) / _LETTER))


def _new_panels(count: int, legend_rows: int) -> np.ndarray:
    """Axes of panels with room for a legend above; an odd last one spans both columns."""
    import matplotlib.pyplot as plt

    wide = min(count, 2)
    high = math.ceil(count / wide)
    size = (_PANEL[0] * wide, _PANEL[1] * high + 0.2 * max(0, legend_rows - 1))
    figure = plt.figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(high, wide)
    cells: list[Any] = [grid[i // wide, i % wide] for i in range(count)]
    if count % wide:
        cells[-1] = grid[high - 1, :]
    axes = np.empty(count, dtype=object)
    axes[:] = [figure.add_subplot(cell) for cell in cells]
    return axes


def _draw_steps(ax: Axes, table: pd.DataFrame, names: list[str], panel: str) -> list[Line2D]:
    """Draw and return the lines of the models, and draw the level of a coverage."""
    if panel.startswith(_COVERAGE):
        level = float(panel.removeprefix(_COVERAGE))
        ax.axhline(level / 100, color=GREY, linewidth=0.9, linestyle="--")
        panel = f"Coverage of the {level:g}% interval"
    size = 3.0 if len(table) < 13 else 0.0  # markers of more steps would run together
    steps = table.index.to_numpy(dtype=float)
    lines = []
    for i, name in enumerate(names):
        values = table[name].to_numpy(dtype=float)
        if not np.isnan(values).all():
            style = line_style(i) | {"linewidth": 1.4, "markersize": size}
            lines += ax.plot(steps, values, label=str(name), **style)
    ax.set(xlabel="Steps ahead", ylabel=panel)
    whole_ticks(ax)
    tidy(ax)
    return lines


def _draw_ranks(ax: Axes, ranks: pd.DataFrame, difference: float, names: list[str]) -> None:
    """Draw mean ranks from the best model down, and the critical difference."""
    ordered = ranks.sort_values("mean_rank", kind="stable")
    best = float(ordered["mean_rank"].iloc[0])
    ax.axvspan(best, best + difference, color=PALE, alpha=0.45, linewidth=0)
    for y, (name, rank, near) in enumerate(ordered.itertuples()):
        style = line_style(names.index(str(name)))
        face = style["color"] if near else "white"
        ax.plot(rank, y, markersize=7, markerfacecolor=face, **style)
    labels = [_fit_name(name, _PANEL[0] / 2) for name in ordered.index]
    ax.set_yticks(range(len(ordered)), labels, color=INK, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlabel(f"Mean rank (critical difference {difference:.3g})", fontsize=SMALL + 1)
    ax.margins(y=0.15)
    tidy(ax)


def _draw_legend(ax: Axes, lines: list[Line2D], columns: int) -> None:
    """Draw one legend for all panels; texts are set later, because legends drop names like "_x"."""
    place: dict[str, Any] = {"loc": "outside upper center", "ncols": columns}
    places = [str(i) for i in range(len(lines))]
    figure = ax.get_figure(root=True)
    assert figure is not None
    legend = figure.legend(lines, places, **place, frameon=False, fontsize=SMALL)
    for text, line in zip(legend.get_texts(), lines, strict=True):
        text.set_parse_math(False)
        text.set_text(_fit_name(line.get_label(), figure.get_size_inches()[0]))


def plot_diagnostics(diagnostics: Any, series: Any = None) -> np.ndarray:
    """Draw autocorrelations of one-step errors and the PIT histogram, with a row for each model.

    Autocorrelations of several series are averaged, with a line from the 5 to the 95 percent
    quantile over series; their histograms are pooled.

    Parameters
    ----------
    diagnostics : Diagnostics
        Result of `diagnose`, or an object with its tables ``acf`` and ``pit``.
    series : object, optional
        Id of one series; all by default.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (models, 2)

    Raises
    ------
    ValueError
        If the series does not exist.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA, diagnose
    >>> from tsrnn.plotting import plot_diagnostics
    >>> y = pd.Series(np.random.default_rng(0).normal(size=300))
    >>> plot_diagnostics(diagnose(ARMA(order=(1, 0)).fit(y[:200]), y[200:])).shape
    (1, 2)
    """
    import matplotlib.pyplot as plt

    acf, pit = diagnostics.acf, diagnostics.pit
    if series is not None:
        acf, pit = (
            _select_series(table, table.index.get_level_values("unique_id"), series)
            for table in (acf, pit)
        )
    names = list(acf.index.unique("model"))
    _, axes = plt.subplots(
        len(names), 2, figsize=(8.0, 2.3 * len(names) + 0.3), squeeze=False, layout="constrained"
    )
    for i, (name, (left, right)) in enumerate(zip(names, axes, strict=True)):
        _draw_acf(left, acf.loc[name], colour(i))
        _draw_pit(right, pit.loc[name], colour(i))
        text: dict[str, Any] = {"fontsize": SMALL, "loc": "left", "parse_math": False}
        left.set_title(f"{shorten(name, _LONGEST_MODEL)}\nautocorrelation of errors", **text)
        right.set_title("PIT: 1 if the model is right", **text)
    apart = getattr(diagnostics, "steps_apart", 1)
    label = "lag" if apart == 1 else f"lag, in origins {apart} steps apart"
    axes[-1, 0].set_xlabel(label, fontsize=SMALL)
    axes[-1, 1].set_xlabel("probability given to less", fontsize=SMALL)
    return axes


def _draw_acf(ax: Axes, acf: pd.DataFrame, tint: str) -> None:
    if acf["acf"].isna().all():
        _draw_nothing(ax, "too few errors, or none that vary")
        return
    by_lag = acf.groupby("lag")
    mean, band = by_lag["acf"].mean(), by_lag["band"].max()
    lags = mean.index.to_numpy(dtype=float)
    ax.fill_between(lags, -band, band, color=PALE, alpha=0.5, linewidth=0, label="95% band")
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.vlines(lags, 0, mean, color=tint, linewidth=2.5)
    if acf.index.get_level_values("unique_id").nunique() > 1:
        low, high = (by_lag["acf"].quantile(q) for q in _RANGE)
        ax.vlines(lags, low, high, color=tint, linewidth=0.9, alpha=0.7)
    whole_ticks(ax)
    tidy(ax)


def _draw_pit(ax: Axes, pit: pd.DataFrame, tint: str) -> None:
    if not pit["count"].sum():
        _draw_nothing(ax, "too few errors")
        return
    bins = pit.groupby("from")
    count, to = bins["count"].sum(), bins["to"].first()
    left = count.index.to_numpy(dtype=float)
    width = to.to_numpy() - left
    density = count / int(count.sum()) / width
    ax.bar(left, density, width, align="edge", color=tint, alpha=0.6, edgecolor="white")
    ax.axhline(1.0, color=INK, linewidth=0.9, linestyle="--")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, max(1.6, np.nanmax(density.to_numpy(), initial=0.0) * 1.1))
    tidy(ax)


def _draw_nothing(ax: Axes, why: str) -> None:
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=GREY)
    ax.set(xticks=[], yticks=[])
    tidy(ax)
