"""Maximum likelihood of one series after the other, from a scalar model to the structure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

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
from tsrnn.linear.vech._prepare import Prepared, Sample, check_size, prepare
from tsrnn.linear.vech._specification import Specification, nested_specifications
from tsrnn.linear.vech._structure import Structure, factors, unvech

_ROUGH, _ROUGH_ITER = 1e-4, 100  # how far every start is followed; the best of them goes on
_MAX_ITER = 300
_SCALAR_START = 0.05, 0.90  # sums of Theta and of Phi, as of daily returns
_NOISE = 0.15, 0.05  # size of perturbations of the factors of Theta, of Phi
_FAINT = 0.5  # share of it in the first start, where elements must only leave zero
_OFF_ZERO = 0.02  # size of what is put in place of zeros, from which no gradient leads away
_MOST = 0.98  # share of the covariance that Theta and Phi may take at a start
_SIMPLE = 1e-2  # decrement at which a simpler model is good enough to start from


class PreparedSeries(NamedTuple):
    """A series made ready, and the seed of its starting values."""

    units: np.ndarray  # (1,) its number
    prepared: Prepared
    seed: int


class Search(NamedTuple):
    """Highest maximum of one series."""

    params: np.ndarray  # (k,) factors in one choice of signs
    lane: Optimum  # of one lane
    starts: int  # starting values tried
    agreement: int  # how many of them came close to the highest log-likelihood


def samples(
    spec: Specification, panel: Panel, given: np.ndarray | None, random_state: Any
) -> Iterator[tuple[PreparedSeries | None, dict[int, str]]]:
    """Samples of one series each, and reasons not to fit the others."""
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
    begin = starts(spec, data, rng, verbose)
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
    # No model is lower than one nested in it: the search goes on from there if it ended lower.
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
        estimated, lane = optimum.params, optimum.lane
        params, converged = natural_params(spec, estimated), bool(lane.converged[0])
        without_errors = fixed(spec, estimated)
        if at_limit(spec, estimated, converged):
            without_errors[len(without_errors) - spec.natural.n_dynamics :] = True
        texts = messages(spec, estimated, converged, optimum.starts, optimum.agreement)
        searched = {
            "iterations": lane.iterations,
            "converged": lane.converged,
            "fixed": without_errors[None],
            "starts": np.array([optimum.starts]),
            "agreement": np.array([optimum.agreement]),
        }
        estimated = estimated * data.units(spec.factors)
    else:
        params, texts = optimum, tuple(persistence_messages(spec, optimum))
        estimated = np.full(data.sample.n_mean + spec.factors.size, np.nan)
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
    return estimates, {"factors": estimated[None], "presample": data.presample[None]}


def starts(
    spec: Specification, data: Prepared, rng: np.random.Generator, verbose: int
) -> np.ndarray:
    """Starting values (n_starts, k) of the factors, the mean's coefficients (n, r) in front.

    The first comes from a diagonal BEKK; the others are that one perturbed.
    """
    kind, n, structure, sample = spec.kind, spec.n, spec.factors, data.sample
    errors = sample.response - sample.regressors @ data.coefficients.T
    without_mean = Sample(errors, sample.regressors[:, :0], sample.presample)
    simple = _diagonal_bekk(spec, without_mean, verbose)
    constants = 0 if spec.targeting else structure.blocks[0].size
    base, sizes = np.zeros(structure.size), np.zeros(structure.size)
    base[:constants] = simple[:constants]
    diagonals = simple[constants:].reshape(-1, n)
    # Places of the diagonal of the first A among the parameters of a lag.
    places = np.arange(n) * (1 if kind == "diagonal" else n + 1)
    places = np.zeros(1, dtype=np.int64) if kind == "scalar" else places
    begin = constants
    for lag, block in enumerate(structure.blocks[not spec.targeting :]):
        diagonal = diagonals[lag]
        base[begin + places] = diagonal.mean() if kind == "scalar" else diagonal
        sizes[begin : begin + block.size] = _NOISE[lag >= spec.p] / np.sqrt(n)
        begin += block.size
    noise = rng.standard_normal((spec.n_starts, structure.size)) * sizes
    # "full" and "diagonal" must leave the zeros of a diagonal BEKK, where no gradient leads away.
    noise[0] *= 0.0 if kind in ("scalar", "bekk") else _FAINT * (base == 0)
    begins = base + noise
    for row in begins[0 if spec.targeting or noise[0].any() else 1 :]:
        shrink(structure, sample, row[constants:])
    return np.hstack([np.tile(data.coefficients.ravel(), (spec.n_starts, 1)), begins])


def _diagonal_bekk(spec: Specification, sample: Sample, verbose: int) -> np.ndarray:
    """Parameters (k,) of a diagonal BEKK, from those of a scalar model with target."""
    n, p, q = spec.n, spec.p, spec.q
    scalar = factors("scalar", n, p, q, True)
    theta, phi = _SCALAR_START
    start = np.sqrt([theta / p] * p + [phi / max(q, 1)] * q)
    evaluate = evaluation(scalar, sample, stationary=True)
    bar = "scalar start" if verbose else ""
    roots = np.abs(maximise(evaluate, start[None], tol=_SIMPLE, progress=bar).params[0])
    parts = [np.repeat(roots, n)]
    if not spec.targeting:
        rest = max(1 - (roots**2).sum(), 0.01)  # the constant's share, so that CC' is definite
        parts.insert(0, np.linalg.cholesky(unvech(sample.presample) * rest)[np.tril_indices(n)])
    evaluate = evaluation(
        factors("diagonal bekk", n, p, q, spec.targeting), sample, stationary=False
    )
    bar = "diagonal BEKK start" if verbose else ""
    return maximise(evaluate, np.concatenate(parts)[None], tol=_SIMPLE, progress=bar).params[0]


def shrink(structure: Structure, sample: Sample, params: np.ndarray) -> None:
    """Make Theta and Phi smaller, in place, until they leave something to the constant."""
    taken, begin, s = [], 0, sample.presample
    for block in (*structure.theta, *structure.phi):
        taken.append(block.value(params[begin : begin + block.size]) @ s)
        begin += block.size
    share = scipy.linalg.eigh(unvech(np.sum(taken, 0)), unvech(s), eigvals_only=True)[-1]
    params *= min(1.0, np.sqrt(_MOST / share))


def embedded_factors(small: Specification, spec: Specification, params: np.ndarray) -> np.ndarray:
    """Factors (k,) of the larger model from those of one that is nested in it."""
    blocks = small.factors.blocks
    ends = np.cumsum([len(small.mean_names), *(block.size for block in blocks)])[:-1]
    mean, *parts = np.split(params, ends)
    constant = [] if small.targeting else [parts.pop(0)]
    place = _places_in(small.kind, spec.kind, spec.n)
    (block,) = set(spec.factors.theta)
    lags = np.zeros((spec.p + spec.q, block.size))
    for i, part in enumerate(parts):
        lag = i if i < small.p else i - small.p + spec.p
        lags[lag, place] = part
    return np.concatenate([mean, *constant, lags.ravel()])


def _places_in(small: str, kind: str, n: int) -> np.ndarray:
    """Places of the elements of a factor in that of a larger structure; a scalar has several."""
    if small == kind:
        return np.arange(_factor_elements(kind, n)[0].size)
    if small == "scalar":
        return np.arange(n) * (n + 1) if kind == "bekk" else np.arange(n)
    if small == "bekk":
        return np.arange(n * n)  # the first row of the factor is a whole BEKK term
    whole = {pair: i for i, pair in enumerate(zip(*_factor_elements(kind, n), strict=True))}
    pairs = zip(*_factor_elements(small, n), strict=True)
    return np.array([whole[row, column * (n + 1)] for row, column in pairs])


def _factor_elements(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the elements of a lag's factor."""
    if kind in ("full", "diagonal"):
        return np.triu_indices(n * n if kind == "full" else n)
    columns = np.arange(1 if kind == "scalar" else n * n)
    return np.zeros_like(columns), columns


def moved_off_zero(
    spec: Specification, sample: Sample, params: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The same factors with small numbers in place of zeros of Theta and Phi."""
    moved, structure = params.copy(), spec.factors
    constants = 0 if structure.intercept is None else structure.intercept.size
    lags = moved[len(spec.mean_names) + constants :]
    lags[lags == 0] = _OFF_ZERO * rng.standard_normal((lags == 0).sum())
    shrink(structure, sample, lags)
    return moved
