"""The engine in time order: lanes in parallel, the state in registers."""

from torch import Tensor

from tsrnn.kernels._backend import backend_of
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._lengths import whole


def forward(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Convergence]:
    """States and final state; arguments as in `recurrence`."""
    run = backend_of(inputs.device).forward
    steps = whole(lengths, inputs)
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
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state."""
    run = backend_of(inputs.device).backward
    steps = whole(lengths, inputs)
    return run(cell, inputs, params, initial, steps, states, g_states, g_final)
