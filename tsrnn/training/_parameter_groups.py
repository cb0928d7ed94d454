"""Parameter groups of the optimiser, of which recurrent matrices move slowly, and its step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

SLOW_RATE = 0.1  # with the full rate a fifth of the eigenvalues left the unit disk on some series
LARGEST_RATE = 1e37  # the first step of Adam takes ten times the rate, in float32
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of torch's AdamW
CLIP_NORM = 1.0  # of the gradient: where a recurrence explodes, Adam's moments stay bounded


def parameter_groups(
    module: nn.Module, slow: Iterable[Tensor], learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Parameter groups of an optimiser: `slow` ones move at a tenth of the rate, without decay.

    Recurrent matrices that start stable are slow: otherwise their eigenvalues are pushed out of the
    unit disk, where they forecast no better and cannot be interpreted.

    Parameters
    ----------
    module : torch.nn.Module
    slow : iterable of Tensor
        Parameters of the module that move slowly.
    learning_rate, weight_decay : float
        Values of the other parameters.

    Returns
    -------
    list of dict
        The others, then the slow ones, as optimisers of torch take them.

    Examples
    --------
    >>> from tsrnn.layers import ParaRNN
    >>> from tsrnn.training import parameter_groups
    >>> layer = ParaRNN(3, 16)
    >>> groups = parameter_groups(layer, layer.recurrent_parameters(), 0.01, weight_decay=0.1)
    >>> [(len(group["params"]), group["lr"], group["weight_decay"]) for group in groups]
    [(2, 0.01, 0.1), (1, 0.001, 0.0)]
    """
    slow_ids = {id(parameter) for parameter in slow}  # tensors compare by value, not by identity
    fast = [p for p in module.parameters() if id(p) not in slow_ids]
    slow = [p for p in module.parameters() if id(p) in slow_ids]
    return [
        {"params": fast, "lr": learning_rate, "weight_decay": weight_decay},
        {"params": slow, "lr": SLOW_RATE * learning_rate, "weight_decay": 0.0},
    ]


def descend(tensors: Sequence[list[Tensor]], rate: float, decay: float) -> None:
    """Step of torch's AdamW, without what its class does around it at each step.

    `tensors` are lists of weights, their gradients, the moments of these, of first and second
    order, and the number of steps of each, this one included.
    """
    weights, gradients, means, squares, steps = tensors
    torch._fused_adamw_(
        weights, gradients, means, squares, [], steps, lr=rate, beta1=BETAS[0], beta2=BETAS[1],
        weight_decay=decay, eps=EPSILON, amsgrad=False, maximize=False,
    )  # fmt: skip
