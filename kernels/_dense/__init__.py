"""The engine for full matrices: a matrix product a step, on the CPU in one compiled loop."""

import torch
from torch import Tensor

from tsrnn.kernels._backend import is_compiled
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
    run = cpu.forward if _on_cpu(inputs) else reference
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
    if _on_cpu(inputs):
        given = (cell, inputs, params, initial, steps, states, g_states, g_final)
        return cpu.backward(*given)
    return reference_gradients(cell, inputs, params, initial, steps, g_states, g_final)


def prepare(cell: Cell, dtype: torch.dtype) -> None:
    """Have the compiled loop of a matrix form ready: one for all sizes."""
    cpu.kernels_of(block_step(cell).form, dtype)


def _on_cpu(inputs: Tensor) -> bool:
    return inputs.device.type == "cpu" and is_compiled(inputs.device, inputs.dtype)
