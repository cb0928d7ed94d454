"""Maximum likelihood of many units at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._estimates import Estimates
from tsrnn.linear.garch._estimates import estimates_of, joined, no_estimates
from tsrnn.linear.garch._found import Found
from tsrnn.linear.garch._likelihood import Likelihood
from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._presample import Presample, presample_of
from tsrnn.linear.garch._sample import (
    Sample,
    Spread,
    design,
    refusals,
    sample_of,
    spread_of,
)
from tsrnn.linear.garch._search import Problem, optimum
from tsrnn.linear.garch._start import mean_start

_NUMBERS = 2**25  # of the series that are fitted together: 256 MB
_MOST_STARTS = 8  # that several lags have by default


class Fit(NamedTuple):
    """Estimates of N units, and the presample variances (N,) at them, NaN where there are none."""

    estimates: Estimates
    presample: np.ndarray


def fit(
    model: Model,
    y: np.ndarray,
    lengths: np.ndarray,
    initial_variance: str | float,
    stationary: bool,
    n_starts: int | None = None,
) -> Fit:
    """Fit to series (N, T), of which the first `lengths` (N,) values count."""
    spread = spread_of(y, lengths)
    reasons = refusals(model, lengths, spread)
    usable = np.flatnonzero([not reason for reason in reasons])
    many = n_starts is not None or max(model.p, model.q) > 1
    lanes = max(n_starts or 0, _MOST_STARTS) if many else 1
    size = max(1, _NUMBERS // (lanes * y.shape[1]))
    parts = [
        _fit_some(model, y, lengths, spread, usable[i : i + size], initial_variance, stationary,
                  n_starts)
        for i in range(0, len(usable), size)
    ]  # fmt: skip
    estimates = joined([part.estimates for part in parts]) if parts else no_estimates(model)
    why = {i: reason for i, reason in enumerate(reasons) if reason}
    presample = np.full(len(y), np.nan)
    presample[usable] = np.concatenate([np.empty(0), *(part.presample for part in parts)])
    return Fit(estimates.placed(len(y), usable, why), presample)


def _fit_some(
    model: Model,
    y: np.ndarray,
    lengths: np.ndarray,
    spread: Spread,
    which: np.ndarray,
    initial_variance: str | float,
    stationary: bool,
    n_starts: int | None,
) -> Fit:
    """Fit to some series, which can be fitted to."""
    some = slice(None) if len(which) == len(y) else which
    of_some = Spread(*(part[some] for part in spread))
    sample = sample_of(model, y[some], lengths[some], of_some)
    mean = mean_start(model, sample)
    presample = presample_of(model, sample, initial_variance, mean.first, mean.variance)
    problem = Problem(sample, mean, presample, stationary, n_starts)
    found = optimum(problem, model)
    at = problem.likelihood(model).curvatures(found.params)
    estimates = estimates_of(model, sample, found, at)
    return Fit(estimates, _before(model, presample, found.params) * sample.scale**2)


def at_given(
    model: Model,
    y: np.ndarray,
    lengths: np.ndarray,
    params: np.ndarray,
    initial_variance: str | float,
) -> Fit:
    """Log-likelihood of series (N, T) at parameters (N, k) in the place of a fit."""
    n, n_obs = len(y), lengths - model.mean.n_dropped
    sample = Sample(design(model, y, lengths), n_obs, np.zeros(n), np.ones(n))
    mean = mean_start(model, sample)
    presample = presample_of(model, sample, initial_variance, mean.first, mean.variance)
    at = Likelihood(model, sample.inputs, sample.n_obs, presample).curvatures(params)
    none = np.zeros(n, dtype=np.int64)
    found = Found(
        params, at.value, none, none == 0, np.zeros(params.shape, dtype=bool), none - 1, none > 0,
        none, none,
    )  # fmt: skip
    return Fit(estimates_of(model, sample, found, at), _before(model, presample, params))


def _before(model: Model, presample: Presample, params: np.ndarray) -> np.ndarray:
    """Presample variances (N,) at parameters."""
    value = presample.variance(params).value
    return np.exp(value) if model.vol.log else value
