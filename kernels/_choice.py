"""Which engine runs a cell: what is asked for, checked, or a measured rule."""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.kernels._backend import DTYPES, is_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._matrix_form import BlockStep
from tsrnn.kernels._steps import is_small
from tsrnn.kernels._trace import is_linear

NAMES = ("auto", "reference", "sequential", "scan", "shooting", "newton", "dense")
_COMPILED = ("sequential", "scan", "shooting")


def chosen_engine(engine: str, cell: Cell, inputs: Tensor) -> str:
    """Name of the engine to run, or the reason why it cannot."""
    if engine not in NAMES:
        raise ValueError(f"engine must be one of {NAMES}; got {engine!r}")
    if engine == "auto":
        return _best(cell, inputs)
    if engine in _COMPILED and not is_compiled(inputs.device, inputs.dtype):
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES["cpu"])
        raise ValueError(
            f"engine {engine!r} runs {known} on the CPU, and bfloat16 too on CUDA devices; got "
            f"{inputs.dtype} on {inputs.device}. Use engine='reference' there"
        )
    if engine == "dense" and not isinstance(cell.step, BlockStep):
        raise ValueError(
            f"engine 'dense' runs cells in matrix form, such as those of MatrixForm.block; "
            f"cell {cell.name!r} has none"
        )
    if engine == "newton" and torch.compiler.is_compiling() and not is_small(cell):
        raise ValueError(
            f"engine 'newton' of blocks as large as those of cell {cell.name!r} does not run "
            "under torch.compile. Use engine='dense'"
        )
    if engine == "scan" and not is_linear(cell):
        raise ValueError(
            f"engine 'scan' runs cells that are linear in their state; cell {cell.name!r} is "
            "not. Use engine='shooting'"
        )
    return engine


def _best(cell: Cell, inputs: Tensor) -> str:
    if not is_small(cell):
        return "dense"
    if not is_compiled(inputs.device, inputs.dtype):
        return "reference"
    batch, steps, _, units = inputs.shape
    if not chunks_pay(batch, steps, units):
        return "sequential"
    return "scan" if is_linear(cell) else "shooting"


def chunks_pay(batch: int, steps: int, units: int) -> bool:
    """Whether time in chunks is faster than time order, by measurement on two CPU cores.

    A rule of lanes and steps alone: which engine runs must not depend on values.
    """
    return batch * units <= FEW_LANES and steps >= MANY_STEPS


FEW_LANES = 4
MANY_STEPS = 4096
