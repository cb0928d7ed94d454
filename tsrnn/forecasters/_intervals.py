"""Prediction intervals from the forecast errors of the validation part, or learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.contract import MOST_ERRORS, OWN_ERRORS, Calibration, IntervalWarning, relative_sizes
from tsrnn.data import warn_user
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._gain import PartLosses
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._state import run_filter
from tsrnn.forecasters._units import Units, full_origins, some_units

MOST_ORIGINS = 500_000  # origins, if the errors of all units are pooled

Ends = dict[float, tuple[np.ndarray, np.ndarray]]


class ValidationErrors:
    """Errors of the model's forecasts, and of simpler forecasts, on the validation part.

    The part of a unit begins at its `split`, the row after its last if it has none. `start` is the
    model before training.

    Attributes
    ----------
    scaled : ndarray of shape (U, n, h, C)
        Errors over the local spread at the origin; NaN if the target is unknown or the series
        constant. If units have too few errors for intervals of their own, a sample of the errors
        of all units (or of a subset of many), with U = 1.
    n_pooled : int
        Number of units in that sample; 1 without pooling.
    pooled_units : integer ndarray of shape (n,) or None
        Unit of each error in that sample.
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
            # Absolute errors in both halves of the part, of all units and not only of the sample.
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
        """Origins whose errors are pooled; None if each unit has enough errors.

        They are sampled before forecasting, as all errors of many units exceed the memory.
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
        """Store scaled errors; if pooled, only the sample."""
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
        """Add the errors of the model and of simpler forecasts from some rows."""
        units, model = self._units, self._model
        inside = rows < units.indptr[1:][unit] - 1  # the last row has no target
        rows, unit, states = rows[inside], unit[inside], states[inside]
        windows, future = units.at(rows, units.starts[unit]), model.columns_ahead(units, rows)
        forecast = model.parts(windows, states, future).total()
        target, known = model.targets(units, rows, units.indptr[1:][unit])
        spread = windows.spread[:, None, :]
        error = target - forecast
        # Zero spread means a constant series, whose errors say nothing about other series.
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
            # All steps use the last observed season, also beyond one season ahead.
            steps = torch.arange(model.horizon) % self._season
            before = rows[:, None] + 1 + steps - self._season
            there = (before >= units.starts[unit][:, None])[..., None]
            values = units.values[before.clamp(min=0)][..., : model.n_targets]
            self._add("seasonal naive", target - values, known & there)

    def _add(self, name: str, error: Tensor, known: Tensor, place: Tensor | None = None) -> None:
        """Add errors to the table by step and, if a `place` is given, to the tests of parts."""
        if place is not None:
            self._losses.add(name, place, error, known)
        # Sums in float32 within a call, in float64 over calls.
        squares = torch.where(known, error, 0.0).square().sum((0, 2)).double()
        self._squares[name] = self._squares.get(name, 0.0) + squares
        self._counts[name] = self._counts.get(name, 0.0) + known.sum((0, 2)).double()

    def calibration(self) -> Calibration:
        """Calibration of the intervals; pooled errors are divided by the error size of the unit."""
        method, units, sizes = self._settings.intervals, self.pooled_units, None
        if units is not None and method not in HEADS:
            sizes = relative_sizes(self._sums, self._numbers)
        units = None if sizes is None else units
        return Calibration.of(self.scaled, method, self.n_pooled, units=units, sizes=sizes)

    def tests(self) -> pd.DataFrame:
        """Tests of each part of the forecast against the parts before it, see `PartLosses`."""
        return self._losses.tests()

    def table(self) -> pd.DataFrame:
        """Root mean squared error by step, over each series' naive error on the training part.

        NaN if no target has a value one season earlier.
        """
        rmse = {
            name: (squares / (self._counts[name] * self._model.n_targets)).sqrt().numpy()
            for name, squares in self._squares.items()
        }
        return pd.DataFrame(rmse, index=pd.RangeIndex(1, self._model.horizon + 1, name="step"))


def _counts(mask: np.ndarray, begin: Tensor, ends: Tensor) -> np.ndarray:
    """Counts of a mask, (N, C), in the rows from `begin` to before `ends`, shape (U, C)."""
    bounds = torch.stack([begin, ends], 1).flatten().numpy()
    counts = np.add.reduceat(mask, bounds, dtype=np.int64)[::2]
    # `reduceat` returns the first row of an empty range.
    return np.where((ends > begin).numpy()[:, None], counts, 0)


@torch.no_grad()
def learned_bounds(
    model: ForecastModel, states: Tensor, levels: list[float]
) -> dict[float, tuple[np.ndarray, np.ndarray]]:
    """Interval ends of a learned distribution over the local spread, shape (n, horizon, C)."""
    bounds = {}
    for level in levels:
        ends = model.quantiles(states, (0.5 - level / 200, 0.5 + level / 200)).numpy()
        bounds[level] = (ends[..., 0], ends[..., 1])
    return bounds


def each_end(ends: Ends, change: Callable[[np.ndarray], np.ndarray]) -> Ends:
    """Apply `change` to both ends of every level."""
    return {level: (change(low), change(high)) for level, (low, high) in ends.items()}


def growth_beyond(horizon: int, h: int) -> np.ndarray:
    """Factors of half widths, shape (h,): 1 up to `horizon`, then sqrt(step / horizon)."""
    if h > horizon:
        warn_user(
            f"intervals are calibrated for {horizon} steps; beyond them they grow with the square "
            "root of the step and carry no guarantee. Fit with a larger horizon to calibrate them",
            IntervalWarning,
        )
    return np.sqrt(np.maximum(np.arange(1, h + 1) / horizon, 1.0))
