"""Weights of combined forecasts."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

_HEAVY = 1e4  # weight of the equation that says that weights sum to one


def inverse_error_weights(errors: np.ndarray) -> np.ndarray:
    r"""Weights proportional to one over the mean squared error (Bates and Granger, 1969).

    .. math:: w_i = \frac{1 / \mathrm{MSE}_i}{\sum_j 1 / \mathrm{MSE}_j}

    The best weights if errors of different models are uncorrelated.

    Parameters
    ----------
    errors : array of shape (n, k)
        Of k models.

    Returns
    -------
    array of shape (k,)
    """
    mse = (errors**2).mean(0)
    best = mse.min()
    if best == 0:
        return (mse == 0) / (mse == 0).sum()
    return (best / mse) / (best / mse).sum()


def stacked_weights(errors: np.ndarray) -> np.ndarray:
    r"""Weights that make the mean squared error of the combination least (Breiman, 1996).

    .. math:: \min_w \sum_t \Big( \sum_i w_i e_{it} \Big)^2, \quad
              w_i \ge 0, \quad \sum_i w_i = 1

    As weights sum to one, the error of the combination is that of the errors.

    Parameters
    ----------
    errors : array of shape (n, k)

    Returns
    -------
    array of shape (k,)
    """
    k = errors.shape[1]
    size = np.sqrt((errors**2).sum(0).max())
    if size == 0:
        return np.full(k, 1 / k)
    # The triangle of a QR decomposition has the same sums of squares in k rows.
    triangle = np.linalg.qr(errors / size, mode="r")
    rows = np.vstack([triangle, np.full((1, k), _HEAVY)])
    weights = nnls(rows, np.append(np.zeros(len(triangle)), _HEAVY))[0]
    return weights / weights.sum()
