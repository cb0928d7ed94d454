"""Forecasts from a memory: points, their additive parts, many origins at once, sample paths."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.contract import Origins, positive_integer
from tsrnn.data import Layout, Panel
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._intervals import Calibration, learned_bounds
from tsrnn.forecasters._memory import Memory, carried_on, continued_units, run_filter
from tsrnn.forecasters._model import ForecastModel, Parts
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import Units, by_series

GRID = np.linspace(0.005, 0.995, 100)  # probabilities between which learned quantiles are read


class Ahead(NamedTuple):
    """The next horizon of all units of a memory, in float64.

    Attributes
    ----------
    model : ForecastModel
        A copy in float64, so that the parts sum to the forecast to rounding.
    parts : Parts
        Of standardised forecasts.
    spread : Tensor of shape (U, C)
        Local spread at the last row.
    states : Tensor of shape (U, hidden_size)
        Outputs of the network after the last row.
    """

    model: ForecastModel
    parts: Parts
    spread: Tensor
    states: Tensor


def look_ahead(
    model: ForecastModel, settings: Settings, memory: Memory, future: np.ndarray | None
) -> Ahead:
    """Forecast one horizon; `future` (S, h, n_known) are columns known ahead, not scaled."""
    return _next_horizon(copy.deepcopy(model).double(), settings, memory, future)


@torch.no_grad()
def _next_horizon(
    double: ForecastModel, settings: Settings, memory: Memory, future: np.ndarray | None
) -> Ahead:
    """`look_ahead` of a model that is in float64."""
    units, _ = continued_units(memory, None, settings)
    rows = units.indptr[1:] - 1
    states = double.network.outputs(memory.state[-1].double())
    ahead = None
    if future is not None:  # standardised, cut or filled to the horizon, for every unit
        exog, columns = memory.scaling.exog, [i - double.n_targets for i in double.known]
        values = (future - exog.location[0, columns]) / exog.scale[0, columns]
        steps = np.minimum(np.arange(double.horizon), future.shape[1] - 1)
        ahead = torch.as_tensor(values[:, steps]).repeat_interleave(memory.units_per_series, 0)
    parts = double.parts(units, rows, units.starts, states, ahead)
    return Ahead(double, parts, units.spread[rows], states)


def point_forecasts(
    model: ForecastModel,
    settings: Settings,
    memory: Memory,
    h: int,
    future: np.ndarray | None,
    shape: tuple[Layout, tuple[str | int, ...]],
) -> np.ndarray:
    """Forecasts (S, h, C) of transformed targets; beyond the horizon they follow their own.

    `future` (S, h, n_known) are columns known ahead, not scaled; `shape` is the layout and the
    exogenous columns of the data fitted to.
    """
    blocks, double = [], copy.deepcopy(model).double()
    for done in range(0, h, model.horizon):
        known = None if future is None else future[:, done : done + model.horizon]
        ahead = _next_horizon(double, settings, memory, known)
        point = of_series(ahead.parts.total().numpy(), memory)
        blocks.append(point[:, : h - done])
        if done + model.horizon < h:
            rows = _forecast_rows(model, memory, memory.scaling.back(point), known, shape)
            memory = carried_on(model, settings, memory, rows)
    return np.concatenate(blocks, 1)


def of_series(values: np.ndarray, memory: Memory) -> np.ndarray:
    """Transformed targets of series (S, h, C), from standardised values of units (U, h, C')."""
    return memory.scaling.target.inverse(by_series(values, len(memory.ids)))


def _forecast_rows(
    model: ForecastModel,
    memory: Memory,
    point: np.ndarray,
    known: np.ndarray | None,
    shape: tuple[Layout, tuple[str | int, ...]],
) -> Panel:
    """Forecasts as rows to continue from; columns not known ahead keep their last value."""
    layout, exog_names = shape
    n_series, h, n_targets = point.shape
    last = np.stack([part[-1, n_targets:] for part in memory.tail])
    exog = np.repeat(last[:, None], h, 1)
    if known is not None:
        exog[..., [i - model.n_targets for i in model.known]] = known[:, :h]
    return Panel(
        values=point.reshape(-1, n_targets),
        indptr=np.arange(n_series + 1) * h,
        ids=memory.ids,
        times=np.repeat(memory.last_times, h),
        exog=exog.reshape(n_series * h, -1),
        exog_names=exog_names,
        layout=layout,
    )


def within_horizon(what: str, h: int | None, horizon: int) -> int:
    """`h`, or the horizon by default; an error of the method `what` if h exceeds it."""
    h = horizon if h is None else positive_integer("h", h)
    if h > horizon:
        raise ValueError(
            f"{what} needs h of at most the fitted horizon, {horizon}; got {h}. Fit with a larger "
            "horizon"
        )
    return h


class Rolling(NamedTuple):
    """Forecasts from n origins, standardised.

    Attributes
    ----------
    points : ndarray of shape (n, h, C)
    spreads : ndarray of shape (n, 1, C)
        Local spreads.
    bounds : dict
        By level, ends of the intervals (n, h, C) less the point, over the spread.
    """

    points: np.ndarray
    spreads: np.ndarray
    bounds: dict[float, tuple[np.ndarray, np.ndarray]]


@torch.no_grad()
def rolling_forecasts(
    model: ForecastModel,
    memory: Memory,
    units: Units,
    begin: Tensor,
    origins: Origins,
    h: int,
    levels: list[float],
) -> Rolling:
    """Forecast from many origins in one pass over new rows.

    `memory` is that before the new rows, `units` are of remembered rows and new ones, the first
    of which is `begin` (U,). `levels` are those of intervals of a learned distribution.
    """
    per_series = memory.units_per_series
    counts = torch.as_tensor(np.repeat(origins.counts, per_series))
    place = counts.cumsum(0) - counts  # of the first origin of each unit
    shape = int(counts.sum()), h, model.n_targets
    points, spreads = np.full(shape, np.nan), np.full((shape[0], 1, shape[2]), np.nan)
    bounds = {level: (np.full(shape, np.nan), np.full(shape, np.nan)) for level in levels}

    def visit(rows: Tensor, unit: Tensor, states: Tensor) -> None:
        step = rows - begin[unit] + 1
        is_origin = (step % origins.step == 0) & (step // origins.step < counts[unit])
        at = place[unit][is_origin] + step[is_origin] // origins.step
        rows, unit, states = rows[is_origin], unit[is_origin], states[is_origin]
        forecast = model.parts(units, rows, units.starts[unit], states).total()
        points[at] = forecast[:, :h].numpy()
        spreads[at] = units.spread[rows][:, None].numpy()
        for level, ends in learned_bounds(model, states, levels).items():
            for bound, end in zip(bounds[level], ends, strict=True):
                bound[at] = end[:, :h]

    # The first origin of each unit lies before its new rows.
    visit(begin - 1, torch.arange(len(units)), model.network.outputs(memory.state[-1]))
    run_filter(model, units, begin, memory.state, begin=begin, visit=visit)
    # Units are series by series, target by target: gather the targets of an origin.
    order = place.numpy().reshape(-1, per_series)[origins.series] + origins.ordinal[:, None]

    def gathered(values: np.ndarray) -> np.ndarray:
        """Values (n, h, C) of origins of series, from those of units (n C / C', h, C')."""
        return values if per_series == 1 else np.moveaxis(values[..., 0][order], 1, 2)

    ends = {level: (gathered(low), gathered(high)) for level, (low, high) in bounds.items()}
    return Rolling(gathered(points), gathered(spreads), ends)


def contribution_frame(
    ahead: Ahead,
    best_epochs: list[int],
    memory: Memory,
    names: tuple[str | int, ...],
    id_name: str,
) -> pd.DataFrame:
    """Additive parts of the next horizon: a row a series, target and step, a column a part.

    In the units of the (transformed) data. The network is split by block where its head sums
    blocks; networks that were never trained, best in epoch 0, are not split: where there is no
    other, "network" is one part, zero where the model starts as the level or the linear path.
    """
    named = _additive_parts(ahead, best_epochs)
    target, n_steps = memory.scaling.target, ahead.model.horizon
    columns = {}
    for name, part in named.items():
        values = by_series(part.numpy(), len(memory.ids)) * target.scale[:, None]
        if name == "level":
            values = values + target.location[:, None]
        columns[name] = np.moveaxis(values, 2, 1).ravel()
    steps = range(1, n_steps + 1)
    if len(memory.ids) * len(names) == 1:
        return pd.DataFrame(columns, index=pd.Index(steps, name="step"))
    index = pd.MultiIndex.from_product(
        [memory.ids, names, steps], names=[id_name, "target", "step"]
    )
    return pd.DataFrame(columns, index=index)


@torch.no_grad()
def _additive_parts(ahead: Ahead, best_epochs: list[int]) -> dict[str, Tensor]:
    """Parts of standardised forecasts by name, each (U, h, C), summing to them."""
    model, parts, states = ahead.model, ahead.parts, ahead.states
    network = model.network
    shape = (model.horizon, model.n_targets)
    scale = ahead.spread[:, None, :]
    named = {"level": parts.level}
    if model.linear is not None:
        named["linear path"] = parts.linear
    if len(model.futures):
        named["known ahead"] = parts.future
    if not (network.sums_blocks and any(best_epochs)):
        named["network"] = scale * network.head(states).unflatten(-1, shape)
        return named
    blocks = network.contributions(states)  # (U, K, h C), the blocks of network after network
    per_network = blocks.shape[1] // len(best_epochs)
    for k in range(blocks.shape[1]):
        if best_epochs[k // per_network]:
            named[f"block {k + 1}"] = scale * blocks[:, k].unflatten(-1, shape)
    named["constant"] = scale * network.constant().unflatten(0, shape)
    return named


def drawn_paths(
    model: ForecastModel,
    calibration: Calibration,
    ahead: Ahead,
    units: np.ndarray,
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Standardised paths (U, n, h, C): the forecast and errors drawn around it.

    `units` (U,) are positions among the units fitted to; -1 for others.
    """
    errors = _drawn_errors(calibration, units, n, rng)
    if calibration.method in HEADS:
        errors = _learned_errors(model, ahead.states.float(), errors, calibration)
    return ahead.parts.total()[:, None].numpy() + ahead.spread.numpy()[:, None, None] * errors


def _drawn_errors(
    calibration: Calibration, units: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Trajectories (U, n, h, C) of the validation part's scaled errors, drawn with replacement.

    All steps of a trajectory come from one origin, so that errors of different steps go together
    as they did there.

    Raises
    ------
    ValueError
        If the validation part has no origin with errors of all steps.
    """
    errors = calibration.errors
    complete = np.isfinite(errors).all((2, 3))
    pooled = errors[complete]
    if not len(pooled):
        raise ValueError(
            "sample paths are made of validation errors of all steps from one origin; the "
            "validation part has none. Fit with a larger val_size"
        )
    drawn = np.empty((len(units), n, *errors.shape[2:]))
    for i, unit in enumerate(units):
        sample = pooled if len(errors) == 1 or unit < 0 else errors[unit][complete[unit]]
        sample = sample if len(sample) else pooled
        drawn[i] = sample[rng.integers(len(sample), size=n)]
    return drawn


@torch.no_grad()
def _learned_errors(
    model: ForecastModel, states: Tensor, drawn: np.ndarray, calibration: Calibration
) -> np.ndarray:
    """Errors (U, n, h, C) of learned distributions, at the ranks of drawn ones.

    A drawn trajectory says how likely the error of each step was among the validation errors;
    the learned distribution says how large an error of that probability is now.
    """
    learned = model.quantiles(states, GRID.tolist()).numpy()
    errors = np.empty_like(drawn)
    for k, c in np.ndindex(drawn.shape[2:]):
        observed = calibration.errors[..., k, c]
        known = np.sort(observed[np.isfinite(observed)])
        below = np.searchsorted(known, drawn[..., k, c], "left")
        upto = np.searchsorted(known, drawn[..., k, c], "right")
        # Mid-ranks: equal errors share theirs.
        ranks = (below + upto) / (2 * len(known))
        for i in range(len(drawn)):
            errors[i, :, k, c] = np.interp(ranks[i], GRID, learned[i, k, c])
    return errors
