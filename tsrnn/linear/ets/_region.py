r"""Searches in the admissible region, and with fixed initial states.

The admissible region (Hyndman et al., 2008, chapter 10) is where forecasts forget the past: all
roots of :math:`\theta(B)` of the reduced form outside the unit circle. Without a season it is

.. math:: 1 - 1/\phi < \alpha < 1 + 1/\phi, \qquad
          \alpha (\phi - 1) < \phi \beta < (1 + \phi) (2 - \alpha),

the image of a square, whose sides bound the search. With a season the region is bounded by roots: a
barrier :math:`\mu \sum \log(1 - k^2)` keeps the partial autocorrelations k of :math:`\theta` inside
(-1, 1).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tsrnn.linear._estimates import PERFECT, aicc_penalty
from tsrnn.linear._family import CannotFitError
from tsrnn.linear._optimise import Evaluation, Optimum, maximise, solve_positive
from tsrnn.linear._samples import Sample
from tsrnn.linear.arma._polynomials import partial_autocorrelations
from tsrnn.linear.ets._likelihood import Likelihood, to_natural
from tsrnn.linear.ets._reduced_form import polynomials
from tsrnn.linear.ets._search import (
    SCORING,
    TOLERANCE,
    Highest,
    Search,
    embedded,
    highest_of,
    highest_optimum,
    nested_models,
    nothing_fitted,
    usable,
)
from tsrnn.linear.ets._specification import Components
from tsrnn.linear.ets._start import FEW_STARTS, REGIONS, SMALLEST, STARTS, bounds, starting_points

STEPS = 100  # iterations of a climb
# Weights of the barrier in successive climbs. The first keeps the search away from the edge; the
# last is about the cost in log-likelihood of a root at the circle.
BARRIERS = (1e-2, 1e-4)
EDGE = 1e-6  # distance from the sides of the square
PUSHED = 1e-2  # decrement without the barrier, above which the barrier is active
WIDEST = 4.0  # bound of smoothing parameters with a season: no admissible ones lie beyond
_STEP = 1e-6  # of the differences of partial autocorrelations


def search_within(
    models: tuple[Components, ...], sample: Sample, region: str, *, decomposed: bool
) -> Search:
    """Fit every usable model to each series, and keep the best.

    `decomposed` fixes the states before the first row at those of a decomposition.
    """
    counts, able = np.isfinite(sample.values).sum(1), usable(models, sample)
    ends = nothing_fitted(models, len(counts))
    best = np.full(len(counts), np.inf)
    known: dict[tuple[bool, bytes], dict[tuple[Components, str], Highest]] = {}
    for number, model in enumerate(models):
        units = np.flatnonzero(able[:, number])
        if not len(units):
            continue
        scaled = model.scaled(sample).select(units)
        # Smaller models come first; larger ones of the same series reuse their optima.
        of_series = known.setdefault((model.positive, units.tobytes()), {})
        part = Climb(model, scaled.rows, region, decomposed, of_series)
        optimum, starts, agreement = part.optimum()
        natural = part.natural(optimum.params)[0]
        k = part.free.sum() + 1
        loglik = part.likelihood(np.arange(len(units))).values(natural, None)[1]
        loglik = loglik - counts[units] * np.log(scaled.scale)
        aicc = aicc_penalty(counts[units], k) - 2 * loglik
        ends.aicc[units, number] = np.where(np.isfinite(optimum.value), aicc, np.inf)
        chosen = np.flatnonzero(ends.aicc[units, number] < best[units])
        rows, size = units[chosen], natural.shape[1]
        best[rows] = ends.aicc[rows, number]
        ends.model[rows], ends.params[rows] = number, 0.0
        ends.params[rows, :size], ends.at_bound[rows] = natural[chosen], False
        ends.at_bound[rows, :size] = optimum.at_bound[chosen] & part.free
        ends.iterations[rows], ends.converged[rows] = (
            optimum.iterations[chosen], optimum.converged[chosen],
        )  # fmt: skip
        ends.starts[rows], ends.agreement[rows] = starts[chosen], agreement[chosen]
    if not np.isfinite(best).any():
        raise CannotFitError("no admissible starting values were found")
    return ends


class Climb:
    """Search for the optimum of one model of N series.

    Values (N, T) or (N, T, 1 + k) are scaled, with exogenous columns behind. `known` caches optima
    of the same series by model and region.
    """

    def __init__(
        self,
        model: Components,
        values: np.ndarray,
        region: str,
        decomposed: bool,
        known: dict[tuple[Components, str], Highest] | None = None,
    ) -> None:
        self.model, self.values, self.region, self.decomposed = model, values, region, decomposed
        self._known = {} if known is None else known
        self.admissible = admissible = region == "admissible"
        self.of_roots = admissible and model.seasonal != "none"  # bounded by roots
        self.of_states = np.zeros(len(model.free), bool)
        self.of_states[model.recursion.states] = True
        self.free = model.free & ~(self.of_states & decomposed)

    def optimum(self) -> Highest:
        """Highest optimum of all starts."""
        starts = self._starts()
        count, n, width = starts.shape
        at = starts.reshape(count * n, width)
        lower, upper = np.broadcast_to(np.stack(self._bounds())[:, None], (2, n, width)).copy()
        if self.decomposed:
            lower[:, self.of_states] = upper[:, self.of_states] = starts[0][:, self.of_states]
        barriers = BARRIERS if self.of_roots else (0.0,)
        iterations = np.zeros(count * n, np.int64)
        for barrier in barriers:
            ends = maximise(
                partial(self._evaluate, barrier), at, lower=np.tile(lower, (count, 1)),
                upper=np.tile(upper, (count, 1)), scoring=SCORING, tol=TOLERANCE,
                max_iter=STEPS,
            )  # fmt: skip
            at, iterations = ends.params, iterations + ends.iterations
        highest = highest_of(ends._replace(iterations=iterations), n)
        if self.of_roots:
            highest.best.at_bound[:, :4] |= self._held_back(highest.best)[:, None]
        self._known[self.model, self.region] = highest
        return highest

    def _held_back(self, best: Optimum) -> np.ndarray:
        """Mask (N,) of series whose likelihood would rise across the edge without the barrier."""
        _, gradient, curvature = self._evaluate(
            0.0, best.params, np.arange(len(best.params)), False
        )
        inside = ~best.at_bound & self.free
        both = inside[:, :, None] & inside[:, None, :]
        curvature = np.where(both, curvature, np.eye(inside.shape[1]))
        gradient = np.where(inside, gradient, 0.0)
        root = np.sqrt(np.einsum("nii->ni", curvature))
        matrix = curvature / (root[:, :, None] * root[:, None])
        step, failed = solve_positive(matrix, gradient / root)
        return failed | ((step * gradient / root).sum(1) > PUSHED)

    def likelihood(self, units: np.ndarray) -> Likelihood:
        """Likelihood of some series."""
        relative = np.full(len(units), self.model.error == "mul")
        return Likelihood(self.model.recursion, self.values, units, relative)

    def natural(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Natural parameters (N, k) from those of the search, and their derivatives (N, k, k)."""
        n, k = params.shape
        natural, slopes = params.copy(), np.tile(np.eye(k), (n, 1, 1))
        u, v, w, phi = params.T[:4]
        if not self.admissible:  # beta / alpha and gamma / (1 - alpha) are those of the search
            natural[:, 1], natural[:, 2] = v * u, w * (1 - u)
            slopes[:, 1, 1], slopes[:, 0, 1] = u, v
            slopes[:, 2, 2], slopes[:, 0, 2] = 1 - u, -w
        elif not self.of_roots:
            alpha = natural[:, 0] = 1 + (2 * u - 1) / phi
            by_phi = -(2 * u - 1) / phi**2
            slopes[:, 0, 0], slopes[:, 3, 0] = 2 / phi, by_phi
            if self.model.trend != "none":
                room = 2 * (1 + phi - alpha * phi)
                beta = natural[:, 1] = (alpha * (phi - 1) + v * room) / phi
                by_alpha = (phi - 1) / phi - 2 * v
                slopes[:, 0, 1], slopes[:, 1, 1] = by_alpha * slopes[:, 0, 0], room / phi
                slopes[:, 3, 1] = (alpha + 2 * v * (1 - alpha) - beta) / phi + by_alpha * by_phi
        return natural, slopes

    def _starts(self) -> np.ndarray:
        """Starting parameters (starts, N, k) of the search."""
        admissible, decomposed = self.admissible, self.decomposed
        # The admissible region also starts at the usual optimum, which has many starts itself.
        count = FEW_STARTS if admissible and not decomposed else len(STARTS)
        starts = starting_points(self.model, self.values, count)
        if decomposed:  # states of the first rows, as in R and statsmodels
            starts[:, :, self.of_states] = starts[0, :, self.of_states].T
        if admissible:
            alpha, beta, gamma = np.moveaxis(starts[:, :, :3], 2, 0)
            starts[:, :, 1], starts[:, :, 2] = beta * alpha, gamma * (1 - alpha)
            natural = [*starts, *self._contained()]
            return np.stack([self._inside(start) for start in natural])
        if self.region != REGIONS[0]:
            starts = np.concatenate([starts, np.stack(self._contained())])
        return starts

    def _contained(self) -> list[np.ndarray]:
        """Optima (N, k) of the smaller region and of nested models, lower bounds of this one.

        They are natural parameters in the admissible region, else parameters of the search.
        """
        model, values = self.model, self.values
        if self.decomposed:  # nested models have different fixed states
            within = REGIONS[REGIONS.index(self.region) - 1]
            inner = Climb(model, values, within, True)
            params = inner.optimum().best.params
            return [inner.natural(params)[0] if self.admissible else params]
        usual = highest_optimum(model, values, "usual", self._known)
        starts = [to_natural(usual.best.params)]
        lower, upper = bounds(model, self.region)
        lower[:2], upper[:3] = -np.inf, np.inf  # the region itself bounds alpha, beta and gamma
        lower[~model.free], upper[~model.free] = (model.recursion.neutral[~model.free],) * 2
        for smaller, _ in nested_models(model, self.region):
            inner = Climb(smaller, values, self.region, False, self._known)
            optimum = self._known.get((smaller, self.region)) or inner.optimum()
            natural = inner.natural(optimum.best.params)[0]
            starts += embedded(smaller, natural, model, lower, upper)
        return starts

    def _inside(self, natural: np.ndarray) -> np.ndarray:
        """Parameters of the search in the admissible region, from natural ones (N, k)."""
        params, (alpha, beta, phi) = natural.copy(), natural.T[[0, 1, 3]]
        if self.model.seasonal == "none":
            params[:, 0] = (1 + (alpha - 1) * phi) / 2
            if self.model.trend != "none":
                params[:, 1] = (phi * beta - alpha * (phi - 1)) / (2 * (1 + phi - alpha * phi))
        return params

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = bounds(self.model, self.region)
        if self.of_roots:
            for i in np.flatnonzero(self.model.free[:3]):
                lower[i], upper[i] = (-WIDEST if i < 2 else SMALLEST), WIDEST
        elif self.admissible:
            for i in np.flatnonzero(self.model.free[:2]):
                lower[i], upper[i] = EDGE, 1 - EDGE
        return lower, upper

    def _evaluate(
        self, barrier: float, params: np.ndarray, units: np.ndarray, exact: bool
    ) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out, less the barrier, for `maximise`."""
        natural, slopes = self.natural(params)
        likelihood, k = self.likelihood(units % len(self.values)), params.shape[1]
        with np.errstate(all="ignore"):  # overflow where the model does not forget
            sigma2, value = likelihood.values(natural, None)
            usable = np.isfinite(value) & (sigma2 > PERFECT)
            moments = likelihood.moments(natural, np.where(usable, sigma2, 1.0))
        gradient, cross = moments.gradient[:, :k], moments.information[:, :k, k]
        curvature = moments.information[:, :k, :k].copy()
        curvature -= cross[:, :, None] * cross[:, None] / moments.information[:, k, k, None, None]
        if barrier:
            of_barrier = self._barrier(natural)
            value = value + barrier * of_barrier.value
            gradient = gradient + barrier * of_barrier.gradient
            curvature = curvature + barrier * of_barrier.curvature
            usable &= np.isfinite(value)
        gradient = (slopes @ gradient[:, :, None])[:, :, 0]
        curvature = slopes @ curvature @ slopes.swapaxes(1, 2)
        return Evaluation(np.where(usable, value, -np.inf), gradient, curvature)

    def _barrier(self, params: np.ndarray) -> Evaluation:
        """Barrier at the unit circle, its gradient, and its Gauss-Newton curvature."""
        reflection = self._reflection(params)
        slopes = np.zeros((*params.shape, len(reflection)))
        for i in np.flatnonzero(self.model.free[:4]):
            moved = [params.copy(), params.copy()]
            for part, sign in zip(moved, (1, -1), strict=True):
                part[:, i] += sign * _STEP
            ahead, behind = map(self._reflection, moved)
            slopes[:, i] = (ahead - behind).T / (2 * _STEP)
        with np.errstate(all="ignore"):  # NaN after a root inside the circle
            room = 1 - reflection.T**2
            value = np.log(np.where(room > 0, room, np.nan)).sum(1)
            gradient = -(slopes * (2 * reflection.T / room)[:, None]).sum(2)
            weights = 2 * (1 + reflection.T**2) / room**2
        return Evaluation(value, gradient, (slopes * weights[:, None]) @ slopes.swapaxes(1, 2))

    def _reflection(self, params: np.ndarray) -> np.ndarray:
        return partial_autocorrelations(-polynomials(self.model, params)[1][:, 1:].T)
