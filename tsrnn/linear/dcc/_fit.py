"""Second step of the estimation: correlations, by their part of the likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tsrnn.contract import SeriesArrays
from tsrnn.linear._optimise import Evaluation, maximise
from tsrnn.linear.dcc._likelihood import correlation_logliks, evaluate_correlations
from tsrnn.linear.dcc._specification import Order

# Starting sums of a and of b; the first are typical of daily returns.
_STARTS = ((0.02, 0.96), (0.04, 0.9), (0.08, 0.85), (0.02, 0.7), (0.1, 0.5), (0.05, 0.1))
_DECAYS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98)
_NEAR_FACE = 1e-3  # distance of the sum from one at which the face of sum one is searched, too
_ROUNDING = 1e-12  # relative gain that is only rounding


@dataclass(frozen=True, eq=False)
class CorrelationOptima(SeriesArrays):
    """Correlation parameters of S series at the maximum of their likelihood."""

    params: np.ndarray  # (S, p + q)
    value: np.ndarray  # (S,), the correlations' part of the log-likelihood
    gradient: np.ndarray  # (S, p + q)
    iterations: np.ndarray  # (S,)
    converged: np.ndarray  # (S,)
    at_bound: np.ndarray  # (S, p + q), held at zero by the bound
    integrated: np.ndarray  # (S,), held at a sum of one: the last parameter follows

    def or_higher(self, other: CorrelationOptima) -> CorrelationOptima:
        """Take the optimum of `other` for each series in which it is higher beyond rounding."""
        least = np.where(np.isnan(self.value), -np.inf, self.value)
        higher = np.flatnonzero(other.value > least + _ROUNDING * (1 + np.abs(other.value)))
        return self.replaced(higher, other.select(higher))


def fit_correlations(
    order: Order, z: np.ndarray, observed: np.ndarray, verbose: int = 0
) -> CorrelationOptima:
    """Fit to standardised residuals (S, T, n), zero outside the mask `observed` (S, T)."""
    data, seen = torch.from_numpy(z), torch.from_numpy(observed)
    constant = _constant_correlations(order, data, seen)
    if order.p == 0:
        return constant
    progress = f"correlations of {z.shape[2]} targets" if verbose else ""
    starts = _starts(order, z, observed)
    optima, *others = (_search(order, data, seen, start, progress) for start in starts)
    for other in others:
        optima = optima.or_higher(other)
    # At a = 0 the slope by b is zero: repeat a search that ends there from another start.
    flat = np.flatnonzero(~optima.params[:, : order.p].any(1))
    if len(flat):
        start = _start_off_zero(order, data[flat], seen[flat])
        second = _search(order, data[flat], seen[flat], start, progress)
        optima = optima.replaced(flat, second)
    return constant.or_higher(optima)


def _starts(order: Order, z: np.ndarray, observed: np.ndarray) -> list[np.ndarray]:
    """Starts, each (S, k): the best two sums for each shape over lags, and nested optima."""
    p, q = order.p, order.q
    data, seen = torch.from_numpy(z), torch.from_numpy(observed)
    lags = [(np.full(p, 1 / p), np.full(q, 1 / max(q, 1)))]
    if max(p, q) > 1:  # all at the last lag, of a or of b
        last = np.arange(p) == p - 1, np.arange(q) == q - 1
        lags += [(last[0], lags[0][1]), (lags[0][0], last[1])]
    starts = []
    for shape_a, shape_b in lags:
        sums = np.array([[*(a * shape_a), *(b * shape_b)] for a, b in _STARTS])
        tried = np.array(
            [correlation_logliks(order, data, seen, np.tile(row, (len(z), 1))) for row in sums]
        )
        best = np.argsort(np.where(np.isnan(tried), np.inf, -tried), axis=0)
        starts += [sums[best[0]], sums[best[1]]]
    # Start from models with a lag less, so that no nested model is higher.
    smaller = [order._replace(p=p - 1)] * (p > 1) + [order._replace(q=q - 1)] * (q > 1)
    for small in smaller:
        params, embedded = fit_correlations(small, z, observed).params, np.zeros((len(z), p + q))
        embedded[:, : small.p], embedded[:, p : p + small.q] = np.split(params, [small.p], axis=1)
        starts.append(embedded)
    return starts


def _constant_correlations(order: Order, z: Tensor, observed: Tensor) -> CorrelationOptima:
    """Constant correlations: a = 0, and b is not identified."""
    s, k = len(z), order.p + order.q
    zero = np.zeros((s, k))
    if k:
        at = evaluate_correlations(order, z, observed, zero)
        value, gradient = at.value, at.gradient
    else:
        value, gradient = correlation_logliks(order, z, observed, zero), zero
    bound = np.tile(np.arange(k) < order.p, (s, 1))
    yes = np.ones(s, dtype=bool)
    return CorrelationOptima(zero, value, gradient, np.zeros(s, np.int64), yes, bound, ~yes)


def _start_off_zero(order: Order, z: Tensor, observed: Tensor) -> np.ndarray:
    """Starts (S, k) of series whose a went to zero: the Newton step in a of largest predicted rise.

    At a = 0 all b have the same likelihood, but not the same slope by a.
    """
    best, start = np.full(len(z), -np.inf), np.zeros((len(z), order.p + order.q))
    for b in _DECAYS if order.q else (0.0,):
        params = np.zeros_like(start)
        params[:, order.p :] = b / max(order.q, 1)
        at = evaluate_correlations(order, z, observed, params)
        slope = at.gradient[:, : order.p].sum(1)
        bend = at.curvature[:, : order.p, : order.p].sum((1, 2))
        most = 0.5 * (1 - b) / order.p  # halfway to a sum of one
        step = np.clip(np.where(bend > 0, slope / np.where(bend > 0, bend, 1.0), most), 0.0, most)
        better = slope * step > best
        params[:, : order.p] = step[:, None]
        best = np.where(better, slope * step, best)
        start[better] = params[better]
    return start


def _search(
    order: Order, z: Tensor, observed: Tensor, start: np.ndarray, progress: str
) -> CorrelationOptima:
    """Climb from starts (S, k); if the end is near the face of sum one, climb there, too."""

    def evaluate(params: np.ndarray, series: np.ndarray, exact: bool) -> Evaluation:
        at = evaluate_correlations(order, z[series], observed[series], params)
        return at._replace(value=np.where(params.sum(1) <= 1, at.value, -np.inf))

    # No scoring: the curvature is exact at every call, so that Newton's method starts at once.
    best = maximise(evaluate, start, lower=0.0, upper=1.0, scoring=0, progress=progress)
    optima = CorrelationOptima(*best[:3], *best[4:], np.zeros(len(start), dtype=bool))
    near = np.flatnonzero(optima.params.sum(1) > 1 - _NEAR_FACE)
    if not len(near):
        return optima
    k = order.p + order.q
    # On the face the last parameter is one minus the others.
    inside, offset = np.vstack([np.eye(k - 1), -np.ones(k - 1)]), np.eye(k)[-1]

    def on_face(free: np.ndarray, series: np.ndarray, exact: bool) -> Evaluation:
        params = free @ inside.T + offset
        at = evaluate_correlations(order, z[near[series]], observed[near[series]], params)
        value = np.where(params[:, -1] >= 0, at.value, -np.inf)
        return Evaluation(value, at.gradient @ inside, inside.T @ at.curvature @ inside)

    best = maximise(on_face, optima.params[near, :-1], lower=0.0, upper=1.0, scoring=0)
    free = np.zeros((len(near), 1), dtype=bool)
    face = CorrelationOptima(
        params=best.params @ inside.T + offset,
        value=best.value,
        gradient=np.hstack([best.gradient, np.zeros((len(near), 1))]),
        iterations=optima.iterations[near] + best.iterations,
        converged=best.converged,
        at_bound=np.hstack([best.at_bound, free]),
        integrated=~free[:, 0],
    )
    return optima.replaced(near, optima.select(near).or_higher(face))
