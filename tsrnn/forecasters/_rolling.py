"""Forecasts from many origins in one pass over new rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.data import Panel
from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._intervals import learned_bounds
from tsrnn.forecasters._memory import Memory
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._units import Units


class Origins(NamedTuple):
    """Where rolling forecasts begin: at the last row known, then at every step-th new row.

    Attributes
    ----------
    counts : integer ndarray of shape (S,)
        Origins of each series.
    series : integer ndarray of shape (n,)
        Series of each origin.
    ordinal : integer ndarray of shape (n,)
        Number of the origin within its series, from 0.
    first : integer ndarray of shape (n,)
        Row of the panel that the first step forecasts.
    step : int
    """

    counts: np.ndarray
    series: np.ndarray
    ordinal: np.ndarray
    first: np.ndarray
    step: int

    def cutoffs(self, panel: Panel, last_times: np.ndarray) -> np.ndarray:
        """Last time known at each origin, (n,)."""
        return np.where(self.ordinal == 0, last_times[self.series], panel.times[self.first - 1])

    def times(self, panel: Panel, h: int) -> np.ndarray:
        """Times forecast, (n, h)."""
        return panel.times[self.first[:, None] + np.arange(h)]


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


def origins_of(panel: Panel, h: int, step: int) -> Origins:
    """Origins of the rows of a panel, each with h rows to forecast.

    Raises
    ------
    ValueError
        If a series has fewer than h rows.
    """
    shortest = int(np.argmin(panel.lengths))
    if panel.lengths[shortest] < h:
        raise ValueError(
            f"{panel.axis.where(shortest)}rolling forecasts of h={h} steps need at least {h} new "
            f"rows; there are {panel.lengths[shortest]}. Give more rows, or take a smaller h"
        )
    step = min(step, int(panel.lengths.max()))  # a longer one passes every row, too
    counts = (panel.lengths - h) // step + 1
    series = np.repeat(np.arange(len(counts)), counts)
    ordinal = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Origins(
        counts,
        series,
        ordinal,
        panel.indptr[series] + ordinal * step,
        step,
    )


def rolling_forecasts(
    model: ForecastModel,
    memory: Memory,
    units: Units,
    begin: Tensor,
    origins: Origins,
    h: int,
    levels: list[float],
) -> Rolling:
    """Forecast from all origins.

    Parameters
    ----------
    model : ForecastModel
    memory : Memory
        State before the new rows.
    units : Units
        Remembered rows, then new ones.
    begin : integer Tensor of shape (U,)
        First new row of each unit.
    origins : Origins
    h : int
    levels : list of float
        Of the intervals of a learned distribution.
    """
    per_series = memory.units_per_series
    counts = np.repeat(origins.counts, per_series)
    place = np.cumsum(counts) - counts
    visit = _Collect(model, units, begin, torch.as_tensor(counts), origins.step, h, levels)
    visit(begin - 1, torch.arange(len(units)), model.network.outputs(memory.state[-1]))
    run_filter(model, units, begin, memory.state, begin=begin, visit=visit)
    # Units are series by series, target by target: gather the targets of an origin.
    order = place.reshape(-1, per_series)[origins.series] + origins.ordinal[:, None]
    bounds = {
        level: (_together(lower, order), _together(upper, order))
        for level, (lower, upper) in visit.bounds.items()
    }
    return Rolling(_together(visit.points, order), _together(visit.spreads, order), bounds)


def _together(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """From origins of units (n C / C', h, C') to origins of series (n, h, C)."""
    return values if order.shape[1] == 1 else np.moveaxis(values[..., 0][order], 1, 2)


class _Collect:
    """Forecast where the filter passes an origin, in any order; origins unit by unit."""

    def __init__(
        self,
        model: ForecastModel,
        units: Units,
        begin: Tensor,
        counts: Tensor,
        step: int,
        h: int,
        levels: list[float],
    ) -> None:
        self._model, self._units, self._begin = model, units, begin
        self._counts, self._step, self._h = counts, step, h
        self._place = counts.cumsum(0) - counts
        n = int(counts.sum())
        self.points = np.full((n, h, model.n_targets), np.nan)
        self.spreads = np.full((n, 1, model.n_targets), np.nan)
        empty = (np.full_like(self.points, np.nan) for _ in range(2 * len(levels)))
        self.bounds = {level: (next(empty), next(empty)) for level in levels}

    @torch.no_grad()
    def __call__(self, rows: Tensor, unit: Tensor, states: Tensor) -> None:
        origin = rows - self._begin[unit] + 1
        wanted = (origin % self._step == 0) & (origin // self._step < self._counts[unit])
        rows, unit, states = rows[wanted], unit[wanted], states[wanted]
        at = self._place[unit] + origin[wanted] // self._step
        forecast = self._model.parts(self._units, rows, self._units.starts[unit], states).total()
        self.points[at] = forecast[:, : self._h].numpy()
        self.spreads[at] = self._units.spread[rows][:, None].numpy()
        found = learned_bounds(self._model, states, list(self.bounds))
        for level, ends in found.items():
            for own, end in zip(self.bounds[level], ends, strict=True):
                own[at] = end[:, : self._h]
