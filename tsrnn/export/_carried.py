"""Memory that a program carries from call to call: a row of numbers for every series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.forecasters import Memory, RecurrentForecaster, continued_units, fitted_units


class Carried(NamedTuple):
    """Memory of S series; all zero for a series never seen.

    A series is a unit of the network, or each of its targets is: G units, of c = C / G targets.

    Attributes
    ----------
    location, scale, varies : Tensor of shape (S, C)
        Of transformed targets; a scale of zero is one not yet known. `varies` is 1 or 0.
    known : Tensor of shape (S, 1)
        Rows of the window that are known, the last ones.
    window : Tensor of shape (S, G * W * (c + E))
        The last rows, standardised.
    state : Tensor of shape (S, G * layers * state_size)
    widths : Tensor of shape (S, h * C * levels)
        Half widths of the series' own intervals; no columns where all series share theirs.
    """

    location: Tensor
    scale: Tensor
    varies: Tensor
    known: Tensor
    window: Tensor
    state: Tensor
    widths: Tensor


@dataclass(frozen=True)
class CarriedShape:
    """Sizes of `Carried`.

    Attributes
    ----------
    targets : int
        C.
    groups : int
        G.
    window : tuple of int
        (W, c + E).
    state : tuple of int
        (layers, state_size).
    widths : tuple of int
        (h, C, levels); no levels where all series share their intervals.
    """

    targets: int
    groups: int
    window: tuple[int, int]
    state: tuple[int, int]
    widths: tuple[int, int, int]

    @property
    def sizes(self) -> list[int]:
        """Numbers of a series, by the fields of `Carried`."""
        unit = [self.groups * math.prod(shape) for shape in (self.window, self.state)]
        return [self.targets] * 3 + [1, *unit, math.prod(self.widths)]

    def split(self, memory: Tensor) -> Carried:
        """Fields of rows (S, M)."""
        return Carried(*memory.split(self.sizes, 1))


def carried_shape(forecaster: RecurrentForecaster, n_levels: int) -> CarriedShape:
    """Sizes for a forecaster whose series have intervals of `n_levels` levels of their own."""
    settings, memory, model = forecaster.settings_, forecaster.state_, forecaster.model_
    n_targets = memory.scaling.constant.shape[1]
    return CarriedShape(
        n_targets,
        memory.units_per_series,
        (settings.input_size, model.network_inputs),
        (memory.state.shape[0], memory.state.shape[2]),
        (settings.horizon, n_targets, n_levels),
    )


def carried_by(
    forecaster: RecurrentForecaster, shape: CarriedShape, levels: list[float], memory: Memory
) -> np.ndarray:
    """Memory (S, M) that a program carries of the series of a forecaster's memory."""
    scaling, n_series = memory.scaling, len(memory.ids)
    widths = torch.zeros(n_series, 0)
    if shape.widths[-1]:
        by_unit = half_widths(forecaster, fitted_units(memory), levels)
        widths = by_series(by_unit, shape.groups).flatten(1)
    counts = [len(rows) for rows in memory.tail]
    parts = Carried(
        torch.from_numpy(scaling.target.location),
        torch.from_numpy(scaling.target.scale),
        torch.from_numpy(~scaling.constant),
        torch.tensor(counts)[:, None],
        _window(forecaster, shape, memory).reshape(n_series, -1),
        memory.state.movedim(0, 1).reshape(n_series, -1),
        widths,
    )
    return torch.cat([part.double() for part in parts], 1).numpy()


def _window(forecaster: RecurrentForecaster, shape: CarriedShape, memory: Memory) -> Tensor:
    """The last rows (U, W, c + E) of all units, zero before their first."""
    units, _ = continued_units(memory, None, forecaster.settings_)
    window = units.values.new_zeros(len(units), *shape.window)
    bounds = units.indptr.tolist()
    for i, (begin, end) in enumerate(pairwise(bounds)):
        window[i, shape.window[0] - (end - begin) :] = units.values[begin:end]
    return window


def half_widths(forecaster: RecurrentForecaster, units: np.ndarray, levels: list[float]) -> Tensor:
    """Half widths (U, h, c, levels) over the spread of units by number, -1 for one never seen."""
    widths = [forecaster.calibration_.half_widths(level, units) for level in levels]
    return torch.from_numpy(np.stack(widths, -1))


def by_series(values: Tensor, groups: int) -> Tensor:
    """Rearrange units (S * G, h, c, ...) into series (S, h, C, ...)."""
    return values.unflatten(0, (-1, groups)).movedim(1, 2).flatten(2, 3)
