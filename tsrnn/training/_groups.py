"""Parameters by how fast they move."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

SLOW_RATE = 0.1
LARGEST_RATE = 1e37  # the first step of Adam takes ten times the rate, in float32


def parameter_groups(
    module: nn.Module, slow: Iterable[Tensor], learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Groups of an optimiser: those of `slow` move at a tenth of the rate, without decay.

    Recurrent matrices that start stable are slow: else their eigenvalues are pushed out of the
    unit disk, which predicts no better and cannot be read.

    Parameters
    ----------
    module : torch.nn.Module
    slow : iterable of Tensor
        Some of its parameters.
    learning_rate : float
        Of the others.
    weight_decay : float
        Of the others.

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
    careful = {id(parameter) for parameter in slow}
    parts: tuple[list[Tensor], list[Tensor]] = ([], [])
    for parameter in module.parameters():
        parts[id(parameter) in careful].append(parameter)
    return [
        {"params": parts[0], "lr": learning_rate, "weight_decay": weight_decay},
        {"params": parts[1], "lr": SLOW_RATE * learning_rate, "weight_decay": 0.0},
    ]
