"""Maximum likelihood of one series after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from tsrnn.linear._estimates import BY_UNIT, Estimates
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


class Fit(NamedTuple):
    """Estimates of S series with their factors and presample values; the axis S is absent for one.

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


class _Optimum(NamedTuple):
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


def fit_vech(
    spec: Specification,
    series: Sequence[np.ndarray],
    rng: np.random.Generator,
    verbose: int,
    names: Sequence[object] | None = None,
) -> Fit:
    """Estimate each of the series (T_i, n); one that cannot be fitted is NaN and says why."""
    seeds = rng.integers(2**32, size=len(series)).tolist()

    def fit_one(i: int) -> Fit:
        data = prepare(spec, series[i])
        check_size(spec, len(data.sample.response))
        optimum = _highest_maximum(spec, data, seeds[i], {}, verbose)
        params, lane = optimum.params, optimum.lane
        converged = bool(lane.converged[0])
        without_errors = fixed(spec, params)
        if at_limit(spec, params, converged):
            without_errors[len(without_errors) - spec.natural.n_dynamics :] = True
        texts = messages(spec, params, converged, optimum.starts, optimum.agreement)
        estimates = replace(
            _estimates_at(spec, data, natural_params(spec, params)),
            iterations=lane.iterations,
            converged=lane.converged,
            fixed=without_errors[None],
            messages=(texts,),
            starts=np.array([optimum.starts]),
            agreement=np.array([optimum.agreement]),
        )
        factors = params * data.units(spec.factors)
        return Fit(_with_beta(spec, estimates, data), factors, data.presample)

    return _series_by_series(range(len(series)) if names is None else names, fit_one, verbose)


def vech_at(
    spec: Specification,
    series: Sequence[np.ndarray],
    params: np.ndarray,
    names: Sequence[object] | None = None,
) -> Fit:
    """Log-likelihood of the series at natural parameters (S, k) in the place of a fit."""

    def evaluate_one(i: int) -> Fit:
        estimated, beta = spec.apart(params[i])
        data = prepare(spec, series[i], beta)
        estimates = _estimates_at(spec, data, estimated / data.units(spec.natural))
        factors = np.full(data.sample.n_mean + spec.factors.size, np.nan)
        return Fit(_with_beta(spec, estimates, data), factors, data.presample)

    return _series_by_series(range(len(series)) if names is None else names, evaluate_one, 0)


def _series_by_series(names: Sequence[object], fit_one: Callable[[int], Fit], verbose: int) -> Fit:
    """Fits of one series each, by number, put together; NaN for those that are refused."""
    n_series = len(names)
    fits: dict[int, Fit] = {}
    reasons: dict[int, str] = {}
    for i in tqdm(range(n_series), "fit", disable=not verbose, leave=False):
        try:
            fits[i] = fit_one(i)
        except ValueError as error:
            reasons[i] = f"{error}."
    if not fits:
        raise ValueError(f"no series could be fitted; {names[0]!r}: {reasons[0]}")
    fitted, parts = np.array(list(fits)), [fit.estimates for fit in fits.values()]
    by_unit: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in BY_UNIT
    }
    texts = tuple(part.messages[0] for part in parts)
    estimates = replace(parts[0], **by_unit, messages=texts).placed(n_series, fitted, reasons)
    arrays = []
    for name in ("factors", "presample"):
        rows = np.array([getattr(fit, name) for fit in fits.values()], dtype=np.float64)
        arrays.append(np.full((n_series, *rows.shape[1:]), np.nan))
        arrays[-1][fitted] = rows
    return Fit(estimates, *arrays)


def _highest_maximum(
    spec: Specification,
    data: Prepared,
    seed: int,
    optima: dict[Specification, _Optimum],
    verbose: int,
) -> _Optimum:
    """Highest maximum from several starts, optima of the nested models among them.

    A search has its own generator of the same seed whether the model is the one wanted or nested
    in it, so that both end at the same optimum. `optima` are those of the models searched so far.
    """
    if spec in optima:
        return optima[spec]
    rng, sample = np.random.default_rng(seed), data.sample
    begin = starts(spec.kind, (spec.p, spec.q), sample, data.coefficients, spec.targeting,
                   spec.n_starts, rng, verbose)  # fmt: skip
    nested = {
        small: _highest_maximum(small, data, seed, optima, verbose)
        for small in nested_specifications(spec)
    }
    embedded = [embedded_factors(small, spec, best.params) for small, best in nested.items()]
    near = [moved_off_zero(spec, sample, params, rng) for params in embedded]
    evaluate, begin = evaluation(spec.factors, sample, spec.stationary), np.vstack([begin, *near])
    bar = f"{len(begin)} starts, {spec.n_params} parameters" if verbose else ""
    tried = maximise(evaluate, begin, tol=_ROUGH, max_iter=_ROUGH_ITER, progress=bar)
    best = int(np.argmax(tried.value))
    if not np.isfinite(tried.value[best]):
        raise ValueError("no starting value has covariances that are positive definite")
    lane = _finished(spec, evaluate, tried.params[best], "Newton" if verbose else "")
    for params, inner in zip(embedded, nested.values(), strict=True):
        if inner.lane.value[0] > lane.value[0]:
            lane = maximise(evaluate, params[None], scoring=0, max_iter=_MAX_ITER)
    lane = lane._replace(iterations=tried.iterations[[best]] + lane.iterations)
    agreement = int(agreement_of(tried.value[:, None])[0])
    optima[spec] = _Optimum(canonical(spec, lane.params[0]), lane, len(tried.value), agreement)
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


def _estimates_at(spec: Specification, data: Prepared, params: np.ndarray) -> Estimates:
    """Estimates of one series, in the user's units, at natural parameters of its sample."""
    structure = spec.natural
    at = derivatives(structure, data.sample, params)
    if at is None:
        raise ValueError("the covariances are not positive definite at these parameters")
    units = data.units(structure)
    squares = np.outer(units, units)
    return Estimates(
        names=spec.own_names,
        params=(params * units)[None],
        loglik=np.array([at.value + data.shift]),
        n_obs=np.array([len(data.sample.response)]),
        gradient=(at.gradient / units)[None],
        hessian=(at.hessian / squares)[None],
        opg=(at.opg / squares)[None],
        information=(at.information / squares)[None],
        iterations=np.array([0]),
        converged=np.array([True]),
        fixed=np.zeros((1, len(params)), dtype=bool),
        messages=(tuple(persistence_messages(spec, params)),),
        starts=np.array([0]),
        agreement=np.array([0]),
    )


def _with_beta(spec: Specification, estimates: Estimates, data: Prepared) -> Estimates:
    """Estimates with the cointegrating vectors, which the likelihood takes as known."""
    return estimates.with_held(spec.relation_names, spec.mean.elements(data.beta)[None])
