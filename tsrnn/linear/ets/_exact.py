"""Series that a model fits exactly: their likelihoods have no bound, and no search ends there."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._family import CannotFitError
from tsrnn.linear._samples import Sample
from tsrnn.linear.ets._likelihood import PERFECT, Likelihood, to_natural
from tsrnn.linear.ets._search import Search, empty_search
from tsrnn.linear.ets._specification import Components, fewest_rows
from tsrnn.linear.ets._start import starting_points


def with_exact_fits(models: tuple[Components, ...], sample: Sample, ends: Search | None) -> Search:
    """Ends of a search with the models that fit a series exactly, as a line or a repeated season.

    They are the starting values of the search, which refuses a variance that is rounding.
    """
    counts, lowest = np.isfinite(sample.values).sum(1), np.nanmin(sample.values, 1)
    if ends is None:
        ends = empty_search(models, len(counts))
    for number, model in enumerate(models):
        able = (counts >= fewest_rows(model)) & ((lowest > 0) | (not model.positive))
        units = np.flatnonzero(able & np.isinf(ends.aicc[:, number]))
        if not len(units):
            continue
        natural = to_natural(starting_points(model, sample.values[units], 1)[0])
        relative = np.full(len(units), model.error == "mul")
        likelihood = Likelihood(model.recursion, sample.values, units, relative)
        sigma2, value = likelihood.values(natural, None)
        exact = np.flatnonzero(np.isfinite(value) & (sigma2 <= PERFECT))
        units, k = units[exact], len(model.names) + 1
        aicc = 2 * k + 2 * k * (k + 1) / (counts[units] - k - 1) - 2 * value[exact]
        better = aicc < ends.aicc[units].min(1)
        ends.aicc[units, number] = aicc
        units, exact, size = units[better], exact[better], natural.shape[1]
        ends.model[units], ends.params[units], ends.at_bound[units] = number, 0.0, False
        ends.params[units, :size], ends.converged[units] = natural[exact], True
        ends.iterations[units], ends.starts[units], ends.agreement[units] = 0, 1, 1
    if not np.isfinite(ends.aicc).any():
        raise CannotFitError("no admissible starting values were found")
    return ends
