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
from tsrnn.linear.varma._posterior import Posterior, posterior_change, posterior_of
from tsrnn.linear.varma._prepare import Sample
from tsrnn.linear.varma._residuals import (
    Sensitivities,
    Whitened,
    filtered_backwards,
    sensitivities,
    whitening,
)
from tsrnn.linear.varma._specification import Coefficients, Shape
from tsrnn.linear.varma._system import (
    Stationary,
    chol_derivatives,
    known_start,
    spectral_radius,
    stationary_curvature,
    stationary_derivatives,
    system,
)

# Numbers that the sensitivities of units evaluated together may take.
_TOGETHER = 2**23  # 64 MB
# Squared distance from a maximum, in standard errors, below which Newton's method is faster.
_NEAR = 0.2


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
        part = evaluate_portion(linearised(params[units], sample.select(units)), exact)
        for whole, values in zip(result, part, strict=True):
            whole[units] = values
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


class Linearisation(NamedTuple):
    """Residuals and the prior of the first state at some parameters, with first derivatives.

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


def linearised(params: np.ndarray, sample: Sample) -> Linearisation:
    """Linearisation at admissible parameters (U, k)."""
    shape = sample.shape
    coefficients = shape.unpack(params)
    white = whitening(coefficients)
    residuals = sensitivities(coefficients, sample, white)
    if shape.exact:
        matrices = system(shape, coefficients)
        prior = stationary_derivatives(shape, coefficients, matrices, sample.level)
    else:
        prior = known_start(len(params), shape.k)
    return Linearisation(sample, coefficients, white, residuals, prior)


def evaluate_portion(at: Linearisation, exact: bool) -> Evaluation:
    """Log-likelihood, gradient and curvature of units together.

    Unless `exact`, the curvature of units that are still far from a maximum is a Gauss-Newton
    matrix.
    """
    sample, coefficients, white, residuals, prior = at
    shape, n_mean = sample.shape, sample.shape.n_mean
    sums = sums_over_time(shape, residuals, white)
    posterior = posterior_of(sums.G, prior.mean, prior.cov)
    gradient = (sums.slopes * posterior.weight[:, None]).sum((2, 3))
    gradient += (prior.d_mean * posterior.by_prior_mean[:, None]).sum(2)
    gradient += (prior.d_cov * posterior.by_prior_cov[:, None]).sum((2, 3))
    diagonal = np.diagonal(coefficients.chol, axis1=1, axis2=2)
    gradient[:, n_mean + shape.on_diagonal] += 2 * sample.rows[:, None] / diagonal
    value = _value(coefficients, sample, posterior)
    by_mean = _mean_curvature(residuals, posterior.weight)
    if exact:
        bent = _hessian(at, sums, posterior, by_mean)
        return Evaluation(value, -gradient / 2, bent / 2)
    # Positive semidefinite: products of first derivatives of the mean, the information in Sigma.
    bent = np.zeros((len(by_mean), shape.k, shape.k))
    bent[:, :n_mean, :n_mean] = by_mean
    flat = sums.shifts.reshape(len(by_mean), -1, shape.n**2)
    bent[:, n_mean:, n_mean:] = sample.rows[:, None, None] * (flat @ flat.swapaxes(1, 2))
    # Where its step is a fraction of the standard errors, Newton's method takes over.
    # A ridge that rounding swallows, so that a singular matrix, of units far away, can be solved.
    lift = 1e-12 * np.trace(bent, axis1=1, axis2=2)[:, None, None] * np.eye(shape.k)
    step = np.linalg.solve(bent + lift, gradient[..., None])[..., 0]
    near = (gradient * step).sum(1) < 2 * _NEAR
    if near.any():
        bent[near] = _hessian(at, sums, posterior, by_mean)[near]
    return Evaluation(value, -gradient / 2, bent / 2)


def _value(coefficients: Coefficients, sample: Sample, posterior: Posterior) -> np.ndarray:
    observed = sample.shape.n * sample.rows - sample.n_missing
    diagonal = np.diagonal(coefficients.chol, axis1=1, axis2=2)
    log_det = 2 * sample.rows * np.log(diagonal).sum(1)
    return -(observed * np.log(2 * np.pi) + log_det + posterior.value) / 2


class Sums(NamedTuple):
    """Sums over time of products of residual columns and of their derivatives, of U units.

    Attributes
    ----------
    E : array of shape (U, T, n, C)
        The columns, unit by unit.
    G : array of shape (U, C, C)
        E'E.
    slopes : array of shape (U, k, C, C)
        Derivatives of G by all parameters.
    crossed : array of shape (U, n, L, n, C)
        Sum of Z[i, l] E[j, c] over time.
    half : array of shape (U, k - n_mean, n, n)
        Derivatives of the innovations' factor, whitened.
    shifts : array of shape (U, k - n_mean, n, n)
        Derivatives of the innovations' covariance, whitened.
    """

    E: np.ndarray
    G: np.ndarray
    slopes: np.ndarray
    crossed: np.ndarray
    half: np.ndarray
    shifts: np.ndarray


def sums_over_time(shape: Shape, residuals: Sensitivities, white: Whitened) -> Sums:
    """Sums for the likelihood and its gradient."""
    lanes, E = residuals.lanes, by_unit(residuals.E)
    units, steps, n, width = E.shape
    flat = E.reshape(units, steps, n * width)
    crossed = np.stack([by_target(residuals.Z, i).swapaxes(1, 2) @ flat for i in range(n)], 1)
    crossed = crossed.reshape(units, n, -1, n, width)
    half = white.inverse[:, None] @ chol_derivatives(shape)
    shifts = half + half.swapaxes(2, 3)
    dG = np.zeros((units, shape.k, width, width))
    dG[:, lanes.parameter, lanes.column] = -np.einsum("uilic->ulc", crossed)
    mixed = shifts[:, :, None] @ E[:, None]
    mixed = mixed.reshape(units, shifts.shape[1], steps * n, width)
    rows = E.reshape(units, steps * n, width)
    dG[:, shape.n_mean :] = mixed.swapaxes(2, 3) @ rows[:, None] * -0.5
    dG += dG.swapaxes(2, 3)
    return Sums(E, products(E), dG, crossed, half, shifts)


def by_unit(array: np.ndarray) -> np.ndarray:
    """Copy (U, T, n, C) of an array (T, n, U, C)."""
    return np.ascontiguousarray(array.transpose(2, 0, 1, 3))


def by_target(array: np.ndarray, i: int) -> np.ndarray:
    """View (U, T, L) of one target of an array (T, n, U, L)."""
    return array[:, i].swapaxes(0, 1)


def products(E: np.ndarray) -> np.ndarray:
    """E'E, (U, C, C), of columns (U, T, n, C)."""
    rows = E.reshape(len(E), -1, E.shape[-1])
    return rows.swapaxes(1, 2) @ rows


def _hessian(
    at: Linearisation, sums: Sums, posterior: Posterior, by_mean: np.ndarray
) -> np.ndarray:
    """Second derivatives (U, k, k) of -2 log L."""
    shape, n_mean = at.sample.shape, at.sample.shape.n_mean
    result = _posterior_curvature(shape, at.prior, posterior, sums.slopes)
    result += _covariance_curvature(at, sums, posterior.weight)
    adjoint = _filter_curvature(at, sums, posterior.weight)
    result[:, :n_mean, :n_mean] += by_mean + adjoint
    return result


def _mean_curvature(residuals: Sensitivities, weight: np.ndarray) -> np.ndarray:
    """Products of first derivatives of the residuals, (U, n_mean, n_mean).

    The Gauss-Newton part of the curvature, positive semidefinite.
    """
    lanes, (steps, n, units, count) = residuals.lanes, residuals.Z.shape
    rows = residuals.Z.reshape(steps * n, units, count).swapaxes(0, 1)
    gram = rows.swapaxes(1, 2) @ rows
    if weight.shape[1] > 1:
        gram *= weight[:, lanes.column[:, None], lanes.column]
    return 2 * (lanes.choice @ gram @ lanes.choice.T)


def _filter_curvature(at: Linearisation, sums: Sums, weight: np.ndarray) -> np.ndarray:
    """Residuals times their second derivatives, by the adjoint filter: (U, n_mean, n_mean)."""
    sample, coefficients, white, residuals, _ = at
    shape = sample.shape
    units, steps, n, width = sums.E.shape
    result = np.zeros((units, shape.n_mean, shape.n_mean))
    if not shape.q:
        return result
    forcing = 2 * (sums.E.reshape(units, steps * n, width) @ weight)
    forcing = forcing.reshape(sums.E.shape).transpose(1, 2, 0, 3)
    adjoint = by_unit(filtered_backwards(white.ma, forcing)).reshape(units, steps, n * width)
    lanes, every = residuals.lanes, np.arange(len(residuals.lanes.column))
    for j in range(1, shape.q + 1):
        late = adjoint[:, j:].swapaxes(1, 2)
        met = [late @ by_target(residuals.Z[: steps - j], i) for i in range(n)]
        met = [part.reshape(units, n, width, -1)[:, :, lanes.column, every] for part in met]
        plain = np.stack(met, 2)  # equation, target, lane
        plain = (coefficients.chol[:, None] @ plain).reshape(units, n, -1)
        plain = (white.inverse.swapaxes(1, 2) @ plain).reshape(units, n, n, -1)
        result[:, shape.at_ma[:, j - 1]] += plain @ lanes.choice.T
    return result + result.swapaxes(1, 2)


def _covariance_curvature(at: Linearisation, sums: Sums, weight: np.ndarray) -> np.ndarray:
    """Second derivatives by the innovations' factor and by it and the mean, (U, k, k)."""
    shape, lanes, n_rows = at.sample.shape, at.residuals.lanes, at.sample.rows
    units, n_mean, n = len(n_rows), shape.n_mean, shape.n
    result = np.zeros((units, shape.k, shape.k))
    shifts = sums.shifts.reshape(units, -1, n * n)
    pressed = np.einsum("uiljc,ulc->ulij", sums.crossed, weight[:, lanes.column])
    by_parameter = lanes.choice @ pressed.reshape(units, -1, n * n)
    across = 2 * by_parameter @ shifts.swapaxes(1, 2)
    result[:, :n_mean, n_mean:] = across
    result[:, n_mean:, :n_mean] = across.swapaxes(1, 2)
    weighted = (sums.E.reshape(units, -1, weight.shape[1]) @ weight).reshape(sums.E.shape)
    squares = _by_pair(weighted) @ _by_pair(sums.E).swapaxes(1, 2)
    squares = squares[:, None]
    double = (sums.shifts @ squares).reshape(units, -1, n * n) @ shifts.swapaxes(1, 2)
    half = sums.half.reshape(units, -1, n * n)
    double -= (squares @ sums.half).reshape(units, -1, n * n) @ half.swapaxes(1, 2)
    inner = result[:, n_mean:, n_mean:]
    inner += double + double.swapaxes(1, 2)
    diagonal = np.diagonal(at.coefficients.chol, axis1=1, axis2=2)
    inner[:, shape.on_diagonal, shape.on_diagonal] -= 2 * n_rows[:, None] / diagonal**2
    return result


def _posterior_curvature(
    shape: Shape, prior: Stationary, posterior: Posterior, dG: np.ndarray
) -> np.ndarray:
    """Second derivatives through the posterior and through the prior, (U, k, k)."""
    if not posterior.mean.shape[1]:
        return np.zeros((len(dG), shape.k, shape.k))

    def flat(array: np.ndarray) -> np.ndarray:
        return array.reshape(*array.shape[:2], -1)

    moved = posterior_change(posterior, dG, prior.d_mean, prior.d_cov)
    result = flat(moved.weight) @ flat(dG).swapaxes(1, 2)
    result += flat(moved.by_prior_cov) @ flat(prior.d_cov).swapaxes(1, 2)
    result -= 2 * moved.pull @ prior.d_mean.swapaxes(1, 2)
    return result + stationary_curvature(
        shape, prior, posterior.by_prior_mean, posterior.by_prior_cov
    )


def _by_pair(array: np.ndarray) -> np.ndarray:
    """Targets by rows and columns, (U, n, T C), of (U, T, n, C)."""
    return array.swapaxes(1, 2).reshape(len(array), array.shape[2], -1)
