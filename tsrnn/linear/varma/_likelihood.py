"""Gaussian log-likelihood of VARMA models with exact first and second derivatives.

The residuals e = E (1, -u) are linear in the unknowns u, the state before the first row and missing
values, which are Gaussian. Integrating them out in closed form gives the exact likelihood of the
Kalman filter as a function of E alone. First derivatives are forward sensitivities of E; second
derivatives also use the adjoint filter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._multivariate import spectral_radius
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.varma._posterior import Posterior, bordered, posterior_curvature, posterior_of
from tsrnn.linear.varma._prepare import Sample
from tsrnn.linear.varma._residuals import Filter, Sensitivities, sensitivities
from tsrnn.linear.varma._specification import Coefficients, Shape
from tsrnn.linear.varma._system import (
    Stationary,
    chol_derivatives,
    known_start,
    root_bound,
    stationary_curvature,
    stationary_derivatives,
    system,
)

_TOGETHER = 2**23  # floats of the sensitivities of units evaluated together: 64 MB
_NEAR = 0.2  # squared distance in standard errors within which Newton's method is faster


def evaluate(params: np.ndarray, sample: Sample, exact: bool) -> Evaluation:
    """Log-likelihood, gradient and curvature at parameters (U, k), in portions of units.

    Units with inadmissible parameters have value -inf.
    """
    n_units, k = params.shape
    parts = portions(sample, np.flatnonzero(admissible(sample.shape, params, sample.rows)))
    if len(parts) == 1 and len(parts[0]) == n_units:
        return evaluate_portion(linearised(params, sample), exact)
    result = Evaluation(
        np.full(n_units, -np.inf), np.zeros((n_units, k)), np.zeros((n_units, k, k))
    )
    for units in parts:
        part = evaluate_portion(linearised(params[units], sample.select(units)), exact)
        for whole, values in zip(result, part, strict=True):
            whole[units] = values
    return result


def admissible(shape: Shape, params: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Mask (U,) of units with admissible parameters.

    The diagonal of the innovations' factor must be positive, with the exact likelihood the
    autoregression stationary, and the moving average invertible or barely beyond: a search may
    cross the unit circle, where the likelihood is smooth and often has its maximum.
    """
    usable = np.isfinite(params).all(1)
    usable &= (params[:, shape.n_mean + shape.on_diagonal] > 0).all(1)
    limits = [(shape.at_ma, 1 + 1 / rows)]
    if shape.exact:
        limits.append((shape.at_ar, np.ones(len(rows))))
    for at, limit in limits:
        lags = params[:, at].swapaxes(1, 2)
        doubtful = usable & ~(root_bound(lags) < 1)
        if doubtful.any():
            usable[doubtful] = spectral_radius(lags[doubtful]) < limit[doubtful]
    return usable


def portions(sample: Sample, units: np.ndarray, *, by_row: bool = False) -> list[np.ndarray]:
    """Split units into portions that fit into memory; units with missing values are alone.

    With `by_row`, memory includes products of columns for every row.
    """
    shape, whole = sample.shape, sample.n_missing[units] == 0
    complete = units if whole.all() else units[whole]
    width = 1 + shape.exact * shape.d
    each = shape.k * sample.y.shape[1] * width * (shape.n + by_row * (width + shape.n))
    count = min(len(complete), -(-len(complete) * each // _TOGETHER))
    parts = np.array_split(complete, count) if count > 1 else [complete] * count
    return [*parts, *(unit[None] for unit in units[~whole])]


class Linearisation(NamedTuple):
    """Residuals and prior of the first state at given parameters, with first derivatives."""

    sample: Sample
    coefficients: Coefficients
    filter: Filter
    residuals: Sensitivities
    prior: Stationary  # of the state before the first row; without dimension if it is zero


def linearised(params: np.ndarray, sample: Sample) -> Linearisation:
    """Linearisation at admissible parameters (U, k)."""
    shape = sample.shape
    coefficients = shape.unpack(params)
    filter_ = Filter(coefficients, sample.y.shape[1])
    residuals = sensitivities(coefficients, sample, filter_)
    if shape.exact:
        matrices = system(shape, coefficients)
        prior = stationary_derivatives(shape, coefficients, matrices, sample.level)
    else:
        prior = known_start(len(params), shape.k)
    return Linearisation(sample, coefficients, filter_, residuals, prior)


def evaluate_portion(at: Linearisation, exact: bool) -> Evaluation:
    """Log-likelihood, gradient and curvature of a portion of units.

    Unless `exact`, units far from a maximum have a Gauss-Newton curvature.
    """
    sample, coefficients, _, residuals, prior = at
    shape, n_mean = sample.shape, sample.shape.n_mean
    sums = sums_over_time(coefficients, residuals)
    posterior = posterior_of(sums.G, prior.mean, prior.cov)
    slopes = bordered(sums.slopes, prior.d_mean, prior.d_cov)
    units, k = slopes.shape[:2]
    weight = posterior.weight.reshape(units, -1, 1)
    gradient = (slopes.reshape(units, k, -1) @ weight)[..., 0]
    diagonal = np.diagonal(coefficients.chol, axis1=1, axis2=2)
    gradient[:, n_mean + shape.on_diagonal] += 2 * sample.rows[:, None] / diagonal
    value = _value(coefficients, sample, posterior)
    width = sums.G.shape[1]
    by_mean = _mean_curvature(residuals, posterior.weight[:, :width, :width])
    if exact:
        bent = _hessian(at, sums, posterior, slopes, by_mean)
        return Evaluation(value, -gradient / 2, bent / 2)
    # Positive semidefinite: products of the mean's first derivatives, and information in Sigma.
    bent = np.zeros((units, k, k))
    bent[:, :n_mean, :n_mean] = by_mean
    shifts = (sums.half + sums.half.swapaxes(2, 3)).reshape(units, -1, shape.n**2)
    bent[:, n_mean:, n_mean:] = sample.rows[:, None, None] * (shifts @ shifts.swapaxes(1, 2))
    # A negligible ridge, so that a singular matrix, far from a maximum, can be solved.
    diagonal = np.einsum("uii->ui", bent)
    diagonal += 1e-12 * diagonal.sum(1, keepdims=True)
    # Newton's method takes over if the step is a fraction of the standard errors.
    step = np.linalg.solve(bent, gradient[..., None])[..., 0]
    near = (gradient * step).sum(1) < 2 * _NEAR
    if near.any():
        bent[near] = _hessian(at, sums, posterior, slopes, by_mean)[near]
    return Evaluation(value, -gradient / 2, bent / 2)


def _value(coefficients: Coefficients, sample: Sample, posterior: Posterior) -> np.ndarray:
    observed = sample.shape.n * sample.rows - sample.n_missing
    diagonal = np.diagonal(coefficients.chol, axis1=1, axis2=2)
    log_det = 2 * sample.rows * np.log(diagonal).sum(1)
    return -(observed * np.log(2 * np.pi) + log_det + posterior.value) / 2


class Sums(NamedTuple):
    """Sums over time of products of residual columns and their derivatives, of U units."""

    pairs: np.ndarray  # (U, n, n, C, C), of E[i, c] E[j, c']
    crossed: np.ndarray  # (U, n, L, n, C), of Z[i, l] E[j, c]
    G: np.ndarray  # (U, C, C), E'E
    slopes: np.ndarray  # (U, k, C, C), derivatives of G by all parameters
    half: np.ndarray  # (U, k - n_mean, n, n), whitened derivatives of the innovations' factor


def sums_over_time(coefficients: Coefficients, residuals: Sensitivities) -> Sums:
    """Sums for the likelihood and its gradient."""
    lanes, (steps, n, units, width) = residuals.lanes, residuals.E.shape
    E = by_unit(residuals.E).reshape(units, steps, n * width)
    pairs = (E.swapaxes(1, 2) @ E).reshape(units, n, width, n, width).swapaxes(2, 3)
    flat = pairs.reshape(units, n**2, width**2)
    G = flat[:, :: n + 1].sum(1).reshape(units, width, width)
    crossed = over_time(residuals.Z, E).reshape(units, n, -1, n, width)
    half = whitened_slopes(coefficients.chol)
    n_mean = len(lanes.choice)
    dG = np.zeros((units, n_mean + half.shape[1], width, width))
    dG[:, lanes.parameter, lanes.column] = -np.einsum("uilic->ulc", crossed)
    by_chol = half.reshape(units, -1, n**2) @ flat
    np.negative(by_chol.reshape(units, -1, width, width), out=dG[:, n_mean:])
    dG += dG.swapaxes(2, 3)
    return Sums(pairs, crossed, G, dG, half)


def whitened_slopes(chol: np.ndarray) -> np.ndarray:
    """Derivatives (U, m, n, n) of the innovations' factor in units of the innovations."""
    return np.linalg.inv(chol)[:, None] @ chol_derivatives(chol.shape[1])


def by_unit(array: np.ndarray) -> np.ndarray:
    """Copy (U, T, n, C) of an array (T, n, U, C)."""
    return np.ascontiguousarray(array.transpose(2, 0, 1, 3))


def by_target(array: np.ndarray, i: int) -> np.ndarray:
    """View (U, T, L) of one target of an array (T, n, U, L)."""
    return array[:, i].swapaxes(0, 1)


def over_time(Z: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Products (U, n, L, C) of an array (T, n, U, L) and columns (U, T, C), summed over time."""
    _, n, units, lanes = Z.shape
    result = np.empty((units, n, lanes, E.shape[2]))
    for i in range(n):
        np.matmul(by_target(Z, i).swapaxes(1, 2), E, out=result[:, i])
    return result


def products(E: np.ndarray) -> np.ndarray:
    """E'E, (U, C, C), of columns (U, T, n, C)."""
    rows = E.reshape(len(E), -1, E.shape[-1])
    return rows.swapaxes(1, 2) @ rows


def _hessian(
    at: Linearisation, sums: Sums, posterior: Posterior, slopes: np.ndarray, by_mean: np.ndarray
) -> np.ndarray:
    """Second derivatives (U, k, k) of -2 log L."""
    shape, width = at.sample.shape, sums.G.shape[1]
    weight = posterior.weight[:, :width, :width]
    result = _covariance_curvature(at, sums, weight)
    result[:, : shape.n_mean, : shape.n_mean] += by_mean + _filter_curvature(at, weight)
    if width > 1:
        result += posterior_curvature(posterior, slopes)
    if at.prior.second:
        by_prior = 2 * posterior.weight[:, 0, width:], -posterior.weight[:, width:, width:]
        result += stationary_curvature(shape, at.prior, *by_prior)
    return result


def _mean_curvature(residuals: Sensitivities, weight: np.ndarray) -> np.ndarray:
    """Gauss-Newton part (U, n_mean, n_mean) of the curvature, positive semidefinite."""
    lanes, n = residuals.lanes, residuals.Z.shape[1]
    rows = [by_target(residuals.Z, i) for i in range(n)]
    gram = sum(row.swapaxes(1, 2) @ row for row in rows)
    if residuals.E.shape[3] > 1:
        gram = gram * (lanes.of_column @ weight @ lanes.of_column.T)
    return 2 * (lanes.choice @ gram @ lanes.choice.T)


def _filter_curvature(at: Linearisation, weight: np.ndarray) -> np.ndarray:
    """Residuals times their second derivatives, by the transposed filter: (U, n_mean, n_mean)."""
    shape, residuals = at.sample.shape, at.residuals
    steps, n, units, width = residuals.E.shape
    result = np.zeros((units, shape.n_mean, shape.n_mean))
    if not shape.q:
        return result
    weighted = (by_unit(residuals.E).reshape(units, -1, width) @ weight).reshape(
        units, steps, n, -1
    )
    adjoint = by_unit(at.filter.run_back(weighted.transpose(1, 2, 0, 3)))
    adjoint = adjoint.reshape(units, steps, n * width)
    lanes, every = residuals.lanes, np.arange(len(residuals.lanes.column))
    for j in range(1, shape.q + 1):
        met = over_time(residuals.Z[: steps - j], adjoint[:, j:])
        met = met.reshape(units, n, -1, n, width)[:, :, every, :, lanes.column]
        plain = at.coefficients.chol[:, None] @ met.transpose(1, 3, 2, 0)
        result[:, shape.at_ma[:, j - 1]] += plain @ lanes.choice.T
    return 2 * (result + result.swapaxes(1, 2))


def _covariance_curvature(at: Linearisation, sums: Sums, weight: np.ndarray) -> np.ndarray:
    """Second derivatives (U, k, k) by the innovations' factor, alone and with the mean."""
    shape, lanes, half = at.sample.shape, at.residuals.lanes, sums.half
    units, n_mean, n = len(weight), shape.n_mean, shape.n
    result = np.zeros((units, shape.k, shape.k))
    flat = half.reshape(units, -1, n * n).swapaxes(1, 2)
    weighted = np.einsum("uiljc,ulc->ulij", sums.crossed, lanes.of_column @ weight)
    by_parameter = lanes.choice @ weighted.reshape(units, -1, n * n)
    both = by_parameter.reshape(units, n_mean, n, n)
    across = 2 * (both + both.swapaxes(2, 3)).reshape(units, n_mean, n * n) @ flat
    result[:, :n_mean, n_mean:] = across
    result[:, n_mean:, :n_mean] = across.swapaxes(1, 2)
    squares = sums.pairs.reshape(units, n * n, -1) @ weight.reshape(units, -1, 1)
    squares = squares.reshape(units, 1, n, n)
    left, right = (half @ squares), (squares @ half).swapaxes(2, 3)
    once = left.reshape(units, -1, n * n) @ flat
    twice = right.reshape(units, -1, n * n) @ flat
    diagonal = np.diagonal(at.coefficients.chol, axis1=1, axis2=2)
    inner = result[:, n_mean:, n_mean:]
    inner += 2 * (once + twice + twice.swapaxes(1, 2))
    inner[:, shape.on_diagonal, shape.on_diagonal] -= 2 * at.sample.rows[:, None] / diagonal**2
    return result
