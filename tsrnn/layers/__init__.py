"""Recurrent layers and networks as torch modules."""

from tsrnn.layers._attention import BlockRecurrentAttention
from tsrnn.layers._cells import check_saveable as check_saveable
from tsrnn.layers._choice import LAYERS as LAYERS
from tsrnn.layers._choice import LayerChoice, make_layer
from tsrnn.layers._ensemble import Ensemble
from tsrnn.layers._lem import LEM
from tsrnn.layers._lru import LRU
from tsrnn.layers._network import AGGREGATIONS as AGGREGATIONS
from tsrnn.layers._network import RecurrentNetwork
from tsrnn.layers._newton import NewtonGRU, NewtonLSTM
from tsrnn.layers._newton_block import NewtonBlocks
from tsrnn.layers._para_rnn import ParaRNN
from tsrnn.layers._recurrent import Recurrent
from tsrnn.layers._stack import CellStack

__all__ = [
    "LEM",
    "LRU",
    "BlockRecurrentAttention",
    "CellStack",
    "Ensemble",
    "LayerChoice",
    "NewtonBlocks",
    "NewtonGRU",
    "NewtonLSTM",
    "ParaRNN",
    "Recurrent",
    "RecurrentNetwork",
    "make_layer",
]
