"""Recurrences on tensors: written once as a step, traced, compiled, differentiated."""

from tsrnn.kernels import cells
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._cpu import prepare
from tsrnn.kernels._lanes import Lanes, Running
from tsrnn.kernels._lengths import as_lengths as as_lengths
from tsrnn.kernels._lengths import without_padding
from tsrnn.kernels._matrix_form import BlockStep as BlockStep
from tsrnn.kernels._matrix_form import MatrixForm
from tsrnn.kernels._projected import prepare_projected, projected_recurrence
from tsrnn.kernels._recurrence import recurrence
from tsrnn.kernels._source import source
from tsrnn.kernels._sums import Sums, sums

__all__ = [
    "Cell",
    "Convergence",
    "Lanes",
    "MatrixForm",
    "Running",
    "Sums",
    "cells",
    "prepare",
    "prepare_projected",
    "projected_recurrence",
    "recurrence",
    "source",
    "sums",
    "without_padding",
]
