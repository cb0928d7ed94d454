"""Program: a function of rows and memory to forecasts and memory, on tensors alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from tsrnn.export._carried import Carried, CarriedShape, by_series
from tsrnn.forecasters import SMALLEST_SCALE, SPREAD_FLOOR, ForecastModel, Settings, Units
from tsrnn.layers import Ensemble

# One step of the network: inputs (U, 1, c + E) and state (layers, U, size) to the new state.
Advance = Callable[[Tensor, Tensor], Tensor]


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
        """Memory with the scaling of all series, and rows (S, T, C + E) scaled by it."""
        rows = torch.where(alive[..., None], rows, 1.0)  # the others may hold anything
        raw, exog = rows.tensor_split([self.shape.targets], -1)
        changed = boxcox(raw, self.settings.boxcox)
        scaling = scale_series(raw, changed, alive[..., None], self.settings.season)
        seen = carried.scale > 0
        chosen = {
            name: torch.where(seen, getattr(carried, name), value)
            for name, value in scaling._asdict().items()
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
        grouped = targets.unflatten(-1, (groups, -1)).movedim(2, 1)
        shared = exog[:, None].expand(-1, groups, -1, -1)
        live = alive[:, None].expand(-1, groups, -1)
        return torch.cat([grouped, shared], -1).flatten(0, 1), live.flatten(0, 1)

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
        outputs = {"forecast": point}
        if self.levels:
            spread = by_series(last.spread[:, None], self.shape.groups) * scale
            for name, end in zip(("lower", "upper"), self._ends(carried, states), strict=True):
                outputs[name] = point[..., None] + end * spread[..., None]
        return {name: inverse_boxcox(x, self.settings.boxcox) for name, x in outputs.items()}

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
    """Copy in float64, but for the recurrence."""
    copied = copy.deepcopy(model).double().eval()
    for module in copied.modules():
        if isinstance(getattr(module, "engine", None), str):
            module.engine = "auto"  # a program has its own loop over time, whatever the fit ran
    network = copied.network
    for member in network.networks if isinstance(network, Ensemble) else [network]:
        member.rnn.float()
        if member.input is not None:
            member.input.float()
    return copied


class Running(NamedTuple):
    """U units after some row.

    Attributes
    ----------
    window : Tensor of shape (U, W, c + E)
        The last rows; those not known come first.
    known : Tensor of shape (U, 1)
        How many are known.
    state : Tensor of shape (layers, U, state_size)
    """

    window: Tensor
    known: Tensor
    state: Tensor


@dataclass(frozen=True)
class Last:
    """Last row of every unit, with the attributes of `Units` that the model asks for.

    Attributes
    ----------
    window, known : Tensor of shape (U, W, c + E) and boolean (U, W, 1)
    level, spread : Tensor of shape (U, c + E) and (U, c)
        As in `Units`.
    """

    window: Tensor
    known: Tensor
    level: Tensor
    spread: Tensor

    def inputs(self) -> Tensor:
        """Inputs of the network, (U, c + E); see `Units.inputs`."""
        row, c = self.window[:, -1], self.spread.shape[1]
        scale = torch.where(self.spread > 0, self.spread, 1.0)
        return torch.cat([(row[:, :c] - self.level[:, :c]) / scale, row[:, c:]], 1)

    def lags(self, rows: Tensor, starts: Tensor) -> Tensor:
        """Deviations from the level (U, (c + E) * W) of all units; see `Units.lags`."""
        deviations = torch.where(self.known, self.window - self.level[:, None], 0.0)
        return deviations.mT.flatten(1)


def last_of(window: Tensor, count: Tensor, varies: Tensor, *, local_level: bool) -> Last:
    """Local level and spread of windows (U, W, c + E); see `make_units`."""
    size, c = window.shape[1], varies.shape[1]
    known = (torch.arange(size) >= size - count)[..., None]
    if not local_level:
        return Last(window, known, torch.zeros_like(window[:, -1]), varies)
    # From the last row, so that a constant window has its value as level and no spread, exactly.
    away = torch.where(known, window - window[:, -1:], 0.0)
    mean = away.sum(1) / count
    variance = torch.where(known, away - mean[:, None], 0.0).square().sum(1) / count
    spread = (variance[:, :c] + (SPREAD_FLOOR * varies) ** 2).sqrt()
    return Last(window, known, window[:, -1] + mean, spread)


def take_in(
    start: Running,
    rows: Tensor,
    alive: Tensor,
    look: Callable[[Tensor, Tensor], Last],
    advance: Advance,
) -> Running:
    """Take rows (U, T, c + E) in one by one, those that are `alive` (U, T)."""
    # torch has no public name for it yet.
    from torch._higher_order_ops import scan

    def step(
        before: tuple[Tensor, Tensor, Tensor], new: tuple[Tensor, Tensor]
    ) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        (window, count, state), (row, live) = before, new
        longer = torch.cat([window[:, 1:], row[:, None]], 1)
        counted = (count + 1).clamp(max=window.shape[1])
        moved = advance(look(longer, counted).inputs()[:, None], state)
        after = (
            torch.where(live[:, None, None], longer, window),
            torch.where(live[:, None], counted, count),
            torch.where(live[:, None], moved, state),
        )
        return after, live.clone()  # a scan must give something a step

    # What a scan carries keeps its strides.
    begin = tuple(part.clone(memory_format=torch.contiguous_format) for part in start)
    end, _ = scan(step, begin, (rows.movedim(1, 0), alive.movedim(1, 0)))
    return Running(*end)


class SeriesScaling(NamedTuple):
    """Location, scale and whether the series varies (1 or 0), each (S, C)."""

    location: Tensor
    scale: Tensor
    varies: Tensor


def scale_series(raw: Tensor, changed: Tensor, alive: Tensor, season: int) -> SeriesScaling:
    """Scaling of series by their own rows, as `fit_scaling` finds it.

    Parameters
    ----------
    raw, changed : Tensor of shape (S, T, C)
        Targets, and the same transformed.
    alive : boolean Tensor of shape (S, T, 1)
        Rows that are there, the first ones.
    season : int
    """
    count = alive.sum(1)
    low, high = _range(raw, alive)
    varies = (high > low).to(raw.dtype)
    location, deviation = _moments(changed, alive, count)
    errors = _naive_errors((changed - location[:, None]) / deviation[:, None], alive, count, season)
    relative = torch.where(varies > 0, errors.clamp(min=SMALLEST_SCALE), 1.0)
    scale = torch.where(count > 0, deviation * relative, 0.0)  # not known without rows
    return SeriesScaling(location, scale, varies)


def _range(values: Tensor, alive: Tensor) -> tuple[Tensor, Tensor]:
    low = torch.where(alive, values, torch.inf).amin(1)
    return low, torch.where(alive, values, -torch.inf).amax(1)


def _moments(values: Tensor, alive: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation, the second 1 where nothing varies."""
    low, high = _range(values, alive)
    mean = torch.where(alive, values, 0.0).sum(1) / count
    mean = torch.minimum(torch.maximum(mean, low), high)  # rounding could leave a constant
    # Squares of very large or small values leave the range of floats.
    peak = torch.maximum(high - mean, mean - low)
    peak = torch.where(peak > 0, peak, 1.0)
    relative = torch.where(alive, (values - mean[:, None]) / peak[:, None], 0.0)
    deviation = peak * (relative.square().sum(1) / count).sqrt()
    return mean, torch.where((high > low) & (deviation > 0), deviation, 1.0)


def _naive_errors(values: Tensor, alive: Tensor, count: Tensor, season: int) -> Tensor:
    """Mean absolute difference of rows a season apart, of neighbours in less than two seasons."""
    seasonal = _mean_change(values, alive, count, season)
    return torch.where(count >= 2 * season, seasonal, _mean_change(values, alive, count, 1))


def _mean_change(values: Tensor, alive: Tensor, count: Tensor, lag: int) -> Tensor:
    # Led by `lag` rows, so that no shape depends on whether there are as many.
    n_series, steps, columns = values.shape
    before = torch.cat([values.new_zeros(n_series, lag, columns), values], 1)[:, :steps]
    there = alive & (torch.arange(steps) >= lag)[:, None]
    changes = torch.where(there, (values - before).abs(), 0.0)
    return changes.sum(1) / (count - lag).clamp(min=1)


def boxcox(values: Tensor, exponent: float | None) -> Tensor:
    """Transformation of Box and Cox of positive values."""
    if exponent is None:
        return values
    return values.log() if exponent == 0 else torch.expm1(exponent * values.log()) / exponent


def inverse_boxcox(values: Tensor, exponent: float | None) -> Tensor:
    """Undo `boxcox`; what lies below the transform of zero becomes zero."""
    if exponent is None:
        return values
    return values.exp() if exponent == 0 else (exponent * values + 1).clamp(min=0) ** (1 / exponent)
