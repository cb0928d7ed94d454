"""Where the steps of a batch lie in windows, when sequences go on at different places in one."""

import torch
from torch import Tensor


class Windows:
    """The windows that new steps fall into, and one before them.

    A sequence that has seen n steps goes on at its phase, n mod W: its windows are counted from
    its own beginning. Tensors by window are (B, G, W, d): the first of the G windows holds
    `phase` steps that came before. Tensors with the window before them are (B, 1 + G, W, d).

    Parameters
    ----------
    seen : integer Tensor of shape (B,)
        Steps so far; of more than W only what is left over W counts.
    lengths : integer Tensor of shape (B,)
        New steps.
    steps : int
        T, new steps of the longest.
    window : int
        W.

    Attributes
    ----------
    complete : integer Tensor of shape (B,)
        How many of the G windows are complete.
    fresh : bool Tensor of shape (B,)
        Whether there is nothing before the first of the G windows.
    """

    def __init__(self, seen: Tensor, lengths: Tensor, steps: int, window: int) -> None:
        self.window = window
        self.steps = steps
        self.phase = seen % window
        self.count = -(-(max(self.phase.tolist(), default=0) + steps) // window)
        self.lengths = lengths
        self.complete = (self.phase + lengths) // window
        self.fresh = seen < window

    def place(self, x: Tensor) -> Tensor:
        """New steps (B, T, d) by window; what stands at other places has no meaning."""
        places = self._range(self.count * self.window) - self.phase[:, None]
        rows = _rows(x, places.clamp(0, self.steps - 1))
        return rows.unflatten(1, (self.count, self.window))

    def after(self, cache: Tensor, new: Tensor) -> Tensor:
        """The W steps before (B, W, d), then new ones by window: (B, 1 + G, W, d)."""
        places = self._range(2 * self.window) - self.phase[:, None]
        before, begun = _rows(cache, places.clamp(0, self.window - 1)).chunk(2, 1)
        old = (self._range(self.window) < self.phase[:, None])[..., None]
        first = torch.where(old, begun, new[:, 0])
        return torch.cat([before[:, None], first[:, None], new[:, 1:]], 1)

    def new(self, by_window: Tensor) -> Tensor:
        """The new steps (B, T, d) of (B, G, W, d)."""
        return _rows(by_window.flatten(1, 2), self._range(self.steps) + self.phase[:, None])

    def last(self, output: Tensor) -> Tensor:
        """The last step (B, d) of the new ones (B, T, d), of no steps any."""
        return _rows(output, (self.lengths - 1).clamp(0)[:, None])[:, 0]

    def cache(self, by_window: Tensor) -> Tensor:
        """The last W steps (B, W, d) of (B, 1 + G, W, d)."""
        end = self.phase + self.lengths
        return _rows(by_window.flatten(1, 2), self._range(self.window) + end[:, None])

    def _range(self, count: int) -> Tensor:
        return torch.arange(count, device=self.phase.device)


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """Rows index (B, M) of x (B, N, d)."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))
