"""The recurrent layers of a model, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tsrnn.layers._attention import BlockRecurrentAttention
from tsrnn.layers._lem import LEM
from tsrnn.layers._lru import LRU
from tsrnn.layers._newton_block import NewtonBlocks
from tsrnn.layers._para_rnn import ParaRNN
from tsrnn.layers._recurrent import Recurrent

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
