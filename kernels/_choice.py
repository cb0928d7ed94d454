"""Which engine runs a cell: what is asked for, checked, or a measured rule."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.kernels._backend import DTYPES, is_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._matrix_form import BlockStep
from tsrnn.kernels._reference import LARGEST_UNROLLED_BLOCK
from tsrnn.kernels._steps import is_small
from tsrnn.kernels._trace import is_linear, trace

NAMES = ("auto", "reference", "sequential", "scan", "shooting", "newton", "dense")
_COMPILED = ("sequential", "scan", "shooting")


def chosen_engine(engine: str, cell: Cell, inputs: Tensor) -> str:
    """Name of the engine to run, or the reason why it cannot."""
    if not isinstance(engine, str) or engine not in NAMES:
        raise ValueError(f"engine must be one of {NAMES}; got {engine!r}")
    if engine == "reference" or (engine == "auto" and not _has_kernels(cell, inputs)):
        return "reference"
    if inputs.is_complex():
        raise ValueError(
            f"complex inputs run with engine='reference' only; got {inputs.dtype} with "
            f"engine={engine!r}. Write real and imaginary part as fields, as cells.lru() does"
        )
    if engine in _COMPILED:
        _check_compiled(engine, cell, inputs)
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
    if engine == "scan" and not torch.compiler.is_compiling() and not is_linear(cell):
        raise ValueError(
            f"engine 'scan' runs cells that are linear in their state; cell {cell.name!r} is "
            "not. Use engine='shooting'"
        )
    return engine


def _has_kernels(cell: Cell, inputs: Tensor) -> bool:
    """Whether something better than the loop in torch runs here."""
    if inputs.is_complex():
        return False
    return is_compiled(inputs.device, inputs.dtype) or not is_small(cell)


def _check_compiled(engine: str, cell: Cell, inputs: Tensor) -> None:
    if not is_compiled(inputs.device, inputs.dtype):
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES["cpu"])
        raise ValueError(
            f"engine {engine!r} runs {known} on the CPU, and bfloat16 too on CUDA devices; got "
            f"{inputs.dtype} on {inputs.device}. Use engine='reference' there"
        )
    if not is_small(cell):
        raise ValueError(
            f"engine {engine!r} unrolls matrices of up to {LARGEST_UNROLLED_BLOCK} rows; those of "
            f"cell {cell.name!r} are larger. Use engine='dense'"
        )


def best_engine(cell: Cell, device: torch.device, batch: int, steps: int, units: int) -> str:
    """What "auto" is where there are kernels."""
    if not is_small(cell):
        return "dense"
    if not chunks_pay(device, batch, steps, units):
        return "sequential"
    if device.type == "cpu" and not _computes_again(cell):
        return "sequential"
    return "scan" if is_linear(cell) else "shooting"


def _computes_again(cell: Cell) -> bool:
    """Whether the backward pass computes gates anew, from the inputs: steps are costly then."""
    return any(name.startswith("u") for name in trace(cell)[1].reads)


class _Rule(NamedTuple):
    """Chunks of time pay with at most so many lanes and at least so many steps."""

    lanes: int
    steps: int


# The CPU's is measured, for cells with gates: others are as fast in time order with a single lane
# already. That of a GPU is a guess from the lanes that it takes to hide the time of a step.
_RULES = {"cpu": _Rule(1, 65536), "cuda": _Rule(8192, 512)}


def chunks_pay(device: torch.device, batch: int, steps: int, units: int) -> bool:
    """Whether time in chunks is faster than time order.

    A rule of lanes and steps alone: which engine runs must not depend on values.
    """
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return False  # whether Newton's method has converged cannot be read while capturing
    rule = _RULES[device.type]
    return batch * units <= rule.lanes and steps >= rule.steps
