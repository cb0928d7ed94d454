"""The Kalman filter of the predictor form, with missing entries and from any state.

Rows are taken in as they come: the state after them is all that is remembered. With K_t for the
gain and Z = (I, 0, ..., 0), w_t being the trend and exogenous part,

    v_t = y_t - Z a_t - w_t,    F_t = Z P_t Z' + Sigma,    K_t = (T P_t Z' + K Sigma) F_t^{-1},
    a_{t+1} = T (a_t + Z' w_t) + K_t v_t,    P_{t+1} = T P_t T' + K Sigma K' - K_t F_t K_t'.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._shape import Coefficients
from tsrnn.linear.varma._stationary import Stationary
from tsrnn.linear.varma._system import System, chol_derivatives, derivatives, system


class State(NamedTuple):
    """Mean (U, d) and covariance (U, d, d) of the state before a row, w_t not included."""

    mean: np.ndarray
    cov: np.ndarray


class Predictions(NamedTuple):
    """One-step forecasts.

    Attributes
    ----------
    mean, cov : arrays of shape (U, T, n), (U, T, n, n)
        Of y given the rows before it; NaN after a unit's end.
    state : State
        After each unit's last row.
    """

    mean: np.ndarray
    cov: np.ndarray
    state: State


class Innovations(NamedTuple):
    """One-step errors of U units and their derivatives.

    A missing entry has the error 0 and the variance 1, whatever the parameters.

    Attributes
    ----------
    error, cov : arrays of shape (U, T, n), (U, T, n, n)
    d_error, d_cov : arrays of shape (U, T, k, n), (U, T, k, n, n)
    """

    error: np.ndarray
    cov: np.ndarray
    d_error: np.ndarray
    d_cov: np.ndarray


def run(matrices: System, y: np.ndarray, offsets: np.ndarray, start: State) -> Predictions:
    """Filter rows.

    Parameters
    ----------
    matrices : System
        Of U units.
    y : array of shape (U, T, n)
        NaN where missing. A row of infinities is after the end of the unit: it leaves the state.
    offsets : array of shape (U, T, n)
        w_t.
    start : State
    """
    T, K, sigma = matrices
    units, steps, n = y.shape
    means, covs = np.full(y.shape, np.nan), np.full((units, steps, n, n), np.nan)
    mean, cov = start
    shocks = K @ sigma @ K.swapaxes(1, 2)
    for t in range(steps):
        row = y[:, t]
        inside = ~np.isinf(row).any(1)
        means[inside, t] = (mean[:, :n] + offsets[:, t])[inside]
        covs[inside, t] = (cov[:, :n, :n] + sigma)[inside]
        seen = np.isfinite(row)
        error = np.where(seen, row - mean[:, :n] - offsets[:, t], 0.0)
        F = _of_seen(cov[:, :n, :n] + sigma, seen)
        across = np.where(seen[:, None], T @ cov[:, :, :n] + K @ sigma, 0.0)
        gain = np.linalg.solve(F, across.swapaxes(1, 2)).swapaxes(1, 2)
        base = mean.copy()
        base[:, :n] += offsets[:, t]
        new = (T @ base[..., None] + gain @ error[..., None])[..., 0]
        spread = T @ cov @ T.swapaxes(1, 2) + shocks - gain @ across.swapaxes(1, 2)
        mean = np.where(inside[:, None], new, mean)
        cov = np.where(inside[:, None, None], (spread + spread.swapaxes(1, 2)) / 2, cov)
    return Predictions(means, covs, State(mean, cov))


def with_derivatives(coefficients: Coefficients, sample: Sample, prior: Stationary) -> Innovations:
    """Errors of one unit with missing values, and their derivatives by the k parameters."""
    shape = sample.shape
    T, K, sigma = (array[0] for array in system(shape, coefficients))
    dT, dK = derivatives(shape)
    n, k, steps = shape.n, shape.k, int(sample.rows[0])
    d_sigma = np.zeros((k, n, n))
    half = chol_derivatives(shape) @ coefficients.chol[0].T
    d_sigma[shape.n_mean :] = half + half.swapaxes(1, 2)
    design = sample.sources[0, :, : shape.n_design]
    offsets = design @ coefficients.design[0].T
    shocks, half = K @ sigma @ K.T, dK @ (sigma @ K.T)
    d_shocks = half + half.swapaxes(1, 2) + K @ d_sigma @ K.T
    into_state = K @ sigma
    d_into_state = dK @ sigma + K @ d_sigma
    mean, cov = prior.mean[0].copy(), prior.cov[0]
    d_mean, d_cov = prior.d_mean[0].copy(), prior.d_cov[0]
    result = Innovations(
        np.zeros((1, steps, n)),
        np.zeros((1, steps, n, n)),
        np.zeros((1, steps, k, n)),
        np.zeros((1, steps, k, n, n)),
    )
    equations = np.arange(n)[:, None]
    for t in range(steps):
        mean[:n] += offsets[t]
        d_mean[shape.at_design, equations] += design[t]
        seen = ~np.isnan(sample.y[0, t])
        both = seen[:, None] & seen
        error = np.where(seen, sample.y[0, t] - mean[:n], 0.0)
        F = _of_seen((cov[:n, :n] + sigma)[None], seen[None])[0]
        d_error = np.where(seen, -d_mean[:, :n], 0.0)
        dF = np.where(both, d_cov[:, :n, :n] + d_sigma, 0.0)
        for whole, part in zip(result, (error, F, d_error, dF), strict=True):
            whole[0, t] = part
        across = np.where(seen, T @ cov[:, :n] + into_state, 0.0)
        d_across = np.where(seen, dT @ cov[:, :n] + T @ d_cov[:, :, :n] + d_into_state, 0.0)
        inverse = np.linalg.inv(F)
        gain = across @ inverse
        d_gain = (d_across - gain @ dF) @ inverse
        d_mean = dT @ mean + d_mean @ T.T + d_gain @ error + d_error @ gain.T
        mean = T @ mean + gain @ error
        half = dT @ cov @ T.T - d_across @ gain.T
        d_cov = T @ d_cov @ T.T + half + half.swapaxes(1, 2) + d_shocks + gain @ dF @ gain.T
        cov = T @ cov @ T.T + shocks - gain @ across.T
    return result


def _of_seen(cov: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Covariances with the rows and columns of missing entries those of the identity."""
    n = seen.shape[1]
    both = seen[:, :, None] & seen[:, None, :]
    return np.where(both, cov, np.eye(n))
