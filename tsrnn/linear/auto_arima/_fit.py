"""Automatic ARIMA of many series: choice of orders, then estimates of the chosen models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.linear._estimates import EXACT, PERFECT, Estimates, deferred, search_messages
from tsrnn.linear._optimise import Optimum
from tsrnn.linear._regressors import by_kept, independent_columns, known_part
from tsrnn.linear.arma._fast_filter import innovations
from tsrnn.linear.arma._filter import filter_form
from tsrnn.linear.arma._fit import ends_at, estimates_of, seasonal_search
from tsrnn.linear.arma._fit import samples as arma_samples
from tsrnn.linear.arma._inference import judge
from tsrnn.linear.arma._prepare import batches, first_run, has_gaps, unit_data, with_skipped
from tsrnn.linear.arma._quasi_newton import climb
from tsrnn.linear.arma._seasonal import Lanes, multiplied
from tsrnn.linear.arma._seasonal_fit import mirrored
from tsrnn.linear.arma._specification import Specification
from tsrnn.linear.auto_arima._candidates import (
    OUTSIDE,
    Candidates,
    Series,
    differenced,
    differences,
    smallest_root,
)
from tsrnn.linear.auto_arima._differences import choose_differences
from tsrnn.linear.auto_arima._likelihood import Likelihood
from tsrnn.linear.auto_arima._orders import (
    MOST_MODELS,
    Limits,
    Order,
    criterion_values,
    full,
    lags_within,
    stepwise,
)

TOLERANCE = 1e-8  # squared gradient in standard errors: the log-likelihood is within 1e-8
LEAST = 5  # fewest observations
FAR = 1e6  # mean over deviation at which sums of squares keep only four digits
ORDER = ("p", "d", "q", "P", "D", "Q", "constant")  # in the constants of a unit


@dataclass(frozen=True)
class Choice:
    """Candidate models and the rule of the choice."""

    period: int  # rows of a season, 1 without a season
    given: tuple[int | None, int | None]  # d and D, None to choose
    differences: tuple[int, int]  # largest d and D that tests may choose
    lags: tuple[int, int, int, int]  # highest p, q, P and Q
    max_order: int  # largest p + q + P + Q of a full search
    criterion: str  # "aicc", "aic" or "bic"
    stepwise: bool
    regressors: tuple[str, ...] = ()

    @property
    def highest(self) -> tuple[int, int]:
        """Most differences d and D of a series."""
        d, D = (
            most if given is None else given
            for most, given in zip(self.differences, self.given, strict=True)
        )
        return d, D

    @property
    def lowest(self) -> tuple[int, int]:
        """Fewest differences d and D of a series."""
        d, D = self.given
        return d or 0, D or 0

    @property
    def widest(self) -> tuple[int, ...]:
        """Highest of all orders, without a constant."""
        (p, q, P, Q), (d, D) = self.lags, self.highest
        return p, d, q, P, D, Q, 0

    @property
    def most_models(self) -> int:
        """Largest number of models of a series."""
        if self.stepwise:
            return MOST_MODELS
        return 2 * sum(1 for _ in lags_within(self.lags, self.max_order))

    def with_regressors(self, kept: tuple[int, ...]) -> Choice:
        """Choice among the same models with the regressors at the given places."""
        return replace(self, regressors=tuple(self.regressors[place] for place in kept))

    def specification(self, row: tuple[int, ...]) -> Specification:
        """Specification of the model with the orders p, d, q, P, D, Q and constant."""
        return _specification(row, self.regressors, self.period)


@lru_cache(maxsize=4096)
def _specification(row: tuple[int, ...], regressors: tuple[str, ...], period: int) -> Specification:
    p, d, q, P, D, Q, constant = row
    trend = "nct"[constant and 1 + (d + D)]
    # A season of one row selects the recursions by arrays: cells would compile for each order.
    return Specification(p, d, q, trend, True, regressors, P, D, Q, period)


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """Batch of units whose models are chosen together."""

    units: np.ndarray  # (N,)
    values: np.ndarray  # (N, T), NaN where missing and after the end
    exog: np.ndarray | None  # (N, T, m)
    d: np.ndarray  # (N,)
    D: np.ndarray  # (N,)
    n_seen: np.ndarray  # (N,) observations; with gaps, from the first d + m D consecutive ones on
    seasonless: np.ndarray  # (N,) strong season, but no complete one for a seasonal difference
    series: Series  # with gaps interpolated for the choice
    gaps: np.ndarray  # (N,)
    kept: tuple[int, ...] = ()  # places of regressors with a coefficient


def samples(choice: Choice, panel: Panel) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Yield batches of a panel's units, and reasons for refusals."""
    for units in batches(panel):
        values, exog = unit_data(panel, units)
        seen = np.isfinite(values)
        n_seen, reasons = seen.sum(1), {}
        low = choice.lowest
        fewest = choice.specification((0, low[0], 0, 0, low[1], 0, 0)).fewest
        # With fewer rows even a mean has no useful corrected criterion.
        fewest = max(fewest, LEAST)
        for i in np.flatnonzero(n_seen < fewest):
            reasons[int(i)] = (
                f"ARIMA needs at least {fewest} observations; the series has {n_seen[i]}. Give "
                "more rows."
            )
        kept = np.flatnonzero(n_seen >= fewest)
        if len(kept):
            values, n_seen = values[kept], n_seen[kept]
            exog = None if exog is None else exog[kept]
            gaps = has_gaps(np.isfinite(values))
            whole, columns = _without_gaps(values, exog, gaps)
            d, D, n_left, seasonless = _differences(choice, values, whole, columns, gaps)
            for kept_columns, group in _groups(whole, columns, d, D, choice.period):
                yield from _samples_of(
                    choice, kept_columns, units[kept[group]], values[group],
                    None if exog is None else exog[group], whole[group],
                    None if columns is None else columns[group], d[group], D[group], gaps[group],
                    n_left[group], seasonless[group],
                )  # fmt: skip
        yield None, {int(units[i]): reason for i, reason in reasons.items()}


def _differences(
    choice: Choice,
    values: np.ndarray,
    whole: np.ndarray,
    columns: np.ndarray | None,
    gaps: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Choose d and D; with the observations in the likelihood, and series that lose D, each (N,).

    `values` (N, T) have gaps, `whole` (N, T) are interpolated.
    """
    n_seen, low, m = np.isfinite(values).sum(1), choice.lowest, choice.period
    d, D = choose_differences(whole, columns, m, choice.given, choice.differences)
    # With gaps and a seasonal difference, the likelihood begins at the first complete season. If
    # that leaves out most observations, model the season by lags instead.
    seasonless = (low[1] < D) & (2 * _counted(values, gaps, d + m * D) < n_seen)
    for i in np.flatnonzero(seasonless):
        rest = whole[[i]], None if columns is None else columns[[i]]
        d[[i]], D[[i]] = choose_differences(*rest, m, (choice.given[0], low[1]), choice.differences)
    # Fewest differences if more would leave too few observations.
    for i in np.flatnonzero(_counted(values, gaps, d + m * D) < d + m * D + 4):
        d[i], D[i] = low
    return d, D, _counted(values, gaps, d + m * D), seasonless


def _counted(values: np.ndarray, gaps: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Number (N,) of observations; with gaps, from the first `lost` (N,) consecutive ones on."""
    seen = np.isfinite(values)
    begin = np.zeros(len(values), np.int64)
    for length in np.unique(lost[gaps & (lost > 0)]):
        alike = gaps & (lost == length)
        begin[alike] = first_run(seen[alike], int(length))
    return np.count_nonzero(seen & (np.arange(seen.shape[1]) >= begin[:, None]), axis=1)


def _groups(
    values: np.ndarray, exog: np.ndarray | None, d: np.ndarray, D: np.ndarray, period: int
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield places of regressors with a coefficient, and the series (n,) that have them."""
    if exog is None:
        return iter([((), np.arange(len(values)))])
    y, X = differences(values, exog, d, D, period)
    assert X is not None
    seen = np.isfinite(y) & np.isfinite(X).all(2)
    # A differenced linear trend is constant, like the drift.
    constant = known_part(y.shape[1], trend=False, period=1)
    return by_kept(independent_columns(np.nan_to_num(X), seen, constant))


def _samples_of(
    choice: Choice,
    kept: tuple[int, ...],
    units: np.ndarray,
    values: np.ndarray,
    exog: np.ndarray | None,
    whole: np.ndarray,
    columns: np.ndarray | None,
    d: np.ndarray,
    D: np.ndarray,
    gaps: np.ndarray,
    n_seen: np.ndarray,
    seasonless: np.ndarray,
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Yield batches of series with the same regressors, and reasons for refusals."""
    if exog is not None and columns is not None:
        exog, columns = (part[:, :, kept] if kept else None for part in (exog, columns))
    series = differenced(whole, columns, d, D, choice.period)
    regular = np.isfinite(series.transform).all((1, 2))
    reason = (
        f"the regressors {list(choice.regressors)} are collinear, or do not vary, over the "
        "differences that are modelled. Drop one."
    )
    reasons = {int(units[i]): reason for i in np.flatnonzero(~regular)}
    if not regular.any():
        yield None, reasons
    for exact in (False, True):  # constant differences need no choice
        fine = np.flatnonzero(regular & ((series.scale == 0) == exact))
        if not len(fine):
            continue
        wide = series.X.shape[2] > 1
        part = Series(
            series.u[:, fine], series.X[:, :, fine] if wide else series.X,
            series.n_obs[fine], series.scale[fine], series.slopes[fine],
            series.transform[fine], series.period,
        )  # fmt: skip
        yield Sample(
            units[fine], values[fine], None if exog is None else exog[fine], d[fine],
            D[fine], n_seen[fine], seasonless[fine], part, gaps[fine], kept,
        ), reasons  # fmt: skip
        reasons = {}


def _without_gaps(
    values: np.ndarray, exog: np.ndarray | None, gaps: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Shift series to their first observation, and interpolate their gaps."""
    if not gaps.any():
        return values, exog
    values, exog = values.copy(), None if exog is None else exog.copy()
    rows = np.arange(values.shape[1])
    for i in np.flatnonzero(gaps):
        seen = np.flatnonzero(np.isfinite(values[i]))
        first, end = seen[0], seen[-1] + 1
        filled = np.interp(rows[first:end], seen, values[i, seen])
        values[i] = np.nan
        values[i, : end - first] = filled
        if exog is not None:
            exog[i, : end - first] = exog[i, first:end].copy()
    return values, exog


class Search(NamedTuple):
    """Chosen models of N units and their parameters."""

    orders: np.ndarray  # (N, 7), as in ORDER
    trace: list[dict[Order, float]]  # criteria of all fitted models
    params: list[np.ndarray]  # on the scale of the data; NaN if the model could not be fitted
    loglik: np.ndarray  # (N,), as the following
    n_obs: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    reasons: dict[int, str]  # refusals by number


def search(choice: Choice, sample: Sample) -> Search:
    """Choose the model of each series by the criterion, then maximise the likelihoods of all."""
    if (sample.series.scale == 0).all():
        return _exact_fits(choice, sample)
    limits = [_limits(choice, sample, i) for i in range(len(sample.units))]
    candidates = Candidates(sample.series, choice.criterion, max(choice.lags[:2]))
    evaluate = partial(_evaluated, choice, sample, candidates)
    if choice.stepwise:
        trace = stepwise(evaluate, limits, Order(2, 2, 1, 1, True))
    else:
        trace = full(evaluate, limits, choice.max_order)
    chosen = [min(values, key=values.__getitem__) for values in trace]
    # If no model has a finite criterion, take the simplest.
    simplest = Order(0, 0, 0, 0, False)
    chosen = [
        order if np.isfinite(values[order]) else simplest
        for order, values in zip(chosen, trace, strict=True)
    ]
    orders = np.array([
        (o.p, d, o.q, o.P, D, o.Q, o.constant)
        for o, d, D in zip(chosen, sample.d, sample.D, strict=True)
    ])  # fmt: skip
    return _optima(choice, sample, candidates, chosen, orders, trace)


def _exact_fits(choice: Choice, sample: Sample) -> Search:
    """Models without lags, for series with constant differences after regression.

    They have a mean or, if differences are not zero, a drift. After more differences models have
    no constant, and the differences are errors.
    """
    series, (n, period) = sample.series, (len(sample.units), choice.period)
    level = series.u.sum(0) / series.n_obs
    with_constant = (sample.d + sample.D == 0) | ((sample.d + sample.D == 1) & (level != 0))
    nothing, unscaled = np.zeros(n, np.int64), series._replace(scale=np.ones(n))
    orders = np.stack(
        [nothing, sample.d, nothing, nothing, sample.D, nothing, with_constant], 1
    ).astype(np.int64)
    sigma2 = np.where(with_constant, 0.0, level**2)
    n_obs = np.where(sample.gaps, sample.n_seen - sample.d - period * sample.D, series.n_obs)
    size = np.nan_to_num(np.abs(sample.values)).max(1)
    # The likelihood is unbounded: take the variance of rounding.
    floor = PERFECT * np.where(size > 0, size, 1.0) ** 2
    loglik = -0.5 * n_obs * (np.log(2 * np.pi * np.maximum(sigma2, floor)) + 1)
    trace, params = [], []
    for i, (constant, mean) in enumerate(zip(with_constant.tolist(), level, strict=True)):
        inner = np.concatenate([[mean] * constant, np.zeros(series.slopes.shape[1])])
        params.append(_natural(unscaled, i, orders[i], inner, sigma2[i]))
        k = np.array([len(inner) + 1])
        value = criterion_values(choice.criterion, loglik[i : i + 1], k, n_obs[i : i + 1])
        trace.append({Order(0, 0, 0, 0, constant): float(value[0])})
    return Search(orders, trace, params, loglik, n_obs, nothing, np.ones(n, bool), {})


def _limits(choice: Choice, sample: Sample, i: int) -> Limits:
    """Highest orders of a series, at most a third of its rows, as in R's forecast."""
    n, period = int(sample.n_seen[i]), choice.period
    p, q, P, Q = choice.lags
    p, q = min(p, n // 3), min(q, n // 3)
    if period > 1:
        p, q = min(p, period - 1), min(q, period - 1)
        P, Q = min(P, n // 3 // period), min(Q, n // 3 // period)
    constant = bool(sample.d[i] + sample.D[i] < 2)
    return Limits(p, q, P, Q, constant, int(sample.series.n_obs[i]))


def _evaluated(
    choice: Choice, sample: Sample, candidates: Candidates, pairs: list[tuple[int, Order]]
) -> np.ndarray:
    """Criteria of pairs; infinite if a series is too short for an order."""
    values = np.full(len(pairs), np.inf)
    usable = [
        place
        for place, (i, o) in enumerate(pairs)
        if choice.specification(
            (o.p, int(sample.d[i]), o.q, o.P, int(sample.D[i]), o.Q, int(o.constant))
        ).fewest <= sample.n_seen[i]
    ]  # fmt: skip
    if usable:
        values[usable] = candidates([pairs[place] for place in usable])
    return values


def _optima(
    choice: Choice,
    sample: Sample,
    candidates: Candidates,
    chosen: list[Order],
    orders: np.ndarray,
    trace: list[dict[Order, float]],
) -> Search:
    """Maximise the likelihoods of the chosen models."""
    n, period, series = len(chosen), choice.period, sample.series
    params: list[np.ndarray] = [np.empty(0)] * n
    loglik, iterations = np.full(n, np.nan), np.zeros(n, np.int64)
    converged = np.zeros(n, bool)
    # A large mean relative to the deviation loses digits in sums of squares; `ARMA` centres it.
    level = np.abs(series.u.sum(0)) / series.n_obs
    by_model = sample.gaps | ((level > FAR) & (orders[:, 6] == 1))
    reasons: dict[int, str] = {}
    seasons = np.maximum(orders[:, 3], orders[:, 5])
    for lags in np.unique(seasons):
        units = np.flatnonzero((seasons == lags) & ~sample.gaps)
        if not len(units):
            continue
        pairs = [(int(i), chosen[i]) for i in units]
        lanes = candidates.lanes(pairs)
        start = candidates.starts(pairs, lanes)
        ends = climb(Likelihood(lanes, candidates.longest).evaluate, start, tol=TOLERANCE)
        inner = mirrored(lanes.form, ends.params)
        sigma2 = _variances(lanes, inner)
        loglik[units] = ends.value - series.n_obs[units] * np.log(series.scale[units])
        iterations[units], converged[units] = ends.iterations, ends.converged
        on_circle = smallest_root(lanes.form, inner, autoregression=False) < OUTSIDE
        by_model[units[on_circle]] = True
        for i, row, free, variance in zip(units, inner, lanes.free, sigma2, strict=True):
            params[i] = _natural(series, int(i), orders[i], row[free], variance)
    # Series with gaps need a filter for each order. Near the unit circle of the moving average
    # there are several maxima, which need several starts.
    for row in np.unique(orders[by_model], axis=0):
        units = np.flatnonzero((orders == row).all(1) & by_model)
        spec = choice.specification(tuple(row.tolist()))
        exog = None if sample.exog is None else sample.exog[units]
        for part, refused in arma_samples(spec, units, sample.values[units], exog):
            reasons |= refused
            if part is None:
                continue
            likelihood: Any = part.likelihood
            optimum = seasonal_search(part.prepared, likelihood)
            estimates = estimates_of(spec, part, optimum)
            loglik[part.units], iterations[part.units] = estimates.loglik, estimates.iterations
            converged[part.units] = estimates.converged
            for i, estimate in zip(part.units, estimates.params, strict=True):
                params[i] = estimate
    for place in range(n):
        if not len(params[place]) or not np.isfinite(loglik[place]):
            params[place], loglik[place] = np.full(1, np.nan), np.nan
    lost = orders[:, 1] + period * orders[:, 4]
    n_obs = np.where(sample.gaps, sample.n_seen - lost, series.n_obs)
    return Search(orders, trace, params, loglik, n_obs, iterations, converged, reasons)


def _variances(lanes: Lanes, params: np.ndarray) -> np.ndarray:
    """Variances (N,) of the innovations that maximise the likelihood at parameters (N, k)."""
    y, X, within, n_obs = lanes.observed(np.arange(len(params)))
    u = y - np.einsum("tmn,nm->tn", X, params[:, : lanes.form.n_mean])
    path = innovations(*multiplied(lanes.form, params), u)
    square = path.v**2 / path.F
    return (square if within is None else square * within).sum(0) / n_obs


def _natural(
    series: Series, i: int, order: np.ndarray, inner: np.ndarray, sigma2: float
) -> np.ndarray:
    """Convert a lane's parameters to the scale of the data."""
    _, d, _, _, D, _, constant = order
    m, scale = series.slopes.shape[1], series.scale[i]
    # A trend of slope b has differences b, and seasonal differences m b.
    step = series.period if D and not d else 1
    mean, slopes, lags = np.split(inner, [constant, constant + m])
    beta = series.transform[i] @ (scale * slopes + series.slopes[i])
    return np.concatenate([mean * scale / step, beta, lags, [sigma2 * scale**2]])


def inferred(choice: Choice, names: tuple[str, ...], sample: Sample, ends: Search) -> Estimates:
    """Estimates of all units, with derivatives on demand."""
    n, k = len(sample.units), len(names)
    params, fixed = np.full((n, k), np.nan), np.ones((n, k), bool)
    before = np.isfinite(sample.values).sum(1) - sample.n_seen
    n_params, messages = np.zeros(n, np.int64), []
    for i, (order, values) in enumerate(zip(ends.orders, ends.params, strict=True)):
        spec, lines = choice.specification(tuple(order.tolist())), list[str]()
        n_params[i] = len(spec.names)
        if np.isfinite(values).all():
            places = [names.index(name) for name in spec.names]
            params[i] = 0.0
            if values[-1] == 0:  # sigma2 of a model that reproduces the series
                params[i, places], fixed[i] = values, True
                lines = [EXACT]
            else:
                form, lags = filter_form(spec), values[None, :-1]
                at = Optimum(
                    lags, np.zeros(1), 0 * lags, np.zeros(1), np.zeros(1, np.int64),
                    np.ones(1, bool), np.zeros(lags.shape, bool),
                )  # fmt: skip
                on_edge, (notes,) = judge(form, at, np.full(1, np.nan), ends.n_obs[i : i + 1])
                params[i, places], fixed[i, places] = values, np.append(on_edge[0], False)
                lines = list(notes)
        if i in ends.reasons:
            lines = [ends.reasons[i], *lines]
        if not ends.converged[i] and not lines:
            lines += search_messages({}, converged=False)
        if sample.seasonless[i]:
            lines.append(
                "The season is strong, but no seasonal difference was taken: its likelihood begins "
                f"at the first {choice.period} observations in a row, if any, and would leave out "
                "most observations."
            )
        if np.isfinite(values).all():
            lines = list(*with_skipped(spec, before[[i]], [tuple(lines)]))
        messages.append(tuple(lines))
    return Estimates(
        names=names,
        params=params,
        loglik=ends.loglik,
        n_obs=ends.n_obs,
        **deferred(_derivatives, choice, names, sample, ends),
        iterations=ends.iterations,
        converged=ends.converged,
        fixed=fixed,
        messages=tuple(messages),
        starts=np.zeros(n, np.int64),
        agreement=np.zeros(n, np.int64),
        n_params=n_params,
    )


def _derivatives(
    choice: Choice, names: tuple[str, ...], sample: Sample, ends: Search
) -> dict[str, np.ndarray]:
    """Gradients and matrices on the scale of the data, by groups of equal orders."""
    n, k = len(sample.units), len(names)
    result = {name: np.zeros((n, k, k)) for name in ("hessian", "opg", "information")}
    result["gradient"] = np.zeros((n, k))
    fitted = np.array(
        [bool(np.isfinite(values).all() and values[-1] > 0) for values in ends.params]
    )
    for row in np.unique(ends.orders[fitted], axis=0):
        units = np.flatnonzero((ends.orders == row).all(1) & fitted)
        spec = choice.specification(tuple(row.tolist()))
        places = np.array([names.index(name) for name in spec.names])
        exog = None if sample.exog is None else sample.exog[units]
        for part, _ in arma_samples(spec, units, sample.values[units], exog):
            if part is None:
                continue
            at = ends_at(part, np.array([ends.params[i] for i in part.units]))
            estimates = estimates_of(spec, part, at)
            result["gradient"][np.ix_(part.units, places)] = estimates.gradient
            for name in ("hessian", "opg", "information"):
                matrices = getattr(estimates, name)
                result[name][np.ix_(part.units, places, places)] = matrices
    return result
