"""The last rows of units, one by one: local level and spread, and the scan over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.forecasters import SPREAD_FLOOR

# One step of the network: inputs (U, 1, c + E) and state (layers, U, size) to the new state.
Advance = Callable[[Tensor, Tensor], Tensor]


class Running(NamedTuple):
    """U units after some row.

    Attributes
    ----------
    window : Tensor of shape (U, W, c + E)
        The last rows; those not known come first.
    known : Tensor of shape (U, 1)
        How many are known.
    state : Tensor of shape (layers, U, state_size)
    """

    window: Tensor
    known: Tensor
    state: Tensor


@dataclass(frozen=True)
class Last:
    """What the model asks of `Units`, at the last row of every unit.

    Attributes
    ----------
    window, known : Tensor of shape (U, W, c + E) and boolean (U, W, 1)
    level, spread : Tensor of shape (U, c + E) and (U, c)
        As in `Units`.
    """

    window: Tensor
    known: Tensor
    level: Tensor
    spread: Tensor

    def inputs(self) -> Tensor:
        """What enters the network, (U, c + E); see `Units.inputs`."""
        row, c = self.window[:, -1], self.spread.shape[1]
        scale = torch.where(self.spread > 0, self.spread, 1.0)
        return torch.cat([(row[:, :c] - self.level[:, :c]) / scale, row[:, c:]], 1)

    def lags(self, rows: Tensor, starts: Tensor) -> Tensor:
        """Deviations from the level (U, (c + E) * W) of all units; see `Units.lags`."""
        deviations = torch.where(self.known, self.window - self.level[:, None], 0.0)
        return deviations.mT.flatten(1)


def last_of(window: Tensor, count: Tensor, varies: Tensor, *, local_level: bool) -> Last:
    """Local level and spread of windows (U, W, c + E); see `make_units`."""
    size, c = window.shape[1], varies.shape[1]
    known = (torch.arange(size) >= size - count)[..., None]
    if not local_level:
        return Last(window, known, torch.zeros_like(window[:, -1]), varies)
    # From the last row, so that a constant window has its value as level and no spread, exactly.
    away = torch.where(known, window - window[:, -1:], 0.0)
    mean = away.sum(1) / count
    variance = torch.where(known, away - mean[:, None], 0.0).square().sum(1) / count
    spread = (variance[:, :c] + (SPREAD_FLOOR * varies) ** 2).sqrt()
    return Last(window, known, window[:, -1] + mean, spread)


def take_in(
    start: Running,
    rows: Tensor,
    alive: Tensor,
    look: Callable[[Tensor, Tensor], Last],
    advance: Advance,
) -> Running:
    """Take rows (U, T, c + E) in one by one, those that are `alive` (U, T)."""
    # torch has no public name for it yet.
    from torch._higher_order_ops import scan

    def step(
        before: tuple[Tensor, Tensor, Tensor], new: tuple[Tensor, Tensor]
    ) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        (window, count, state), (row, live) = before, new
        longer = torch.cat([window[:, 1:], row[:, None]], 1)
        counted = (count + 1).clamp(max=window.shape[1])
        moved = advance(look(longer, counted).inputs()[:, None], state)
        after = (
            torch.where(live[:, None, None], longer, window),
            torch.where(live[:, None], counted, count),
            torch.where(live[:, None], moved, state),
        )
        return after, live.clone()  # a scan must give something a step

    # What a scan carries keeps its strides.
    begin = tuple(part.clone(memory_format=torch.contiguous_format) for part in start)
    end, _ = scan(step, begin, (rows.movedim(1, 0), alive.movedim(1, 0)))
    return Running(*end)
