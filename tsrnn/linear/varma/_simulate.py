"""Draws of whole series."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsrnn.linear._multivariate import draw_normal
from tsrnn.linear.varma._forecast import start
from tsrnn.linear.varma._panels import trend_of
from tsrnn.linear.varma._sample import Sample, offsets
from tsrnn.linear.varma._shape import Shape
from tsrnn.linear.varma._system import System, system


def draw(
    shape: Shape, params: np.ndarray, steps: int, generator: np.random.Generator
) -> np.ndarray:
    """Draw U series (U, steps, n) with normal innovations, their state stationary at first.

    Parameters
    ----------
    shape : Shape
        Without exogenous columns.
    params : array of shape (U, k)
        Of stationary models.
    steps : int
    generator : numpy.random.Generator
    """
    shape = replace(shape, exact=True)
    coefficients, units, n = shape.unpack(params), len(params), shape.n
    T, K, _ = system(shape, coefficients)
    design = trend_of(shape, np.zeros(units, int), max(steps, 2))
    nothing = np.full((units, steps, n), np.nan)
    rows = np.full(units, steps)
    first = start(coefficients, Sample(shape, nothing, design, np.zeros((units, n)), rows))
    effect = offsets(shape, design, coefficients.design)
    z = generator.standard_normal((units, shape.d, 1))
    state = first.mean + draw_normal(first.cov, z)[..., 0]
    shocks = generator.standard_normal((units, steps, n)) @ coefficients.chol.swapaxes(1, 2)
    y = np.empty_like(nothing)
    for t in range(steps):
        state[:, :n] += effect[:, t]
        y[:, t] = state[:, :n] + shocks[:, t]
        state = (T @ state[..., None] + K @ shocks[:, t, :, None])[..., 0]
    return y


def draw_errors(
    matrices: System, cov: np.ndarray, shape: tuple[int, int], generator: np.random.Generator
) -> np.ndarray:
    """Draw errors (U, n, h, paths) of forecasts of all steps, for shape = (h, paths).

    Parameters
    ----------
    matrices : System
    cov : array of shape (U, d, d)
        Of the state after the last row.
    shape : tuple of int
    generator : numpy.random.Generator
    """
    T, K, sigma = matrices
    (h, paths), (units, n) = shape, sigma.shape[:2]
    state = draw_normal(cov, generator.standard_normal((*cov.shape[:2], paths)))
    errors = np.empty((units, n, h, paths))
    for k in range(h):
        shocks = draw_normal(sigma, generator.standard_normal((units, n, paths)))
        errors[:, :, k] = state[:, :n] + shocks
        state = T @ state + K @ shocks
    return errors
