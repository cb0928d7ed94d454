"""Maximum likelihood of many units at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._optimise import Evaluation, Optimum, maximise
from tsrnn.linear.garch._coordinates import Coordinates, admissible, box, face
from tsrnn.linear.garch._estimates import estimates_of, joined, no_estimates
from tsrnn.linear.garch._found import Found, better, chosen, replaced
from tsrnn.linear.garch._likelihood import Likelihood
from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._presample import Presample, persistence_weights, presample_of
from tsrnn.linear.garch._sample import (
    Sample,
    Spread,
    design,
    refusals,
    sample_of,
    spread_of,
)
from tsrnn.linear.garch._start import MeanStart, mean_start, starts

_MOST, _MOST_KINKED = 100, 50  # iterations
_KINK = 1e-2  # decrement below which a search that does not converge has ended on a kink
_NUMBERS = 2**25  # of the series that are fitted together: 256 MB
_STRONG = 30.0  # gain over a constant variance, twice the log-likelihood, that needs one start


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
) -> Fit:
    """Fit to series (N, T), of which the first `lengths` (N,) values count."""
    spread = spread_of(y, lengths)
    reasons = refusals(model, lengths, spread)
    usable = np.flatnonzero([not reason for reason in reasons])
    size = max(1, _NUMBERS // y.shape[1])
    parts = [
        _fit_some(model, y, lengths, spread, usable[i : i + size], initial_variance, stationary)
        for i in range(0, len(usable), size)
    ]
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
) -> Fit:
    """Fit to some series, which can be fitted to."""
    some = slice(None) if len(which) == len(y) else which
    of_some = Spread(*(part[some] for part in spread))
    sample = sample_of(model, y[some], lengths[some], of_some)
    mean = mean_start(model, sample)
    presample = presample_of(model, sample, initial_variance, mean.first, mean.variance)
    likelihood = Likelihood(model, sample.inputs, sample.n_obs, presample)
    found = _best(model, likelihood, mean)
    if stationary and not model.vol.log:
        found = _held_stationary(model, likelihood, found)
    estimates = estimates_of(model, sample, found, likelihood.curvatures(found.params))
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
        params, at.value, none, none == 0, np.zeros(params.shape, dtype=bool), none - 1, none > 0
    )
    return Fit(estimates_of(model, sample, found, at), _before(model, presample, params))


def _before(model: Model, presample: Presample, params: np.ndarray) -> np.ndarray:
    """Presample variances (N,) at parameters."""
    value = presample.variance(params).value
    return np.exp(value) if model.vol.log else value


def _best(model: Model, likelihood: Likelihood, mean: MeanStart) -> Found:
    """Search from the best start, and from others where there may be several maxima.

    So it is where the variance hardly moves, in short series above all, and where the likelihood
    has kinks.
    """
    coordinates, units = box(model), np.arange(len(mean.params))
    start = starts(model, likelihood, mean, whole=False)[0]
    found = _search(model, likelihood, coordinates, start)
    gain = 2 * (found.value - likelihood.values(_constant(model, found.params), units))
    weak = np.flatnonzero(~(gain > _STRONG) | model.vol.log)
    if len(weak):
        some, of_some = likelihood.select(weak), MeanStart(*(part[weak] for part in mean))
        for start in starts(model, some, of_some, whole=True):
            other = _search(model, some, coordinates, start)
            found = replaced(found, weak, better(chosen(found, weak), other))
    return found


def _constant(model: Model, params: np.ndarray) -> np.ndarray:
    """Parameters of a constant variance of one, that of standardised series."""
    constant = params.copy()
    constant[:, model.vol_part] = 0.0
    constant[:, model.omega] = 0.0 if model.vol.log else 1.0
    return constant


def _search(
    model: Model,
    likelihood: Likelihood,
    coordinates: Coordinates,
    start: np.ndarray,
) -> Found:
    """Climb from natural parameters (N, k)."""

    def evaluate(values: np.ndarray, which: np.ndarray, exact: bool) -> Evaluation:
        params = coordinates.natural(values)
        at = likelihood.evaluate(params, which, exact)
        at = coordinates.pulled(params, at, exact)
        legal = admissible(model, coordinates, values)
        return at._replace(value=np.where(legal, at.value, -np.inf))

    lower, upper = coordinates.lower, coordinates.upper
    most = _MOST_KINKED if _has_kinks(model) else _MOST
    best = maximise(evaluate, coordinates.of(start), lower=lower, upper=upper, max_iter=most)
    kinked = np.flatnonzero(~best.converged & (best.decrement < _KINK) & _has_kinks(model))
    found = _found(coordinates, best)
    if not len(kinked):
        return found
    held = np.tile(lower, (len(kinked), 1)), np.tile(upper, (len(kinked), 1))
    for bound in held:
        bound[:, model.mean_part] = best.params[kinked][:, model.mean_part]
    again = maximise(
        lambda values, which, exact: evaluate(values, kinked[which], exact),
        best.params[kinked], lower=held[0], upper=held[1], scoring=0,
    )  # fmt: skip
    ended = _found(coordinates, again)
    ended.at_bound[:, model.mean_part] = False
    iterations = best.iterations[kinked] + again.iterations
    ended = ended._replace(iterations=iterations, kinked=again.converged)
    return replaced(found, kinked, ended)


def _has_kinks(model: Model) -> bool:
    """Whether the likelihood has kinks: of absolute residuals, in the parameters of a mean.

    Its maximum may be on one. Then the mean is held there, and the others converge.
    """
    return model.vol.log and bool(model.mean.names)


def _found(coordinates: Coordinates, best: Optimum) -> Found:
    """Ends by natural parameters."""
    params = coordinates.natural(best.params)
    at_bound = np.zeros(params.shape, dtype=bool)
    at_bound[:, coordinates.kept] = best.at_bound
    none = np.zeros(len(params), dtype=np.int64)
    return Found(
        params, best.value, best.iterations, best.converged.copy(), at_bound, none - 1, none > 0
    )


def _held_stationary(model: Model, likelihood: Likelihood, found: Found) -> Found:
    """Search again, on the face where the persistence is one, for units beyond it."""
    weight = persistence_weights(model)
    beyond = found.params @ weight > 1
    if not beyond.any():
        return found
    result = found
    share = found.params * (weight == 1.0)
    dropped = np.where(beyond, share.argmax(1), -1)
    for j in np.unique(dropped[beyond]):
        units = np.flatnonzero(dropped == j)
        start = found.params[units]
        start[:, weight != 0] /= (start @ weight)[:, None]
        again = _search(model, likelihood.select(units), face(model, box(model), j), start)
        again = again._replace(iterations=again.iterations + found.iterations[units])
        again = again._replace(dropped=np.full(len(units), j))
        result = replaced(result, units, again)
    return result
