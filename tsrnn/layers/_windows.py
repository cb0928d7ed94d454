"""Windows of a batch whose sequences continue at different phases, and their state."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tsrnn.kernels import over_replicates
from tsrnn.layers._recurrent import last_output


class Windows:
    """Windows of W steps that contain the new steps of a batch, and the window before these.

    Windows are counted from the start of each sequence: after n steps, the next step has the phase
    n mod W. Tensors by window have shape (B, G, W, d), and the first window starts with `phase` old
    steps. Tensors with the previous window have shape (B, 1 + G, W, d). `seen` (B,) is the number
    of old steps, `lengths` (B,) of new ones, at most `steps`. `complete` (B,) counts the complete
    windows among the G; `fresh` (B,) is True if no window precedes them.
    """

    def __init__(self, seen: Tensor, lengths: Tensor, steps: int, window: int) -> None:
        self.window = window
        self.steps = steps
        self.phase = seen % window
        latest = max(over_replicates(self.phase).flatten().tolist(), default=0)
        self.count = -(-(latest + steps) // window)
        self.lengths = lengths
        self.complete = (self.phase + lengths) // window
        self.fresh = seen < window

    def place(self, x: Tensor) -> Tensor:
        """New steps (B, T, d) by window; other places hold copies that are never read."""
        places = self._range(self.count * self.window) - self.phase[:, None]
        rows = _take(x, places.clamp(0, self.steps - 1))
        return rows.unflatten(1, (self.count, self.window))

    def after(self, cache: Tensor, new: Tensor) -> Tensor:
        """Concatenate W old steps (B, W, d) and new ones by window to (B, 1 + G, W, d)."""
        places = self._range(2 * self.window) - self.phase[:, None]
        before, begun = _take(cache, places.clamp(0, self.window - 1)).chunk(2, 1)
        old = (self._range(self.window) < self.phase[:, None])[..., None]
        first = torch.where(old, begun, new[:, 0])
        return torch.cat([before[:, None], first[:, None], new[:, 1:]], 1)

    def new(self, by_window: Tensor) -> Tensor:
        """New steps (B, T, d) from (B, G, W, d)."""
        return _take(by_window.flatten(1, 2), self._range(self.steps) + self.phase[:, None])

    def cache(self, by_window: Tensor) -> Tensor:
        """Last W steps (B, W, d) from (B, 1 + G, W, d)."""
        end = self.phase + self.lengths
        return _take(by_window.flatten(1, 2), self._range(self.window) + end[:, None])

    def _range(self, count: int) -> Tensor:
        return torch.arange(count, device=self.phase.device)


class TransformerState(NamedTuple):
    """State of a block-recurrent transformer, packed into a tensor (layers, B, state_size)."""

    output: Tensor  # (B, d), at the last step
    seen: Tensor  # (B,) integers, number of steps; from 2 W on, W plus the phase
    cache: Tensor  # (layers, B, W, d), inputs of the layers at the last W steps
    states: Tensor  # (recurrent layers, B, S, d), zero until the first window is complete

    @classmethod
    def unpack(cls, hx: Tensor, size: int, window: int, recurrent: range) -> TransformerState:
        """Unpack a tensor (layers, B, state_size); `recurrent` layers are counted from 1."""
        output, seen, cache, states = hx.tensor_split([size, size + 1, (window + 1) * size + 1], -1)
        steps = seen[0, :, 0].detach()
        every = over_replicates(steps).flatten()
        wrong = ~((every == every.round()) & (every >= 0) & (every < 2 * window))
        if wrong.any():
            raise ValueError(
                "hx must be zero or a state that the layer returned: its number "
                f"{size + 1} counts steps, 0 to {2 * window - 1}; got "
                f"{every[wrong][0].item()}"
            )
        vectors = states[recurrent.start - 1 : recurrent.stop - 1].unflatten(-1, (-1, size))
        return cls(output[-1], steps.to(torch.int64), cache.unflatten(-1, (window, size)), vectors)

    @property
    def begun(self) -> Tensor:
        """Mask (B, 1, 1) of the sequences whose first window is complete."""
        return (self.seen >= self.cache.shape[2])[:, None, None]

    def after(
        self, windows: Windows, output: Tensor, cache: Tensor, states: Tensor
    ) -> TransformerState:
        """State after new steps with outputs (B, T, d), caches and state vectors."""
        total = self.seen + windows.lengths
        # Beyond two windows only the phase matters: small counts are exact in any dtype.
        seen = torch.where(
            total < 2 * windows.window, total, windows.window + total % windows.window
        )
        new = TransformerState(
            last_output(output, self.output, windows.lengths), seen, cache, self.states
        )
        return new._replace(states=torch.where(new.begun, states, self.states))

    def pack(self, recurrent: range) -> Tensor:
        """Tensor (layers, B, state_size): output in the last layer, states in recurrent ones."""
        n_layers = len(self.cache)

        def rows(x: Tensor, layers: range) -> Tensor:
            around = layers.start - 1, n_layers + 1 - layers.stop
            return nn.functional.pad(x, (0, 0, 0, 0, *around))

        return torch.cat(
            [
                rows(self.output[None], range(n_layers, n_layers + 1)),
                self.seen.to(self.cache).expand(n_layers, -1)[..., None],
                self.cache.flatten(2),
                rows(self.states.flatten(2), recurrent),
            ],
            -1,
        )


def _take(x: Tensor, index: Tensor) -> Tensor:
    """Select the steps `index` (B, M) of x (B, N, d)."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))
