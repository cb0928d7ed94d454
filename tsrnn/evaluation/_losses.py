"""Losses of forecasts, by window and step."""

from __future__ import annotations

import numpy as np

from tsrnn.evaluation._forecasts import Forecasts
from tsrnn.evaluation._scale import Scale

LOSSES = ("squared", "absolute", "qlike")


def qlike(y: np.ndarray, variance: np.ndarray) -> np.ndarray:
    r"""Quasi-likelihood loss of forecasts f of a variance, :math:`\log f + y / f`.

    References
    ----------
    Patton, A. J. (2011). Volatility forecast comparison using imperfect volatility proxies.
    Journal of Econometrics 160(1), 246-256.
    """
    return np.log(variance) + y / variance


def window_losses(forecasts: Forecasts, loss: str, scale: Scale | None) -> np.ndarray:
    """Losses by window and step, and last the mean over the steps of a window.

    In a panel with a scale, squared and absolute losses are divided by that of their series.

    Parameters
    ----------
    forecasts : Forecasts
    loss : {"squared", "absolute", "qlike"}
    scale : Scale or None

    Returns
    -------
    ndarray of shape (M, W, H + 1)
        NaN where nothing is compared.
    """
    y, point = forecasts.y, forecasts.point
    if loss == "qlike":
        losses = qlike(y, np.where(np.isnan(y), 1.0, point))
    else:
        error = np.abs(y - point)
        losses = error**2 if loss == "squared" else error
        if scale is not None and forecasts.n_series > 1:
            own = scale.mse if loss == "squared" else scale.mae
            losses = losses / own[forecasts.series, None]
    return np.concatenate([losses, mean_of_known(losses, axis=2)[:, :, None]], axis=2)


def mean_of_known(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean of what is not NaN; NaN where everything is."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return total / np.where(count > 0, count, np.nan)


def check_variances(forecasts: Forecasts) -> None:
    """Refuse forecasts of a variance that are not positive, and negative actual values.

    Raises
    ------
    ValueError
    """
    known = forecasts.known
    for name, point in zip(forecasts.models, forecasts.point, strict=True):
        bad = np.argwhere(known & ~(point > 0))
        if len(bad):
            w, step = bad[0]
            raise ValueError(
                f"forecasts of a variance must be positive; {len(bad)} of {name} are not, the "
                f"first of series {forecasts.ids[forecasts.series[w]]!r}, cutoff "
                f"{forecasts.cutoffs[w]}, step {step + 1}: {point[w, step]:g}"
            )
    negative = int((forecasts.y < 0).sum())
    if negative:
        raise ValueError(
            "actual values of a variance must not be negative, such as squared returns or realised "
            f"variances; {negative} of column 'y' are"
        )
