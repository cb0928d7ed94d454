"""ARMA at given parameters, on the scale of the data: filter, forecasts, responses, draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tsrnn.kernels import Lanes, recurrence, sums
from tsrnn.linear._family import Ahead
from tsrnn.linear._multivariate import draw_normal
from tsrnn.linear.arma._cells import (
    Matrix,
    add,
    dot,
    filter_cell,
    observation,
    product,
    stationary_variance,
    symmetric,
    system,
)
from tsrnn.linear.arma._polynomials import psi_weight_derivatives, psi_weights
from tsrnn.linear.arma._prepare import differences_of, first_run
from tsrnn.linear.arma._specification import Form, Specification, lower_triangle


class FilterStart(NamedTuple):
    """Series from the row at which their filter starts."""

    inputs: np.ndarray  # (n, T, m), of the cell of `filter_form`
    state: np.ndarray  # (n, fields), before the first of these rows
    rows: np.ndarray  # (n,), number of rows before


def filter_start(
    spec: Specification,
    params: np.ndarray,
    y: np.ndarray,
    exog: np.ndarray | None,
    steps: np.ndarray,
) -> FilterStart:
    """Start of the filter: before the first row, or after the first d consecutive observations.

    Series y (n, T) with regressors (n, T, m) begin `steps` (n,) rows after the first row fitted
    to. A ValueError refuses series without d consecutive observations.
    """
    form, n = filter_form(spec), len(y)
    inputs = inputs_of(spec, y, exog, steps)
    before = np.zeros(n, dtype=np.int64)
    levels: list[np.ndarray] = []
    if spec.d:
        first, inputs, before = from_first_run(spec, inputs)
        u = first[:, :, 0] - trend_of(form, params, first)
        for _ in range(spec.d):  # levels u, D u, ..., after the first d observations
            levels.append(u[:, -1])
            u = np.diff(u, axis=1)
    state = [*levels, *np.zeros((form.r, n))]
    if spec.exact:  # stationary variance of the ARMA, zero for levels, which are known
        P = stationary_variance(*form.split(tuple(params.T))[1:])
        state += [
            np.zeros(n) + (P[i - form.d][j - form.d] if j >= form.d else 0)
            for i, j in lower_triangle(form.dimension)
        ]
    return FilterStart(inputs, np.stack(state, axis=1), before)


def from_first_run(
    spec: Specification, inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split inputs (n, T, m) at the first d + m D consecutive observations.

    Returns these rows (n, d + m D, m), the later rows (n, T - d - m D, m), and the number (n,) of
    rows before the later ones.
    """
    (n, n_rows), lost = inputs.shape[:2], spec.lost
    begin = first_run(inputs[:, :, -1] > 0, lost)
    if short := np.count_nonzero(begin == n_rows):
        raise ValueError(
            f"{differences_of(spec)} a series must have {lost} observations in a row to begin "
            f"with; {short} of {n} have not. Give more rows"
        )
    first = np.take_along_axis(inputs, (begin[:, None] + np.arange(lost))[:, :, None], 1)
    before = begin + lost
    rows = before[:, None] + np.arange(max(n_rows - lost, 1))
    inside = (rows < n_rows)[:, :, None]
    later = np.take_along_axis(inputs, np.minimum(rows, n_rows - 1)[:, :, None], 1)
    return first, np.where(inside, later, 0.0), before


def last_state(
    spec: Specification,
    params: np.ndarray,
    inputs: np.ndarray,
    state: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """State (n, fields) after the last row of each series, which has `lengths` (n,) rows."""
    cell = filter_cell(filter_form(spec), certain=not spec.exact)
    state = state.copy()
    for length in np.unique(lengths[lengths > 0]):
        units = np.flatnonzero(lengths == length)
        whole = len(units) == len(inputs)  # no copy
        lanes = Lanes((inputs if whole else inputs[units])[:, :length])
        end = sums(cell, lanes, params[units], state[units], terms=("l",), order=0)
        state[units] = end.memory.T
    return state


def innovations(
    spec: Specification, params: np.ndarray, start: FilterStart, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """One-step forecast errors and their variances, each (n, n_rows); NaN in rows without one."""
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
    e, v = (states[0, :, fields.index(name)].numpy().T for name in ("e", "v"))
    return at_observed(start, e, n_rows), at_observed(start, v, n_rows)


def at_observed(start: FilterStart, values: np.ndarray, n_rows: int) -> np.ndarray:
    """Values (n, T) of filtered rows at their places (n, n_rows), NaN where y is missing."""
    seen = start.inputs[:, :, -1] > 0
    result = np.full((len(values), n_rows), np.nan)
    rows = start.rows[:, None] + np.arange(seen.shape[1])
    unit = np.broadcast_to(np.arange(len(values))[:, None], rows.shape)
    result[unit[seen], rows[seen]] = values[seen]
    return result


def state_size(spec: Specification) -> int:
    """Number of the state's fields: the state and, with the exact likelihood, its variance."""
    n = filter_form(spec).dimension
    return n + (len(lower_triangle(n)) if spec.exact else 0)


def filter_form(spec: Specification) -> Form:
    """Form of series on the scale of the data, with levels in the state."""
    constant = "c" in spec.trend
    n_regressors = spec.n_mean - constant
    return Form(spec.p, spec.q, n_regressors, constant, spec.d, True, spec.P, spec.Q, spec.m)


def inputs_of(
    spec: Specification, y: np.ndarray, exog: np.ndarray | None, steps: np.ndarray
) -> np.ndarray:
    """Inputs of the filter for series (n, T), which begin `steps` (n,) rows after the first."""
    T = y.shape[1]
    seen = np.isfinite(y)
    inputs = np.empty((*y.shape, len(filter_form(spec).inputs)))
    inputs[:, :, 0] = y if seen.all() else np.where(seen, y, 0.0)
    if "t" in spec.trend:
        inputs[:, :, 1] = steps[:, None] + np.arange(1.0, T + 1)
    if exog is not None:
        inputs[:, :, 1 + ("t" in spec.trend) : -1] = exog
    inputs[:, :, -1] = seen
    return inputs


def trend_of(form: Form, params: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """X'beta (n, T) of every row."""
    slopes = params[:, form.constant : form.n_mean]
    trend = (inputs[:, :, 1 : 1 + form.n_regressors] @ slopes[:, :, None])[:, :, 0]
    return trend + params[:, :1] if form.constant else trend


def forecast_moments(
    spec: Specification, params: np.ndarray, state: np.ndarray, ahead: Ahead
) -> tuple[np.ndarray, np.ndarray]:
    r"""Means and variances of the next h values of n units, each (n, h).

    .. math:: \hat y_{t+k} = x_{t+k}'\beta + Z T^{k-1} a_{t+1}, \qquad
              V_{t+k} = \sigma^2 (Z P_{t+k} Z' + 1), \quad P_{t+k+1} = T P_{t+k} T' + K K'
    """
    h = ahead.h
    form = filter_form(spec)
    _, phi, theta = form.split(tuple(params.T))
    (T, K), Z, n = system(form, phi, theta), observation(form), form.dimension
    a, P = list(state.T[:n]), symmetric(n, state.T[n:])
    across = [list(column) for column in zip(*T, strict=True)]
    mean, variance = np.empty((len(params), h)), np.empty((len(params), h))
    for k in range(h):
        mean[:, k] = dot(Z, a)
        variance[:, k] = add(dot(Z, [dot(row, Z) for row in P]), 1)
        a = [dot(row, a) for row in T]
        TPT = product(product(T, P), across)
        P = [[add(TPT[i][j], K[i] * K[j]) for j in range(n)] for i in range(n)]
    inputs = inputs_of(spec, np.zeros((len(params), h)), ahead.exog, ahead.steps)
    return mean + trend_of(form, params, inputs), variance * params[:, -1:]


def draw_errors(
    spec: Specification,
    params: np.ndarray,
    state: np.ndarray,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw forecast errors (n, h, paths), for shape = (h, paths).

    The first state is drawn with its variance after the last row, which is zero unless rows are
    missing or few.
    """
    form, (h, paths), n = filter_form(spec), shape, len(params)
    _, phi, theta = form.split(tuple(params.T[:, :, None]))
    (T, K), Z = system(form, phi, theta), observation(form)
    P = _stacked(symmetric(form.dimension, state.T[form.dimension :]), n)
    fields = list(draw_normal(P, rng.standard_normal((n, form.dimension, paths))).swapaxes(0, 1))
    e, errors = rng.standard_normal((n, h, paths)), np.empty((n, h, paths))
    for k in range(h):
        errors[:, k] = dot(Z, fields) + e[:, k]
        fields = [dot(row, fields) + gain * e[:, k] for row, gain in zip(T, K, strict=True)]
    return errors * np.sqrt(params[:, -1])[:, None, None]


def responses_with_errors(
    spec: Specification, params: np.ndarray, covariance: np.ndarray, h: int
) -> tuple[np.ndarray, np.ndarray]:
    """Responses (n, h + 1) of y to an innovation of one, with standard errors (delta method)."""
    arma = slice(spec.n_mean, spec.n_mean + spec.p + spec.q)
    phi, theta = params.T[arma][: spec.p], params.T[arma][spec.p :]
    psi = psi_weights(phi, theta, h)
    slopes = psi_weight_derivatives(phi, theta, h)
    for _ in range(spec.d):
        psi, slopes = psi.cumsum(0), slopes.cumsum(1)
    inner = covariance[:, arma, arma]
    variance = np.einsum("ahn,nab,bhn->nh", slopes, inner, slopes)
    return psi.T, np.sqrt(variance)


def model_autocovariances(spec: Specification, params: np.ndarray, n_lags: int) -> np.ndarray:
    r"""Autocovariances of u for lags 0 to n_lags, (n, n_lags + 1), with d = 0.

    .. math:: \gamma_0 = \sigma^2 (P_{00} + 1), \quad \gamma_k = \sigma^2 Z T^{k-1} G,
              \quad G = T P Z' + K
    """
    form = filter_form(spec)
    _, phi, theta = form.split(tuple(params.T))
    T, K = system(form, phi, theta)
    column = [row[0] for row in stationary_variance(phi, theta)]
    G = [dot(row, column) + k for row, k in zip(T, K, strict=True)]
    gamma = np.zeros((len(params), n_lags + 1))
    gamma[:, 0] = column[0] + 1
    for k in range(1, n_lags + 1):
        gamma[:, k] = G[0]
        G = [dot(row, G) for row in T]
    return gamma * params[:, -1:]


def simulate_paths(
    spec: Specification,
    params: np.ndarray,
    n_rows: int,
    rng: np.random.Generator,
    exog: np.ndarray | None = None,
) -> np.ndarray:
    """Gaussian paths (n, n_rows), from levels of zero and the presample of the likelihood."""
    form, n = filter_form(spec), len(params)
    _, phi, theta = form.split(tuple(params.T))
    (T, K), Z = system(form, phi, theta), observation(form)
    state = list(np.zeros((form.dimension, n)))
    if spec.exact:
        P = _stacked(stationary_variance(phi, theta), n)
        state[spec.d :] = draw_normal(P, rng.standard_normal((n, form.r, 1)))[:, :, 0].T
    e = rng.standard_normal((n_rows, n))
    u = np.empty((n_rows, n))
    for t in range(n_rows):
        u[t] = dot(Z, state) + e[t]
        state = [dot(row, state) + k * e[t] for row, k in zip(T, K, strict=True)]
    inputs = inputs_of(spec, np.zeros((n, n_rows)), exog, np.zeros(n))
    return u.T * np.sqrt(params[:, -1:]) + trend_of(form, params, inputs)


def _stacked(matrix: Matrix, n: int) -> np.ndarray:
    """Array (n, d, d) of a matrix whose entries are arrays (n,) or numbers."""
    return np.stack([np.stack([np.zeros(n) + x for x in row], -1) for row in matrix], 1)
