"""Exact likelihoods of lanes of any orders by one kernel, with numerical derivatives.

The recursion is that of `tsrnn/linear/arma/_fast_filter.py`. Further units of the kernel run the
series with one parameter moved a little: differences of innovations over the step are their
Jacobian, which gives the gradient and the Gauss-Newton information.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from tsrnn.kernels import Cell, variants
from tsrnn.linear._as_rnn import padded
from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.arma._cells import Fields, as_tensor
from tsrnn.linear.arma._fast_filter import solution
from tsrnn.linear.arma._seasonal import Lanes, multiplied, stationary
from tsrnn.linear.arma._specification import Form

_STEP = 1e-6  # of numerical differences, in coefficients of standardised series
_ROWS = 2**15  # rows over all lanes of a call, whose memory stays in the second cache
_VECTOR = 4  # units of a lane are padded to a multiple, the width of the kernel's vectors
_FEW = 6000  # with fewer elements of states over all lanes, one call is faster than several


Direction = tuple[int, int, list[tuple[int, Any]]]


class Likelihood:
    """Likelihood of lanes whose state has a given length.

    `longest` bounds the orders p and q of all lanes; with the same bound in many calls few kernels
    are compiled.
    """

    def __init__(self, lanes: Lanes, longest: int) -> None:
        form = lanes.form
        self.lanes, seasons = lanes, max(form.P, form.Q)
        # With k seasonal lags the state is k seasons and the highest order long.
        self.length = max(longest + form.m * seasons, 1)
        first = [form.m * j for j in range(seasons + 1)]
        lags = {j + i for j in first for i in range(longest)} | {j - 1 for j in first[1:]}
        self.lags = tuple(sorted(lags))
        T, m, _ = lanes.X.shape
        X = np.broadcast_to(lanes.X, (T, m, lanes.u.shape[1]))
        rows = np.concatenate([lanes.u[:, None], X], 1)
        self.inputs = np.ascontiguousarray(rows.transpose(2, 0, 1))
        self.cell = likelihood_cell(self.length, m, self.lags)

    def evaluate(self, params: np.ndarray, units: np.ndarray) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out, gradient and Gauss-Newton information.

        The sum of squares is of innovations over the roots of their variances, times the geometric
        mean of these roots.
        """
        (n, k), form, free = params.shape, self.lanes.form, self.lanes.free[units]
        result = Evaluation(np.empty(n), np.empty((n, k)), np.empty((n, k, k)))
        usable = stationary(form, params)
        params = np.where(usable[:, None], params, 0.0)
        # Units of a lane: the lane itself, and one for each of its parameters.
        width = -(-(1 + free.sum(1)) // _VECTOR) * _VECTOR
        seasons = free[:, form.n_params - form.Q - form.P : form.n_params - form.Q].sum(1)
        if n * self.length <= _FEW:
            width[:], seasons[:] = width.max(initial=0), seasons.max(initial=0)
        together = max(_ROWS // len(self.lanes.u), 1)
        for w, P in np.unique(np.stack([width, seasons]), axis=1).T.tolist():
            members = np.flatnonzero((width == w) & (seasons == P))
            for i in range(0, len(members), together):
                part = members[i : i + together]
                with np.errstate(all="ignore"):  # a lane may have no likelihood
                    block = self._evaluated(params[part], units[part], w, form.p + form.m * P)
                for target, values in zip(result, block, strict=True):
                    target[part] = values
        usable &= np.isfinite(result.value) & np.isfinite(result.gradient).all(1)
        usable &= np.isfinite(result.curvature).all((1, 2))
        result.value[~usable], result.gradient[~usable] = -np.inf, 0.0
        result.curvature[~usable] = np.eye(k)
        return result

    def _evaluated(
        self, params: np.ndarray, units: np.ndarray, width: int, order: int
    ) -> Evaluation:
        """Evaluation of lanes of `width` units, with an autoregression of at most `order` lags."""
        n_obs, free = self.lanes.n_obs[self.lanes.series[units]], self.lanes.free[units]
        # Unit 0 is the lane itself; units of parameters begin at 1.
        place = np.where(free, np.cumsum(free, 1), 0)
        step = np.where(params > 0, -_STEP, _STEP)  # away from the unit circle
        e, log_det = self._innovations(params, units, place, step, width, order)
        # Difference innovations before taking products: products differ by the square of the step.
        changes = np.eye(width)
        changes[0, 1:] = -1.0
        e = (e.reshape(-1, width) @ changes).reshape(e.shape)
        products = e.swapaxes(1, 2) @ e
        S, D, change = products[:, 0, 0].copy(), log_det[:, 0], log_det - log_det[:, :1]
        S[PERFECT * n_obs > S] = np.nan
        value = -0.5 * (n_obs * (np.log(2 * math.pi * S / n_obs) + 1) + D)
        rise = 2 * products[:, 0] + np.einsum("nii->ni", products)  # change of the sum of squares
        slope = -0.5 * (n_obs[:, None] * np.log1p(rise / S[:, None]) + change)
        # Derivatives of innovations times exp(D / 2n).
        share = change / (2 * n_obs[:, None])
        crossed = products[:, 0, :, None] * share[:, None, :]
        products += crossed + crossed.swapaxes(1, 2)
        products += S[:, None, None] * share[:, :, None] * share[:, None, :]
        # Back from units to parameters.
        each, k = np.arange(len(units))[:, None], params.shape[1]
        gradient = np.where(free, slope[each, place] / step, 0.0)
        information = products[each[:, :, None], place[:, :, None], place[:, None, :]]
        information *= (n_obs / S)[:, None, None] / (step[:, :, None] * step[:, None, :])
        information[~(free[:, :, None] & free[:, None, :])] = 0.0
        information[:, range(k), range(k)] += ~free
        return Evaluation(value, gradient, information)

    def _innovations(
        self,
        params: np.ndarray,
        units: np.ndarray,
        place: np.ndarray,
        step: np.ndarray,
        width: int,
        order: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Innovations (n, T, width) over the roots of their variances, and sums of log variances.

        Units with a place have that parameter moved by its step.
        """
        lanes, form, n, r = self.lanes, self.lanes.form, len(units), self.length
        rows = np.repeat(params.T[:, :, None], width, 2)
        of, moved = np.nonzero(place)
        rows[moved, of, place[of, moved]] += step[of, moved]
        factors = multiplied(form, rows.reshape(-1, n * width).T)
        phi, theta = (padded(part, r).reshape(r, n, width) for part in factors)
        first = _starts(form, params, phi[:, :, 0], theta[:, :, 0], step, place, width, order)
        F = first[0] + 1
        gain = theta + phi * F
        gain[:-1] += first[1:]
        initial = np.empty((n, self.cell.n, width))
        initial[:, : 2 + r] = 0.0
        initial[:, 2 + r : 2 + 2 * r] = initial[:, 2 + 2 * r : -3] = gain.transpose(1, 0, 2)
        initial[:, -3], initial[:, -2], initial[:, -1] = F, 1 / F, -1 / F
        coefficients = np.empty((n, self.cell.p, width))
        coefficients[:, : form.n_mean] = rows[: form.n_mean].transpose(1, 0, 2)
        coefficients[:, form.n_mean :] = phi[list(self.lags)].transpose(1, 0, 2)
        series = lanes.series[units]
        n_obs = lanes.n_obs[series]
        inputs = self.inputs[series, : n_obs.max()]
        path = variants(self.cell, inputs, coefficients, initial, n_obs)
        return path.outputs[:, :, 0], path.final[:, 1]


class _Stationary:
    r"""Linear equations of the first column x of the stationary variance, of n lanes of one form.

    .. math:: x_j - \rho_j x_0 - \sum_k (\phi_k x_{j+1+k} + \phi_{j+k} x_{k+1}) = b_j

    Beyond the order of the autoregression the equations are triangular, so that matrices have the
    size of the order, not of the state.
    """

    def __init__(self, phi: np.ndarray, order: int) -> None:
        self.phi, self.order = phi, order
        if order:
            n = phi.shape[1]
            # Toeplitz and Hankel matrices of phi are views of a zero-padded row.
            row = np.zeros((n, 3 * order))
            row[:, order : 2 * order] = phi[:order].T
            size = row.itemsize
            shape, begin = (n, order, order), row[:, order - 1 :]
            toeplitz, hankel = (
                np.lib.stride_tricks.as_strided(begin, shape, (row.strides[0], sign * size, size))
                for sign in (-1, 1)
            )
            self.matrices = -(toeplitz + hankel)
            self.matrices[:, :, 0] = -autocorrelation(phi[:order]).T
            self.matrices[:, range(order), range(order)] += 1.0

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solve for right sides (r, n, w), in place."""
        phi, order, r = self.phi[: self.order], self.order, len(right)
        if not order:
            return right
        for j in range(r - 2, -1, -1):
            # Known elements move to the right side, also in rows of the matrices.
            known = slice(max(j + 1, order), min(j + 1 + order, r))
            if known.start < known.stop:
                weights = phi[known.start - j - 1 : known.stop - j - 1]
                right[j] += np.einsum("kn,knw->nw", weights, right[known])
        if r > order:
            right[0] += phi[order - 1, :, None] * right[order]
        head = np.ascontiguousarray(right[:order].transpose(1, 0, 2))
        right[:order] = solution(self.matrices, head).transpose(1, 0, 2)
        return right


def autocorrelation(a: np.ndarray) -> np.ndarray:
    """Sums over k of a_k a_{k+j} for j = 0, ..., r - 1, of an array (r, n)."""
    result = np.zeros_like(a)
    for k in np.flatnonzero((a != 0).any(1)):
        result[: len(a) - k] += a[k] * a[k:]
    return result


def _directions(form: Form, params: np.ndarray) -> Iterator[Direction]:
    """Yield the number of each lag parameter and its derivative.

    The derivative is of phi (0) or theta (1), by pairs of a place and a rate (scalar or by lane).
    """
    counts = np.cumsum([form.n_mean, form.p, form.q, form.P, form.Q]).tolist()
    _, ar, ma, seasonal_ar, seasonal_ma = form.parts(params.T)
    for side, lags, seasonal, sign in ((0, ar, seasonal_ar, -1.0), (1, ma, seasonal_ma, 1.0)):
        for i in range(len(lags)):
            pairs: list[tuple[int, Any]] = [(i, 1.0)]
            pairs += [(form.m * (j + 1) + i, sign * c) for j, c in enumerate(seasonal)]
            yield counts[side] + i, side, pairs
        for j in range(len(seasonal)):
            first = form.m * (j + 1)
            pairs = [(first - 1, 1.0)]
            pairs += [(first + i, sign * c) for i, c in enumerate(lags)]
            yield counts[2 + side] + j, side, pairs


def _starts(
    form: Form, params: np.ndarray, phi: np.ndarray, theta: np.ndarray, step: np.ndarray,
    place: np.ndarray, width: int, order: int,
) -> np.ndarray:  # fmt: skip
    """First columns (r, n, width) of the stationary variances of all units.

    Columns of moved units are linear in the step: the change of A x = b is solved with the same
    matrices, so that its error is of second order, and rounding is relative to the change.
    """
    r, n = phi.shape
    system, K = _Stationary(phi, order), phi + theta
    x = system.solve(autocorrelation(K)[:, :, None])[:, :, 0]
    V = K + phi * x[0]
    V[:-1] += x[1:]
    wide = np.zeros((2, 3 * r, n))
    wide[0, r : 2 * r], wide[1, r : 2 * r] = V, K
    right = np.zeros((r, n, width))
    for number, side, pairs in _directions(form, params):
        of = np.flatnonzero(place[:, number])
        if not len(of):
            continue
        values, change = wide[side], np.zeros((r, n))
        for i, coefficient in pairs:
            change += coefficient * (values[r + i : 2 * r + i] + values[r + i : i : -1])
        right[:, of, place[of, number]] = (change * step[:, number])[:, of]
    return x[:, :, None] + system.solve(right)


@cache
def likelihood_cell(r: int, m: int, lags: tuple[int, ...]) -> Cell:
    """Cell of the innovations of an ARMA with a state of length r and m columns of the mean.

    Coefficients of the autoregression are at places `lags` of r; others are zero.
    """
    state = [f"{name}{i}" for name in ("a", "G", "L") for i in range(r)]
    state = ["e", "log_f", *state, "F", "inverse", "M"]
    inputs = ["y", *(f"x{i}" for i in range(m))]
    params = [*(f"beta{i}" for i in range(m)), *(f"phi{i + 1}" for i in lags)]
    return Cell(
        f"arma_innovations_{r}_{m}", len(state), len(inputs), len(params),
        partial(_step, r, m, lags), shared=True, outputs=1,
        names=(tuple(state), tuple(inputs), tuple(params)),
    )  # fmt: skip


def _step(
    r: int, m: int, lags: tuple[int, ...], state: Fields, inputs: Fields, params: Fields
) -> Fields:
    _, log_f, *memory = state
    a, G, L, (F, inverse, M) = memory[:r], memory[r : 2 * r], memory[2 * r : 3 * r], memory[3 * r :]
    beta, phi, (y, *X) = params[:m], dict(zip(lags, params[m:], strict=True)), inputs
    v = y - a[0]
    for b, x in zip(beta, X, strict=True):
        v = v - b * x
    w, ell = v * inverse, L[0]
    c = ell * M
    # a' = T a + G v / F; F', G' and L' follow from T L.
    moved = [t + g * w for t, g in zip(_transition(a, phi), G, strict=True)]
    TL = _transition(L, phi)
    next_F = F + ell * c
    next_inverse = 1 / next_F
    gain = [g + x * c for g, x in zip(G, TL, strict=True)]
    share = ell * next_inverse
    rest = [x - g * share for x, g in zip(TL, gain, strict=True)]
    fields = (
        v * torch.sqrt(inverse), log_f + torch.log(F), *moved, *gain, *rest,
        next_F, next_inverse, M + c * c * inverse,
    )  # fmt: skip
    return tuple(as_tensor(entry, v) for entry in fields)


def _transition(a: Sequence[torch.Tensor], phi: dict[int, torch.Tensor]) -> list[torch.Tensor]:
    """T a: the companion matrix of phi times a vector."""
    shifted = [*a[1:], torch.zeros_like(a[0])]
    return [x + phi[i] * a[0] if i in phi else x for i, x in enumerate(shifted)]
