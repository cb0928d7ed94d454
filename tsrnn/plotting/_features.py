"""Recurrence features in the unit disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.plotting._feature_frames import as_features, in_words
from tsrnn.plotting._style import GREY, INK, SMALL, checked_count, colour, legend_above, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_features"]

_LARGEST = 260.0  # area of a marker, in points squared
_SMALLEST = 8.0
_PLAIN = 34.0
_SIDES = (-1, 1)
_BESIDE = 1.12  # where names begin, in radii of the plane
_PASSES = 3
_LEAST = 0.45  # of the smaller side of the room that the disk keeps


def plot_features(features_or_model: Any, ax: Axes | None = None, *, n_labels: int = 5) -> Axes:
    """Draw recurrence features as eigenvalues in the complex plane.

    The distance from the origin is the modulus gamma (at the unit circle memory never fades), the
    angle is theta (a full turn divided by it is the period). A feature of type C shows both
    eigenvalues of its pair, a colour is a layer of any network, and where shares are known the area
    of a marker is proportional to the share of its block.

    Parameters
    ----------
    features_or_model : DataFrame or model
        What `tsrnn.interpret.recurrence_features` gave, or anything it accepts.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    n_labels : int, default 5
        How many of the slowest features (largest modulus) are named.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    tsrnn.interpret.UninformativeNetworkError
        If the network of a fitted model contributes nothing.
    ValueError
        If the frame of features lacks columns, rows or its unit of time, or `n_labels` is not a
        positive whole number.

    Examples
    --------
    >>> from tsrnn.interpret import recurrence_features
    >>> from tsrnn.plotting import plot_features
    >>> features = recurrence_features([[0.9, 0.3], [-0.3, 0.9]])
    >>> plot_features(features).get_xlabel()
    'Real part'
    """
    features = as_features(features_or_model)
    n_labels = checked_count(n_labels, "n_labels")
    ax = new_axes(ax, 9.2, 4.4)
    radius = 1.08 * max(1.0, float(features["modulus"].max()))
    _draw_plane(ax, radius)
    sizes = _areas(features["share"])
    several = features["layer"].nunique() > 1
    for layer in sorted(set(features["layer"])):
        here = (features["layer"] == layer).to_numpy()
        label = f"layer {layer}" if several else None
        _draw_layer(ax, features[here], sizes[here], colour(layer - 1), label)
    _explain(ax, features["share"])
    _label_slowest(ax, features, n_labels, radius)  # last: in the room that the others leave
    return ax


def _draw_plane(ax: Axes, radius: float) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((0, 0), 1.0, fill=False, color=GREY, linewidth=1.0))
    span, zero = [-radius, radius], [0, 0]
    ax.plot(span, zero, zero, span, color=GREY, linewidth=0.5, zorder=0)
    ax.set(ylim=(-radius, radius), aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    ax.set(xlabel="Real part", ylabel="Imaginary part")
    # Under the disk, not under the middle of disk and names.
    ax.xaxis.set_label_coords(0, -0.09, transform=ax.get_xaxis_transform())
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelsize=SMALL)


def _areas(share: pd.Series) -> np.ndarray:
    largest = share.max()
    if not largest > 0:
        return np.full(len(share), _PLAIN)
    return np.maximum(_LARGEST * share.fillna(0.0).to_numpy() / largest, _SMALLEST)


def _draw_layer(
    ax: Axes, rows: pd.DataFrame, sizes: np.ndarray, shade: str, label: str | None
) -> None:
    """One collection a layer, each pair as two points."""
    points = _eigenvalues(rows)
    pair = points.imag > 0
    points = np.concatenate([points, points[pair].conj()])
    areas = np.concatenate([sizes, sizes[pair]])
    style: dict[str, Any] = {"color": shade, "edgecolor": "white", "linewidth": 0.6}
    ax.scatter(points.real, points.imag, s=areas, alpha=0.8, zorder=2, label=label, **style)


def _eigenvalues(rows: pd.DataFrame) -> np.ndarray:
    """On or above the real axis; exactly on it for type R."""
    modulus = rows["modulus"].to_numpy()
    angle = rows["angle"].fillna(0.0).to_numpy()
    imaginary = np.where(angle == np.pi, 0.0, np.sin(angle))
    return modulus * (np.cos(angle) + 1j * imaginary)


def _label_slowest(ax: Axes, features: pd.DataFrame, n: int, radius: float) -> None:
    """Name the slowest features beside the disk, each tied to its point by a line.

    Names stand on the side of their points or, where that is too narrow, all on the right; the
    disk is as large as they leave room for. Those without room below each other are left out.
    """
    slowest = features[features["modulus"] > 0].nlargest(n, "modulus")
    points = _eigenvalues(slowest)
    words = [in_words(row, features.attrs) for row in slowest.itertuples()]
    widths = np.array([_width(ax, text) for text in words])
    left = points.real < 0
    room = np.array([np.inf, np.inf])
    for _ in range(_PASSES):
        room = np.minimum(room, _room(ax))  # which the margins of the axis depend on in turn
        sides = [
            np.array([widths[s].max(initial=0.0) for s in (m, ~m)]) for m in (left, left & False)
        ]
        text = room[0] - _LEAST * room.min()  # what the disk can spare
        both, right = (min(1.0, text / max(own.sum(), 1.0)) for own in sides)
        scale, own = (both, sides[0]) if both >= right else (right, sides[1])
        edges = np.where(own > 0, _BESIDE, 1.0) * radius
        unit = min(room[1] / (2 * radius), (room[0] - scale * own.sum()) / edges.sum())
        edges = edges + scale * own / unit
        ax.set_xlim(-edges[0], edges[1])
    left = left if both >= right else left & False
    gap = 1.5 * scale * SMALL * ax.figure.dpi / 72 / unit
    top = max(radius - gap / 2, 0.0)
    for side, mask in zip(_SIDES, (left, ~left), strict=True):
        named = np.flatnonzero(mask)[: int(2 * top / gap) + 1]
        named = named[np.argsort(points[named].imag, kind="stable")]
        heights = _spread(points[named].imag, gap, top)
        for i, height in zip(named, heights, strict=True):
            _label(ax, words[i], points[i], (side * _BESIDE * radius, height), scale * SMALL)


def _room(ax: Axes) -> np.ndarray:
    """Width and height in pixels that the axes may fill."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # lays the figure out
    return np.array(ax.get_position(original=True).transformed(ax.figure.transSubfigure).size)


def _width(ax: Axes, text: str) -> float:
    """Width of a name in pixels."""
    probe = ax.text(0, 0, text, fontsize=SMALL)
    width = probe.get_window_extent().width
    probe.remove()
    return float(width) + 0.3 * SMALL * ax.figure.dpi / 72


def _label(
    ax: Axes, text: str, point: complex, place: tuple[float, float], fontsize: float
) -> None:
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 2, "shrinkB": 3}
    label = ax.annotate(
        text,
        xy=(point.real, point.imag),
        xytext=place,
        va="center",
        ha="right" if place[0] < 0 else "left",
        fontsize=fontsize,
        color=INK,
        arrowprops=line | {"relpos": (float(place[0] < 0), 0.5)},
    )
    label.set_in_layout(False)  # the axes hold it


def _spread(heights: np.ndarray, gap: float, top: float) -> np.ndarray:
    """Move rising heights apart to `gap` or more, from -`top` to `top`, in a pass up and down."""
    moved = heights.copy()
    moved[:1] = np.maximum(moved[:1], -top)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    for i in range(len(moved) - 1, -1, -1):
        ceiling = top if i == len(moved) - 1 else moved[i + 1] - gap
        moved[i] = min(moved[i], ceiling)
    return moved


def _explain(ax: Axes, share: pd.Series) -> None:
    largest = share.max()
    if largest > 0:
        style: dict[str, Any] = {"facecolor": "none", "edgecolor": GREY, "s": 60.0}
        ax.scatter([], [], label=f"area: share of the block, largest {largest:.0%}", **style)
    if ax.get_legend_handles_labels()[1]:
        legend_above(ax)
