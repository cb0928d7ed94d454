"""What a block-recurrent transformer carries on, as one tensor."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tsrnn.layers._brt_windows import Windows


class Shape(NamedTuple):
    """The sizes that say how a state is divided."""

    num_layers: int
    size: int  # d
    window: int  # W
    n_states: int  # S
    recurrent_layer: int  # counted from 1

    @property
    def parts(self) -> tuple[int, int, int, int]:
        """Numbers of output, steps seen, cache and state vectors in a row."""
        return self.size, 1, self.window * self.size, self.n_states * self.size


class Carried(NamedTuple):
    """A state taken apart."""

    output: Tensor  # (B, d), of the last step
    seen: Tensor  # (B,) integers: steps, of more than W: W and what is left of whole windows
    cache: Tensor  # (layers, B, W, d), inputs of the layers at the last W steps
    states: Tensor  # (B, S, d), zero before the first window is complete

    @classmethod
    def unpack(cls, hx: Tensor, shape: Shape) -> Carried:
        """Of a tensor (layers, B, state_size).

        Raises
        ------
        ValueError
            If it is no state of these sizes.
        """
        output, seen, cache, states = hx.split(shape.parts, -1)
        steps = seen[0, :, 0].detach()
        wrong = ~((steps == steps.round()) & (steps >= 0) & (steps < 2 * shape.window))
        if wrong.any():
            raise ValueError(
                "hx must be zero or a state that the layer returned: its number "
                f"{shape.size + 1} counts steps, 0 to {2 * shape.window - 1}; got "
                f"{steps[wrong][0].item()}"
            )
        vectors = states[shape.recurrent_layer - 1].unflatten(-1, (shape.n_states, shape.size))
        rows = cache.unflatten(-1, (shape.window, shape.size))
        return cls(output[-1], steps.to(torch.int64), rows, vectors)

    def memory(self, initial: Tensor) -> Tensor:
        """State vectors (B, S, d); before the first window is complete the learned start."""
        return torch.where(_begun(self.seen, self.cache.shape[2]), self.states, initial)

    def after(self, windows: Windows, output: Tensor, cache: Tensor, memory: Tensor) -> Carried:
        """What is carried on after new steps with outputs (B, T, d), their cache and memory."""
        any_new = windows.lengths[:, None] > 0
        seen = count(self.seen, windows.lengths, windows.window)
        return Carried(
            torch.where(any_new, windows.last(output), self.output),
            seen,
            cache,
            torch.where(_begun(seen, windows.window), memory, self.states),
        )

    def pack(self, shape: Shape) -> Tensor:
        """The tensor (layers, B, state_size)."""
        last = shape.recurrent_layer
        seen = self.seen.to(self.cache).expand(shape.num_layers, -1)
        output = _row(self.output, shape.num_layers, shape)
        states = _row(self.states.flatten(1), last, shape)
        return torch.cat([output, seen[..., None], self.cache.flatten(2), states], -1)


def count(seen: Tensor, new: Tensor, window: int) -> Tensor:
    """Steps seen after new ones; more than W are counted as W and what is left of windows."""
    total = seen + new
    return torch.where(total < 2 * window, total, window + total % window)


def _begun(seen: Tensor, window: int) -> Tensor:
    """Whether the first window of a sequence is complete, (B, 1, 1)."""
    return (seen >= window)[:, None, None]


def _row(x: Tensor, layer: int, shape: Shape) -> Tensor:
    """(B, n) as the row of a layer of (layers, B, n), the others zero."""
    return nn.functional.pad(x[None], (0, 0, 0, 0, layer - 1, shape.num_layers - layer))
