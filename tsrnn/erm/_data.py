"""What a network is trained on, in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.erm._sequences import Sequences
from tsrnn.training import Epoch

LEAST_STEPS = 20  # optimiser steps an epoch, so that a small sample is not an epoch of one
MOST_STEPS = 200  # by the batch size that is chosen, as long as it is below the largest
LEAST_BATCH, LARGEST_BATCH = 64, 1024


class Batch(NamedTuple):
    """Some samples, padded.

    Attributes
    ----------
    x : Tensor of shape (B, T, d_in)
    lengths : integer Tensor of shape (B,) or None
        None where all samples are as long.
    target : Tensor of shape (B, k), (B, T, k), or without k if it is a class
    weight : Tensor of shape (B,) or (B, T)
        Zero after a sequence's end.
    """

    x: Tensor
    lengths: Tensor | None
    target: Tensor
    weight: Tensor

    def to(self, device: torch.device) -> Batch:
        """On a device."""
        lengths = None if self.lengths is None else self.lengths.to(device)
        return Batch(self.x.to(device), lengths, self.target.to(device), self.weight.to(device))


class TrainingData:
    """Samples one below the other; see `Sequences`.

    Parameters
    ----------
    sequences : Sequences
        As the network sees them.
    target : Tensor of shape (N, k) or (rows, k), or without k
    weight : ndarray of shape (N,) or (rows,), optional
        Of samples or rows; all 1 by default. They are given a mean of 1 over samples, or steps of
        samples, that have any; targets of weight 0 may be anything.
    many_to_many : bool
        Whether targets and weights are of rows.
    """

    def __init__(
        self,
        sequences: Sequences,
        target: Tensor,
        weight: np.ndarray | None,
        many_to_many: bool,
    ) -> None:
        self.values = torch.from_numpy(sequences.values.astype(np.float32))
        self.starts = torch.from_numpy(sequences.starts)
        self.lengths = torch.from_numpy(sequences.lengths)
        self.target = target
        self._equal = bool((self.lengths == self.lengths[0]).all())
        self.many_to_many = many_to_many
        self.weight = torch.ones(len(target))
        if weight is not None:
            own = counted(weight, sequences, many_to_many)
            if many_to_many:
                own = np.repeat(own, sequences.lengths)
            self.weight = torch.from_numpy((weight / weight[own].mean()).astype(np.float32))
            self.target = target.masked_fill(_like(torch.from_numpy(weight == 0), target), 0)

    def batch(self, samples: Tensor) -> Batch:
        """Some of the samples."""
        if self._equal:  # taking samples of an array is quicker than taking rows
            parts = (self.values, self.target, self.weight)
            x, target, weight = (part.unflatten(0, (len(self.lengths), -1)) for part in parts)
            if not self.many_to_many:
                target, weight = self.target, self.weight
            return Batch(x[samples], None, target[samples], weight[samples])
        lengths = self.lengths[samples]
        steps = torch.arange(int(lengths.max()))
        rows = self.starts[samples, None] + torch.minimum(steps, lengths[:, None] - 1)
        equal = bool((lengths == lengths[0]).all())
        target, weight = self.target[samples], self.weight[samples]
        if self.many_to_many:
            inside = steps < lengths[:, None]
            target, weight = self.target[rows], self.weight[rows] * inside
        return Batch(self.values[rows], None if equal else lengths, target, weight)

    def sample(self, numbers: int) -> Tensor:
        """About so many inputs, of samples that are as long as half of them or longer."""
        length = int(self.lengths.median())
        long_enough = torch.nonzero(self.lengths >= length)[:, 0]
        count = max(1, numbers // (length * self.values.shape[1]))
        chosen = long_enough[:: max(1, len(long_enough) // count)][:count]
        rows = self.starts[chosen, None] + self.lengths[chosen, None] + torch.arange(-length, 0)
        return self.values[rows]


def counted_samples(weight: np.ndarray | None, sequences: Sequences, many_to_many: bool) -> Tensor:
    """Samples of a weight above 0, or with such a step; the others are left out."""
    if weight is None:
        return torch.arange(len(sequences))
    return torch.from_numpy(np.flatnonzero(counted(weight, sequences, many_to_many)))


def counted(weight: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Whether each sample has a weight above 0 or, with weights of rows, such a step."""
    return np.maximum.reduceat(weight, sequences.starts) > 0 if many_to_many else weight > 0


def _like(rows: Tensor, values: Tensor) -> Tensor:
    """One of `rows` for each of `values`, whose first axis they are."""
    return rows.view(-1, *[1] * (values.ndim - 1))


class SampleEpoch(Epoch):
    """Passes over samples in random order.

    An epoch is one pass, or several where that would be fewer than `least_steps`.

    Parameters
    ----------
    data : TrainingData
    samples : integer Tensor
        Those to train on.
    batch_size : int or None
        By default 64, or as many as make an epoch `MOST_STEPS`, at most 1024.
    generator : torch.Generator
    least_steps : int
    """

    def __init__(
        self,
        data: TrainingData,
        samples: Tensor,
        batch_size: int | None,
        generator: torch.Generator,
        least_steps: int = LEAST_STEPS,
    ) -> None:
        self.data, self.samples = data, samples
        fitting = -(-len(samples) // MOST_STEPS)
        self.batch_size = batch_size or min(max(LEAST_BATCH, fitting), LARGEST_BATCH)
        self.generator, self.least_steps = generator, least_steps

    def __len__(self) -> int:
        return max(-(-len(self.samples) // self.batch_size), self.least_steps)

    def batches(self) -> Iterator[Any]:
        """Batches without end, passing over all samples again and again."""
        while True:
            order = torch.randperm(len(self.samples), generator=self.generator)
            for chosen in self.samples[order].split(self.batch_size):
                yield self.data.batch(chosen)
