"""The obvious loop over time in torch: what every other engine is tested against."""

from collections.abc import Callable

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._lengths import is_alive
from tsrnn.kernels._matrix_form import BlockStep
from tsrnn.kernels._whole import without_ends

LARGEST_UNROLLED_BLOCK = 8


def reference(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """Run the recurrence step by step; arguments as in `recurrence`.

    Any device, any floating dtype, any derivative that autograd has. Slow.
    """
    step = step_of(cell, params)
    inputs = inputs[..., None] if cell.shared else inputs
    alive = is_alive(lengths, inputs.shape[1])
    # Padding may hold anything: NaN would reach the gradients as zero times NaN.
    inputs = without_ends(inputs, lengths)
    state = initial
    states = []
    for u, live in zip(inputs.unbind(1), alive.unbind(1), strict=True):
        new = step(state, u)
        state = torch.where(live, new, state)
        states.append(torch.where(live, new, torch.zeros_like(new)))
    return torch.stack(states, 1), state


def step_of(cell: Cell, params: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Step (B, n, K), (B, m, K) to (B, n, K), large blocks by matrix products."""
    block = cell.step
    if isinstance(block, BlockStep) and block.size > LARGEST_UNROLLED_BLOCK:
        return lambda state, u: block.on_tensors(state, u, params)
    weights = params.unbind(0)
    return lambda state, u: torch.stack(cell.step(state.unbind(1), u.unbind(1), weights), 1)


def reference_gradients(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    lengths: Tensor,
    g_states: Tensor,
    g_final: Tensor,
    *,
    differentiable: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state through the loop, run again.

    Where they are to be differentiable themselves, arguments keep their place in autograd.
    """
    tensors = (inputs, params, initial)
    with torch.enable_grad():
        leaves = tuple(
            t if differentiable and t.requires_grad else t.detach().requires_grad_()
            for t in tensors
        )
        results = reference(cell, leaves[0], leaves[1], leaves[2], lengths)
    g_inputs, g_params, g_initial = torch.autograd.grad(
        results,
        leaves,
        (g_states, g_final),
        create_graph=differentiable,
        materialize_grads=True,
    )
    return g_inputs, g_params, g_initial
