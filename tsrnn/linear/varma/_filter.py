"""VARMA at given parameters: the Kalman filter, forecasts, responses, draws.

The filter is recursive: only the state is carried from row to row. With the gain K_t,
Z = (I, 0, ..., 0) and the trend and exogenous part w_t,

    v_t = y_t - Z a_t - w_t,    F_t = Z P_t Z' + Sigma,    K_t = (T P_t Z' + K Sigma) F_t^{-1},
    a_{t+1} = T (a_t + Z' w_t) + K_t v_t,    P_{t+1} = T P_t T' + K Sigma K' - K_t F_t K_t'.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear._inference import delta_method
from tsrnn.linear._multivariate import draw_normal
from tsrnn.linear.varma._likelihood import by_unit, products
from tsrnn.linear.varma._posterior import posterior_of
from tsrnn.linear.varma._prepare import Sample, offsets, trend_of
from tsrnn.linear.varma._residuals import Filter, columns
from tsrnn.linear.varma._specification import Coefficients, Shape
from tsrnn.linear.varma._system import System, stationary_moments, system


class State(NamedTuple):
    """Mean (U, d) and covariance (U, d, d) of the state before a row, w_t not included."""

    mean: np.ndarray
    cov: np.ndarray


class Predictions(NamedTuple):
    """One-step forecasts of y, NaN after a unit's end, and the last state."""

    mean: np.ndarray  # (U, T, n)
    cov: np.ndarray  # (U, T, n, n)
    state: State  # after each unit's last row


def predictions(coefficients: Coefficients, sample: Sample) -> Predictions:
    """One-step forecasts of all rows, from the start."""
    shape = sample.shape
    y = np.where(sample.inside[..., None], sample.y, np.inf)
    effect = offsets(shape, sample.design, coefficients.design)
    matrices = system(shape, coefficients)
    return kalman_filter(matrices, y, effect, first_state(coefficients, sample))


def state_after(coefficients: Coefficients, sample: Sample) -> State:
    """State after the last row of each unit; in closed form for units without missing values."""
    shape, units = sample.shape, len(sample.y)
    result = State(np.empty((units, shape.d)), np.empty((units, shape.d, shape.d)))
    complete = (sample.n_missing == 0) & (sample.rows >= shape.lags)
    for closed in (True, False):
        chosen = np.flatnonzero(complete == closed)
        if len(chosen):
            part = Coefficients(*(matrices[chosen] for matrices in coefficients))
            rows = sample.select(chosen)
            after = _closed_state(part, rows) if closed else predictions(part, rows).state
            result.mean[chosen], result.cov[chosen] = after
    return result


def state_on(coefficients: Coefficients, sample: Sample, state: State) -> State:
    """State after further rows."""
    y = np.where(sample.inside[..., None], sample.y, np.inf)
    effect = sample.design @ coefficients.design.swapaxes(1, 2)
    return kalman_filter(system(sample.shape, coefficients), y, effect, state).state


def standardised_errors(sample: Sample, predicted: Predictions) -> np.ndarray:
    """Errors (U, T, n) whitened by the factor of their covariance, NaN where missing."""
    seen = sample.seen
    both = seen[..., :, None] & seen[..., None, :]
    root = np.linalg.cholesky(np.where(both, predicted.cov, np.eye(seen.shape[2])))
    errors = np.where(seen, sample.y - predicted.mean, 0.0)
    return np.where(seen, np.linalg.solve(root, errors[..., None])[..., 0], np.nan)


def kalman_filter(
    matrices: System, y: np.ndarray, offsets: np.ndarray, start: State
) -> Predictions:
    """Filter rows y (U, T, n), NaN where missing, with w_t in `offsets`.

    A row of infinities marks the end of a unit and does not change the state.
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
        F = covariance_of_seen(cov[:, :n, :n] + sigma, seen)
        across = np.where(seen[:, None], T @ cov[:, :, :n] + K @ sigma, 0.0)
        gain = np.linalg.solve(F, across.swapaxes(1, 2)).swapaxes(1, 2)
        base = mean.copy()
        base[:, :n] += offsets[:, t]
        new = (T @ base[..., None] + gain @ error[..., None])[..., 0]
        spread = T @ cov @ T.swapaxes(1, 2) + shocks - gain @ across.swapaxes(1, 2)
        mean = np.where(inside[:, None], new, mean)
        # Enforce symmetry: asymmetric rounding would grow over many rows.
        cov = np.where(inside[:, None, None], (spread + spread.swapaxes(1, 2)) / 2, cov)
    return Predictions(means, covs, State(mean, cov))


def covariance_of_seen(cov: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Covariances with identity rows and columns for missing entries."""
    n = seen.shape[1]
    both = seen[:, :, None] & seen[:, None, :]
    return np.where(both, cov, np.eye(n))


def first_state(coefficients: Coefficients, sample: Sample) -> State:
    """State before the first row: stationary, or after a past at the presample value."""
    shape = sample.shape
    if shape.exact:
        matrices = system(shape, coefficients)
        return State(*stationary_moments(shape, coefficients, matrices, sample.level))
    units, p = len(sample.y), shape.p
    past = np.repeat(sample.presample[:, None], p, 1)
    mean = _carried(shape, coefficients.ar, past)
    return State(mean, np.zeros((units, shape.d, shape.d)))


def _closed_state(coefficients: Coefficients, sample: Sample) -> State:
    """State after the last row, which is linear in the state before the data and its posterior."""
    shape = sample.shape
    E = by_unit(columns(coefficients, sample, Filter(coefficients, sample.y.shape[1])))
    prior = first_state(coefficients, sample)
    width = E.shape[3] - 1
    known = posterior_of(products(E), prior.mean[:, :width], prior.cov[:, :width, :width])
    late = coefficients.chol[:, None] @ _last(E, sample.rows, shape.q)
    values = _last(sample.filled, sample.rows, shape.p)
    by_start = -_carried(shape, coefficients.ma, late[..., 1:])
    mean = _carried(shape, coefficients.ar, values)
    mean += _carried(shape, coefficients.ma, late[..., 0])
    mean += (by_start @ known.mean[..., None])[..., 0]
    return State(mean, by_start @ known.cov @ by_start.swapaxes(1, 2))


def _last(array: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Last rows (U, count, ...) of each unit, latest first."""
    return array[np.arange(len(array))[:, None], rows[:, None] - 1 - np.arange(count)]


def _carried(shape: Shape, lags: np.ndarray, past: np.ndarray) -> np.ndarray:
    """Contribution of rows (U, lags, n, ...), latest first, to the state (U, d, ...).

    Block i is the sum over j >= i of A_j times row j - i.
    """
    units, count, n = past.shape[:3]
    tail = past.shape[3:]
    flat = past.reshape(units, count, n, math.prod(tail))
    result = np.zeros((units, shape.lags, n, math.prod(tail)))
    for i in range(count):
        result[:, i] = (lags[:, i:] @ flat[:, : count - i]).sum(1)
    return result.reshape(units, shape.d, *tail)


class Forecast(NamedTuple):
    """Means (U, h, n) and covariances (U, h, n, n) of the next rows."""

    mean: np.ndarray
    cov: np.ndarray


def forecast_moments(matrices: System, state: State, effect: np.ndarray) -> Forecast:
    """Forecast h steps with w_t in `effect` (U, h, n): the Kalman filter over missing rows."""
    T, K, sigma = matrices
    units, h, n = effect.shape
    shocks = K @ sigma @ K.swapaxes(1, 2)
    mean, cov = state.mean.copy(), state.cov
    result = Forecast(np.empty((units, h, n)), np.empty((units, h, n, n)))
    for k in range(h):
        mean[:, :n] += effect[:, k]
        result.mean[:, k] = mean[:, :n]
        result.cov[:, k] = cov[:, :n, :n] + sigma
        mean = (T @ mean[..., None])[..., 0]
        cov = T @ cov @ T.swapaxes(1, 2) + shocks
    return result


def draw_errors(
    matrices: System, cov: np.ndarray, shape: tuple[int, int], generator: np.random.Generator
) -> np.ndarray:
    """Draw forecast errors (U, n, h, paths), for shape = (h, paths).

    `cov` (U, d, d) is the covariance of the state after the last row.
    """
    T, K, sigma = matrices
    (h, paths), (units, n) = shape, sigma.shape[:2]
    state = draw_normal(cov, generator.standard_normal((*cov.shape[:2], paths)))
    errors = np.empty((units, n, h, paths))
    for k in range(h):
        shocks = draw_normal(sigma, generator.standard_normal((units, n, paths)))
        errors[:, :, k] = state[:, :n] + shocks
        state = T @ state + K @ shocks
    return errors


def responses(shape: Shape, params: np.ndarray, h: int, orthogonalised: bool) -> np.ndarray:
    """Responses (U, h + 1, n, n) of target i to a shock to j, after 0, 1, ..., h steps."""
    with torch.no_grad():
        values = _response_function(shape, h, orthogonalised)(torch.tensor(params)).numpy()
    return values.reshape(-1, h + 1, shape.n, shape.n)


def response_errors(
    shape: Shape, params: np.ndarray, cov: np.ndarray, h: int, orthogonalised: bool
) -> np.ndarray:
    """Standard errors (U, h + 1, n, n) of the responses by the delta method."""
    _, spread = delta_method(_response_function(shape, h, orthogonalised), params, cov)
    variances = np.diagonal(spread, axis1=1, axis2=2)
    return np.sqrt(variances).reshape(-1, h + 1, shape.n, shape.n)


def _response_function(shape: Shape, h: int, orthogonalised: bool) -> Callable[[Tensor], Tensor]:
    """Psi_k = Theta_k + Phi_1 Psi_{k-1} + ... + Phi_p Psi_{k-p}, flat, from parameters (U, k)."""

    def function(theta: Tensor) -> Tensor:
        ar, ma = theta[:, shape.at_ar], theta[:, shape.at_ma]
        psi = [torch.eye(shape.n, dtype=theta.dtype).expand(len(theta), -1, -1)]
        for k in range(1, h + 1):
            terms = [ar[:, :, i] @ psi[k - 1 - i] for i in range(min(k, shape.p))]
            if k <= shape.q:
                terms.append(ma[:, :, k - 1])
            psi.append(sum(terms, torch.zeros_like(psi[0])))
        result = torch.stack(psi, 1)
        if orthogonalised:
            chol = torch.zeros_like(psi[0])
            rows, columns = (torch.from_numpy(part) for part in shape.triangle)
            entries = theta[:, torch.from_numpy(shape.at_chol)]
            chol = chol.index_put((torch.arange(len(theta))[:, None], rows, columns), entries)
            result = result @ chol[:, None]
        return result.flatten(1)

    return function


def simulate_paths(
    shape: Shape, params: np.ndarray, steps: int, generator: np.random.Generator
) -> np.ndarray:
    """Gaussian paths (U, steps, n) of stationary models without exogenous columns.

    The first state is drawn from the stationary distribution.
    """
    shape = replace(shape, exact=True)
    coefficients, units, n = shape.unpack(params), len(params), shape.n
    T, K, _ = system(shape, coefficients)
    design = trend_of(shape, np.zeros(units, int), max(steps, 2))
    nothing = np.full((units, steps, n), np.nan)
    rows = np.full(units, steps)
    first = first_state(coefficients, Sample(shape, nothing, design, np.zeros((units, n)), rows))
    effect = offsets(shape, design, coefficients.design)
    z = generator.standard_normal((units, shape.d, 1))
    state = first.mean + draw_normal(first.cov, z)[..., 0]
    shocks = generator.standard_normal((units, steps, n)) @ coefficients.chol.swapaxes(1, 2)
    y = np.empty_like(nothing)
    for t in range(steps):
        state[:, :n] += effect[:, t]
        y[:, t] = state[:, :n] + shocks[:, t]
        state = (T @ state[..., None] + K @ shocks[:, t, :, None])[..., 0]
    return y
