r"""Posterior of the unknown state and of missing values, and its part of the likelihood.

Let E be the columns of whitened residuals and G = E'E. The sum of squares of e = E (1, -u) is
quadratic in the unknowns u = (x, m). The state x has the stationary distribution N(mean, P) as its
prior, the missing values m a flat prior. Integrating u out gives a function of one bordered matrix,

.. math::
    -2 \log L = \dots + \log |\det H| + G_{00} - b' H^{-1} b, \qquad
    \begin{pmatrix} G_{00} & b' \\ b & H \end{pmatrix} =
    \begin{pmatrix} G_{00} & G_{0x} & G_{0m} & \text{mean}' \\
                    G_{x0} & G_{xx} & G_{xm} & I \\
                    G_{m0} & G_{mx} & G_{mm} & 0 \\
                    \text{mean} & I & 0 & -P \end{pmatrix},

because the first block of H^{-1} is the posterior covariance of u, and its last block minus the
inverse of P + M^{-1} with the information M on x. P may be singular and is not inverted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Posterior(NamedTuple):
    """Gaussian posterior of the c unknowns of U units."""

    value: np.ndarray  # (U,), -2 log L without constants and T log |Sigma|
    mean: np.ndarray  # (U, c)
    cov: np.ndarray  # (U, c, c)
    signed: np.ndarray  # (U, 1 + c + d), (1, -H^{-1} b), which begins with (1, -mean)
    inverse: np.ndarray  # (U, c + d, c + d), H^{-1}
    weight: np.ndarray  # (U, 1 + c + d, 1 + c + d), derivative of `value` by the bordered matrix


def bordered(G: np.ndarray, prior_mean: np.ndarray, prior_cov: np.ndarray) -> np.ndarray:
    """Bordered matrix without its identities, so that derivatives have the same layout.

    G has shape (..., 1 + c, 1 + c); the prior is of the first d <= c unknowns.
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
    # Sums of squares about the posterior mean: rounding errors of the mean enter squared. In the
    # equal G_00 - b' H^{-1} b they enter linearly, and a state of large variance has large errors.
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
    """Derivatives of a posterior's mean (U, k, c) and covariance (U, k, c, c).

    `slopes` (U, k, 1 + c + d, 1 + c + d) are derivatives of the bordered matrix.
    """
    c, inverse = posterior.mean.shape[1], posterior.inverse
    mean = _solution_force(posterior, slopes) @ inverse[:, :, :c]
    cov = -inverse[:, None, :c] @ slopes[:, :, 1:, 1:] @ inverse[:, None, :, :c]
    return mean, cov


def posterior_curvature(posterior: Posterior, slopes: np.ndarray) -> np.ndarray:
    """Second derivatives (U, k, k) of the value for a linear bordered matrix."""
    force, inverse = _solution_force(posterior, slopes), posterior.inverse
    scaled = inverse[:, None] @ slopes[:, :, 1:, 1:]
    flat = (*scaled.shape[:2], -1)
    products = scaled.reshape(flat) @ scaled.swapaxes(2, 3).reshape(flat).swapaxes(1, 2)
    return -2 * (force @ inverse @ force.swapaxes(1, 2)) - products


def _solution_force(posterior: Posterior, slopes: np.ndarray) -> np.ndarray:
    """Right side db - dH H^{-1} b (U, k, c + d) of the derivative of H^{-1} b."""
    return (slopes[:, :, 1:] @ posterior.signed[:, None, :, None])[..., 0]
