"""The position-wise network after a linear recurrence."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn


def inner_widths(mlp: bool | int | Sequence[int], hidden_size: int) -> tuple[int, ...]:
    """Widths of the inner layers: none for False, one of `hidden_size` for True."""
    if isinstance(mlp, bool):
        return (hidden_size,) if mlp else ()
    sizes = tuple(mlp) if isinstance(mlp, Sequence) and not isinstance(mlp, str) else (mlp,)
    if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
        raise ValueError(
            f"mlp must be True, False, a width or a list of widths, positive integers; got {mlp!r}"
        )
    return tuple(int(size) for size in sizes)


def perceptron(
    size: int,
    widths: Sequence[int],
    device: torch.device | str | None,
    dtype: torch.dtype | None,
) -> nn.Module:
    """Linear maps with ReLU between them, from `size` to `size`; the identity without widths."""
    if not widths:
        return nn.Identity()
    parts: list[nn.Module] = []
    for narrow, wide in itertools.pairwise((size, *widths, size)):
        parts += [nn.Linear(narrow, wide, device=device, dtype=dtype), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def draw_mlp(mlp: nn.Module, generator: torch.Generator | None) -> None:
    """Draw every linear map as torch.nn.Linear does, from a generator of one's own."""
    for part in mlp.modules():
        if isinstance(part, nn.Linear):
            bound = part.in_features**-0.5
            part.weight.uniform_(-bound, bound, generator=generator)
            part.bias.uniform_(-bound, bound, generator=generator)
