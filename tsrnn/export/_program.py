"""Program on tensors alone, from rows and memory to forecasts and memory."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tsrnn.forecasters import (
    HEADS,
    FittedNetworks,
    RecurrentState,
    Step,
    Windows,
    by_series,
    inverse_boxcox,
    network_inputs,
    scale_padded,
)


class Carried(NamedTuple):
    """State of S series between two calls of a program, "memory" in its files.

    Zero for a new series. Each series has G units of the network with c = C / G targets each: G is
    1 or the number of targets.

    Attributes
    ----------
    location, scale, varies : Tensor of shape (S, C)
        Scaling of transformed targets; a scale of zero is not yet known. `varies` is 1 or 0.
    known : Tensor of shape (S, 1)
        Number of known rows at the end of the window.
    window : Tensor of shape (S, G * W * (c + E))
        Last rows, standardised.
    hidden : Tensor of shape (S, G * layers * state_size)
    widths : Tensor of shape (S, h * C * levels)
        Half widths of intervals by series; no columns where all series share them.
    """

    location: Tensor
    scale: Tensor
    varies: Tensor
    known: Tensor
    window: Tensor
    hidden: Tensor
    widths: Tensor


class Program(nn.Module):
    """Forecasts as a function of tensors alone, by the step that `predict` takes.

    The recurrence runs in float32, everything else in float64. `levels` are coverages in percent;
    `shapes` are those of each field of `Carried` for one series.
    """

    pooled: Tensor | None

    def __init__(self, fitted: FittedNetworks, levels: list[float]) -> None:
        super().__init__()
        self.fitted, self.levels = fitted, levels
        self.step = Step(fitted.model, fitted.scaling)  # a copy, whose engines change below
        for module in self.step.modules():
            if isinstance(getattr(module, "engine", None), str):
                # Traced as one operator: torch cannot trace the loop of "reference".
                module.engine = "auto"  # type: ignore[assignment]
        model, settings, calibration = fitted.model, fitted.settings, fitted.calibration
        n_targets, groups = fitted.data.n_targets, self.step.units_per_series
        pooled, own_levels = None, 0
        if levels and calibration.method not in HEADS:
            pooled = by_series(self._half_widths(np.full(groups, -1)), groups)[0]
            own_levels = len(levels) if calibration.by_unit else 0
        self.register_buffer("pooled", pooled)
        layers, _, size = model.network.initial_state(1).shape
        self.shapes = {
            "location": (n_targets,),
            "scale": (n_targets,),
            "varies": (n_targets,),
            "known": (1,),
            "window": (groups, settings.input_size, model.network_inputs),
            "hidden": (groups, layers, size),
            "widths": (settings.horizon, n_targets, own_levels),
        }

    @property
    def sizes(self) -> list[int]:
        """Numbers carried per series, field by field."""
        return [math.prod(shape) for shape in self.shapes.values()]

    def forward(
        self, rows: Tensor, lengths: Tensor, memory: Tensor, future: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Read the first `lengths` (S,) rows (S, T, C + E) of each series, and forecast.

        `memory`, shape (S, M), is zero for a new series; `future` has shape (S, h, known). Returns
        "forecast" (S, h, C); with levels "lower" and "upper" (S, h, C, levels); "memory_after" (S,
        M).
        """
        alive = torch.arange(rows.shape[1]) < lengths[:, None]
        rows = torch.where(alive[..., None], rows, 1.0)  # others may be NaN; 1 has a logarithm
        carried = Carried(*memory.split(self.sizes, 1))
        targets, settings = rows[..., : self.fitted.data.n_targets], self.fitted.settings
        scaling = scale_padded(targets, alive, settings.season, settings.boxcox)
        seen = carried.scale > 0  # new series are scaled by the rows of this call
        location, scale, varies = (
            torch.where(seen, old, new) for old, new in zip(carried[:3], scaling, strict=True)
        )
        carried = carried._replace(location=location, scale=scale, varies=varies)
        if self.pooled is not None and self.shapes["widths"][-1]:
            widths = torch.where(seen[:, :1], carried.widths, self.pooled.flatten())
            carried = carried._replace(widths=widths)
        values = self.step.standardised(rows, carried.location[:, None], carried.scale[:, None])
        carried = self._take_in(carried, values, alive)
        forecasts = self._forecasts(carried, future)
        return forecasts | {"memory_after": torch.cat(list(carried), 1)}

    def _take_in(self, carried: Carried, values: Tensor, alive: Tensor) -> Carried:
        """Advance by standardised rows (S, T, C + E), those that are `alive`, one by one."""
        # No public name in torch yet.
        from torch._higher_order_ops import scan

        groups, n_targets = self.step.units_per_series, self.fitted.data.n_targets
        # Rows of units, (U, T, c + E): the unit's targets, then the exogenous columns.
        grouped = values[..., :n_targets].unflatten(-1, (groups, -1)).movedim(2, 1)
        shared = values[:, None, :, n_targets:].expand(-1, groups, -1, -1)
        rows = torch.cat([grouped, shared], -1).flatten(0, 1)
        live = alive[:, None].expand(-1, groups, -1).flatten(0, 1)

        def step(
            before: tuple[Tensor, Tensor, Tensor], new: tuple[Tensor, Tensor]
        ) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
            (window, count, hidden), (row, live) = before, new
            longer = torch.cat([window[:, 1:], row[:, None]], 1)
            counted = (count + 1).clamp(max=window.shape[1])
            windows = self._windows(longer, counted, carried.varies)
            inputs = network_inputs(row, windows.level, windows.spread)
            moved = self.step.advance(inputs[:, None], hidden)
            after = (
                torch.where(live[:, None, None], longer, window),
                torch.where(live[:, None], counted, count),
                torch.where(live[:, None], moved, hidden),
            )
            return after, live.clone()  # a scan must return a value per step

        # Contiguous, as a scan must not change the strides of its carry.
        begin = tuple(
            part.clone(memory_format=torch.contiguous_format) for part in self._by_units(carried)
        )
        (window, count, hidden), _ = scan(step, begin, (rows.movedim(1, 0), live.movedim(1, 0)))
        known, window, hidden = (
            part.unflatten(0, (-1, groups)).flatten(1)
            for part in (count, window, hidden.movedim(0, 1).double())
        )
        return carried._replace(known=known[:, :1], window=window, hidden=hidden)

    def _by_units(self, carried: Carried) -> tuple[Tensor, Tensor, Tensor]:
        """Return last rows (U, W, c + E), their known number (U, 1) and hidden state of units."""
        window = carried.window.unflatten(1, self.shapes["window"]).flatten(0, 1)
        hidden = carried.hidden.unflatten(1, self.shapes["hidden"]).flatten(0, 1)
        known = carried.known.expand(-1, self.step.units_per_series).reshape(-1, 1)
        return window, known, hidden.movedim(1, 0).float()

    def _windows(self, window: Tensor, count: Tensor, varies: Tensor) -> Windows:
        of_units = varies.unflatten(1, (self.step.units_per_series, -1)).flatten(0, 1)
        return Windows.of(window, count, of_units, local_level=self.fitted.settings.local_level)

    def _forecasts(self, carried: Carried, future: Tensor | None) -> dict[str, Tensor]:
        """Forecast series, with intervals, in the units of the data."""
        window, count, hidden = self._by_units(carried)
        windows = self._windows(window, count, carried.varies)
        ahead = self.step.ahead(windows, hidden, future)
        point = self.step.transformed(ahead.parts.total(), carried.location, carried.scale)
        outputs = {"forecast": point}
        if self.levels:
            spread = by_series(ahead.spread[:, None], self.step.units_per_series)
            spread = (spread * carried.scale[:, None])[..., None]
            low, high = self._ends(carried, ahead.states)
            outputs |= {"lower": point[..., None] + low * spread}
            outputs |= {"upper": point[..., None] + high * spread}
        return {name: inverse_boxcox(part, self.step.boxcox) for name, part in outputs.items()}

    def _ends(self, carried: Carried, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return ends of intervals (S, h, C, levels), as (end - point) / spread."""
        if self.pooled is None:
            groups, quantiles = self.step.units_per_series, self.step.model.quantiles
            sides = ([0.5 + sign * level / 200 for level in self.levels] for sign in (-1, 1))
            low, high = (by_series(quantiles(states, side), groups) for side in sides)
            return low, high
        width = self.pooled[None]
        if self.shapes["widths"][-1]:
            width = carried.widths.unflatten(1, self.shapes["widths"])
        return -width, width

    def memory_of(self, state: RecurrentState) -> np.ndarray:
        """Return the memory (S, M) of the program for the series of a state."""
        scaling, n_series = state.scaling, len(state.ids)
        widths = torch.zeros(n_series, 0)
        if self.shapes["widths"][-1]:
            by_unit = self._half_widths(state.fitted_units)
            widths = by_series(by_unit, state.units_per_series).flatten(1)
        window, _ = self.fitted.last_rows(state)
        carried = Carried(
            torch.from_numpy(scaling.target.location),
            torch.from_numpy(scaling.target.scale),
            torch.from_numpy(~scaling.constant),
            torch.tensor([len(rows) for rows in state.tail])[:, None],
            window.reshape(n_series, -1),
            state.hidden.movedim(0, 1).reshape(n_series, -1),
            widths,
        )
        return torch.cat([part.double() for part in carried], 1).numpy()

    def _half_widths(self, units: np.ndarray) -> Tensor:
        """Return half widths (U, h, c, levels) over the spread, by unit number; -1 if new."""
        calibration = self.fitted.calibration
        widths = [calibration.half_widths(level, units) for level in self.levels]
        return torch.from_numpy(np.stack(widths, -1))
