"""Parameters by how fast they move."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

SLOW_RATE = 0.1


def parameter_groups(
    module: nn.Module, slow: Iterable[Tensor], learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Groups of an optimiser: those of `slow` move at a tenth of the rate, without decay.

    Recurrent matrices that start stable are slow: else their eigenvalues are pushed out of the
    unit disk, which predicts no better and cannot be read.
    """
    careful = {id(parameter) for parameter in slow}
    parts: tuple[list[Tensor], list[Tensor]] = ([], [])
    for parameter in module.parameters():
        parts[id(parameter) in careful].append(parameter)
    return [
        {"params": parts[0], "lr": learning_rate, "weight_decay": weight_decay},
        {"params": parts[1], "lr": SLOW_RATE * learning_rate, "weight_decay": 0.0},
    ]
