"""The engine for full matrices: a matrix product a step, compiled for the CPU and for CUDA."""

from types import ModuleType

import torch
from torch import Tensor

from tsrnn.kernels._backend import backend_of, is_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._dense import cpu
from tsrnn.kernels._lengths import whole
from tsrnn.kernels._matrix_form import block_step
from tsrnn.kernels._reference import reference, reference_gradients


def forward(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Convergence]:
    """States and final state of a block of a matrix form; arguments as in `recurrence`."""
    steps = whole(lengths, inputs)
    kernels = _kernels(cell, inputs)
    run = kernels.forward if kernels else reference
    return *run(cell, inputs, params, initial, steps), Convergence.exact(initial)


def backward(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    lengths: Tensor | None,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state."""
    steps = whole(lengths, inputs)
    if kernels := _kernels(cell, inputs):
        given = (cell, inputs, params, initial, steps, states, g_states, g_final)
        return kernels.backward(*given)
    return reference_gradients(cell, inputs, params, initial, steps, g_states, g_final)


def prepare(cell: Cell, dtype: torch.dtype) -> None:
    """Have the compiled loop of a matrix form ready: one for all sizes."""
    cpu.kernels_of(block_step(cell).form, dtype)


def _kernels(cell: Cell, inputs: Tensor) -> ModuleType | None:
    """Compiled kernels for these inputs; None where only the loop in torch runs."""
    if not is_compiled(inputs.device, inputs.dtype):
        return None
    if inputs.device.type == "cpu":
        return cpu
    backend_of(inputs.device)  # says what to install where it is missing
    from tsrnn.kernels._gpu import dense

    return dense if block_step(cell).size <= dense.LARGEST else None
