r"""The likelihood of complete series from sums of squares, without a filter.

Given the state a_1 before the first row, innovations are linear in it: :math:`e_t = e^0_t - h_t'
a_1` with :math:`e^0` from zero and :math:`h_{t+1}' = h_t' (T - K Z)`. With a_1 normal of variance
P the likelihood is that of regression with a random coefficient (de Jong, 1988):

.. math::
    S = \sum (e^0_t)^2 - b' (P^{-1} + M)^{-1} b, \qquad D = \log |I + P M|, \qquad
    b = \sum h_t e^0_t, \quad M = \sum h_t h_t'
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tsrnn.kernels import Cell, Fields
from tsrnn.linear.arma._entries import (
    Entry,
    Matrix,
    as_tensor,
    dot,
    inverse,
    log,
    mul,
    product,
    sub,
)
from tsrnn.linear.arma._filter_cell import detrended
from tsrnn.linear.arma._form import Form, lower_triangle
from tsrnn.linear.arma._stationary import stationary_variance


def sum_names(form: Form) -> tuple[str, ...]:
    """Names of the sums of the exact likelihood: squares, b and the lower triangle of M."""
    M = (f"M{i}_{j}" for i, j in lower_triangle(form.r))
    return ("squares", *(f"b{i}" for i in range(form.r)), *M)


@cache
def residual_cell(form: Form, conditional: bool = False) -> Cell:
    r"""Innovations from zero, and what their sums need.

    .. math:: u_t = y_t - x_t'\beta, \qquad
              e_t = u_t - \sum_i \phi_i u_{t-i} - \sum_j \theta_j e_{t-j}

    Parameters
    ----------
    form : Form
        With d = 0. Only rows after the last observation may be masked.
    conditional : bool
        Whether the squares are all that is wanted.

    Returns
    -------
    Cell
        Its memory is u_{t-1}, ..., u_{t-p}, e_{t-1}, ..., e_{t-q}, then h, unless conditional,
        which starts at (1, 0, ...). Then follow e, its weight, and `sum_names`.
    """
    memory = [f"u{i + 1}" for i in range(form.p)] + [f"e{j + 1}" for j in range(form.q)]
    memory += [] if conditional else [f"h{i}" for i in range(form.r)]
    state = (*memory, "e", "weight", *sum_names(form)[: 1 if conditional else None])
    name = f"arma_residual_{form.label}" + "_conditional" * conditional
    names = (state, form.inputs, form.params)
    step = _Residual(form, conditional)
    return Cell(name, len(state), len(form.inputs), form.n_params, step, names=names)


@dataclass(frozen=True)
class _Residual:
    form: Form
    conditional: bool

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        form, p, q = self.form, self.form.p, self.form.q
        coefficients, phi, theta = form.split(params)
        past, errors, h = state[:p], state[p : p + q], state[p + q : p + q + form.r]
        u = detrended(form, inputs, coefficients)
        e = sub(sub(u, dot(phi, past)), dot(theta, errors))
        weight = inputs[-1] if form.masked else 1
        lags = [*[u, *past][:p], *[e, *errors][:q]]
        weighted = mul(weight, e)
        if self.conditional:
            return tuple(as_tensor(x, e) for x in (*lags, e, weight, mul(weighted, e)))
        lags += [sub(0, dot(theta, h[:q])), *h[: form.r - 1]]
        b = [mul(weighted, x) for x in h]
        M = [mul(weight, mul(h[i], h[j])) for i, j in lower_triangle(form.r)]
        return tuple(as_tensor(x, e) for x in (*lags, e, weight, mul(weighted, e), *b, *M))


@cache
def closing_cell(form: Form) -> Cell:
    """One step from the sums to the exact likelihood, so that its derivatives are chained.

    Parameters
    ----------
    form : Form

    Returns
    -------
    Cell
        Its memory is `sum_names`; then follow S and D. Its input is not looked at.
    """
    state = (*sum_names(form), "S", "D")
    return Cell(
        f"arma_closing_{form.p}_{form.q}_{form.n_mean}",
        len(state),
        1,
        form.n_params,
        _Closing(form),
        names=(state, ("nothing",), form.params),
    )


@dataclass(frozen=True)
class _Closing:
    form: Form

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        r = self.form.r
        _, phi, theta = self.form.split(params)
        squares, b, entries = state[0], state[1 : 1 + r], state[1 + r : -2]
        M: Matrix = [[0] * r for _ in range(r)]
        for (i, j), entry in zip(lower_triangle(r), entries, strict=True):
            M[i][j] = M[j][i] = entry
        lower, D = _factorised(M)
        P = stationary_variance(phi, theta)
        upper = [list(column) for column in zip(*lower, strict=True)]
        Q = product(product(upper, P), lower)
        for i in range(r):
            Q[i][i] = Q[i][i] + inverse(D[i])
        inner, E = _factorised(Q)
        z = [mul(x, inverse(d)) for x, d in zip(_solved(lower, b), D, strict=True)]
        y = _solved(inner, z)
        explained = sub(_weighted_square(z, D), _weighted_square(y, [inverse(e) for e in E]))
        determinant: Entry = 0
        for d, e in zip(D, E, strict=True):
            determinant = determinant + log(d * e)
        return (*state[:-2], sub(squares, explained), determinant)


@cache
def presample_cell(form: Form) -> Cell:
    """One step that says the stationary variance of the state, so that it has derivatives.

    Parameters
    ----------
    form : Form

    Returns
    -------
    Cell
        Its fields are the lower triangle of P. Its input is not looked at.
    """
    state = tuple(f"P{i}_{j}" for i, j in lower_triangle(form.r))
    return Cell(
        f"arma_presample_{form.p}_{form.q}_{form.n_mean}",
        len(state),
        1,
        form.n_params,
        _Presample(form),
        names=(state, ("nothing",), form.params),
    )


@dataclass(frozen=True)
class _Presample:
    form: Form

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        _, phi, theta = self.form.split(params)
        P = stationary_variance(phi, theta)
        return tuple(as_tensor(P[i][j], inputs[0]) for i, j in lower_triangle(self.form.r))


def _weighted_square(x: list[Entry], weights: list[Entry]) -> Entry:
    return dot([mul(value, w) for value, w in zip(x, weights, strict=True)], x)


def _factorised(A: Matrix) -> tuple[Matrix, list[Entry]]:
    """Unit lower triangular L and diagonal D with A = L D L'."""
    n = len(A)
    L: Matrix = [[int(i == j) for j in range(n)] for i in range(n)]
    D: list[Entry] = []
    for j in range(n):
        scaled = [mul(L[j][k], D[k]) for k in range(j)]
        D.append(sub(A[j][j], dot(scaled, L[j][:j])))
        for i in range(j + 1, n):
            L[i][j] = mul(sub(A[i][j], dot(L[i][:j], scaled)), inverse(D[j]))
    return L, D


def _solved(L: Matrix, b: list[Entry] | Fields) -> list[Entry]:
    """Solution of L x = b for unit lower triangular L."""
    x: list[Entry] = []
    for i, right in enumerate(b):
        x.append(sub(right, dot(L[i][:i], x)))
    return x
