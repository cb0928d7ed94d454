"""Gaussian log-likelihood of VARMA models with exact first and second derivatives.

The residuals e = E (1, -u) are linear in the state before the first row and in missing values,
which are Gaussian: integrated out in closed form, they leave the exact likelihood, the one that a
Kalman filter computes, as a function of zero-start residuals alone. Derivatives are forward
sensitivities of E, second ones need no more than the adjoint filter besides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.varma._curvature import of_covariance, of_filter, of_mean, through_posterior
from tsrnn.linear.varma._posterior import Posterior, posterior
from tsrnn.linear.varma._residuals import (
    Sensitivities,
    Whitened,
    columns,
    sensitivities,
    whitening,
)
from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._shape import Coefficients, Shape
from tsrnn.linear.varma._stationary import (
    Stationary,
    moments,
    of_no_dimension,
    with_derivatives,
)
from tsrnn.linear.varma._sums import Sums, by_unit, products, sums_over_time
from tsrnn.linear.varma._system import spectral_radius, system

# Numbers that the sensitivities of units evaluated together may take.
_TOGETHER = 2**23
# Squared distance from a maximum, in standard errors, below which Newton's method is faster.
_NEAR = 0.2


class Prepared(NamedTuple):
    """Parameters and sample with all that first derivatives need.

    Attributes
    ----------
    sample : Sample
    coefficients : Coefficients
    white : Whitened
    residuals : Sensitivities
    prior : Stationary
        Of the state before the first row; of no dimension if it is zero.
    """

    sample: Sample
    coefficients: Coefficients
    white: Whitened
    residuals: Sensitivities
    prior: Stationary


def loglik(params: np.ndarray, sample: Sample) -> np.ndarray:
    """Log-likelihood (U,) at parameters (U, k); units with missing values one by one."""
    shape = sample.shape
    coefficients = shape.unpack(params)
    E = columns(coefficients, sample, whitening(coefficients))
    if shape.exact:
        prior = moments(shape, coefficients, system(shape, coefficients), sample.level)
    else:
        prior = of_no_dimension(len(params), 0)[:2]
    return _value(coefficients, sample, posterior(products(by_unit(E)), *prior))


def evaluate(params: np.ndarray, sample: Sample, exact: bool) -> Evaluation:
    """Log-likelihood, gradient and curvature at parameters (U, k), units in portions.

    Units whose parameters are not admissible have the value -inf.
    """
    n_units, k = params.shape
    result = Evaluation(
        np.full(n_units, -np.inf), np.zeros((n_units, k)), np.zeros((n_units, k, k))
    )
    usable = admissible(sample.shape, params, sample.rows)
    for units in portions(sample, np.flatnonzero(usable)):
        part = evaluated(prepared(params[units], sample.select(units)), exact)
        for whole, some in zip(result, part, strict=True):
            whole[units] = some
    return result


def admissible(shape: Shape, params: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Whether units have admissible parameters, (U,).

    The innovations' factor is positive, the autoregression stationary under the exact
    likelihood, and the moving average invertible, or beyond by so little that the search can
    cross the unit circle, on which the likelihood is smooth and often has its maximum.
    """
    coefficients = shape.unpack(params)
    usable = np.isfinite(params).all(1)
    usable &= (np.diagonal(coefficients.chol, axis1=1, axis2=2) > 0).all(1)
    limits = [(coefficients.ma, 1 + 1 / rows)]
    if shape.exact:
        limits.append((coefficients.ar, np.ones(len(rows))))
    for lags, limit in limits:
        usable[usable] = spectral_radius(lags[usable]) < limit[usable]
    return usable


def portions(sample: Sample, units: np.ndarray, *, by_row: bool = False) -> list[np.ndarray]:
    """Units that fit into memory together; those with missing values by themselves.

    With `by_row`, products of columns are kept for every row.
    """
    shape, whole = sample.shape, sample.n_missing[units] == 0
    complete = units[whole]
    width = 1 + shape.exact * shape.d
    each = shape.k * sample.y.shape[1] * width * (shape.n + by_row * (width + shape.n))
    count = min(len(complete), -(-len(complete) * each // _TOGETHER))
    parts = np.array_split(complete, count) if count else []
    return [*parts, *(unit[None] for unit in units[~whole])]


def prepared(params: np.ndarray, sample: Sample) -> Prepared:
    """What first derivatives at admissible parameters (U, k) need."""
    shape = sample.shape
    coefficients = shape.unpack(params)
    white = whitening(coefficients)
    residuals = sensitivities(coefficients, sample, white)
    if shape.exact:
        matrices = system(shape, coefficients)
        prior = with_derivatives(shape, coefficients, matrices, sample.level)
    else:
        prior = of_no_dimension(len(params), shape.k)
    return Prepared(sample, coefficients, white, residuals, prior)


def evaluated(given: Prepared, exact: bool) -> Evaluation:
    """Log-likelihood, gradient and curvature.

    Unless `exact`, the curvature of units that are still far from a maximum is a Gauss-Newton
    matrix.
    """
    sample, coefficients, white, residuals, prior = given
    shape = sample.shape
    sums = sums_over_time(shape, residuals, white)
    found = posterior(sums.G, prior.mean, prior.cov)
    gradient = (sums.slopes * found.weight[:, None]).sum((2, 3))
    gradient += (prior.d_mean * found.by_prior_mean[:, None]).sum(2)
    gradient += (prior.d_cov * found.by_prior_cov[:, None]).sum((2, 3))
    diagonal = np.diagonal(coefficients.chol, axis1=1, axis2=2)
    gradient[:, shape.n_mean + shape.on_diagonal] += 2 * sample.rows[:, None] / diagonal
    first = of_mean(residuals, found.weight)
    if exact:
        bent = _hessian(given, sums, found, first)
    else:
        bent = _gauss_newton(sample, sums, first)
        near = _is_near(gradient, bent)
        if near.any():
            bent[near] = _hessian(given, sums, found, first)[near]
    return Evaluation(_value(coefficients, sample, found), -gradient / 2, bent / 2)


def _hessian(given: Prepared, sums: Sums, found: Posterior, first: np.ndarray) -> np.ndarray:
    """Second derivatives (U, k, k) of -2 log L."""
    sample, coefficients, white, residuals, prior = given
    shape, weight, n_mean = sample.shape, found.weight, sample.shape.n_mean
    result = through_posterior(shape, prior, found, sums.slopes)
    result += of_covariance(shape, coefficients, sample.rows, residuals.lanes, sums, weight)
    adjoint = of_filter(shape, coefficients, white, residuals, sums, weight)
    result[:, :n_mean, :n_mean] += first + adjoint
    return result


def _gauss_newton(sample: Sample, sums: Sums, first: np.ndarray) -> np.ndarray:
    """Positive semidefinite part of the second derivatives of -2 log L."""
    shape, units = sample.shape, len(first)
    result = np.zeros((units, shape.k, shape.k))
    result[:, : shape.n_mean, : shape.n_mean] = first
    flat = sums.shifts.reshape(units, -1, shape.n**2)
    of_chol = sample.rows[:, None, None] * (flat @ flat.swapaxes(1, 2))
    result[:, shape.n_mean :, shape.n_mean :] = of_chol
    return result


def _is_near(gradient: np.ndarray, bent: np.ndarray) -> np.ndarray:
    """Whether a Gauss-Newton step of -2 log L is within a fraction of the standard errors."""
    lifted = bent + 1e-12 * np.trace(bent, axis1=1, axis2=2)[:, None, None] * np.eye(bent.shape[1])
    step = np.linalg.solve(lifted, gradient[..., None])[..., 0]
    return (gradient * step).sum(1) < 2 * _NEAR


def _value(coefficients: Coefficients, sample: Sample, found: Posterior) -> np.ndarray:
    observed = sample.shape.n * sample.rows - sample.n_missing
    diagonal = np.diagonal(coefficients.chol, axis1=1, axis2=2)
    log_det = 2 * sample.rows * np.log(diagonal).sum(1)
    return -(observed * np.log(2 * np.pi) + log_det + found.value) / 2
