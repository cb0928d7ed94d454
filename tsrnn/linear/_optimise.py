"""Maximum likelihood for many units at once: damped Fisher scoring, then Newton's method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import lapack
from tqdm import tqdm


class Evaluation(NamedTuple):
    """Log-likelihood at the parameters of n units."""

    value: np.ndarray  # (n,), not finite where the parameters are not admissible
    gradient: np.ndarray  # (n, k)
    curvature: np.ndarray  # (n, k, k), minus the Hessian or an information matrix


class Optimum(NamedTuple):
    """Result of `maximise`."""

    params: np.ndarray  # (N, k); if converged, one step after the last point evaluated
    value: np.ndarray  # (N,); -inf for a unit whose start was not admissible
    gradient: np.ndarray  # (N, k)
    decrement: np.ndarray  # (N,), g' C^-1 g off the bounds: the squared gradient in standard errors
    iterations: np.ndarray  # (N,)
    converged: np.ndarray  # (N,)
    at_bound: np.ndarray  # (N, k), on a bound beyond which the likelihood rises


Evaluate = Callable[[np.ndarray, np.ndarray, bool], Evaluation]
GiveUp = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Objective(NamedTuple):
    """Log-likelihoods of N units for `maximise_together`."""

    evaluate: Evaluate
    start: np.ndarray  # (N, k)
    lower: np.ndarray | float = -np.inf  # broadcasts to (N, k)
    upper: np.ndarray | float = np.inf
    at_once: int | None = (
        None  # most units per evaluation, so that their matrices stay in the cache
    )
    joins: np.ndarray | None = (
        None  # (N,), iteration at which each unit joins; None if all start at once
    )


_ROUNDING = 1e-12  # relative accuracy of a log-likelihood summed over time
_MOST_DAMPING = 1e12  # steps are rounding beyond this damping
AGREE = 0.01  # log-likelihoods this close count as the same maximum
LAST_STEP = 1e-9  # decrement below which one more Newton step is precise enough
_SLIGHT = 1e-3  # damping below which a Newton step still converges fast
_GOOD_ENOUGH = 1e-8  # decrement that counts as converged if rounding ends the search


def maximise(
    evaluate: Evaluate,
    start: np.ndarray,
    *,
    lower: np.ndarray | float = -np.inf,
    upper: np.ndarray | float = np.inf,
    scoring: int = 20,
    newton: float = 1e-2,
    tol: float = 1e-14,
    last_step: float = 0.0,
    max_iter: int = 100,
    give_up: GiveUp | None = None,
    progress: str = "",
) -> Optimum:
    r"""Climb to a maximum of the log-likelihood of every unit.

    .. math:: \theta' = \theta + (C + \lambda \operatorname{diag} C)^{-1} g

    with the gradient g and the curvature C of the unit: an information matrix at first
    (Fisher scoring), minus the Hessian near the maximum (Newton). The damping :math:`\lambda` of
    Levenberg and Marquardt grows if a step fails and falls if it succeeds. Steps are projected on
    the bounds; a parameter on a bound beyond which the likelihood rises is held fixed.

    ``evaluate(params (n, k), units (n,), exact)`` gives the `Evaluation` of the units numbered
    `units`; its curvature is minus the Hessian if `exact`. Newton's method takes over after
    `scoring` iterations, or from a decrement below `newton`; with ``scoring=0`` it starts at once.
    A unit has converged when g' C^-1 g is below `tol` (1e-14 is 1e-7 standard errors) or, before a
    Newton step, which squares the error, below `last_step`. `progress` labels a progress bar.
    """
    with tqdm(desc=progress, unit=" evaluations", disable=not progress, leave=False) as bar:

        def counted(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
            evaluation = evaluate(params, units, exact)
            bar.set_postfix(loglik=f"{evaluation.value.max(initial=-np.inf):.4f}", refresh=False)
            bar.update()
            return evaluation

        objective = Objective(counted if progress else evaluate, start, lower, upper)
        return maximise_together(
            [objective], scoring=scoring, newton=newton, tol=tol, last_step=last_step,
            max_iter=max_iter, give_up=give_up,
        )[0]  # fmt: skip


def maximise_together(
    objectives: Sequence[Objective],
    *,
    scoring: int = 20,
    newton: float = 1e-2,
    tol: float = 1e-14,
    last_step: float = 0.0,
    max_iter: int = 100,
    give_up: GiveUp | None = None,
) -> list[Optimum]:
    """Run `maximise` on several objectives in step, which may differ in their parameters.

    ``give_up(units (n,), value (n,), decrement (n,))`` returns before every step a mask (n,) of
    units to stop. Units are numbered across the objectives; a unit that joins has the value -inf
    and an infinite decrement.
    """
    searches = [_Search(each, (scoring, newton), (tol, last_step)) for each in objectives]
    first = np.cumsum([0, *(len(search.params) for search in searches)])
    for iteration in range(max_iter + 1):
        for search in searches:
            search.admit(iteration)
        running = [i for i, search in enumerate(searches) if len(search.units)]
        if not running and not any(len(search.waiting) for search in searches):
            break
        if give_up is not None and iteration and running:
            parts = [(s.units + first[i], s.value[s.units], s.decrement[s.units])
                     for i, s in ((i, searches[i]) for i in running)]  # fmt: skip
            dropped = give_up(*map(np.concatenate, zip(*parts, strict=True)))
            ends = np.cumsum([len(part[0]) for part in parts])
            for i, mask in zip(running, np.split(dropped, ends[:-1]), strict=True):
                searches[i].units = searches[i].units[~mask]
        for i in running:
            searches[i].advance()
    return [search.optimum() for search in searches]


def agreement_of(values: np.ndarray) -> np.ndarray:
    """Number (N,) of starts whose log-likelihoods (count, N) are near the highest."""
    return (values > values.max(0) - AGREE).sum(0)


STEP = 1e-4  # of the differences, in parameters of series of size one


def differenced_hessian(
    gradient: Callable[[np.ndarray], np.ndarray], at: np.ndarray, columns: Sequence[int]
) -> np.ndarray:
    r"""Second derivatives (N, k, columns) from differences of exact gradients (N, k).

    .. math:: f'(x) \approx \frac{8 (f(x + s) - f(x - s)) - (f(x + 2s) - f(x - 2s))}{12 s}

    has an error of order :math:`s^4`, which leaves some ten digits. Parameters `at` (N, p) have the
    variance last; `columns` are those to differentiate by.
    """
    parts = []
    for j in columns:
        variance = j == at.shape[1] - 1
        size = STEP * (at[:, j] if variance else np.maximum(np.abs(at[:, j]), 0.1))
        slopes = []
        for steps in (1, -1, 2, -2):
            moved = at.copy()
            moved[:, j] += steps * size
            slopes.append(gradient(moved))
        difference = 8 * (slopes[0] - slopes[1]) - (slopes[2] - slopes[3])
        parts.append(difference / (12 * size[:, None]))
    return np.stack(parts, 2)


class _Search:
    """State of the search of all units; units that have ended are not changed."""

    def __init__(
        self, objective: Objective, scoring: tuple[int, float], tol: tuple[float, float]
    ) -> None:
        self._evaluate, start, lower, upper, at_once, joins = objective
        self._scoring, self._tol = scoring, tol
        (n, k), self._at_once = start.shape, at_once or max(len(start), 1)
        self._bounded = bool(np.isfinite(lower).any() or np.isfinite(upper).any())
        self.lower, self.upper = (np.broadcast_to(bound, (n, k)) for bound in (lower, upper))
        self.params = np.clip(start.astype(np.float64), self.lower, self.upper)
        self.value, self.gradient = np.full(n, -np.inf), np.empty((n, k))
        self.curvature = np.empty((n, k, k))
        # scoring=0 says that the start is close to the maximum: undamped Newton.
        self.exact = np.full(n, scoring[0] == 0)
        self.damping = np.where(self.exact, 0.0, 1e-3)
        self.iterations, self.decrement = np.zeros(n, dtype=np.int64), np.full(n, np.inf)
        self.converged = np.zeros(n, dtype=bool)
        # Parameters after the next step, and the rise there by the quadratic model.
        self.trial, self.predicted = self.params.copy(), np.zeros(n)
        self._joins = np.zeros(n, dtype=np.int64) if joins is None else joins
        self.units, self.waiting = np.arange(0), np.arange(n)  # running, not yet joined
        self.begun = np.zeros(n, dtype=bool)

    def admit(self, iteration: int) -> None:
        """Let units join at their iteration."""
        if len(self.waiting):
            late = self._joins[self.waiting] > iteration
            self.units = np.concatenate([self.units, self.waiting[~late]])
            self.waiting = self.waiting[late]

    def advance(self) -> None:
        """Take one step of the running units, and evaluate the units that have joined."""
        fresh = ~self.begun[self.units]
        joined, units = self.units[fresh], self.units[~fresh]
        self.begun[joined] = True
        newton = self.exact[units] & (self.damping[units] < _SLIGHT)
        done = self.decrement[units] < np.where(newton, max(self._tol), self._tol[0])
        if done.any():
            ended, units = units[done], units[~done]
            self.params[ended], self.converged[ended] = self.trial[ended], True
        self.iterations[units] += 1
        most, close = self._scoring
        self.exact[units] |= (self.decrement[units] < close) | (self.iterations[units] > most)
        left = [self._in_parts(units, self._judge), self._in_parts(joined, self._begin)]
        self.units = np.concatenate(left) if len(joined) else left[0]

    def optimum(self) -> Optimum:
        pinned = _pinned(self.params, self.gradient, self.lower, self.upper)
        return Optimum(
            self.params, self.value, self.gradient, self.decrement, self.iterations,
            self.converged, pinned,
        )  # fmt: skip

    def _in_parts(
        self,
        units: np.ndarray,
        work: Callable[[np.ndarray, Evaluation], tuple[np.ndarray, np.ndarray]],
    ) -> np.ndarray:
        """Evaluate the trials of some units, and find the next trials of those that go on.

        ``work(units, evaluation)`` returns a mask of units that go on, and the curvatures.
        """
        left = [units[:0]]
        for begin in range(0, len(units), self._at_once):
            part = units[begin : begin + self._at_once]
            goes_on, curvature = work(part, self._evaluated(part))
            if not goes_on.all():
                part, curvature = part[goes_on], curvature[goes_on]
            if len(part):
                self._find_trials(part, curvature)
            left.append(part)
        return np.concatenate(left)

    def _begin(self, units: np.ndarray, new: Evaluation) -> tuple[np.ndarray, np.ndarray]:
        usable = _is_usable(new)
        self.value[units] = np.where(usable, new.value, -np.inf)
        self.gradient[units], self.curvature[units] = new.gradient, new.curvature
        return usable, new.curvature

    def _judge(self, units: np.ndarray, new: Evaluation) -> tuple[np.ndarray, np.ndarray]:
        """Accept trials that rise, or do not fall beyond rounding; adapt the damping."""
        value, predicted, damping = self.value[units], self.predicted[units], self.damping[units]
        with np.errstate(invalid="ignore"):
            actual = new.value - value
            noise = _ROUNDING * (1 + np.abs(value))
            usable = _is_usable(new)
            flat = usable & (np.abs(actual) <= noise) & (np.abs(predicted) <= noise)
            # Armijo's condition: at least a share of the predicted rise.
            better = usable & ((actual > 1e-4 * predicted) & (actual > 0) | flat)
            ratio = np.where(better, actual / np.where(predicted == 0, 1.0, predicted), 0.0)
        # As in a trust region: by how well the quadratic model predicted the rise.
        factor = np.where(ratio > 0.75, 0.1, np.where(ratio > 0.25, 0.5, 4.0))
        # Zero rather than small: only undamped Newton converges quadratically.
        damping = damping * factor
        damping = np.where(better & (damping < 1e-8), 0.0, damping)
        damping = np.where(better, damping, np.maximum(damping, 1e-3))
        self.damping[units] = damping = np.where(flat, 0.0, damping)
        still = ~better & (np.abs(predicted) <= noise) | (damping >= _MOST_DAMPING)
        self.converged[units] = still & (self.decrement[units] < _GOOD_ENOUGH)
        curvature = new.curvature
        if better.all():
            risen = units
        else:
            risen, worse = units[better], ~better
            curvature = curvature.copy()
            curvature[worse] = self.curvature[units[worse]]
            new = Evaluation(*(part[better] for part in new))
        self.params[risen], self.value[risen] = self.trial[risen], new.value
        self.gradient[risen], self.curvature[risen] = new.gradient, new.curvature
        return ~still, curvature

    def _evaluated(self, units: np.ndarray) -> Evaluation:
        """Evaluate the trials; units in the Newton stage get the exact curvature."""
        exact, params = self.exact[units], self.trial[units]
        if exact.all() or not exact.any():
            return self._evaluate(params, units, bool(exact.any()))
        n, k = params.shape
        whole = Evaluation(np.empty(n), np.empty((n, k)), np.empty((n, k, k)))
        for stage in (False, True):
            mask = exact == stage
            part = self._evaluate(params[mask], units[mask], stage)
            for target, values in zip(whole, part, strict=True):
                target[mask] = values
        return whole

    def _find_trials(self, units: np.ndarray, curvature: np.ndarray) -> None:
        """Set trials, predicted rises and decrements from damped steps."""
        params, gradient, damping = self.params[units], self.gradient[units], self.damping[units]
        pinned = None
        if self._bounded:
            lower, upper = self.lower[units], self.upper[units]
            pinned = _pinned(params, gradient, lower, upper)
        step, self.damping[units] = _damped_step(curvature, gradient, damping, pinned)
        inside = gradient if pinned is None else np.where(pinned, 0.0, gradient)
        self.decrement[units] = np.abs((inside * step).sum(1)) * (1 + self.damping[units])
        trial = params + step
        if self._bounded:
            trial = np.minimum(np.maximum(trial, lower), upper)
            step = trial - params
        bent = (curvature @ step[:, :, None])[:, :, 0]
        self.trial[units] = trial
        self.predicted[units] = ((gradient - bent / 2) * step).sum(1)


def _pinned(
    params: np.ndarray, gradient: np.ndarray, lower: np.ndarray | float, upper: np.ndarray | float
) -> np.ndarray:
    """Mask of parameters on a bound beyond which the likelihood rises."""
    return ((params <= lower) & (gradient < 0)) | ((params >= upper) & (gradient > 0))


def _is_usable(evaluation: Evaluation) -> np.ndarray:
    """Mask (n,) of units with finite likelihood and derivatives."""
    value, gradient, curvature = evaluation
    with np.errstate(all="ignore"):  # a sum is finite where all its terms are
        return np.isfinite(value + gradient.sum(1) + curvature.reshape(len(value), -1).sum(1))


def _damped_step(
    curvature: np.ndarray, gradient: np.ndarray, damping: np.ndarray, pinned: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Damped Newton steps (n, k), and the damping at which the curvature is positive."""
    # Scale to a unit diagonal, so that steps do not depend on the units of the parameters; the
    # floor gives a parameter without curvature a scale.
    n, k = gradient.shape
    diagonal = np.abs(curvature.diagonal(axis1=1, axis2=2))
    if pinned is not None:
        diagonal = np.where(pinned, 1.0, diagonal)
    scale = np.maximum(diagonal, 1e-10 * diagonal.max(1, keepdims=True, initial=0.0) + 1e-300)
    inverse = 1 / np.sqrt(scale)
    if pinned is not None:  # held fixed: their rows and columns become those of the identity
        inverse = np.where(pinned, 0.0, inverse)
    matrix = inverse[:, :, None] * inverse[:, None]
    matrix *= curvature
    on_diagonal = matrix.reshape(n, k * k)[:, :: k + 1]  # a view
    if pinned is not None:
        on_diagonal[pinned] = 1.0
    undamped, right = on_diagonal.copy(), gradient * inverse
    on_diagonal += damping[:, None]
    step, failed = solve_positive(matrix, right)
    if failed.any():
        damping = damping.copy()
    while failed.any():
        rest = np.flatnonzero(failed)
        damping[rest] = np.maximum(10 * damping[rest], 1e-3)
        on_diagonal[rest] = undamped[rest] + damping[rest, None]
        step[rest], failed[rest] = solve_positive(matrix[rest], right[rest])
        failed[rest] &= damping[rest] < _MOST_DAMPING
    return step * inverse, damping


_LARGE = 5  # parameters from which batched LAPACK pays
_SMALLEST = 1e-14  # square of a diagonal element of the factor, for a matrix of unit diagonal


def solve_positive(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solutions (n, k) of A x = b by Cholesky's method, and a mask of failures.

    A (n, k, k) is symmetric with a diagonal of about one. The method fails unless A is positive
    definite by a margin.
    """
    n, k = right.shape
    if k >= _LARGE and n > 1:
        solutions, failed = _batched(matrices, right)
    else:
        one_by_one = n <= 4 * k  # single calls beat vectors this short
        solutions, failed = (_each if one_by_one else _together)(matrices, right)
    return solutions, failed | ~np.isfinite(solutions).all(1)


def _batched(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    factors, info = torch.linalg.cholesky_ex(torch.from_numpy(matrices))
    failed = info.numpy() != 0
    failed |= ~(factors.numpy().diagonal(axis1=1, axis2=2).min(1) ** 2 > _SMALLEST)
    columns = torch.from_numpy(np.ascontiguousarray(right)[:, :, None])
    return torch.cholesky_solve(columns, factors)[:, :, 0].numpy(), failed


def _each(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    solutions, failed = np.zeros_like(right), np.ones(len(right), dtype=bool)
    for i, (matrix, b) in enumerate(zip(matrices, right, strict=True)):
        factor, info = lapack.dpotrf(matrix, lower=1)
        if info == 0 and np.diagonal(factor).min() ** 2 > _SMALLEST:
            solutions[i], failed[i] = lapack.dpotrs(factor, b, lower=1)[0], False
    return solutions, failed


def _together(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Element by element, vectorised over the systems."""
    k = right.shape[1]
    a = np.array(np.moveaxis(matrices, 0, -1), order="C")
    x = np.array(right.T)
    failed = np.zeros(len(right), dtype=bool)
    for j in range(k):
        for m in range(j):
            a[j:, j] -= a[j:, m] * a[j, m]
        failed |= ~(a[j, j] > _SMALLEST)
        root = np.sqrt(np.where(failed, 1.0, a[j, j]))
        a[j:, j] /= root
        x[j] = (x[j] - np.einsum("mn,mn->n", a[j, :j], x[:j])) / root
    for j in reversed(range(k)):
        rest = np.einsum("mn,mn->n", a[j + 1 :, j], x[j + 1 :])
        x[j] = (x[j] - rest) / np.where(failed, 1.0, a[j, j])
    return x.T, failed
