"""One-step errors of the exact likelihood, and what follows: scores, expected information.

Without missing values, what the rows before t say of the initial state follows from cumulative
sums of products of residuals: all rows are done at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear.varma._kalman import Innovations, with_derivatives
from tsrnn.linear.varma._likelihood import Prepared
from tsrnn.linear.varma._posterior import moved, posterior
from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._stationary import Stationary
from tsrnn.linear.varma._sums import by_unit
from tsrnn.linear.varma._system import chol_derivatives

# Effect of the initial state on an error, in units of the innovations, that rounding swallows.
_NOTHING = 1e-18


class OuterProducts(NamedTuple):
    """Matrices (U, k, k) of U units: of the scores, and the expected information."""

    opg: np.ndarray
    information: np.ndarray


def outer_products(given: Prepared) -> OuterProducts:
    """Sum of outer products of the scores, and information matrix.

    The information is the sum over rows of that of y given the past (Harvey, 1989, 3.4.65).
    """
    found = innovations(given)
    by_row = scores(found)
    inverse = np.linalg.inv(found.cov)
    units, _, k = by_row.shape
    left = (found.d_error @ inverse).swapaxes(1, 2).reshape(units, k, -1)
    right = found.d_error.swapaxes(1, 2).reshape(units, k, -1)
    information = left @ right.swapaxes(1, 2)
    of_cov = (inverse[:, :, None] @ found.d_cov).swapaxes(1, 2)
    turned = of_cov.swapaxes(3, 4).reshape(units, k, -1)
    information += of_cov.reshape(units, k, -1) @ turned.swapaxes(1, 2) / 2
    return OuterProducts(by_row.swapaxes(1, 2) @ by_row, information)


def scores(found: Innovations) -> np.ndarray:
    """Derivative of each row's log-likelihood, (U, T, k)."""
    inverse = np.linalg.inv(found.cov)
    pressed = inverse @ found.error[..., None]
    by_cov = (pressed @ pressed.swapaxes(2, 3) - inverse) / 2
    flat = found.d_cov.reshape(*found.d_error.shape[:3], -1)
    result = flat @ by_cov.reshape(*by_cov.shape[:2], -1, 1) - found.d_error @ pressed
    return result[..., 0]


def innovations(given: Prepared) -> Innovations:
    """One-step errors and their derivatives, zero after a unit's end.

    Those without missing values are in units of the innovations' factor.
    """
    if given.sample.n_missing.any():
        return with_derivatives(given.coefficients, given.sample, given.prior)
    residuals, shape = given.residuals, given.sample.shape
    half = given.white.inverse[:, None] @ chol_derivatives(shape)
    E = by_unit(residuals.E)
    dE = np.zeros((*E.shape[:2], shape.k, *E.shape[2:]))
    lanes = residuals.lanes
    dE[:, :, lanes.parameter, :, lanes.column] = -residuals.Z.transpose(3, 2, 0, 1)
    return _complete(given.sample, E, dE, half + half.swapaxes(2, 3), given.prior)


def _complete(
    sample: Sample, E: np.ndarray, dE: np.ndarray, shifts: np.ndarray, prior: Stationary
) -> Innovations:
    """From columns (U, T, n, C) and their derivatives (U, T, k, n, C)."""
    shape = sample.shape
    n = shape.n
    error, d_error = E[..., 0].copy(), dE[..., 0].copy()
    F = np.tile(np.eye(n), (*E.shape[:2], 1, 1))
    d_F = np.zeros((*dE.shape[:3], n, n))
    d_F[:, :, shape.n_mean :] = shifts[:, None] * sample.inside[:, :, None, None, None]
    touched = _rows_touched(E[..., 1:], dE[..., 1:])
    result = Innovations(error, F, d_error, d_F)
    if touched:
        _add_start(result, E[:, :touched], dE[:, :touched], shifts, prior, shape.n_mean)
    return result


def _rows_touched(D: np.ndarray, dD: np.ndarray) -> int:
    """Rows from the first to the last on which the initial state has an effect."""
    steps = D.shape[1]
    size = np.maximum(abs(D).max((0, 2, 3), initial=0.0), abs(dD).max((0, 2, 3, 4), initial=0.0))
    far = np.flatnonzero(size > _NOTHING)
    return min(steps, int(far[-1]) + 1) if len(far) else 0


def _add_start(
    result: Innovations,
    E: np.ndarray,
    dE: np.ndarray,
    shifts: np.ndarray,
    prior: Stationary,
    n_mean: int,
) -> None:
    """Put what earlier rows say of the initial state into the first rows, in place."""
    units, steps = E.shape[:2]
    products, d_products = _before_each_row(E, dE[:, :, :n_mean], shifts)

    def by_row(array: np.ndarray) -> np.ndarray:
        return np.repeat(array, steps, 0)

    known = posterior(products, by_row(prior.mean), by_row(prior.cov))
    later = moved(known, d_products, by_row(prior.d_mean), by_row(prior.d_cov))
    mean, cov, d_mean, d_cov = (
        array.reshape(units, steps, *array.shape[1:]) for array in (known.mean, known.cov, *later)
    )
    D, dD = E[..., 1:], dE[..., 1:]
    across = D.swapaxes(2, 3)
    result.error[:, :steps] -= (D @ mean[..., None])[..., 0]
    result.cov[:, :steps] += D @ cov @ across
    result.d_error[:, :steps] -= (dD @ mean[:, :, None, :, None])[..., 0] + d_mean @ across
    half = dD @ (cov @ across)[:, :, None]
    change = half + half.swapaxes(3, 4) + D[:, :, None] @ d_cov @ across[:, :, None]
    result.d_cov[:, :steps] += change


def _before_each_row(
    E: np.ndarray, J: np.ndarray, shifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Products of whitened columns over earlier rows and their derivatives, units by rows."""
    half = J.swapaxes(3, 4) @ E[:, :, None]
    by_chol = E[:, :, None].swapaxes(3, 4) @ shifts[:, None] @ E[:, :, None]
    each = E.swapaxes(2, 3) @ E
    d_each = np.concatenate([half + half.swapaxes(3, 4), -by_chol], 2)
    return _summed_before(each), _summed_before(d_each)


def _summed_before(each: np.ndarray) -> np.ndarray:
    """Cumulative sums over the second axis, the own row left out; first two axes merged."""
    total = np.zeros_like(each)
    np.cumsum(each[:, :-1], axis=1, out=total[:, 1:])
    return total.reshape(-1, *each.shape[2:])
