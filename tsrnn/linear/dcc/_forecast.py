"""Forecasts of means, variances and correlations from a state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._mean import paths, responses
from tsrnn.linear.dcc._equations import level_forms
from tsrnn.linear.dcc._specification import Parts, Specification
from tsrnn.linear.dcc._state import State, walk_of
from tsrnn.linear.garch._filter import State as VarianceState
from tsrnn.linear.garch._simulate import expected_variance


class Forecast(NamedTuple):
    """Of S series, h steps and n variables.

    Attributes
    ----------
    mean : array of shape (S, h, n)
    covariance : array of shape (S, h, n, n)
        Of the residuals.
    correlation : array of shape (S, h, n, n)
    error_variance : array of shape (S, h, n)
        Of the error of the forecast of y.
    """

    mean: np.ndarray
    covariance: np.ndarray
    correlation: np.ndarray
    error_variance: np.ndarray


def forecast(spec: Specification, parts: Parts, beta: np.ndarray, state: State, h: int) -> Forecast:
    r"""Forecast h steps.

    Variances have exact expectations. :math:`E Q_{T+k}` follows its recursion with
    :math:`E[u u'] \approx E[Q]`, exactly so for the corrected model; taking its correlations for
    :math:`E R_{T+k}` is an approximation from the second step on (Engle and Sheppard 2001).
    """
    s, n = len(state.history), spec.n
    intercept, lags = level_forms(spec.step.mean, parts.coefficients, beta)
    mean = paths(state.history, intercept, lags, np.zeros((s, h, n)))
    rows = parts.variance.reshape(s * n, -1)
    own = VarianceState(state.variance.reshape(s * n, -1), np.empty((s * n, 0)))
    variance = expected_variance(spec.step.model(), rows, own, h).reshape(s, n, h).swapaxes(1, 2)
    walk, correlation = walk_of(spec, parts, state), np.empty((s, h, n, n))
    for k in range(h):
        correlation[:, k] = walk.correlation
        walk.expect()
    root = np.sqrt(variance)
    covariance = root[..., :, None] * correlation * root[..., None, :]
    return Forecast(mean, covariance, correlation, _error_variance(lags, covariance))


def _error_variance(lags: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""Diagonals of :math:`\sum_{j<k} \Psi_j H_{T+k-j} \Psi_j'`, (S, h, n)."""
    h = covariance.shape[1]
    if not lags.shape[1]:
        return np.diagonal(covariance, axis1=2, axis2=3)
    psi = responses(lags, h)
    return np.stack(
        [
            np.einsum("sjab,sjbc,sjac->sa", psi[:, : k + 1], covariance[:, k::-1], psi[:, : k + 1])
            for k in range(h)
        ],
        1,
    )
