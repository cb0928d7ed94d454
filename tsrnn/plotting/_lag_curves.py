"""The lag curves of the leading recurrence features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.interpret import lag_curves
from tsrnn.plotting._feature_frames import as_features, in_words, leading
from tsrnn.plotting._style import GREY, checked_count, colour, legend_beside, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_lag_curves"]

_DEFAULT_LAGS = (12, 200)
_FADED = 0.05
_FAINT = 0.01
_DASHES = ("-", "--", ":")
_MARKERS = ("o", "s", "^")
_ZIGZAG = 2 * math.pi / 3  # angle of a period of three steps


def plot_lag_curves(
    features_or_model: Any, n: int = 6, max_lag: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how the leading recurrence features weigh the past.

    Each curve is the response of a feature to a unit impulse at lag 0, scaled to the maximum 1:
    gamma^j, gamma^j cos(j theta), or, for order n > 1, the last of its `lag_curves`, which carries
    the binomial coefficient binom(j, n - 1). Of a feature with a period below three steps, which a
    line would fill with its zigzag, each lag is a dot inside the shaded envelope plus and minus
    gamma^j, as long as that is 1% at least.

    Parameters
    ----------
    features_or_model : DataFrame or model
        What `tsrnn.interpret.recurrence_features` gave, or anything it accepts.
    n : int, default 6
        How many features; the leading ones by share where shares are known, else by modulus.
        Features of type "zero" are left out.
    max_lag : int, optional
        Last lag, in time steps. By default the lag at which all curves have fallen to 5%, at
        least 12 and at most 200.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

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
    features = as_features(features_or_model)
    chosen = leading(features, checked_count(n, "n"))
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
        style: dict[str, Any] = {"color": colour(i), "linestyle": _DASHES[i // 6 % 3]}
        angle: Any = row.angle
        if angle > _ZIGZAG:
            ax.fill_between(lags * step, -envelope, envelope, color=colour(i), alpha=0.1, lw=0)
            curve = np.where(envelope < _FAINT, np.nan, curve)  # dots on the axis hide others
            style |= {"linestyle": "", "marker": _MARKERS[i // 6 % 3], "markersize": 4}
        ax.plot(lags * step, curve, label=_label(row, features), **style)
    ax.set(xlabel=f"Lag ({unit})", ylabel="Response to an impulse", xlim=(0, last * step))
    tidy(ax)
    legend_beside(ax, inside=given)
    return ax


def _curve(feature: Any, lags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Response at each lag and the size of the wave that it lies on, of the maximum 1."""
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


def _label(feature: Any, features: pd.DataFrame) -> str:
    several = "network" in features and features["network"].nunique() > 1
    network = f"network {feature.network}, " if several else ""
    layer = network + (f"layer {feature.layer}, " if features["layer"].nunique() > 1 else "")
    block = f"block {feature.block}: " if features["block"].nunique() > 1 else ""
    place = f"{layer}{block}" if block else layer.replace(", ", ": ")
    share = "" if math.isnan(feature.share) else f" (share {feature.share:.0%})"
    return f"{place}{in_words(feature, features.attrs)}{share}"
