r"""Posterior of the unknown state and of missing values, and its part of the likelihood.

With E the columns of residuals whitened by the innovations' covariance and G = E'E, the sum of
squares of e = E (1, -u) is quadratic in the unknowns u = (x, m): x has the stationary
distribution N(mean, P) as its prior, the missing values m a flat one. Integrated out, they leave
a function of one bordered matrix,

.. math::
    -2 \log L = \dots + \log |\det H| + G_{00} - b' H^{-1} b, \qquad
    \begin{pmatrix} G_{00} & b' \\ b & H \end{pmatrix} =
    \begin{pmatrix} G_{00} & G_{0x} & G_{0m} & \text{mean}' \\
                    G_{x0} & G_{xx} & G_{xm} & I \\
                    G_{m0} & G_{mx} & G_{mm} & 0 \\
                    \text{mean} & I & 0 & -P \end{pmatrix},

because H^{-1} has the posterior covariance of u in its first block and minus the inverse of
P + M^{-1} in the last one, M being the information on x. P may be singular: it is not inverted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Posterior(NamedTuple):
    """Gaussian distribution of the c unknowns of U units given their data.

    Attributes
    ----------
    value : array of shape (U,)
        Part of -2 log L, beside constants and T log |Sigma|.
    mean, cov : arrays of shape (U, c), (U, c, c)
    signed : array of shape (U, 1 + c + d)
        (1, -H^{-1} b), which begins with (1, -mean).
    inverse : array of shape (U, c + d, c + d)
        H^{-1}.
    weight : array of shape (U, 1 + c + d, 1 + c + d)
        Derivative of `value` by the bordered matrix.
    """

    value: np.ndarray
    mean: np.ndarray
    cov: np.ndarray
    signed: np.ndarray
    inverse: np.ndarray
    weight: np.ndarray


def bordered(G: np.ndarray, prior_mean: np.ndarray, prior_cov: np.ndarray) -> np.ndarray:
    """Bordered matrix, but for the identities in it, which no derivative has.

    Of G (..., 1 + c, 1 + c) and of a prior of the first d <= c unknowns, or of their derivatives.
    """
    width = G.shape[-1]
    size = width + prior_mean.shape[-1]
    result = np.zeros((*G.shape[:-2], size, size))
    result[..., :width, :width] = G
    result[..., 0, width:] = result[..., width:, 0] = prior_mean
    result[..., width:, width:] = -prior_cov
    return result


def posterior_of(G: np.ndarray, prior_mean: np.ndarray, prior_cov: np.ndarray) -> Posterior:
    """Integrate the unknowns out of cross products G (U, 1 + c, 1 + c) of the whitened columns."""
    whole, c = bordered(G, prior_mean, prior_cov), G.shape[1] - 1
    state = np.arange(1, 1 + prior_mean.shape[1])
    whole[:, state, c + state] = whole[:, c + state, state] = 1.0
    H, b = whole[:, 1:, 1:], whole[:, 1:, :1]
    inverse = np.linalg.inv(H)
    signed = np.ones((len(G), len(whole[0]), 1))
    np.negative(inverse @ b, out=signed[:, 1:])
    # Sums of squares about the posterior mean, in which its rounding errors count as squares; in
    # G_00 - b' H^{-1} b, the same, they would not, and a state of a large variance has large ones.
    value = np.linalg.slogdet(H)[1]
    for matrix, u in ((G, signed[:, : c + 1]), (prior_cov, signed[:, c + 1 :])):
        value += (u.swapaxes(1, 2) @ matrix @ u)[:, 0, 0]
    weight = signed @ signed.swapaxes(1, 2)
    weight[:, 1:, 1:] += inverse
    mean, cov = -signed[:, 1 : 1 + c, 0], inverse[:, :c, :c]
    return Posterior(value, mean, cov, signed[..., 0], inverse, weight)


def posterior_derivatives(
    posterior: Posterior, slopes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of mean (U, k, c) and covariance (U, k, c, c) of a posterior.

    From those (U, k, 1 + c + d, 1 + c + d) of the bordered matrix.
    """
    c, inverse = posterior.mean.shape[1], posterior.inverse
    mean = _moved(posterior, slopes) @ inverse[:, :, :c]
    cov = -inverse[:, None, :c] @ slopes[:, :, 1:, 1:] @ inverse[:, None, :, :c]
    return mean, cov


def posterior_curvature(posterior: Posterior, slopes: np.ndarray) -> np.ndarray:
    """Second derivatives (U, k, k) of the value where the bordered matrix is linear."""
    moved, inverse = _moved(posterior, slopes), posterior.inverse
    turned = inverse[:, None] @ slopes[:, :, 1:, 1:]
    flat = (*turned.shape[:2], -1)
    products = turned.reshape(flat) @ turned.swapaxes(2, 3).reshape(flat).swapaxes(1, 2)
    return -2 * (moved @ inverse @ moved.swapaxes(1, 2)) - products


def _moved(posterior: Posterior, slopes: np.ndarray) -> np.ndarray:
    """Derivatives of b less those of H times H^{-1} b, (U, k, c + d)."""
    return (slopes[:, :, 1:] @ posterior.signed[:, None, :, None])[..., 0]
