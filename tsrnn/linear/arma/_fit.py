"""Maximum likelihood of many ARMA units in one batch: the highest of several maxima."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Lanes
from tsrnn.linear._estimates import EXACT, PERFECT, Estimates
from tsrnn.linear._optimise import LAST_STEP, Optimum, agreement_of, maximise
from tsrnn.linear.arma._inference import closest_roots, judge
from tsrnn.linear.arma._likelihood import LARGEST, Likelihood
from tsrnn.linear.arma._polynomials import from_inverse_roots, inverse_roots, is_stable, reflected
from tsrnn.linear.arma._prepare import (
    Prepared,
    has_gaps,
    prepare,
    trend_and_regressors,
    with_skipped,
)
from tsrnn.linear.arma._profile import grid_maxima
from tsrnn.linear.arma._quasi_newton import no_optimum
from tsrnn.linear.arma._seasonal_fit import SeasonalLikelihood, mirrored, seasonal_optimum
from tsrnn.linear.arma._specification import Form, Specification
from tsrnn.linear.arma._start import (
    drawn_starts,
    further_starts,
    hannan_rissanen,
    sample_autocovariances,
)

# Simulations showed no second maximum if roots of phi and theta are this far apart, in units of
# 1 / sqrt(n), roots of theta not close to the unit circle, and the search was short.
_FAR, _EDGE, _SHORT = 8.0, 0.95, 20
_INSIDE = 4.0  # distance from the circle, in the same units, if a grid search is cheap
_EDGE_OF_PAIRS = 0.7  # modulus from which pairs of roots have several maxima
_LONG, _BRIEF = 100, 30  # iterations from the best start, and from each of many
_FEW = 9  # iterations before a grid of starts, which is better if roots nearly cancel
_SIMPLE = 3  # lags on both sides together; models of more have second maxima for all roots
_MOST_OF_SHORT, _SHORT_SERIES = 5, 128  # lags for which cells are faster, on series this short
_STEPS = (-6, -4, -2, 2, 4, 6)  # half-steps of the periodogram, to both sides
_REAL = 1e-6  # a root with a smaller imaginary part is real


@dataclass(frozen=True, eq=False)
class Sample:
    """Batch of units, all with gaps or all without."""

    units: np.ndarray  # (n,) numbers
    prepared: Prepared
    likelihood: Likelihood | SeasonalLikelihood
    exact: bool  # the model reproduces the series up to rounding, and nothing is estimated


def samples(
    spec: Specification, units: np.ndarray, y: np.ndarray, exog: np.ndarray | None
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Yield batches of units with values (n, T), NaN where missing, and reasons for refusals."""
    X = trend_and_regressors(spec, y.shape[1], exog)
    seen = np.isfinite(y)
    gaps = has_gaps(seen)
    for with_gaps in (False, True):  # series with gaps need a filter
        chosen = np.flatnonzero(gaps == with_gaps)
        if not len(chosen):
            continue
        whole = len(chosen) == len(y)  # no copy
        columns = X if len(X) == 1 or whole else X[chosen]
        part = (y, seen) if whole else (y[chosen], seen[chosen])
        prepared, kept, refused = prepare(spec, *part, columns, with_gaps)
        reasons = {int(units[chosen[i]]): reason for i, reason in refused.items()}
        if prepared is None:
            yield None, reasons
            continue
        for exact in (False, True):
            alike = np.flatnonzero((prepared.still | prepared.steady) == exact)
            if not len(alike):
                continue
            numbers, group = units[chosen[kept[alike]]], prepared.select(alike)
            likelihood: Likelihood | SeasonalLikelihood
            if spec.m or (spec.exact and is_large(spec.p, spec.q, y.shape[1])):
                likelihood = SeasonalLikelihood(spec, group)
            else:
                likelihood = Likelihood(
                    group.form, Lanes(group.inputs), group.n_obs, exact=spec.exact, gaps=group.gaps
                )
            yield Sample(numbers, group, likelihood, exact), reasons
            reasons = {}


def is_large(p: int, q: int, n_rows: int) -> bool:
    """Return True if a search by arrays is faster than one by compiled cells.

    The cost of cells grows with the square of the number of parameters, that of arrays with rows.
    """
    most = _MOST_OF_SHORT if n_rows <= _SHORT_SERIES else 2 * LARGEST - 1
    return max(p, q) > LARGEST or (min(p, q) > 0 and p + q > most)


def ends_at(sample: Sample, params: np.ndarray) -> Search:
    """Convert given parameters (n, k), on the scale of the data, to the ends of a search."""
    prepared, n, m = sample.prepared, len(params), sample.prepared.form.n_mean
    inner = params.copy()
    shifted = (params[:, :m] - prepared.shift)[:, :, None]
    inner[:, :m] = np.linalg.solve(prepared.jacobian, shifted)[:, :, 0]
    inner[:, -1] /= prepared.scale**2
    nothing, flat = np.zeros(n, dtype=np.int64), np.zeros((n, inner.shape[1] - 1))
    optimum = Optimum(
        inner[:, :-1], np.full(n, np.nan), flat, np.zeros(n), nothing, np.ones(n, dtype=bool),
        flat.astype(bool),
    )  # fmt: skip
    return Search(optimum, np.full(n, np.nan), nothing, nothing, inner[:, -1])


def estimates_of(spec: Specification, sample: Sample, ends: Search) -> Estimates:
    """Estimates on the scale of the data at the ends of a search, or at given parameters."""
    prepared, likelihood, optimum = sample.prepared, sample.likelihood, ends.best
    n_obs, m = prepared.n_obs, prepared.form.n_mean
    n, k = len(n_obs), prepared.form.n_params + 1
    messages: tuple[tuple[str, ...], ...] = ((),) * n
    fixed = np.ones((n, k), dtype=bool)
    sigma2, moments = likelihood.moments(optimum.params, ends.sigma2)
    inner = np.column_stack([optimum.params, sigma2])
    if ends.sigma2 is None:
        fixed[:, :-1], messages = judge(prepared.form, optimum, ends.lower, n_obs)
        fixed[:, -1] = False
    params, back = inner.copy(), np.broadcast_to(np.eye(k), (n, k, k)).copy()
    params[:, :m] = prepared.shift + (prepared.jacobian @ inner[:, :m, None])[:, :, 0]
    params[:, -1] *= prepared.scale**2
    back[:, :m, :m] = np.linalg.inv(prepared.jacobian)
    back[:, -1, -1] = prepared.scale**-2
    hessian, opg, information = (back.swapaxes(1, 2) @ matrix @ back for matrix in moments[2:])
    return Estimates(
        names=spec.names,
        params=params,
        loglik=moments.value - n_obs * np.log(prepared.scale),
        n_obs=n_obs,
        gradient=(moments.gradient[:, None] @ back)[:, 0],
        hessian=hessian,
        opg=opg,
        information=information,
        iterations=optimum.iterations,
        converged=optimum.converged,
        fixed=fixed,
        messages=with_skipped(spec, prepared.skipped, messages),
        starts=ends.starts,
        agreement=ends.agreement,
    )


def exact_estimates(spec: Specification, sample: Sample) -> Estimates:
    """Estimates of series that the model reproduces, with variance zero.

    Least squares reproduces them without lags, or a unit root if it leaves a constant.
    """
    prepared, m = sample.prepared, sample.prepared.form.n_mean
    n, k, n_obs = len(prepared.n_obs), prepared.form.n_params + 1, prepared.n_obs
    params, nothing = np.zeros((n, k)), np.zeros((n, k, k))
    params[:, :m] = prepared.shift + (prepared.jacobian @ prepared.mean[:, :, None])[:, :, 0]
    lag = m if prepared.form.p else k - 1 - prepared.form.P - prepared.form.Q
    if prepared.steady.any():
        # Just inside the unit circle, where the state has a stationary variance.
        params[prepared.steady, lag] = 1 - np.finfo(float).eps
    variance = PERFECT * prepared.scale**2  # the likelihood is unbounded: take that of rounding
    return Estimates(
        names=spec.names,
        params=params,
        loglik=-0.5 * n_obs * (np.log(2 * np.pi * variance) + 1),
        n_obs=n_obs,
        gradient=np.zeros((n, k)),
        **dict.fromkeys(("hessian", "opg", "information"), nothing),
        iterations=np.zeros(n, np.int64),
        converged=np.ones(n, bool),
        fixed=np.ones((n, k), bool),
        messages=with_skipped(spec, prepared.skipped, ((EXACT,),) * n),
        starts=np.ones(n, np.int64),
        agreement=np.ones(n, np.int64),
    )


class Search(NamedTuple):
    """Ends of the search for N units."""

    best: Optimum  # inner parameters, with moving-average roots outside or on the unit circle
    lower: np.ndarray  # (N,) log-likelihood, a lag less on both sides; NaN unless roots are close
    starts: np.ndarray  # (N,) number of starts
    agreement: np.ndarray  # (N,) number of starts that came close to the highest log-likelihood
    sigma2: np.ndarray | None = None  # (N,) given variance; None to maximise the likelihood


def search(prepared: Prepared, likelihood: Likelihood, n_starts: int | None = None) -> Search:
    """Maximise from one start, and from others if there may be other maxima.

    `n_starts` is the number of starts of every series, besides the optima of nested models.
    """
    form, n_obs = prepared.form, prepared.n_obs
    if is_large(form.p, form.q, prepared.inputs.shape[1]):
        return _search_by_arrays(prepared, likelihood, n_starts)
    gamma = sample_autocovariances(prepared, likelihood.lanes)
    start = np.column_stack([prepared.mean, hannan_rissanen(gamma, form.p, form.q)])
    # The grid is of an exact ARMA(1, 1) without regressors and gaps.
    plain = form.p == form.q == 1 and form.d == form.n_regressors == 0 and not prepared.gaps
    by_grid = n_starts is None and plain and likelihood.exact
    best = no_optimum(start)
    # Where roots cancel, the likelihood has a ridge: a climb is long, and not higher than the grid.
    climbed = np.arange(len(n_obs))
    climbed = np.flatnonzero(_apart(form, start, n_obs, circle=True)) if by_grid else climbed
    if len(climbed):
        part = likelihood if len(climbed) == len(n_obs) else likelihood.select(climbed)
        most = _FEW if by_grid else _LONG
        first = _climb(part, form, start[climbed], most, last_step=LAST_STEP)
        _keep_higher(best, climbed, first)
    starts, agreement = np.ones((2, len(n_obs)), dtype=np.int64)
    lower = np.full(len(n_obs), np.nan)
    doubtful = _doubtful(form, best, n_obs, circle=by_grid)
    units = doubtful if n_starts is None else np.arange(len(n_obs))
    if len(units) and form.q:
        doubted = likelihood if len(units) == len(n_obs) else likelihood.select(units)
        if by_grid:
            ends = _search_grid(doubted, Optimum(*(part[units] for part in best)))
        else:
            ends = _search_nested(doubted, prepared.mean[units], gamma[:, units], n_starts)
        _keep_higher(best, units, ends.best)
        starts[units], agreement[units], lower[units] = ends.starts, ends.agreement, ends.lower
    params = _mirrored(form, best.params)[0]
    return Search(best._replace(params=params), lower, starts, agreement)


def seasonal_search(
    prepared: Prepared, likelihood: SeasonalLikelihood, n_starts: int | None = None
) -> Search:
    """Maximise the likelihood of a seasonal model."""
    best, starts, agreement, lower = seasonal_optimum(prepared, likelihood, n_starts)
    best = best._replace(params=mirrored(prepared.form, best.params))
    return Search(best, lower, starts, agreement)


def _search_by_arrays(prepared: Prepared, likelihood: Likelihood, n_starts: int | None) -> Search:
    """Maximise a conditional likelihood of many lags by arrays, then without restrictions.

    The search by arrays keeps the autoregression stationary.
    """
    form = prepared.form
    spec = Specification(form.p, 0, form.q, "n", exact=False)
    ends = seasonal_search(prepared, SeasonalLikelihood(spec, prepared), n_starts)
    # Scoring only: second derivatives would take four gradients for each parameter.
    end = _climb(likelihood, form, ends.best.params, _BRIEF, scoring=_BRIEF)
    _keep_higher(ends.best, np.arange(len(end.value)), end)
    return ends._replace(best=ends.best._replace(params=_mirrored(form, ends.best.params)[0]))


def _search_nested(
    likelihood: Likelihood, mean: np.ndarray, gamma: np.ndarray, n_starts: int | None
) -> Search:
    """Highest end from starts of all kinds, which include the optima of nested models."""
    form = likelihood.form
    # Small models first: their optima, with a zero for the further lag, are starts of larger ones.
    nested: dict[tuple[int, int], Search] = {}
    for p, q in sorted(product(range(form.p + 1), range(form.q + 1)), key=sum):
        optima = []
        if p:
            params = nested[p - 1, q].best.params
            optima.append(np.insert(params, params.shape[1] - q, 0.0, axis=1))
        if q:
            params = nested[p, q - 1].best.params
            optima.append(np.column_stack([params, np.zeros(len(params))]))
        order = replace(form, p=p, q=q)
        nested[p, q] = _search_starts(likelihood, order, mean, gamma, optima, n_starts)
    ends = nested[form.p, form.q]
    if form.p:
        ends = ends._replace(lower=nested[form.p - 1, form.q - 1].best.value)
    return ends


def _search_grid(likelihood: Likelihood, best: Optimum) -> Search:
    """Highest end of climbs from the maxima on a grid; `best` is updated in place."""
    form, n, values = likelihood.form, len(best.value), [best.value.copy()]
    maxima = grid_maxima(form, likelihood.lanes, likelihood.n_obs)
    for later in (False, True):
        batch = np.flatnonzero((maxima.rank > 0) == later)
        if not len(batch):
            continue
        units, rank = maxima.units[batch], maxima.rank[batch]
        every = np.array_equal(units, np.arange(n))  # usually, for the highest maxima: no copy
        part = likelihood if every else likelihood.select(units)
        # No scoring: the information is nearly singular where roots nearly cancel.
        ends = _climb(part, form, maxima.params[batch], _BRIEF, scoring=0)
        for k in np.unique(rank):
            of_rank = np.flatnonzero(rank == k)
            values.append(np.full(n, -np.inf))
            values[-1][units[of_rank]] = ends.value[of_rank]
            _keep_higher(best, units[of_rank], Optimum(*(array[of_rank] for array in ends)))
    loose = np.flatnonzero(~best.converged)
    if len(loose):
        _keep_higher(best, loose, _climb(likelihood.select(loose), form, best.params[loose]))
    lower = -0.5 * likelihood.n_obs * (np.log(2 * np.pi) + 1)  # white noise of variance one
    tried = np.stack(values)
    return Search(best, lower, np.isfinite(tried).sum(0), agreement_of(tried))


def _search_starts(
    likelihood: Likelihood,
    form: Form,
    mean: np.ndarray,
    gamma: np.ndarray,
    optima: list[np.ndarray],
    n_starts: int | None,
) -> Search:
    """Highest end of climbs at the orders of `form`, from nested optima and other starts.

    The likelihood may have higher orders; their coefficients are held at zero.
    """
    n, n_obs = len(mean), likelihood.n_obs
    first = np.column_stack([mean, hannan_rissanen(gamma, form.p, form.q)])
    best = no_optimum(first)
    values: list[np.ndarray] = []
    _try_starts(best, np.arange(n), likelihood, form, [first, *optima], values)
    # Starts of all kinds for doubtful units, or `n_starts` starts for all units.
    units = _doubtful(form, best, n_obs)
    others: list[np.ndarray] = []
    if n_starts is not None:
        units, others = np.arange(n), further_starts(gamma, form.p, form.q)
        others = [*others, *drawn_starts(n, form.p, form.q, n_starts - len(others))]
        others = others[: n_starts - 1]
    elif form.q and len(units):
        others = further_starts(gamma[:, units], form.p, form.q)
    starts = [np.column_stack([mean[units], start]) for start in others]
    _try_starts(best, units, likelihood, form, starts, values)
    # From the best end: move roots to the unit circle, and rotate pairs of roots along it.
    if form.q and len(units) and n_starts != 1:
        moved = [_on_circle(form, best.params[units])]
        if form.q > 1:
            angles = np.multiply.outer(_STEPS, np.pi / n_obs[units])
            moved += [_rotated(form, best.params[units], angle) for angle in angles]
        _try_starts(best, units, likelihood, form, moved, values)
    loose = np.flatnonzero(~best.converged)
    if len(loose):
        _keep_higher(best, loose, _climb(likelihood.select(loose), form, best.params[loose]))
    ends = np.stack(values)
    return Search(best, np.full(n, np.nan), np.isfinite(ends).sum(0), agreement_of(ends))


def _try_starts(
    best: Optimum,
    units: np.ndarray,
    likelihood: Likelihood,
    form: Form,
    starts: list[np.ndarray],
    values: list[np.ndarray],
) -> None:
    """Climb from several starts; append values of the ends, and keep higher ends in place."""
    n = len(units)
    if not (n and starts):
        return
    repeated = likelihood.select(np.tile(units, len(starts)))
    ends = _climb(repeated, form, np.concatenate(starts), _BRIEF)
    for i in range(len(starts)):
        end = Optimum(*(part[i * n : (i + 1) * n] for part in ends))
        reached = np.full(len(best.value), -np.inf)
        reached[units] = end.value
        values.append(reached)
        _keep_higher(best, units, end)


def _climb(
    likelihood: Likelihood,
    form: Form,
    start: np.ndarray,
    max_iter: int = _LONG,
    scoring: int = 20,
    last_step: float = 0.0,
) -> Optimum:
    """Maximise; if a search left the invertible region, continue from the reflected point."""
    best = _maximise(likelihood, form, start, max_iter, scoring, last_step)
    stuck = np.flatnonzero(~best.converged)
    mirrored, outside = _mirrored(form, best.params[stuck])
    stuck = stuck[outside]
    if len(stuck):
        end = _maximise(likelihood.select(stuck), form, mirrored[outside], max_iter)
        _keep_higher(best, stuck, end)
    return best


def _maximise(
    likelihood: Likelihood,
    form: Form,
    start: np.ndarray,
    max_iter: int,
    scoring: int = 20,
    last_step: float = 0.0,
) -> Optimum:
    """Maximise by the parameters of `form`, with those of higher orders held at zero."""
    whole = likelihood.form
    if form == whole:
        return maximise(
            likelihood.evaluate, start, max_iter=max_iter, scoring=scoring, last_step=last_step
        )
    free = np.zeros(whole.n_params, dtype=bool)
    free[: form.n_mean + form.p] = True
    free[whole.n_mean + whole.p :][: form.q] = True
    params, bound = np.zeros((len(start), whole.n_params)), np.where(free, np.inf, 0.0)
    params[:, free] = start
    end = maximise(likelihood.evaluate, params, lower=-bound, upper=bound, max_iter=max_iter)
    return end._replace(
        params=end.params[:, free], gradient=end.gradient[:, free], at_bound=end.at_bound[:, free]
    )


def _keep_higher(best: Optimum, units: np.ndarray, other: Optimum) -> None:
    """Replace optima by higher ones, in place."""
    before = best.value[units]
    # Ends that differ by rounding are the same maximum: keep the first, unless it did not converge.
    room = 1e-9 * np.abs(np.where(np.isfinite(before), before, 0.0))
    better = other.value > before + room
    better |= (other.value >= before - room) & other.converged & ~best.converged[units]
    for whole, part in zip(best, other, strict=True):
        whole[units[better]] = part[better]


def _doubtful(form: Form, best: Optimum, n_obs: np.ndarray, circle: bool = False) -> np.ndarray:
    """Units whose likelihood may have another maximum; `circle` as in `_apart`."""
    ma = inverse_roots(-best.params[:, form.n_mean + form.p :].T)
    edge = _EDGE if form.q < 2 else _EDGE_OF_PAIRS
    doubt = ~best.converged | (best.iterations > _SHORT) | (np.abs(ma) > edge).any(0)
    doubt |= bool(form.q) and form.p + form.q > _SIMPLE
    if form.p and form.q:
        doubt |= ~_apart(form, best.params, n_obs, circle)
    return np.flatnonzero(doubt)


def _apart(form: Form, params: np.ndarray, n_obs: np.ndarray, circle: bool) -> np.ndarray:
    """Mask (N,) of units without nearly common roots.

    With `circle`, also without roots of the moving average near the unit circle.
    """
    apart = closest_roots(form, params)[0] * np.sqrt(n_obs) >= _FAR
    if circle:
        ma = inverse_roots(-params[:, form.n_mean + form.p :].T)
        apart &= ((1 - np.abs(ma)) * np.sqrt(n_obs) >= _INSIDE).all(0)
    return apart


def _mirrored(form: Form, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reflect roots to an invertible moving average; with a mask of units that had none."""
    first = form.n_mean + form.p
    theta = -params[:, first : first + form.q].T
    inside = reflected(theta)[0]
    return np.column_stack([params[:, :first], -inside.T]), ~is_stable(theta)


def _on_circle(form: Form, params: np.ndarray) -> np.ndarray:
    """Move the largest root of the moving average to the unit circle."""
    first = form.n_mean + form.p
    roots = inverse_roots(-params[:, first:].T)
    modulus = np.abs(roots)
    largest = modulus.max(0)
    # 0.9 includes the other root of a pair, whose modulus differs by rounding.
    moved = np.where(modulus > 0.9 * largest, roots / np.maximum(modulus, 1e-9), roots)
    return np.column_stack([params[:, :first], -from_inverse_roots(moved).T])


def _rotated(form: Form, params: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Rotate pairs of roots of the moving average by an angle (N,).

    Along the unit circle the likelihood has maxima about 2 pi / n apart, as a periodogram has.
    """
    first = form.n_mean + form.p
    roots = inverse_roots(-params[:, first:].T)
    rotated = np.where(
        np.abs(roots.imag) > _REAL, roots * np.exp(1j * np.sign(roots.imag) * angle), roots
    )
    return np.column_stack([params[:, :first], -from_inverse_roots(rotated).T])
