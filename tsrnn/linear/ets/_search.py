"""Search for the maxima of the likelihoods of exponential smoothing, and for the best model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tsrnn.linear._family import CannotFitError
from tsrnn.linear._optimise import Objective, agreement_of, maximise_together
from tsrnn.linear.ets._likelihood import Likelihood, to_natural
from tsrnn.linear.ets._specification import Components, fewest_rows
from tsrnn.linear.ets._start import FEW_STARTS, REGIONS, STARTS, bounds, starting_points

TOLERANCE = 1e-8  # decrement: 1e-4 standard errors, 1e-8 of the log-likelihood
SCORING = 15  # iterations before Newton's method, which ridges need
MOST = 40  # iterations
AT_ONCE = 1000  # series: 15 monthly models from two starts have matrices of 50 MB
MATRICES = 2**16  # numbers in the matrices of some models: they stay in the second cache
# A search goes on while its model may still be the best of the series, and its start the best of
# the model: while the criterion, less SAFETY times what the next step promises, is not behind by
# more than MARGINS, for the first iterations one each. Late steps promise too little where the
# likelihood has ridges. Of all evaluations of 15 models a tenth is left, and 0.17 of the criterion
# is lost in the mean over M1 and M3, which is 0 for 92 percent of their series.
SAFETY = (1.0, 1.2, 2.2)
MARGINS = (10.0, 4.0, 0.0)
# Where few starts are taken, others than the first join after some iterations, those of models
# that are not further behind by then.
JOIN, BEHIND = 3, 5.0
# Of starts that have come as close as this in the log-likelihood the highest goes on.
TOGETHER = 0.2
APART = 2  # iterations before that
SAME = 1e-4  # difference of log-likelihoods that does not matter


class Search(NamedTuple):
    """Ends of the search for N units.

    Attributes
    ----------
    model : integer array of shape (N,)
        Of each unit, by its place among the candidates.
    aicc : array of shape (N, candidates)
        Corrected criterion of all models; infinite where one was not fitted.
    params : array of shape (N, k)
        Natural parameters of the scaled series, of all names of the unit's recursion; then zeros.
    sigma2 : array of shape (N,) or None
        Where it is given.
    iterations, starts, agreement : integer arrays of shape (N,)
    converged : boolean array of shape (N,)
    at_bound : boolean array of shape (N, k)
    """

    model: np.ndarray
    aicc: np.ndarray
    params: np.ndarray
    sigma2: np.ndarray | None
    iterations: np.ndarray
    starts: np.ndarray
    agreement: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray


def empty_search(models: tuple[Components, ...], n: int) -> Search:
    """Ends of a search for n series of which none is known yet."""
    width = max(len(model.free) for model in models)
    model, iterations, starts, agreement = np.zeros((4, n), np.int64)
    return Search(
        model=model,
        aicc=np.full((n, len(models)), np.inf),
        params=np.full((n, width), np.nan),
        sigma2=None,
        iterations=iterations,
        starts=starts,
        agreement=agreement,
        converged=np.zeros(n, bool),
        at_bound=np.zeros((n, width), bool),
    )


def search(models: tuple[Components, ...], values: np.ndarray, region: str) -> Search:
    """Fit every model to the series (N, T) that it can be fitted to, and take the best of each.

    All models of all series climb together from all starts. Of several models those are given up
    on the way that cannot be the best any more.
    """
    parts = [
        _search(models, values[begin : begin + AT_ONCE], region)
        for begin in range(0, len(values), AT_ONCE)
    ]
    if len(parts) == 1:
        return parts[0]
    every = {name: [getattr(part, name) for part in parts] for name in Search._fields}
    del every["sigma2"]
    return Search(sigma2=None, **{name: np.concatenate(each) for name, each in every.items()})


def _search(models: tuple[Components, ...], values: np.ndarray, region: str) -> Search:
    n, race = len(values), len(models) > 1
    few = race and region == REGIONS[0]
    starts = (FEW_STARTS, JOIN) if few else (len(STARTS), 0)
    counts, lowest = np.isfinite(values).sum(1), np.nanmin(values, 1)
    groups = []
    for recursion in dict.fromkeys(model.recursion for model in models):
        numbers = [i for i, model in enumerate(models) if model.recursion == recursion]
        fits = [
            np.flatnonzero(
                (counts >= fewest_rows(models[i])) & ((lowest > 0) | (not models[i].positive))
            )
            for i in numbers
        ]
        if sum(map(len, fits)):
            number = np.repeat(numbers, [len(units) for units in fits])
            groups.append(_Group(models, values, np.concatenate(fits), number, region, *starts))
    if not groups:
        raise CannotFitError("the series are too short")
    series = np.concatenate([group.series for group in groups])
    number = np.concatenate([group.number for group in groups])
    optima = maximise_together(
        [group.objective for group in groups], scoring=SCORING, tol=TOLERANCE, max_iter=MOST,
        give_up=Race(models, counts, groups) if race else None,
    )  # fmt: skip
    reached = np.concatenate([each.value.reshape(starts[0], -1) for each in optima], 1)
    if not np.isfinite(reached).any():
        raise CannotFitError("no admissible starting values were found")
    # A start may have been given up beside another that had converged to the same.
    converged = np.concatenate([each.converged.reshape(starts[0], -1) for each in optima], 1)
    highest = (reached + SAME * converged).argmax(0)
    aicc = np.full((n, len(models)), np.inf)
    aicc[series, number] = (
        _penalty(models, counts)[series, number] - 2 * reached[highest, range(len(series))]
    )
    chosen = aicc.argmin(1)
    ends = empty_search(models, n)._replace(model=chosen, aicc=aicc)
    first = 0
    for group, best in zip(groups, optima, strict=True):
        pairs = first + np.arange(len(group.series))
        first += len(pairs)
        # Searches of the chosen models, each from its best start.
        mine = np.flatnonzero(group.number == chosen[group.series])
        units, at = group.series[mine], highest[pairs[mine]] * len(pairs) + mine
        size = best.params.shape[1]
        ends.params[units] = 0.0
        ends.params[units, :size] = to_natural(best.params[at])
        ends.iterations[units], ends.converged[units] = best.iterations[at], best.converged[at]
        ends.at_bound[units, :size] = best.at_bound[at] & group.free[mine]
        ends.starts[units] = np.isfinite(reached).sum(0)[pairs[mine]]
        ends.agreement[units] = agreement_of(reached)[pairs[mine]]
    return ends


class _Group:
    """Searches of models of one recursion, of all starts one after the other.

    Attributes
    ----------
    series, number : integer arrays of shape (pairs,)
        Of each pair of a series and a model.
    free : boolean array of shape (pairs, k)
        Parameters that the model has.
    joins : integer array of shape (starts * pairs,)
        Iteration before which each search begins.
    objective : Objective
    """

    def __init__(
        self,
        models: tuple[Components, ...],
        values: np.ndarray,
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
        rows, points = np.unique(series), dict[tuple[str, bool], np.ndarray]()
        for i in np.unique(number):
            of_model, kind = np.flatnonzero(number == i), (models[i].trend, models[i].damped)
            if kind not in points:  # they do not depend on the kind of errors
                points[kind] = starting_points(models[i], values[rows], n_starts)
            start[:, of_model] = points[kind][:, np.searchsorted(rows, series[of_model])]
            lower[of_model], upper[of_model] = bounds(models[i], region)
            self.free[of_model] = models[i].free
        repeated = np.tile(np.arange(len(series)), n_starts)
        self.joins = np.repeat([0, *[join] * (n_starts - 1)], len(series))
        relative = np.array([model.error == "mul" for model in models])[number]
        likelihood = Likelihood(recursion, values, series[repeated], relative[repeated])
        self.objective = Objective(
            likelihood.evaluate, start.reshape(-1, width), lower[repeated], upper[repeated],
            max(1, MATRICES // width**2), self.joins,
        )  # fmt: skip


def _penalty(models: tuple[Components, ...], counts: np.ndarray) -> np.ndarray:
    """Penalties (N, models) of the corrected criterion."""
    k = np.array([len(model.names) + 1 for model in models])
    return 2 * k + 2 * k * (k + 1) / np.maximum(counts[:, None] - k - 1, 1)


class Race:
    """Searches that are given up, since another model of the series or another start is ahead."""

    def __init__(
        self, models: tuple[Components, ...], counts: np.ndarray, groups: Sequence[_Group]
    ) -> None:
        first, pairs = 0, []
        for group in groups:
            n_starts = len(group.joins) // len(group.series)
            pairs.append(np.tile(first + np.arange(len(group.series)), n_starts))
            first += len(group.series)
        self._pair = np.concatenate(pairs)  # of every unit
        self._later = np.concatenate([group.joins for group in groups])
        self._series = np.concatenate([group.series for group in groups])
        number = np.concatenate([group.number for group in groups])
        self._penalty = _penalty(models, counts)[self._series, number]
        self._iteration, self._leader = 0, np.full(len(counts), np.inf)
        self._promised = np.full(len(self._series), np.inf)  # of the first start of each pair

    def __call__(self, units: np.ndarray, value: np.ndarray, decrement: np.ndarray) -> np.ndarray:
        pair, age = self._pair[units], self._iteration - self._later[units]
        series, criterion = self._series[pair], self._penalty[pair] - 2 * value
        np.minimum.at(self._leader, series, criterion)
        highest = np.full(len(self._series), -np.inf)
        np.maximum.at(highest, pair, value)
        ahead = highest[pair]
        # The decrement is twice the rise of the log-likelihood that the next step promises.
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
