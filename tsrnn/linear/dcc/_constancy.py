"""Engle and Sheppard's test of constant correlation."""

from __future__ import annotations

import numpy as np


def constancy_statistic(z: np.ndarray, lags: int) -> float:
    r"""Statistic of standardised residuals (T, n), chi-square with as many degrees as lags.

    With :math:`\epsilon_t = R^{-1/2} z_t` and Y the products :math:`\epsilon_i \epsilon_j` of
    all pairs, stacked, the regression :math:`Y_t = \delta_0 + \sum_l \delta_l Y_{t-l}` has
    :math:`\delta = 0` under constant correlations; the statistic is
    :math:`\hat\delta' X' X \hat\delta / \hat\sigma^2`. R is that of z itself, so that Y sums
    to zero: the constant adds nothing to the statistic, and no degree of freedom.
    """
    root = np.sqrt((z**2).mean(0))
    standard = z / root
    values, vectors = np.linalg.eigh(standard.T @ standard / len(z))
    whitened = standard @ (vectors / np.sqrt(values)) @ vectors.T
    rows, columns = np.triu_indices(z.shape[1], 1)
    products = whitened[:, rows] * whitened[:, columns]
    steps = len(products)
    y = products[lags:].ravel()
    regressors = [np.ones_like(y)]
    regressors += [products[lags - i : steps - i].ravel() for i in range(1, lags + 1)]
    x = np.stack(regressors, 1)
    delta = np.linalg.lstsq(x, y, rcond=None)[0]
    fitted = x @ delta
    variance = ((y - fitted) ** 2).sum() / (len(y) - len(delta))
    return float(fitted @ fitted / variance)
