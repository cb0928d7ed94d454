"""Maximum likelihood of many series in one batch: the highest of several maxima of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.kernels import Lanes
from tsrnn.linear._estimates import Estimates, concatenated
from tsrnn.linear._optimise import AGREE, LAST_STEP, Evaluation, Optimum, agreement_of, maximise
from tsrnn.linear.garch._inference import estimates_of
from tsrnn.linear.garch._likelihood import Likelihood
from tsrnn.linear.garch._prepare import (
    Presample,
    Sample,
    Spread,
    design,
    presample_of,
    refusals,
    sample_of,
    sample_of_inputs,
    spread_of,
)
from tsrnn.linear.garch._specification import (
    Coordinates,
    Model,
    admissible,
    box,
    face,
    past_weights,
    persistence,
)
from tsrnn.linear.garch._start import (
    MeanStart,
    drawn_starts,
    grid_starts,
    mean_grid_starts,
    mean_start,
)

_NUMBERS = 2**25  # floats of the series that are fitted together: 256 MB
_MOST_STARTS = 8  # starting values of a model of several lags, unless the user gives their number
_MOST, _MOST_KINKED = 100, 50  # iterations
_CLOSE = 0.1  # decrement below which second derivatives are worth twice the time of first ones
_KINK = 1e-2  # decrement below which a search that does not converge has ended on a kink
_LASTING = 0.9  # below this persistence, a longer one may have a maximum of its own
_RIVAL = 4.0  # log-likelihood below the optimum within which a second start raises doubt
_MEANS = 4  # starts of an ARMA mean besides least squares
_STRONG = 30.0  # likelihood ratio to a constant variance above which one start is enough
_AWAY = (-10, -3, -1, 1, 3, 10)  # intervals between kinks, counted from the optimum's
_NEAR_FACE = 1e-3  # distance of the persistence from one at which a search continues on the face
_ROUNDING = 1e-12  # a persistence held at one may exceed it by this


class Fit(NamedTuple):
    """Estimates of N units with their presample values."""

    estimates: Estimates
    presample: np.ndarray  # (N,) variances, NaN where there are none
    presample_z: np.ndarray  # (N,) standardised residuals, NaN where shocks are expectations


@dataclass(frozen=True, eq=False)
class Optima(SeriesArrays):
    """Maxima of the likelihoods of N standardised units."""

    params: np.ndarray  # (N, k)
    value: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray  # (N, k)
    dropped: np.ndarray  # parameter implied by a persistence held at one, else -1
    kinked: np.ndarray  # True for a maximum on a kink of the likelihood
    starts: np.ndarray  # number of starts
    agreement: np.ndarray  # number of starts that came close to the highest value

    def or_higher(self, other: Optima) -> Optima:
        """Take the higher optimum of each unit."""
        higher = np.flatnonzero(other.value > self.value)
        return self.replaced(higher, other.select(higher))


@dataclass(frozen=True, eq=False)
class Problem:
    """Batch of units, with the data of their likelihoods."""

    model: Model
    units: np.ndarray  # (n,) numbers among all units
    sample: Sample
    mean: MeanStart
    presample: Presample  # of any model with this mean
    stationary: bool  # hold the persistence at one
    n_starts: int | None  # starts besides nested optima; None to decide by unit
    # Optima of this model and of those nested in it, filled during the search.
    optima: dict[Model, Optima] = field(default_factory=dict)

    def select(self, units: np.ndarray) -> Problem:
        """Problem of the given units of this problem."""
        return replace(
            self,
            units=self.units[units],
            sample=self.sample.select(units),
            mean=self.mean.select(units),
            presample=self.presample.select(units),
            optima={},
        )

    def mean_of(self, model: Model) -> MeanStart:
        """Starting values of the mean of a nested model.

        Presample residuals stay those of this problem's model, so that likelihoods compare.
        """
        if model.mean == self.model.mean:
            return self.mean
        return replace(self.mean, params=mean_start(model, self.sample).params)

    @cached_property
    def lanes(self) -> Lanes:
        """Inputs of the likelihoods of all models."""
        return Lanes(self.sample.inputs)

    def likelihood(self, model: Model) -> Likelihood:
        """Likelihood of this problem's model or of a nested one.

        Nested models run in the compiled code of the largest orders: a search of orders p, q
        visits (p + 1) q models, and compiling each takes longer than climbing with more lags.
        """
        widest = replace(model, p=self.model.p, q=self.model.q)
        presample = replace(self.presample, model=widest)
        whole = Likelihood(widest, self.lanes, self.sample.n_obs, presample)
        return whole if widest == model else whole.restricted(model)


def problems(
    model: Model,
    y: np.ndarray,
    lengths: np.ndarray,
    initial_variance: str | float,
    stationary: bool,
    n_starts: int | None = None,
) -> Iterator[tuple[Problem | None, dict[int, str]]]:
    """Yield batches of series (N, T), and the reasons why other series cannot be fitted."""
    spread, n_values = spread_of(y, lengths, model.gaps), lengths
    if model.gaps:
        n_values = (~np.isnan(y) & (np.arange(y.shape[1]) < lengths[:, None])).sum(1)
    reasons = refusals(model, n_values, spread)
    yield None, {i: reason for i, reason in enumerate(reasons) if reason}
    usable = np.flatnonzero([not reason for reason in reasons])
    # Series are independent: a batch has as many as fit into memory, with a lane for each start.
    several = n_starts is not None or max(model.p, model.q) > 1
    lanes = max(n_starts or 0, _MOST_STARTS) if several else 1
    size = max(1, _NUMBERS // (lanes * y.shape[1]))
    for i in range(0, len(usable), size):
        units = usable[i : i + size]
        rows = slice(None) if len(units) == len(y) else units  # all of them need no copy
        sample = sample_of(model, y[rows], lengths[rows], Spread(*(part[rows] for part in spread)))
        mean = mean_start(model, sample)
        presample = presample_of(model, sample, initial_variance, mean.first, mean.variance)
        yield Problem(model, units, sample, mean, presample, stationary, n_starts), {}


def problem_at(
    model: Model, y: np.ndarray, lengths: np.ndarray, initial_variance: str | float
) -> Problem:
    """Problem of all series (N, T), not standardised, for evaluation at given parameters."""
    n, inputs = len(y), design(model, y, lengths)
    sample = sample_of_inputs(model, inputs, lengths, np.zeros(n), np.ones(n))
    mean = mean_start(model, sample)
    presample = presample_of(model, sample, initial_variance, mean.first, mean.variance)
    return Problem(model, np.arange(n), sample, mean, presample, False, None)


def optima_at(problem: Problem, params: np.ndarray) -> Optima:
    """Evaluate the likelihood at given parameters (N, k), in place of `highest_maxima`."""
    n = len(params)
    zero, none = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    value = problem.likelihood(problem.model).values(params, np.arange(n))
    return Optima(
        params, value, zero, ~none, np.zeros(params.shape, dtype=bool), zero - 1, none, zero, zero
    )


def infer(problem: Problem, optima: Optima) -> Fit:
    """Estimates of a problem's units, on the scale of the data."""
    at = problem.likelihood(problem.model).curvatures(optima.params)
    estimates = estimates_of(problem.model, problem.sample, optima, at)
    variance, z = problem.presample.past(optima.params, problem.lanes)
    return Fit(estimates, variance * problem.sample.scale**2, z)


def fit_garch(
    model: Model,
    y: np.ndarray,
    lengths: np.ndarray,
    initial_variance: str | float,
    stationary: bool,
    n_starts: int | None = None,
) -> Fit:
    """Fit to series of shape (N, T); rows beyond `lengths` (N,) are not read."""
    reasons: dict[int, str] = {}
    nothing = Fit(Estimates.empty(model.names), np.empty(0), np.empty(0))
    parts, units = [nothing], [np.empty(0, np.int64)]
    for problem, refused in problems(model, y, lengths, initial_variance, stationary, n_starts):
        reasons |= refused
        if problem is not None:
            parts.append(infer(problem, highest_maxima(problem, model)))
            units.append(problem.units)
    fitted, before = np.concatenate(units), np.full((2, len(y)), np.nan)
    before[:, fitted] = np.hstack([[part.presample, part.presample_z] for part in parts])
    estimates = concatenated([part.estimates for part in parts])
    return Fit(estimates.placed(len(y), fitted, reasons), *before)


def garch_at(
    model: Model,
    y: np.ndarray,
    lengths: np.ndarray,
    params: np.ndarray,
    initial_variance: str | float,
) -> Fit:
    """Evaluate the likelihood of series (N, T) at given parameters (N, k)."""
    problem = problem_at(model, y, lengths, initial_variance)
    return infer(problem, optima_at(problem, params))


def highest_maxima(problem: Problem, model: Model) -> Optima:
    """Highest maximum from several starts, which include the optima of nested models.

    A model of one lag has one start. Further starts are tried if the variance hardly moves or
    its persistence is low, if a start of another persistence is nearly as good as the optimum, if
    the likelihood has kinks, the mean moving averages or the density a shape, if the search did
    not converge, or if the model without leverage is better. A model of more lags usually has
    several maxima, and always has several starts.
    """
    if model in problem.optima:
        return problem.optima[model]
    likelihood, n = problem.likelihood(model), len(problem.sample.n_obs)
    optima, doubtful = None, np.arange(n)
    if problem.n_starts is None and max(model.p, model.q) == 1:
        start, second = grid_starts(model, likelihood, problem.mean_of(model), whole=False)[:2]
        optima = _highest_of(problem, model, likelihood, start[None])
        # Compare with a constant variance, which is one in standardised series.
        constant = optima.params.copy()
        constant[:, model.vol_part] = 0.0
        constant[:, model.omega] = 0.0 if model.vol.log else 1.0
        gain = 2 * (optima.value - likelihood.values(constant, np.arange(n)))
        doubt = ~(gain > _STRONG) | ~optima.converged
        doubt |= model.vol.kinked or model.mean.n_ma > 0 or bool(model.density.names)
        doubt |= persistence(model, optima.params) < _LASTING
        doubt |= likelihood.values(second, np.arange(n)) > optima.value - _RIVAL
        if model.vol.without_leverage is not None:
            smaller = highest_maxima(problem, replace(model, vol=model.vol.without_leverage))
            doubt |= smaller.value > optima.value
        doubtful = np.flatnonzero(doubt)
    if len(doubtful):
        part = problem if len(doubtful) == n else problem.select(doubtful)
        other = _from_all_starts(part, model)
        optima = other if optima is None else _merged(optima, doubtful, other)
    assert optima is not None  # every unit is doubtful, or has been tried
    problem.optima[model] = optima
    return optima


def _from_all_starts(problem: Problem, model: Model) -> Optima:
    """Climb from the grid, or from `n_starts` starts, and from the optima of nested models."""
    likelihood = problem.likelihood(model)
    # Nested models have one lag less of a kind, no leverage, or a moving average less.
    smaller = [replace(model, p=model.p - 1)] * (model.p > 1)
    smaller += [replace(model, q=model.q - 1)] * (model.q > 0)
    if model.vol.without_leverage is not None:
        smaller.append(replace(model, vol=model.vol.without_leverage))
    if model.mean.n_ma:
        smaller.append(replace(model, mean=replace(model.mean, n_ma=model.mean.n_ma - 1)))
    nested = [(small, highest_maxima(problem, small)) for small in smaller]
    mean = problem.mean_of(model)
    start = grid_starts(model, likelihood, mean, whole=True)[: problem.n_starts]
    lacking = (problem.n_starts or 0) - len(start)
    if lacking > 0:
        start = np.concatenate([start, drawn_starts(model, mean, lacking)])
    embedded = []
    for small, optima in nested:  # additional parameters of the larger model are zero
        params = np.zeros((len(optima.params), len(model.names)))
        params[:, [model.names.index(name) for name in small.names]] = optima.params
        embedded.append(params)
    starts = np.concatenate([start, *(params[None] for params in embedded)])
    if model.mean.n_ma and problem.n_starts is None:  # with the variance of the simpler mean
        means = mean_grid_starts(model, likelihood, embedded[-1], _MEANS)
        starts = np.concatenate([starts, means])
    best = _highest_of(problem, model, likelihood, starts)
    if _has_kinks(model) and model.mean.constant and problem.n_starts != 1:
        # With a constant mean, kinks lie at the values of y, and each interval between two kinks
        # may have a maximum of its own: start in the middle of intervals around the optimum.
        moved = np.stack([best.params] * len(_AWAY))
        for i, row in enumerate(best.params):
            kinks = np.unique(problem.sample.inputs[i, problem.sample.observed[i], 0])
            middles = (kinks[:-1] + kinks[1:]) / 2
            places = np.searchsorted(kinks, row[0]) - 1 + np.array(_AWAY)
            moved[:, i, 0] = middles[np.clip(places, 0, len(middles) - 1)]
        every = np.arange(len(best.value))
        best = _merged(best, every, _highest_of(problem, model, likelihood, moved))
    for params, (_, small_optima) in zip(embedded, nested, strict=True):
        lower = np.flatnonzero(best.value < small_optima.value)
        if not len(lower):
            continue
        # A search that leaves the stationary region returns to its face elsewhere, and may end
        # below the nested optimum. Climb from that optimum again, within the region.
        part = likelihood.select(lower)
        end = _search(model, part, box(model), params[lower], stationary=True)
        near = persistence(model, end.params) > 1 - _NEAR_FACE
        end = _on_face(model, part, end, near & ~end.converged)
        before = best.select(lower)
        end = replace(end, starts=before.starts, agreement=np.ones_like(before.agreement))
        best = best.replaced(lower, before.or_higher(end))
    return best


def _highest_of(
    problem: Problem, model: Model, likelihood: Likelihood, starts: np.ndarray
) -> Optima:
    """Climb from all starts (count, N, k) in one batch, and take the highest maximum."""
    count, n, _ = starts.shape
    lanes = likelihood if count == 1 else likelihood.select(np.tile(np.arange(n), count))
    optima = _search(model, lanes, box(model), starts.reshape(count * n, -1))
    if problem.stationary and not model.vol.log:
        beyond = persistence(model, optima.params) > 1
        optima = _on_face(model, lanes, optima, beyond)
    ends = [optima.select(np.arange(i * n, (i + 1) * n)) for i in range(count)]
    best = ends[0]
    for end in ends[1:]:
        best = best.or_higher(end)
    agreement = agreement_of(np.stack([end.value for end in ends]))
    return replace(best, starts=np.full(n, count), agreement=agreement)


def _merged(optima: Optima, units: np.ndarray, other: Optima) -> Optima:
    """Replace optima of the given units by higher ones; starts and agreement add up."""
    before = optima.select(units)
    best = before.or_higher(other)
    values = np.stack([before.value, other.value])
    near = values > values.max(0) - AGREE
    agreement = before.agreement * near[0] + other.agreement * near[1]
    return optima.replaced(
        units, replace(best, starts=before.starts + other.starts, agreement=agreement)
    )


def _search(
    model: Model,
    likelihood: Likelihood,
    coordinates: Coordinates,
    start: np.ndarray,
    stationary: bool = False,
) -> Optima:
    """Climb from natural parameters (N, k); with `stationary`, within the stationary region."""

    def evaluate(values: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        params = coordinates.natural(values)
        at = likelihood.evaluate(params, units, exact)
        at = coordinates.pulled(params, at, exact)
        legal = admissible(model, coordinates, values)
        if stationary:
            legal &= persistence(model, params) <= 1 + _ROUNDING
        return at._replace(value=np.where(legal, at.value, -np.inf))

    lower, upper = coordinates.lower, coordinates.upper
    most = _MOST_KINKED if _has_kinks(model) else _MOST
    best = maximise(
        evaluate, coordinates.of(start), lower=lower, upper=upper, max_iter=most,
        newton=_CLOSE, last_step=LAST_STEP,
    )  # fmt: skip
    optima = _optima_of(coordinates, best)
    kinked = np.flatnonzero(~best.converged & (best.decrement < _KINK) & _has_kinks(model))
    if not len(kinked):
        return optima
    # No gradient vanishes on a kink: hold the mean there, and let the other parameters converge.
    bounds = np.tile(lower, (len(kinked), 1)), np.tile(upper, (len(kinked), 1))
    for bound in bounds:
        bound[:, model.mean_part] = best.params[kinked][:, model.mean_part]
    inside = maximise(
        lambda values, units, exact: evaluate(values, kinked[units], exact),
        best.params[kinked], lower=bounds[0], upper=bounds[1], scoring=0,
    )  # fmt: skip
    ended = _optima_of(coordinates, inside)
    ended.at_bound[:, model.mean_part] = False
    iterations = best.iterations[kinked] + inside.iterations
    return optima.replaced(kinked, replace(ended, iterations=iterations, kinked=inside.converged))


def _has_kinks(model: Model) -> bool:
    """Return True if absolute residuals give the likelihood kinks in the parameters of a mean."""
    return model.vol.kinked and bool(model.mean.names)


def _optima_of(coordinates: Coordinates, best: Optimum) -> Optima:
    """Optima in natural parameters."""
    params = coordinates.natural(best.params)
    at_bound = np.zeros(params.shape, dtype=bool)
    at_bound[:, coordinates.kept] = best.at_bound
    zero = np.zeros(len(params), dtype=np.int64)
    return Optima(
        params, best.value, best.iterations, best.converged.copy(), at_bound, zero - 1, zero > 0,
        zero + 1, zero + 1,
    )  # fmt: skip


def _on_face(model: Model, likelihood: Likelihood, optima: Optima, beyond: np.ndarray) -> Optima:
    """Repeat the search on the face of persistence one, for units beyond it."""
    if not beyond.any():
        return optima
    weight, result = past_weights(model), optima
    # The largest of alpha and beta follows from the others, as it is furthest from its bound.
    of_sum = np.where(weight == 1.0, optima.params, -np.inf)
    dropped = np.where(beyond, of_sum.argmax(1), -1)
    for j in np.unique(dropped[beyond]):
        units = np.flatnonzero(dropped == j)
        start = optima.params[units]
        start[:, weight != 0] /= persistence(model, start)[:, None]
        end = _search(model, likelihood.select(units), face(model, box(model), j), start)
        iterations = end.iterations + optima.iterations[units]
        end = replace(end, iterations=iterations, dropped=np.full(len(units), j))
        result = result.replaced(units, end)
    return result
