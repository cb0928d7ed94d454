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
AT_ONCE = 2**18  # forecasts: a megabyte each of them, of errors and of gradients
MANY_AT_ONCE = 2**20  # more than the second cache holds


class Batch(NamedTuple):
    """Segments of one training step.

    Attributes
    ----------
    rows : integer Tensor of shape (B, L)
        Rows of the units, the last one repeated after a segment's end.
    lengths : integer Tensor of shape (B,)
    starts : integer Tensor of shape (B,)
        First row of the unit of each segment.
    first : integer Tensor of shape (B,)
        Position in the segment from which rows forecast.
    ends : integer Tensor of shape (B,)
        Row after the unit's training part: targets lie before it.
    """

    rows: Tensor
    lengths: Tensor
    starts: Tensor
    first: Tensor
    ends: Tensor

    @classmethod
    def between(cls, begin: Tensor, first: Tensor, units: Units) -> Batch:
        """Rows of units from `begin` to their ends, of which those from `first` on forecast."""
        ends = units.indptr[1:]
        chosen = ends > begin
        begin, first, ends = begin[chosen], first[chosen], ends[chosen]
        steps = torch.arange(int((ends - begin).max()))
        rows = torch.minimum(begin[:, None] + steps, ends[:, None] - 1)
        return cls(rows, ends - begin, units.starts[chosen], first - begin, ends)

    def moved(self, offset: int) -> Batch:
        """The batch where the rows of its units begin at another one."""
        starts, ends = self.starts + offset, self.ends + offset
        return Batch(self.rows + offset, self.lengths, starts, self.first, ends)

    def padded(self, count: int, length: int) -> Batch:
        """The batch with further rows, and with further segments whose rows do not count."""
        b, steps = self.rows.shape
        place = torch.arange(count).clamp(max=b - 1)
        rows = self.rows[:, torch.arange(length).clamp(max=steps - 1)][place]
        first = torch.where(torch.arange(count) < b, self.first[place], self.lengths[place])
        return Batch(rows, self.lengths[place], self.starts[place], first, self.ends[place])


class Segments(Epoch):
    """Epoch of batches of segments: the state warms up, then every row forecasts.

    Segments are drawn anew each time it is iterated. A row forecasts about once an epoch, more
    often where that would be fewer than `LEAST_STEPS` steps, less where it would be more than
    `MOST_STEPS`. The first rows of a unit, `warm_up` of them or two thirds of a short one, do
    not: their past is too short.

    Parameters
    ----------
    starts, ends : integer Tensors of shape (U,)
        Training part of each unit.
    order : integer Tensor of shape (U,)
        Order in which units are numbered for the draws.
    warm_up : int
        Rows that only warm the state up, where a segment does not begin with its unit.
    length : int
        Rows of a segment that forecast.
    batch_size : int
    generator : torch.Generator
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
        self._only: Batch | None = None  # of every step, where there is no other

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
        """Batches without end, in passes over all segments."""
        plan = self.order.repeat_interleave(self.counts[self.order])
        # Short units that fit in one batch are the same in every step, in any order.
        same = bool(self._whole.all()) and len(plan) <= self.batch_size
        if same and self._only is None:
            self._only = self._batch(plan, torch.zeros(len(plan)))
        batch = self._only
        while True:
            order = torch.randperm(len(plan), generator=self.generator)
            if batch is not None:
                torch.rand(
                    len(plan), generator=self.generator
                )  # what is drawn after stays the same
                yield batch
                continue
            for units in plan[order].split(self.batch_size):
                draw = torch.rand(len(units), generator=self.generator)
                yield self._batch(units, draw)

    def _batch(self, units: Tensor, draw: Tensor) -> Batch:
        """Segments of some units, at places that uniform numbers draw."""
        usable = self.ends[units] - self.starts[units] - 1
        whole = self._whole[units]
        length = torch.where(whole, usable, self.warm_up + self.length)
        room = usable - length
        # Offsets beyond both ends, moved to them, let every row be drawn equally often.
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
    """Everything that the loss of a batch needs beside what is estimated.

    Tensors of several replicates, each with a batch of its own, have a further first axis, or
    stand one below the other (`stacked`); the row to forecast from first is then the earliest of
    all.

    Attributes
    ----------
    x : Tensor of shape (B, L, C + E)
        Inputs of the network.
    lengths : integer Tensor of shape (B,) or None
        None where no segment is padded.
    first : int
        Position from which rows forecast.
    level, spread, lags, strength, path, future, target : Tensor or None
        As in `Origins`, of the rows from `first` on.
    weight : Tensor of shape (B, L - first, h, 1)
        1 where a forecast counts, else 0.
    total : Tensor
        Sum of the weights, of all targets; of stacked replicates one each (R,).
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
        """Replicates one below the other, as models take them that `take_replicates`."""
        flat: dict[str, Any] = {
            name: part.flatten(0, 1)
            for name, part in self._asdict().items()
            if isinstance(part, Tensor) and name != "total"
        }
        return self._replace(**flat)

    def loss(self, model: ForecastModel, loss: str) -> Tensor:
        """Mean loss over all known targets of the rows that forecast; of each stacked replicate."""
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
        """Loss (..., h, C) of every forecast, zero where there is no target."""
        windows = Windows(self.level, self.spread, _no_lags, None, self.path)
        regressors = None if self.lags is None else Regressors(self.lags, self.strength)
        origins = Origins(windows, regressors, self.future, self.target, self.weight)
        return self.weight * losses(model, loss, origins, states)

    def _block(self, block: slice) -> StepData:
        """Some of the rows that forecast, without what the network reads."""
        parts: dict[str, Any] = {}
        for name in ("level", "spread", "lags", "strength", "path", "future", "target", "weight"):
            part = getattr(self, name)
            parts[name] = None if part is None else part.flatten(0, 1)[block]
        return self._replace(**parts)


class _SumInBlocks(torch.autograd.Function):
    """Sum of a function of rows of states, some at a time, with its gradients.

    A row of states is short and its forecasts are many: blocks of them are used up, their gradients
    included, while they are in the cache.
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
                if more is not None:  # not in place: two parameters may have one gradient
                    gradients[i] = more if sum_ is None else sum_ + more
        ctx.save_for_backward(g_states.view(states.shape), *gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(None if part is None else g * part for part in ctx.saved_tensors)


def _no_lags(columns: Sequence[int]) -> Tensor:
    raise AssertionError("the regressors of a batch stand for its lags")


class Joined:
    """Units of several fits as one, and the batches of their networks as one of replicates.

    Parameters
    ----------
    model : ForecastModel
        One of those trained, for its shapes.
    units : sequence of Units
        Of the same window and columns.

    Attributes
    ----------
    offsets : list of int
        First row of the units of each fit among those of all.
    stacked : bool
        Whether replicates of a batch stand one below the other, without an axis.
    """

    def __init__(self, model: ForecastModel, units: Sequence[Units]) -> None:
        self.stacked = model.takes_replicates
        sizes = torch.tensor([0, *(len(part.values) for part in units)]).cumsum(0)
        self.offsets: list[int] = sizes[:-1].tolist()
        self._model, self._units = model, Units.joined(units)
        self._last: tuple[list[int], Sequence[Batch], StepData] | None = None

    def collate(self, batches: Sequence[Batch]) -> StepData:
        """Batches of replicates, padded to one shape, with the rows that they name."""
        numbers = [id(batch) for batch in batches]
        if self._last is not None and self._last[0] == numbers:
            return self._last[2]  # short series are the same in every step
        count = max(len(batch.rows) for batch in batches)
        length = max(batch.rows.shape[1] for batch in batches)
        stacked = zip(*(batch.padded(count, length) for batch in batches), strict=True)
        data = StepData.of(self._model, self._units, Batch(*map(torch.stack, stacked)))
        data = data.stacked() if self.stacked else data
        self._last = numbers, batches, data  # kept alive, so that no other has their numbers
        return data


class Origins(NamedTuple):
    """Rows to forecast from: all that forecasts and their losses need beside what is estimated.

    Attributes
    ----------
    windows : Windows
    regressors : Regressors or None
        Those of the linear path, if the model has one.
    future : Tensor of shape (..., h, n_known) or None
        Columns known ahead, if there are any.
    target : Tensor of shape (..., h, C)
    known : boolean Tensor of shape (..., h, 1)
        Whether forecasts have a target.
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
        """Gather from units.

        Parameters
        ----------
        model : ForecastModel
        units : Units
        rows, starts, ends : integer Tensors of one shape
            Rows to forecast from, the first row of the unit of each, and the row from which on
            values are not to be used.
        """
        windows = units.at(rows, starts)
        known = model.linear is None or windows.path is not None
        regressors = None if known else model.regressors(windows)
        return cls(
            windows, regressors, model.columns_ahead(units, rows),
            *model.targets(units, rows, ends),
        )  # fmt: skip


def losses(model: ForecastModel, loss: str, origins: Origins, states: Tensor) -> Tensor:
    """Loss (..., h, C) of every forecast, on the standardised scale.

    Parameters
    ----------
    model : ForecastModel
    loss : {"mse", "mae", "quantile", "student-t"}
    origins : Origins
    states : Tensor of shape (..., hidden_size)
        Outputs of the last layer after the rows to forecast from.
    """
    windows, regressors, future, target, _ = origins
    error = target - model.parts(windows, states, future, regressors).total()
    if loss == "mse":
        return error.square()
    if loss == "mae":
        return error.abs()
    return model.distribution_loss(error, windows.spread[..., None, :], states)
