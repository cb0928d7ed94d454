"""All steps of a recurrence at once, given the states: values, Jacobians, local gradients.

Cells of few fields go through their traced graphs, large blocks through autograd.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._derived import named
from tsrnn.kernels._graph import evaluate
from tsrnn.kernels._matrix_form import BlockStep
from tsrnn.kernels._reference import LARGEST_UNROLLED_BLOCK, step_of
from tsrnn.kernels._trace import trace, trace_jacobian


def is_small(cell: Cell) -> bool:
    """Whether a cell is meant to be traced: not a large block."""
    return not isinstance(cell.step, BlockStep) or cell.step.size <= LARGEST_UNROLLED_BLOCK


def new_states(cell: Cell, inputs: Tensor, params: Tensor, old: Tensor) -> Tensor:
    """New states of all steps from the old ones, both (B, T, n, K)."""
    step = step_of(cell, params)
    return step(old.flatten(0, 1), inputs.flatten(0, 1)).unflatten(0, inputs.shape[:2])


def linearised(cell: Cell, inputs: Tensor, params: Tensor, old: Tensor) -> tuple[Tensor, Tensor]:
    """New states (B, T, n, K) of all steps and their Jacobians (B, T, n, n, K)."""
    if not is_small(cell):
        return _linearised_by_autograd(cell, inputs, params, old)
    values = named(h=old.unbind(2), u=inputs.unbind(2), w=params.unbind(0))
    outputs = [x.expand_as(old[:, :, 0]) for x in evaluate(trace_jacobian(cell), values)]
    n = cell.n
    return torch.stack(outputs[:n], 2), torch.stack(outputs[n:], 2).unflatten(2, (n, n))


def _linearised_by_autograd(
    cell: Cell, inputs: Tensor, params: Tensor, old: Tensor
) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False), torch.enable_grad():
        inputs, params, old = (_leaf(t) for t in (inputs, params, old))
        old.requires_grad_()
        new = new_states(cell, inputs, params, old)
        # Units and steps do not meet, so the gradient of one sum has the rows of all of them.
        rows = [
            torch.autograd.grad(new[:, :, i].sum(), old, retain_graph=True)[0]
            for i in range(cell.n)
        ]
    return new.detach(), torch.stack(rows, 2)


def _leaf(tensor: Tensor) -> Tensor:
    """Copy of a tensor that autograd takes as a leaf."""
    return tensor.clone() if tensor.is_inference() else tensor.detach()


def local_gradients(
    cell: Cell, inputs: Tensor, params: Tensor, old: Tensor, new: Tensor, g: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of old states, inputs and parameters, given all of the new states' gradients.

    `g` has the shape (B, T, n, K) of the states; the second result is zero for inputs that
    all units share.
    """
    if not is_small(cell):
        return _local_gradients_by_autograd(cell, inputs, params, old, g)
    vjp = trace(cell)[1]
    values = named(
        h=old.unbind(2), u=inputs.unbind(2), s=new.unbind(2), g=g.unbind(2), w=params.unbind(0)
    )
    outputs = [x.expand_as(g[:, :, 0]) for x in evaluate(vjp, values)]
    ends = cell.n, cell.n + cell.m
    g_old, g_inputs = torch.stack(outputs[: ends[0]], 2), outputs[ends[0] : ends[1]]
    g_params = [x.sum((0, 1)) for x in outputs[ends[1] :]]
    return (
        g_old,
        torch.stack(g_inputs, 2) if cell.m else torch.zeros_like(inputs),
        torch.stack(g_params) if cell.p else torch.zeros_like(params),
    )


def _local_gradients_by_autograd(
    cell: Cell, inputs: Tensor, params: Tensor, old: Tensor, g: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    with torch.inference_mode(False), torch.enable_grad():
        old, inputs, params = (_leaf(t).requires_grad_() for t in (old, inputs, params))
        new = new_states(cell, inputs, params, old)
    g_old, g_inputs, g_params = torch.autograd.grad(
        new, (old, inputs, params), g, materialize_grads=True
    )
    return g_old, g_inputs, g_params
