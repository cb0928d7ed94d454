"""Parameter groups of the optimiser, with slow recurrent matrices, and a step of AdamW."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

SLOW_RATE = 0.1  # at the full rate a fifth of the eigenvalues left the unit disk on some series
LARGEST_RATE = 1e37  # Adam's first step multiplies the rate by ten, which must fit float32
BETAS, EPSILON = (0.9, 0.999), 1e-8  # as in torch's AdamW
CLIP_NORM = 1.0  # of the gradient: bounds Adam's moments if a recurrence explodes


def parameter_groups(
    module: nn.Module, slow: Iterable[Tensor], learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Split parameters into a fast group and a `slow` one, with a tenth of the rate and no decay.

    Recurrent matrices that start stable should be slow. Otherwise their eigenvalues leave the unit
    disk, which does not improve forecasts and prevents interpretation.
    """
    slow_ids = {id(parameter) for parameter in slow}  # tensors compare by value, not by identity
    fast = [p for p in module.parameters() if id(p) not in slow_ids]
    slow = [p for p in module.parameters() if id(p) in slow_ids]
    return [
        {"params": fast, "lr": learning_rate, "weight_decay": weight_decay},
        {"params": slow, "lr": SLOW_RATE * learning_rate, "weight_decay": 0.0},
    ]


def descend(tensors: Sequence[list[Tensor]], rate: float, decay: float) -> None:
    """Take a step of torch's fused AdamW without the overhead of its class.

    `tensors` are lists of weights, gradients, first moments, second moments, and numbers of steps
    including this one.
    """
    weights, gradients, means, squares, steps = tensors
    torch._fused_adamw_(
        weights, gradients, means, squares, [], steps, lr=rate, beta1=BETAS[0], beta2=BETAS[1],
        weight_decay=decay, eps=EPSILON, amsgrad=False, maximize=False,
    )  # fmt: skip
