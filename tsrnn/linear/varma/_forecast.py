"""The state after the data, and forecasts from it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tsrnn.linear.varma._kalman import Predictions, State, run
from tsrnn.linear.varma._posterior import posterior
from tsrnn.linear.varma._residuals import columns, whitening
from tsrnn.linear.varma._sample import Sample, offsets
from tsrnn.linear.varma._shape import Coefficients, Shape
from tsrnn.linear.varma._stationary import moments
from tsrnn.linear.varma._sums import by_unit, products
from tsrnn.linear.varma._system import System, system


class Forecast(NamedTuple):
    """Means (U, h, n) and covariances (U, h, n, n) of the rows to come."""

    mean: np.ndarray
    cov: np.ndarray


def start(coefficients: Coefficients, sample: Sample) -> State:
    """State before the first row: the stationary one, or that of a past at the presample."""
    shape = sample.shape
    if shape.exact:
        matrices = system(shape, coefficients)
        return State(*moments(shape, coefficients, matrices, sample.level))
    units, p = len(sample.y), shape.p
    past = np.repeat(sample.presample[:, None], p, 1)
    mean = _carried(shape, coefficients.ar, past)
    return State(mean, np.zeros((units, shape.d, shape.d)))


def predictions(coefficients: Coefficients, sample: Sample) -> Predictions:
    """One-step forecasts of all rows, from the start."""
    shape = sample.shape
    y = np.where(sample.inside[..., None], sample.y, np.inf)
    effect = offsets(shape, sample.design, coefficients.design)
    matrices = system(shape, coefficients)
    return run(matrices, y, effect, start(coefficients, sample))


def state_after(coefficients: Coefficients, sample: Sample) -> State:
    """State after the last row of each unit: in closed form without missing values."""
    shape, units = sample.shape, len(sample.y)
    result = State(np.empty((units, shape.d)), np.empty((units, shape.d, shape.d)))
    complete = (sample.n_missing == 0) & (sample.rows >= shape.lags)
    for which, method in ((complete, _closed), (~complete, _filtered)):
        chosen = np.flatnonzero(which)
        if len(chosen):
            own = Coefficients(*(part[chosen] for part in coefficients))
            for whole, part in zip(result, method(own, sample.select(chosen)), strict=True):
                whole[chosen] = part
    return result


def state_on(coefficients: Coefficients, sample: Sample, state: State) -> State:
    """State after further rows."""
    y = np.where(sample.inside[..., None], sample.y, np.inf)
    effect = sample.design @ coefficients.design.swapaxes(1, 2)
    return run(system(sample.shape, coefficients), y, effect, state).state


def forecast(matrices: System, state: State, effect: np.ndarray) -> Forecast:
    """Forecasts as many steps ahead as there are rows of `effect`, w_t of shape (U, h, n).

    Rows of missing values in the Kalman filter.
    """
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


def standardised(sample: Sample, found: Predictions) -> np.ndarray:
    """Errors (U, T, n) whitened by the factor of their covariance, NaN where missing."""
    seen = sample.seen
    both = seen[..., :, None] & seen[..., None, :]
    root = np.linalg.cholesky(np.where(both, found.cov, np.eye(seen.shape[2])))
    errors = np.where(seen, sample.y - found.mean, 0.0)
    return np.where(seen, np.linalg.solve(root, errors[..., None])[..., 0], np.nan)


def _filtered(coefficients: Coefficients, sample: Sample) -> State:
    return predictions(coefficients, sample).state


def _closed(coefficients: Coefficients, sample: Sample) -> State:
    """The state after is linear in that before the data, whose posterior is known."""
    shape = sample.shape
    E = by_unit(columns(coefficients, sample, whitening(coefficients)))
    prior = start(coefficients, sample)
    width = E.shape[3] - 1
    known = posterior(products(E), prior.mean[:, :width], prior.cov[:, :width, :width])
    late = coefficients.chol[:, None] @ _last(E, sample.rows, shape.q)
    values = _last(sample.filled, sample.rows, shape.p)
    by_start = -_carried(shape, coefficients.ma, late[..., 1:])
    mean = _carried(shape, coefficients.ar, values)
    mean += _carried(shape, coefficients.ma, late[..., 0])
    mean += (by_start @ known.mean[..., None])[..., 0]
    return State(mean, by_start @ known.cov @ by_start.swapaxes(1, 2))


def _last(array: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Last rows of each unit, the latest first: (U, count, ...)."""
    return array[np.arange(len(array))[:, None], rows[:, None] - 1 - np.arange(count)]


def _carried(shape: Shape, lags: np.ndarray, past: np.ndarray) -> np.ndarray:
    """Part of the state (U, d, ...) from rows (U, lags, n, ...), the latest first.

    Block i holds what lags i and more add: the sum over j >= i of A_j times row j - i.
    """
    units, count, n = past.shape[:3]
    tail = past.shape[3:]
    flat = past.reshape(units, count, n, math.prod(tail))
    result = np.zeros((units, shape.lags, n, math.prod(tail)))
    for i in range(count):
        result[:, i] = (lags[:, i:] @ flat[:, : count - i]).sum(1)
    return result.reshape(units, shape.d, *tail)
