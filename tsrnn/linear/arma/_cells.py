r"""ARMA recurrences as cells: the filter, the innovations of complete series, exact starts.

The state in innovation form, of dimension r = max(p, q), is the forecast of the next r values of
u given the past: ``u_t = a_t[0] + e_t``, ``a_{t+1} = T a_t + K e_t`` with the companion matrix T
of phi and ``K = phi + theta``. With integration, levels ``u_{t-1}, D u_{t-1}, ...`` precede it.

The exact likelihood of complete series needs no filter. Innovations are linear in the state a_1
before the first row: :math:`e_t = e^0_t - h_t' a_1` with :math:`e^0` from a state of zero and
:math:`h_{t+1}' = h_t' (T - K Z)`. With a_1 normal of variance P, the likelihood is that of a
regression with a random coefficient (de Jong, 1988):

.. math::
    S = \sum (e^0_t)^2 - b' (P^{-1} + M)^{-1} b, \qquad D = \log |I + P M|, \qquad
    b = \sum h_t e^0_t, \quad M = \sum h_t h_t'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from tsrnn.kernels import Cell
from tsrnn.linear.arma._specification import Form, lower_triangle

Fields = tuple[torch.Tensor, ...]
# A tensor or an array, or the int 0 or 1 if known in advance, which operations below leave out.
Entry = Any
Matrix = list[list[Entry]]


@cache
def filter_cell(form: Form, certain: bool = False) -> Cell:
    r"""One step of the filter.

    .. math::
        e_t &= y_t - x_t'\beta - Z a_t, \qquad F_t = Z P_t Z' + 1, \qquad
            G_t = T P_t Z' + K, \\
        a_{t+1} &= T a_t + G_t F_t^{-1} e_t, \qquad
            P_{t+1} = T P_t T' + K K' - G_t F_t^{-1} G_t'

    With P = 0, `certain` under the conditional likelihood, it is the linear RNN
    h_t = Theta h_{t-1} + (Phi - Theta) y_{t-1} of Cai et al. (2026), section 2.1, with h_t = a[0].
    G is zero without an observation.

    The memory is a and, unless certain, the lower triangle of P by rows. Then follow e, its weight
    1 / v, v = F sigma2, its weight 1 / (2 v^2), the log-likelihood l, e^2 / F and log F. The last
    parameter is sigma2.
    """
    memory = [f"a{i}" for i in range(form.dimension)]
    memory += [] if certain else [f"P{i}_{j}" for i, j in lower_triangle(form.dimension)]
    state = (*memory, "e", "w_e", "v", "w_v", "l", "square", "log_f")
    name = f"arma_filter_{form.label}" + "_certain" * certain
    step = partial(_filter_step, form, certain)
    return named_cell(name, step, state, form.inputs, (*form.params, "sigma2"))


def _filter_step(
    form: Form, certain: bool, state: Fields, inputs: Fields, params: Fields
) -> Fields:
    n = form.dimension
    coefficients, phi, theta = form.split(params)
    triangle = [] if certain else lower_triangle(n)
    a, P = state[:n], symmetric(n, state[n : n + len(triangle)])
    T, K = system(form, phi, theta)
    Z = observation(form)
    PZ = [dot(row, Z) for row in P]
    F = add(dot(Z, PZ), 1)
    gain = [add(dot(row, PZ), k) for row, k in zip(T, K, strict=True)]
    e = sub(detrended(form, inputs, coefficients), dot(Z, a))
    # A missing observation has weight 0: the state becomes T a, its variance T P T' + K K'.
    observed = inputs[-1] if form.masked else 1
    weight = mul(observed, inverse(F))
    moved = [add(dot(row, a), mul(mul(g, weight), e)) for row, g in zip(T, gain, strict=True)]
    TP = product(T, P)
    spread = [
        sub(add(dot(TP[i], T[j]), mul(K[i], K[j])), mul(mul(gain[i], weight), gain[j]))
        for i, j in triangle
    ]
    v, w = mul(F, params[-1]), weight / params[-1]
    square = mul(mul(e, e), weight)
    log_f = mul(observed, log(F))
    density = -0.5 * (torch.log(v) + math.log(2 * math.pi))
    loglik = mul(observed, density) - 0.5 * e * e * w
    rest = e, w, v, 0.5 * w * w, loglik, square, log_f
    return tuple(as_tensor(entry, e) for entry in (*moved, *spread, *rest))


def observation(form: Form) -> list[Entry]:
    """Row Z: u_t = Z a_t + e_t."""
    return [1] * (form.d + 1) + [0] * (form.r - 1)


def system(form: Form, phi: Sequence[Entry], theta: Sequence[Entry]) -> tuple[Matrix, list[Entry]]:
    """Transition matrix T and gain K of the state."""
    d, r = form.d, form.r
    phi, theta = ([*lags, *[0] * (r - len(lags))] for lags in (phi, theta))
    levels = [[int(j >= i) for j in range(d)] + [1] + [0] * (r - 1) for i in range(d)]
    companion = [[0] * d + [phi[i]] + [int(j == i + 1) for j in range(1, r)] for i in range(r)]
    return levels + companion, [1] * d + [add(f, t) for f, t in zip(phi, theta, strict=True)]


def detrended(form: Form, inputs: Fields, coefficients: Fields) -> Entry:
    """Return u = y - x'beta."""
    regressors = [1] * form.constant + list(inputs[1 : 1 + form.n_regressors])
    return sub(inputs[0], dot(regressors, coefficients))


def sum_names(form: Form) -> tuple[str, ...]:
    """Names of the sums of the exact likelihood: squares, b and the lower triangle of M."""
    M = (f"M{i}_{j}" for i, j in lower_triangle(form.r))
    return ("squares", *(f"b{i}" for i in range(form.r)), *M)


@cache
def residual_cell(form: Form, conditional: bool = False) -> Cell:
    r"""Innovations from a state of zero, with the summands of the likelihood.

    .. math:: u_t = y_t - x_t'\beta, \qquad
              e_t = u_t - \sum_i \phi_i u_{t-i} - \sum_j \theta_j e_{t-j}

    The form has d = 0 and masks only rows after the last observation. The memory is u_{t-1}, ...,
    u_{t-p}, e_{t-1}, ..., e_{t-q} and, unless conditional, h, which starts at (1, 0, ...). Then
    follow e, its weight, and `sum_names`, if conditional only the squares.
    """
    memory = [f"u{i + 1}" for i in range(form.p)] + [f"e{j + 1}" for j in range(form.q)]
    memory += [] if conditional else [f"h{i}" for i in range(form.r)]
    state = (*memory, "e", "weight", *sum_names(form)[: 1 if conditional else None])
    name = f"arma_residual_{form.label}" + "_conditional" * conditional
    step = partial(_residual_step, form, conditional)
    return named_cell(name, step, state, form.inputs, form.params)


def _residual_step(
    form: Form, conditional: bool, state: Fields, inputs: Fields, params: Fields
) -> Fields:
    p, q = form.p, form.q
    coefficients, phi, theta = form.split(params)
    past, errors, h = state[:p], state[p : p + q], state[p + q : p + q + form.r]
    u = detrended(form, inputs, coefficients)
    e = sub(sub(u, dot(phi, past)), dot(theta, errors))
    weight = inputs[-1] if form.masked else 1
    lags = [*[u, *past][:p], *[e, *errors][:q]]
    weighted = mul(weight, e)
    if conditional:
        return tuple(as_tensor(x, e) for x in (*lags, e, weight, mul(weighted, e)))
    lags += [sub(0, dot(theta, h[:q])), *h[: form.r - 1]]
    b = [mul(weighted, x) for x in h]
    M = [mul(weight, mul(h[i], h[j])) for i, j in lower_triangle(form.r)]
    return tuple(as_tensor(x, e) for x in (*lags, e, weight, mul(weighted, e), *b, *M))


@cache
def closing_cell(form: Form) -> Cell:
    """One step from the sums to S and D, as a cell, so that derivatives follow by the chain rule.

    The memory is `sum_names`; then follow S and D. The input is not used.
    """
    name = f"arma_closing_{form.p}_{form.q}_{form.n_mean}"
    state = (*sum_names(form), "S", "D")
    return named_cell(name, partial(_closing_step, form), state, ("nothing",), form.params)


def _closing_step(form: Form, state: Fields, inputs: Fields, params: Fields) -> Fields:
    r = form.r
    _, phi, theta = form.split(params)
    squares, b, M = state[0], state[1 : 1 + r], symmetric(r, state[1 + r : -2])
    # With M = L D L', |I + P M| = |D| |D^-1 + L'PL|: P may be singular and is never inverted.
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
    """One step to the stationary variance P of the state, as a cell, so that it has derivatives.

    The fields are the lower triangle of P. The input is not used.
    """
    name = f"arma_presample_{form.p}_{form.q}_{form.n_mean}"
    state = tuple(f"P{i}_{j}" for i, j in lower_triangle(form.r))
    return named_cell(name, partial(_presample_step, form), state, ("nothing",), form.params)


def _presample_step(form: Form, state: Fields, inputs: Fields, params: Fields) -> Fields:
    _, phi, theta = form.split(params)
    P = stationary_variance(phi, theta)
    return tuple(as_tensor(P[i][j], inputs[0]) for i, j in lower_triangle(form.r))


def stationary_variance(phi: Sequence[Entry], theta: Sequence[Entry]) -> Matrix:
    r"""Variance P (r, r) of the state of an ARMA in units of sigma2: P = T P T' + K K'.

    With the companion matrix T, the first row v of P determines the other rows by

    .. math:: P_{ij} = \phi_i \phi_j v_0 + \phi_i v_{j+1} + \phi_j v_{i+1} + K_i K_j
                       + P_{i+1,j+1},

    which for i = 0 are r linear equations in v. Coefficients are numbers, arrays or tensors.
    """
    r = max(len(phi), len(theta), 1)
    phi, theta = ([*lags, *[0] * (r - len(lags))] for lags in (phi, theta))
    K = [add(f, t) for f, t in zip(phi, theta, strict=True)]
    v = [*_first_row(phi, K), 0]
    P: Matrix = [[0] * r for _ in range(r)]
    for i in range(r - 1, -1, -1):
        for j in range(i, r):
            first = [mul(phi[i], phi[j]), phi[i], phi[j], K[i]]
            entry = dot(first, [v[0], v[j + 1], v[i + 1], K[j]])
            P[i][j] = P[j][i] = add(entry, P[i + 1][j + 1] if j + 1 < r else 0)
    return P


def _first_row(phi: Sequence[Entry], K: Sequence[Entry]) -> list[Entry]:
    """First row of P, by elimination in its r equations A v = b."""
    r = len(phi)
    A: Matrix = [[int(i == j) for j in range(r)] for i in range(r)]
    for j in range(r):
        for k in range(r - j):
            A[j][0] = sub(A[j][0], mul(phi[k], phi[k + j]))
            if k + j + 1 < r:
                A[j][k + j + 1] = sub(A[j][k + j + 1], phi[k])
            if k + 1 < r:
                A[j][k + 1] = sub(A[j][k + 1], phi[k + j])
    v: list[Entry] = [dot(K[: r - j], K[j:]) for j in range(r)]
    for pivot in range(r - 1, 0, -1):
        one_over = inverse(A[pivot][pivot])
        for row in range(pivot):
            factor = mul(A[row][pivot], one_over)
            v[row] = sub(v[row], mul(factor, v[pivot]))
            for column in range(pivot):
                A[row][column] = sub(A[row][column], mul(factor, A[pivot][column]))
    for row in range(r):
        v[row] = mul(sub(v[row], dot(A[row][:row], v[:row])), inverse(A[row][row]))
    return v


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


def _solved(L: Matrix, b: Iterable[Entry]) -> list[Entry]:
    """Solution of L x = b for unit lower triangular L."""
    x: list[Entry] = []
    for i, right in enumerate(b):
        x.append(sub(right, dot(L[i][:i], x)))
    return x


def named_cell(
    name: str,
    step: Callable[[Fields, Fields, Fields], Fields],
    state: Sequence[str],
    inputs: Sequence[str],
    params: Sequence[str],
) -> Cell:
    """Cell with named state fields, inputs and parameters."""
    names = tuple(state), tuple(inputs), tuple(params)
    return Cell(name, len(state), len(inputs), len(params), step, names=names)


def symmetric(n: int, entries: Sequence[Entry] | np.ndarray) -> Matrix:
    """Symmetric matrix of its lower triangle by rows; zero without entries."""
    P: Matrix = [[0] * n for _ in range(n)]
    for (i, j), entry in zip(lower_triangle(n) if len(entries) else [], entries, strict=True):
        P[i][j] = P[j][i] = entry
    return P


def add(a: Entry, b: Entry) -> Entry:
    """Sum a + b; like all operations here, it skips what is known to be 0 or 1."""
    if _is(a, 0):
        return b
    return a if _is(b, 0) else a + b


def mul(a: Entry, b: Entry) -> Entry:
    """Product a b."""
    if _is(a, 0) or _is(b, 0):
        return 0
    if _is(a, 1):
        return b
    return a if _is(b, 1) else a * b


def sub(a: Entry, b: Entry) -> Entry:
    """Difference a - b."""
    if _is(b, 0):
        return a
    return -b if _is(a, 0) else a - b


def inverse(a: Entry) -> Entry:
    """Reciprocal 1 / a."""
    return 1 if _is(a, 1) else 1 / a


def log(a: Entry) -> Entry:
    """Logarithm."""
    return 0 if _is(a, 1) else torch.log(a)


def dot(a: Sequence[Entry], b: Sequence[Entry]) -> Entry:
    """Sum of products."""
    total: Entry = 0
    for x, y in zip(a, b, strict=True):
        total = add(total, mul(x, y))
    return total


def product(A: Matrix, B: Matrix) -> Matrix:
    """Matrix product."""
    columns = list(zip(*B, strict=True))
    return [[dot(row, column) for column in columns] for row in A]


def as_tensor(entry: Entry, like: Any) -> Any:
    """Convert an entry to a tensor, which fields of a state must be."""
    return entry if isinstance(entry, torch.Tensor) else 0 * like + entry


def _is(entry: Entry, number: int) -> bool:
    return isinstance(entry, int) and entry == number
