"""Exact likelihoods of lanes of any orders by one kernel, and their gradients by differences.

The recursion is that of `tsrnn/linear/arma/_fast_filter.py`. A choice among models needs few digits
of many likelihoods: forward differences cost an evaluation a parameter, and the kernel, which keeps
everything in registers, a few microseconds each.
"""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np
import torch

from tsrnn.kernels import Cell, sums
from tsrnn.kernels import Lanes as KernelLanes
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.arma._cells import Fields, as_tensor, named_cell
from tsrnn.linear.arma._fast_filter import correlation, stationary_start
from tsrnn.linear.arma._seasonal import PERFECT, Lanes, multiplied, stationary

_STEP = 1e-6  # of differences, in coefficients of series of variance one
_TOGETHER = 4096  # lanes of a call: starts of more take more memory than is near


class Likelihood:
    """Likelihood of lanes whose state has a given length.

    Parameters
    ----------
    lanes : Lanes
    length : int
        Of the state: at least the longest lag of any lane. One for many calls, so that few kernels
        are compiled.
    """

    def __init__(self, lanes: Lanes, length: int) -> None:
        self.lanes, self.length = lanes, length
        T, m, _ = lanes.X.shape
        within = np.arange(T)[:, None] < lanes.n_obs
        X = np.broadcast_to(lanes.X, (T, m, lanes.u.shape[1]))
        rows = np.concatenate([lanes.u[:, None], X, within[:, None].astype(float)], 1)
        self.inputs = KernelLanes(np.ascontiguousarray(rows.transpose(2, 0, 1)))
        self.cell = likelihood_cell(length, m)

    def evaluate(self, params: np.ndarray, units: np.ndarray) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out, and its gradient; no curvature."""
        parts = [
            self._evaluated(params[i : i + _TOGETHER], units[i : i + _TOGETHER])
            for i in range(0, len(units), _TOGETHER)
        ]
        value, gradient = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Evaluation(value, gradient, np.zeros((*params.shape, params.shape[1])))

    def _evaluated(self, params: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lanes, form, n = self.lanes, self.lanes.form, len(units)
        usable = stationary(form, params)
        params = np.where(usable[:, None], params, 0.0)
        # Below the lanes themselves those with one parameter moved, away from the unit circle.
        of, moved = np.nonzero(lanes.free[units])
        step = np.where(params[of, moved] > 0, -_STEP, _STEP)
        rows = np.concatenate([params, params[of]])
        rows[n + np.arange(len(of)), moved] += step
        base = np.concatenate([np.arange(n), of])
        series = lanes.series[units][base]
        loglik = self._loglik(rows, base, n, lanes.n_obs[series], self.inputs.select(series))
        value, gradient = loglik[:n], np.zeros(params.shape)
        gradient[of, moved] = (loglik[n:] - value[of]) / step
        usable &= np.isfinite(value) & np.isfinite(gradient).all(1)
        return np.where(usable, value, -np.inf), np.where(usable[:, None], gradient, 0.0)

    def _loglik(
        self, rows: np.ndarray, base: np.ndarray, n: int, n_obs: np.ndarray, inputs: KernelLanes
    ) -> np.ndarray:
        form, r = self.lanes.form, self.length
        phi, theta = (_padded(part, r, len(rows)) for part in multiplied(form, rows))
        first = _starts(phi, theta, base, n)
        gain = theta + phi * (first[0] + 1)
        gain[:-1] += first[1:]
        F = first[0] + 1
        with np.errstate(all="ignore"):  # of lanes without a likelihood
            initial = np.concatenate([np.zeros_like(gain), gain, gain, F[None], -1 / F[None]])
            coefficients = np.concatenate([rows.T[: form.n_mean], phi, theta])
            totals = sums(
                self.cell,
                inputs,
                np.ascontiguousarray(coefficients.T),
                np.ascontiguousarray(initial.T),
                terms=("square", "log_f"),
                order=0,
            )
            S, D = totals.value
            value = -0.5 * (n_obs * (np.log(2 * math.pi * S / n_obs) + 1) + D)
            return np.where(PERFECT * n_obs < S, value, np.nan)


def _padded(coefficients: np.ndarray, r: int, n: int) -> np.ndarray:
    result = np.zeros((r, n))
    result[: len(coefficients)] = coefficients[:r]
    return result


def _starts(phi: np.ndarray, theta: np.ndarray, base: np.ndarray, n: int) -> np.ndarray:
    """First columns (r, M) of the stationary variances, of n lanes and others close to them.

    One step of refinement with the matrix of the lane close by is exact to the square of the step.
    """
    K = phi + theta
    first = correlation(K, K)
    ar = np.flatnonzero((phi[:, :n] != 0).any(0))
    if not len(ar):
        return first
    at, A = stationary_start(phi[:, ar], theta[:, ar])
    assert A is not None  # with an autoregression
    place = np.full(n, -1)
    place[ar] = np.arange(len(ar))
    close = place[base]
    near = np.flatnonzero(close >= 0)
    x = at[:, close[near]]
    later = np.zeros_like(x)
    later[:-1] = x[1:]
    p = phi[:, near]
    applied = x - correlation(p, p) * x[0] - correlation(p, later) - correlation(later, p)
    rest = first[:, near] - applied
    # Lanes of one matrix are columns of one right-hand side.
    order = np.argsort(close[near], kind="stable")
    owner = close[near][order]
    column = np.arange(len(order)) - np.searchsorted(owner, owner)
    right = np.zeros((len(ar), len(phi), column.max() + 1))
    right[owner, :, column] = rest[:, order].T
    solved = np.linalg.solve(A, right)
    x[:, order] += solved[owner, :, column].T
    first[:, near] = x
    return first


@cache
def likelihood_cell(r: int, m: int) -> Cell:
    """Cell of the innovations of an ARMA with a state of length r and m regressors."""
    state = [f"{name}{i}" for name in ("a", "G", "L") for i in range(r)]
    inputs = ("y", *(f"x{i}" for i in range(m)), "observed")
    params = (
        *(f"beta{i}" for i in range(m)),
        *(f"phi{i + 1}" for i in range(r)),
        *(f"theta{i + 1}" for i in range(r)),
    )
    return named_cell(
        f"arma_fast_{r}_{m}", partial(_step, r, m), (*state, "F", "M", "square", "log_f"), inputs,
        params,
    )  # fmt: skip


def _step(r: int, m: int, state: Fields, inputs: Fields, params: Fields) -> Fields:
    a, G, L, (F, M) = state[:r], state[r : 2 * r], state[2 * r : 3 * r], state[3 * r : 3 * r + 2]
    beta, phi = params[:m], params[m : m + r]
    (y, *X), observed = inputs[:-1], inputs[-1]
    v = y - a[0]
    for b, x in zip(beta, X, strict=True):
        v = v - b * x
    w, ell = v / F, L[0]
    c = ell * M
    # a moves on by T and the gain; T L, of which F, G and L of the next row follow.
    moved = [t + g * w for t, g in zip(_transition(a, phi), G, strict=True)]
    TL = _transition(L, phi)
    F_next = F + ell * c
    gain = [g + x * c for g, x in zip(G, TL, strict=True)]
    share = ell / F_next
    rest = [x - g * share for x, g in zip(TL, gain, strict=True)]
    square, log_f = observed * v * w, observed * torch.log(F)
    fields = (*moved, *gain, *rest, F_next, M + c * c / F, square, log_f)
    return tuple(as_tensor(entry, v) for entry in fields)


def _transition(a: Fields, phi: Fields) -> list[torch.Tensor]:
    """T a: the companion matrix of phi times a vector."""
    return [phi[i] * a[0] + a[i + 1] for i in range(len(a) - 1)] + [phi[-1] * a[0]]
