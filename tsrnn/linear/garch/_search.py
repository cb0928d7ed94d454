"""The search for the highest maximum of the likelihood, of many units at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tsrnn.linear._optimise import AGREE, Evaluation, Optimum, agreement_of, maximise
from tsrnn.linear.garch._coordinates import Coordinates, admissible, box, face
from tsrnn.linear.garch._found import Found, better, chosen, replaced
from tsrnn.linear.garch._likelihood import Likelihood
from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._presample import Presample, persistence_weights
from tsrnn.linear.garch._sample import Sample
from tsrnn.linear.garch._start import MeanStart, drawn_starts, grid_starts

_MOST, _MOST_KINKED = 100, 50  # iterations
_KINK = 1e-2  # decrement below which a search that does not converge has ended on a kink
_STRONG = 30.0  # gain over a constant variance, twice the log-likelihood, that needs one start
_AWAY = (-10, -3, -1, 1, 3, 10)  # intervals between kinks, from that of the optimum
_NEAR_FACE = 1e-3  # persistence below one from which a search goes on with it held at one
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Problem:
    """Standardised series with all that their likelihoods need besides the order.

    Parameters
    ----------
    sample : Sample
    mean : MeanStart
    presample : Presample
        Of any model with this mean.
    stationary : bool
        Whether the persistence is held at one.
    n_starts : int or None
        Starts of every unit, besides nested optima; None for as many as have turned out to
        matter.
    """

    sample: Sample
    mean: MeanStart
    presample: Presample
    stationary: bool
    n_starts: int | None
    optima: dict[Model, Found] = field(default_factory=dict)

    def select(self, units: np.ndarray) -> Problem:
        """That of some units, by number."""
        return replace(
            self,
            sample=self.sample.select(units),
            mean=MeanStart(*(part[units] for part in self.mean)),
            presample=self.presample.select(units),
            optima={},
        )

    def likelihood(self, model: Model) -> Likelihood:
        """That of a model."""
        presample = replace(self.presample, model=model)
        return Likelihood(model, self.sample.inputs, self.sample.n_obs, presample)


def optimum(problem: Problem, model: Model) -> Found:
    """Highest maximum from several starts, optima of the nested models among them.

    Models of one lag begin with one start. Others are tried where the variance hardly moves,
    where the likelihood has kinks, where the search failed and where a model without leverage
    is better. Models of more lags have maxima side by side as a rule.
    """
    if model in problem.optima:
        return problem.optima[model]
    likelihood, n = problem.likelihood(model), len(problem.sample.n_obs)
    found, doubtful = None, np.arange(n)
    if problem.n_starts is None and max(model.p, model.q) == 1:
        start = grid_starts(model, likelihood, problem.mean, whole=False)[:1]
        found = _highest(problem, model, likelihood, start)
        doubtful = _doubtful(problem, model, likelihood, found)
    if len(doubtful):
        part = problem if len(doubtful) == n else problem.select(doubtful)
        other = _from_all_starts(part, model)
        found = other if found is None else _merged(found, doubtful, other)
    assert found is not None  # every unit is doubtful, or has been tried
    problem.optima[model] = found
    return found


def nested_models(model: Model) -> list[Model]:
    """Models with one lag less on a side, or without leverage."""
    nested = []
    if model.p > 1:
        nested.append(replace(model, p=model.p - 1))
    if model.q > 0:
        nested.append(replace(model, q=model.q - 1))
    if model.vol.without_leverage is not None:
        nested.append(replace(model, vol=model.vol.without_leverage))
    return nested


def _doubtful(problem: Problem, model: Model, likelihood: Likelihood, found: Found) -> np.ndarray:
    """Units that need more starts than one."""
    n = len(found.value)
    gain = 2 * (found.value - likelihood.values(_constant(model, found.params), np.arange(n)))
    doubt = ~(gain > _STRONG) | model.vol.log | ~found.converged
    if model.vol.without_leverage is not None:
        smaller = optimum(problem, replace(model, vol=model.vol.without_leverage))
        doubt |= smaller.value > found.value
    return np.flatnonzero(doubt)


def _from_all_starts(problem: Problem, model: Model) -> Found:
    """Climb from the grid, or from as many starts as are asked for, and from nested optima."""
    likelihood = problem.likelihood(model)
    inner = [(small, optimum(problem, small)) for small in nested_models(model)]
    start = grid_starts(model, likelihood, problem.mean, whole=True)[: problem.n_starts]
    lacking = (problem.n_starts or 0) - len(start)
    if lacking > 0:
        start = np.concatenate([start, drawn_starts(model, problem.mean, lacking)])
    embedded = [_embedded(small, model, found.params) for small, found in inner]
    found = _highest(
        problem, model, likelihood, np.concatenate([start, *(part[None] for part in embedded)])
    )
    if _has_kinks(model) and model.mean.constant and problem.n_starts != 1:
        moved = _between_kinks(problem.sample, found.params)
        every = np.arange(len(found.value))
        found = _merged(found, every, _highest(problem, model, likelihood, moved))
    for params, (_, small) in zip(embedded, inner, strict=True):
        lower = np.flatnonzero(found.value < small.value)
        if len(lower):
            found = _not_below(model, likelihood, found, lower, params)
    return found


def _between_kinks(sample: Sample, params: np.ndarray) -> np.ndarray:
    """Parameters (count, N, k) with the constant of the mean moved past kinks of the likelihood.

    Where the mean is a constant, kinks lie at the values of y, and each interval between two of
    them may have a maximum of its own.
    """
    starts = np.stack([params] * len(_AWAY))
    for i, row in enumerate(params):
        kinks = np.unique(sample.inputs[i, sample.observed[i], 0])
        ends = kinks[:-1], kinks[1:]
        middles = (ends[0] + ends[1]) / 2
        places = np.searchsorted(kinks, row[0]) - 1 + np.array(_AWAY)
        starts[:, i, 0] = middles[np.clip(places, 0, len(middles) - 1)]
    return starts


def _embedded(small: Model, model: Model, params: np.ndarray) -> np.ndarray:
    """Parameters of a nested model as those of the model, the others zero."""
    whole = np.zeros((len(params), len(model.names)))
    whole[:, [model.names.index(name) for name in small.names]] = params
    return whole


def _highest(problem: Problem, model: Model, likelihood: Likelihood, starts: np.ndarray) -> Found:
    """Highest of the ends of climbs from starts (count, N, k), all in one batch."""
    count, n, _ = starts.shape
    lanes = likelihood if count == 1 else likelihood.select(np.tile(np.arange(n), count))
    found = _climb(model, lanes, starts.reshape(count * n, -1), problem.stationary)
    ends = [chosen(found, np.arange(i * n, (i + 1) * n)) for i in range(count)]
    best = ends[0]
    for end in ends[1:]:
        best = better(best, end)
    agreement = agreement_of(np.stack([end.value for end in ends]))
    return best._replace(starts=np.full(n, count), agreement=agreement)


def _merged(found: Found, units: np.ndarray, other: Found) -> Found:
    """Ends with those of some units replaced by better ones, their starts counted together."""
    before = chosen(found, units)
    best = better(before, other)
    values = np.stack([before.value, other.value])
    near = values > values.max(0) - AGREE
    agreement = before.agreement * near[0] + other.agreement * near[1]
    return replaced(
        found, units, best._replace(starts=before.starts + other.starts, agreement=agreement)
    )


def _not_below(
    model: Model, likelihood: Likelihood, found: Found, units: np.ndarray, params: np.ndarray
) -> Found:
    """Climb once more, from nested optima without leaving the stationary region.

    A search that leaves it is brought back to its face elsewhere, and may end lower there.
    """
    part = likelihood.select(units)
    end = _search(model, part, box(model), params[units], stationary=True)
    near = end.params @ persistence_weights(model) > 1 - _NEAR_FACE
    end = _on_face(model, part, end, near & ~end.converged)
    counts = chosen(found, units)
    end = end._replace(starts=counts.starts, agreement=np.ones_like(counts.agreement))
    return replaced(found, units, better(counts, end))


def _climb(model: Model, likelihood: Likelihood, start: np.ndarray, stationary: bool) -> Found:
    """Climb from natural parameters (N, k), on the face of stationarity for units beyond it."""
    found = _search(model, likelihood, box(model), start)
    if not stationary or model.vol.log:
        return found
    return _on_face(model, likelihood, found, found.params @ persistence_weights(model) > 1)


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
    stationary: bool = False,
) -> Found:
    """Climb from natural parameters (N, k), if asked for within the stationary region."""

    def evaluate(values: np.ndarray, which: np.ndarray, exact: bool) -> Evaluation:
        params = coordinates.natural(values)
        at = likelihood.evaluate(params, which, exact)
        at = coordinates.pulled(params, at, exact)
        legal = admissible(model, coordinates, values)
        if stationary:
            legal &= params @ persistence_weights(model) <= 1 + _ROUNDING
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
        params, best.value, best.iterations, best.converged.copy(), at_bound, none - 1, none > 0,
        none + 1, none + 1,
    )  # fmt: skip


def _on_face(model: Model, likelihood: Likelihood, found: Found, beyond: np.ndarray) -> Found:
    """Search again, on the face where the persistence is one, for units beyond it."""
    if not beyond.any():
        return found
    weight, result = persistence_weights(model), found
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
