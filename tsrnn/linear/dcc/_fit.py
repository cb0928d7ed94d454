"""Maximum likelihood of the correlation parameters, many series at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear._optimise import Evaluation, Optimum, maximise
from tsrnn.linear.dcc._likelihood import density, paths
from tsrnn.linear.dcc._tensor_jets import TensorJet, constants, variables

_NUMBERS = 2**18  # matrix elements over time that are worked on together
# Sums of a and of b to start from; the best of them is taken.
_STARTS = ((0.02, 0.96), (0.04, 0.9), (0.08, 0.85), (0.02, 0.7), (0.1, 0.5), (0.05, 0.1))
_DECAYS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98)
_NEAR_FACE = 1e-3
_ROUNDING = 1e-12


class Order(NamedTuple):
    """Lags of outer products and of Q, and whether the model is the corrected one."""

    p: int
    q: int
    corrected: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the p + q parameters."""
        return (
            *(f"a[{i}]" for i in range(1, self.p + 1)),
            *(f"b[{j}]" for j in range(1, self.q + 1)),
        )


class Found(NamedTuple):
    """Correlation parameters of U units.

    Attributes
    ----------
    params : array of shape (U, p + q)
    value : array of shape (U,)
        What correlations add to the log-likelihood.
    gradient : array of shape (U, p + q)
    iterations, converged : arrays of shape (U,)
    at_bound : boolean array of shape (U, p + q)
        Held at zero by the bound.
    integrated : boolean array of shape (U,)
        Held at a sum of one; the last parameter follows from the others.
    """

    params: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray
    integrated: np.ndarray


def terms(order: Order, z: Tensor, observed: Tensor, params: list[TensorJet]) -> TensorJet:
    """Log-likelihood that correlations add, by observation (U, T)."""
    result = paths(z, observed, params[: order.p], params[order.p :], corrected=order.corrected)
    return density(result, z, observed)


def evaluate(order: Order, z: Tensor, observed: Tensor, params: np.ndarray) -> Evaluation:
    """Log-likelihood, gradient and minus the exact Hessian at parameters (U, k)."""
    parts = [
        terms(order, z[part], observed[part], variables(torch.from_numpy(params[part])))
        for part in _chunks(z)
    ]
    sums = [[p.sum(-1).numpy() for p in jet.parts] for jet in parts]  # type: ignore[union-attr]
    value, first, second = (np.concatenate(part, -1) for part in zip(*sums, strict=True))
    return Evaluation(value, first.T, -second.transpose(2, 0, 1))


def values(order: Order, z: Tensor, observed: Tensor, params: np.ndarray) -> np.ndarray:
    """Log-likelihoods (U,) alone."""
    found = []
    for part in _chunks(z):
        jets = constants(params[part])
        found.append(terms(order, z[part], observed[part], jets).value.sum(-1).numpy())
    return np.concatenate(found)


def fit(order: Order, z: np.ndarray, observed: np.ndarray, verbose: int = 0) -> Found:
    """Fit to standardised residuals (U, T, n), zero where not observed (U, T)."""
    data, seen = torch.from_numpy(z), torch.from_numpy(observed)
    constant = _constant(order, data, seen)
    if order.p == 0:
        return constant
    progress = f"correlations of {z.shape[2]} targets" if verbose else ""
    found = _climbed(order, data, seen, _start(order, data, seen), progress)
    flat = np.flatnonzero(~found.params[:, : order.p].any(1))
    if len(flat):
        start = _off_zero(order, data[flat], seen[flat])
        again = _climbed(order, data[flat], seen[flat], start, progress)
        for whole, part in zip(found, again, strict=True):
            whole[flat] = part
    return _chosen(constant, found)


def _climbed(order: Order, z: Tensor, observed: Tensor, start: np.ndarray, progress: str) -> Found:
    best = _search(order, z, observed, start, progress)
    found = Found(*best[:3], *best[4:], np.zeros(len(start), dtype=bool))
    return _chosen(found, _integrated(order, z, observed, found))


def _constant(order: Order, z: Tensor, observed: Tensor) -> Found:
    """Constant correlations, which are a = 0 with b that cannot be told."""
    units, k = len(z), order.p + order.q
    none = np.zeros((units, k))
    if k:
        at = evaluate(order, z, observed, none)
        value, gradient = at.value, at.gradient
    else:
        value, gradient = values(order, z, observed, none), none
    bound = np.tile(np.arange(k) < order.p, (units, 1))
    yes = np.ones(units, dtype=bool)
    return Found(none, value, gradient, np.zeros(units, np.int64), yes, bound, ~yes)


def _start(order: Order, z: Tensor, observed: Tensor) -> np.ndarray:
    """Best of the starts of each unit, (U, k)."""
    starts = [[a / order.p] * order.p + [b / order.q for _ in range(order.q)] for a, b in _STARTS]
    tried = np.array([values(order, z, observed, np.tile(start, (len(z), 1))) for start in starts])
    return np.array(starts)[np.where(np.isnan(tried), -np.inf, tried).argmax(0)]


def _off_zero(order: Order, z: Tensor, observed: Tensor) -> np.ndarray:
    """Start of units whose a went to zero, (U, k): where the likelihood rises with a, if it does.

    At a = 0 all b have the same likelihood but not the same slope.
    """
    units = len(z)
    best, start = np.full(units, -np.inf), np.zeros((units, order.p + order.q))
    for b in _DECAYS if order.q else (0.0,):
        params = np.zeros_like(start)
        params[:, order.p :] = b / max(order.q, 1)
        at = evaluate(order, z, observed, params)
        slope = at.gradient[:, : order.p].sum(1)
        bend = at.curvature[:, : order.p, : order.p].sum((1, 2))
        most = 0.5 * (1 - b) / order.p
        step = np.clip(np.where(bend > 0, slope / np.where(bend > 0, bend, 1.0), most), 0.0, most)
        better = slope * step > best
        params[:, : order.p] = step[:, None]
        best = np.where(better, slope * step, best)
        start[better] = params[better]
    return start


def _search(order: Order, z: Tensor, observed: Tensor, start: np.ndarray, progress: str) -> Optimum:
    def at(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        found = evaluate(order, z[units], observed[units], params)
        return found._replace(value=np.where(params.sum(1) <= 1, found.value, -np.inf))

    return maximise(at, start, lower=0.0, upper=1.0, scoring=0, progress=progress)


def _integrated(order: Order, z: Tensor, observed: Tensor, found: Found) -> Found:
    """Search on the face where a and b sum to one, of the units that end beside it."""
    near = np.flatnonzero(found.params.sum(1) > 1 - _NEAR_FACE)
    if not len(near):
        return found
    k = order.p + order.q
    # The last parameter is one minus the others.
    inside, offset = np.vstack([np.eye(k - 1), -np.ones(k - 1)]), np.eye(k)[-1]

    def at(free: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        params = free @ inside.T + offset
        which = near[units]
        on = evaluate(order, z[which], observed[which], params)
        value = np.where(params[:, -1] >= 0, on.value, -np.inf)
        return Evaluation(value, on.gradient @ inside, inside.T @ on.curvature @ inside)

    best = maximise(at, found.params[near, :-1], lower=0.0, upper=1.0, scoring=0)
    result = Found(*(part.copy() for part in found))
    result.params[near] = best.params @ inside.T + offset
    result.value[near], result.converged[near] = best.value, best.converged
    result.gradient[near] = 0.0
    result.gradient[near, :-1] = best.gradient
    result.iterations[near] += best.iterations
    result.at_bound[near] = np.hstack([best.at_bound, np.zeros((len(near), 1), dtype=bool)])
    result.integrated[near] = True
    return result


def _chosen(one: Found, other: Found) -> Found:
    """Whichever has the higher likelihood, unit by unit; the first if they are all but equal."""
    least = np.where(np.isnan(one.value), -np.inf, one.value)
    higher = other.value > least + _ROUNDING * (1 + np.abs(other.value))
    return Found(
        *(
            np.where(higher.reshape(-1, *(1,) * (a.ndim - 1)), b, a)
            for a, b in zip(one, other, strict=True)
        )
    )


def _chunks(z: Tensor) -> list[slice]:
    """Parts of the units that are worked on together."""
    units, steps, n = z.shape
    size = max(1, _NUMBERS // (steps * n * n))
    return [slice(i, i + size) for i in range(0, units, size)]
