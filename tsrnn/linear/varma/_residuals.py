"""Residuals of a VARMA model as linear functions of what is not known, and their derivatives.

Given the coefficients, the residuals of a sample are linear in the state x before the first
row and in the missing values m: e = E (1, -x, -m). The columns of E, and their derivatives
by the coefficients, are outputs of one linear recurrence, the moving-average filter, with
different inputs: lanes that run side by side. All are in units of the innovations, that is
multiplied by the inverse of their factor; time comes first in every array, as in the filter.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tsrnn.linear.varma._moving_average import filtered
from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._shape import Coefficients, Shape


class Whitened(NamedTuple):
    """Whitened filter: inverse factor (U, n, n) and moving average (U, q, n, n)."""

    inverse: np.ndarray
    ma: np.ndarray


class Lanes(NamedTuple):
    """Which parameter's derivative of which column each of L lanes is.

    Attributes
    ----------
    parameter, column : integer arrays of shape (L,)
    choice : array of shape (n_mean, L)
        One where a lane belongs to a parameter: it adds up lanes by parameter.
    """

    parameter: np.ndarray
    column: np.ndarray
    choice: np.ndarray


class Sensitivities(NamedTuple):
    """Columns and minus their derivatives, those that are not zero everywhere.

    Attributes
    ----------
    E : array of shape (T, n, U, C)
    Z : array of shape (T, n, U, L)
    lanes : Lanes
    """

    E: np.ndarray
    Z: np.ndarray
    lanes: Lanes


def whitening(coefficients: Coefficients) -> Whitened:
    """The filter in units of the innovations."""
    inverse = np.linalg.inv(coefficients.chol)
    turned = inverse[:, None] @ coefficients.ma @ coefficients.chol[:, None]
    return Whitened(inverse, turned)


def columns(coefficients: Coefficients, sample: Sample, white: Whitened) -> np.ndarray:
    """The matrix E, (T, n, U, C): zero-start residuals, then a column an unknown.

    Units with missing values must come one by one.
    """
    return _within(filtered(white.ma, _forcing(coefficients, sample, white)), sample)


def sensitivities(coefficients: Coefficients, sample: Sample, white: Whitened) -> Sensitivities:
    """E and its derivatives by the coefficients of the mean."""
    shape = sample.shape
    n = shape.n
    E = filtered(white.ma, _forcing(coefficients, sample, white))
    steps, _, units, _ = E.shape
    inputs = [sample.sources.swapaxes(0, 1)]
    times, targets = sample.missing
    if len(times):
        inputs.append(_missing_sources(shape.p, steps, times))
    plain = _plain(coefficients.chol, E) if shape.q else E
    for j in range(1, shape.q + 1):
        late = np.zeros_like(plain)
        late[j:] = plain[: steps - j]
        inputs.append(late)
    every = np.concatenate(inputs, 2)
    count = every.shape[2]
    forcing = np.zeros((steps, n, units, n, count))
    for i in range(n):
        for a in range(i + 1):
            np.multiply(every, white.inverse[:, i, a, None], out=forcing[:, i, :, a])
    Z = filtered(white.ma, forcing.reshape(steps, n, units, n * count))
    lanes = _lanes(shape, tuple(targets))
    return Sensitivities(_within(E, sample), _within(Z, sample), lanes)


def _forcing(coefficients: Coefficients, sample: Sample, white: Whitened) -> np.ndarray:
    """Inputs of the filter for E, (T, n, U, C)."""
    shape, inverse = sample.shape, white.inverse
    n, d = shape.n, shape.d if shape.exact else 0
    times, targets = sample.missing
    units, steps, _ = sample.y.shape
    forcing = np.zeros((steps, n, units, 1 + d + len(times)))
    weights = [coefficients.design, *coefficients.ar.swapaxes(0, 1)]
    mean = sample.sources @ np.concatenate(weights, 2).swapaxes(1, 2)
    left = (sample.filled - mean) @ inverse.swapaxes(1, 2)
    forcing[..., 0] = left.transpose(1, 2, 0)
    for lag in range(min(d // n, steps)):
        forcing[lag, :, :, 1 + lag * n : 1 + (lag + 1) * n] = inverse.swapaxes(0, 1)
    for column, (t, i) in enumerate(zip(times, targets, strict=True), start=1 + d):
        forcing[t, :, 0, column] = inverse[0, :, i]
        for lag, phi in enumerate(coefficients.ar[0, : steps - 1 - t], start=1):
            forcing[t + lag, :, 0, column] -= inverse[0] @ phi[:, i]
    return forcing


def _missing_sources(p: int, steps: int, times: np.ndarray) -> np.ndarray:
    """What autoregressive coefficients multiply in the columns of missing values."""
    result = np.zeros((steps + p, 1, p, len(times)))
    for lag in range(1, p + 1):
        result[times + lag, 0, lag - 1, np.arange(len(times))] = 1.0
    return result[:steps].reshape(steps, 1, p * len(times))


def _plain(chol: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Columns in the units of the data, (T, U, n C)."""
    steps, n, units, width = E.shape
    flat = E.reshape(steps, n, units * width)
    result = np.zeros((steps, units, n, width))
    for i in range(n):
        terms = [np.repeat(chol[:, i, j], width) * flat[:, j] for j in range(i + 1)]
        result[:, :, i] = sum(terms[1:], terms[0]).reshape(steps, units, width)
    return result.reshape(steps, units, n * width)


@lru_cache(maxsize=64)
def _lanes(shape: Shape, missing: tuple[int, ...]) -> Lanes:
    """Lanes equation by equation, in the order of the inputs; targets of missing values given."""
    n, p, q = shape.n, shape.p, shape.q
    n_missing, targets = len(missing), np.array(missing, int)
    width = 1 + (shape.d if shape.exact else 0) + n_missing
    column = np.concatenate(
        [
            np.zeros(shape.n_design + p * n, int),
            np.tile(width - n_missing + np.arange(n_missing), p),
            np.tile(np.arange(width), q * n),
        ]
    )
    parameter = np.concatenate(
        [
            shape.at_design,
            shape.at_ar.reshape(n, p * n),
            shape.at_ar[:, :, targets].reshape(n, p * n_missing),
            np.repeat(shape.at_ma.reshape(n, q * n), width, 1),
        ],
        1,
    ).ravel()
    choice = (np.arange(shape.n_mean)[:, None] == parameter).astype(float)
    return Lanes(parameter, np.tile(column, n), choice)


def _within(array: np.ndarray, sample: Sample) -> np.ndarray:
    """Zero after the end of each unit."""
    if sample.is_whole:
        return array
    return np.where(sample.inside.T[:, None, :, None], array, 0.0)
