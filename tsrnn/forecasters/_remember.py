"""The memory of series, from all their rows or carried on through further ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from tsrnn.data import Panel
from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._mapping import continued_units, known_series, units_of
from tsrnn.forecasters._memory import (
    Memory,
    Scaling,
    fit_scaling,
    joined_tails,
    standardise,
    tails,
)
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._settings import Settings


def memory_of(model: ForecastModel, settings: Settings, panel: Panel, fitted: Memory) -> Memory:
    """Memory after a panel, scaled as `fitted` for the series that it knows."""
    which = known_series(fitted, panel)
    scaling = _scaling_of(panel, fitted, which, settings.season)
    units = units_of(standardise(panel, scaling), panel.indptr, scaling, settings)
    state = run_filter(model, units.to(torch.float32), units.indptr[1:])
    return memory_after(panel, which, scaling, state, settings)


def memory_after(
    panel: Panel, fitted: np.ndarray, scaling: Scaling, state: torch.Tensor, settings: Settings
) -> Memory:
    """Memory after a panel whose state is known; `fitted` are the numbers of its series."""
    return Memory(
        panel.ids, fitted, panel.last_times, panel.lengths, scaling,
        tails(panel, settings.input_size), state,
    )  # fmt: skip


def carried_on(model: ForecastModel, settings: Settings, memory: Memory, panel: Panel) -> Memory:
    """Memory after further rows of all its series, in the same order."""
    units, begin = continued_units(memory, panel, settings)
    state = run_filter(model, units.to(torch.float32), units.indptr[1:], memory.state, begin=begin)
    tail = [rows[-settings.input_size :].copy() for rows in joined_tails(memory, panel)]
    n_rows = memory.n_rows + panel.lengths
    return replace(memory, last_times=panel.last_times, n_rows=n_rows, tail=tail, state=state)


def _scaling_of(panel: Panel, fitted: Memory, which: np.ndarray, season: int) -> Scaling:
    """Scaling as fitted for known series, by their own rows for new ones."""
    known = fitted.scaling
    fresh = fit_scaling(panel, panel.lengths, season, known.boxcox, known.exog)
    for new, old in (
        (fresh.target.location, known.target.location),
        (fresh.target.scale, known.target.scale),
        (fresh.constant, known.constant),
        (fresh.deviation, known.deviation),
    ):
        new[which >= 0] = old[which[which >= 0]]
    return fresh
