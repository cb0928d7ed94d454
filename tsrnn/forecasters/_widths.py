"""Ends of prediction intervals less the point forecast, by level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._intervals import Calibration, growth_beyond, learned_bounds
from tsrnn.forecasters._mapping import by_series, continued_units, fitted_units
from tsrnn.forecasters._memory import Memory
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._settings import Settings

Ends = dict[float, tuple[np.ndarray, np.ndarray]]


def scaled_ends(
    model: ForecastModel,
    calibration: Calibration,
    memory: Memory,
    levels: list[float],
) -> Ends:
    """Ends (S, horizon, C) in units of the local spread.

    Parameters
    ----------
    model : ForecastModel
    calibration : Calibration
    memory : Memory
        Of the series to forecast.
    levels : list of float
        Coverages in percent.
    """
    if calibration.method in HEADS:
        ends = learned_bounds(model, model.network.outputs(memory.state[-1]), levels)
    else:
        which = fitted_units(memory)
        widths = {level: calibration.half_widths(level, which) for level in levels}
        ends = {level: (-width, width) for level, width in widths.items()}
    return each_end(ends, lambda end: by_series(end, len(memory.ids)))


def local_spread(settings: Settings, memory: Memory) -> np.ndarray:
    """Local spread at the last row, (S, 1, C), in the units of the transformed targets."""
    units, _ = continued_units(memory, None, settings)
    last = units.spread[units.indptr[1:] - 1].numpy()[:, None]
    return by_series(last, len(memory.ids)) * memory.scaling.target.scale[:, None]


def steps_ahead(ends: Ends, spread: np.ndarray, horizon: int, h: int) -> Ends:
    """From ends (S, horizon, C) over the spread (S, 1, C) to ends (S, h, C) in its units."""
    steps = np.minimum(np.arange(h), horizon - 1)
    scale = growth_beyond(horizon, h)[:, None] * spread
    return each_end(ends, lambda end: end[:, steps] * scale)


def each_end(ends: Ends, change: Callable[[np.ndarray], np.ndarray]) -> Ends:
    """Change both ends of every level."""
    return {level: (change(low), change(high)) for level, (low, high) in ends.items()}
