"""The program: rows and what was carried go in, forecasts and what is carried on come out."""

from __future__ import annotations

import copy
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from tsrnn.export._carried import Carried, CarriedShape, by_series
from tsrnn.export._scaling import boxcox, inverse_boxcox, own_scaling
from tsrnn.export._windows import Last, Running, last_of, take_in
from tsrnn.forecasters import ForecastModel, Settings, Units
from tsrnn.layers import Ensemble


class Intervals(NamedTuple):
    """Levels in percent; half widths (h, C, levels) of series never seen, None if learned."""

    levels: list[float]
    widths: Tensor | None


class Program(nn.Module):
    """Forecasts as a function of tensors alone, in the arithmetic of `predict`.

    The recurrence runs in float32, everything else in float64.

    Parameters
    ----------
    model : ForecastModel
        Copied.
    settings : Settings
    shape : CarriedShape
    exog : Tensor of shape (2, E), optional
        Location and scale of the exogenous columns; None if there are none.
    intervals : Intervals
    """

    def __init__(
        self,
        model: ForecastModel,
        settings: Settings,
        shape: CarriedShape,
        exog: Tensor | None,
        intervals: Intervals,
    ) -> None:
        super().__init__()
        self.model = _in_two_precisions(model)
        self.settings, self.shape, self.levels = settings, shape, intervals.levels
        self.exog: Tensor | None
        self.pooled: Tensor | None
        self.register_buffer("exog", exog)
        self.register_buffer("pooled", intervals.widths)
        self.requires_grad_(False)

    def forward(
        self, rows: Tensor, lengths: Tensor, memory: Tensor, future: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Take rows in and forecast.

        Parameters
        ----------
        rows : Tensor of shape (S, T, C + E)
        lengths : integer Tensor of shape (S,)
            How many rows of a series are taken in, its first ones.
        memory : Tensor of shape (S, M)
            Zero for a series never seen.
        future : Tensor of shape (S, h, known), optional

        Returns
        -------
        dict of Tensor
            "forecast" (S, h, C); with levels "lower" and "upper" (S, h, C, levels);
            "memory_after" (S, M).
        """
        alive = torch.arange(rows.shape[1]) < lengths[:, None]
        carried, values = self._standardised(rows, alive, self.shape.split(memory))
        varies = carried.varies.unflatten(1, (self.shape.groups, -1)).flatten(0, 1)

        def look(window: Tensor, count: Tensor) -> Last:
            return last_of(window, count, varies, local_level=self.settings.local_level)

        def advance(x: Tensor, state: Tensor) -> Tensor:
            return self.model.network.run(x.float(), state)[1]

        start, given = self._running(carried), self._by_units(values, alive)
        end = take_in(start, *given, look, advance)
        forecasts = self._forecasts(carried, look(end.window, end.known), end.state, future)
        return forecasts | {"memory_after": self._joined(carried, end)}

    def _standardised(
        self, rows: Tensor, alive: Tensor, carried: Carried
    ) -> tuple[Carried, Tensor]:
        """What is carried, with the scaling of all series, and rows (S, T, C + E) scaled by it."""
        rows = torch.where(alive[..., None], rows, 1.0)  # the others may hold anything
        raw, exog = rows.tensor_split([self.shape.targets], -1)
        changed = boxcox(raw, self.settings.boxcox)
        own = own_scaling(raw, changed, alive[..., None], self.settings.season)
        seen = carried.scale > 0
        chosen = {
            name: torch.where(seen, getattr(carried, name), value)
            for name, value in own._asdict().items()
        }
        if self.shape.widths[-1]:
            assert self.pooled is not None
            widths = torch.where(seen[:, :1], carried.widths, self.pooled.flatten())
            chosen["widths"] = widths
        carried = carried._replace(**chosen)
        targets = (changed - carried.location[:, None]) / carried.scale[:, None]
        if self.exog is None:
            return carried, targets
        return carried, torch.cat([targets, (exog - self.exog[0]) / self.exog[1]], -1)

    def _by_units(self, values: Tensor, alive: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (U, T, c + E) of units and which are alive (U, T), from those of series."""
        targets, exog = values.tensor_split([self.shape.targets], -1)
        groups = self.shape.groups
        own = targets.unflatten(-1, (groups, -1)).movedim(2, 1)
        shared = exog[:, None].expand(-1, groups, -1, -1)
        live = alive[:, None].expand(-1, groups, -1)
        return torch.cat([own, shared], -1).flatten(0, 1), live.flatten(0, 1)

    def _running(self, carried: Carried) -> Running:
        groups = self.shape.groups
        state = carried.state.unflatten(1, (groups, *self.shape.state)).flatten(0, 1)
        return Running(
            carried.window.unflatten(1, (groups, *self.shape.window)).flatten(0, 1),
            carried.known.expand(-1, groups).reshape(-1, 1),
            state.movedim(1, 0).float(),
        )

    def _joined(self, carried: Carried, end: Running) -> Tensor:
        """Memory (S, M) after the rows."""
        known, window, state = (
            part.unflatten(0, (-1, self.shape.groups)).flatten(1)
            for part in (end.known, end.window, end.state.movedim(0, 1).double())
        )
        after = carried._replace(known=known[:, :1], window=window, state=state)
        return torch.cat(list(after), 1)

    def _forecasts(
        self, carried: Carried, last: Last, state: Tensor, future: Tensor | None
    ) -> dict[str, Tensor]:
        """Forecasts and intervals of series, in the units of the data."""
        states = self.model.network.outputs(state[-1]).double()
        known = None if future is None else self._known(future)
        units, rows = cast("Units", last), torch.arange(states.shape[0])
        total = self.model.parts(units, rows, rows, states, known).total()
        point = by_series(total, self.shape.groups)
        scale = carried.scale[:, None]
        point = point * scale + carried.location[:, None]
        found = {"forecast": point}
        if self.levels:
            spread = by_series(last.spread[:, None], self.shape.groups) * scale
            for name, end in zip(("lower", "upper"), self._ends(carried, states), strict=True):
                found[name] = point[..., None] + end * spread[..., None]
        return {name: inverse_boxcox(x, self.settings.boxcox) for name, x in found.items()}

    def _ends(self, carried: Carried, states: Tensor) -> tuple[Tensor, Tensor]:
        """Ends of the intervals (S, h, C, levels) less the point, over the spread."""
        if self.pooled is None:
            sides = [[0.5 + sign * level / 200 for level in self.levels] for sign in (-1, 1)]
            low, high = (self.model.quantiles(states, side) for side in sides)
            return by_series(low, self.shape.groups), by_series(high, self.shape.groups)
        width = self.pooled[None]
        if self.shape.widths[-1]:
            width = carried.widths.unflatten(1, self.shape.widths)
        return -width, width

    def _known(self, future: Tensor) -> Tensor:
        """Known futures (U, h, known) of units, standardised."""
        assert self.exog is not None
        location, scale = self.exog[:, [i - self.model.n_targets for i in self.model.known]]
        values = (future - location) / scale
        return values[:, None].expand(-1, self.shape.groups, -1, -1).flatten(0, 1)


def _in_two_precisions(model: ForecastModel) -> ForecastModel:
    """A copy in float64, but for the recurrence."""
    copied = copy.deepcopy(model).double().eval()
    network = copied.network
    for member in network.networks if isinstance(network, Ensemble) else [network]:
        member.rnn.float()
        if member.input is not None:
            member.input.float()
    return copied
