"""Complex exponential smoothing along rows: states before and after them, means, responses.

A pair of level and potential, as in `CES`, is the real and imaginary part of one recurrence. The
error is zero where nothing is observed.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from tsrnn.kernels import Cell, Fields, Paths, paths
from tsrnn.linear._samples import rows_to_last_value
from tsrnn.linear.ces._specification import SMOOTHING, Components
from tsrnn.linear.ets._start import seasonal_pattern

FIRST_ROWS = 10  # their mean is the first level
POTENTIAL = 1 / 1.1  # over the level or season, before the first run; backcasting forgets it


def _pair_after(real: Tensor, imaginary: Tensor, a0: Tensor, a1: Tensor, e: Tensor) -> Fields:
    return (
        real - (1 - a1) * imaginary + (a0 - a1) * e,
        real + (1 - a0) * imaginary + (a0 + a1) * e,
    )


@cache
def season_cell(model: Components) -> Cell:
    """Cell that moves on by a season of rows, or by one row without a season.

    Memory: the states, the means mu0, mu1, ... of the rows, and their errors e0, e1, ..., zero
    where missing. Inputs: the rows, NaN where missing, infinite beyond the last row, where states
    do not change.
    """
    names = (
        tuple(f"h{i}" for i in range(model.n_states))
        + _of_rows(model, "mu")
        + _of_rows(model, "e"),
        tuple(f"y{i}" for i in range(model.period)),
        SMOOTHING,
    )
    label = f"ces_{model.seasonal}_{model.period}"
    return Cell(label, len(names[0]), model.period, 4, partial(_season, model), names=names)


def _of_rows(model: Components, name: str) -> tuple[str, ...]:
    return tuple(f"{name}{i}" for i in range(model.period))


def _season(model: Components, state: Fields, inputs: Fields, params: Fields) -> Fields:
    n, m, (a0, a1, b0, b1) = model.n_level, model.period, params
    states, means, errors = list(state[: model.n_states]), [], []
    for row, y in enumerate(inputs):
        place, twin = n + row, n + m + row  # positions of the season of the row and its potential
        mean = states[0] if n else states[place]
        if model.seasonal in ("partial", "full"):
            mean = mean + states[place]
        e = torch.where(y < torch.inf, y - mean, 0.0)
        new = list(states)
        if n:
            new[:2] = _pair_after(states[0], states[1], a0, a1, e)
        if model.seasonal == "partial":
            new[place] = states[place] + b0 * e
        elif model.paired_season:
            smoothing = (b0, b1) if n else (a0, a1)
            new[place], new[twin] = _pair_after(states[place], states[twin], *smoothing, e)
        states = [
            before if after is before else torch.where(y == torch.inf, before, after)
            for before, after in zip(states, new, strict=True)
        ]
        means.append(mean)
        errors.append(e)
    return (*states, *means, *errors)


def season_rows(model: Components, values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Inputs (N, steps, m) of the cell, from the first `lengths` (N,) rows of values (N, T)."""
    n, length = values.shape
    steps = -(-length // model.period)
    rows = np.full((n, steps * model.period), np.inf)
    rows[:, :length] = np.where(np.arange(length) < lengths[:, None], values, np.inf)
    return rows.reshape(n, steps, model.period)


def run(
    model: Components,
    rows: np.ndarray,
    params: np.ndarray,
    states: np.ndarray,
    slopes: np.ndarray | None = None,
    *,
    field: str = "mu",
) -> Paths:
    """Means "mu" or errors "e" along rows (N, steps, m), and states after; derivatives first.

    Smoothing parameters (N, 4) have slopes (N, d, 4); states have shape (N, q, d + 1).
    """
    slopes = np.zeros((len(params), 0, 4)) if slopes is None else slopes
    before = np.ascontiguousarray(states[:, :, -1])
    directions = np.ascontiguousarray(states[:, :, :-1].swapaxes(1, 2))
    fields = _of_rows(model, field)
    return paths(season_cell(model), rows, params, before, slopes, directions, fields=fields)


def backcast(
    model: Components,
    rows: np.ndarray,
    params: np.ndarray,
    rough: np.ndarray,
    slopes: np.ndarray | None = None,
) -> np.ndarray:
    """States (N, q, d + 1) before the first row, their derivatives first.

    A run from rough states (N, q) is followed by a run over the reversed rows, whose end states are
    returned. Between runs, states move by one row without an error.
    """
    d = 0 if slopes is None else slopes.shape[1]
    states = np.concatenate([np.zeros((*rough.shape, d)), rough[:, :, None]], 2)
    for table in (rows, np.ascontiguousarray(rows[:, ::-1, ::-1])):
        after = run(model, table, params, states, slopes, field="e").memory  # the likelihood's cell
        states = _reversed(model, after, params, slopes)
    return states


def _reversed(
    model: Components, states: np.ndarray, params: np.ndarray, slopes: np.ndarray | None
) -> np.ndarray:
    """Convert states after rows to states before the same rows in reverse."""
    n, m, before = model.n_level, model.period, states.copy()
    if n:
        before[:, :2] = _pair_moved(states[:, :2], params[:, :2], slopes)
    if model.seasonal == "none":
        return before
    season = states[:, n:].reshape(len(states), -1, m, states.shape[2])[:, :, ::-1]
    if model.paired_season:
        part = slice(2, 4) if n else slice(0, 2)
        season = _pair_moved(
            season, params[:, part], None if slopes is None else slopes[:, :, part]
        )
    before[:, n:] = season.reshape(before[:, n:].shape)
    return before


def _pair_moved(pair: np.ndarray, params: np.ndarray, slopes: np.ndarray | None) -> np.ndarray:
    """Pairs (N, 2, ..., d + 1) after a row without an error."""
    real, imaginary = pair[:, 0], pair[:, 1]
    inner = (1,) * (real.ndim - 1)
    a0, a1 = (params[:, i].reshape(-1, *inner) for i in (0, 1))
    moved = np.stack([real - (1 - a1) * imaginary, real + (1 - a0) * imaginary], 1)
    if slopes is not None:
        by_a0, by_a1 = (slopes[:, :, i].reshape(len(params), *inner[1:], -1) for i in (0, 1))
        moved[:, 0, ..., :-1] += by_a1 * imaginary[..., -1:]
        moved[:, 1, ..., :-1] -= by_a0 * imaginary[..., -1:]
    return moved


def rough_states(model: Components, values: np.ndarray) -> np.ndarray:
    """Rough states (N, q) before the first row of values (N, T), NaN where missing.

    Levels are means of the first rows, seasons a decomposition, and potentials a little smaller.
    """
    m = model.period
    if values.shape[1] < m:
        values = np.pad(values, ((0, 0), (0, m - values.shape[1])), constant_values=np.nan)
    seen = np.isfinite(values)
    n_first = FIRST_ROWS if model.seasonal == "none" else m
    first, count = np.where(seen, values, 0.0)[:, :n_first], seen[:, :n_first].sum(1)
    every = np.where(seen, values, 0.0).sum(1) / np.maximum(seen.sum(1), 1)
    level = np.where(count > 0, first.sum(1) / np.maximum(count, 1), every)
    if model.seasonal == "simple":
        season = np.where(seen[:, :m], first, level[:, None])
        return np.column_stack([season, season * POTENTIAL])
    states = [level, level * POTENTIAL]
    if model.seasonal != "none":
        season = seasonal_pattern(values, m, product=False)
        states += [season, season * POTENTIAL][: 1 + model.paired_season]
    return np.column_stack(states)


def states_before(model: Components, params: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Backcast states (N, q) before values (N, T)."""
    rows = season_rows(model, values, rows_to_last_value(values))
    return backcast(model, rows, params, rough_states(model, values))[:, :, 0]


def states_after(
    model: Components,
    params: np.ndarray,
    states: np.ndarray,
    values: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """States (N, q) after `lengths` (N,) rows of values (N, T), NaN where missing."""
    rows = season_rows(model, values, lengths)
    after = run(model, rows, params, states[:, :, None]).memory[:, :, 0]
    if model.seasonal == "none":
        return after
    n, m = model.n_level, model.period
    places = (np.arange(m) + lengths[:, None]) % m  # the season of the next row comes first
    season = after[:, n:].reshape(len(after), -1, m)
    season = np.take_along_axis(season, places[:, None], 2)
    return np.column_stack([after[:, :n], season.reshape(len(after), -1)])


def expected(
    model: Components, params: np.ndarray, states: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Means (N, T) of values (N, T), each given earlier ones; NaN where missing."""
    n, length = values.shape
    rows = season_rows(model, values, np.full(n, length))
    return run(model, rows, params, states[:, :, None]).fields.reshape(n, -1)[:, :length]


def responses(model: Components, params: np.ndarray, h: int) -> np.ndarray:
    r"""Effects (N, h) of a unit error on the means 1, 2, ... rows later.

    .. math:: c_j = w' F^{j-1} g
    """
    ahead = np.full((len(params), h), np.nan)
    return expected(model, params, model.gain(params), ahead)


def variances(model: Components, params: np.ndarray, sigma2: np.ndarray, h: int) -> np.ndarray:
    r"""Variances :math:`\sigma^2 (1 + \sum_{j<k} c_j^2)` (N, h) of forecasts k rows ahead."""
    squares = responses(model, params, h)[:, : h - 1] ** 2
    return sigma2[:, None] * (1 + np.pad(squares.cumsum(1), ((0, 0), (1, 0))))


def simulated(
    model: Components, params: np.ndarray, sigma2: np.ndarray, states: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """Paths (N, h, n) with standard normal innovations z (N, h, n)."""
    h = z.shape[1]
    means = expected(model, params, states, np.full((len(params), h), np.nan))
    weights = np.zeros((len(params), h, h))
    response = np.column_stack([np.ones(len(params)), responses(model, params, h)])
    for lag in range(h):  # the model is linear: errors and their effects add up
        weights[:, range(lag, h), range(h - lag)] = response[:, lag : lag + 1]
    return means[:, :, None] + np.sqrt(sigma2)[:, None, None] * (weights @ z)
