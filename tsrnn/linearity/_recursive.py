"""Recursive bootstrap of a linear model: simulated series and their fits."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from tsrnn.linear import ARMA
from tsrnn.linearity._null import LinearModel, lagged

EXPLODED = 1e3  # standard deviations beyond which a simulated series is not stationary


def simulate_linear(model: LinearModel, n_series: int, rng: np.random.Generator) -> np.ndarray:
    r"""Simulate series (T, B) of the linear model from its first rows, with random signs.

    .. math:: y^*_t = c + \sum_i \phi_i y^*_{t-i} + v_t e_t + \sum_j \theta_j v_{t-j} e_{t-j},
        \qquad P(v_t = 1) = P(v_t = -1) = 1 / 2

    A ValueError refuses models with a season, differences or a drift, and series that explode.
    """
    const, ar, ma = model.coefficients()
    n, p = len(model.residuals), len(ar)
    k, T = model.scores.shape[1], len(model.series)
    # Correct residuals for the degrees of freedom of the k parameters.
    e = model.residuals * np.sqrt(n / (n - k))
    errors = np.zeros((T, n_series))
    errors[T - n :] = (rng.integers(0, 2, (n, n_series)) * 2.0 - 1.0) * e[:, None]
    noise = lfilter(np.append(1.0, ma), [1.0], errors, axis=0)
    y = np.repeat(model.series[:, None], n_series, axis=1)
    for t in range(max(T - n, p), T):
        y[t] = const + noise[t]
        for i in range(p):
            y[t] += ar[i] * y[t - 1 - i]
    if not np.abs(y).max() < EXPLODED:
        raise ValueError(
            f"series simulated from the fitted {model.name} explode: it is not stationary. "
            "Difference the series, or take bootstrap='wild'"
        )
    return y


def refit_linear(model: LinearModel, series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Refit the linear model to columns (T, B); residuals (B, n) and scores (B, n, k)."""
    n, B = len(model.residuals), series.shape[1]
    _, ar, ma = model.coefficients()
    p, q = len(ar), len(ma)
    if not q:
        X = lagged(series, p).swapaxes(0, 1)
        X = np.concatenate([np.ones((*X.shape[:2], 1)), X], axis=-1)
        y = series[p:].T
        Q = np.linalg.qr(X)[0]
        e = y - (Q @ (Q.swapaxes(1, 2) @ y[..., None]))[..., 0]
        return e[:, -n:], X[:, -n:]
    fitted = ARMA(order=(p, q)).fit(pd.DataFrame(series))
    e = np.asarray(fitted.residuals(), float).T
    params, scores = fitted.params_.to_numpy(), np.empty((B, len(series), 1 + p + q))
    for b in range(B):
        const, phi, theta = params[b, 0], params[b, 1 : 1 + p], params[b, 1 + p : -1]
        whole, w = np.append(1.0, theta), series[:, b] - const
        scores[b, :, 0] = lfilter(np.append(1.0, -phi), whole, np.ones(len(w)))
        for i in range(1, p + 1):
            scores[b, :, i] = lfilter(np.eye(i + 1)[i], whole, w)
        for j in range(1, q + 1):
            scores[b, :, p + j] = lfilter(np.eye(j + 1)[j], whole, e[b])
    if not np.isfinite(e).all() or not np.isfinite(scores).all():
        failed = (~np.isfinite(e).all(1) | ~np.isfinite(scores).all((1, 2))).sum()
        raise ValueError(
            f"{failed} of {B} simulated series could not be fitted by an {model.name}. Take fewer "
            "lags, or bootstrap='wild'"
        )
    return e[:, -n:], scores[:, -n:]
