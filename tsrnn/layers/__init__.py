"""Recurrent layers and networks as torch modules.

Two constants say what names a model may give: ``LAYERS``, classes of layers by the name that files
and `LayerChoice` use, and ``AGGREGATIONS`` of `RecurrentNetwork`.
"""

from tsrnn.layers._attention import BlockRecurrentAttention
from tsrnn.layers._choice import LAYERS, LayerChoice, check_saveable, make_layer
from tsrnn.layers._lem import LEM
from tsrnn.layers._lru import LRU
from tsrnn.layers._network import AGGREGATIONS, Ensemble, RecurrentNetwork
from tsrnn.layers._newton import NewtonGRU, NewtonLSTM
from tsrnn.layers._newton_blocks import NewtonBlocks
from tsrnn.layers._para_rnn import ParaRNN
from tsrnn.layers._recurrent import Recurrent
from tsrnn.layers._stack import CellStack

__all__ = [
    "AGGREGATIONS",
    "LAYERS",
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
    "check_saveable",
    "make_layer",
]
