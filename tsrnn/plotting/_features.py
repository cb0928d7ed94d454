"""Plots of recurrence features: eigenvalues in the complex plane, curves over lags."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.interpret import forecast_features, lag_curves, recurrence_features
from tsrnn.plotting._style import (
    GREY,
    INK,
    SMALL,
    checked_count,
    colour,
    legend_above,
    legend_beside,
    line_style,
    new_axes,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = ("type", "order", "modulus", "angle", "half_life", "period", "share")
_LARGEST = 260.0  # area of a marker, in points squared
_SMALLEST = 8.0
_PLAIN = 34.0  # area without shares
_BESIDE = 1.12  # start of the names, in radii of the plane
_PASSES = 3  # fixed-point iterations of the layout of disk and names
_LEAST = 0.45  # smallest size of the disk, relative to the smaller side of the axes
_DEFAULT_LAGS = (12, 200)  # bounds of the default number of lags
_FADED = 0.05  # level that all curves reach within the default lags
_FAINT = 0.01  # level below which dots are not drawn
_ZIGZAG = 2 * math.pi / 3  # angle of a period of three steps


def plot_features(features_or_model: Any, ax: Axes | None = None, *, n_labels: int = 5) -> Axes:
    """Draw recurrence features as eigenvalues in the complex plane.

    The distance from the origin is the modulus gamma; on the unit circle memory never fades. The
    angle is theta; the period is a full turn divided by theta. A feature of type C has both
    eigenvalues of its pair. Colours are layers, and the area of a marker is proportional to the
    share of its block, if known.

    Parameters
    ----------
    features_or_model : DataFrame or model
        Result of `tsrnn.interpret.recurrence_features` or `tsrnn.interpret.forecast_features`, or
        an argument of the former. For a forecaster with a network the features of the whole
        forecast are drawn.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.
    n_labels : int, default 5
        Number of slowest features (largest modulus) with a label.

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
    features = _as_features(features_or_model)
    n_labels = checked_count(n_labels, "n_labels")
    ax = new_axes(ax, 9.2, 4.4)
    radius = 1.08 * max(1.0, float(features["modulus"].max()))
    _draw_plane(ax, radius)
    share, largest = features["share"], features["share"].max()
    sizes = np.full(len(share), _PLAIN)
    if largest > 0:
        sizes = np.maximum(_LARGEST * share.fillna(0.0).to_numpy() / largest, _SMALLEST)
    layers = features.get("layer", pd.Series(1, features.index))  # whole forecasts have none
    several = layers.nunique() > 1
    for layer in sorted(set(layers)):
        here = (layers == layer).to_numpy()
        label = f"layer {layer}" if several else None
        _draw_layer(ax, features[here], sizes[here], colour(layer - 1), label)
    if largest > 0:
        style: dict[str, Any] = {"facecolor": "none", "edgecolor": GREY, "s": 60.0}
        whose = "of the block" if "block" in features else "in the forecasts"
        ax.scatter([], [], label=f"area: share {whose}, largest {largest:.0%}", **style)
    if ax.get_legend_handles_labels()[1]:
        legend_above(ax)
    _label_slowest(ax, features, n_labels, radius)  # last, in the remaining room
    return ax


def _draw_plane(ax: Axes, radius: float) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((0, 0), 1.0, fill=False, color=GREY, linewidth=1.0))
    span, zero = [-radius, radius], [0, 0]
    ax.plot(span, zero, zero, span, color=GREY, linewidth=0.5, zorder=0)
    ax.set(ylim=(-radius, radius), aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    ax.set(xlabel="Real part", ylabel="Imaginary part")
    # Centred under the disk, not under disk and names.
    ax.xaxis.set_label_coords(0, -0.09, transform=ax.get_xaxis_transform())
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelsize=SMALL)


def _draw_layer(
    ax: Axes, rows: pd.DataFrame, sizes: np.ndarray, shade: str, label: str | None
) -> None:
    """Draw the features of a layer, with two points for each pair."""
    points = _eigenvalues(rows)
    pair = points.imag > 0
    points = np.concatenate([points, points[pair].conj()])
    areas = np.concatenate([sizes, sizes[pair]])
    style: dict[str, Any] = {"color": shade, "edgecolor": "white", "linewidth": 0.6}
    ax.scatter(points.real, points.imag, s=areas, alpha=0.8, zorder=2, label=label, **style)


def _eigenvalues(rows: pd.DataFrame) -> np.ndarray:
    """Eigenvalues on or above the real axis, exactly real for type R."""
    modulus = rows["modulus"].to_numpy()
    angle = rows["angle"].fillna(0.0).to_numpy()
    imaginary = np.where(angle == np.pi, 0.0, np.sin(angle))
    return modulus * (np.cos(angle) + 1j * imaginary)


def _label_slowest(ax: Axes, features: pd.DataFrame, n: int, radius: float) -> None:
    """Label the slowest features beside the disk, with lines to their points.

    Labels are on the side of their points, or all on the right if the axes are narrow. The disk
    fills the remaining room. Labels that do not fit are left out.
    """
    slowest = features[features["modulus"] > 0].nlargest(n, "modulus")
    points = _eigenvalues(slowest)
    words = [_in_words(row, features.attrs) for row in slowest.itertuples()]
    widths = np.array([_width(ax, text) for text in words])
    left = points.real < 0
    room = np.array([np.inf, np.inf])
    for _ in range(_PASSES):
        room = np.minimum(room, _room(ax))  # margins depend on the axis limits
        sides = [
            np.array([widths[s].max(initial=0.0) for s in (m, ~m)]) for m in (left, left & False)
        ]
        text = room[0] - _LEAST * room.min()  # largest width of the labels
        both, right = (min(1.0, text / max(side.sum(), 1.0)) for side in sides)
        scale, beside = (both, sides[0]) if both >= right else (right, sides[1])
        edges = np.where(beside > 0, _BESIDE, 1.0) * radius
        unit = min(room[1] / (2 * radius), (room[0] - scale * beside.sum()) / edges.sum())
        edges = edges + scale * beside / unit
        ax.set_xlim(-edges[0], edges[1])
    left = left if both >= right else left & False
    gap = 1.5 * scale * SMALL * ax.figure.dpi / 72 / unit
    top = max(radius - gap / 2, 0.0)
    for side, mask in ((-1, left), (1, ~left)):
        named = np.flatnonzero(mask)[: int(2 * top / gap) + 1]
        named = named[np.argsort(points[named].imag, kind="stable")]
        heights = _spread(points[named].imag, gap, top)
        for i, height in zip(named, heights, strict=True):
            _label(ax, words[i], points[i], (side * _BESIDE * radius, height), scale * SMALL)


def _room(ax: Axes) -> np.ndarray:
    """Largest width and height of the axes in pixels."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # lays the figure out
    return np.array(ax.get_position(original=True).transformed(ax.figure.transSubfigure).size)


def _width(ax: Axes, text: str) -> float:
    """Width of a label in pixels."""
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
    label.set_in_layout(False)  # the axis limits leave room for it


def _spread(heights: np.ndarray, gap: float, top: float) -> np.ndarray:
    """Separate increasing heights by at least `gap` within -`top` to `top`."""
    moved = heights.copy()
    moved[:1] = np.maximum(moved[:1], -top)
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    for i in range(len(moved) - 1, -1, -1):
        ceiling = top if i == len(moved) - 1 else moved[i + 1] - gap
        moved[i] = min(moved[i], ceiling)
    return moved


def plot_lag_curves(
    features_or_model: Any, n: int = 6, max_lag: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the weights of past inputs in the leading recurrence features.

    Each curve is the response of a feature to a unit impulse at lag 0, scaled to the maximum 1:
    gamma^j, gamma^j cos(j theta), or, for order n > 1, the last of its `lag_curves` with the
    binomial coefficient binom(j, n - 1). A feature with a period below three steps is drawn as
    dots within the shaded envelope plus and minus gamma^j, down to 1 percent.

    Parameters
    ----------
    features_or_model : DataFrame or model
        Result of `tsrnn.interpret.recurrence_features` or `tsrnn.interpret.forecast_features`, or
        an argument of the former. For a forecaster with a network the features of the whole
        forecast are drawn.
    n : int, default 6
        Number of features with the largest shares, or the largest moduli without shares. Features
        of type "zero" are left out.
    max_lag : int, optional
        Last lag in time steps. By default the lag at which all curves have decayed to 5 percent, at
        least 12 and at most 200.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    tsrnn.interpret.UninformativeNetworkError
        If the network of a fitted model contributes nothing.
    ValueError
        If the frame of features lacks columns, rows or its unit of time, all features are of type
        "zero", or `n` or `max_lag` is not a positive whole number.

    Examples
    --------
    >>> from tsrnn.interpret import recurrence_features
    >>> from tsrnn.plotting import plot_lag_curves
    >>> features = recurrence_features([[0.9, 0.3], [-0.3, 0.9]], freq="MS")
    >>> plot_lag_curves(features).get_xlabel()
    'Lag (months)'
    """
    features = _as_features(features_or_model)
    # By share if known, then by modulus.
    lasting = features[features["modulus"] > 0]
    ranked = lasting.sort_values(["share", "modulus"], ascending=False, kind="stable")
    chosen = ranked.head(checked_count(n, "n"))
    if chosen.empty:
        raise ValueError('there is no lag curve to draw: all features are of type "zero".')
    last = _last_lag(chosen) if max_lag is None else checked_count(max_lag, "max_lag")
    unit, step = features.attrs["time_unit"], features.attrs["time_step"]
    lags = np.arange(last + 1)
    given = ax is not None
    ax = new_axes(ax, 10.0, 3.8)
    ax.axhline(0, color=GREY, linewidth=0.6)
    for i, row in enumerate(chosen.itertuples()):
        curve, envelope = _curve(row, lags)
        style = line_style(i)
        angle: Any = row.angle
        marker = style.pop("marker")
        if angle > _ZIGZAG:
            ax.fill_between(lags * step, -envelope, envelope, color=colour(i), alpha=0.1, lw=0)
            curve = np.where(envelope < _FAINT, np.nan, curve)  # dots on the axis hide others
            style |= {"linestyle": "", "marker": marker, "markersize": 4}
        ax.plot(lags * step, curve, label=_describe_curve(row, features), **style)
    ax.set(xlabel=f"Lag ({unit})", ylabel="Response to an impulse", xlim=(0, last * step))
    tidy(ax)
    legend_beside(ax, inside=given)
    return ax


def _curve(feature: Any, lags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Response by lag, scaled to the maximum 1, and its envelope."""
    curves = lag_curves(feature.modulus, feature.angle, feature.order, lags)
    wave = feature.type.startswith("C")
    curve = curves[:, -2] if wave else curves[:, -1]
    envelope = np.hypot(curves[:, -2], curves[:, -1]) if wave else np.abs(curve)
    peak = np.abs(curve).max()
    return (curve / peak, envelope / peak) if peak > 0 else (curve, envelope)


def _last_lag(features: pd.DataFrame) -> int:
    slowest = float(features["modulus"].max())
    least, most = _DEFAULT_LAGS
    if slowest >= 1:
        return most
    return int(min(max(math.ceil(math.log(_FADED) / math.log(slowest)), least), most))


def _describe_curve(feature: Any, features: pd.DataFrame) -> str:
    parts = [
        f"{name} {getattr(feature, name)}"
        for name in ("network", "layer", "block")
        if name in features and features[name].nunique() > 1
    ]
    place = f"{', '.join(parts)}: " if parts else ""
    share = "" if math.isnan(feature.share) else f" (share {feature.share:.0%})"
    return f"{place}{_in_words(feature, features.attrs)}{share}"


def _as_features(features_or_model: Any) -> pd.DataFrame:
    """Validate a frame of features, or read the features of a model."""
    if not (isinstance(features_or_model, pd.DataFrame) and "modulus" in features_or_model):
        whole = callable(getattr(features_or_model, "forecast_paths", None))
        return (forecast_features if whole else recurrence_features)(features_or_model)
    missing = [name for name in _COLUMNS if name not in features_or_model]
    if missing or features_or_model.empty:
        what = f"lacks the columns {missing}" if missing else "has no rows"
        raise ValueError(
            "a frame of features must be as recurrence_features or forecast_features gives it; "
            f"this one {what}."
        )
    if not {"time_unit", "time_step"} <= features_or_model.attrs.keys():
        raise ValueError(
            "a frame of features must carry attrs['time_unit'] and attrs['time_step'], without "
            "which its half-lives have no unit; this one lost them, as merging or reading a file "
            "does. Copy the attrs over from the frame that recurrence_features gave."
        )
    return features_or_model


def _in_words(feature: Any, attrs: Mapping[Any, Any]) -> str:
    """Label of a feature, such as "C-1, half-life 53, period 12 months".

    Times beyond the sample are not identified: "R-1, half-life beyond the sample of 216 months".
    """
    if feature.modulus == 0:
        return f"zero, memory of {feature.order - 1} steps"
    length = attrs.get("sample_length", math.inf)
    parts = [feature.type]
    if math.isnan(feature.half_life):
        parts.append("growing")
    elif feature.half_life > length:
        parts.append(f"half-life beyond the sample of {_format(length)}")
    elif math.isinf(feature.half_life):
        parts.append("lasting")
    else:
        parts.append(f"half-life {_format(feature.half_life)}")
    if math.isfinite(feature.period):
        beyond = feature.period > length
        parts.append(f"period {'beyond ' * beyond}{_format(min(feature.period, length))}")
    words, unit = ", ".join(parts), attrs["time_unit"]
    if not any(part.startswith(("half-life", "period")) for part in parts):
        return words
    return f"{words} {unit.removesuffix('s') if words.endswith(' 1') else unit}"


def _format(value: float) -> str:
    """Format with three significant digits, without an exponent below a million."""
    return f"{value:,.0f}" if 100 <= value < 1e6 else f"{value:.3g}"
