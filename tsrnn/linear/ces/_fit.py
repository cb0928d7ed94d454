"""Complex exponential smoothing of many series at once: optima of models, and the best model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, product

import numpy as np

from tsrnn.data import Panel
from tsrnn.linear._estimates import (
    EXACT,
    PERFECT,
    Estimates,
    aicc_penalty,
    deferred,
    search_messages,
)
from tsrnn.linear._family import Arrays, CannotFitError, variance_factor
from tsrnn.linear._optimise import Optimum, maximise
from tsrnn.linear._samples import Sample, scaled_samples
from tsrnn.linear.ces._likelihood import Likelihood
from tsrnn.linear.ces._specification import Components, bounds, to_natural
from tsrnn.linear.ets._search import Search, empty_search, highest_of

# Share of the interval of alpha0, and alpha1; then the parameters of the season.
_PAIRS = ((0.3, 1.0), (0.75, 1.02), (0.1, 0.99))
STARTS: dict[str, tuple[tuple[float, ...], ...]] = {
    "none": _PAIRS,
    "simple": _PAIRS,
    "partial": ((0.3, 1.0, 0.1), (0.75, 1.02, 0.02), (0.1, 0.99, 0.3)),
    "full": (
        (0.3, 1.0, 0.3, 1.0), (0.75, 1.02, 0.05, 0.98), (0.1, 0.99, 0.1, 0.98),
        (0.4, 0.75, 0.04, 1.03), (0.5, 1.0, 0.3, 1.2), (0.08, 0.8, 0.17, 1.015),
    ),
}  # fmt: skip
# Grid whose highest local maxima are further starts: shares, alpha1 and beta0; a full season has
# two pairs with fewer nodes each. Nodes are dense near alpha1 = 1, where ridges are narrow.
_SHARES = 0.02, 0.2, 0.4, 0.6, 0.8, 0.96
_A1 = 0.62, 0.75, 0.9, 1.0, 1.015, 1.05, 1.15, 1.28
_BETA = 0.01, 0.3, 1.0, 1.8
_FEW_SHARES, _FEW_A1 = (0.08, 0.4, 0.9), (0.7, 0.85, 1.0, 1.02, 1.2)
GRIDS: dict[str, tuple[tuple[float, ...], ...]] = {
    "none": (_SHARES, _A1),
    "simple": (_SHARES, _A1),
    "partial": (_FEW_SHARES, _FEW_A1, _BETA),
    "full": (_FEW_SHARES, _FEW_A1, _FEW_SHARES, _FEW_A1),
}
# Second grid, where maxima are narrow: the faces of the region of a level, and the ridge of a slow
# level whose alpha1 falls as the season takes up more.
_FACES = (0.001, 0.995), (0.97, 0.99, 1.0, 1.004, 1.008, 1.015)
_RIDGE = (0.01, 0.04, 0.1), (0.96, 0.93, 0.86, 0.8, 0.74), (0.15, 0.22, 0.3, 0.45)
NARROW: dict[str, tuple[tuple[float, ...], ...]] = {
    "none": _FACES,
    "simple": _FACES,
    "partial": ((0.004, 0.02, 0.08), *_RIDGE[1:]),
    "full": (*_RIDGE, (1.0, 1.012)),
}
NODES = {kind: 3 for kind in GRIDS}
NARROW_NODES = NODES | {"full": 6}
TOLERANCE = 1e-8  # decrement: 1e-4 standard errors, 1e-8 of the log-likelihood
FEW = 5  # iterations from all starts before models are compared
MOST = 15  # iterations of a climb
NEWTON = 15  # further iterations of climbs that have not converged
SCORING = 10_000  # iterations with the information: Newton's method is run apart
SAFETY = 2.0  # a search may still rise by this many times the predicted rise
MARGIN = 2.0  # of the criterion: models further behind stop


def samples(
    models: tuple[Components, ...], panel: Panel, known: bool
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Yield samples of the units of a panel, with the reasons of refused units.

    With `known` coefficients all exogenous columns have one.
    """
    simplest = min(models, key=lambda model: model.fewest)

    def refusals(values: np.ndarray, count: np.ndarray, kept: tuple[int, ...]) -> dict[int, str]:
        fewest = simplest.fewest + len(kept)
        besides = f" with {len(kept)} exogenous columns" * bool(kept)
        return {
            int(i): f"{simplest.title}{besides} needs at least {fewest} observations; the series "
            f"has {count[i]}. Give more rows, or take a shorter season or none"
            for i in np.flatnonzero(count < fewest)
        }

    # All models share the columns: none that the season of any model spans.
    season = min(((m.period, m.fewest) for m in models if m.period > 1), default=(1, 0))
    return scaled_samples(panel, refusals, season=season, known=known)


def search(models: tuple[Components, ...], sample: Sample) -> Search:
    """Fit every model to the series that are long enough, and keep the best.

    All models climb a few steps from all starts. Models that may still be the best go on.
    """
    counts, able = np.isfinite(sample.values).sum(1), usable(models, sample)
    ends = empty_search(len(counts), len(models), 4 + len(sample.kept))
    aicc = ends.aicc
    _place_exact_fits(models, sample, ends, able)
    promised, climbs, varies = aicc.copy(), [], np.isinf(aicc).all(1)
    for number, model in enumerate(models):
        series = np.flatnonzero(able[:, number] & varies)
        if len(series):
            climb = Climb.begun(model, sample.sized.rows, series, FEW if len(models) > 1 else MOST)
            aicc[series, number], promised[series, number] = climb.criteria(counts)
            climbs.append((number, climb))
    if not np.isfinite(aicc).any():
        raise CannotFitError("no admissible starting values were found")
    leader = aicc.min(1)
    for number, begun in climbs:
        near = promised[begun.series, number] <= leader[begun.series] + MARGIN
        climb = begun.select(np.flatnonzero(near)).finished(sample.sized.rows)
        aicc[climb.series, number] = climb.criteria(counts)[0]
        best = np.flatnonzero(aicc[climb.series].argmin(1) == number)
        units, k = climb.series[best], len(climb.model.names)
        ends.model[units] = number
        ends.params[units, :4] = to_natural(climb.model, climb.best.params[best, :k])[0]
        ends.params[units, 4:] = climb.best.params[best, k:]
        pairs = np.zeros((len(best), 4), bool)
        pairs[:, :k] = climb.best.at_bound[best, :k]
        pairs = pairs.reshape(-1, 2, 2).any(2).repeat(2, 1)
        ends.at_bound[units, :4] = pairs & (np.arange(4) < k)
        for whole, part in (
            (ends.iterations, climb.best.iterations), (ends.starts, climb.starts),
            (ends.agreement, climb.agreement), (ends.converged, climb.best.converged),
        ):  # fmt: skip
            whole[units] = part[best]
    return ends


def usable(models: tuple[Components, ...], sample: Sample) -> np.ndarray:
    """Mask (N, models): the series is long enough for the model."""
    counts = np.isfinite(sample.values).sum(1)
    return np.stack([counts >= model.fewest + len(sample.kept) for model in models], 1)


def _place_exact_fits(
    models: tuple[Components, ...], sample: Sample, ends: Search, able: np.ndarray
) -> None:
    """Write models that fit a series exactly, such as a constant, into a search result.

    The first starting values find them; a search would climb a likelihood without a bound.
    """
    counts = np.isfinite(sample.values).sum(1)
    for number, model in enumerate(models):
        units = np.flatnonzero(able[:, number] & np.isinf(ends.aicc).all(1))
        if not len(units):
            continue
        start = np.array(STARTS[model.seasonal][:1])
        likelihood = Likelihood(model, sample.sized.rows, units)
        natural = likelihood.regressed(np.repeat(to_natural(model, start)[0], len(units), 0))
        sigma2, value, _ = likelihood.values(natural, None)
        exact = np.flatnonzero(np.isfinite(value) & (sigma2 <= PERFECT))
        units, k = units[exact], model.n_params + len(sample.kept)
        ends.aicc[units, number] = aicc_penalty(counts[units], k) - 2 * value[exact]
        ends.model[units], ends.params[units], ends.converged[units] = number, natural[exact], True
        ends.starts[units] = ends.agreement[units] = 1


@dataclass(frozen=True, eq=False)
class Climb:
    """Searches of one model, each for one of some series."""

    model: Components
    series: np.ndarray  # (N,)
    best: Optimum  # highest optimum of all starts
    starts: np.ndarray  # (N,), number of starts
    agreement: np.ndarray  # (N,), starts that agree on the optimum

    @classmethod
    def begun(cls, model: Components, rows: np.ndarray, series: np.ndarray, most: int) -> Climb:
        """Climb `most` steps from all starts, on rows in the format of `Likelihood`."""
        n = len(series)
        starts = np.repeat(np.array(STARTS[model.seasonal])[:, None], n, 1)
        for axes, nodes in zip((GRIDS, NARROW), (NODES, NARROW_NODES), strict=True):
            kind = model.seasonal
            highest = highest_nodes(model, rows, series, axes[kind], nodes[kind])
            starts = np.concatenate([starts, highest])
        count, (lower, upper) = len(starts), search_bounds(model, rows)
        likelihood = Likelihood(model, rows, np.tile(series, count))
        smoothing = starts.reshape(count * n, -1)
        slopes = likelihood.regressed(to_natural(model, smoothing)[0])[:, 4:]
        ends = maximise(
            likelihood.evaluate,
            np.column_stack([smoothing, slopes]),
            lower=lower, upper=upper, scoring=SCORING, tol=TOLERANCE, max_iter=most,
        )  # fmt: skip
        return cls(model, series, *highest_of(ends, n))

    def select(self, chosen: np.ndarray) -> Climb:
        """Select searches by position."""
        best = Optimum(*(part[chosen] for part in self.best))
        arrays = self.starts[chosen], self.agreement[chosen]
        return Climb(self.model, self.series[chosen], best, *arrays)

    def criteria(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Corrected criteria, and the lowest that the searches may still reach."""
        k = self.model.n_params + self.best.params.shape[1] - len(self.model.names)
        penalty = aicc_penalty(counts[self.series], k)
        aicc = penalty - 2 * self.best.value
        # The decrement is twice the predicted rise of the log-likelihood.
        return aicc, aicc - np.where(self.best.converged, 0.0, SAFETY * self.best.decrement)

    def finished(self, rows: np.ndarray) -> Climb:
        """Continue to the maxima by scoring, then by Newton's method, which ridges need."""
        best = Optimum(*(part.copy() for part in self.best))
        lower, upper = search_bounds(self.model, rows)
        for scoring, most in ((SCORING, MOST), (0, NEWTON)):
            slow = np.flatnonzero(~best.converged & np.isfinite(best.value))
            if not len(slow):
                break
            before = best.iterations[slow]
            ends = maximise(
                Likelihood(self.model, rows, self.series[slow]).evaluate, best.params[slow],
                lower=lower, upper=upper, scoring=scoring, tol=TOLERANCE, max_iter=most,
            )  # fmt: skip
            for whole, part in zip(best, ends, strict=True):
                whole[slow] = part
            best.iterations[slow] += before
        return Climb(self.model, self.series, best, self.starts, self.agreement)


def search_bounds(model: Components, rows: np.ndarray) -> np.ndarray:
    """Bounds (2, k + m) of the parameters of the search; coefficients are unbounded."""
    m = 0 if rows.ndim == 2 else rows.shape[2] - 1
    return np.column_stack([bounds(model), np.repeat([[-np.inf], [np.inf]], m, 1)])


def highest_nodes(
    model: Components,
    rows: np.ndarray,
    series: np.ndarray,
    axes: tuple[tuple[float, ...], ...],
    count: int,
) -> np.ndarray:
    """Highest local maxima (count, n, k) of the likelihoods of some series on a grid."""
    nodes, n = np.array(list(product(*axes))), len(series)
    likelihood = Likelihood(model, rows, series)
    heights = np.stack(
        [
            likelihood.values(likelihood.regressed(np.repeat(node[None], n, 0)), None)[1]
            for node in to_natural(model, nodes)[0]
        ]
    )
    table = np.nan_to_num(heights, nan=-np.inf).reshape(*map(len, axes), n)
    local = np.ones(table.shape, bool)
    for axis in range(len(axes)):
        after = np.diff(table, axis=axis) > 0  # the next node is higher
        last = np.zeros_like(after.take([0], axis))
        local &= ~np.concatenate([after, last], axis)
        local &= np.concatenate([~last, after], axis)
    # Fewer local maxima than starts are followed by the highest other nodes.
    rank = np.where(local, table, table - 1e6).reshape(len(nodes), n)
    return nodes[np.argsort(-rank, axis=0)[:count]]


def given(
    models: tuple[Components, ...], names: tuple[str, ...], sample: Sample, params: np.ndarray
) -> Search:
    """Search result from given parameters (N, k) in the units of the data."""
    n, nothing = len(params), np.zeros(len(params), np.int64)
    free = len(names) - 1 - len(sample.kept)
    inner = np.zeros((n, 4 + len(sample.kept)))
    inner[:, :free] = params[:, :free]
    if sample.columns is not None:
        slopes = sample.columns.inner(params[:, free:-1])
        inner[:, 4:] = slopes / sample.sized.scale[:, None]
    return Search(
        nothing, np.full((n, len(models)), np.nan), inner, params[:, -1] / sample.sized.scale**2,
        nothing, nothing, nothing, np.ones(n, bool), np.zeros((n, 4), bool),
    )  # fmt: skip


def inferred(
    models: tuple[Components, ...], names: tuple[str, ...], sample: Sample, ends: Search
) -> tuple[Estimates, Arrays]:
    """Estimates in the units of the data, and the constants of a family.

    Derivatives are deferred.
    """
    n, k = len(sample.units), len(names)
    params, loglik = np.full((n, k), np.nan), np.full(n, np.nan)
    smoothing, of_columns = places_of(models, sample)
    fixed, start = np.ones((n, k), bool), np.zeros((n, max(m.n_states for m in models)))
    scaled_sigma2, exact = np.full(n, np.nan), np.zeros(n, bool)
    for number, model in enumerate(models):
        units = np.flatnonzero((ends.model == number) & np.isfinite(ends.params).all(1))
        if not len(units):
            continue
        likelihood = Likelihood(model, sample.sized.rows, units)
        sigma2 = None if ends.sigma2 is None else ends.sigma2[units]
        scaled_sigma2[units], value, states = likelihood.values(ends.params[units], sigma2)
        scale, free = sample.sized.scale[units], len(model.names)
        params[units, :-1] = 0.0
        params[units, :smoothing] = ends.params[units, :smoothing]
        if sample.columns is not None:
            slopes = sample.columns.select(units).slopes(ends.params[units, 4:])
            params[units[:, None], of_columns] = slopes * scale[:, None]
            fixed[units[:, None], of_columns] = False
        exact[units] = (scaled_sigma2[units] <= PERFECT) & (ends.sigma2 is None)
        params[units, -1] = np.where(exact[units], 0.0, scaled_sigma2[units] * scale**2)
        loglik[units] = value - likelihood.n_obs * np.log(scale)
        start[units, : model.n_states] = states * scale[:, None]
        fixed[units, :free], fixed[units, -1] = ends.at_bound[units, :free], False
    fixed[exact] = True
    messages = tuple(
        (EXACT,)
        if exact[i]
        else search_messages(
            {"On the boundary of the stable region": list(compress(names, ends.at_bound[i]))},
            bool(ends.converged[i]),
        )
        for i in range(n)
    )
    n_obs = np.isfinite(sample.values).sum(1)
    n_params = np.array([model.n_params for model in models])[ends.model] + len(sample.kept)
    estimates = Estimates(
        names=names,
        params=params,
        loglik=loglik,
        n_obs=n_obs,
        **deferred(_derivatives, models, k, sample, ends, scaled_sigma2),
        iterations=ends.iterations,
        converged=ends.converged,
        fixed=fixed,
        messages=messages,
        starts=ends.starts,
        agreement=ends.agreement,
        n_params=n_params,
    )
    given = ends.sigma2 is not None
    widening = np.ones(len(n_obs)) if given else variance_factor(n_obs, n_params - 1)
    constants = {"model": ends.model.astype(float), "widening": widening, "start": start}
    # Converts densities to the units of the data.
    in_data = 2 * (n_obs * np.log(sample.sized.scale))[:, None]
    return estimates, constants | {"aicc": ends.aicc + in_data}


def _derivatives(
    models: tuple[Components, ...], k: int, sample: Sample, ends: Search, sigma2: np.ndarray
) -> dict[str, np.ndarray]:
    """Gradient and matrices in the units of the data, of all units."""
    n = len(sample.units)
    gradient = np.zeros((n, k))
    matrices = {name: np.zeros((n, k, k)) for name in ("hessian", "opg", "information")}
    for number, model in enumerate(models):
        units = np.flatnonzero((ends.model == number) & np.isfinite(sigma2))
        if not len(units):
            continue
        likelihood = Likelihood(model, sample.sized.rows, units)
        at = ends.params[units], sigma2[units]
        slope, opg, information = likelihood.moments(*at)
        of_columns = places_of(models, sample)[1]
        places, free = [*range(len(model.names)), *of_columns, k - 1], len(model.names)
        back = np.ones((len(units), len(places)))
        back[:, free:-1] = 1 / sample.sized.scale[units, None]
        back[:, -1] = sample.sized.scale[units] ** -2
        square = back[:, :, None] * back[:, None]
        parts = {"hessian": likelihood.hessian(*at), "opg": opg, "information": information}
        if sample.columns is not None:  # back to the columns as given
            turn = np.tile(np.eye(len(places)), (len(units), 1, 1))
            turn[:, free:-1, free:-1] = sample.columns.select(units).backwards
            slope = (turn @ slope[:, :, None])[:, :, 0]
            parts = {name: turn @ part @ turn.swapaxes(1, 2) for name, part in parts.items()}
        gradient[np.ix_(units, places)] = slope * back
        for name, matrix in parts.items():
            matrices[name][np.ix_(units, places, places)] = matrix * square
    return {"gradient": gradient, **matrices}


def places_of(models: tuple[Components, ...], sample: Sample) -> tuple[int, list[int]]:
    """Number of smoothing parameters of all models, and positions of the coefficients."""
    smoothing = max(len(model.names) for model in models)
    return smoothing, [smoothing + place for place in sample.kept]
