"""Mean and covariance of the stationary state, and their derivatives.

m = T m + (w, 0, ..., 0),    P = T P T' + K Sigma K'.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear.varma._shape import Coefficients, Shape
from tsrnn.linear.varma._system import System, chol_derivatives, derivatives


class Stationary(NamedTuple):
    """Moments of the state of U units before the first row.

    Attributes
    ----------
    mean, cov : arrays of shape (U, d), (U, d, d)
    d_mean, d_cov : arrays of shape (U, k, d), (U, k, d, d)
        Derivatives by all parameters.
    second : tuple
        What `curvature` needs.
    """

    mean: np.ndarray
    cov: np.ndarray
    d_mean: np.ndarray
    d_cov: np.ndarray
    second: tuple[np.ndarray, ...]


def moments(
    shape: Shape, coefficients: Coefficients, matrices: System, level: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (U, d) and covariance (U, d, d) of the state.

    Parameters
    ----------
    level : array of shape (U, n_design)
        Row of the design whose effect is taken to have lasted for ever.
    """
    constant = _padded(shape, _applied(coefficients.design, level))
    mean = np.linalg.solve(_first_order(matrices.T), constant[..., None])[..., 0]
    shocks = matrices.K @ matrices.sigma @ matrices.K.swapaxes(1, 2)
    cov = np.linalg.solve(_second_order(matrices.T), _flat(shocks)[..., None])[..., 0]
    return mean, _square(cov)


def with_derivatives(
    shape: Shape, coefficients: Coefficients, matrices: System, level: np.ndarray
) -> Stationary:
    """Moments and their derivatives by the parameters."""
    T, K, sigma = matrices
    dT, dK = derivatives(shape)
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


def of_no_dimension(units: int, k: int) -> Stationary:
    """What stands for the moments of a state that is known."""
    square = np.zeros((units, 0, 0))
    d_mean, d_cov = np.zeros((units, k, 0)), np.zeros((units, k, 0, 0))
    return Stationary(np.zeros((units, 0)), square, d_mean, d_cov, ())


def curvature(
    shape: Shape, moments: Stationary, by_mean: np.ndarray, by_cov: np.ndarray
) -> np.ndarray:
    """Second derivatives of the moments, weighted: (U, k, k).

    Parameters
    ----------
    by_mean, by_cov : arrays of shape (U, d), (U, d, d)
        The weights; `by_cov` symmetric.
    """
    inverse, operator, T, K, sigma, d_sigma = moments.second
    dT, dK = derivatives(shape)
    units, k, n_mean = len(T), shape.k, shape.n_mean
    y = _applied(inverse.swapaxes(1, 2), by_mean)
    along = y @ dT.swapaxes(0, 1).reshape(shape.d, -1)
    crossed = along.reshape(units, k, shape.d) @ moments.d_mean.swapaxes(1, 2)

    Y = _square(_applied(operator.swapaxes(1, 2), _flat(by_cov)))[:, None]
    flat_T, flat_K = dT.reshape(k, -1), dK.reshape(k, -1)
    half = (Y @ dT @ moments.cov[:, None]).reshape(units, k, -1) @ flat_T.T
    half += (Y @ dK @ sigma[:, None]).reshape(units, k, -1) @ flat_K.T
    through_T = T.swapaxes(1, 2)[:, None] @ (Y @ dT)
    crossed += 2 * through_T.reshape(units, k, -1) @ _flat(moments.d_cov).swapaxes(1, 2)
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
