"""Search for the maxima of the likelihoods of exponential smoothing, and for the best model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from tsrnn.linear._estimates import PERFECT, aicc_penalty
from tsrnn.linear._family import CannotFitError
from tsrnn.linear._optimise import AGREE, Objective, Optimum, agreement_of, maximise_together
from tsrnn.linear._samples import Sample
from tsrnn.linear.ets._likelihood import Likelihood, to_natural
from tsrnn.linear.ets._specification import LEVEL, PHI, Components, fewest_rows
from tsrnn.linear.ets._start import FEW_STARTS, REGIONS, STARTS, bounds, starting_points

TOLERANCE = 1e-8  # decrement: 1e-4 standard errors, 1e-8 of the log-likelihood
SCORING = 15  # iterations before Newton's method, which ridges need
MOST = 40  # iterations
AT_ONCE = 1000  # series: 15 monthly models from two starts need matrices of 50 MB
MATRICES = 2**16  # numbers in the matrices of a batch, which fit into the second cache
# A search stops once its model cannot be the best of the series, or its start the best of the
# model: once the criterion, less SAFETY times the decrement, is behind by more than MARGINS (by
# iteration: first, second, later). Late steps promise too little on ridges of the likelihood. This
# saves 90 percent of the evaluations of 15 models and costs 0.17 of the criterion in the mean over
# M1 and M3, and nothing for 92 percent of their series.
SAFETY = (1.0, 1.2, 2.2)
MARGINS = (10.0, 4.0, 0.0)
# With few starts, the later ones join after JOIN iterations, unless their model is BEHIND by more.
JOIN, BEHIND = 3, 5.0
# After APART iterations, only the highest of starts this close in log-likelihood goes on.
TOGETHER = 0.2
APART = 2
SAME = 1e-4  # difference of log-likelihoods that does not matter


class Search(NamedTuple):
    """Optima of the search for N units of ETS or CES.

    Parameters are natural ones of the scaled series, in the order of the unit's recursion, then
    zeros; of CES the smoothing parameters, then coefficients of exogenous columns.
    """

    model: np.ndarray  # (N,), position among the candidates
    aicc: np.ndarray  # (N, candidates), corrected criterion; infinite if not fitted
    params: np.ndarray  # (N, k)
    sigma2: np.ndarray | None  # (N,) given variances of the scaled series; None if estimated
    iterations: np.ndarray  # (N,), as the next three
    starts: np.ndarray
    agreement: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray  # (N, k), parameters on the boundary


def empty_search(n: int, n_models: int, width: int) -> Search:
    """Search result of n series with up to `width` parameters, with nothing fitted yet."""
    model, iterations, starts, agreement = np.zeros((4, n), np.int64)
    return Search(
        model, np.full((n, n_models), np.inf), np.full((n, width), np.nan), None, iterations,
        starts, agreement, np.zeros(n, bool), np.zeros((n, width), bool),
    )  # fmt: skip


def nothing_fitted(models: tuple[Components, ...], n: int) -> Search:
    """Search result of n series among models, before any is fitted."""
    return empty_search(n, len(models), max(len(model.free) for model in models))


def search(models: tuple[Components, ...], sample: Sample, region: str) -> Search:
    """Fit every usable model to each series, and keep the best."""
    of_models = _race if len(models) > 1 else _search_one
    n = len(sample.units)
    parts = [
        of_models(models, sample.select(np.arange(begin, min(begin + AT_ONCE, n))), region)
        for begin in range(0, n, AT_ONCE)
    ]
    if len(parts) == 1:
        return parts[0]
    every = {name: [getattr(part, name) for part in parts] for name in Search._fields}
    del every["sigma2"]
    return Search(sigma2=None, **{name: np.concatenate(each) for name, each in every.items()})


def usable(models: tuple[Components, ...], sample: Sample) -> np.ndarray:
    """Mask (N, models): the series is long enough for the model, and positive if it must be."""
    counts, lowest = np.isfinite(sample.values).sum(1), np.nanmin(sample.values, 1)
    able = [(counts >= fewest_rows(m)) & ((lowest > 0) | (not m.positive)) for m in models]
    return np.stack(able, 1)


def exact_fits(models: tuple[Components, ...], sample: Sample) -> Search:
    """Models that fit a series exactly, as a constant, a line or a repeated season.

    Starting values find them; a search would climb a likelihood without a bound. Criteria of all
    other series stay infinite.
    """
    counts, able = np.isfinite(sample.values).sum(1), usable(models, sample)
    ends = nothing_fitted(models, len(counts))
    for number, model in enumerate(models):
        units = np.flatnonzero(able[:, number])
        if not len(units):
            continue
        scaled = model.scaled(sample).select(units)
        natural = to_natural(starting_points(model, scaled.rows, 1)[0])
        relative = np.full(len(units), model.error == "mul")
        likelihood = Likelihood(model.recursion, scaled.rows, np.arange(len(units)), relative)
        with np.errstate(all="ignore"):  # of models that do not suit a series at all
            sigma2, value = likelihood.values(natural, None)
        exact = np.flatnonzero(np.isfinite(value) & (sigma2 <= PERFECT))
        units = units[exact]
        value = value[exact] - counts[units] * np.log(scaled.scale[exact])
        k = len(model.names) + 1
        aicc = aicc_penalty(counts[units], k) - 2 * value
        better = aicc < ends.aicc[units].min(1)
        ends.aicc[units, number] = aicc
        units, exact, size = units[better], exact[better], natural.shape[1]
        ends.model[units], ends.params[units], ends.at_bound[units] = number, 0.0, False
        ends.params[units, :size], ends.converged[units] = natural[exact], True
        ends.starts[units], ends.agreement[units] = 1, 1
    return ends


def penalties(models: tuple[Components, ...], sample: Sample) -> np.ndarray:
    """Penalties (N, models) of the corrected criterion, for log-likelihoods of scaled series."""
    counts = np.isfinite(sample.values).sum(1)[:, None]
    k = np.array([len(model.names) + 1 for model in models])
    scale = np.stack([model.scaled(sample).scale for model in models], 1)
    in_data = 2 * counts * np.log(scale)  # converts densities to the units of the data
    return aicc_penalty(counts, k) + in_data


class Highest(NamedTuple):
    """Highest optima from several starts, for N series."""

    best: Optimum  # in the parameters of the search
    starts: np.ndarray  # (N,), number of admissible starts
    agreement: np.ndarray  # (N,), starts that agree on the optimum

    def select(self, chosen: np.ndarray) -> Highest:
        """Select series by position."""
        best = Optimum(*(part[chosen] for part in self.best))
        return Highest(best, self.starts[chosen], self.agreement[chosen])

    def higher(self, other: Highest) -> Highest:
        """The higher of two optima of each series; starts are added."""
        better = other.best.value > self.best.value + SAME
        best = Optimum(*(
            np.where(better.reshape(-1, *[1] * (mine.ndim - 1)), others, mine)
            for mine, others in zip(self.best, other.best, strict=True)
        ))  # fmt: skip
        near = np.abs(other.best.value - self.best.value) < AGREE
        agreement = np.where(better, other.agreement, self.agreement)
        agreement = np.where(near, self.agreement + other.agreement, agreement)
        return Highest(best, self.starts + other.starts, agreement)


def highest_of(ends: Optimum, n: int) -> Highest:
    """Highest ends of the climbs of n series, start by start."""
    reached = ends.value.reshape(-1, n)
    first = reached.argmax(0) * n + np.arange(n)
    best = Optimum(*(part[first] for part in ends))
    return Highest(best, np.isfinite(reached).sum(0), agreement_of(reached))


def highest_optimum(
    model: Components,
    values: np.ndarray,
    region: str,
    known: dict[tuple[Components, str], Highest] | None = None,
) -> Highest:
    """Highest optimum of one model of scaled series (N, T), not below its nested models.

    Values (N, T, 1 + k) have exogenous columns behind the series, here and in climbs. Starts
    include the optima of nested models and of the smaller region, which `known` caches.
    """
    known = {} if known is None else known
    if (model, region) not in known:
        starts = [*starting_points(model, values)]
        for smaller, within in nested_models(model, region):
            inner = highest_optimum(smaller, values, within, known)
            starts += embedded(smaller, inner.best.params, model, *bounds(model, region))
        highest = climb(model, values, np.stack(starts), region)
        # Other maxima lie where smoothing parameters meet their other bounds: hold them there
        # first, so that the states adapt, then release them.
        adapted = []
        for j, bound in product(np.flatnonzero(model.free[:LEVEL]), bounds(model, region)):
            lower, upper = (part.copy() for part in bounds(model, region))
            lower[j] = upper[j] = bound[j]
            adapted.append(climbs(model, values, highest.best.params[None], lower, upper).params)
            adapted.append(np.clip(highest.best.params, lower, upper))
        further = climb(model, values, np.stack(adapted), region)
        known[model, region] = highest.higher(further)
    return known[model, region]


def nested_models(model: Components, region: str) -> list[tuple[Components, str]]:
    """Models with one component less, and the same model in the smaller region."""
    inside = [(model, REGIONS[0])] if region == REGIONS[1] else []
    if model.damped:
        inside.append((replace(model, damped=False), region))
    elif model.trend != "none":
        inside.append((replace(model, trend="none"), region))
    if model.seasonal != "none":
        inside.append((replace(model, seasonal="none", period=1), region))
    return inside


def embedded(
    smaller: Components, params: np.ndarray, model: Components, lower: np.ndarray, upper: np.ndarray
) -> list[np.ndarray]:
    """Starts (N, k) of a model within bounds (k,), from parameters (N, j) of a nested one.

    If the nested trend is not damped there are two, at both bounds of the damping.
    """
    start = np.tile(model.recursion.neutral, (len(params), 1))
    places = [model.recursion.names.index(name) for name in smaller.recursion.names]
    start[:, places] = params
    if smaller.trend == "none":
        start[:, LEVEL + 1] = model.recursion.neutral[LEVEL + 1]
    if smaller.seasonal == "none" and model.seasonal == "mul":
        start[:, LEVEL + 2 : model.recursion.states.stop] = 1.0
    nearest = np.clip(start, lower, upper)
    if not model.damped or smaller.damped:
        return [nearest]
    strong = nearest.copy()
    strong[:, PHI] = lower[PHI]
    return [nearest, strong]


def climb(model: Components, values: np.ndarray, starts: np.ndarray, region: str) -> Highest:
    """Climb from starts (S, N, k), and keep the highest optimum of each series."""
    ends = climbs(model, values, starts, *bounds(model, region))
    return highest_of(ends, starts.shape[1])


def climbs(
    model: Components, values: np.ndarray, starts: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> Optimum:
    """Optima (S N, ...) of climbs from starts (S, N, k) within bounds (k,)."""
    count, n, width = starts.shape
    series = np.tile(np.arange(n), count)
    relative = np.full(count * n, model.error == "mul")
    likelihood = Likelihood(model.recursion, values, series, relative)
    objective = Objective(
        likelihood.evaluate, starts.reshape(-1, width), lower, upper, max(1, MATRICES // width**2)
    )
    return maximise_together([objective], scoring=SCORING, tol=TOLERANCE, max_iter=MOST)[0]


def _search_one(models: tuple[Components, ...], sample: Sample, region: str) -> Search:
    """Optimum of the only model."""
    (model,) = models
    ends, able = nothing_fitted(models, len(sample.units)), usable(models, sample)[:, 0]
    units = np.flatnonzero(able)
    if len(units):
        optimum = highest_optimum(model, model.scaled(sample).rows[units], region)
        reached = np.flatnonzero(np.isfinite(optimum.best.value))
        _place(ends, units[reached], 0, models, optimum.select(reached), penalties(models, sample))
    if not np.isfinite(ends.aicc).any():
        raise CannotFitError("no admissible starting values were found")
    return ends


def _race(models: tuple[Components, ...], sample: Sample, region: str) -> Search:
    """Best model of each series: all climb in step, and those left behind stop."""
    n, able, penalty = len(sample.units), usable(models, sample), penalties(models, sample)
    count, join = (FEW_STARTS, JOIN) if region == REGIONS[0] else (len(STARTS), 0)
    groups = []
    for recursion in dict.fromkeys(model.recursion for model in models):
        numbers = [i for i, model in enumerate(models) if model.recursion == recursion]
        fits = [np.flatnonzero(able[:, i]) for i in numbers]
        if sum(map(len, fits)):
            number = np.repeat(numbers, [len(units) for units in fits])
            groups.append(_Group(models, sample, np.concatenate(fits), number, region, count, join))
    if not groups:
        raise CannotFitError("the series are too short")
    optima = maximise_together(
        [group.objective for group in groups], scoring=SCORING, tol=TOLERANCE, max_iter=MOST,
        give_up=Race(penalty, groups),
    )  # fmt: skip
    ends, reached = nothing_fitted(models, n), {}
    for group, optimum in zip(groups, optima, strict=True):
        values = optimum.value.reshape(count, -1)
        # Prefer a converged start to one stopped beside it at the same height.
        first = (values + SAME * optimum.converged.reshape(count, -1)).argmax(0)
        first = first * len(group.series) + np.arange(len(group.series))
        best = Highest(
            Optimum(*(part[first] for part in optimum)), np.isfinite(values).sum(0),
            agreement_of(values),
        )  # fmt: skip
        for number in np.unique(group.number):
            pairs = np.flatnonzero(group.number == number)
            units = group.series[pairs]
            reached[number] = units, best.select(pairs)
            ends.aicc[units, number] = penalty[units, number] - 2 * best.best.value[pairs]
    if not np.isfinite(ends.aicc).any():
        raise CannotFitError("no admissible starting values were found")
    chosen = ends.aicc.argmin(1)
    for number, (units, best) in reached.items():
        mine = np.flatnonzero((chosen[units] == number) & np.isfinite(best.best.value))
        _place(ends, units[mine], number, models, best.select(mine), penalty)
        starts = _starts_from_nested(models, number, units[mine], reached, region)
        if len(mine) and starts:
            values = models[number].scaled(sample).rows[units[mine]]
            further = climb(models[number], values, np.stack(starts), region)
            higher = np.flatnonzero(further.best.value > best.best.value[mine] + SAME)
            _place(ends, units[mine[higher]], number, models, further.select(higher), penalty)
    return ends


def _starts_from_nested(
    models: tuple[Components, ...],
    number: int,
    units: np.ndarray,
    reached: dict[int, tuple[np.ndarray, Highest]],
    region: str,
) -> list[np.ndarray]:
    """Starts of a model from the ends of its nested models in a race."""
    model, starts = models[number], []
    for smaller, within in nested_models(model, region):
        # Levels of centred and of uncentred series do not compare.
        if within == region and smaller in models and smaller.positive == model.positive:
            others, inner = reached[models.index(smaller)]
            params = inner.best.params[np.searchsorted(others, units)]
            starts += embedded(smaller, params, model, *bounds(model, region))
    return starts


def _place(
    ends: Search,
    units: np.ndarray,
    number: int,
    models: tuple[Components, ...],
    optimum: Highest,
    penalty: np.ndarray,
) -> None:
    """Write the optima of a model as the choice of some units, in place."""
    best, size = optimum.best, len(models[number].free)
    ends.aicc[units, number] = penalty[units, number] - 2 * best.value
    ends.model[units], ends.params[units] = number, 0.0
    ends.params[units, :size] = to_natural(best.params)
    ends.iterations[units], ends.converged[units] = best.iterations, best.converged
    ends.at_bound[units] = False
    ends.at_bound[units, :size] = best.at_bound & models[number].free
    ends.starts[units], ends.agreement[units] = optimum.starts, optimum.agreement


class _Group:
    """Searches of the models of one recursion for pairs of a series and a model."""

    def __init__(
        self,
        models: tuple[Components, ...],
        sample: Sample,
        series: np.ndarray,
        number: np.ndarray,
        region: str,
        n_starts: int,
        join: int,
    ) -> None:
        self.series, self.number = series, number
        recursion = models[number[0]].recursion
        width = len(recursion.names)
        start = np.empty((n_starts, len(series), width))
        lower, upper = np.empty((2, len(series), width))
        self.free = np.empty((len(series), width), bool)
        rows, points = np.unique(series), dict[tuple[str, bool, bool], np.ndarray]()
        positive = np.array([model.positive for model in models])
        for i in np.unique(number):
            of_model = np.flatnonzero(number == i)
            kind = (models[i].trend, models[i].damped, models[i].positive)
            if kind not in points:
                values = models[i].scaled(sample).rows[rows]
                points[kind] = starting_points(models[i], values, n_starts)
            start[:, of_model] = points[kind][:, np.searchsorted(rows, series[of_model])]
            lower[of_model], upper[of_model] = bounds(models[i], region)
            self.free[of_model] = models[i].free
        repeated = np.tile(np.arange(len(series)), n_starts)
        self.joins = np.repeat([0, *[join] * (n_starts - 1)], len(series))
        relative = np.array([model.error == "mul" for model in models])[number]
        # Rows of the centred series, then of the series of size one.
        values = np.concatenate([sample.centred.rows, sample.sized.rows])
        places = series + len(sample.units) * positive[number]
        likelihood = Likelihood(recursion, values, places[repeated], relative[repeated])
        self.objective = Objective(
            likelihood.evaluate, start.reshape(-1, width), lower[repeated], upper[repeated],
            max(1, MATRICES // width**2), self.joins,
        )  # fmt: skip


class Race:
    """Rule that stops searches behind another model of the series, or another start."""

    def __init__(self, penalty: np.ndarray, groups: Sequence[_Group]) -> None:
        first, pairs = 0, []
        for group in groups:
            n_starts = len(group.joins) // len(group.series)
            pairs.append(np.tile(first + np.arange(len(group.series)), n_starts))
            first += len(group.series)
        self._pair = np.concatenate(pairs)  # pair of every unit
        self._later = np.concatenate([group.joins for group in groups])
        self._series = np.concatenate([group.series for group in groups])
        number = np.concatenate([group.number for group in groups])
        self._penalty = penalty[self._series, number]
        self._iteration, self._leader = 0, np.full(len(penalty), np.inf)
        self._promised = np.full(len(self._series), np.inf)  # by the first start of each pair

    def __call__(self, units: np.ndarray, value: np.ndarray, decrement: np.ndarray) -> np.ndarray:
        pair, age = self._pair[units], self._iteration - self._later[units]
        series, criterion = self._series[pair], self._penalty[pair] - 2 * value
        np.minimum.at(self._leader, series, criterion)
        highest = np.full(len(self._series), -np.inf)
        np.maximum.at(highest, pair, value)
        ahead = highest[pair]
        # The decrement is twice the predicted rise of the log-likelihood.
        joins = np.isinf(decrement)
        safety, margin = _by_age(SAFETY, age), _by_age(MARGINS, age)
        promised = criterion - safety * np.where(joins, 0.0, decrement)
        first = self._later[units] == 0
        self._promised[pair[first]] = promised[first]
        behind = promised > self._leader[series] + np.where(first, margin, 0.0)
        behind |= promised > self._penalty[pair] - 2 * ahead
        leads = np.flatnonzero(value == ahead)
        leader = np.full(len(self._series), -1)
        leader[pair[leads]] = units[leads]
        behind |= (age >= APART) & (value > ahead - TOGETHER) & (units != leader[pair])
        behind[joins] = (self._promised[pair] > self._leader[series] + BEHIND)[joins]
        self._iteration += 1
        return behind


def _by_age(values: tuple[float, ...], age: np.ndarray) -> np.ndarray:
    return np.array(values)[np.clip(age, 0, len(values) - 1)]
