"""State space of VARMA: matrices, roots, the stationary moments of the state, with derivatives.

The state a_t is the forecast of y_t and of the lags of y after it given the past,

    y_t = a_t[:n] + e_t,    a_{t+1} = T a_t + K e_t + (w_{t+1}, 0, ..., 0),

with block i of T = Phi_i in the first column and I above the diagonal, block i of
K = Phi_i + Theta_i, and w_t the trend and exogenous part. Cai et al. (2026), section 2.1, have
it for p = q = 1 with the opposite sign of Theta, as h_t = (-Theta) h_{t-1} + K y_{t-1}. Its
stationary moments solve

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
    """State space of coefficients."""
    n, lags, units = shape.n, shape.lags, len(coefficients.chol)
    phi, theta = (
        np.concatenate([a, np.zeros((units, lags - a.shape[1], n, n))], 1)
        for a in (coefficients.ar, coefficients.ma)
    )
    phi, theta = (a.reshape(units, shape.d, n) for a in (phi, theta))
    T = np.zeros((units, shape.d, shape.d))
    T[:, :, :n] = phi
    above = np.arange(shape.d - n)
    T[:, above, above + n] = 1.0
    sigma = coefficients.chol @ coefficients.chol.swapaxes(1, 2)
    return System(T, phi + theta, sigma)


@cache
def system_derivatives(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of T and K by each parameter, constant: (k, d, d) and (k, d, n)."""
    dK = np.zeros((shape.k, shape.d, shape.n))
    dT = np.zeros((shape.k, shape.d, shape.d))
    for where, lags in ((shape.at_ar, shape.p), (shape.at_ma, shape.q)):
        row, lag, column = np.indices((shape.n, lags, shape.n))
        dK[where, lag * shape.n + row, column] = 1.0
        if where is shape.at_ar:
            dT[where, lag * shape.n + row, column] = 1.0
    return dT, dK


@cache
def chol_derivatives(shape: Shape) -> np.ndarray:
    """Derivative of the covariance's factor by each of its entries, (k - n_mean, n, n)."""
    rows, columns = shape.triangle
    result = np.zeros((len(rows), shape.n, shape.n))
    result[np.arange(len(rows)), rows, columns] = 1.0
    return result


def spectral_radius(lags: np.ndarray) -> np.ndarray:
    """Largest modulus of the roots of coefficient matrices (U, lags, n, n), zero if none."""
    return np.abs(inverse_roots(lags)).max(1, initial=0.0)


def inverse_roots(lags: np.ndarray) -> np.ndarray:
    """Inverse roots of I - A_1 z - A_2 z^2 ...: eigenvalues (U, lags * n) of the companion."""
    units, count, n, _ = lags.shape
    if count < 2:
        return np.linalg.eigvals(lags[:, 0]) if count else np.zeros((units, 0))
    companion = np.zeros((units, count * n, count * n))
    companion[:, :n] = lags.swapaxes(1, 2).reshape(units, n, count * n)
    below = np.arange((count - 1) * n)
    companion[:, below + n, below] = 1.0
    return np.linalg.eigvals(companion)


class Stationary(NamedTuple):
    """Moments of the state of U units before the first row.

    Attributes
    ----------
    mean, cov : arrays of shape (U, d), (U, d, d)
    d_mean, d_cov : arrays of shape (U, k, d), (U, k, d, d)
        Derivatives by all parameters.
    second : tuple
        Matrices for `stationary_curvature`.
    """

    mean: np.ndarray
    cov: np.ndarray
    d_mean: np.ndarray
    d_cov: np.ndarray
    second: tuple[np.ndarray, ...]


def stationary_moments(
    shape: Shape, coefficients: Coefficients, matrices: System, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (U, d) and covariance (U, d, d) of the stationary state.

    `level` is the row of the design whose effect is taken to have lasted for ever.
    """
    constant = _padded(shape, _applied(coefficients.design, level))
    mean = np.linalg.solve(_first_order(matrices.T), constant[..., None])[..., 0]
    shocks = matrices.K @ matrices.sigma @ matrices.K.swapaxes(1, 2)
    cov = np.linalg.solve(_second_order(matrices.T), _flat(shocks)[..., None])[..., 0]
    return mean, _square(cov)


def stationary_derivatives(
    shape: Shape, coefficients: Coefficients, matrices: System, level: np.ndarray
) -> Stationary:
    """Stationary moments and their derivatives by the parameters."""
    T, K, sigma = matrices
    dT, dK = system_derivatives(shape)
    d_sigma = _sigma_derivatives(shape, coefficients)
    inverse = np.linalg.inv(_first_order(T))
    operator = np.linalg.inv(_second_order(T))
    effect = _applied(coefficients.design, level)
    mean = _applied(inverse, _padded(shape, effect))
    cov = _square(_applied(operator, _flat(K @ sigma @ K.swapaxes(1, 2))))

    sources = (dT @ mean[:, None, :, None])[..., 0]
    sources[:, shape.at_design, np.arange(shape.n)[:, None]] += level[:, None]
    d_mean = sources @ inverse.swapaxes(1, 2)

    half = dT @ (cov @ T.swapaxes(1, 2))[:, None] + dK @ (sigma @ K.swapaxes(1, 2))[:, None]
    shocks = half + half.swapaxes(2, 3)
    shocks[:, shape.n_mean :] += K[:, None] @ d_sigma @ K[:, None].swapaxes(2, 3)
    d_cov = _square(_flat(shocks) @ operator.swapaxes(1, 2))
    return Stationary(mean, cov, d_mean, d_cov, (inverse, operator, T, K, sigma, d_sigma))


def known_start(units: int, k: int) -> Stationary:
    """Moments of no dimension, for a state that is known."""
    square = np.zeros((units, 0, 0))
    d_mean, d_cov = np.zeros((units, k, 0)), np.zeros((units, k, 0, 0))
    return Stationary(np.zeros((units, 0)), square, d_mean, d_cov, ())


def stationary_curvature(
    shape: Shape, prior: Stationary, by_mean: np.ndarray, by_cov: np.ndarray
) -> np.ndarray:
    """Second derivatives (U, k, k) of the stationary moments, weighted, `by_cov` symmetric."""
    inverse, operator, T, K, sigma, d_sigma = prior.second
    dT, dK = system_derivatives(shape)
    units, k, n_mean = len(T), shape.k, shape.n_mean
    y = _applied(inverse.swapaxes(1, 2), by_mean)
    along = y @ dT.swapaxes(0, 1).reshape(shape.d, -1)
    crossed = along.reshape(units, k, shape.d) @ prior.d_mean.swapaxes(1, 2)

    Y = _square(_applied(operator.swapaxes(1, 2), _flat(by_cov)))[:, None]
    flat_T, flat_K = dT.reshape(k, -1), dK.reshape(k, -1)
    half = (Y @ dT @ prior.cov[:, None]).reshape(units, k, -1) @ flat_T.T
    half += (Y @ dK @ sigma[:, None]).reshape(units, k, -1) @ flat_K.T
    through_T = T.swapaxes(1, 2)[:, None] @ (Y @ dT)
    crossed += 2 * through_T.reshape(units, k, -1) @ _flat(prior.d_cov).swapaxes(1, 2)
    through_K = (K.swapaxes(1, 2)[:, None] @ (Y @ dK)).reshape(units, k, -1)
    crossed[..., n_mean:] += 2 * through_K @ _flat(d_sigma).swapaxes(1, 2)
    result = crossed + crossed.swapaxes(1, 2) + 2 * half
    inner = K.swapaxes(1, 2) @ Y[:, 0] @ K
    d_chol = chol_derivatives(shape)
    pushed = (inner[:, None] @ d_chol).reshape(units, len(d_chol), -1)
    result[:, n_mean:, n_mean:] += 2 * pushed @ d_chol.reshape(len(d_chol), -1).T
    return result


def _sigma_derivatives(shape: Shape, coefficients: Coefficients) -> np.ndarray:
    """Derivatives of the innovations' covariance by its factor, (U, k - n_mean, n, n)."""
    half = chol_derivatives(shape) @ coefficients.chol[:, None].swapaxes(2, 3)
    return half + half.swapaxes(2, 3)


def _first_order(T: np.ndarray) -> np.ndarray:
    return np.eye(T.shape[1]) - T


def _second_order(T: np.ndarray) -> np.ndarray:
    """The matrix of P -> P - T P T' on flattened P."""
    units, d, _ = T.shape
    kron = np.einsum("uij,ukl->uikjl", T, T).reshape(units, d * d, d * d)
    return np.eye(d * d) - kron


def _applied(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrices @ vectors[..., None])[..., 0]


def _padded(shape: Shape, effect: np.ndarray) -> np.ndarray:
    return np.concatenate([effect, np.zeros((len(effect), shape.d - shape.n))], 1)


def _flat(matrices: np.ndarray) -> np.ndarray:
    return matrices.reshape(*matrices.shape[:-2], -1)


def _square(flat: np.ndarray) -> np.ndarray:
    d = round(flat.shape[-1] ** 0.5)
    return flat.reshape(*flat.shape[:-1], d, d)
