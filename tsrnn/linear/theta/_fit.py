"""Theta models of many series at once: seasonal adjustment, the maximum of each, its estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.linear._estimates import EXACT, PERFECT, Deferred, Estimates
from tsrnn.linear._family import variance_factor
from tsrnn.linear._optimise import agreement_of, maximise
from tsrnn.linear._samples import without_rounding
from tsrnn.linear.arma._prepare import batches, unit_data
from tsrnn.linear.theta._cells import GIVEN
from tsrnn.linear.theta._likelihood import (
    ALPHA,
    THETA,
    Likelihood,
    lines,
    moments,
    squares,
)
from tsrnn.linear.theta._season import NONE, rows_of_each, season_of

MARGIN = 3.0  # below the highest node, of a maximum of the grid that is climbed
TOLERANCE = 1e-12  # decrement: 1e-6 standard errors
# Sum of squared errors, over that of the values less the first, of a line: theta ends at 1e10, so
# that it is fitted to ten digits.
ROUNDED = 1e-20
NAMES = ("level", "alpha", "theta", "sigma2")


class Choices(NamedTuple):
    """Arguments of a theta model.

    Attributes
    ----------
    theta : float or None
        None to estimate it.
    dynamic : bool
    seasonal : {"auto", "none", "add", "mul"}
    period : int
    estimated : bool
        Whether the level before the first row is.
    """

    theta: float | None
    dynamic: bool
    seasonal: str
    period: int
    estimated: bool

    @property
    def free(self) -> np.ndarray:
        """Mask (4,) of those of `NAMES` that are parameters."""
        return np.array([self.estimated, True, self.theta is None, True])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(name for name, here in zip(NAMES, self.free, strict=True) if here)

    @property
    def fewest(self) -> int:
        """Values behind the first rows below which there is nothing to estimate of."""
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """Series of about one length, adjusted and scaled.

    Attributes
    ----------
    units : integer array of shape (N,)
    values : array of shape (N, T)
        From the first value on, of mean size one; NaN where missing and after the end.
    scale : array of shape (N,)
    first : integer array of shape (N,)
        Row of the first value.
    kind, statistic : arrays of shape (N,)
    indices : array of shape (N, m)
        Of the `Season`.
    """

    units: np.ndarray
    values: np.ndarray
    scale: np.ndarray
    first: np.ndarray
    kind: np.ndarray
    statistic: np.ndarray
    indices: np.ndarray


def samples(choices: Choices, panel: Panel) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Samples of the units of a panel, and reasons not to fit some."""
    for units in batches(panel):
        raw, _ = unit_data(panel, units)
        first = first_rows(raw)
        values = from_row(raw, first)
        refused = _refusals(choices, values)
        fine = np.setdiff1d(np.arange(len(units)), list(refused))
        reasons = {int(units[i]): reason for i, reason in refused.items()}
        if not len(fine):
            yield None, reasons
            continue
        season = season_of(values[fine], choices.period, choices.seasonal)
        terms, factors = season.components(np.arange(values.shape[1]))
        adjusted = without_rounding((values[fine] - terms) / factors)
        scale = np.nanmean(np.abs(adjusted), 1)
        scale = np.where(scale > 0, scale, 1.0)  # of zeros alone
        # Indices count from the first row of the panel, whether it has a value or not.
        places = (np.arange(choices.period) - first[fine, None]) % choices.period
        yield Sample(
            units[fine], adjusted / scale[:, None], scale, first[fine], season.kind,
            season.statistic, np.take_along_axis(season.indices, places, 1),
        ), reasons  # fmt: skip


def first_rows(values: np.ndarray) -> np.ndarray:
    """Row (N,) of the first value of each series (N, T); 0 without any."""
    return np.isfinite(values).argmax(1)


def from_row(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Series (N, T) from rows `first` (N,) on, NaN after their ends."""
    if not first.any():
        return values
    rows = np.arange(values.shape[1]) + first[:, None]
    inside = (rows >= 0) & (rows < values.shape[1])
    shifted = np.take_along_axis(values, np.where(inside, rows, 0), 1)
    return np.where(inside, shifted, np.nan)


def _refusals(choices: Choices, values: np.ndarray) -> dict[int, str]:
    """Reasons, by number, not to fit series that begin with a value."""
    reasons: dict[int, str] = {}
    seen, span = np.isfinite(values), rows_of_each(values)
    n_obs = seen[:, GIVEN:].sum(1)
    for i in np.flatnonzero(n_obs < choices.fewest):
        reasons[int(i)] = (
            f"a theta model with {choices.fewest} parameters needs at least {choices.fewest} "
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
    """Ends of the search for N units, of scaled series.

    Attributes
    ----------
    params : array of shape (N, 3)
        Level, alpha and theta.
    sigma2 : array of shape (N,) or None
        Where it is given.
    line : array of shape (N, 2)
        A and B through all rows.
    iterations, starts, agreement : integer arrays of shape (N,)
    converged : boolean array of shape (N,)
    at_bound, unidentified : boolean arrays of shape (N, 3)
    """

    params: np.ndarray
    sigma2: np.ndarray | None
    line: np.ndarray
    iterations: np.ndarray
    starts: np.ndarray
    agreement: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray
    unidentified: np.ndarray


def search(choices: Choices, sample: Sample) -> Search:
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
    # Every series has a maximum on the grid; in this order its highest end is its last.
    order = np.lexsort((ends.value, series))
    best = order[np.flatnonzero(np.diff(series[order], append=n))]
    alpha, at_bound, unidentified = ends.params[best, 0], *np.zeros((2, n, 3), bool)
    at_bound[:, 1] = ends.at_bound[best, 0]
    optimum = likelihood.best(alpha)
    at_bound[:, 0] = optimum.limited
    level, theta = optimum.start + (1 - optimum.share) * likelihood.first, choices.theta
    if theta is None:
        theta = 1 / np.maximum(1 - optimum.share, 1 / THETA[1])
        theta[optimum.bounded & (theta > 2)] = THETA[1]  # not what rounding makes of it
        at_bound[:, 2], unidentified[:, 2] = optimum.bounded, ~optimum.identified
    heights = np.full((local.sum(0).max(), n), -np.inf)
    heights[np.cumsum(local, 0)[node, series] - 1, series] = ends.value
    return Search(
        np.stack([level, alpha, np.broadcast_to(theta, n)], 1), None, likelihood.line,
        ends.iterations[best], local.sum(0), agreement_of(heights), ends.converged[best],
        at_bound, unidentified,
    )  # fmt: skip


def given(choices: Choices, sample: Sample, params: np.ndarray) -> Search:
    """Parameters (N, k), in the units of the data, in the place of the ends of a search."""
    n, nothing = len(params), np.zeros(len(params), np.int64)
    full = np.empty((n, 4))
    full[:, 2] = choices.theta
    full[:, choices.free] = params
    level, alpha, theta, sigma2 = full.T
    for name, values, legal, what in (
        ("alpha", alpha, (alpha > 0) & (alpha < 1), "above 0 and below 1"),
        ("theta", theta, theta >= 1, "at least 1"),
        ("sigma2", sigma2, sigma2 > 0, "positive"),
    ):
        if not legal.all():
            raise ValueError(f"{name} must be {what}; got {values[~legal][0]:g}")
    if not choices.estimated:
        level = sample.values[:, 0] * sample.scale / theta
    A, B = lines(sample.values)
    no = np.zeros((n, 3), bool)
    return Search(
        np.stack([level / sample.scale, alpha, theta], 1), sigma2 / sample.scale**2,
        np.stack([A[:, -1], B[:, -1]], 1), nothing, nothing, nothing, np.ones(n, bool), no, no,
    )  # fmt: skip


def inferred(
    choices: Choices, sample: Sample, ends: Search
) -> tuple[Estimates, dict[str, np.ndarray]]:
    """Estimates in the units of the data, and what the likelihood takes as known.

    Derivatives are computed when they are asked for.
    """
    n, scale = len(sample.units), sample.scale
    n_obs = np.isfinite(sample.values[:, GIVEN:]).sum(1)
    line = None if choices.dynamic else ends.line
    square = squares(sample.values, ends.params, line)
    reach = np.nansum((sample.values - sample.values[:, :1]) ** 2, 1)
    exact = (square <= np.maximum(PERFECT * n_obs, ROUNDED * reach)) & (ends.sigma2 is None)
    sigma2 = np.maximum(square / n_obs, PERFECT) if ends.sigma2 is None else ends.sigma2
    loglik = -0.5 * (n_obs * np.log(2 * math.pi * sigma2) + square / sigma2)
    units = np.stack([scale, np.ones(n), np.ones(n), scale**2], 1)[:, choices.free]
    variance = np.where(exact, 0.0, sigma2)
    natural = np.column_stack([ends.params, variance])[:, choices.free] * units
    fixed = np.column_stack([ends.at_bound | ends.unidentified, np.zeros(n, bool)])
    fixed[exact] = True
    derivatives: Any = Deferred(_derivatives, choices, sample, ends.params, line, sigma2, units)
    estimates = Estimates(
        names=choices.names,
        params=natural,
        loglik=loglik - n_obs * np.log(scale),
        n_obs=n_obs,
        gradient=derivatives,
        hessian=derivatives,
        opg=derivatives,
        information=derivatives,
        iterations=ends.iterations,
        converged=ends.converged,
        fixed=fixed[:, choices.free],
        messages=tuple((EXACT,) if exact[i] else _messages(ends, i) for i in range(n)),
        starts=ends.starts,
        agreement=ends.agreement,
    )
    level = ends.params[:, 0] * scale
    constants = {
        "start": np.column_stack([sample.first, level, ends.line * scale[:, None]]),
        "season": np.column_stack([sample.kind, sample.statistic, sample.indices]),
        "spread": np.ones(n) if ends.sigma2 is not None else _spread(choices, sample.kind, n_obs),
    }
    return estimates, constants


def _spread(choices: Choices, kind: np.ndarray, n_obs: np.ndarray) -> np.ndarray:
    """Variance of errors ahead over sigma2 (N,), which is the mean square of those fitted.

    Of n errors as many degrees of freedom are left as there are, less the parameters, the line
    through all rows and the indices of a season that adjust to them: of short series half.
    """
    used = len(choices.names) - 1 + 2 * (not choices.dynamic)
    indices = np.where(kind != NONE, choices.period - 1, 0)
    return variance_factor(n_obs, used + indices)


def _derivatives(
    choices: Choices,
    sample: Sample,
    params: np.ndarray,
    line: np.ndarray | None,
    sigma2: np.ndarray,
    units: np.ndarray,
) -> dict[str, np.ndarray]:
    """Gradient and matrices in the units of the data."""
    free = choices.free
    parts = moments(sample.values, params, line, sigma2, choices.estimated)._asdict()
    square = units[:, :, None] * units[:, None]
    gradient = parts.pop("gradient")[:, free] / units
    matrices = {name: part[:, free][:, :, free] / square for name, part in parts.items()}
    return {"gradient": gradient, **matrices}


def _messages(ends: Search, i: int) -> tuple[str, ...]:
    """Warnings about one unit."""
    lines = []
    for what, places in (("On the boundary", ends.at_bound), ("Not identified", ends.unidentified)):
        names = [name for name, here in zip(NAMES, places[i], strict=False) if here]
        if names:
            lines.append(
                f"{what}: {', '.join(names)}. These have no standard errors, and those of the "
                "others take them as known."
            )
    if not ends.converged[i]:
        lines.append("The likelihood was not maximised to tolerance.")
    return tuple(lines)
