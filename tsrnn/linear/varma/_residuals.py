"""Residuals of a VARMA model as linear functions of the unknowns, and their derivatives.

Given the coefficients, residuals are linear in the state x before the first row and in the missing
values m: e = E (1, -x, -m). The columns of E and their derivatives by the coefficients are outputs
of one linear recurrence, the moving-average filter Theta(L)^{-1}, with different inputs, as lanes
of one batch. All are whitened by the inverse of the innovations' factor. Time is the first axis of
every array.
"""

from __future__ import annotations

from functools import cache, cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import lapack

from tsrnn.kernels import Cell, recurrence
from tsrnn.linear.varma._prepare import Sample
from tsrnn.linear.varma._specification import Coefficients, Shape

# Up to this many lanes of one unit, LAPACK solves the recurrence as a banded system in a third of
# the time of `recurrence`, which is most of the time of a single fit.
_FEW = 64


class Filter:
    """Map from forcing u_t to whitened residuals e_t, unit by unit.

    ``u_t = L e_t + Theta_1 L e_{t-1} + ... + Theta_q L e_{t-q}``, with L the innovations' factor
    (U, n, n) and nothing before the first row. Forcing and residuals are arrays (T, n, U, lanes).
    """

    def __init__(self, coefficients: Coefficients, steps: int) -> None:
        self.chol, self.steps = coefficients.chol, steps
        self.carried = coefficients.ma @ self.chol[:, None]

    def run(self, forcing: np.ndarray) -> np.ndarray:
        """Residuals of a forcing."""
        if self._is_small(forcing):
            return _by_substitution(self._band, forcing)
        return _by_recurrence(self.chol, self.carried, forcing)

    def run_back(self, residuals: np.ndarray) -> np.ndarray:
        """Transposed map, from residuals to forcing."""
        if self._is_small(residuals):
            return _by_substitution(self._band, residuals, transposed=True)
        # Rows and targets in reverse order: the transposed factor is lower triangular again.
        chol, carried = (a.swapaxes(-1, -2)[..., ::-1, ::-1] for a in (self.chol, self.carried))
        return _by_recurrence(chol, carried, residuals[::-1, ::-1])[::-1, ::-1]

    def _is_small(self, forcing: np.ndarray) -> bool:
        return len(self.chol) == 1 and forcing.shape[3] <= _FEW

    @cached_property
    def _band(self) -> np.ndarray:
        """Diagonals of the single unit's equations, a column for each row and target."""
        matrices = np.concatenate([self.chol[:, None], self.carried], 1)[0]
        count, n, _ = matrices.shape
        below = np.zeros((n, (count + 1) * n))  # of each target, from the first target of its row
        below[:, : count * n] = matrices.transpose(2, 0, 1).reshape(n, count * n)
        target = np.arange(n)[:, None]
        below = below[target, target + np.arange(count * n)]
        return np.tile(below, (self.steps, 1)).T


class Lanes(NamedTuple):
    """Parameter and column of E of each of L lanes, which are derivatives."""

    parameter: np.ndarray  # (L,)
    column: np.ndarray  # (L,)
    choice: np.ndarray  # (n_mean, L), one if a lane belongs to a parameter; sums lanes by parameter
    of_column: np.ndarray  # (L, C), one if a lane belongs to a column


class Sensitivities(NamedTuple):
    """Columns E and minus their nonzero derivatives Z."""

    E: np.ndarray  # (T, n, U, C)
    Z: np.ndarray  # (T, n, U, L)
    lanes: Lanes


def columns(coefficients: Coefficients, sample: Sample, filter_: Filter) -> np.ndarray:
    """Matrix E (T, n, U, C): zero-start residuals, then a column for each unknown.

    A unit with missing values must be alone.
    """
    return _within(filter_.run(_forcing(coefficients, sample)), sample)


def sensitivities(coefficients: Coefficients, sample: Sample, filter_: Filter) -> Sensitivities:
    """E and its derivatives by the coefficients of the mean."""
    shape = sample.shape
    n, q = shape.n, shape.q
    E = filter_.run(_forcing(coefficients, sample))
    steps, _, units, width = E.shape
    times, targets = sample.missing
    sources = sample.sources.swapaxes(0, 1)
    if len(times):
        missing = _missing_sources(shape.p, steps, times)
        sources = np.concatenate([sources, missing], 2)
    first, each = sources.shape[2], n * width
    forcing = _zeros(steps, n, units, n, first + q * each)
    plain = _plain(coefficients.chol, E) if q else E
    for i in range(n):
        forcing[:, i, :, i, :first] = sources
        for j in range(q):
            late = first + j * each
            forcing[j + 1 :, i, :, i, late : late + each] = plain[: steps - j - 1]
    Z = filter_.run(forcing.reshape(steps, n, units, -1))
    lanes = _lanes(shape, tuple(targets))
    return Sensitivities(_within(E, sample), _within(Z, sample), lanes)


def _forcing(coefficients: Coefficients, sample: Sample) -> np.ndarray:
    """Inputs of the filter for E, (T, n, U, C)."""
    shape = sample.shape
    n, d = shape.n, shape.d if shape.exact else 0
    times, targets = sample.missing
    units, steps, _ = sample.y.shape
    forcing = _zeros(steps, n, units, 1 + d + len(times))
    weights = np.concatenate([coefficients.design, *coefficients.ar.swapaxes(0, 1)], 2)
    left = sample.filled - sample.sources @ weights.swapaxes(1, 2)
    forcing[..., 0] = left.transpose(1, 2, 0)
    target = np.arange(n)
    for lag in range(min(d // n, steps)):
        forcing[lag, target, :, 1 + lag * n + target] = 1.0
    for column, (t, i) in enumerate(zip(times, targets, strict=True), start=1 + d):
        forcing[t, i, 0, column] = 1.0
        for lag, phi in enumerate(coefficients.ar[0, : steps - 1 - t], start=1):
            forcing[t + lag, :, 0, column] -= phi[:, i]
    return forcing


def _zeros(steps: int, n: int, units: int, *lanes: int) -> np.ndarray:
    """Zeros (T, n, U, ...); for one unit, lanes are contiguous in memory, as LAPACK needs."""
    if units > 1:
        return np.zeros((steps, n, units, *lanes))
    count = len(lanes)
    whole = np.zeros((*lanes, steps, n))
    return whole.transpose(count, count + 1, *range(count))[:, :, None]


def _missing_sources(p: int, steps: int, times: np.ndarray) -> np.ndarray:
    """Regressors of the autoregressive coefficients in the columns of missing values."""
    result = np.zeros((steps + p, 1, p, len(times)))
    for lag in range(1, p + 1):
        result[times + lag, 0, lag - 1, np.arange(len(times))] = 1.0
    return result[:steps].reshape(steps, 1, p * len(times))


def _plain(chol: np.ndarray, E: np.ndarray) -> np.ndarray:
    """Columns (T, U, n C) on the scale of the data."""
    steps, n, units, width = E.shape
    if units == 1:
        by_lane = chol[0] @ E[:, :, 0].transpose(2, 1, 0)
        return by_lane.transpose(2, 1, 0).reshape(steps, 1, n * width)
    flat = E.reshape(steps, n, units * width)
    result = np.zeros((steps, units, n, width))
    for i in range(n):
        terms = [np.repeat(chol[:, i, j], width) * flat[:, j] for j in range(i + 1)]
        result[:, :, i] = sum(terms[1:], terms[0]).reshape(steps, units, width)
    return result.reshape(steps, units, n * width)


@lru_cache(maxsize=64)
def _lanes(shape: Shape, missing: tuple[int, ...]) -> Lanes:
    """Lanes by equation, in the order of the inputs; `missing` are targets of missing values."""
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
    column = np.tile(column, n)
    return Lanes(parameter, column, choice, (column[:, None] == np.arange(width)).astype(float))


def _within(array: np.ndarray, sample: Sample) -> np.ndarray:
    """Set rows after the end of each unit to zero."""
    if sample.is_whole:
        return array
    return np.where(sample.inside.T[:, None, :, None], array, 0.0)


def _by_recurrence(chol: np.ndarray, carried: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """Run all units and lanes in one recurrence."""
    units, q, n, _ = carried.shape
    if q == 0:
        return _whitened(chol, forcing)
    steps, _, _, lanes = forcing.shape
    diagonal = 1 / np.diagonal(chol, axis1=1, axis2=2)
    by_target = carried.transpose(2, 1, 3, 0).reshape(n, q * n, units)
    parts = [
        part for i in range(n) for part in (chol[:, i, :i].T, by_target[i], diagonal[None, :, i])
    ]
    weights = np.repeat(np.concatenate(parts), lanes, 1)
    inputs = torch.from_numpy(np.ascontiguousarray(forcing).reshape(1, steps, n, units * lanes))
    with torch.no_grad():
        states, _ = recurrence(
            _filter_cell(n, q), inputs, torch.from_numpy(weights), outputs_only=True
        )
    return states.numpy().reshape(forcing.shape)


def _whitened(chol: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """Solutions of ``L e_t = u_t``."""
    result = np.empty_like(forcing)
    for i in range(chol.shape[1]):
        left = forcing[:, i].copy()
        for j in range(i):
            left -= chol[:, i, j, None] * result[:, j]
        np.divide(left, chol[:, i, i, None], out=result[:, i])
    return result


@cache
def _filter_cell(n: int, q: int) -> Cell:
    n_weights = n * n * q + n * (n + 1) // 2
    return Cell(
        f"vma_whitened_{n}_{q}", n * q, n, n_weights, partial(_filter_step, n, q), outputs=n
    )


def _filter_step(n, q, state, inputs, params):  # type: ignore[no-untyped-def]
    """``L e_t = u_t - Theta_1 L e_{t-1} - ... - Theta_q L e_{t-q}``, newest first in the state."""
    weights = iter(params)
    new: list = []
    for i in range(n):
        value = inputs[i]
        for known in (*new, *state):
            value = value - next(weights) * known
        new.append(value * next(weights))
    return (*new, *state[: n * (q - 1)])


def _by_substitution(
    band: np.ndarray, forcing: np.ndarray, *, transposed: bool = False
) -> np.ndarray:
    """The recurrence of one unit as a banded triangular system of equations."""
    steps, n, _, lanes = forcing.shape
    right = forcing.reshape(steps * n, lanes)
    solution, failed = lapack.dtbtrs(band, right, uplo="L", trans="T" if transposed else "N")
    if failed:
        raise ValueError(f"LAPACK's dtbtrs refused its argument number {-failed}")
    # Rows contiguous in memory by lane and target, for products over time.
    by_lane = np.ascontiguousarray(solution.T.reshape(lanes, steps, n).swapaxes(1, 2))
    return by_lane.transpose(2, 1, 0)[:, :, None]
