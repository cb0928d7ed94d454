"""Risk and training time against block size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.plotting._style import GREY, INK, SMALL, colour, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_architectures"]

_NEEDED = ("block_size", "hidden_size", "n_layers", "risk", "std_error")
_SECONDS = {"seconds_per_epoch": "Seconds an epoch", "seconds_per_fit": "Seconds a fit"}
_DASHES = ("-", "--", ":", "-.")
_MARKERS = ("o", "s", "^", "D")
_RISK, _TIME = colour(0), colour(1)
_SPREAD = 0.035  # of a doubling, between lines, so that error bars do not hide each other


def plot_architectures(frame: Any, ax: Axes | None = None) -> Axes:
    """Draw risk and training time against block size, as in Figure 2(c) of Cai et al. (2026).

    Risk, with a bar of one standard error up and down, belongs to the left axis; seconds an
    epoch, or a fit where epochs are not known, to the right one. There is a line for each hidden
    size and number of layers, drawn a little beside each other. The chosen candidate has a ring.

    The bars are those of the risks. Which candidates differ is seen from the standard errors of
    differences, column ``difference_std_error``, which are mostly far smaller.

    Parameters
    ----------
    frame : DataFrame or ArchitectureSelection
        ``select_architecture(...)`` or its ``frame``; without the columns ``seconds_per_epoch`` and
        ``seconds_per_fit`` there is no right axis, without ``chosen`` no ring.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The left one.

    Raises
    ------
    TypeError
        If it is no DataFrame.
    ValueError
        If it lacks a column, has no rows or no finite risk.

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
    _check(frame)
    ax = new_axes(ax, 6.8, 4.0)
    column = _time_column(frame)
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
    _label(ax, frame)
    if right is not None:
        _dress_right(ax, right, _SECONDS[str(column)])
    _explain(ax, frame, groups)
    return ax


def _check(frame: Any) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            f"`frame` must be a DataFrame, that of select_architecture; got {type(frame).__name__}."
        )
    missing = [name for name in _NEEDED if name not in frame]
    if missing:
        raise ValueError(f"`frame` must have the columns {_NEEDED}; it lacks {missing}.")
    if not np.isfinite(frame["risk"].to_numpy(dtype=float)).any():
        raise ValueError("there is nothing to draw: `frame` has no row with a finite risk.")


def _time_column(frame: pd.DataFrame) -> str | None:
    return next((name for name in _SECONDS if name in frame and frame[name].notna().any()), None)


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


def _label(ax: Axes, frame: pd.DataFrame) -> None:
    sizes = np.unique(frame["block_size"].to_numpy(dtype=int))
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.set_xticks([], minor=True)
    loss = frame.attrs.get("loss")
    words = "" if loss is None else f" ({str(loss).replace('_', ' ')})"
    ax.set_xlabel("Block size")
    ax.set_ylabel(f"Risk{words} ± standard error", color=_RISK, parse_math=False)
    tidy(ax)


def _dress_right(ax: Axes, right: Axes, words: str) -> None:
    right.set_ylabel(words, color=_TIME)
    right.set_ylim(0.0, 1.1 * right.dataLim.y1)
    right.spines[["top", "left", "bottom"]].set_visible(False)
    right.spines["right"].set_color(GREY)
    right.tick_params(color=GREY, labelsize=SMALL, labelcolor=_TIME)
    ax.tick_params(axis="y", labelcolor=_RISK)
    ax.set_zorder(right.get_zorder() + 1)  # risk before time
    ax.patch.set_visible(False)


def _explain(ax: Axes, frame: pd.DataFrame, groups: list[pd.DataFrame]) -> None:
    """A legend of the lines where there are several, and of the ring."""
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
