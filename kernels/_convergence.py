"""Convergence of a time-parallel engine's iteration."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Convergence:
    """Convergence of an engine to its answer, for each lane: a unit of a sequence.

    Attributes
    ----------
    passes : Tensor of shape (B, K), int64
        Newton steps until the lane had converged; 0 where nothing was iterated.
    residual : Tensor of shape (B, K)
        Largest mismatch that was left, relative to one plus the size of the state; not finite
        where a state is not.
    fell_back : Tensor of shape (B, K), bool
        Lanes that had not converged and were run in time order instead. The answer
        is exact for them too.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, recurrence
    >>> u, w = torch.ones(1, 64, 2, 3), torch.full((4, 3), 0.1)
    >>> *_, result = recurrence(cells.para_rnn(2), u, w, engine="shooting", full_output=True)
    >>> result.passes.shape, bool(result.fell_back.any())
    (torch.Size([1, 3]), False)
    """

    passes: Tensor
    residual: Tensor
    fell_back: Tensor

    @classmethod
    def exact(cls, initial: Tensor) -> Convergence:
        """Convergence where nothing was iterated; `initial` has shape (B, n, K)."""
        lanes = (initial.shape[0], initial.shape[2])
        passes = torch.zeros(lanes, dtype=torch.int64, device=initial.device)
        return cls(passes, initial.new_zeros(lanes), passes.bool())

    def __str__(self) -> str:
        lanes = self.passes.numel()
        if not lanes:
            return "no lanes"
        return (
            f"{lanes} lanes, passes median {int(self.passes.median())} largest "
            f"{int(self.passes.max())}, residual at most {float(self.residual.max()):.1e}, "
            f"{int(self.fell_back.sum())} run in time order"
        )
