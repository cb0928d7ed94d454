"""Segments of training, and the loss of forecasts from their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tsrnn.forecasters._model import ForecastModel, Regressors
from tsrnn.forecasters._units import Units, Windows
from tsrnn.kernels import over_replicates
from tsrnn.training import Epoch

LEAST_STEPS = 20  # optimiser steps an epoch, so that a short series is not an epoch of one
MOST_STEPS = 200  # so that on many rows as well epochs are validated in good time
AT_ONCE = 2**18  # forecasts in a block: a megabyte of errors, another of gradients
MANY_AT_ONCE = 2**20  # forecasts from which on blocks pay: the second-level cache holds fewer


class Batch(NamedTuple):
    """Segments of one training step.

    `rows`, shape (B, L), are of the units, the last one repeated after a segment's end. All others
    have shape (B,): `starts` is the first row of the unit, `first` the position from which rows
    forecast, and `ends` the row after the unit's training part, before which targets lie.
    """

    rows: Tensor
    lengths: Tensor
    starts: Tensor
    first: Tensor
    ends: Tensor

    @classmethod
    def between(cls, begin: Tensor, first: Tensor, units: Units) -> Batch:
        """Segments of rows from `begin` to the end of each unit, with origins from `first` on."""
        ends = units.indptr[1:]
        chosen = ends > begin
        begin, first, ends = begin[chosen], first[chosen], ends[chosen]
        steps = torch.arange(int((ends - begin).max()))
        rows = torch.minimum(begin[:, None] + steps, ends[:, None] - 1)
        return cls(rows, ends - begin, units.starts[chosen], first - begin, ends)

    def moved(self, offset: int) -> Batch:
        """Shift all rows by `offset`."""
        starts, ends = self.starts + offset, self.ends + offset
        return Batch(self.rows + offset, self.lengths, starts, self.first, ends)

    def padded(self, count: int, length: int) -> Batch:
        """Pad to `count` segments of `length` rows; padding is not forecast from."""
        b, steps = self.rows.shape
        place = torch.arange(count).clamp(max=b - 1)
        rows = self.rows[:, torch.arange(length).clamp(max=steps - 1)][place]
        first = torch.where(torch.arange(count) < b, self.first[place], self.lengths[place])
        return Batch(rows, self.lengths[place], self.starts[place], first, self.ends[place])


class Segments(Epoch):
    """Epoch of batches of segments: first rows warm up the state, all later rows are origins.

    Segments are drawn anew in each iteration. Each row is an origin about once an epoch, more often
    if that gave fewer than `LEAST_STEPS` steps, less often if more than `MOST_STEPS`. The first
    rows of a unit are no origins, as their past is too short: `warm_up` rows, or two thirds of a
    short unit. Rows from `starts` to `ends`, shape (U,), train; `order` is that of the units for
    the random draws; `length` counts the origins of a segment.
    """

    def __init__(
        self,
        starts: Tensor,
        ends: Tensor,
        *,
        order: Tensor,
        warm_up: int,
        length: int,
        batch_size: int,
        generator: torch.Generator,
    ) -> None:
        self.starts, self.ends, self.order = starts, ends, order
        self.warm_up, self.length = warm_up, length
        self.batch_size, self.generator = batch_size, generator
        usable = (ends - starts - 1).clamp(min=0)
        self._whole = usable <= warm_up + length  # short units are one segment each
        long_count = torch.ceil((usable - warm_up).clamp(min=1) / length).long()
        self.counts = torch.where(self._whole, 1, long_count)
        self._only: Batch | None = None  # the single batch, if all steps have the same

    def __len__(self) -> int:
        steps = -(-int(self.counts.sum()) // self.batch_size)
        return min(max(steps, LEAST_STEPS), MOST_STEPS)

    @property
    def positions(self) -> int:
        """Rows of a batch, at most."""
        usable = torch.minimum(
            self.ends - self.starts - 1, torch.tensor(self.warm_up + self.length)
        )
        return min(int(self.counts.sum()), self.batch_size) * int(usable.max())

    def batches(self) -> Iterator[Batch]:
        """Endless iterator over batches, in passes over all segments."""
        plan = self.order.repeat_interleave(self.counts[self.order])
        # Short units that fit in one batch are the same in every step, in any order.
        same = bool(self._whole.all()) and len(plan) <= self.batch_size
        if same and self._only is None:
            self._only = self._batch(plan, torch.zeros(len(plan)))
        batch = self._only
        while True:
            order = torch.randperm(len(plan), generator=self.generator)
            if batch is not None:
                torch.rand(len(plan), generator=self.generator)  # keeps later draws the same
                yield batch
                continue
            for units in plan[order].split(self.batch_size):
                draw = torch.rand(len(units), generator=self.generator)
                yield self._batch(units, draw)

    def _batch(self, units: Tensor, draw: Tensor) -> Batch:
        """Segments of units at positions given by uniform numbers `draw`."""
        usable = self.ends[units] - self.starts[units] - 1
        whole = self._whole[units]
        length = torch.where(whole, usable, self.warm_up + self.length)
        room = usable - length
        # Offsets beyond both ends are clamped, so that every row is drawn equally often.
        beyond = torch.where(whole, 0, self.length - 1)
        offset = (draw * (room + 2 * beyond + 1)).long() - beyond
        offset = torch.minimum(offset.clamp(min=0), room)
        # The beginning of a unit warms up for less: short series need every row they have.
        first = torch.where(
            whole, torch.minimum(2 * usable // 3, torch.tensor(self.warm_up)), self.warm_up
        )
        begin = self.starts[units] + offset
        steps = torch.arange(int(length.max()))
        rows = begin[:, None] + torch.minimum(steps, length[:, None] - 1)
        return Batch(rows, length, self.starts[units], first, self.ends[units])


class StepData(NamedTuple):
    """Data of the loss of a batch.

    The batches of several replicates are stacked along a further first axis, or concatenated
    (`stacked`); `first` is then the earliest position of all.

    Attributes
    ----------
    x : Tensor of shape (B, L, C + E)
        Inputs of the network.
    lengths : integer Tensor of shape (B,) or None
        None if no segment is padded.
    first : int
        Position of the first origin.
    level, spread, lags, strength, path, future, target : Tensor or None
        As in `Origins`, for the rows from `first` on.
    weight : Tensor of shape (B, L - first, h, 1)
        1 if a forecast counts, else 0.
    total : Tensor of shape () or (R,)
        Sum of the weights over all targets, for each of R stacked replicates.
    """

    x: Tensor
    lengths: Tensor | None
    first: int
    level: Tensor
    spread: Tensor
    lags: Tensor | None
    strength: Tensor | None
    path: Tensor | None
    future: Tensor | None
    target: Tensor
    weight: Tensor
    total: Tensor

    @classmethod
    def of(cls, model: ForecastModel, units: Units, batch: Batch) -> StepData:
        """Gather the rows of a batch from units."""
        x, first, length = units.inputs(batch.rows), int(batch.first.min()), batch.rows.shape[-1]
        whole = bool((batch.lengths == length).all())  # without padding there is less to do
        rows = batch.rows[..., first:]
        starts, ends = (part[..., None].expand_as(rows) for part in (batch.starts, batch.ends))
        origins = Origins.of(model, units, rows, starts, ends)
        position = torch.arange(first, length, device=rows.device)
        counts = (position >= batch.first[..., None]) & (position < batch.lengths[..., None])
        weight = (origins.known & counts[..., None, None]).to(x.dtype)
        total = (weight.sum((-4, -3, -2, -1)) * model.n_targets).clamp(min=1)
        windows, regressors, future, target, _ = origins
        lags, strength = (None, None) if regressors is None else regressors
        lengths = None if whole else batch.lengths
        return cls(
            x, lengths, first, windows.level, windows.spread, lags, strength, windows.path,
            future, target, weight, total,
        )  # fmt: skip

    def stacked(self) -> StepData:
        """Concatenate replicates, for models with `takes_replicates`."""
        flat: dict[str, Any] = {
            name: part.flatten(0, 1)
            for name, part in self._asdict().items()
            if isinstance(part, Tensor) and name != "total"
        }
        return self._replace(**flat)

    def loss(self, model: ForecastModel, loss: str) -> Tensor:
        """Mean loss over all known targets, for each stacked replicate."""
        states, _ = model.network.run(self.x, lengths=self.lengths)
        states, forecasts = states[:, self.first :], self.target.numel()
        if self.total.ndim:
            size = self._weighted(model, loss, states)
            return size.view(len(self.total), -1).sum(1) / self.total
        plain = over_replicates(self.target) is self.target  # blocks have no rule for torch.vmap
        if forecasts <= MANY_AT_ONCE or not (plain and torch.is_grad_enabled()):
            return self._weighted(model, loss, states).sum() / self.total

        def summed(states: Tensor, block: slice) -> Tensor:
            return self._block(block)._weighted(model, loss, states).sum()

        rows = max(1, AT_ONCE * len(states.flatten(0, -2)) // forecasts)
        estimated = [part for part in model.parameters() if part.requires_grad]
        total: Tensor = _SumInBlocks.apply(summed, rows, states, *estimated)
        return total / self.total

    def _weighted(self, model: ForecastModel, loss: str, states: Tensor) -> Tensor:
        """Loss of every forecast, shape (..., h, C); zero without a target."""
        windows = Windows(self.level, self.spread, _no_lags, None, self.path)
        regressors = None if self.lags is None else Regressors(self.lags, self.strength)
        origins = Origins(windows, regressors, self.future, self.target, self.weight)
        return self.weight * losses(model, loss, origins, states)

    def _block(self, block: slice) -> StepData:
        """Select flattened origins, without the inputs of the network."""
        parts: dict[str, Any] = {}
        for name in ("level", "spread", "lags", "strength", "path", "future", "target", "weight"):
            part = getattr(self, name)
            parts[name] = None if part is None else part.flatten(0, 1)[block]
        return self._replace(**parts)


class _SumInBlocks(torch.autograd.Function):
    """Sum of a function over blocks of states, with its gradients.

    The gradient of each block is computed at once, while its many forecasts are in the cache.
    """

    @staticmethod
    def forward(ctx: Any, function: Any, rows: int, states: Tensor, *parameters: Tensor) -> Tensor:
        flat = states.detach().flatten(0, -2)
        total, g_states = torch.zeros((), device=flat.device), torch.empty_like(flat)
        gradients: list[Tensor | None] = [None] * len(parameters)
        for begin in range(0, len(flat), rows):
            block = slice(begin, begin + rows)
            with torch.enable_grad():
                leaf = flat[block].requires_grad_()
                value = function(leaf, block)
                g_block, *more_of = torch.autograd.grad(
                    value, (leaf, *parameters), allow_unused=True
                )
            total = total + value.detach()
            g_states[block] = g_block
            for i, (sum_, more) in enumerate(zip(gradients, more_of, strict=True)):
                if more is not None:  # not in place: two parameters may share a gradient tensor
                    gradients[i] = more if sum_ is None else sum_ + more
        ctx.save_for_backward(g_states.view(states.shape), *gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(None if part is None else g * part for part in ctx.saved_tensors)


def _no_lags(columns: Sequence[int]) -> Tensor:
    raise AssertionError("the regressors of a batch stand for its lags")


class ConcatenatedUnits:
    """Concatenated units of several fits, which collate the batches of their networks.

    The model gives its shapes alone. `offsets` are the first rows of the units of each fit;
    replicates are concatenated if `stacked`, and have an axis otherwise.
    """

    def __init__(self, model: ForecastModel, units: Sequence[Units]) -> None:
        self.stacked = model.takes_replicates
        sizes = torch.tensor([0, *(len(part.values) for part in units)]).cumsum(0)
        self.offsets: list[int] = sizes[:-1].tolist()
        self._model, self._units = model, Units.concatenate(units)
        self._last: tuple[list[int], Sequence[Batch], StepData] | None = None

    def collate(self, batches: Sequence[Batch]) -> StepData:
        """Pad the batches of replicates to one shape and gather their rows."""
        numbers = [id(batch) for batch in batches]
        if self._last is not None and self._last[0] == numbers:
            return self._last[2]  # short series are the same in every step
        count = max(len(batch.rows) for batch in batches)
        length = max(batch.rows.shape[1] for batch in batches)
        stacked = zip(*(batch.padded(count, length) for batch in batches), strict=True)
        data = StepData.of(self._model, self._units, Batch(*map(torch.stack, stacked)))
        data = data.stacked() if self.stacked else data
        self._last = numbers, batches, data  # kept alive, as ids of freed objects are reused
        return data


class Origins(NamedTuple):
    """Data of forecasts from chosen rows and of their losses.

    `regressors` are None without a linear path, or if its forecasts are precomputed; `future`,
    shape (..., h, n_known), without columns known ahead. `target` has shape (..., h, C); `known`,
    shape (..., h, 1), is True if the forecast has a target.
    """

    windows: Windows
    regressors: Regressors | None
    future: Tensor | None
    target: Tensor
    known: Tensor

    @classmethod
    def of(
        cls, model: ForecastModel, units: Units, rows: Tensor, starts: Tensor, ends: Tensor
    ) -> Origins:
        """Gather from units at `rows`; their units begin at `starts`, targets end at `ends`."""
        windows = units.at(rows, starts)
        known = model.linear is None or windows.path is not None
        regressors = None if known else model.regressors(windows)
        return cls(
            windows, regressors, model.columns_ahead(units, rows),
            *model.targets(units, rows, ends),
        )  # fmt: skip


def losses(model: ForecastModel, loss: str, origins: Origins, states: Tensor) -> Tensor:
    """Loss (..., h, C) of every forecast, on the standardised scale.

    `states`, shape (..., hidden_size), are the outputs of the last layer at the origins.
    """
    windows, regressors, future, target, _ = origins
    error = target - model.parts(windows, states, future, regressors).total()
    if loss == "mse":
        return error.square()
    if loss == "mae":
        return error.abs()
    return model.distribution_loss(error, windows.spread[..., None, :], states)
