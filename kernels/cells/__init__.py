"""Cells: one small torch function a recurrence."""

from tsrnn.kernels.cells.lem import lem
from tsrnn.kernels.cells.lru import lru
from tsrnn.kernels.cells.newton_gru import newton_gru
from tsrnn.kernels.cells.newton_lstm import newton_lstm
from tsrnn.kernels.cells.para_gru import para_gru
from tsrnn.kernels.cells.para_lstm import para_lstm
from tsrnn.kernels.cells.para_rnn import linear, para_rnn

__all__ = [
    "lem",
    "linear",
    "lru",
    "newton_gru",
    "newton_lstm",
    "para_gru",
    "para_lstm",
    "para_rnn",
]
