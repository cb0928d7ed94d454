"""ARMA filter at given parameters, in the units of the data: its start, state, innovations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tsrnn.kernels import Lanes, recurrence, sums
from tsrnn.linear.arma._cells import filter_cell, stationary_variance
from tsrnn.linear.arma._specification import Form, Specification, lower_triangle


class FilterStart(NamedTuple):
    """Series from the row on which their filter starts.

    Attributes
    ----------
    inputs : array of shape (n, T, m)
        Of the cell of `filter_form`.
    state : array of shape (n, fields)
        State before the first of these rows.
    rows : integer array of shape (n,)
        Rows before these.
    """

    inputs: np.ndarray
    state: np.ndarray
    rows: np.ndarray


def filter_start(
    spec: Specification,
    params: np.ndarray,
    y: np.ndarray,
    exog: np.ndarray | None,
    steps: np.ndarray,
) -> FilterStart:
    """Start of the filter: before the first row, or the row after the first d observations.

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
    form, n, n_rows = filter_form(spec), len(y), y.shape[1]
    inputs = inputs_of(spec, y, exog, steps)
    before = np.zeros(n, dtype=np.int64)
    levels: list[np.ndarray] = []
    if spec.d:
        before = inputs[:, :, -1].argmax(1) + spec.d
        rows = before[:, None] + np.arange(-spec.d, 0)
        first = np.take_along_axis(inputs, np.minimum(rows, n_rows - 1)[:, :, None], 1)
        whole = ((first[:, :, -1] > 0) & (rows < n_rows)).all(1)
        if not whole.all():
            raise ValueError(
                f"with d = {spec.d} a series must begin with {spec.d} observations in a row; "
                f"{int((~whole).sum())} of {n} do not. Give more rows"
            )
        u = first[:, :, 0] - trend_of(form, params, first)
        for _ in range(spec.d):  # levels u, D u, ..., after the first d observations
            levels.append(u[:, -1])
            u = np.diff(u, axis=1)
        rows = before[:, None] + np.arange(max(n_rows - spec.d, 1))
        inside = (rows < n_rows)[:, :, None]
        rows = np.minimum(rows, n_rows - 1)
        inputs = np.where(inside, np.take_along_axis(inputs, rows[:, :, None], 1), 0.0)
    state = [*levels, *np.zeros((form.r, n))]
    if spec.exact:  # the stationary variance of the ARMA; levels are known
        P = stationary_variance(*form.split(tuple(params.T))[1:])
        state += [
            np.zeros(n) + (P[i - form.d][j - form.d] if j >= form.d else 0)
            for i, j in lower_triangle(form.dimension)
        ]
    return FilterStart(inputs, np.stack(state, axis=1), before)


def last_state(
    spec: Specification,
    params: np.ndarray,
    inputs: np.ndarray,
    state: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """State (n, fields) after as many rows as each series has."""
    cell = filter_cell(filter_form(spec), certain=not spec.exact)
    state = state.copy()
    for length in np.unique(lengths[lengths > 0]):
        units = np.flatnonzero(lengths == length)
        lanes = Lanes(inputs[units, :length])
        end = sums(cell, lanes, params[units], state[units], terms=("l",), order=0)
        state[units] = end.memory.T
    return state


def innovations(
    spec: Specification, params: np.ndarray, start: FilterStart, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of one-step forecasts and their variances, (n, n_rows); NaN where there are none."""
    cell = filter_cell(filter_form(spec), certain=not spec.exact)
    fields = cell.field_names[0]
    initial = np.zeros((1, cell.n, len(params)))
    initial[0, : start.state.shape[1]] = start.state.T
    states, _ = recurrence(
        cell,
        torch.from_numpy(np.ascontiguousarray(start.inputs.transpose(1, 2, 0)[None])),
        torch.from_numpy(np.ascontiguousarray(params.T)),
        torch.from_numpy(initial),
    )
    seen = start.inputs[:, :, -1] > 0
    result = np.full((2, len(params), n_rows), np.nan)
    rows = start.rows[:, None] + np.arange(seen.shape[1])
    unit = np.broadcast_to(np.arange(len(params))[:, None], rows.shape)
    for part, name in zip(result, ("e", "v"), strict=True):
        values = states[0, :, fields.index(name)].numpy().T
        part[unit[seen], rows[seen]] = values[seen]
    return result[0], result[1]


def state_size(spec: Specification) -> int:
    """Size of the state: the state after a row and, unless it is known, its variance."""
    n = filter_form(spec).dimension
    return n + (len(lower_triangle(n)) if spec.exact else 0)


def filter_form(spec: Specification) -> Form:
    """Form of series in the units of the data, their levels in the state."""
    constant = "c" in spec.trend
    return Form(spec.p, spec.q, spec.n_mean - constant, constant, spec.d, masked=True)


def inputs_of(
    spec: Specification, y: np.ndarray, exog: np.ndarray | None, steps: np.ndarray
) -> np.ndarray:
    """Inputs of the filter for series (n, T) that begin `steps` (n,) rows after the first."""
    T = y.shape[1]
    seen = np.isfinite(y)
    columns = [np.where(seen, y, 0.0)[:, :, None]]
    if "t" in spec.trend:
        columns.append((steps[:, None] + np.arange(1.0, T + 1))[:, :, None])
    if exog is not None:
        columns.append(exog)
    return np.concatenate([*columns, seen[:, :, None]], axis=2)


def trend_of(form: Form, params: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """X'beta of every row."""
    slopes = params[:, form.constant : form.n_mean]
    trend = (inputs[:, :, 1 : 1 + form.n_regressors] @ slopes[:, :, None])[:, :, 0]
    return trend + params[:, :1] if form.constant else trend
