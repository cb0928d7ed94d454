"""Theta models of many series at once: seasonal adjustment, the maximum of each, its estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.linear._estimates import EXACT, PERFECT, Estimates, deferred, search_messages
from tsrnn.linear._family import variance_factor
from tsrnn.linear._optimise import agreement_of, maximise
from tsrnn.linear._regressors import (
    Columns,
    by_kept,
    columns_of,
    crowded,
    first_slopes,
    independent_columns,
    known_part,
)
from tsrnn.linear._samples import rows_to_last_value, without_rounding
from tsrnn.linear.arma._prepare import batches, first_rows, from_row, unit_data
from tsrnn.linear.theta._cells import GIVEN
from tsrnn.linear.theta._likelihood import ALPHA, THETA, Likelihood, lines, moments, squares
from tsrnn.linear.theta._regression import Regression
from tsrnn.linear.theta._season import MULTIPLIED, NONE, season_of

MARGIN = 3.0  # log-likelihood below the highest node, up to which local maxima are climbed
TOLERANCE = 1e-12  # decrement: 1e-6 standard errors
# Sum of squared errors, over squares about the first value, of an exact line: theta ends at 1e10,
# which fits it to ten digits.
ROUNDED = 1e-20
# Alternations between the estimate of coefficients and of the series without their effects.
TURNS = 2
NAMES = ("level", "alpha", "theta", "sigma2")


class Choices(NamedTuple):
    """Arguments of a theta model."""

    theta: float | None  # None to estimate it
    dynamic: bool
    seasonal: str
    period: int
    estimated: bool  # the level before the first row is a parameter
    regressors: tuple[str, ...] = ()  # exogenous columns

    @property
    def free(self) -> np.ndarray:
        """Mask (4,) of the `NAMES` that are parameters."""
        return np.array([self.estimated, True, self.theta is None, True])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, the coefficients of exogenous columns before sigma2."""
        *mean, sigma2 = (name for name, here in zip(NAMES, self.free, strict=True) if here)
        return (*mean, *self.regressors, sigma2)

    @property
    def model_places(self) -> list[int]:
        """Positions among the parameters of all but the coefficients."""
        n = int(self.free.sum())
        return [*range(n - 1), n - 1 + len(self.regressors)]

    @property
    def slopes(self) -> list[int]:
        """Positions of the coefficients of exogenous columns among the parameters."""
        n = int(self.free.sum())
        return list(range(n - 1, n - 1 + len(self.regressors)))

    def fewest(self, n_columns: int) -> int:
        """Fewest values after the first rows, as many as parameters."""
        return len(self.model_places) + n_columns


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """Series of similar length, adjusted and scaled."""

    units: np.ndarray  # (N,)
    values: np.ndarray  # (N, T), from the first value on, of mean size one; NaN after the end
    scale: np.ndarray  # (N,)
    first: np.ndarray  # (N,), row of the first value
    kind: np.ndarray  # (N,), as the following of `Season`
    statistic: np.ndarray  # (N,)
    indices: np.ndarray  # (N, m)
    columns: Columns | None = None  # from the first value on, over a multiplicative season

    @property
    def kept(self) -> tuple[int, ...]:
        """Positions of the exogenous columns with a coefficient."""
        return () if self.columns is None else self.columns.kept

    def rest(self, slopes: np.ndarray) -> np.ndarray:
        """Values (N, T) less the effects of columns with coefficients (N, k)."""
        if self.columns is None:
            return self.values
        return self.values - np.einsum("ntk,nk->nt", self.columns.values, slopes)


def samples(
    choices: Choices, panel: Panel, given: np.ndarray | None
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Yield samples of the units of a panel, with the reasons of refused units.

    The season is that of the series less the effects of exogenous columns, at `given` parameters
    (N, k), or in alternation with their estimate.
    """
    for units in batches(panel):
        raw, exog = unit_data(panel, units)
        first = first_rows(raw)
        values = from_row(raw, first)
        for kept, group in _groups(choices, exog, np.isfinite(raw), given is not None):
            refused = _refusals(choices, values[group], len(kept))
            refused |= crowded(np.isfinite(values[group]).sum(1), len(choices.regressors))
            fine = np.delete(group, list(refused))
            reasons = {int(units[group[i]]): reason for i, reason in refused.items()}
            if not len(fine):
                yield None, reasons
                continue
            of_group = units[fine], values[fine], first[fine]
            if exog is None:
                yield _adjusted(choices, *of_group, None, None), reasons
                continue
            columns = columns_of(exog[fine], np.isfinite(raw[fine]), kept, given is not None)
            moved = [from_row(part, first[fine]) for part in np.moveaxis(columns.values, 2, 0)]
            # Zeros after the end are harmless: there are no values either.
            shape = (*values[fine].shape, len(kept))
            table = np.nan_to_num(np.stack(moved, 2)) if moved else np.zeros(shape)
            columns = replace(columns, values=table)
            if given is not None:
                slopes = columns.inner(given[units[fine]][:, choices.slopes])
                yield _adjusted(choices, *of_group, columns, slopes), reasons
                continue
            slopes = first_slopes(values[fine], table, choices.period)
            sample = _adjusted(choices, *of_group, columns, slopes)
            for _ in range(TURNS if (sample.kind != NONE).any() and kept else 0):
                slopes = search(choices, sample).slopes * sample.scale[:, None]
                sample = _adjusted(choices, *of_group, columns, slopes)
            yield _with_positive_season(sample, reasons)


def _with_positive_season(
    sample: Sample, reasons: dict[int, str]
) -> tuple[Sample | None, dict[int, str]]:
    """Drop series with a multiplicative index that is not positive, and add the reasons.

    Values less the effects of columns may be negative even if the values are positive.
    """
    lowest = sample.indices.min(1)
    bad = np.flatnonzero((sample.kind == MULTIPLIED) & (lowest <= 0))
    if not len(bad):
        return sample, reasons
    refused = {
        int(sample.units[i]): "a multiplicative season needs positive indices; of the series less "
        f"the effects of its exogenous columns one is {lowest[i]:g}. Take seasonal='add'"
        for i in bad
    }
    fine = np.delete(np.arange(len(lowest)), bad)
    return (sample.select(fine) if len(fine) else None), reasons | refused


def _groups(
    choices: Choices, exog: np.ndarray | None, seen: np.ndarray, known: bool
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield each set of kept columns with its series (n,)."""
    if exog is None:
        return iter([((), np.arange(len(seen)))])
    if known:
        return iter([(tuple(range(exog.shape[2])), np.arange(len(seen)))])
    period = choices.period if choices.seasonal in ("add", "mul") else 1
    base = known_part(seen.shape[1], trend=False, period=period)
    return by_kept(independent_columns(exog, seen, base))


def _adjusted(
    choices: Choices,
    units: np.ndarray,
    values: np.ndarray,
    first: np.ndarray,
    columns: Columns | None,
    slopes: np.ndarray | None,
) -> Sample:
    """Sample of series, adjusted by the season of the values less the effects of columns."""
    rest = values
    if columns is not None and slopes is not None:
        rest = values - np.einsum("ntk,nk->nt", columns.values, slopes)
    season = season_of(rest, choices.period, choices.seasonal)
    terms, factors = season.components(np.arange(values.shape[1]))
    adjusted = without_rounding((values - terms) / factors)
    if columns is not None:
        columns = replace(columns, values=columns.values / factors[:, :, None])
    scale = np.nanmean(np.abs(adjusted), 1)
    scale = np.where(scale > 0, scale, 1.0)  # all values are zero
    # Indices count from the first row of the panel, missing or not.
    places = (np.arange(choices.period) - first[:, None]) % choices.period
    return Sample(
        units, adjusted / scale[:, None], scale, first, season.kind, season.statistic,
        np.take_along_axis(season.indices, places, 1), columns,
    )  # fmt: skip


def _refusals(choices: Choices, values: np.ndarray, n_columns: int) -> dict[int, str]:
    """Reasons, by number, to refuse series that begin with a value."""
    reasons: dict[int, str] = {}
    seen, span = np.isfinite(values), rows_to_last_value(values)
    n_obs = seen[:, GIVEN:].sum(1)
    fewest = choices.fewest(n_columns)
    for i in np.flatnonzero(n_obs < fewest):
        reasons[int(i)] = (
            f"a theta model with {fewest} parameters needs at least {fewest} "
            f"values after the first {GIVEN} rows; the series has {n_obs[i]}. Give more rows"
        )
    if choices.seasonal in ("add", "mul"):
        for i in np.flatnonzero(span < 2 * choices.period):
            reasons.setdefault(
                int(i),
                f"a season of {choices.period} rows is estimated from at least "
                f"{2 * choices.period}; the series has {span[i]}. Take seasonal='auto', which "
                "leaves it out there",
            )
    if choices.seasonal == "mul":
        lowest = np.where(seen, values, np.inf).min(1)
        for i in np.flatnonzero(lowest <= 0):
            reasons.setdefault(
                int(i),
                f"a multiplicative season needs positive values; the lowest is {lowest[i]:g}. "
                "Take seasonal='add'",
            )
    return reasons


class Search(NamedTuple):
    """Optima of the search for N units, for scaled series."""

    params: np.ndarray  # (N, 3), level, alpha and theta
    sigma2: np.ndarray | None  # (N,) given variances; None if estimated
    line: np.ndarray  # (N, 2), A and B of the line through all rows
    iterations: np.ndarray  # (N,), as the next three
    starts: np.ndarray
    agreement: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray  # (N, 3)
    unidentified: np.ndarray  # (N, 3)
    slopes: np.ndarray  # (N, k), coefficients of exogenous columns


def search(choices: Choices, sample: Sample) -> Search:
    """Find the highest maximum of each series."""
    return _with_columns(choices, sample) if sample.kept else _without_columns(choices, sample)


def _with_columns(choices: Choices, sample: Sample) -> Search:
    """Climb in all parameters, from coefficients in differences and in levels."""
    assert sample.columns is not None
    # Differences suit a series that wanders, levels one that does not.
    ends, values = zip(
        *(
            _climbed(choices, sample, first_slopes(sample.values, sample.columns.values, lag))
            for lag in (1, 0)
        ),
        strict=True,
    )
    reached = np.stack(values)
    best, number = dict[str, Any](), reached.argmax(0)
    for name in Search._fields:
        parts = [getattr(part, name) for part in ends]
        best[name] = None if parts[0] is None else np.stack(parts)[number, np.arange(len(number))]
    starts = np.full(len(number), len(reached))
    return Search(**best | {"starts": starts, "agreement": agreement_of(reached)})


def _climbed(choices: Choices, sample: Sample, slopes: np.ndarray) -> tuple[Search, np.ndarray]:
    """Optimum of a climb from coefficients (N, k), and its log-likelihoods (N,).

    The start alternates between the maximum for the series less the effects of its columns, and the
    innovations regression there.
    """
    assert sample.columns is not None
    regression = Regression(
        sample.values, sample.columns.values, choices.dynamic, choices.theta, choices.estimated
    )
    for _ in range(TURNS):
        rest = replace(sample, values=sample.rest(slopes), columns=None)
        inner = _without_columns(choices, rest)
        slopes = regression.regressed(inner.params)
    ends = regression.climb(inner.params, slopes)
    free = [choices.estimated, True, choices.theta is None]
    line = np.stack([part[:, -1] for part in lines(sample.rest(ends.slopes))], 1)
    end = inner._replace(
        params=ends.params, slopes=ends.slopes, line=line, iterations=ends.best.iterations,
        converged=ends.best.converged, at_bound=ends.best.at_bound[:, :3] & free,
    )  # fmt: skip
    return end, ends.best.value


def _without_columns(choices: Choices, sample: Sample) -> Search:
    """Climb from the maxima of a grid of alphas to the highest maximum of each series."""
    n = len(sample.units)
    likelihood = Likelihood(sample.values, choices.dynamic, choices.theta, choices.estimated)
    nodes, grid = likelihood.grid()
    local = grid > grid.max(0) - MARGIN
    local[1:] &= grid[1:] >= grid[:-1]
    local[:-1] &= grid[:-1] > grid[1:]
    node, series = np.nonzero(local)
    ends = maximise(
        likelihood.search_in(series), nodes[node][:, None], lower=ALPHA[0], upper=ALPHA[1],
        scoring=0, tol=TOLERANCE,
    )  # fmt: skip
    # Every series has a maximum on the grid; sorted so, its highest optimum comes last.
    order = np.lexsort((ends.value, series))
    best = order[np.flatnonzero(np.diff(series[order], append=n))]
    alpha, at_bound, unidentified = ends.params[best, 0], *np.zeros((2, n, 3), bool)
    at_bound[:, 1] = ends.at_bound[best, 0]
    optimum = likelihood.best(alpha)
    at_bound[:, 0] = optimum.limited
    level, theta = optimum.start + (1 - optimum.share) * likelihood.first, choices.theta
    if theta is None:
        theta = 1 / np.maximum(1 - optimum.share, 1 / THETA[1])
        theta[optimum.bounded & (theta > 2)] = THETA[1]  # the bound itself, without rounding
        at_bound[:, 2], unidentified[:, 2] = optimum.bounded, ~optimum.identified
    heights = np.full((local.sum(0).max(), n), -np.inf)
    heights[np.cumsum(local, 0)[node, series] - 1, series] = ends.value
    return Search(
        np.stack([level, alpha, np.broadcast_to(theta, n)], 1), None, likelihood.line,
        ends.iterations[best], local.sum(0), agreement_of(heights), ends.converged[best],
        at_bound, unidentified, np.zeros((n, 0)),
    )  # fmt: skip


def given(choices: Choices, sample: Sample, params: np.ndarray) -> Search:
    """Search result from given parameters (N, k) in the units of the data."""
    n, nothing = len(params), np.zeros(len(params), np.int64)
    full = np.empty((n, 4))
    full[:, 2] = choices.theta
    full[:, choices.free] = params[:, choices.model_places]
    level, alpha, theta, sigma2 = full.T
    for name, values, legal, what in (
        ("alpha", alpha, (alpha > 0) & (alpha < 1), "above 0 and below 1"),
        ("theta", theta, theta >= 1, "at least 1"),
        ("sigma2", sigma2, sigma2 > 0, "positive"),
    ):
        if not legal.all():
            raise ValueError(f"{name} must be {what}; got {values[~legal][0]:g}")
    slopes = np.zeros((n, 0))
    if sample.columns is not None:
        slopes = sample.columns.inner(params[:, choices.slopes]) / sample.scale[:, None]
    rest = sample.rest(slopes)
    if not choices.estimated:
        level = rest[:, 0] * sample.scale / theta
    A, B = lines(rest)
    no = np.zeros((n, 3), bool)
    return Search(
        np.stack([level / sample.scale, alpha, theta], 1), sigma2 / sample.scale**2,
        np.stack([A[:, -1], B[:, -1]], 1), nothing, nothing, nothing, np.ones(n, bool), no, no,
        slopes,
    )  # fmt: skip


def inferred(
    choices: Choices, sample: Sample, ends: Search
) -> tuple[Estimates, dict[str, np.ndarray]]:
    """Estimates in the units of the data, and the constants of the likelihood.

    Derivatives are deferred.
    """
    n, scale = len(sample.units), sample.scale
    n_obs, rest = np.isfinite(sample.values[:, GIVEN:]).sum(1), sample.rest(ends.slopes)
    line = None if choices.dynamic else ends.line
    square = squares(rest, ends.params, line)
    reach = np.nansum((sample.values - sample.values[:, :1]) ** 2, 1)
    exact = (square <= np.maximum(PERFECT * n_obs, ROUNDED * reach)) & (ends.sigma2 is None)
    sigma2 = np.maximum(square / n_obs, PERFECT) if ends.sigma2 is None else ends.sigma2
    loglik = -0.5 * (n_obs * np.log(2 * math.pi * sigma2) + square / sigma2)
    units = np.stack([scale, np.ones(n), np.ones(n), scale**2], 1)[:, choices.free]
    variance = np.where(exact, 0.0, sigma2)
    natural, fixed = np.zeros((n, len(choices.names))), np.ones((n, len(choices.names)), bool)
    natural[:, choices.model_places] = (
        np.column_stack([ends.params, variance])[:, choices.free] * units
    )
    imposed = np.column_stack([ends.at_bound | ends.unidentified, np.zeros(n, bool)])
    fixed[:, choices.model_places] = imposed[:, choices.free]
    if sample.columns is not None:
        places = [choices.slopes[place] for place in sample.kept]
        natural[:, places] = sample.columns.slopes(ends.slopes) * scale[:, None]
        fixed[:, places] = False
    fixed[exact] = True
    n_params = np.full(n, choices.fewest(len(sample.kept))) if choices.regressors else None
    estimates = Estimates(
        names=choices.names,
        params=natural,
        loglik=loglik - n_obs * np.log(scale),
        n_obs=n_obs,
        **deferred(_derivatives, choices, sample, ends, line, sigma2, units),
        iterations=ends.iterations,
        converged=ends.converged,
        fixed=fixed,
        messages=tuple(
            (EXACT,)
            if exact[i]
            else search_messages(
                {
                    "On the boundary": list(compress(NAMES, ends.at_bound[i])),
                    "Not identified": list(compress(NAMES, ends.unidentified[i])),
                },
                bool(ends.converged[i]),
            )
            for i in range(n)
        ),
        starts=ends.starts,
        agreement=ends.agreement,
        n_params=n_params,
    )
    level = ends.params[:, 0] * scale
    constants = {
        "start": np.column_stack([sample.first, level, ends.line * scale[:, None]]),
        "season": np.column_stack([sample.kind, sample.statistic, sample.indices]),
        "spread": np.ones(n) if ends.sigma2 is not None else _spread(choices, sample, n_obs),
    }
    return estimates, constants


def _spread(choices: Choices, sample: Sample, n_obs: np.ndarray) -> np.ndarray:
    """Variance (N,) of forecast errors over sigma2, the mean square of residuals.

    The degrees of freedom are n less the parameters, the line through all rows and the seasonal
    indices, which leaves half in short series.
    """
    used = choices.fewest(len(sample.kept)) - 1 + 2 * (not choices.dynamic)
    indices = np.where(sample.kind != NONE, choices.period - 1, 0)
    return variance_factor(n_obs, used + indices)


def _derivatives(
    choices: Choices,
    sample: Sample,
    ends: Search,
    line: np.ndarray | None,
    sigma2: np.ndarray,
    units: np.ndarray,
) -> dict[str, np.ndarray]:
    """Gradient and matrices in the units of the data."""
    if sample.columns is not None:
        return _derivatives_with_columns(choices, sample, ends, sigma2, units)
    free, params = choices.free, ends.params
    parts = moments(sample.values, params, line, sigma2, choices.estimated)._asdict()
    square = units[:, :, None] * units[:, None]
    gradient = parts.pop("gradient")[:, free] / units
    matrices = {name: part[:, free][:, :, free] / square for name, part in parts.items()}
    return {"gradient": gradient, **matrices}


def _derivatives_with_columns(
    choices: Choices, sample: Sample, ends: Search, sigma2: np.ndarray, units: np.ndarray
) -> dict[str, np.ndarray]:
    """Gradient and matrices in the units of the data, of series with exogenous columns."""
    assert sample.columns is not None
    n, kept, k = len(sample.units), len(sample.kept), len(choices.names)
    regression = Regression(
        sample.values, sample.columns.values, choices.dynamic, choices.theta, choices.estimated
    )
    parts = regression.moments(ends.params, ends.slopes, sigma2)._asdict()
    # From the parameters of the scaled series to the named ones.
    inner = [*np.flatnonzero(choices.free[:-1]), 3 + kept]
    turn = np.zeros((n, k, 4 + kept))
    turn[:, choices.model_places, inner] = 1 / units
    places = np.array([choices.slopes[place] for place in sample.kept], int)
    turn[:, places[:, None], np.arange(3, 3 + kept)] = (
        sample.columns.backwards / sample.scale[:, None, None]
    )
    gradient = (turn @ parts.pop("gradient")[:, :, None])[:, :, 0]
    matrices = {name: turn @ part @ turn.swapaxes(1, 2) for name, part in parts.items()}
    return {"gradient": gradient, **matrices}
