"""Forecast errors of the validation part: for intervals and for the summary."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._intervals import MOST_ERRORS, OWN_ERRORS
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._origins import full_origins, some_units
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import Units

MOST_ORIGINS = 500_000  # to forecast from, where the errors of all units are one sample


class ValidationErrors:
    """Errors of the forecasts of validation rows, and of simpler forecasts of the same rows.

    Parameters
    ----------
    model, start : ForecastModel
        As it is after training and before.
    units : Units
    split : integer Tensor of shape (U,)
        First validation row of each unit; the row after its last where it has none.
    settings : Settings

    Attributes
    ----------
    scaled : ndarray of shape (U, n, h, C)
        Errors over the local spread at the origin; NaN where the target is unknown or the
        series is constant. Where units have too few for intervals of their own, a sample of
        them as of one unit; of many units, the errors of some are then enough.
    state : Tensor of shape (layers, U, state_size)
        After the last row of each unit.
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
        self._chosen = some_units(split, ends, MOST_ORIGINS)
        self._pooled = self._pooled_origins()
        longest = int((ends - split).max())
        shape = (len(units), longest) if self._pooled is None else (1, len(self._pooled))
        self.scaled = np.full((*shape, model.horizon, model.n_targets), np.nan, dtype=np.float32)
        self._squares: dict[str, Tensor] = {}
        self._counts: dict[str, Tensor] = {}
        first = split - 1
        if self._pooled is not None:
            first = torch.where(self._chosen, first, ends)
        self.state = run_filter(model, units, first, visit=self._visit)

    def _pooled_origins(self) -> Tensor | None:
        """Rows whose errors serve all units; None where each unit has enough of its own.

        What the errors of all rows would say, without holding them.
        """
        split, ends = self._split, self._units.indptr[1:]
        varies = (self._units.spread > 0).numpy()
        own = _counts(varies, split - 1, ends - self._model.horizon)  # of the last step
        varying = _counts(varies, split - 1, ends - 1).any(1)
        used = varying & self._chosen.numpy()
        if len(own) == 1 or not used.any() or own[varying].min() >= OWN_ERRORS:
            return None
        last = torch.where(torch.as_tensor(used), ends, split)
        return full_origins(split - 1, last, 1, most=MOST_ERRORS)[0]

    def _keep(self, rows: Tensor, unit: Tensor, scaled: Tensor) -> None:
        if self._pooled is None:
            self.scaled[unit, rows - (self._split[unit] - 1)] = scaled.numpy()
            return
        at = torch.searchsorted(self._pooled, rows).clamp(max=len(self._pooled) - 1)
        chosen = self._pooled[at] == rows
        self.scaled[0, at[chosen]] = scaled[chosen].numpy()

    def _visit(self, rows: Tensor, unit: Tensor, states: Tensor) -> None:
        units, model = self._units, self._model
        inside = rows < units.indptr[1:][unit] - 1  # the last row has nothing to forecast
        rows, unit, states = rows[inside], unit[inside], states[inside]
        forecast = model.parts(units, rows, units.starts[unit], states).total()
        target, known = model.targets(units, rows, units.indptr[1:][unit])
        spread = units.spread[rows][:, None, :]
        error = target - forecast
        # Without spread the series is constant, and its errors say nothing about others.
        self._keep(rows, unit, torch.where(known & (spread > 0), error / spread, torch.nan))
        last = units.values[rows][:, None, : model.n_targets]
        self._add("model", error, known)
        level, linear = self._start.linear_forecasts(units, rows, units.starts[unit])
        if self._settings.local_level:
            self._add("level", target - level, known)
        if self._settings.linear_path:
            self._add("linear path", target - linear, known)
        self._add("last value", target - last, known)
        if self._season > 1:
            before, there = self._season_before(rows, units.starts[unit])
            self._add("seasonal naive", target - before, known & there)

    def _season_before(self, rows: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Values a season before the targets, and whether the series had begun."""
        steps = torch.arange(self._model.horizon) % self._season
        before = rows[:, None] + 1 + steps - self._season
        values = self._units.values[before.clamp(min=0)][..., : self._model.n_targets]
        return values, (before >= starts[:, None])[..., None]

    def _add(self, name: str, error: Tensor, known: Tensor) -> None:
        squares = torch.where(known, error, 0.0).square().sum((0, 2)).double()
        self._squares[name] = self._squares.get(name, 0.0) + squares
        self._counts[name] = self._counts.get(name, 0.0) + known.sum((0, 2)).double()

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
    """How often a mask (N, C) holds in the rows from `begin` to before `ends`: (U, C)."""
    bounds = torch.stack([begin, ends], 1).flatten().numpy()
    counts = np.add.reduceat(mask, bounds, dtype=np.int64)[::2]
    return np.where((ends > begin).numpy()[:, None], counts, 0)  # an empty range adds its first row
