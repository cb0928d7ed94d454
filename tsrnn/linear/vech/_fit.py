"""Maximum likelihood of one series after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tsrnn.contract import seed_of
from tsrnn.data import Panel
from tsrnn.linear._estimates import Derivatives, Estimates
from tsrnn.linear._family import Arrays, CannotFitError
from tsrnn.linear._optimise import Evaluate, Optimum, agreement_of, maximise
from tsrnn.linear.vech._inference import (
    at_limit,
    canonical,
    fixed,
    messages,
    natural_params,
    persistence_messages,
    ranks,
)
from tsrnn.linear.vech._likelihood import derivatives, evaluation
from tsrnn.linear.vech._prepare import Prepared, check_size, prepare
from tsrnn.linear.vech._specification import Specification, nested_specifications
from tsrnn.linear.vech._start import embedded_factors, moved_off_zero, starts

_ROUGH, _ROUGH_ITER = 1e-4, 100  # how far every start is followed; the best of them goes on
_MAX_ITER = 300


class PreparedSeries(NamedTuple):
    """A series made ready, and the seed of its starting values.

    Attributes
    ----------
    units : integer array of shape (1,)
    prepared : Prepared
    seed : int
    """

    units: np.ndarray
    prepared: Prepared
    seed: int


class Search(NamedTuple):
    """Highest maximum of one series.

    Attributes
    ----------
    params : array of shape (k,)
        Factors in one choice of signs.
    lane : Optimum
        Of one lane.
    starts, agreement : int
        Starting values, and how many of them came close to the highest log-likelihood.
    """

    params: np.ndarray
    lane: Optimum
    starts: int
    agreement: int


def samples(
    spec: Specification, panel: Panel, given: np.ndarray | None, random_state: Any
) -> Iterator[tuple[PreparedSeries | None, dict[int, str]]]:
    """Samples of one series each, and reasons not to fit the others.

    Raises
    ------
    ValueError
        If no series can be fitted.
    """
    reasons: dict[int, str] = {}
    seeds = [0] * panel.n_series
    if given is None:  # drawn before the first search, so that no series depends on another
        rng = np.random.default_rng(seed_of(random_state))
        seeds = rng.integers(2**32, size=panel.n_series).tolist()
    for i, seed in enumerate(seeds):
        try:
            beta = None if given is None else spec.apart(given[i])[1]
            prepared = prepare(spec, panel.series(i), beta)
            if given is None:
                check_size(spec, len(prepared.sample.response))
        except ValueError as error:
            reasons[i] = f"{error}."
            yield None, {i: reasons[i]}
        else:
            yield PreparedSeries(np.array([i]), prepared, seed), {}
    # Refused here, as a Hessian of n^8 / 4 elements is not to be filled with NaN.
    if len(reasons) == panel.n_series:
        raise ValueError(f"no series could be fitted; {panel.ids.tolist()[0]!r}: {reasons[0]}")


def highest_maximum(
    spec: Specification,
    data: Prepared,
    seed: int,
    optima: dict[Specification, Search],
    verbose: int,
) -> Search:
    """Highest maximum of one series, from several starts, optima of the nested models among them.

    A search has its own generator of the same seed whether the model is the one wanted or nested
    in it, so that both end at the same optimum. `optima` are those of the models searched so far.
    """
    if spec in optima:
        return optima[spec]
    rng, sample = np.random.default_rng(seed), data.sample
    begin = starts(spec.kind, (spec.p, spec.q), sample, data.coefficients, spec.targeting,
                   spec.n_starts, rng, verbose)  # fmt: skip
    nested = {
        small: highest_maximum(small, data, seed, optima, verbose)
        for small in nested_specifications(spec)
    }
    embedded = [embedded_factors(small, spec, best.params) for small, best in nested.items()]
    near = [moved_off_zero(spec, sample, params, rng) for params in embedded]
    evaluate, begin = evaluation(spec.factors, sample, spec.stationary), np.vstack([begin, *near])
    bar = f"{len(begin)} starts, {spec.n_params} parameters" if verbose else ""
    tried = maximise(evaluate, begin, tol=_ROUGH, max_iter=_ROUGH_ITER, progress=bar)
    best = int(np.argmax(tried.value))
    if not np.isfinite(tried.value[best]):
        raise CannotFitError("no starting value has covariances that are positive definite")
    lane = _finished(spec, evaluate, tried.params[best], "Newton" if verbose else "")
    for params, inner in zip(embedded, nested.values(), strict=True):
        if inner.lane.value[0] > lane.value[0]:
            lane = maximise(evaluate, params[None], scoring=0, max_iter=_MAX_ITER)
    lane = lane._replace(iterations=tried.iterations[[best]] + lane.iterations)
    agreement = int(agreement_of(tried.value[:, None])[0])
    optima[spec] = Search(canonical(spec, lane.params[0]), lane, len(tried.value), agreement)
    return optima[spec]


def _finished(
    spec: Specification, evaluate: Evaluate, params: np.ndarray, progress: str
) -> Optimum:
    """Optimum near the best of the starts, by Newton's method."""
    if any(ranks(spec, canonical(spec, params))[: spec.p]):
        best = maximise(evaluate, params[None], scoring=0, max_iter=_MAX_ITER, progress=progress)
        params = best.params[0]
        if any(ranks(spec, canonical(spec, params))[: spec.p]):
            return best
    # The best constant covariance: without Theta, Phi is not identified, and is zero.
    free = np.ones(len(params), dtype=bool)
    free[len(params) - spec.factors.n_dynamics :] = False
    start = np.where(free, params, 0.0)[None]
    bound = np.where(free, np.inf, 0.0)
    return maximise(evaluate, start, lower=-bound, upper=bound, max_iter=_MAX_ITER)


def estimates_of(
    spec: Specification, sample: PreparedSeries, optimum: Search | np.ndarray
) -> tuple[Estimates, Arrays]:
    """Estimates in the units of the data at the end of a search, or at natural parameters (k,).

    With them come the factors, the coordinates of estimation, and the presample values.
    """
    data = sample.prepared
    searched: dict[str, Any] = {}
    if isinstance(optimum, Search):
        factors, lane = optimum.params, optimum.lane
        params, converged = natural_params(spec, factors), bool(lane.converged[0])
        without_errors = fixed(spec, factors)
        if at_limit(spec, factors, converged):
            without_errors[len(without_errors) - spec.natural.n_dynamics :] = True
        texts = messages(spec, factors, converged, optimum.starts, optimum.agreement)
        searched = {
            "iterations": lane.iterations,
            "converged": lane.converged,
            "fixed": without_errors[None],
            "starts": np.array([optimum.starts]),
            "agreement": np.array([optimum.agreement]),
        }
        factors = factors * data.units(spec.factors)
    else:
        params, texts = optimum, tuple(persistence_messages(spec, optimum))
        factors = np.full(data.sample.n_mean + spec.factors.size, np.nan)
    at = derivatives(spec.natural, data.sample, params)
    if at is None:
        raise CannotFitError("the covariances are not positive definite at these parameters")
    units = data.units(spec.natural)
    squares = np.outer(units, units)
    at = Derivatives(
        at.value + data.shift, at.gradient / units, at.hessian / squares, at.opg / squares,
        at.information / squares,
    )  # fmt: skip
    estimates = Estimates.of_unit(
        spec.own_names, params * units, len(data.sample.response), at, messages=(texts,), **searched
    )
    # The likelihood takes the cointegrating vectors as known.
    estimates = estimates.with_held(spec.relation_names, spec.mean.elements(data.beta)[None])
    return estimates, {"factors": factors[None], "presample": data.presample[None]}
