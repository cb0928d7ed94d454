"""Fit of intermittent demand: samples, first states, smoothing parameters, and inference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.linear._estimates import Estimates, deferred, search_messages
from tsrnn.linear._optimise import maximise
from tsrnn.linear.arma._prepare import batches, unit_data
from tsrnn.linear.intermittent._likelihood import LARGEST_SHAPE, Likelihood

# Grid of starting values, for each of the two smoothing parameters separately.
GRID = (0.0, 0.03, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 0.95)
MOST = 50  # iterations
EQUAL = "All demands are equal: intervals have no spread of sizes, only that of occurrence."
NO_DEMAND = "There is no demand: forecasts are zero, and no parameter is estimated."
CUSTOMARY = 0.1  # smoothing parameters of a series without demand


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """Series of similar length, scaled."""

    units: np.ndarray  # (N,)
    values: np.ndarray  # (N, T), of mean size one; NaN where missing and after the end
    scale: np.ndarray  # (N,)


def samples(panel: Panel) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Yield samples of the units of a panel, with the reasons of refused units."""
    for units in batches(panel):
        values, _ = unit_data(panel, units)
        demand = values > 0
        lowest = np.nanmin(np.where(np.isfinite(values), values, np.inf), 1)
        reasons = {
            int(units[i]): f"demand must not be negative; the lowest value is {lowest[i]:g}. Take "
            "returns out of the series, or a model for values of any sign, such as ETS"
            for i in np.flatnonzero(lowest < 0)
        }
        fine = np.flatnonzero(lowest >= 0)
        if not len(fine):
            yield None, reasons
            continue
        count = demand[fine].sum(1)
        scale = np.where(demand, values, 0.0)[fine].sum(1) / np.maximum(count, 1)
        scale = np.where(count > 0, scale, 1.0)
        yield Sample(units[fine], values[fine] / scale[:, None], scale), reasons


def first_states(method: str, values: np.ndarray, initial: str) -> np.ndarray:
    """Size and interval or probability (N, 2) before the first row, by rule; NaN without demand."""
    seen, demand = np.isfinite(values), values > 0
    count = demand.sum(1)
    states = np.full((len(values), 2), np.nan)
    known = count > 0
    if initial == "first":
        at = demand.argmax(1)[:, None]
        states[known, 0] = np.take_along_axis(values, at, 1)[known, 0]
        if method == "tsb":
            first = np.take_along_axis(demand, seen.argmax(1)[:, None], 1)[:, 0]
            states[known, 1] = first[known]
        else:
            rows = np.take_along_axis(seen.cumsum(1), at, 1)[:, 0]
            states[known, 1] = rows[known]
        return states
    states[known, 0] = np.where(demand, values, 0.0).sum(1)[known] / count[known]
    share = count[known] / seen.sum(1)[known]
    states[known, 1] = share if method == "tsb" else 1 / share
    return states


class Ends(NamedTuple):
    """Optima of the search for N units."""

    params: np.ndarray  # (N, 5), of the scaled series; size 1 without demand
    iterations: np.ndarray  # (N,)
    converged: np.ndarray  # (N,)
    at_bound: np.ndarray  # (N, 5), on a bound of the search, not fixed


def search(
    method: str, initial: str, given: tuple[float | None, float | None], sample: Sample
) -> Ends:
    """Maximise the likelihood of each series; smoothing parameters may be given."""
    likelihood, n = Likelihood(method, sample.values), len(sample.units)
    start = np.zeros((n, 4))
    start[:, 2:] = first_states(method, sample.values, initial)
    idle, rows = likelihood.n_demands == 0, np.isfinite(sample.values).sum(1)
    start[idle, 2] = 1.0
    start[idle, 3] = 0.0 if method == "tsb" else rows[idle]
    # Sizes and occurrence share no parameter: the grids are searched separately.
    terms = []
    for value in GRID:
        start[:, :2] = value
        terms.append(likelihood.terms(start))
    table = np.stack(terms)
    start[:, 0] = np.array(GRID)[table[:, 1].argmin(0)]
    start[:, 1] = np.array(GRID)[table[:, 0].argmax(0)]
    lower, upper = np.zeros((n, 4)), np.ones((n, 4))
    lower[:, 2:] = upper[:, 2:] = start[:, 2:]
    if initial == "estimated":
        lower[:, 2] = np.where(sample.values > 0, sample.values, np.inf).min(1)
        upper[:, 2] = np.nanmax(sample.values, 1)
        lower[:, 3] = 1 / rows if method == "tsb" else 1.0
        upper[:, 3] = 1.0 if method == "tsb" else rows
    start[idle, :2] = CUSTOMARY
    lower[idle] = upper[idle] = start[idle]
    for place, fixed in enumerate(given):
        if fixed is not None:
            start[:, place] = lower[:, place] = upper[:, place] = fixed
    best = maximise(
        likelihood.evaluate, start, lower=lower, upper=upper, scoring=0, max_iter=MOST
    )  # fmt: skip
    shape = likelihood.shape(best.params)
    at_bound = np.column_stack([best.at_bound & (lower < upper), shape >= LARGEST_SHAPE])
    params = np.column_stack([best.params, shape])
    return Ends(params, best.iterations, best.converged, at_bound)


def inferred(
    method: str, names: tuple[str, ...], imposed: np.ndarray, sample: Sample, ends: Ends
) -> Estimates:
    """Estimates in the units of the data, with deferred derivatives.

    `imposed` (5,) marks parameters that were not estimated.
    """
    n = len(sample.units)
    likelihood = Likelihood(method, sample.values)
    scale = np.ones((n, len(names)))
    scale[:, 2] = sample.scale
    value = likelihood.values(ends.params[:, :4], ends.params[:, 4])
    idle, params = likelihood.n_demands == 0, ends.params * scale
    params[idle, 2] = 0.0
    messages = tuple(
        (NO_DEMAND,)
        if idle[i]
        else search_messages(
            {"On the boundary": list(compress(names, ends.at_bound[i, :4]))},
            bool(ends.converged[i]),
            *[EQUAL] * bool(ends.at_bound[i, 4]),
        )
        for i in range(n)
    )
    return Estimates(
        names=names,
        params=params,
        loglik=value - likelihood.n_demands * np.log(sample.scale),
        n_obs=np.isfinite(sample.values).sum(1),
        **deferred(_derivatives, likelihood, ends.params, scale),
        iterations=ends.iterations,
        converged=ends.converged,
        fixed=ends.at_bound | imposed | idle[:, None],
        messages=messages,
        # First states by rule come from the data, so that they count.
        n_params=np.full(n, len(names) - imposed[:2].sum()),
    )


def _derivatives(
    likelihood: Likelihood, params: np.ndarray, scale: np.ndarray
) -> dict[str, np.ndarray]:
    """Gradient and matrices in the units of the data."""
    gradient, opg, information = likelihood.moments(params[:, :4], params[:, 4])
    hessian = likelihood.hessian(params[:, :4], params[:, 4])
    square = scale[:, :, None] * scale[:, None]
    matrices = {"hessian": hessian, "opg": opg, "information": information}
    return {"gradient": gradient / scale} | {name: m / square for name, m in matrices.items()}
