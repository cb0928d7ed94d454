"""Maximum likelihood of many series at once: the highest of several maxima of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

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

_NUMBERS = 2**25  # of the series that are fitted together: 256 MB
_MOST_STARTS = 8  # that several lags have by default
_MOST, _MOST_KINKED = 100, 50  # iterations
_CLOSE = 0.1  # decrement below which second derivatives are worth twice the time of first ones
_KINK = 1e-2  # decrement below which a search that does not converge has ended on a kink
_LASTING = 0.9  # persistence below which a longer one may have a maximum of its own
_RIVAL = 4.0  # log-likelihood by which a start of another persistence may be below the optimum
_MEANS = 4  # starts of an ARMA mean besides that of least squares
_STRONG = 30.0  # gain over a constant variance, twice the log-likelihood, that needs one start
_AWAY = (-10, -3, -1, 1, 3, 10)  # intervals between kinks, from that of the optimum
_NEAR_FACE = 1e-3  # persistence below one from which a search goes on with it held at one
_ROUNDING = 1e-12  # by which a persistence held at one may exceed it


class Fit(NamedTuple):
    """Estimates of N units, and the values before the first observation at them."""

    estimates: Estimates
    presample: np.ndarray  # (N,) variances, NaN where there are none
    presample_z: np.ndarray  # (N,) standardised residuals, NaN where shocks are expectations


class Optima(NamedTuple):
    """Maxima of the likelihoods of N standardised units."""

    params: np.ndarray  # (N, k)
    value: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray  # (N, k)
    dropped: np.ndarray  # parameter that the others imply where persistence is held at one, or -1
    kinked: np.ndarray  # whether it is on a kink of the likelihood
    starts: np.ndarray  # tried
    agreement: np.ndarray  # how many of them came close to the highest value

    def select(self, units: np.ndarray) -> Optima:
        """Optima of some units, by number."""
        return Optima(*(array[units] for array in self))

    def replaced(self, units: np.ndarray, new: Optima) -> Optima:
        """Optima with those of some units changed."""
        whole = Optima(*(array.copy() for array in self))
        for array, values in zip(whole, new, strict=True):
            array[units] = values
        return whole

    def or_higher(self, other: Optima) -> Optima:
        """Optima, replaced by those of `other` where these are higher."""
        higher = other.value > self.value
        return Optima(*(
            np.where(higher.reshape(-1, *(1,) * (a.ndim - 1)), b, a)
            for a, b in zip(self, other, strict=True)
        ))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Problem:
    """Units that are fitted together, with all that their likelihoods need."""

    model: Model
    units: np.ndarray  # (n,) numbers among all units
    sample: Sample
    mean: MeanStart
    presample: Presample  # of any model with this mean
    stationary: bool  # hold the persistence at one
    n_starts: int | None  # besides nested optima; None for as many as have turned out to matter
    # Of this model and those nested in it, as they are needed.
    optima: dict[Model, Optima] = field(default_factory=dict)

    def select(self, units: np.ndarray) -> Problem:
        """Problem of some units, by their number in this one."""
        return replace(
            self,
            units=self.units[units],
            sample=self.sample.select(units),
            mean=MeanStart(*(part[units] for part in self.mean)),
            presample=self.presample.select(units),
            optima={},
        )

    def mean_of(self, model: Model) -> MeanStart:
        """Starting values of the mean of a model, at the residuals of this problem's."""
        if model.mean == self.model.mean:
            return self.mean
        return self.mean._replace(params=mean_start(model, self.sample).params)

    @cached_property
    def lanes(self) -> Lanes:
        """Inputs as the likelihoods of all models read them."""
        return Lanes(self.sample.inputs)

    def likelihood(self, model: Model) -> Likelihood:
        """Likelihood of a model that is this problem's or nested in it.

        All numbers of lags share the compiled code of the largest: a search of p, q lags asks for
        (p + 1) q models, and to compile each takes longer than to climb with more lags.
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
    """Problems of series (N, T), and reasons why other series cannot be fitted."""
    spread, n_values = spread_of(y, lengths, model.gaps), lengths
    if model.gaps:
        n_values = (~np.isnan(y) & (np.arange(y.shape[1]) < lengths[:, None])).sum(1)
    reasons = refusals(model, n_values, spread)
    yield None, {i: reason for i, reason in enumerate(reasons) if reason}
    usable = np.flatnonzero([not reason for reason in reasons])
    # Series are independent: as many at a time as memory allows, each in a lane for every start.
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
    """Problem of all series (N, T) as they are, to be evaluated at parameters that are given."""
    n, inputs = len(y), design(model, y, lengths)
    sample = sample_of_inputs(model, inputs, lengths, np.zeros(n), np.ones(n))
    mean = mean_start(model, sample)
    presample = presample_of(model, sample, initial_variance, mean.first, mean.variance)
    return Problem(model, np.arange(n), sample, mean, presample, False, None)


def optima_at(problem: Problem, params: np.ndarray) -> Optima:
    """Counterpart of `highest_maxima` with parameters (N, k)."""
    n = len(params)
    zero, none = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    value = problem.likelihood(problem.model).values(params, np.arange(n))
    return Optima(
        params, value, zero, ~none, np.zeros(params.shape, dtype=bool), zero - 1, none, zero, zero
    )


def inferred(problem: Problem, optima: Optima) -> Fit:
    """Estimates of a problem's units, in the units of the data."""
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
    """Fit to series (N, T), of which the first `lengths` (N,) rows count."""
    reasons: dict[int, str] = {}
    nothing = Fit(Estimates.empty(model.names), np.empty(0), np.empty(0))
    parts, units = [nothing], [np.empty(0, np.int64)]
    for problem, refused in problems(model, y, lengths, initial_variance, stationary, n_starts):
        reasons |= refused
        if problem is not None:
            parts.append(inferred(problem, highest_maxima(problem, model)))
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
    """Log-likelihood of series (N, T) at parameters (N, k) in the place of a fit."""
    problem = problem_at(model, y, lengths, initial_variance)
    return inferred(problem, optima_at(problem, params))


def highest_maxima(problem: Problem, model: Model) -> Optima:
    """Highest maximum from several starts, optima of the nested models among them.

    Models of one lag begin with one start. Others are tried where the variance hardly moves or
    soon forgets, where a start of another persistence is nearly as good as the optimum, where the
    likelihood has kinks, the mean moving averages or the density a shape, where the search failed
    and where a model without leverage is better. Models of more lags have maxima side by side as a
    rule.
    """
    if model in problem.optima:
        return problem.optima[model]
    likelihood, n = problem.likelihood(model), len(problem.sample.n_obs)
    optima, doubtful = None, np.arange(n)
    if problem.n_starts is None and max(model.p, model.q) == 1:
        start, second = grid_starts(model, likelihood, problem.mean_of(model), whole=False)[:2]
        optima = _highest_of(problem, model, likelihood, start[None])
        # Beside a constant variance of one, that of standardised series.
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
    """Climb from the grid, or from as many starts as are asked for, and from nested optima."""
    likelihood = problem.likelihood(model)
    # Nested are models with one lag less on a side, without leverage, or with a simpler mean.
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
    for small, optima in nested:  # the parameters that only the larger model has are zero
        params = np.zeros((len(optima.params), len(model.names)))
        params[:, [model.names.index(name) for name in small.names]] = optima.params
        embedded.append(params)
    starts = np.concatenate([start, *(params[None] for params in embedded)])
    if model.mean.n_ma and problem.n_starts is None:  # the variance as with the simpler mean
        means = mean_grid_starts(model, likelihood, embedded[-1], _MEANS)
        starts = np.concatenate([starts, means])
    best = _highest_of(problem, model, likelihood, starts)
    if _has_kinks(model) and model.mean.constant and problem.n_starts != 1:
        moved = _between_kinks(problem.sample, best.params)
        every = np.arange(len(best.value))
        best = _merged(best, every, _highest_of(problem, model, likelihood, moved))
    for params, (_, small_optima) in zip(embedded, nested, strict=True):
        lower = np.flatnonzero(best.value < small_optima.value)
        if not len(lower):
            continue
        # A search that leaves the stationary region is brought back to its face elsewhere, and may
        # end lower there: this one climbs from the nested optimum without leaving it.
        part = likelihood.select(lower)
        end = _search(model, part, box(model), params[lower], stationary=True)
        near = persistence(model, end.params) > 1 - _NEAR_FACE
        end = _on_face(model, part, end, near & ~end.converged)
        before = best.select(lower)
        end = end._replace(starts=before.starts, agreement=np.ones_like(before.agreement))
        best = best.replaced(lower, before.or_higher(end))
    return best


def _between_kinks(sample: Sample, params: np.ndarray) -> np.ndarray:
    """Parameters (count, N, k) with the constant of the mean moved past kinks of the likelihood.

    Where the mean is a constant, kinks lie at the values of y, and each interval between two of
    them may have a maximum of its own.
    """
    starts = np.stack([params] * len(_AWAY))
    for i, row in enumerate(params):
        kinks = np.unique(sample.inputs[i, sample.observed[i], 0])
        middles = (kinks[:-1] + kinks[1:]) / 2
        places = np.searchsorted(kinks, row[0]) - 1 + np.array(_AWAY)
        starts[:, i, 0] = middles[np.clip(places, 0, len(middles) - 1)]
    return starts


def _highest_of(
    problem: Problem, model: Model, likelihood: Likelihood, starts: np.ndarray
) -> Optima:
    """Highest of the maxima above starts (count, N, k), all climbed to in one batch."""
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
    return best._replace(starts=np.full(n, count), agreement=agreement)


def _merged(optima: Optima, units: np.ndarray, other: Optima) -> Optima:
    """Optima with those of some units replaced by higher ones, their starts counted together."""
    before = optima.select(units)
    best = before.or_higher(other)
    values = np.stack([before.value, other.value])
    near = values > values.max(0) - AGREE
    agreement = before.agreement * near[0] + other.agreement * near[1]
    return optima.replaced(
        units, best._replace(starts=before.starts + other.starts, agreement=agreement)
    )


def _search(
    model: Model,
    likelihood: Likelihood,
    coordinates: Coordinates,
    start: np.ndarray,
    stationary: bool = False,
) -> Optima:
    """Climb from natural parameters (N, k), if asked for within the stationary region."""

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
    # On a kink no gradient vanishes: the mean is held there, and the others converge.
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
    return optima.replaced(kinked, ended._replace(iterations=iterations, kinked=inside.converged))


def _has_kinks(model: Model) -> bool:
    """Whether the likelihood has kinks: of absolute residuals, in the parameters of a mean."""
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
    """Search once more, on the face where the persistence is one, for units beyond it."""
    if not beyond.any():
        return optima
    weight, result = past_weights(model), optima
    # The largest of alpha and beta follows from the others: it is furthest from its bound.
    of_sum = np.where(weight == 1.0, optima.params, -np.inf)
    dropped = np.where(beyond, of_sum.argmax(1), -1)
    for j in np.unique(dropped[beyond]):
        units = np.flatnonzero(dropped == j)
        start = optima.params[units]
        start[:, weight != 0] /= persistence(model, start)[:, None]
        end = _search(model, likelihood.select(units), face(model, box(model), j), start)
        end = end._replace(
            iterations=end.iterations + optima.iterations[units], dropped=np.full(len(units), j)
        )
        result = result.replaced(units, end)
    return result
