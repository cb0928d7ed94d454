"""VARMA as a linear recurrent network: the matrices of its state.

The state a_t holds what the past says of y_t and of the lags of y after it,

    y_t = a_t[:n] + e_t,    a_{t+1} = T a_t + K e_t + (w_{t+1}, 0, ..., 0),

with block i of T = Phi_i in the first column and I above the diagonal, block i of
K = Phi_i + Theta_i, and w_t the trend and exogenous part. Cai et al. (2026), section 2.1, have
it for p = q = 1 with the opposite sign of Theta, as h_t = (-Theta) h_{t-1} + K y_{t-1}.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from tsrnn.linear.varma._shape import Coefficients, Shape


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
def derivatives(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
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
    return np.abs(roots(lags)).max(1, initial=0.0)


def roots(lags: np.ndarray) -> np.ndarray:
    """Inverse roots of I - A_1 z - A_2 z^2 ...: eigenvalues (U, lags * n) of the companion."""
    units, count, n, _ = lags.shape
    if count < 2:
        return np.linalg.eigvals(lags[:, 0]) if count else np.zeros((units, 0))
    companion = np.zeros((units, count * n, count * n))
    companion[:, :n] = lags.swapaxes(1, 2).reshape(units, n, count * n)
    below = np.arange((count - 1) * n)
    companion[:, below + n, below] = 1.0
    return np.linalg.eigvals(companion)
