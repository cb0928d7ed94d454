"""Recurrent layers and networks as torch modules."""

from tsrnn.layers._network import RecurrentNetwork
from tsrnn.layers._para_rnn import ParaRNN

__all__ = ["ParaRNN", "RecurrentNetwork"]
