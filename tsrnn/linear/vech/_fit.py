"""Maximum likelihood of one series after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from tsrnn.linear._estimates import BY_UNIT, Estimates
from tsrnn.linear._optimise import Evaluate, Optimum, agreement_of, maximise
from tsrnn.linear.vech._canonical import canonical, fixed, natural, ranks
from tsrnn.linear.vech._evaluate import derivatives, evaluation
from tsrnn.linear.vech._messages import at_limit, messages, of_persistence
from tsrnn.linear.vech._nested import embedded, left_zero, nested_specifications
from tsrnn.linear.vech._sample import Prepared, check_size, prepare
from tsrnn.linear.vech._specification import Specification
from tsrnn.linear.vech._start import starts

_ROUGH, _ROUGH_ITER = 1e-4, 100  # how far every start is followed
_MAX_ITER = 300


class Fit(NamedTuple):
    """Estimates of S series, and what else their models need.

    Attributes
    ----------
    estimates : Estimates
    factors : array of shape (S, kf)
        The coordinates of estimation, the mean's coefficients in front.
    presample : array of shape (S, N)
    """

    estimates: Estimates
    factors: np.ndarray
    presample: np.ndarray


class _One(NamedTuple):
    estimates: Estimates
    factors: np.ndarray
    presample: np.ndarray


def fit_series(
    spec: Specification,
    series: Sequence[np.ndarray],
    rng: np.random.Generator,
    verbose: int,
    names: Sequence[object] | None = None,
) -> Fit:
    """Estimate each of the series (T_i, n); what cannot be fitted is NaN and says why."""
    names = range(len(series)) if names is None else names
    seeds = rng.integers(2**32, size=len(series)).tolist()
    return _each(names, lambda i: _fit_one(spec, series[i], seeds[i], verbose), verbose)


def at_given(
    spec: Specification,
    series: Sequence[np.ndarray],
    params: np.ndarray,
    names: Sequence[object] | None = None,
) -> Fit:
    """The same at natural parameters (S, k) that are given."""
    names = range(len(series)) if names is None else names
    return _each(names, lambda i: _one_at(spec, series[i], params[i]), 0)


def _each(names: Sequence[object], one: Callable[[int], _One], verbose: int) -> Fit:
    n_series = len(names)
    done: dict[int, _One] = {}
    reasons: dict[int, str] = {}
    for i in tqdm(range(n_series), "fit", disable=not verbose, leave=False):
        try:
            done[i] = one(i)
        except ValueError as error:
            reasons[i] = f"{error}."
    if not done:
        raise ValueError(f"no series could be fitted; {names[0]!r}: {reasons[0]}")
    which = np.array(list(done))
    parts = list(done.values())
    estimates = _stacked([part.estimates for part in parts]).placed(n_series, which, reasons)

    def placed(name: str) -> np.ndarray:
        rows = np.array([getattr(part, name) for part in parts], dtype=np.float64)
        whole = np.full((n_series, *rows.shape[1:]), np.nan)
        whole[which] = rows
        return whole

    return Fit(estimates, placed("factors"), placed("presample"))


class _Ends(NamedTuple):
    """Where the searches of one series ended.

    Attributes
    ----------
    params : array of shape (k,)
        Factors in one choice of signs.
    optimum : Optimum
        Of one lane.
    starts, agreement : int
        Starting values, and how many of them came close to the highest log-likelihood.
    """

    params: np.ndarray
    optimum: Optimum
    starts: int
    agreement: int


def _fit_one(spec: Specification, values: np.ndarray, seed: int, verbose: int) -> _One:
    data = prepare(spec, values)
    check_size(spec, len(data.sample.response))
    ends = _search(spec, data, seed, {}, verbose)
    params, found = ends.params, ends.optimum
    converged = bool(found.converged[0])
    held = fixed(spec, params)
    if at_limit(spec, params, converged):
        held[len(held) - spec.natural.n_dynamics :] = True
    estimates = replace(
        _estimates(spec, data, natural(spec, params)),
        iterations=found.iterations,
        converged=found.converged,
        fixed=held[None],
        messages=(messages(spec, params, converged, ends.starts, ends.agreement),),
        starts=np.array([ends.starts]),
        agreement=np.array([ends.agreement]),
    )
    units = data.units(spec.factors)
    return _One(_with_beta(spec, estimates, data), params * units, data.presample)


def _search(
    spec: Specification,
    data: Prepared,
    seed: int,
    done: dict[Specification, _Ends],
    verbose: int,
) -> _Ends:
    """Highest maximum from several starts, optima of the nested models among them.

    A search has its own generator of the same seed whether the model is the one wanted or nested
    in it, so that both end at the same optimum.
    """
    if spec in done:
        return done[spec]
    rng, sample = np.random.default_rng(seed), data.sample
    begin = starts(spec.kind, (spec.p, spec.q), sample, data.coefficients, spec.targeting,
                   spec.n_starts, rng, verbose)  # fmt: skip
    small = nested_specifications(spec)
    nested = {inner: _search(inner, data, seed, done, verbose) for inner in small}
    inner = [embedded(small, spec, ends.params) for small, ends in nested.items()]
    near = [left_zero(spec, sample, params, rng) for params in inner]
    evaluate, begin = evaluation(spec.factors, sample, spec.stationary), np.vstack([begin, *near])
    bar = f"{len(begin)} starts, {spec.n_params} parameters" if verbose else ""
    tried = maximise(evaluate, begin, tol=_ROUGH, max_iter=_ROUGH_ITER, progress=bar)
    best = int(np.argmax(tried.value))
    if not np.isfinite(tried.value[best]):
        raise ValueError("no starting value has covariances that are positive definite")
    found = _finished(spec, evaluate, tried.params[best], "Newton" if verbose else "")
    for params, ends in zip(inner, nested.values(), strict=True):
        if ends.optimum.value[0] > found.value[0]:
            found = maximise(evaluate, params[None], scoring=0, max_iter=_MAX_ITER)
    found = found._replace(iterations=tried.iterations[[best]] + found.iterations)
    agreement = int(agreement_of(tried.value[:, None])[0])
    params = canonical(spec, found.params[0])
    done[spec] = _Ends(params, found, len(tried.value), agreement)
    return done[spec]


def _finished(
    spec: Specification, evaluate: Evaluate, params: np.ndarray, progress: str
) -> Optimum:
    """The optimum near the best of the starts."""
    if any(ranks(spec, canonical(spec, params))[: spec.p]):
        found = maximise(evaluate, params[None], scoring=0, max_iter=_MAX_ITER, progress=progress)
        if any(ranks(spec, canonical(spec, found.params[0]))[: spec.p]):
            return found
        params = found.params[0]
    return _constant(spec, evaluate, params)


def _constant(spec: Specification, evaluate: Evaluate, params: np.ndarray) -> Optimum:
    """The best constant covariance: without Theta, Phi is not identified, and is zero."""
    free = np.ones(len(params), dtype=bool)
    free[len(params) - spec.factors.n_dynamics :] = False
    start = np.where(free, params, 0.0)[None]
    bound = np.where(free, np.inf, 0.0)
    return maximise(evaluate, start, lower=-bound, upper=bound, max_iter=_MAX_ITER)


def _one_at(spec: Specification, values: np.ndarray, params: np.ndarray) -> _One:
    own, beta = spec.apart(params)
    data = prepare(spec, values, beta)
    estimates = _estimates(spec, data, own / data.units(spec.natural))
    width = data.sample.n_mean + spec.factors.size
    none = np.full(width, np.nan)
    return _One(_with_beta(spec, estimates, data), none, data.presample)


def _with_beta(spec: Specification, estimates: Estimates, data: Prepared) -> Estimates:
    """Estimates with the cointegrating vectors, which the likelihood takes as known."""
    return estimates.with_held(spec.relation_names, spec.mean.elements(data.beta)[None])


def _estimates(spec: Specification, data: Prepared, params: np.ndarray) -> Estimates:
    """Estimates of one unit, of natural parameters of its sample, in the user's units."""
    structure = spec.natural
    found = derivatives(structure, data.sample, params)
    if found is None:
        raise ValueError("the covariances are not positive definite at these parameters")
    units = data.units(structure)
    squares = np.outer(units, units)
    return Estimates(
        names=spec.own_names,
        params=(params * units)[None],
        loglik=np.array([found.value + data.shift]),
        n_obs=np.array([len(data.sample.response)]),
        gradient=(found.gradient / units)[None],
        hessian=(found.hessian / squares)[None],
        opg=(found.opg / squares)[None],
        information=(found.information / squares)[None],
        iterations=np.array([0]),
        converged=np.array([True]),
        fixed=np.zeros((1, len(params)), dtype=bool),
        messages=(tuple(of_persistence(spec, params)),),
        starts=np.array([0]),
        agreement=np.array([0]),
    )


def _stacked(parts: list[Estimates]) -> Estimates:
    """Estimates of one unit each as those of many."""
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in BY_UNIT}
    messages_ = tuple(part.messages[0] for part in parts)
    return replace(parts[0], **arrays, messages=messages_)  # type: ignore[arg-type]
