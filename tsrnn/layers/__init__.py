"""Recurrent layers and networks as torch modules.

Tables of legal values: ``CELLS`` by the names that every `cell=` takes, ``OPTIONS`` of cells that
are arguments of models, ``LAYERS`` by their class names in files and `LayerChoice`, and
``AGGREGATIONS`` of `RecurrentNetwork`. ``MOST_SIZE`` bounds options in files.
"""

from tsrnn.layers._attention import BlockRecurrentAttention
from tsrnn.layers._cells import CELLS, check_cell
from tsrnn.layers._choice import (
    LAYERS,
    MOST_SIZE,
    OPTIONS,
    LayerChoice,
    check_saveable,
    layer_choice,
    make_layer,
    with_engine,
    with_options,
)
from tsrnn.layers._initialisation import shapes_only
from tsrnn.layers._lem import LEM
from tsrnn.layers._lru import LRU
from tsrnn.layers._network import AGGREGATIONS, Ensemble, RecurrentNetwork
from tsrnn.layers._newton import NewtonGRU, NewtonLSTM
from tsrnn.layers._newton_blocks import NewtonBlocks
from tsrnn.layers._para_rnn import ParaRNN
from tsrnn.layers._recurrent import Recurrent
from tsrnn.layers._stack import CellStack
from tsrnn.layers._unequal import UnequalParaRNN

__all__ = [
    "CELLS",
    "LAYERS",
    "LEM",
    "LRU",
    "BlockRecurrentAttention",
    "Ensemble",
    "LayerChoice",
    "NewtonBlocks",
    "NewtonGRU",
    "NewtonLSTM",
    "ParaRNN",
    "Recurrent",
    "RecurrentNetwork",
    "UnequalParaRNN",
    "layer_choice",
]


def __dir__() -> list[str]:
    return sorted(__all__)  # without what other rooms alone import
