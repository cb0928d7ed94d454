"""The filter of an ARMA as a recurrence, of a known or of an uncertain state.

The state in innovation form, of dimension r = max(p, q), is what the past says of the next r
values of u: ``u_t = a_t[0] + e_t``, ``a_{t+1} = T a_t + K e_t`` with the companion matrix T of
phi and ``K = phi + theta``. Integration puts levels before it: ``u_{t-1}, D u_{t-1}, ...``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch

from tsrnn.kernels import Cell, Fields
from tsrnn.linear.arma._entries import (
    Entry,
    Matrix,
    add,
    as_tensor,
    dot,
    inverse,
    log,
    mul,
    product,
    sub,
)
from tsrnn.linear.arma._form import Form, lower_triangle


@cache
def filter_cell(form: Form, certain: bool = False) -> Cell:
    r"""One step of the filter.

    .. math::
        e_t &= y_t - x_t'\beta - Z a_t, \qquad F_t = Z P_t Z' + 1, \qquad
            G_t = T P_t Z' + K, \\
        a_{t+1} &= T a_t + G_t F_t^{-1} e_t, \qquad
            P_{t+1} = T P_t T' + K K' - G_t F_t^{-1} G_t'

    With P = 0 this is the linear RNN h_t = Theta h_{t-1} + (Phi - Theta) y_{t-1} of Cai et al.
    (2026), section 2.1, whose h_t is a[0]. Where there is no observation, G is zero.

    Parameters
    ----------
    form : Form
    certain : bool
        Whether P is zero: the conditional likelihood.

    Returns
    -------
    Cell
        Its memory is a, then the lower triangle of P by rows, unless certain. Then follow e,
        its weight 1 / v, v = F sigma2, its weight 1 / (2 v^2); l, the log-likelihood; e^2 / F
        and log F. Its last parameter is sigma2.
    """
    memory = [f"a{i}" for i in range(form.dimension)]
    memory += [f"P{i}_{j}" for i, j in _triangle(form, certain)]
    state = (*memory, "e", "w_e", "v", "w_v", "l", "square", "log_f")
    params = (*form.params, "sigma2")
    name = f"arma_filter_{form.label}" + "_certain" * certain
    step, names = _Step(form, certain), (state, form.inputs, params)
    return Cell(name, len(state), len(form.inputs), len(params), step, names=names)


@dataclass(frozen=True)
class _Step:
    form: Form
    certain: bool

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        form, n = self.form, self.form.dimension
        coefficients, phi, theta = form.split(params)
        triangle = _triangle(form, self.certain)
        a, P = state[:n], _symmetric(n, triangle, state[n : n + len(triangle)])
        T, K = system(form, phi, theta)
        Z = observation(form)
        PZ = [dot(row, Z) for row in P]
        F = add(dot(Z, PZ), 1)
        gain = [add(dot(row, PZ), k) for row, k in zip(T, K, strict=True)]
        e = sub(detrended(form, inputs, coefficients), dot(Z, a))
        observed = inputs[-1] if form.masked else 1
        weight = mul(observed, inverse(F))
        moved = [add(dot(row, a), mul(mul(g, weight), e)) for row, g in zip(T, gain, strict=True)]
        spread = _spread(triangle, T, P, K, gain, weight)
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
    phi, theta = ([*given, *[0] * (r - len(given))] for given in (phi, theta))
    levels = [[int(j >= i) for j in range(d)] + [1] + [0] * (r - 1) for i in range(d)]
    companion = [[0] * d + [phi[i]] + [int(j == i + 1) for j in range(1, r)] for i in range(r)]
    return levels + companion, [1] * d + [add(f, t) for f, t in zip(phi, theta, strict=True)]


def detrended(form: Form, inputs: Fields, coefficients: Fields) -> Entry:
    """U = y - x'beta."""
    regressors = [1] * form.constant + list(inputs[1 : 1 + form.n_regressors])
    return sub(inputs[0], dot(regressors, coefficients))


def _triangle(form: Form, certain: bool) -> list[tuple[int, int]]:
    return [] if certain else lower_triangle(form.dimension)


def _symmetric(n: int, triangle: list[tuple[int, int]], entries: Fields) -> Matrix:
    P: Matrix = [[0] * n for _ in range(n)]
    for (i, j), entry in zip(triangle, entries, strict=True):
        P[i][j] = P[j][i] = entry
    return P


def _spread(
    triangle: list[tuple[int, int]],
    T: Matrix,
    P: Matrix,
    K: list[Entry],
    gain: list[Entry],
    weight: Entry,
) -> list[Entry]:
    """Entries of T P T' + K K' - G G' / F."""
    TP = product(T, P)
    return [
        sub(add(dot(TP[i], T[j]), mul(K[i], K[j])), mul(mul(gain[i], weight), gain[j]))
        for i, j in triangle
    ]
