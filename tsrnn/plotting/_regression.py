"""Plots of sequence regressions: functionals of a fitted function, and architectures."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.plotting._style import GREY, INK, SMALL, colour, new_axes, tidy, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = ("functional", "xlabel", "ylabel", "guarantee")
_LETTER = 0.5 * SMALL / 72  # inches of an average letter
_MARKED = 40  # largest number of lags with markers
_NEEDED = ("block_size", "hidden_size", "n_layers", "risk", "std_error")
_SECONDS = {"seconds_per_epoch": "Seconds an epoch", "seconds_per_fit": "Seconds a fit"}
_DASHES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D")
_RISK, _TIME = colour(0), colour(1)
_SPREAD = 0.035  # shift between lines in doublings, so that error bars do not overlap


def plot_functional(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw a partial dependence, an impulse or step response, or the memory of a function.

    The title describes the band by the first part of the guarantee in ``frame.attrs``, up to its
    first semicolon. For the memory, a dashed line is the threshold, a dotted one the memory length.

    Parameters
    ----------
    frame : DataFrame
        Result of `partial_dependence`, `impulse_response` or `memory`.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `frame` is no DataFrame.
    ValueError
        If the column of estimates, the labels or the rows are missing.

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
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"`frame` must be a DataFrame; got {type(frame).__name__}.")
    missing = [name for name in _LABELS if name not in frame.attrs]
    if missing or "estimate" not in frame or not {"lag", "value"} & set(frame):
        raise ValueError(
            "`frame` must be what partial_dependence, impulse_response or memory gives, with its "
            f"attrs; got columns {list(frame)}, attrs without {missing}."
        )
    if frame.empty:
        raise ValueError("there is no curve to draw: `frame` has no rows.")
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
    if lagged:  # measured from zero
        ax.axhline(0, color=GREY, linewidth=0.6)
        whole_ticks(ax)
    if "threshold" in labels:
        threshold, length = labels["threshold"], labels["memory_length"]
        style = {"color": GREY, "linewidth": 0.9, "linestyle": "--"}
        ax.axhline(threshold, label=f"Threshold {threshold:g}", **style)
        if length is not None:
            style = {"color": INK, "linewidth": 0.9, "linestyle": ":"}
            ax.axvline(length, label=f"Memory length {length}", **style)
    ax.set(xlabel=labels["xlabel"], ylabel=labels["ylabel"])
    tidy(ax)
    ax.legend(loc="best", fontsize=SMALL - 1, framealpha=0.8, edgecolor="none")
    # Short guarantee as the title, wrapped at the width of the axes.
    short = labels["guarantee"].partition(";")[0].rstrip(".")
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = ax.get_position().width * figure.get_size_inches()[0]
    text = textwrap.fill(short[:1].upper() + short[1:], max(20, int(width / _LETTER)))
    ax.set_title(text, fontsize=SMALL, loc="left", color=INK, parse_math=False)
    return ax


def plot_architectures(frame: Any, ax: Axes | None = None) -> Axes:
    """Draw risk and training time against block size, as in Figure 2(c) of Cai et al. (2026).

    The left axis is the risk, with bars of plus and minus one standard error; the right axis is the
    seconds per epoch, or per fit if epochs are unknown. Each hidden size and number of layers has a
    line, shifted a little. A ring marks the chosen candidate.

    The bars refer to risks. Standard errors of differences, in the column
    ``difference_std_error``, are mostly much smaller and show which candidates differ.

    Parameters
    ----------
    frame : DataFrame or ArchitectureSelection
        Result of ``select_architecture(...)`` or its ``frame``. The right axis needs the column
        ``seconds_per_epoch`` or ``seconds_per_fit``, the ring ``chosen``.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Left axes.

    Raises
    ------
    TypeError
        If `frame` is no DataFrame.
    ValueError
        If a column is missing, or there is no row with a finite risk.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.plotting import plot_architectures
    >>> frame = pd.DataFrame({"block_size": [1, 2, 4], "hidden_size": 8, "n_layers": 1,
    ...                       "risk": [1.2, 1.0, 1.1], "std_error": 0.1})
    >>> plot_architectures(frame).get_xlabel()
    'Block size'
    """
    if not isinstance(frame, pd.DataFrame):
        frame = getattr(frame, "frame", frame)
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"`frame` must be a DataFrame, that of select_architecture; got {type(frame).__name__}."
        )
    missing = [name for name in _NEEDED if name not in frame]
    if missing:
        raise ValueError(f"`frame` must have the columns {_NEEDED}; it lacks {missing}.")
    if not np.isfinite(frame["risk"].to_numpy(dtype=float)).any():
        raise ValueError("there is nothing to draw: `frame` has no row with a finite risk.")
    ax = new_axes(ax, 6.8, 4.0)
    column = next((name for name in _SECONDS if name in frame and frame[name].notna().any()), None)
    right = None if column is None else ax.twinx()
    groups = [group for _, group in frame.groupby(["n_layers", "hidden_size"], sort=False)]
    for i, group in enumerate(groups):
        ordered = group.sort_values("block_size", kind="stable")
        shift = 2 ** (_SPREAD * (i - (len(groups) - 1) / 2))
        _draw_risk(ax, ordered, i, shift)
        if right is not None:
            sizes, seconds = (
                ordered[name].to_numpy(dtype=float) for name in ("block_size", column)
            )
            right.plot(sizes * shift, seconds, color=_TIME, linewidth=1.2, **_style(i))
    sizes = np.unique(frame["block_size"].to_numpy(dtype=int))
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.set_xticks([], minor=True)
    loss = frame.attrs.get("loss")
    words = "" if loss is None else f" ({str(loss).replace('_', ' ')})"
    ax.set_xlabel("Block size")
    ax.set_ylabel(f"Risk{words} ± standard error", color=_RISK, parse_math=False)
    tidy(ax)
    if right is not None:
        _label_right(ax, right, _SECONDS[str(column)])
    _draw_legend(ax, frame, groups)
    return ax


def _style(i: int) -> dict[str, Any]:
    return {
        "linestyle": _DASHES[i % len(_DASHES)],
        "marker": _MARKERS[i % len(_MARKERS)],
        "markersize": 4.5,
    }


def _draw_risk(ax: Axes, group: pd.DataFrame, i: int, shift: float) -> None:
    sizes, risks, errors = (
        group[name].to_numpy(dtype=float) for name in ("block_size", "risk", "std_error")
    )
    places, risks = sizes * shift, np.where(np.isfinite(risks), risks, np.nan)
    style: dict[str, Any] = {"color": _RISK, "capsize": 2.5, "elinewidth": 0.8, "linewidth": 1.6}
    ax.errorbar(places, risks, yerr=errors, **style, **_style(i))
    if "chosen" in group:
        ring = group["chosen"].to_numpy(dtype=bool)
        rim: dict[str, Any] = {"facecolors": "none", "edgecolors": INK, "linewidths": 1.4}
        ax.scatter(places[ring], risks[ring], s=130, zorder=5, **rim)


def _label_right(ax: Axes, right: Axes, words: str) -> None:
    right.set_ylabel(words, color=_TIME)
    right.set_ylim(0.0, 1.1 * right.dataLim.y1)
    right.spines[["top", "left", "bottom"]].set_visible(False)
    right.spines["right"].set_color(GREY)
    right.tick_params(color=GREY, labelsize=SMALL, labelcolor=_TIME)
    ax.tick_params(axis="y", labelcolor=_RISK)
    ax.set_zorder(right.get_zorder() + 1)  # risk before time
    ax.patch.set_visible(False)


def _draw_legend(ax: Axes, frame: pd.DataFrame, groups: list[pd.DataFrame]) -> None:
    """Draw a legend of the lines, if there are several, and of the ring."""
    from matplotlib.lines import Line2D

    named = {"hidden_size": "hidden size", "n_layers": "layers"}
    varied = [name for name in named if frame[name].nunique() > 1]
    handles = []
    for i, group in enumerate(groups if varied else []):
        text = ", ".join(f"{named[name]} {group[name].iloc[0]}" for name in varied)
        handles.append(Line2D([], [], color=INK, label=text[:1].upper() + text[1:], **_style(i)))
    if "chosen" in frame and frame["chosen"].any():
        ring: dict[str, Any] = {"marker": "o", "markersize": 11, "markerfacecolor": "none"}
        handles.append(Line2D([], [], color=INK, linestyle="", label="Chosen", **ring))
    if handles:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": 3}
        ax.legend(handles=handles, **place, frameon=False, fontsize=SMALL, borderaxespad=0.3)
