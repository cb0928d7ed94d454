"""Time in chunks: pieces of the same sequences side by side, as more sequences or more units."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Chunks:
    """How `count` pieces of `steps` steps each are laid side by side.

    As sequences they are views where memory allows. As units they fill the lanes of vector
    registers where there are few units, for the price of a copy.
    """

    count: int
    steps: int
    as_units: bool

    @property
    def total(self) -> int:
        """Steps in all chunks."""
        return self.count * self.steps

    def split(self, x: Tensor) -> Tensor:
        """(B, count * steps, fields, K) as (B', steps, fields, K')."""
        x = x.unflatten(1, (self.count, self.steps))
        if not self.as_units:
            return x.flatten(0, 1)
        return x.permute(0, 2, 3, 1, 4).flatten(3)

    def join(self, x: Tensor) -> Tensor:
        """Undo `split`."""
        if not self.as_units:
            return x.unflatten(0, (-1, self.count)).flatten(1, 2)
        return x.unflatten(3, (self.count, -1)).permute(0, 3, 1, 2, 4).flatten(1, 2)

    def split_boundaries(self, x: Tensor) -> Tensor:
        """(B, count, fields, K) as (B', fields, K')."""
        return x.transpose(1, 2).flatten(2) if self.as_units else x.flatten(0, 1)

    def join_boundaries(self, x: Tensor) -> Tensor:
        """Undo `split_boundaries`."""
        if self.as_units:
            return x.unflatten(2, (self.count, -1)).transpose(1, 2)
        return x.unflatten(0, (-1, self.count))

    def split_params(self, params: Tensor) -> Tensor:
        """Parameters (p, K) of every piece."""
        return params.repeat(1, self.count) if self.as_units else params

    def join_params(self, g_params: Tensor) -> Tensor:
        """Sum of the gradients of all pieces' parameters."""
        return g_params.unflatten(1, (self.count, -1)).sum(1) if self.as_units else g_params
