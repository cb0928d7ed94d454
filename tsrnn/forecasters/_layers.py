"""The recurrent layers of a forecaster, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tsrnn.layers import LEM, LRU, BlockRecurrentAttention, NewtonBlocks, ParaRNN, Recurrent

# What a file may name. Each takes input_size, hidden_size and num_layers besides its options.
LAYERS: dict[str, Callable[..., Recurrent]] = {
    "BlockRecurrentAttention": BlockRecurrentAttention,
    "LEM": LEM,
    "LRU": LRU,
    "NewtonBlocks": NewtonBlocks,
    "ParaRNN": ParaRNN,
}


class LayerChoice(NamedTuple):
    """A layer by its name in `LAYERS`, and what it takes beside its sizes."""

    name: str
    options: dict[str, Any]


def make_layer(choice: LayerChoice, input_size: int, hidden_size: int, n_layers: int) -> Recurrent:
    """Build the layers; they check their options themselves."""
    return LAYERS[choice.name](input_size, hidden_size, num_layers=n_layers, **choice.options)
