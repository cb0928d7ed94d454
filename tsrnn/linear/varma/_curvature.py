"""The parts of the second derivatives of -2 log L."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.varma._moving_average import filtered_backwards
from tsrnn.linear.varma._posterior import Posterior, change
from tsrnn.linear.varma._residuals import Lanes, Sensitivities, Whitened
from tsrnn.linear.varma._shape import Coefficients, Shape
from tsrnn.linear.varma._stationary import Stationary, curvature
from tsrnn.linear.varma._sums import Sums, by_target, by_unit


def of_mean(residuals: Sensitivities, weight: np.ndarray) -> np.ndarray:
    """Products of first derivatives of the residuals, (U, n_mean, n_mean).

    The Gauss-Newton part of the curvature, positive semidefinite.
    """
    lanes, (steps, n, units, count) = residuals.lanes, residuals.Z.shape
    rows = residuals.Z.reshape(steps * n, units, count).swapaxes(0, 1)
    gram = rows.swapaxes(1, 2) @ rows
    if weight.shape[1] > 1:
        gram *= weight[:, lanes.column[:, None], lanes.column]
    return 2 * (lanes.choice @ gram @ lanes.choice.T)


def of_filter(
    shape: Shape,
    coefficients: Coefficients,
    white: Whitened,
    residuals: Sensitivities,
    sums: Sums,
    weight: np.ndarray,
) -> np.ndarray:
    """Residuals times their second derivatives, by the adjoint filter: (U, n_mean, n_mean)."""
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
        own = [part.reshape(units, n, width, -1)[:, :, lanes.column, every] for part in met]
        plain = np.stack(own, 2)  # equation, target, lane
        plain = (coefficients.chol[:, None] @ plain).reshape(units, n, -1)
        plain = (white.inverse.swapaxes(1, 2) @ plain).reshape(units, n, n, -1)
        result[:, shape.at_ma[:, j - 1]] += plain @ lanes.choice.T
    return result + result.swapaxes(1, 2)


def of_covariance(
    shape: Shape,
    coefficients: Coefficients,
    n_rows: np.ndarray,
    lanes: Lanes,
    sums: Sums,
    weight: np.ndarray,
) -> np.ndarray:
    """What has to do with the innovations' factor, (U, k, k)."""
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
    diagonal = np.diagonal(coefficients.chol, axis1=1, axis2=2)
    inner[:, shape.on_diagonal, shape.on_diagonal] -= 2 * n_rows[:, None] / diagonal**2
    return result


def through_posterior(
    shape: Shape, prior: Stationary, found: Posterior, dG: np.ndarray
) -> np.ndarray:
    """How the posterior moves, and second derivatives of the prior: (U, k, k)."""
    if not found.mean.shape[1]:
        return np.zeros((len(dG), shape.k, shape.k))

    def flat(array: np.ndarray) -> np.ndarray:
        return array.reshape(*array.shape[:2], -1)

    moved = change(found, dG, prior.d_mean, prior.d_cov)
    result = flat(moved.weight) @ flat(dG).swapaxes(1, 2)
    result += flat(moved.by_prior_cov) @ flat(prior.d_cov).swapaxes(1, 2)
    result -= 2 * moved.pull @ prior.d_mean.swapaxes(1, 2)
    return result + curvature(shape, prior, found.by_prior_mean, found.by_prior_cov)


def _by_pair(array: np.ndarray) -> np.ndarray:
    """Targets by rows and columns, (U, n, T C), of (U, T, n, C)."""
    return array.swapaxes(1, 2).reshape(len(array), array.shape[2], -1)
