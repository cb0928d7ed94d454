"""Sums over time of products of residual columns and of their derivatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear.varma._residuals import Sensitivities, Whitened
from tsrnn.linear.varma._shape import Shape
from tsrnn.linear.varma._system import chol_derivatives


class Sums(NamedTuple):
    """Of U units.

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
        Those of the covariance.
    """

    E: np.ndarray
    G: np.ndarray
    slopes: np.ndarray
    crossed: np.ndarray
    half: np.ndarray
    shifts: np.ndarray


def sums_over_time(shape: Shape, residuals: Sensitivities, white: Whitened) -> Sums:
    """All that the likelihood and its gradient need of the sample."""
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
