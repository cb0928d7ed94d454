"""Series that a model fits exactly: their likelihoods have no bound, and no search ends there."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._estimates import PERFECT, aicc_penalty
from tsrnn.linear._samples import Sample
from tsrnn.linear.ets._likelihood import Likelihood, to_natural
from tsrnn.linear.ets._search import Search, empty_search, usable
from tsrnn.linear.ets._specification import Components
from tsrnn.linear.ets._start import starting_points


def exact_fits(models: tuple[Components, ...], sample: Sample) -> Search:
    """Models that fit a series exactly, as a constant, a line or a repeated season.

    They are the starting values of a search. Criteria of all other series are infinite.
    """
    counts, able = np.isfinite(sample.values).sum(1), usable(models, sample)
    ends = empty_search(models, len(counts))
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
