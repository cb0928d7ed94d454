"""Point forecasts from a memory: one horizon by its parts, any number of steps in turn."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.contract import positive_integer
from tsrnn.data import Layout, Panel
from tsrnn.forecasters._mapping import by_series, continued_units
from tsrnn.forecasters._memory import Memory
from tsrnn.forecasters._model import ForecastModel, Parts
from tsrnn.forecasters._remember import carried_on
from tsrnn.forecasters._settings import Settings


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
    """Forecast one horizon.

    Parameters
    ----------
    model : ForecastModel
    settings : Settings
    memory : Memory
    future : ndarray of shape (S, h, n_known), optional
        Columns known ahead, in the units of the data.
    """
    return _horizon_of(copy.deepcopy(model).double(), settings, memory, future)


def point_forecasts(
    model: ForecastModel,
    settings: Settings,
    memory: Memory,
    h: int,
    future: np.ndarray | None,
    shape: tuple[Layout, tuple[str | int, ...]],
) -> np.ndarray:
    """Forecasts (S, h, C) of transformed targets; beyond the horizon they go on from their own.

    Parameters
    ----------
    model : ForecastModel
    settings : Settings
    memory : Memory
    h : int
    future : ndarray of shape (S, h, n_known), optional
        Columns known ahead, in the units of the data.
    shape : Layout and tuple of str or int
        Of the data fitted to: layout and exogenous columns.
    """
    blocks, double = [], copy.deepcopy(model).double()
    for done in range(0, h, model.horizon):
        known = None if future is None else future[:, done : done + model.horizon]
        ahead = _horizon_of(double, settings, memory, known)
        point = of_series(ahead.parts.total().numpy(), memory)
        blocks.append(point[:, : h - done])
        if done + model.horizon < h:
            rows = _as_rows(model, memory, memory.scaling.back(point), known, shape)
            memory = carried_on(model, settings, memory, rows)
    return np.concatenate(blocks, 1)


def within_horizon(what: str, h: int | None, horizon: int) -> int:
    """`h`, or the horizon by default; an error in the name of `what` if h exceeds it."""
    h = horizon if h is None else positive_integer("h", h)
    if h > horizon:
        raise ValueError(
            f"{what} needs h of at most the fitted horizon, {horizon}; got {h}. Fit with a larger "
            "horizon"
        )
    return h


def of_series(values: np.ndarray, memory: Memory) -> np.ndarray:
    """From standardised values of units (U, h, C') to transformed targets of series (S, h, C)."""
    return memory.scaling.target.inverse(by_series(values, len(memory.ids)))


@torch.no_grad()
def _horizon_of(
    double: ForecastModel, settings: Settings, memory: Memory, future: np.ndarray | None
) -> Ahead:
    """`look_ahead` of a model that is in float64."""
    units, _ = continued_units(memory, None, settings)
    rows = units.indptr[1:] - 1
    states = double.network.outputs(memory.state[-1].double())
    ahead = None if future is None else _standardised(double, memory, future)
    parts = double.parts(units, rows, units.starts, states, ahead)
    return Ahead(double, parts, units.spread[rows], states)


def _standardised(model: ForecastModel, memory: Memory, future: np.ndarray) -> Tensor:
    """Known futures (S, h, n) standardised, cut or filled to the horizon, for every unit."""
    exog = memory.scaling.exog
    columns = [i - model.n_targets for i in model.known]
    values = (future - exog.location[0, columns]) / exog.scale[0, columns]
    steps = np.minimum(np.arange(model.horizon), future.shape[1] - 1)
    ahead = torch.as_tensor(values[:, steps])
    return ahead.repeat_interleave(memory.units_per_series, 0)


def _as_rows(
    model: ForecastModel,
    memory: Memory,
    point: np.ndarray,
    known: np.ndarray | None,
    shape: tuple[Layout, tuple[str | int, ...]],
) -> Panel:
    """Forecasts as rows to go on from; what is not known ahead stays as it was last."""
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
