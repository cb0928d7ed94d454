"""Forecasts of a backtest beside what came."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from tsrnn.plotting._style import INK, SMALL, colour, place_on_axis, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_backtest"]

_FRONT = ("unique_id", "ds", "cutoff", "y")
_LONGEST = 24  # letters of a label beside a panel
_LOWER = re.compile(r"^(.*)-lo-([0-9.]+)$")
_END = re.compile(r"^(.*)-(lo|hi)-([0-9.]+)$")


def plot_backtest(
    frame: pd.DataFrame, series: Any = None, models: Sequence[str] | None = None
) -> np.ndarray:
    """Draw the forecasts of each window over the actual values, a panel a model.

    Where windows overlap, only so many are drawn that they do not. Bands are the intervals of
    all levels there are. The actual values are a line with gaps where no window has them.

    Parameters
    ----------
    frame : DataFrame
        What `backtest` gave.
    series : object, optional
        Which series, by its id; the first by default.
    models : sequence of str, optional
        All by default.

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

    names = _models(frame, models)
    every = _rows(frame, series)
    rows = _apart(every)
    _, axes = plt.subplots(
        len(names), 1, figsize=(8.0, 0.5 + 1.9 * len(names)), sharex=True, sharey=True,
        squeeze=False, layout="constrained",
    )  # fmt: skip
    name = str(rows["unique_id"].iloc[0])
    title = name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."
    for i, (ax, name) in enumerate(zip(axes[:, 0], names, strict=True)):
        ax.set_ylabel(title, parse_math=False)
        _draw_actual(ax, every)
        _draw(ax, rows, name, colour(i))
    return axes[:, 0]


def _models(frame: pd.DataFrame, chosen: Sequence[str] | None) -> list[str]:
    absent = [column for column in _FRONT if column not in frame.columns]
    if absent:
        raise ValueError(f"a backtest has the columns {', '.join(_FRONT)}; missing {absent}.")
    there = [
        str(name)
        for name in frame.columns
        if name not in _FRONT and not _END.match(str(name)) and _is_number(frame[name])
    ]
    names = there if chosen is None else list(chosen)
    unknown = [name for name in names if name not in there]
    if unknown or not names:
        raise ValueError(f"models must be among {there}; got {names}.")
    return names


def _is_number(column: pd.Series) -> bool:
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _rows(frame: pd.DataFrame, series: Any) -> pd.DataFrame:
    """Rows of one series."""
    ids = frame["unique_id"]
    series = ids.iloc[0] if series is None else series
    rows = frame[ids == series]
    if rows.empty:
        raise ValueError(
            f"there is no series {series!r}; the first ones are {list(ids.unique()[:5])}."
        )
    return rows


def _apart(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of windows that do not overlap, the last of them drawn for sure."""
    kept: list[Any] = []
    for cutoff, window in reversed(list(rows.groupby("cutoff", sort=True))):
        if not kept or window["ds"].max() <= kept[-1]:
            kept.append(cutoff)
    return rows[rows["cutoff"].isin(kept)]


def _draw_actual(ax: Axes, rows: pd.DataFrame) -> None:
    """What came, broken where a window begins after the last has ended."""
    actual = rows.drop_duplicates("ds").set_index("ds")["y"].sort_index()
    at: list[int] = []
    reached: Any = None
    for cutoff, window in rows.groupby("cutoff", sort=True)["ds"]:
        if reached is not None and cutoff > reached:
            at.append(int(actual.index.searchsorted(window.min())))
        reached = window.max() if reached is None else max(reached, window.max())
    x, y = place_on_axis(ax, actual.index), actual.to_numpy(dtype=float)
    alone = np.diff([0, *at, len(y)]).min() == 1  # which a line does not show
    ax.plot(
        np.insert(x, at, np.nan), np.insert(y, at, np.nan), color=INK, linewidth=0.9,
        marker="." if alone else None, markersize=4,
    )  # fmt: skip


def _draw(ax: Axes, rows: pd.DataFrame, name: str, tint: str) -> None:
    levels = [
        found[2]
        for column in rows.columns
        if (found := _LOWER.match(str(column))) and found[1] == name
    ]
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
