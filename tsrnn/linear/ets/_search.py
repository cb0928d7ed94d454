"""Search for the maxima of the likelihoods of exponential smoothing, and for the best model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._family import CannotFitError
from tsrnn.linear._optimise import Evaluation, agreement_of, maximise
from tsrnn.linear.ets._likelihood import Likelihood, to_natural
from tsrnn.linear.ets._specification import Components, fewest_rows
from tsrnn.linear.ets._start import STARTS, bounds, starting_points

TOLERANCE = 1e-8  # decrement: 1e-4 standard errors, 1e-8 of the log-likelihood
SCORING = 15  # iterations before Newton's method, which ridges need
MOST = 40  # iterations
AT_ONCE = 500  # series: 15 monthly models from three starts have matrices of 50 MB
# A search goes on while its model may still be the best of the series, and its start the best of
# the model: while the criterion, less SAFETY times what the next step promises, is not behind by
# more than MARGINS, one for each of the first iterations. Of 15 models from three starts a tenth of
# the evaluations is left, and 0.2 of the criterion is lost in the mean.
SAFETY = 1.2
MARGINS = (10.0, 4.0, 1.0, 0.0)
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
    n, width = len(values), max(len(model.free) for model in models)
    counts, lowest = np.isfinite(values).sum(1), np.nanmin(values, 1)
    fits = [
        np.flatnonzero((counts >= fewest_rows(m)) & ((lowest > 0) | (not m.positive)))
        for m in models
    ]
    series = np.concatenate(fits)
    number = np.repeat(np.arange(len(models)), [len(units) for units in fits])
    start = np.zeros((len(STARTS), len(series), width))
    lower, upper = np.zeros((2, len(series), width))
    for i in np.unique(number):
        model, of_model = models[i], np.flatnonzero(number == i)
        size = len(model.free)
        start[:, of_model, :size] = starting_points(model, values[series[of_model]])
        lower[of_model, :size], upper[of_model, :size] = bounds(model, region)
    race = Race(models, counts, series, number) if len(models) > 1 else None
    repeated = np.tile(np.arange(len(series)), len(STARTS))
    best = maximise(
        _Likelihoods(models, values, series[repeated], number[repeated]).evaluate,
        start.reshape(-1, width), lower=lower[repeated], upper=upper[repeated], scoring=SCORING,
        tol=TOLERANCE, max_iter=MOST, give_up=race,
    )  # fmt: skip
    reached = best.value.reshape(len(STARTS), -1)
    if not np.isfinite(reached).any():
        raise CannotFitError("no admissible starting values were found")
    # A start may have been given up beside another that had converged to the same.
    highest = (reached + SAME * best.converged.reshape(reached.shape)).argmax(0)
    aicc = np.full((n, len(models)), np.inf)
    aicc[series, number] = (
        _penalty(models, counts)[series, number] - 2 * reached[highest, range(len(series))]
    )
    chosen = aicc.argmin(1)
    # Place of the search of the chosen model of each series, then that of its best start.
    place = np.zeros(aicc.shape, np.int64)
    place[series, number] = np.arange(len(series))
    pair = place[np.arange(n), chosen]
    at = highest[pair] * len(series) + pair
    free = np.zeros((len(models), width), bool)
    for i, model in enumerate(models):
        free[i, : len(model.free)] = model.free
    params = to_natural(best.params[at])
    return Search(
        chosen, aicc, params, None, best.iterations[at], np.isfinite(reached).sum(0)[pair],
        agreement_of(reached)[pair], best.converged[at], best.at_bound[at] & free[chosen],
    )  # fmt: skip


def _penalty(models: tuple[Components, ...], counts: np.ndarray) -> np.ndarray:
    """Penalties (N, models) of the corrected criterion."""
    k = np.array([len(model.names) + 1 for model in models])
    return 2 * k + 2 * k * (k + 1) / np.maximum(counts[:, None] - k - 1, 1)


class Race:
    """Searches that are given up, since another model of the series or another start is ahead."""

    def __init__(
        self,
        models: tuple[Components, ...],
        counts: np.ndarray,
        series: np.ndarray,
        number: np.ndarray,
    ) -> None:
        self._penalty = _penalty(models, counts)[series, number]
        self._series, self._iteration = series, 0
        self._leader = np.full(len(counts), np.inf)

    def __call__(self, units: np.ndarray, value: np.ndarray, decrement: np.ndarray) -> np.ndarray:
        pair = units % len(self._series)
        series, criterion = self._series[pair], self._penalty[pair] - 2 * value
        np.minimum.at(self._leader, series, criterion)
        ahead = np.full(len(self._series), -np.inf)
        np.maximum.at(ahead, pair, value)
        # The decrement is twice the rise of the log-likelihood that the next step promises.
        promised = criterion - SAFETY * decrement
        margin = MARGINS[min(self._iteration, len(MARGINS) - 1)]
        behind = promised > self._leader[series] + margin
        behind |= promised > self._penalty[pair] - 2 * ahead[pair]
        if self._iteration >= APART:
            first, leads = np.zeros(len(self._series), np.int64), value == ahead[pair]
            first[pair[leads]] = units[leads]
            behind |= (value > ahead[pair] - TOGETHER) & (units != first[pair])
        self._iteration += 1
        return behind


class _Likelihoods:
    """Likelihood of models of several recursions, whose parameters are padded to one number."""

    def __init__(
        self,
        models: tuple[Components, ...],
        values: np.ndarray,
        series: np.ndarray,
        number: np.ndarray,
    ) -> None:
        recursions = list(dict.fromkeys(model.recursion for model in models))
        of_model = np.array([recursions.index(model.recursion) for model in models])
        relative = np.array([model.error == "mul" for model in models])[number]
        self._recursion = of_model[number]
        self._likelihoods = [Likelihood(r, values, series, relative) for r in recursions]

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        if len(self._likelihoods) == 1:
            return self._likelihoods[0].evaluate(params, units, exact)
        n, k = params.shape
        whole = Evaluation(np.empty(n), np.zeros((n, k)), np.zeros((n, k, k)))
        for i, likelihood in enumerate(self._likelihoods):
            mask = np.flatnonzero(self._recursion[units] == i)
            if len(mask):
                size = len(likelihood.recursion.names)
                part = likelihood.evaluate(params[mask, :size], units[mask], exact)
                whole.value[mask], whole.gradient[mask, :size] = part.value, part.gradient
                whole.curvature[mask, :size, :size] = part.curvature
                # Without slope nor bend what pads the parameters would make a matrix singular.
                for j in range(size, k):
                    whole.curvature[mask, j, j] = 1.0
        return whole
