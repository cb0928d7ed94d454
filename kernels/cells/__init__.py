"""Cells: one small torch function a recurrence."""

from tsrnn.kernels.cells.para_rnn import para_rnn

__all__ = ["para_rnn"]
