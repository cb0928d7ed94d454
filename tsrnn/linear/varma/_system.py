"""State space of a VARMA: matrices, roots, stationary moments of the state with derivatives.

The state a_t is the forecast of y_t, y_{t+1}, ... given the past,

    y_t = a_t[:n] + e_t,    a_{t+1} = T a_t + K e_t + (w_{t+1}, 0, ..., 0),

where T has blocks Phi_i in the first column and I above the diagonal, K has blocks Phi_i + Theta_i,
and w_t is the trend and exogenous part. For p = q = 1 it is the network of Cai et al. (2026),
section 2.1, h_t = (-Theta) h_{t-1} + K y_{t-1}, with the opposite sign of Theta. The stationary
moments of the state solve

    m = T m + (w, 0, ..., 0),    P = T P T' + K Sigma K'.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from tsrnn.linear.varma._specification import Coefficients, Shape


class System(NamedTuple):
    """Matrices of the state of U units: T (U, d, d), K (U, d, n), covariance (U, n, n)."""

    T: np.ndarray
    K: np.ndarray
    sigma: np.ndarray


def system(shape: Shape, coefficients: Coefficients) -> System:
    """State space from coefficients."""
    n, d, units = shape.n, shape.d, len(coefficients.chol)
    phi, theta = (a.reshape(units, a.shape[1] * n, n) for a in (coefficients.ar, coefficients.ma))
    T, K = np.zeros((units, d, d)), np.zeros((units, d, n))
    T[:, : phi.shape[1], :n] = phi
    if d > n:
        above = np.arange(d - n)
        T[:, above, above + n] = 1.0
    K[:, : phi.shape[1]] = phi
    K[:, : theta.shape[1]] += theta
    return System(T, K, coefficients.chol @ coefficients.chol.swapaxes(1, 2))


@cache
def system_derivatives(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives (k, d, d) of T and (k, d, n) of K by each parameter, which are constant."""
    dK = np.zeros((shape.k, shape.d, shape.n))
    dT = np.zeros((shape.k, shape.d, shape.d))
    for where, lags in ((shape.at_ar, shape.p), (shape.at_ma, shape.q)):
        row, lag, column = np.indices((shape.n, lags, shape.n))
        dK[where, lag * shape.n + row, column] = 1.0
        if where is shape.at_ar:
            dT[where, lag * shape.n + row, column] = 1.0
    return dT, dK


@cache
def chol_derivatives(n: int) -> np.ndarray:
    """Derivative of the covariance's factor by each of its entries, (n (n + 1) / 2, n, n)."""
    rows, columns = np.tril_indices(n)
    result = np.zeros((len(rows), n, n))
    result[np.arange(len(rows)), rows, columns] = 1.0
    return result


def root_bound(lags: np.ndarray) -> np.ndarray:
    """Cheap bound (U,) of `spectral_radius`, valid if below one: the largest row sum."""
    return np.abs(lags).sum((1, 3)).max(1)


class Stationary(NamedTuple):
    """Moments of the state of U units before the first row, with derivatives by all parameters."""

    mean: np.ndarray  # (U, d)
    cov: np.ndarray  # (U, d, d)
    d_mean: np.ndarray  # (U, k, d)
    d_cov: np.ndarray  # (U, k, d, d)
    second: tuple[np.ndarray, ...]  # matrices for `stationary_curvature`


def stationary_moments(
    shape: Shape, coefficients: Coefficients, matrices: System, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (U, d) and covariance (U, d, d) of the stationary state.

    `level` is a row of the design, whose effect counts as permanent.
    """
    constant = _padded(shape, _applied(coefficients.design, level))
    mean = np.linalg.solve(_first_order(matrices.T), constant[..., None])[..., 0]
    shocks = matrices.K @ matrices.sigma @ matrices.K.swapaxes(1, 2)
    cov = np.linalg.solve(_second_order(matrices.T), _flat(shocks)[..., None])[..., 0]
    return mean, _square(cov)


class _Places(NamedTuple):
    """Indices that assemble sparse derivatives from lists of values; index 0 is a zero."""

    constants: np.ndarray  # (k, d), dT mean + dw, from 0, the entries of mean and level
    loadings: np.ndarray  # (k, d, d + n), (dT, d(K chol)), from 0, 1, the entries of chol and K
    second: np.ndarray  # (n_mean, k - n_mean), sum of A * (dK d chol), from 0 and A (d, n)


@cache
def _places(shape: Shape) -> _Places:
    n, d, k, n_mean = shape.n, shape.d, shape.k, shape.n_mean
    dT, dK = system_derivatives(shape)
    parameter, row, column = np.nonzero(dT)
    constants = np.zeros((k, d), int)
    constants[parameter, row] = 1 + column
    constants[shape.at_design, np.arange(n)[:, None]] = 1 + d + np.arange(shape.n_design)
    loadings = np.zeros((k, d, d + n), int)
    loadings[parameter, row, column] = 1
    parameter, row, column = np.nonzero(dK)
    loadings[parameter, row, d:] = 2 + n * column[:, None] + np.arange(n)
    second = np.zeros((n_mean, k - n_mean), int)
    for entry, (i, j) in enumerate(zip(*shape.triangle, strict=True)):
        loadings[n_mean + entry, :, d + j] = 2 + n**2 + n * np.arange(d) + i
        second[parameter[column == i], entry] = 1 + n * row[column == i] + j
    return _Places(constants, loadings, second)


def stationary_derivatives(
    shape: Shape, coefficients: Coefficients, matrices: System, level: np.ndarray
) -> Stationary:
    """Stationary moments and their derivatives by the parameters.

    With R = K chol the covariance solves P = T P T' + R R'.
    """
    T, K, _ = matrices
    units, places = len(T), _places(shape)
    R = K @ coefficients.chol
    inverse = np.linalg.inv(_first_order(T))
    operator = np.linalg.inv(_second_order(T))
    mean = _applied(inverse, _padded(shape, _applied(coefficients.design, level)))
    cov = _square(_applied(operator, _flat(R @ R.swapaxes(1, 2))))

    zero = np.zeros((units, 1))
    constants = np.concatenate([zero, mean, level], 1)[:, places.constants]
    d_mean = constants @ inverse.swapaxes(1, 2)
    entries = np.concatenate([zero, zero + 1.0, _flat(coefficients.chol), _flat(K)], 1)
    loadings = entries[:, places.loadings]
    across = np.concatenate([cov @ T.swapaxes(1, 2), R.swapaxes(1, 2)], 1)
    half = loadings @ across[:, None]
    d_cov = _square(_flat(half + half.swapaxes(2, 3)) @ operator.swapaxes(1, 2))
    return Stationary(mean, cov, d_mean, d_cov, (inverse, operator, T, R, loadings))


def known_start(units: int, k: int) -> Stationary:
    """Moments without dimension, for a known first state."""
    square = np.zeros((units, 0, 0))
    d_mean, d_cov = np.zeros((units, k, 0)), np.zeros((units, k, 0, 0))
    return Stationary(np.zeros((units, 0)), square, d_mean, d_cov, ())


def stationary_curvature(
    shape: Shape, prior: Stationary, by_mean: np.ndarray, by_cov: np.ndarray
) -> np.ndarray:
    """Weighted second derivatives (U, k, k) of the stationary moments; `by_cov` is symmetric."""
    inverse, operator, T, R, loadings = prior.second
    units, k, d = len(T), shape.k, shape.d
    # Adjoints of the two linear equations give the weights of their right sides.
    y = by_mean[:, None] @ inverse
    Y = _square(_flat(by_cov)[:, None] @ operator)
    along = (y @ system_derivatives(shape)[0].swapaxes(0, 1).reshape(d, -1)).reshape(units, k, d)
    weighted = Y @ loadings
    through_T = (T.swapaxes(1, 2)[:, None] @ weighted[..., :d]).reshape(units, k, -1)
    crossed = along @ prior.d_mean.swapaxes(1, 2)
    crossed += 2 * through_T @ _flat(prior.d_cov).swapaxes(1, 2)
    entries = np.concatenate([np.zeros((units, 1)), 2 * _flat(Y[:, 0] @ R)], 1)
    crossed[:, : shape.n_mean, shape.n_mean :] += entries[:, _places(shape).second]
    weighted[..., :d] = weighted[..., :d] @ prior.cov[:, None]
    half = weighted.reshape(units, k, -1) @ loadings.reshape(units, k, -1).swapaxes(1, 2)
    return crossed + crossed.swapaxes(1, 2) + 2 * half


@cache
def _identity(d: int) -> np.ndarray:
    return np.eye(d)


def _first_order(T: np.ndarray) -> np.ndarray:
    return _identity(T.shape[1]) - T


def _second_order(T: np.ndarray) -> np.ndarray:
    """Matrix (U, d², d²) of P -> P - T P T' on flattened P."""
    units, d, _ = T.shape
    kron = T[:, :, None, :, None] * T[:, None, :, None, :]
    return _identity(d * d) - kron.reshape(units, d * d, d * d)


def _applied(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrices @ vectors[..., None])[..., 0]


def _padded(shape: Shape, effect: np.ndarray) -> np.ndarray:
    if shape.d == shape.n:
        return effect
    return np.concatenate([effect, np.zeros((len(effect), shape.d - shape.n))], 1)


def _flat(matrices: np.ndarray) -> np.ndarray:
    return matrices.reshape(*matrices.shape[:-2], -1)


def _square(flat: np.ndarray) -> np.ndarray:
    d = round(flat.shape[-1] ** 0.5)
    return flat.reshape(*flat.shape[:-1], d, d)
