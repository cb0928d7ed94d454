"""The filter at given parameters, in the user's units: states, innovations, forecasts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tsrnn.kernels import Lanes, recurrence, sums
from tsrnn.linear._multivariate import draw_normal
from tsrnn.linear.arma._entries import Matrix, add, dot, product
from tsrnn.linear.arma._filter_cell import filter_cell, observation, system
from tsrnn.linear.arma._form import Form, lower_triangle
from tsrnn.linear.arma._specification import Specification
from tsrnn.linear.arma._stationary import stationary_variance


class Begun(NamedTuple):
    """Series from the row at which their filter starts.

    Attributes
    ----------
    inputs : array of shape (n, T, m)
        Of the cell of `filter_form`.
    memory : array of shape (n, fields)
        Before the first of these rows.
    rows : integer array of shape (n,)
        Rows that come before.
    """

    inputs: np.ndarray
    memory: np.ndarray
    rows: np.ndarray


def n_memory(spec: Specification) -> int:
    """Numbers that a series carries on from its last row."""
    n = filter_form(spec).dimension
    return n + (len(lower_triangle(n)) if spec.exact else 0)


def filter_form(spec: Specification) -> Form:
    """The form of series in the user's units, their levels in the state."""
    constant = "c" in spec.trend
    return Form(spec.p, spec.q, spec.n_mean - constant, constant, spec.d, masked=True)


def inputs_of(
    spec: Specification, y: np.ndarray, exog: np.ndarray | None, steps: np.ndarray
) -> np.ndarray:
    """Inputs of the filter of series (n, T) of which so many `steps` (n,) came before."""
    T = y.shape[1]
    seen = np.isfinite(y)
    columns = [np.where(seen, y, 0.0)[:, :, None]]
    if "t" in spec.trend:
        columns.append((steps[:, None] + np.arange(1.0, T + 1))[:, :, None])
    if exog is not None:
        columns.append(exog)
    return np.concatenate([*columns, seen[:, :, None]], axis=2)


def begin(
    spec: Specification,
    params: np.ndarray,
    y: np.ndarray,
    exog: np.ndarray | None,
    steps: np.ndarray,
) -> Begun:
    """The filter before the first row, or before the row after the first d observations.

    Parameters
    ----------
    spec : Specification
    params : array of shape (n, k)
    y : array of shape (n, T)
    exog : array of shape (n, T, m), optional
    steps : array of shape (n,)
        Rows from the first one fitted to to the first one of y.

    Raises
    ------
    ValueError
        If a series does not begin with d observations in a row.
    """
    inputs = inputs_of(spec, y, exog, steps)
    before = np.zeros(len(y), dtype=np.int64)
    levels = np.zeros((len(y), 0))
    if spec.d:
        before = inputs[:, :, -1].argmax(1) + spec.d
        _check_begins(spec, inputs, before)
        levels = _levels(spec, params, inputs, before)
        rows = before[:, None] + np.arange(max(y.shape[1] - spec.d, 1))
        inside = (rows < y.shape[1])[:, :, None]
        rows = np.minimum(rows, y.shape[1] - 1)
        inputs = np.where(inside, np.take_along_axis(inputs, rows[:, :, None], 1), 0.0)
    return Begun(inputs, _memory(spec, params, levels), before)


def last_memory(
    spec: Specification,
    params: np.ndarray,
    inputs: np.ndarray,
    memory: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """Memory (n, fields) after as many rows as each series has."""
    cell = filter_cell(filter_form(spec), certain=not spec.exact)
    memory = memory.copy()
    for length in np.unique(lengths[lengths > 0]):
        own = np.flatnonzero(lengths == length)
        lanes = Lanes(inputs[own, :length])
        made = sums(cell, lanes, params[own], memory[own], terms=("l",), order=0)
        memory[own] = made.memory.T
    return memory


def innovations(
    spec: Specification, params: np.ndarray, begun: Begun, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of one-step forecasts and their variances, (n, n_rows); NaN where there are none."""
    cell = filter_cell(filter_form(spec), certain=not spec.exact)
    fields = cell.field_names[0]
    initial = np.zeros((1, cell.n, len(params)))
    initial[0, : begun.memory.shape[1]] = begun.memory.T
    states, _ = recurrence(
        cell,
        torch.from_numpy(np.ascontiguousarray(begun.inputs.transpose(1, 2, 0)[None])),
        torch.from_numpy(np.ascontiguousarray(params.T)),
        torch.from_numpy(initial),
    )
    seen = begun.inputs[:, :, -1] > 0
    result = np.full((2, len(params), n_rows), np.nan)
    rows = begun.rows[:, None] + np.arange(seen.shape[1])
    unit = np.broadcast_to(np.arange(len(params))[:, None], rows.shape)
    for part, name in zip(result, ("e", "v"), strict=True):
        values = states[0, :, fields.index(name)].numpy().T
        part[unit[seen], rows[seen]] = values[seen]
    return result[0], result[1]


def forecast(
    spec: Specification,
    params: np.ndarray,
    memory: np.ndarray,
    steps: np.ndarray,
    h: int,
    exog: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Means and variances of the next h values, each (n, h).

    .. math:: \hat y_{t+k} = x_{t+k}'\beta + Z T^{k-1} a_{t+1}, \qquad
              V_{t+k} = \sigma^2 (Z P_{t+k} Z' + 1), \quad P_{t+k+1} = T P_{t+k} T' + K K'

    Parameters
    ----------
    spec : Specification
    params : array of shape (n, k)
    memory : array of shape (n, fields)
    steps : array of shape (n,)
        Rows that the series have had.
    h : int
    exog : array of shape (n, h, m) or None
    """
    form = filter_form(spec)
    _, phi, theta = form.split(tuple(params.T))
    (T, K), Z, n = system(form, phi, theta), observation(form), form.dimension
    a, P = list(memory.T[:n]), _variance(form, memory, spec.exact)
    across = [list(column) for column in zip(*T, strict=True)]
    mean, variance = np.empty((len(params), h)), np.empty((len(params), h))
    for k in range(h):
        mean[:, k] = dot(Z, a)
        variance[:, k] = add(dot(Z, [dot(row, Z) for row in P]), 1)
        a = [dot(row, a) for row in T]
        TPT = product(product(T, P), across)
        P = [[add(TPT[i][j], K[i] * K[j]) for j in range(n)] for i in range(n)]
    inputs = inputs_of(spec, np.zeros((len(params), h)), exog, steps)
    return mean + trend_of(form, params, inputs), variance * params[:, -1:]


def draw_errors(
    spec: Specification,
    params: np.ndarray,
    memory: np.ndarray,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> np.ndarray:
    """Errors (n, h, paths) of forecasts of all steps, for shape = (h, paths).

    Deviations of the state from its mean are drawn with their variance after the last row, which is
    zero but where rows are missing or few.

    Parameters
    ----------
    spec : Specification
    params : array of shape (n, k)
    memory : array of shape (n, fields)
    shape : tuple of int
    rng : numpy.random.Generator
    """
    form, (h, paths), n = filter_form(spec), shape, len(params)
    _, phi, theta = form.split(tuple(params.T[:, :, None]))
    (T, K), Z = system(form, phi, theta), observation(form)
    P = np.zeros((n, form.dimension, form.dimension))
    for i, row in enumerate(_variance(form, memory, spec.exact)):
        for j, entry in enumerate(row):
            P[:, i, j] = entry
    state = list(draw_normal(P, rng.standard_normal((n, form.dimension, paths))).swapaxes(0, 1))
    e, errors = rng.standard_normal((n, h, paths)), np.empty((n, h, paths))
    for k in range(h):
        errors[:, k] = dot(Z, state) + e[:, k]
        state = [dot(row, state) + gain * e[:, k] for row, gain in zip(T, K, strict=True)]
    return errors * np.sqrt(params[:, -1])[:, None, None]


def trend_of(form: Form, params: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """X'beta of every row."""
    slopes = params[:, form.constant : form.n_mean]
    trend = (inputs[:, :, 1 : 1 + form.n_regressors] @ slopes[:, :, None])[:, :, 0]
    return trend + params[:, :1] if form.constant else trend


def _memory(spec: Specification, params: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Levels, a state of zero, and its stationary variance."""
    form = filter_form(spec)
    state = np.concatenate([levels, np.zeros((len(params), form.r))], axis=1)
    if not spec.exact:
        return state
    _, phi, theta = form.split(tuple(params.T))
    P = stationary_variance(phi, theta)
    spread = [
        P[i - form.d][j - form.d] + np.zeros(len(params)) if j >= form.d else np.zeros(len(params))
        for i, j in lower_triangle(form.dimension)
    ]
    return np.concatenate([state, np.stack(spread, axis=1)], axis=1)


def _variance(form: Form, memory: np.ndarray, exact: bool) -> Matrix:
    n = form.dimension
    P: Matrix = [[0] * n for _ in range(n)]
    if exact:
        for (i, j), entry in zip(lower_triangle(n), memory.T[n:], strict=True):
            P[i][j] = P[j][i] = entry
    return P


def _levels(
    spec: Specification, params: np.ndarray, inputs: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """Levels u, D u, ..., after the first d observations."""
    form = filter_form(spec)
    rows = before[:, None] + np.arange(-spec.d, 0)
    first = np.take_along_axis(inputs, rows[:, :, None], 1)
    u = first[:, :, 0] - trend_of(form, params, first)
    levels = []
    for _ in range(spec.d):
        levels.append(u[:, -1])
        u = np.diff(u, axis=1)
    return np.stack(levels, axis=1)


def _check_begins(spec: Specification, inputs: np.ndarray, before: np.ndarray) -> None:
    rows = before[:, None] + np.arange(-spec.d, 0)
    inside = rows < inputs.shape[1]
    rows = np.minimum(rows, inputs.shape[1] - 1)
    there = (np.take_along_axis(inputs[:, :, -1], rows, 1) > 0) & inside
    if not there.all():
        raise ValueError(
            f"with d = {spec.d} a series must begin with {spec.d} observations in a row; "
            f"{int((~there.all(1)).sum())} of {len(there)} do not. Give more rows"
        )
