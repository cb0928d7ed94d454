"""Prediction intervals from the forecast errors of the validation part, or learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.contract import (
    MOST_ERRORS,
    OWN_ERRORS,
    Calibration,
    IntervalWarning,
    relative_sizes,
)
from tsrnn.data import warn_user
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._gain import PartLosses
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._state import run_filter
from tsrnn.forecasters._units import Units, full_origins, some_units

MOST_ORIGINS = 500_000  # to forecast from, where the errors of all units are one sample

Ends = dict[float, tuple[np.ndarray, np.ndarray]]


class ValidationErrors:
    """Errors of the forecasts of validation rows, and of simpler forecasts of the same rows.

    Parameters
    ----------
    model, start : ForecastModel
        Model after training and before.
    units : Units
    split : integer Tensor of shape (U,)
        First validation row of each unit; the row after its last where it has none.
    settings : Settings

    Attributes
    ----------
    scaled : ndarray of shape (U, n, h, C)
        Errors over the local spread at the origin; NaN where the target is unknown or the
        series is constant. Where units have too few for intervals of their own, a sample of
        the errors of all, or of some of many units, as if of one unit.
    n_pooled : int
        Units in that sample; 1 where each has its own.
    pooled_units : integer ndarray of shape (n,) or None
        Units of the errors of that sample.
    state : Tensor of shape (layers, U, state_size)
        State after the last row of each unit.
    """

    def __init__(
        self,
        model: ForecastModel,
        start: ForecastModel,
        units: Units,
        split: Tensor,
        settings: Settings,
    ) -> None:
        self._model, self._start, self._settings = model, start, settings
        self._units, self._split, self._season = units, split, settings.season
        ends = units.indptr[1:]
        self._chosen, self.n_pooled = some_units(split, ends, MOST_ORIGINS), 1
        self._pooled = self._pooled_origins()
        longest = int((ends - split).max())
        shape = (len(units), longest) if self._pooled is None else (1, len(self._pooled))
        self.scaled = np.full((*shape, model.horizon, model.n_targets), np.nan, dtype=np.float32)
        self.pooled_units: np.ndarray | None = None
        if self._pooled is not None:
            self.pooled_units = (torch.searchsorted(ends, self._pooled, right=True)).numpy()
            # Of all units and in both halves of the part, not of the sample alone.
            self._sums = np.zeros((2, len(units), *self.scaled.shape[2:]), np.float32)
            self._numbers = np.zeros_like(self._sums)
        self._losses = PartLosses(longest, model.horizon)
        self._squares: dict[str, Tensor] = {}
        self._counts: dict[str, Tensor] = {}
        first = split - 1
        if self._pooled is not None:
            first = torch.where(self._chosen, first, ends)
        self.state = run_filter(model, units, first, visit=self._visit)

    def _pooled_origins(self) -> Tensor | None:
        """Rows whose errors serve all units; None where each unit has enough.

        Sampled first: the errors of all rows of many units would not fit in memory.
        """
        split, ends = self._split, self._units.indptr[1:]
        varies = (self._units.spread > 0).numpy()
        last_step = _counts(varies, split - 1, ends - self._model.horizon)
        varying = _counts(varies, split - 1, ends - 1).any(1)
        used = varying & self._chosen.numpy()
        if len(last_step) == 1 or not used.any() or last_step[varying].min() >= OWN_ERRORS:
            return None
        self.n_pooled = int(used.sum())
        last = torch.where(torch.as_tensor(used), ends, split)
        return full_origins(split - 1, last, 1, most=MOST_ERRORS)[0]

    def _keep(self, rows: Tensor, unit: Tensor, scaled: Tensor) -> None:
        """Keep the scaled errors of some origins, if pooled those of the sample."""
        if self._pooled is None:
            self.scaled[unit, rows - (self._split[unit] - 1)] = scaled.numpy()
            return
        steps, ends = torch.arange(1, scaled.shape[1] + 1), self._units.indptr[1:]
        late = 2 * (rows[:, None] + steps) >= (self._split + ends)[unit][:, None]
        known, sizes = torch.isfinite(scaled), scaled.abs().nan_to_num()
        for half, inside in enumerate((~late, late)):
            mask = known & inside[..., None]
            np.add.at(self._sums[half], unit.numpy(), torch.where(mask, sizes, 0.0).numpy())
            np.add.at(self._numbers[half], unit.numpy(), mask.numpy())
        at = torch.searchsorted(self._pooled, rows).clamp(max=len(self._pooled) - 1)
        chosen = self._pooled[at] == rows
        self.scaled[0, at[chosen]] = scaled[chosen].numpy()

    def _visit(self, rows: Tensor, unit: Tensor, states: Tensor) -> None:
        """Errors of the model and of simpler forecasts from some rows."""
        units, model = self._units, self._model
        inside = rows < units.indptr[1:][unit] - 1  # the last row has nothing to forecast
        rows, unit, states = rows[inside], unit[inside], states[inside]
        windows, future = units.at(rows, units.starts[unit]), model.columns_ahead(units, rows)
        forecast = model.parts(windows, states, future).total()
        target, known = model.targets(units, rows, units.indptr[1:][unit])
        spread = windows.spread[:, None, :]
        error = target - forecast
        # Without spread the series is constant, and its errors say nothing about others.
        self._keep(rows, unit, torch.where(known & (spread > 0), error / spread, torch.nan))
        last = units.values[rows][:, None, : model.n_targets]
        place = rows - (self._split[unit] - 1)
        self._add("model", error, known, place)
        level, linear = self._start.linear_forecasts(windows)
        if self._settings.local_level:
            self._add("level", target - level, known, place)
        if self._settings.linear_path:
            self._add("linear path", target - linear, known, place)
        self._add("last value", target - last, known)
        if self._season > 1:
            # The same season of the last year for all steps, as horizons exceed a season.
            steps = torch.arange(model.horizon) % self._season
            before = rows[:, None] + 1 + steps - self._season
            there = (before >= units.starts[unit][:, None])[..., None]
            values = units.values[before.clamp(min=0)][..., : model.n_targets]
            self._add("seasonal naive", target - values, known & there)

    def _add(self, name: str, error: Tensor, known: Tensor, place: Tensor | None = None) -> None:
        """Add errors by step to the table, and of a part of the forecast to its tests."""
        if place is not None:
            self._losses.add(name, place, error, known)
        # In float32 within a part of the rows, in float64 over all parts.
        squares = torch.where(known, error, 0.0).square().sum((0, 2)).double()
        self._squares[name] = self._squares.get(name, 0.0) + squares
        self._counts[name] = self._counts.get(name, 0.0) + known.sum((0, 2)).double()

    def calibration(self) -> Calibration:
        """Calibration of intervals by these errors, pooled over their sizes by unit."""
        method, units, sizes = self._settings.intervals, self.pooled_units, None
        if units is not None and method not in HEADS:
            sizes = relative_sizes(self._sums, self._numbers)
        units = None if sizes is None else units
        return Calibration.of(self.scaled, method, self.n_pooled, units=units, sizes=sizes)

    def tests(self) -> pd.DataFrame:
        """Tests of each part of the forecast against those before it, see `PartLosses`."""
        return self._losses.tests()

    def table(self) -> pd.DataFrame:
        """Root mean squared error by step, over each series' naive error on the training part.

        NaN where no target has a value a season before.
        """
        rmse = {
            name: (squares / (self._counts[name] * self._model.n_targets)).sqrt().numpy()
            for name, squares in self._squares.items()
        }
        return pd.DataFrame(rmse, index=pd.RangeIndex(1, self._model.horizon + 1, name="step"))


def _counts(mask: np.ndarray, begin: Tensor, ends: Tensor) -> np.ndarray:
    """Counts (U, C) of a mask (N, C) in the rows from `begin` to before `ends`."""
    bounds = torch.stack([begin, ends], 1).flatten().numpy()
    counts = np.add.reduceat(mask, bounds, dtype=np.int64)[::2]
    return np.where((ends > begin).numpy()[:, None], counts, 0)  # an empty range adds its first row


@torch.no_grad()
def learned_bounds(
    model: ForecastModel, states: Tensor, levels: list[float]
) -> dict[float, tuple[np.ndarray, np.ndarray]]:
    """Ends (n, horizon, C) of the intervals of a learned distribution, over the local spread."""
    bounds = {}
    for level in levels:
        ends = model.quantiles(states, (0.5 - level / 200, 0.5 + level / 200)).numpy()
        bounds[level] = (ends[..., 0], ends[..., 1])
    return bounds


def each_end(ends: Ends, change: Callable[[np.ndarray], np.ndarray]) -> Ends:
    """Change both ends of every level."""
    return {level: (change(low), change(high)) for level, (low, high) in ends.items()}


def growth_beyond(horizon: int, h: int) -> np.ndarray:
    """Factors (h,) of half widths: 1 up to `horizon`, then the root of the step over it."""
    if h > horizon:
        warn_user(
            f"intervals are calibrated for {horizon} steps; beyond them they grow with the square "
            "root of the step and carry no guarantee. Fit with a larger horizon to calibrate them",
            IntervalWarning,
        )
    return np.sqrt(np.maximum(np.arange(1, h + 1) / horizon, 1.0))
