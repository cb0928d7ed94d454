"""Curves of functionals of a fitted regression function, with what their bands are."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pandas as pd

from tsrnn.plotting._style import GREY, INK, SMALL, colour, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_functional"]

_NEEDED = ("functional", "xlabel", "ylabel", "guarantee")
_LETTER = 0.5 * SMALL / 72  # inches, of a usual one
_MARKED = 40  # lags that are told apart by their markers


def plot_functional(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw a partial dependence, an impulse or step response, or the memory of a function.

    The line above the curve says what the band is, up to the first semicolon of the guarantee in
    ``frame.attrs``, which has the rest. For the memory, a dashed line is the threshold and a
    dotted one the memory length.

    Parameters
    ----------
    frame : DataFrame
        What `partial_dependence`, `impulse_response` or `memory` gave.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If it is no DataFrame.
    ValueError
        If it lacks the column of estimates or its labels, or has no rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import impulse_response
    >>> from tsrnn.plotting import plot_functional
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = LinearRegression().fit(X, X @ [0.25, 0.5, 1.0])
    >>> ax = plot_functional(impulse_response(model, X))
    >>> ax.get_xlabel()
    'Lag (time steps)'
    """
    _check(frame)
    labels, lagged = frame.attrs, "lag" in frame
    points = frame["lag" if lagged else "value"].to_numpy(dtype=float)
    ax = new_axes(ax, 6.8, 3.8)
    if "lower" in frame:
        lower, upper = (frame[side].to_numpy(dtype=float) for side in ("lower", "upper"))
        style: dict[str, Any] = {"color": colour(0), "alpha": 0.2, "linewidth": 0}
        ax.fill_between(points, lower, upper, label=labels["band"], **style)
    marker = "o" if len(points) <= _MARKED else ""
    estimate = frame["estimate"].to_numpy(dtype=float)
    ax.plot(points, estimate, color=colour(0), marker=marker, markersize=3.5, label="Estimate")
    _draw_references(ax, frame)
    ax.set(xlabel=labels["xlabel"], ylabel=labels["ylabel"])
    if lagged:
        _whole_ticks(ax)
    tidy(ax)
    _explain(ax, labels["guarantee"])
    return ax


def _check(frame: Any) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"`frame` must be a DataFrame; got {type(frame).__name__}.")
    missing = [name for name in _NEEDED if name not in frame.attrs]
    if missing or "estimate" not in frame or not {"lag", "value"} & set(frame):
        raise ValueError(
            "`frame` must be what partial_dependence, impulse_response or memory gives, with its "
            f"attrs; got columns {list(frame)}, attrs without {missing}."
        )
    if frame.empty:
        raise ValueError("there is no curve to draw: `frame` has no rows.")


def _draw_references(ax: Axes, frame: pd.DataFrame) -> None:
    """Zero for what is measured from it; threshold and length of a memory."""
    if "lag" in frame:
        ax.axhline(0, color=GREY, linewidth=0.6)
    if "threshold" not in frame.attrs:
        return
    threshold, length = frame.attrs["threshold"], frame.attrs["memory_length"]
    ax.axhline(
        threshold, color=GREY, linewidth=0.9, linestyle="--", label=f"Threshold {threshold:g}"
    )
    if length is not None:
        ax.axvline(length, color=INK, linewidth=0.9, linestyle=":", label=f"Memory length {length}")


def _whole_ticks(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _explain(ax: Axes, guarantee: str) -> None:
    """Legend in the axes, and the guarantee in short above them."""
    ax.legend(loc="best", fontsize=SMALL - 1, framealpha=0.8, edgecolor="none")
    short = guarantee.partition(";")[0].rstrip(".")
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = ax.get_position().width * figure.get_size_inches()[0]
    text = textwrap.fill(short[:1].upper() + short[1:], max(20, int(width / _LETTER)))
    ax.set_title(text, fontsize=SMALL, loc="left", color=INK, parse_math=False)
