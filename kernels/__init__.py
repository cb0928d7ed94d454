"""Recurrences on tensors: written once as a step, traced, compiled, differentiated."""

from tsrnn.kernels import cells
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._dense import dense
from tsrnn.kernels._lengths import without_padding
from tsrnn.kernels._projected import prepare_projected, projected_recurrence
from tsrnn.kernels._recurrence import recurrence
from tsrnn.kernels._sequential import prepare

__all__ = [
    "Cell",
    "cells",
    "dense",
    "prepare",
    "prepare_projected",
    "projected_recurrence",
    "recurrence",
    "without_padding",
]
