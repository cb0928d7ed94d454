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
    """A layer by its name, and what it takes beside its sizes; `make_layer` builds it.

    Parameters
    ----------
    name : {"ParaRNN", "BlockRecurrentAttention", "LEM", "LRU", "NewtonBlocks"}
        Class of `tsrnn.layers`.
    options : dict
        Its arguments but for the sizes and the number of layers.

    Examples
    --------
    >>> from tsrnn.layers import LayerChoice
    >>> LayerChoice("ParaRNN", {"cell": "gru", "block_size": 4})
    LayerChoice(name='ParaRNN', options={'cell': 'gru', 'block_size': 4})
    """

    name: str
    options: dict[str, Any]


def make_layer(choice: LayerChoice, input_size: int, hidden_size: int, n_layers: int) -> Recurrent:
    """Build the layers of a choice; they check their options themselves.

    Parameters
    ----------
    choice : LayerChoice
    input_size, hidden_size, n_layers : int

    Returns
    -------
    Recurrent

    Raises
    ------
    KeyError
        If there is no layer of this name.
    ValueError
        If a size or an option is not legal.

    Examples
    --------
    >>> from tsrnn.layers import LayerChoice, make_layer
    >>> make_layer(LayerChoice("LRU", {"r_min": 0.9}), 3, 16, n_layers=2).num_layers
    2
    """
    return LAYERS[choice.name](input_size, hidden_size, num_layers=n_layers, **choice.options)
