"""Residuals of a VARMA model as linear functions of what is not known, and their derivatives.

Given the coefficients, the residuals of a sample are linear in the state x before the first
row and in the missing values m: e = E (1, -x, -m). The columns of E, and their derivatives
by the coefficients, are outputs of one linear recurrence, the moving-average filter
Theta(L)^{-1}, with different inputs: lanes that run side by side. All are in units of the
innovations, that is multiplied by the inverse of their factor; time comes first in every array,
as in the filter.
"""

from __future__ import annotations

from functools import cache, lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import lapack

from tsrnn.kernels import Cell, recurrence
from tsrnn.linear.varma._prepare import Sample
from tsrnn.linear.varma._specification import Coefficients, Shape

# Lanes of one unit up to which the system of equations that the recurrence solves goes to LAPACK:
# a call costs a third of one of `recurrence` there, which is most of what a single fit waits for.
_FEW = 64


class Whitened(NamedTuple):
    """Whitened filter: inverse factor (U, n, n) and moving average (U, q, n, n)."""

    inverse: np.ndarray
    ma: np.ndarray


class Lanes(NamedTuple):
    """Parameter and column of which each of L lanes is the derivative.

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
    """Regressors of autoregressive coefficients in the columns of missing values."""
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


def filtered(ma: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """Residuals (T, n, U, lanes) of moving averages (U, q, n, n), from zero."""
    units, q, _, _ = ma.shape
    if q == 0:
        return forcing
    if units == 1 and forcing.shape[3] <= _FEW:
        return _by_substitution(ma[0], forcing)
    return _by_recurrence(ma, forcing)


def filtered_backwards(ma: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """The adjoint filter: `filtered` with transposed matrices and time reversed."""
    return filtered(ma.swapaxes(2, 3), np.ascontiguousarray(forcing[::-1]))[::-1]


def _by_recurrence(ma: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """Units and lanes side by side in the recurrence."""
    units, q, n, _ = ma.shape
    steps, _, _, lanes = forcing.shape
    weights = np.repeat(ma.transpose(2, 1, 3, 0).reshape(n * q * n, units), lanes, 1)
    inputs = torch.from_numpy(forcing.reshape(1, steps, n, units * lanes))
    with torch.no_grad():
        states, _ = recurrence(
            _filter_cell(n, q), inputs, torch.from_numpy(weights), outputs_only=True
        )
    return states.numpy().reshape(forcing.shape)


@cache
def _filter_cell(n: int, q: int) -> Cell:
    return Cell(f"vma_{n}_{q}", n * q, n, n * n * q, partial(_filter_step, n, q), outputs=n)


def _filter_step(n, q, state, inputs, params):  # type: ignore[no-untyped-def]
    """``e_t = u_t - Theta_1 e_{t-1} - ... - Theta_q e_{t-q}``, newest first in the state."""
    width, new = n * q, []
    for i in range(n):
        value = inputs[i]
        for weight, old in zip(params[i * width : (i + 1) * width], state, strict=True):
            value = value - weight * old
        new.append(value)
    return (*new, *state[: width - n])


def _by_substitution(ma: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """The recurrence of one unit as a banded triangular system of equations."""
    q, n, _ = ma.shape
    steps, _, _, lanes = forcing.shape
    below = np.zeros((n, n * (q + 1)))  # entries under the diagonal, a row a target
    column = np.arange(n)
    for lag in range(1, q + 1):
        below[column, lag * n + column[:, None] - column] = ma[lag - 1]
    band = np.broadcast_to(below, (steps, *below.shape)).reshape(-1, below.shape[1]).T
    solution, failed = lapack.dtbtrs(band, forcing.reshape(steps * n, lanes), uplo="L", diag="U")
    if failed:
        raise ValueError(f"LAPACK's dtbtrs refused its argument number {-failed}")
    return np.ascontiguousarray(solution).reshape(forcing.shape)
