"""Batches of an epoch, and the share of one of several processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import torch


class Epoch(ABC):
    """Batches of an epoch, drawn anew by each iteration.

    A subclass implements `__len__`, the number of batches, and `batches`. The tensors of a batch
    are moved to the training device.

    Attributes
    ----------
    generator : torch.Generator
        Generator of all draws.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.training import Epoch
    >>> class Rows(Epoch):
    ...     def __init__(self, n):
    ...         self.n, self.generator = n, torch.Generator().manual_seed(0)
    ...     def __len__(self):
    ...         return 2
    ...     def batches(self):
    ...         yield from torch.randperm(self.n, generator=self.generator).chunk(2)
    >>> [len(batch) for batch in Rows(6)]
    [3, 3]
    """

    generator: torch.Generator

    @abstractmethod
    def __len__(self) -> int:
        """Number of batches of an epoch."""

    @abstractmethod
    def batches(self) -> Iterator[Any]:
        """Endless batches, or batches of one pass, which is repeated if more are needed."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.share(0, 1))

    def share(self, rank: int, count: int) -> Share:
        """Share of process `rank`: every `count`-th batch.

        Every process draws all batches, so that their generators agree, and takes equally many.
        """
        return Share(self, rank, count)

    def __getstate__(self) -> dict[str, Any]:
        # A pickled generator frees its state before a started process reads it.
        return self.__dict__ | {"generator": self.generator.get_state().numpy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"generator": torch.Generator()}
        self.generator.set_state(torch.from_numpy(state["generator"]))


class Share:
    """Batches that one of several processes takes, see `Epoch.share`.

    Parameters
    ----------
    epoch : Epoch
    rank : int
        Number of the process, from 0.
    count : int
        Number of processes.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.training import Epoch, Share
    >>> class Batches(Epoch):
    ...     generator = torch.Generator()
    ...     def __len__(self):
    ...         return 4
    ...     def batches(self):
    ...         yield from range(4)
    >>> [list(Share(Batches(), rank, 2)) for rank in (0, 1)]
    [[0, 2], [1, 3]]
    """

    def __init__(self, epoch: Epoch, rank: int, count: int) -> None:
        self._epoch, self._rank, self._count = epoch, rank, count

    def __len__(self) -> int:
        return -(-len(self._epoch) // self._count)

    def __iter__(self) -> Iterator[Any]:
        # The last round may need more batches than a pass has: processes take equally many.
        batches = chain.from_iterable(iter(self._epoch.batches, None))
        for _ in range(len(self)):
            yield list(islice(batches, self._count))[self._rank]
