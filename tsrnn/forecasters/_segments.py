"""Stretches of series to train on: the state warms up, then every row forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.training import Epoch

LEAST_STEPS = 20  # optimiser steps an epoch, so that a short series is not an epoch of one
MOST_STEPS = 200


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


class Segments(Epoch):
    """An epoch of batches, drawn anew each time it is iterated.

    A row forecasts about once an epoch, more often where that would be fewer than
    `LEAST_STEPS` steps, less where it would be more than `MOST_STEPS`. The first rows of a
    unit, `warm_up` of them or two thirds of a short one, do not: their past is too short.

    Parameters
    ----------
    starts, ends : integer Tensors of shape (U,)
        Training part of each unit.
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
        warm_up: int,
        length: int,
        batch_size: int,
        generator: torch.Generator,
    ) -> None:
        self.starts, self.ends = starts, ends
        self.warm_up, self.length = warm_up, length
        self.batch_size, self.generator = batch_size, generator
        usable = (ends - starts - 1).clamp(min=0)
        self._whole = usable <= warm_up + length  # short units are one segment each
        long_count = torch.ceil((usable - warm_up).clamp(min=1) / length).long()
        self.counts = torch.where(self._whole, 1, long_count)

    def __len__(self) -> int:
        steps = -(-int(self.counts.sum()) // self.batch_size)
        return min(max(steps, LEAST_STEPS), MOST_STEPS)

    def batches(self) -> Iterator[Batch]:
        """Batches without end, passing over all segments again and again."""
        return map(self._batch, self._unit_batches())

    def _unit_batches(self) -> Iterator[Tensor]:
        plan = torch.arange(len(self.starts)).repeat_interleave(self.counts)
        while True:
            order = torch.randperm(len(plan), generator=self.generator)
            yield from plan[order].split(self.batch_size)

    def _batch(self, units: Tensor) -> Batch:
        usable = self.ends[units] - self.starts[units] - 1
        whole = self._whole[units]
        length = torch.where(whole, usable, self.warm_up + self.length)
        room = usable - length
        # Offsets beyond both ends, moved to them, let every row be drawn equally often.
        beyond = torch.where(whole, 0, self.length - 1)
        draw = torch.rand(len(units), generator=self.generator)
        offset = (draw * (room + 2 * beyond + 1)).long() - beyond
        offset = torch.minimum(offset.clamp(min=0), room)
        # A unit's own beginning warms up for less: short series need every row they have.
        first = torch.where(
            whole, torch.minimum(2 * usable // 3, torch.tensor(self.warm_up)), self.warm_up
        )
        begin = self.starts[units] + offset
        steps = torch.arange(int(length.max()))
        rows = begin[:, None] + torch.minimum(steps, length[:, None] - 1)
        return Batch(rows, length, self.starts[units], first, self.ends[units])
