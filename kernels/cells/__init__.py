"""Cells of recurrences, each a small torch function."""

from tsrnn.kernels.cells.lem import lem
from tsrnn.kernels.cells.lru import lru
from tsrnn.kernels.cells.newton import newton_gru, newton_lstm
from tsrnn.kernels.cells.para_gru import para_gru
from tsrnn.kernels.cells.para_lstm import para_lstm
from tsrnn.kernels.cells.para_rnn import linear, para_rnn

__all__ = ["lem", "linear", "lru", "newton_gru", "newton_lstm", "para_gru", "para_lstm", "para_rnn"]
