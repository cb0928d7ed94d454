"""Posterior of the unknown state and of missing values, and its part of the likelihood.

With E the columns of residuals whitened by the innovations' covariance and G = E'E, the sum of
squares of e = E (1, -u) is quadratic in the unknowns u = (x, m): x has the stationary
distribution N(mean, P) as its prior, the missing values m a flat one. Integrating them out,

    -2 log L = ... + (1, -u*) G (1, -u*)' + (x* - mean)' P^{-1} (x* - mean)
               + log |I + P M| + log |G_mm|,

u* being the posterior mean and M the information on x once m is integrated out. P may be
singular: it is never inverted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Posterior(NamedTuple):
    """Gaussian distribution of the unknowns of U units given their data.

    Attributes
    ----------
    value : array of shape (U,)
        Part of -2 log L, beside constants and T log |Sigma|.
    mean, cov : arrays of shape (U, c), (U, c, c)
    weight : array of shape (U, 1 + c, 1 + c)
        Derivative of `value` by G: E[(1, -u)(1, -u)'].
    by_prior_mean, by_prior_cov : arrays of shape (U, d), (U, d, d)
        Derivatives of `value` by the prior's moments.
    gain : array of shape (U, c, d)
        cov[:, :d] P^{-1}, the derivative of the posterior mean by the prior mean.
    pull : array of shape (U, d)
        P^{-1} (x* - mean).
    precision : array of shape (U, d, d)
        (P + M^{-1})^{-1}.
    """

    value: np.ndarray
    mean: np.ndarray
    cov: np.ndarray
    weight: np.ndarray
    by_prior_mean: np.ndarray
    by_prior_cov: np.ndarray
    gain: np.ndarray
    pull: np.ndarray
    precision: np.ndarray


class Change(NamedTuple):
    """Derivatives of a posterior by k parameters.

    Attributes
    ----------
    weight : array of shape (U, k, 1 + c, 1 + c)
    pull : array of shape (U, k, d)
    by_prior_cov : array of shape (U, k, d, d)
    """

    weight: np.ndarray
    pull: np.ndarray
    by_prior_cov: np.ndarray


def posterior_of(G: np.ndarray, prior_mean: np.ndarray, prior_cov: np.ndarray) -> Posterior:
    """Integrate the unknowns out of cross products G (U, 1 + c, 1 + c) of the whitened columns.

    The prior is of the first d <= c unknowns; the others have a flat one.
    """
    d = prior_mean.shape[1]
    M, b = G[:, 1:, 1:], G[:, 1:, 0]
    log_det, cov, gain, precision = _covariance(M, prior_cov)
    ahead = b - (M[:, :, :d] @ prior_mean[..., None])[..., 0]
    mean = (cov @ ahead[..., None])[..., 0]
    mean[:, :d] += prior_mean
    pull = (gain.swapaxes(1, 2) @ ahead[..., None])[..., 0]
    signed = np.concatenate([np.ones((len(G), 1)), -mean], 1)
    value = log_det + _quadratic(G, signed) + _quadratic(prior_cov, pull)
    weight = signed[:, :, None] * signed[:, None, :]
    weight[:, 1:, 1:] += cov
    by_prior_cov = precision - pull[:, :, None] * pull[:, None, :]
    return Posterior(value, mean, cov, weight, -2 * pull, by_prior_cov, gain, pull, precision)


def _quadratic(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Quadratic form x'Ax of each unit, (U,)."""
    return ((matrices @ vectors[..., None])[..., 0] * vectors).sum(1)


def _covariance(
    M: np.ndarray, P: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Log-determinant, covariance, gain and (P + M^-1)^-1, the flat unknowns eliminated first."""
    units, c, _ = M.shape
    d = P.shape[1]
    log_det = np.zeros(units)
    information = M[:, :d, :d]  # on the state, once missing values are integrated out
    if c > d:
        flat = np.linalg.inv(M[:, d:, d:])
        log_det += np.linalg.slogdet(M[:, d:, d:])[1]
        loading = -flat @ M[:, d:, :d]
        information = information + M[:, :d, d:] @ loading
    if d:
        spread = np.eye(d) + P @ information
        log_det += np.linalg.slogdet(spread)[1]
        gain = np.linalg.inv(spread)
    else:
        gain = np.empty((units, 0, 0))
    cov, precision = gain @ P, information @ gain
    if c > d:
        across = cov @ loading.swapaxes(1, 2)
        corner = flat + loading @ across
        cov = np.block([[cov, across], [across.swapaxes(1, 2), corner]])
        gain = np.concatenate([gain, loading @ gain], 1)
    return log_det, cov, gain, (precision + precision.swapaxes(1, 2)) / 2


def posterior_derivatives(
    posterior: Posterior, dG: np.ndarray, d_prior_mean: np.ndarray, d_prior_cov: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of mean (U, k, c) and covariance (U, k, c, c) of a posterior.

    Parameters are the derivatives (U, k, ...) of G and of the prior's moments.
    """
    cov, gain = posterior.cov[:, None], posterior.gain[:, None]
    mean = (cov @ _ahead(posterior, dG)[..., None])[..., 0]
    mean += (gain @ _toward(posterior, d_prior_mean, d_prior_cov)[..., None])[..., 0]
    d_cov = gain @ d_prior_cov @ gain.swapaxes(2, 3) - cov @ dG[:, :, 1:, 1:] @ cov
    return mean, d_cov


def posterior_change(
    posterior: Posterior, dG: np.ndarray, d_prior_mean: np.ndarray, d_prior_cov: np.ndarray
) -> Change:
    """Derivatives of a posterior from those (U, k, ...) of G and of the prior's moments."""
    mean, cov = posterior_derivatives(posterior, dG, d_prior_mean, d_prior_cov)
    gain, precision = posterior.gain[:, None], posterior.precision[:, None]
    back = gain.swapaxes(2, 3)
    pull = (back @ _ahead(posterior, dG)[..., None])[..., 0]
    pull -= (precision @ _toward(posterior, d_prior_mean, d_prior_cov)[..., None])[..., 0]
    weight = np.zeros(dG.shape)
    weight[:, :, 0, 1:] = weight[:, :, 1:, 0] = -mean
    outer = mean[..., :, None] * posterior.mean[:, None, None, :]
    weight[:, :, 1:, 1:] = cov + outer + outer.swapaxes(2, 3)
    outer = pull[..., :, None] * posterior.pull[:, None, None, :]
    by_prior_cov = back @ dG[:, :, 1:, 1:] @ gain - precision @ d_prior_cov @ precision
    by_prior_cov -= outer + outer.swapaxes(2, 3)
    return Change(weight, pull, by_prior_cov)


def _ahead(posterior: Posterior, dG: np.ndarray) -> np.ndarray:
    """Change of the pull of the data at the posterior mean, (U, k, c)."""
    return dG[:, :, 1:, 0] - (dG[:, :, 1:, 1:] @ posterior.mean[:, None, :, None])[..., 0]


def _toward(posterior: Posterior, d_prior_mean: np.ndarray, d_prior_cov: np.ndarray) -> np.ndarray:
    """Change of the prior's centre, and of the room that a wider prior gives, (U, k, d)."""
    return d_prior_mean + (d_prior_cov @ posterior.pull[:, None, :, None])[..., 0]
