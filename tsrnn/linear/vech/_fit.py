"""Maximum likelihood series by series, from simple structures to the requested one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import expm

from tsrnn.data import Panel, quote_series
from tsrnn.linear._estimates import Derivatives, Estimates
from tsrnn.linear._family import Arrays, CannotFitError
from tsrnn.linear._optimise import Evaluate, GiveUp, Optimum, agreement_of, maximise
from tsrnn.linear.garch._fit import fit_garch
from tsrnn.linear.garch._specification import univariate_model
from tsrnn.linear.vech._inference import (
    at_limit,
    canonical,
    fixed,
    messages,
    natural_params,
    persistence_messages,
    ranks,
)
from tsrnn.linear.vech._likelihood import derivatives, evaluation, logliks
from tsrnn.linear.vech._prepare import Prepared, Sample, check_size, prepare
from tsrnn.linear.vech._specification import Specification, nested_specifications
from tsrnn.linear.vech._structure import Structure, unvech

_ROUGH, _ROUGH_ITER = 1e-4, 100  # tolerance and iterations of every start; the best one continues
_MAX_ITER = 300
_BEHIND = 5  # a start this many decrements (ten predicted rises) below the highest is given up
_NOT_FAR, _SECOND_CLIMBS = 5.0, 4  # so many starts within this log-likelihood climb again
_SUMS = 0.05, 0.90  # sums of Theta and of Phi, typical of daily returns
_SLOW, _FAST = 0.98, 0.80  # decays of candidates in which one direction forgets faster
_ANGLE = 0.15  # by which G of a candidate slowly rotates the covariance at each step
_ANGLES = np.linspace(-1.6, 1.6, 41)  # grid of faster rotations
# Angles cover half a circle, as A and -A, or G and -G, are one model. The grid of G avoids zero,
# which other candidates have.
_ANGLES_OF_A, _ANGLES_OF_G = (
    np.pi * ((np.arange(count) + shift) / count - 0.5) for count, shift in ((4, 0.0), (32, 0.5))
)
_PEAKS = 16  # highest peaks of the likelihood over both angles that are candidates
_SMALL = 0.02  # size of values that replace zeros, where the gradient vanishes
_MOST = 0.98  # largest share of Theta and Phi in the covariance at a start


class PreparedSeries(NamedTuple):
    """A prepared series."""

    units: np.ndarray  # (1,) its number
    prepared: Prepared


class Search(NamedTuple):
    """Highest maximum of one series."""

    params: np.ndarray  # (k,) factors, with canonical signs
    lane: Optimum  # of one lane
    starts: int  # number of starts
    agreement: int  # number of starts that came close to the highest log-likelihood


def samples(
    spec: Specification, panel: Panel, given: np.ndarray | None
) -> Iterator[tuple[PreparedSeries | None, dict[int, str]]]:
    """Yield samples of one series each, and reasons why others cannot be fitted."""
    reasons: dict[int, str] = {}
    for i in range(panel.n_series):
        try:
            beta = None if given is None else spec.apart(given[i])[1]
            prepared = prepare(spec, panel.series(i), beta)
            if given is None:
                check_size(spec, len(prepared.sample.response))
        except ValueError as error:
            reasons[i] = f"{error}."
            yield None, {i: reasons[i]}
        else:
            yield PreparedSeries(np.array([i]), prepared), {}
    # Refuse here: a Hessian of NaN has n^8 / 4 elements, too many for memory.
    if len(reasons) == panel.n_series:
        where = "" if panel.layout.id_col is None else f"{quote_series(panel.ids[:1])}: "
        raise ValueError(f"no series could be fitted; {where}{reasons[0]}")


def highest_maximum(
    spec: Specification, data: Prepared, optima: dict[Specification, Search], verbose: int
) -> Search:
    """Highest maximum of one series from several starts, which include optima of nested models.

    Starts are deterministic functions of the data. `optima` caches the models searched so far.
    """
    if spec in optima:
        return optima[spec]
    sample = data.sample
    nested = {
        small: highest_maximum(small, data, optima, verbose)
        for small in nested_specifications(spec)
    }
    embedded = [embedded_factors(small, spec, best.params) for small, best in nested.items()]
    near = [moved_off_zero(spec, sample, params) for params in embedded]
    evaluate, begin = evaluation(spec.factors, sample, spec.stationary), candidates(spec, data)
    likely = np.argsort(-logliks(spec.factors, sample, begin), kind="stable")
    begin = np.vstack([begin[likely[: spec.n_starts]], *near])
    bar = f"{len(begin)} starts, {spec.n_params} parameters" if verbose else ""
    tried = maximise(
        evaluate, begin, tol=_ROUGH, max_iter=_ROUGH_ITER, give_up=_left_behind(), progress=bar
    )
    # Starts that end close behind may have been given up too soon; climbing again costs little.
    behind = np.flatnonzero(~tried.converged & (tried.value > tried.value.max() - _NOT_FAR))
    late = behind[np.argsort(-tried.value[behind], kind="stable")][:_SECOND_CLIMBS]
    if len(late):
        longer = maximise(evaluate, tried.params[late], tol=_ROUGH, max_iter=_ROUGH_ITER)
        for whole, part in zip(tried, longer, strict=True):
            whole[late] = part
    best = int(np.argmax(tried.value))
    if not np.isfinite(tried.value[best]):
        raise CannotFitError("no starting value has covariances that are positive definite")
    lane = _finished(spec, evaluate, tried.params[best], "Newton" if verbose else "")
    # No model is lower than a nested one: if the search ended lower, continue from there.
    for params, inner in zip(embedded, nested.values(), strict=True):
        if inner.lane.value[0] > lane.value[0]:
            lane = maximise(evaluate, params[None], scoring=0, max_iter=_MAX_ITER)
    lane = lane._replace(iterations=tried.iterations[[best]] + lane.iterations)
    agreement = int(agreement_of(tried.value[:, None])[0])
    optima[spec] = Search(canonical(spec, lane.params[0]), lane, len(tried.value), agreement)
    return optima[spec]


def _left_behind() -> GiveUp:
    """Rule that gives up starts too far below the highest one."""
    highest = -np.inf

    def give_up(starts: np.ndarray, value: np.ndarray, decrement: np.ndarray) -> np.ndarray:
        nonlocal highest
        highest = max(highest, value.max())
        return np.asarray(value + _BEHIND * decrement < highest)

    return give_up


def _finished(
    spec: Specification, evaluate: Evaluate, params: np.ndarray, progress: str
) -> Optimum:
    """Converge from the best start by Newton's method."""
    if any(ranks(spec, canonical(spec, params))[: spec.p]):
        best = maximise(evaluate, params[None], scoring=0, max_iter=_MAX_ITER, progress=progress)
        params = best.params[0]
        if any(ranks(spec, canonical(spec, params))[: spec.p]):
            return best
    # Theta went to zero, and Phi is not identified: take the best constant covariance, Phi = 0.
    free = np.ones(len(params), dtype=bool)
    free[len(params) - spec.factors.n_dynamics :] = False
    start = np.where(free, params, 0.0)[None]
    bound = np.where(free, np.inf, 0.0)
    return maximise(evaluate, start, lower=-bound, upper=bound, max_iter=_MAX_ITER)


def estimates_of(
    spec: Specification, sample: PreparedSeries, optimum: Search | np.ndarray
) -> tuple[Estimates, Arrays]:
    """Estimates on the scale of the data, of a search or at given natural parameters (k,).

    The constants are the factors, which are the coordinates of estimation, and presample values.
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


def candidates(spec: Specification, data: Prepared) -> np.ndarray:
    r"""Widely spaced starting values (c, k): mean by least squares, then factors.

    They are BEKK models, :math:`H_t = C C' + A' e e' A + G' H G`: A and G multiples of the
    identity; a direction with faster decay; shocks reflected in a direction; G a rotation; A and G
    rotations or reflections at the peaks of the likelihood over both angles; variances of
    univariate GARCH models. C C' is the rest of the covariance, or has rank one, as at many of the
    highest maxima.
    """
    kind, n, sample = spec.kind, spec.n, data.sample
    theta, phi = (np.sqrt(total) for total in _SUMS)
    eye, whole = np.eye(n), kind in ("bekk", "full")
    if kind == "scalar":
        dynamics = [(theta * eye, phi * eye), (2 * theta * eye, phi / 2 * eye)]
        return np.array([row for A, G in dynamics for row in _factors_of(spec, data, A, G)])
    # A and G act in coordinates with unit covariance. Its root is symmetric, so that candidates do
    # not depend on the order of the variables.
    values, vectors = np.linalg.eigh(unvech(sample.presample))
    root, inverse = (vectors * values**power @ vectors.T for power in (0.5, -0.5))
    if not whole:  # keep diagonal matrices diagonal
        root = inverse = eye
    couples = [(eye[i], eye[j]) for i in range(n) for j in range(i)] if whole else []
    lines = [*eye, *((u + sign * v) / np.sqrt(2) for u, v in couples for sign in (1, -1))]
    dynamics = [(theta * eye, phi * eye), (2 * theta * eye, phi / 2 * eye)]
    dynamics += [(theta * eye, _SLOW * eye - (_SLOW - _FAST) * np.outer(u, u)) for u in lines]
    # Two orthogonal lines have the same reflection, up to sign, with two variables.
    mirrored = lines[::2] if n == 2 and whole else lines
    dynamics += [(theta * (eye - 2 * np.outer(u, u)), phi * eye) for u in mirrored]
    rotations = [np.outer(u, v) - np.outer(v, u) for u, v in couples]  # generators
    dynamics += [
        (theta * eye, phi * expm(sign * _ANGLE * generator))
        for generator in rotations
        for sign in (1, -1)
    ]
    rows = []
    for A, G in dynamics:
        rows += _factors_of(spec, data, inverse @ A @ root, inverse @ G @ root)
    # A faster cycle of the covariance shows as a peak of the likelihood over angles, as a frequency
    # shows in a periodogram.
    for generator in rotations:
        rotated = [
            _factors_of(spec, data, theta * eye, inverse @ (phi * expm(angle * generator)) @ root)
            for angle in _ANGLES
        ]
        profile = logliks(spec.factors, sample, np.array([row[0] for row in rotated]))
        rise = np.diff(profile)
        peaks = 1 + np.flatnonzero((rise[:-1] > 0) & (rise[1:] <= 0))
        fast = peaks[np.abs(_ANGLES[peaks]) > 2 * _ANGLE]
        rows += [row for peak in fast for row in rotated[peak]]
    if kind == "bekk" and spec.n_starts > 1:  # a full model starts at the optimum of its BEKK
        rows += _rotated_or_reflected(spec, data, couples, (theta * inverse, phi * inverse), root)
    # Univariate GARCH models have diagonal A and G; their covariances follow the same recursion.
    errors = sample.response - sample.regressors @ data.coefficients.T
    model = univariate_model("garch", 1, 1, constant=False, padded=False)
    lengths = np.full(n, len(errors))
    fit = fit_garch(model, np.ascontiguousarray(errors.T), lengths, "sample", stationary=True)
    alpha, beta = fit.estimates.params.T[1:]
    # The gradient vanishes at an alpha of zero.
    A, G = np.diag(np.sqrt(np.maximum(alpha, _SMALL**2))), np.diag(np.sqrt(beta))
    return np.array([*rows, *_factors_of(spec, data, A, G)])


def _rotated_or_reflected(
    spec: Specification,
    data: Prepared,
    planes: list[tuple[np.ndarray, np.ndarray]],
    left: tuple[np.ndarray, np.ndarray],
    right: np.ndarray,
) -> list[np.ndarray]:
    """Candidates whose A and G rotate or reflect a plane, at the highest peaks of the likelihood.

    A and G are rotations or reflections multiplied by `left` (for A, for G) and `right`. Their
    angles vary independently: the likelihood has separate maxima for many pairs.
    """
    grid = []
    for u, v in planes:
        turn, mirror = np.outer(u, v) - np.outer(v, u), np.eye(spec.n) - 2 * np.outer(v, v)
        A, G = (
            [part @ expm(angle * turn) @ side @ right for side in (np.eye(spec.n), mirror)
             for angle in angles]
            for part, angles in zip(left, (_ANGLES_OF_A, _ANGLES_OF_G), strict=True)
        )  # fmt: skip
        grid += [_factors_of(spec, data, a, g)[-1] for g in G for a in A]
    sides = len(planes), 2, len(_ANGLES_OF_G), 2, len(_ANGLES_OF_A)
    height = logliks(spec.factors, data.sample, np.array(grid)).reshape(sides)
    peak = np.isfinite(height)
    for axis in (2, 4):  # angles, which are periodic
        for shift in (1, -1):
            peak &= height >= np.roll(height, shift, axis)
    peak[:, 0, :, 0, _ANGLES_OF_A == 0] = False  # rotations of G alone are candidates already
    places = np.flatnonzero(peak)
    highest = places[np.argsort(-height.ravel()[places], kind="stable")][:_PEAKS]
    return [grid[place] for place in highest]


def _factors_of(
    spec: Specification, data: Prepared, A: np.ndarray, G: np.ndarray
) -> list[np.ndarray]:
    """Factors (k,) of a BEKK twice: C C' is the rest of the covariance, or has rank one."""
    n, p, q = spec.n, spec.p, spec.q
    (block,) = set(spec.factors.theta)
    step = {"scalar": n * n, "diagonal": n + 1, "diagonal bekk": n + 1}.get(spec.kind, 1)
    first = A.ravel()[::step], G.ravel()[::step]
    lags = np.zeros((p + q, block.size))
    lags[:p, : len(first[0])] = first[0] / np.sqrt(p)
    lags[p:, : len(first[1])] = first[1] / np.sqrt(max(q, 1))
    dynamic = lags.ravel()
    if spec.kind in ("full", "diagonal"):
        _leave_zero(dynamic)
    rest = _make_room(spec.factors, data.sample, dynamic)
    constants = [np.empty(0)] if spec.targeting else [_root_of(rest), _root_of(rest, rank=1)]
    return [np.concatenate([data.coefficients.ravel(), c, dynamic]) for c in constants]


def _leave_zero(dynamic: np.ndarray) -> None:
    """Replace zeros of Theta and Phi by small fixed numbers, in place."""
    zero = dynamic == 0
    dynamic[zero] = _SMALL * np.random.default_rng(0).standard_normal(zero.sum())


def _root_of(matrix: np.ndarray, rank: int | None = None) -> np.ndarray:
    """Lower triangle of C, by rows, with C C' the given semidefinite matrix, or nearly of `rank`.

    The rank is not exact, as the gradient vanishes at zero columns of C.
    """
    values, vectors = np.linalg.eigh(matrix)
    floor = _SMALL**2 * values.sum()
    if rank is not None:
        values[:-rank] = 0.0
        values *= (floor / _SMALL**2) / values.sum()
    lower = np.linalg.cholesky(vectors * np.maximum(values, floor) @ vectors.T)
    return lower[np.tril_indices(len(matrix))]


def _make_room(structure: Structure, sample: Sample, dynamic: np.ndarray) -> np.ndarray:
    """Shrink Theta and Phi in place until the constant is positive definite; return it."""
    taken, begin, s = np.zeros_like(sample.presample), 0, sample.presample
    for block in (*structure.theta, *structure.phi):
        taken += block.value(dynamic[begin : begin + block.size]) @ s
        begin += block.size
    share = scipy.linalg.eigh(unvech(taken), unvech(s), eigvals_only=True)[-1]
    least = min(1.0, _MOST / share)
    dynamic *= np.sqrt(least)
    return unvech(s - least * taken)


def embedded_factors(small: Specification, spec: Specification, params: np.ndarray) -> np.ndarray:
    """Factors (k,) of a model from the factors of a nested one."""
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
    """Places of a factor's elements in the factor of a larger structure; a scalar has several."""
    if small == kind:
        return np.arange(_factor_elements(kind, n)[0].size)
    if small in ("scalar", "diagonal bekk"):
        return np.arange(n) * (n + 1) if kind == "bekk" else np.arange(n)
    if small == "bekk":
        return np.arange(n * n)  # the first row of the larger factor is a BEKK term
    whole = {pair: i for i, pair in enumerate(zip(*_factor_elements(kind, n), strict=True))}
    pairs = zip(*_factor_elements(small, n), strict=True)
    return np.array([whole[row, column * (n + 1)] for row, column in pairs])


def _factor_elements(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the elements of a lag's factor."""
    if kind in ("full", "diagonal"):
        return np.triu_indices(n * n if kind == "full" else n)
    columns = np.arange({"scalar": 1, "diagonal bekk": n}.get(kind, n * n))
    return np.zeros_like(columns), columns


def moved_off_zero(spec: Specification, sample: Sample, params: np.ndarray) -> np.ndarray:
    """Factors with zeros of Theta and Phi replaced by small numbers."""
    moved, structure = params.copy(), spec.factors
    constants = 0 if structure.intercept is None else structure.intercept.size
    dynamic = moved[len(spec.mean_names) + constants :]
    _leave_zero(dynamic)
    _make_room(structure, sample, dynamic)
    return moved
