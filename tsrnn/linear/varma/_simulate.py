"""Draws of whole series."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsrnn.linear.varma._forecast import start
from tsrnn.linear.varma._panels import trend_of
from tsrnn.linear.varma._sample import Sample, offsets
from tsrnn.linear.varma._shape import Shape
from tsrnn.linear.varma._system import system


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
    state = first.mean + _normal(first.cov, generator.standard_normal((units, shape.d)))
    shocks = generator.standard_normal((units, steps, n)) @ coefficients.chol.swapaxes(1, 2)
    y = np.empty_like(nothing)
    for t in range(steps):
        state[:, :n] += effect[:, t]
        y[:, t] = state[:, :n] + shocks[:, t]
        state = (T @ state[..., None] + K @ shocks[:, t, :, None])[..., 0]
    return y


def _normal(cov: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Normal draws (U, d) from independent ones; covariances may be singular."""
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
    return (root @ z[..., None])[..., 0]
