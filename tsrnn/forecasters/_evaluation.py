"""Forecast errors of the validation part: for intervals and for the summary."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._units import Units


class ValidationErrors:
    """Errors of the forecasts of validation rows, and of naive forecasts of the same rows.

    Parameters
    ----------
    model : ForecastModel
    units : Units
    split : integer Tensor of shape (U,)
        First validation row of each unit.
    season : int

    Attributes
    ----------
    scaled : ndarray of shape (U, n, h, C)
        Errors over the local spread at the origin; NaN where the target is unknown.
    state : Tensor of shape (layers, U, hidden)
        After the last row of each unit.
    """

    def __init__(self, model: ForecastModel, units: Units, split: Tensor, season: int) -> None:
        self._model, self._units, self._split, self._season = model, units, split, season
        longest = int((units.indptr[1:] - split).max())
        shape = (len(units), longest, model.horizon, model.n_targets)
        self.scaled = np.full(shape, np.nan, dtype=np.float32)
        self._squares: dict[str, Tensor] = {}
        self._count = torch.zeros(model.horizon, dtype=torch.float64)
        self.state, _ = run_filter(model, units, split - 1, visit=self._visit)

    def _visit(self, rows: Tensor, unit: Tensor, states: Tensor) -> None:
        units, model = self._units, self._model
        inside = rows < units.indptr[1:][unit] - 1  # the last row has nothing to forecast
        rows, unit, states = rows[inside], unit[inside], states[inside]
        forecast = model.parts(units, rows, units.starts[unit], states).total()
        target, known = model.targets(units, rows, units.indptr[1:][unit])
        spread = units.spread[rows][:, None, :]
        error = target - forecast
        # Without spread the series is constant and so is its forecast.
        scaled = torch.where(spread > 0, error / spread, error)
        scaled = torch.where(known, scaled, torch.nan)
        self.scaled[unit, rows - (self._split[unit] - 1)] = scaled.numpy()
        self._count += known.sum((0, 2)).double()
        last = units.values[rows][:, None, : model.n_targets]
        self._add("model", error, known)
        self._add("last value", target - last, known)
        if self._season > 1:
            self._add("seasonal naive", target - self._season_before(rows), known)

    def _season_before(self, rows: Tensor) -> Tensor:
        steps = torch.arange(self._model.horizon) % self._season
        before = rows[:, None] + 1 + steps - self._season
        return self._units.values[before.clamp(min=0)][..., : self._model.n_targets]

    def _add(self, name: str, error: Tensor, known: Tensor) -> None:
        squares = torch.where(known, error, 0.0).square().sum((0, 2)).double()
        self._squares[name] = self._squares.get(name, 0.0) + squares

    def table(self) -> pd.DataFrame:
        """Root mean squared error by step, in standard deviations of the series."""
        count = self._count * self._model.n_targets
        rmse = {name: (s / count).sqrt().numpy() for name, s in self._squares.items()}
        return pd.DataFrame(rmse, index=pd.RangeIndex(1, self._model.horizon + 1, name="step"))
