"""Recurrent layers of a model by name, as files and search spaces give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tsrnn.kernels import Cell
from tsrnn.layers._attention import BlockRecurrentAttention
from tsrnn.layers._lem import LEM
from tsrnn.layers._lru import LRU
from tsrnn.layers._newton_blocks import NewtonBlocks
from tsrnn.layers._para_rnn import ParaRNN
from tsrnn.layers._recurrent import Recurrent

# Layers that a file may name. Each takes input_size, hidden_size, num_layers and its options.
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


def check_saveable(cell: Any) -> None:
    """Refuse a cell with which a model cannot be written to a file.

    Parameters
    ----------
    cell : str or Cell
        A cell by name, which a file holds; or one of a user, whose step is code.

    Raises
    ------
    TypeError
        If it is a cell of a user.

    Examples
    --------
    >>> from tsrnn.kernels import cells
    >>> from tsrnn.layers import check_saveable
    >>> check_saveable("gru")
    >>> check_saveable(cells.para_gru(2))
    Traceback (most recent call last):
        ...
    TypeError: to be saved, cell must be one by name; got the cell 'para_gru_2', whose step is ...
    """
    if isinstance(cell, Cell):
        raise TypeError(
            f"to be saved, cell must be one by name; got the cell {cell.name!r}, whose step is "
            "code, which files do not hold. Use pickle"
        )
