"""Maximum likelihood for many units at once: damped Fisher scoring, then Newton's method."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import lapack
from tqdm import tqdm


class Evaluation(NamedTuple):
    """A log-likelihood at the parameters of n units.

    Attributes
    ----------
    value : ndarray of shape (n,)
        Not finite where the parameters are not admissible.
    gradient : ndarray of shape (n, k)
    curvature : ndarray of shape (n, k, k)
        Minus the Hessian, or an information matrix in its place.
    """

    value: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray


class Optimum(NamedTuple):
    """Ends of `maximise`.

    Attributes
    ----------
    params : ndarray of shape (N, k)
        Once converged, one last step after the point that was evaluated.
    value : ndarray of shape (N,)
        -inf for a unit whose start was not admissible.
    gradient : ndarray of shape (N, k)
    decrement : ndarray of shape (N,)
        g' C^-1 g over the parameters off their bounds: the squared gradient in standard errors.
    iterations : integer ndarray of shape (N,)
    converged : boolean ndarray of shape (N,)
    at_bound : boolean ndarray of shape (N, k)
        On a bound beyond which the likelihood rises.
    """

    params: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    decrement: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray


Evaluate = Callable[[np.ndarray, np.ndarray, bool], Evaluation]
GiveUp = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

_ROUNDING = 1e-12  # relative accuracy of a log-likelihood summed over time
_MOST_DAMPING = 1e12  # a step so damped is rounding
AGREE = 0.01  # difference of log-likelihoods within which ends of two starts count as one
LAST_STEP = 1e-9  # decrement from which one step more of Newton's method is precise enough
_SLIGHT = 1e-3  # damping that leaves a step of Newton's method as short of its end
_GOOD_ENOUGH = 1e-8  # decrement that counts as converged where rounding ends the search


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
    progress: str = "",
    give_up: GiveUp | None = None,
) -> Optimum:
    r"""Climb to a maximum of the log-likelihood of every unit.

    .. math:: \theta' = \theta + (C + \lambda \operatorname{diag} C)^{-1} g

    with the gradient g and the curvature C of the unit: an information matrix at first
    (Fisher scoring), minus the Hessian once that is close (Newton). The damping
    :math:`\lambda` of Levenberg and Marquardt grows where a step does not help and falls
    where it does. Steps are projected on the bounds; a parameter on a bound beyond which the
    likelihood rises takes no part.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(params (n, k), units (n,), exact)`` gives the `Evaluation` of the units
        numbered `units`; its curvature is minus the Hessian if `exact`, else may be an
        information matrix.
    start : ndarray of shape (N, k)
    lower, upper : ndarray that broadcasts to (N, k)
    scoring : int, default 20
        Most iterations of scoring before Newton's method; 0 for Newton's from the start.
    newton : float, default 1e-2
        Decrement below which Newton's method takes over.
    tol : float, default 1e-14
        Converged when g' C^-1 g is below: 1e-14 is 1e-7 standard errors.
    last_step : float, default 0
        The same before a step of Newton's method, which squares the error.
    max_iter : int, default 100
    progress : str, optional
        What a bar of the evaluations says; there is none without it.
    give_up : callable, optional
        ``give_up(units (n,), value (n,), decrement (n,))`` names, before every step, units that
        go no further, by a mask (n,).

    Returns
    -------
    Optimum
    """
    with tqdm(desc=progress, unit=" evaluations", disable=not progress, leave=False) as bar:

        def counted(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
            evaluation = evaluate(params, units, exact)
            bar.set_postfix(loglik=f"{evaluation.value.max(initial=-np.inf):.4f}", refresh=False)
            bar.update()
            return evaluation

        function = counted if progress else evaluate
        search = _Search(function, start, lower, upper, (scoring, newton), (tol, last_step))
        return search.run(max_iter, give_up)


def agreement_of(values: np.ndarray) -> np.ndarray:
    """Number (N,) of starts whose log-likelihoods (count, N) came close to the highest."""
    return (values > values.max(0) - AGREE).sum(0)


class _Search:
    """State of the units that still run, and the ends of all."""

    def __init__(
        self,
        evaluate: Evaluate,
        start: np.ndarray,
        lower: np.ndarray | float,
        upper: np.ndarray | float,
        scoring: tuple[int, float],
        tol: tuple[float, float],
    ) -> None:
        self._evaluate, self._scoring, self._tol = evaluate, scoring, tol
        (n, k), self._lower, self._upper = start.shape, lower, upper
        self._bounded = bool(np.isfinite(lower).any() or np.isfinite(upper).any())
        self.lower, self.upper = (np.broadcast_to(bound, (n, k)) for bound in (lower, upper))
        self.params = np.clip(start.astype(np.float64), self.lower, self.upper)
        self.units, self.exact = np.arange(n), np.full(n, scoring[0] == 0)
        first = self._evaluated(self.params)
        self.value, self.gradient, self.curvature = (np.array(part) for part in first)
        # Scoring begins far from the maximum, Newton's method where a caller knows to be close.
        self.damping = np.where(self.exact, 0.0, 1e-3)
        self.iterations = np.zeros(n, dtype=np.int64)
        self.decrement = np.full(n, np.inf)
        usable = _is_usable(first)
        self.value[~usable] = -np.inf
        no = np.zeros(n, dtype=bool)
        self._ends = Optimum(
            self.params.copy(), self.value.copy(), self.gradient.copy(), self.decrement.copy(),
            self.iterations.copy(), no, no,
        )  # fmt: skip
        self._retire(~usable, no)

    def run(self, max_iter: int, give_up: GiveUp | None) -> Optimum:
        for _ in range(max_iter):
            if not len(self.units):
                break
            step, self.decrement = self._step()
            if give_up is not None:
                dropped = give_up(self.units, self.value, self.decrement)
                step = step[~dropped]
                self._retire(dropped, ~dropped)
            trial = self.params + step
            if self._bounded:
                trial = np.clip(trial, self.lower, self.upper)
            newton = self.exact & (self.damping < _SLIGHT)
            done = self.decrement < np.where(newton, max(self._tol), self._tol[0])
            self.params[done] = trial[done]
            trial = trial[~done]
            self._retire(done, done)
            if not len(self.units):
                break
            self.iterations += 1
            most, close = self._scoring
            self.exact |= (self.decrement < close) | (self.iterations > most)
            self._judge(trial, self._evaluated(trial))
        every = np.ones(len(self.units), dtype=bool)
        self._retire(every, ~every)
        params, gradient = self._ends.params, self._ends.gradient
        pinned = _pinned(params, gradient, self._lower, self._upper)
        return self._ends._replace(at_bound=pinned)

    def _retire(self, ended: np.ndarray, converged: np.ndarray) -> None:
        """Put the ends of some running units in their places, and go on with the others."""
        if not ended.any():
            return
        units = self.units[ended]
        for name in ("params", "value", "gradient", "decrement", "iterations"):
            getattr(self._ends, name)[units] = getattr(self, name)[ended]
        self._ends.converged[units] = converged[ended]
        left = ~ended
        for name in (
            "units", "lower", "upper", "params", "exact", "value", "gradient", "curvature",
            "damping", "iterations", "decrement",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name)[left])

    def _evaluated(self, params: np.ndarray) -> Evaluation:
        """Evaluate, each unit with the curvature of its stage."""
        exact, units = self.exact, self.units
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

    def _step(self) -> tuple[np.ndarray, np.ndarray]:
        """Damped steps, the damping raised until the curvature is positive, and decrements."""
        curvature, gradient = self.curvature, self.gradient
        pinned = _pinned(self.params, gradient, self.lower, self.upper) if self._bounded else None
        if pinned is not None and pinned.any():
            # They take no part: their rows and columns become those of the identity.
            inside = ~pinned[:, :, None] & ~pinned[:, None, :]
            eye = np.eye(pinned.shape[1])
            curvature = np.where(inside, curvature, 0.0) + pinned[:, :, None] * eye
            gradient = np.where(pinned, 0.0, gradient)
        # Steps do not depend on the units of the parameters; one without curvature has a scale too.
        diagonal = np.abs(np.einsum("nii->ni", curvature))
        scale = np.maximum(diagonal, 1e-10 * diagonal.max(1, keepdims=True, initial=0.0) + 1e-300)
        step, failed = _solve(curvature, self.damping, scale, gradient)
        while failed.any():
            damping = np.maximum(10 * self.damping[failed], 1e-3)
            self.damping[failed] = damping
            rest = np.flatnonzero(failed)
            step[rest], failed[rest] = _solve(curvature[rest], damping, scale[rest], gradient[rest])
            failed[rest] &= damping < _MOST_DAMPING
        return step, np.abs((gradient * step).sum(1)) * (1 + self.damping)

    def _judge(self, trial: np.ndarray, new: Evaluation) -> None:
        """Take what rises, or what rounding cannot tell from it; adapt the damping."""
        step = trial - self.params
        bent = (self.curvature @ step[:, :, None])[:, :, 0]
        predicted = ((self.gradient - bent / 2) * step).sum(1)  # by the quadratic model
        with np.errstate(invalid="ignore"):
            actual = new.value - self.value
            noise = _ROUNDING * (1 + np.abs(self.value))
            usable = _is_usable(new)
            flat = usable & (np.abs(actual) <= noise) & (np.abs(predicted) <= noise)
            # Armijo's condition: a share of the rise that was promised.
            better = usable & ((actual > 1e-4 * predicted) & (actual > 0) | flat)
            ratio = np.where(better, actual / np.where(predicted == 0, 1.0, predicted), 0.0)
        self.params[better], self.value[better] = trial[better], new.value[better]
        self.gradient[better] = new.gradient[better]
        self.curvature[better] = new.curvature[better]
        # As the radius of a trust region: by how well the quadratic model foretold the rise.
        factor = np.where(ratio > 0.75, 0.1, np.where(ratio > 0.25, 0.5, 4.0))
        # None rather than little: Newton's method is quadratic without it alone.
        damping = self.damping * factor
        damping = np.where(better & (damping < 1e-8), 0.0, damping)
        damping = np.where(better, damping, np.maximum(damping, 1e-3))
        self.damping = np.where(flat, 0.0, damping)
        still = ~better & (np.abs(predicted) <= noise) | (self.damping >= _MOST_DAMPING)
        self._retire(still, self.decrement < _GOOD_ENOUGH)


def _pinned(
    params: np.ndarray,
    gradient: np.ndarray,
    lower: np.ndarray | float,
    upper: np.ndarray | float,
) -> np.ndarray:
    """Parameters on a bound beyond which the likelihood rises."""
    return ((params <= lower) & (gradient < 0)) | ((params >= upper) & (gradient > 0))


def _is_usable(evaluation: Evaluation) -> np.ndarray:
    """Whether each unit's likelihood has a value and derivatives, (n,)."""
    value, gradient, curvature = evaluation
    finite = np.isfinite(gradient).all(1) & np.isfinite(curvature).all((1, 2))
    return np.isfinite(value) & finite


def _solve(
    curvature: np.ndarray, damping: np.ndarray, scale: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Damped Newton steps (n, k), and where the damped curvature is not positive."""
    k = gradient.shape[1]
    root = np.sqrt(scale)  # solve in units in which the diagonal is one
    matrix = curvature / (root[:, :, None] * root[:, None, :])
    matrix[:, range(k), range(k)] += damping[:, None]
    step, failed = solve_positive(matrix, gradient / root)
    return step / root, failed


_LARGE = 5  # parameters from which a call of LAPACK costs less than its work
_SMALLEST = 1e-14  # square of a diagonal element of the factor, for a matrix of unit diagonal


def solve_positive(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solutions (n, k) of A x = b by Cholesky's method, and where it failed.

    Of symmetric A (n, k, k) with diagonals of about one. It fails where A is not positive definite,
    or so nearly that the solution means nothing.
    """
    n, k = right.shape
    if k >= _LARGE and n > 1:
        solutions, failed = _batched(matrices, right)
    else:
        one_by_one = n <= 4 * k  # a call for each costs less than vectors that are so short
        solutions, failed = (_each if one_by_one else _together)(matrices, right)
    return solutions, failed | ~np.isfinite(solutions).all(1)


def _batched(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    factors, info = torch.linalg.cholesky_ex(torch.from_numpy(matrices))
    failed = info.numpy() != 0
    failed |= ~(np.einsum("nii->ni", factors.numpy()).min(1) ** 2 > _SMALLEST)
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
    """Element by element, each of them a vector over all systems."""
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
