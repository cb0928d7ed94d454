"""A recurrence in torch, without kernels: the loop over time, or all steps at once.

Every engine is tested against the loop. Given the states, new states, Jacobians and local gradients
are computed for all steps at once, from the traced graphs of small cells and by autograd for large
blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._derived import named
from tsrnn.kernels._graph import evaluate
from tsrnn.kernels._matrix_form import BlockStep, is_rolled
from tsrnn.kernels._problem import Problem, in_given_dtypes, is_alive, without_ends
from tsrnn.kernels._trace import trace, trace_jacobian

# Units: CPU registers hold one unit of many blocks, or many units of one larger block.
LARGEST_SMALL_BLOCK = 8


def is_small(cell: Cell) -> bool:
    """True if the blocks of a cell are small: they run side by side, without matrix products."""
    return not isinstance(cell.step, BlockStep) or cell.step.size <= LARGEST_SMALL_BLOCK


def reference(problem: Problem) -> tuple[Tensor, Tensor]:
    """States and final state, step by step.

    For any device, floating dtype and derivative of autograd. Slow.
    """
    cell, inputs, params, state, _ = problem
    lengths = problem.ends
    step = step_of(cell, params)
    inputs = inputs[..., None] if cell.shared else inputs
    alive = is_alive(lengths, inputs.shape[1])
    # Padding may hold anything: NaN would reach the gradients as zero times NaN.
    inputs = without_ends(inputs, lengths)
    states = []
    with in_given_dtypes(inputs.device):
        for u, live in zip(inputs.unbind(1), alive.unbind(1), strict=True):
            new = step(state, u)
            state = torch.where(live, new, state)
            states.append(torch.where(live, new, torch.zeros_like(new)))
    return torch.stack(states, 1), state


def step_of(cell: Cell, params: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Step (B, n, K), (B, m, K) to (B, n, K), with matrix products for large blocks."""
    block = cell.step
    if isinstance(block, BlockStep) and is_rolled(cell):
        return lambda state, u: block.on_tensors(state, u, params)
    weights = params.unbind(0)

    def step(state: Tensor, u: Tensor) -> Tensor:
        new = cell.step(state.unbind(1), u.unbind(1), weights)
        # A field of parameters only is one row, the same for all sequences.
        return torch.stack([field.expand_as(state[:, 0]) for field in new], 1)

    return step


def reference_gradients(
    problem: Problem, g_states: Tensor, g_final: Tensor, *, differentiable: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state, by running the loop again.

    For differentiable gradients the arguments stay in the graph of autograd.
    """
    with torch.enable_grad():
        inputs, params, initial = leaves = [
            t if differentiable and t.requires_grad else t.detach().requires_grad_()
            for t in (problem.inputs, problem.params, problem.initial)
        ]
        results = reference(Problem(problem.cell, inputs, params, initial, problem.lengths))
    g_inputs, g_params, g_initial = torch.autograd.grad(
        results, leaves, (g_states, g_final), create_graph=differentiable, materialize_grads=True
    )
    return g_inputs, g_params, g_initial


def new_states(cell: Cell, inputs: Tensor, params: Tensor, old: Tensor) -> Tensor:
    """New states of all steps from the old ones, both (B, T, n, K)."""
    step = step_of(cell, params)
    return step(old.flatten(0, 1), inputs.flatten(0, 1)).unflatten(0, inputs.shape[:2])


def linearised(cell: Cell, inputs: Tensor, params: Tensor, old: Tensor) -> tuple[Tensor, Tensor]:
    """New states (B, T, n, K) of all steps and their Jacobians (B, T, n, n, K)."""
    n = cell.n
    if is_small(cell):
        values = named(h=old.unbind(2), u=inputs.unbind(2), w=params.unbind(0))
        outputs = [x.expand_as(old[:, :, 0]) for x in evaluate(trace_jacobian(cell), values)]
        return torch.stack(outputs[:n], 2), torch.stack(outputs[n:], 2).unflatten(2, (n, n))
    with torch.inference_mode(False), torch.enable_grad():
        inputs, params, old = (_leaf(t) for t in (inputs, params, old))
        old.requires_grad_()
        new = new_states(cell, inputs, params, old)
        if not new.requires_grad:  # independent of the old state
            return new, new.new_zeros(*new.shape[:2], n, n, new.shape[3])
        # Units and steps are independent, so the gradient of a sum contains all their rows.
        rows = [
            torch.autograd.grad(new[:, :, i].sum(), old, retain_graph=True)[0] for i in range(n)
        ]
    return new.detach(), torch.stack(rows, 2)


def local_gradients(
    cell: Cell, inputs: Tensor, params: Tensor, old: Tensor, new: Tensor, g: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of old states, inputs and parameters from the gradients of all new states.

    `g` has the shape (B, T, n, K) of the states; the second result is zero for shared inputs.
    """
    if not is_small(cell):
        with torch.inference_mode(False), torch.enable_grad():
            old, inputs, params = (_leaf(t).requires_grad_() for t in (old, inputs, params))
            new = new_states(cell, inputs, params, old)
        g_old, g_inputs, g_params = torch.autograd.grad(
            new, (old, inputs, params), g, materialize_grads=True
        )
        return g_old, g_inputs, g_params
    values = named(
        h=old.unbind(2), u=inputs.unbind(2), s=new.unbind(2), g=g.unbind(2), w=params.unbind(0)
    )
    outputs = [x.expand_as(g[:, :, 0]) for x in evaluate(trace(cell)[1], values)]
    of_inputs, of_params = cell.n, cell.n + cell.m
    g_fields = [x.sum((0, 1)) for x in outputs[of_params:]]
    return (
        torch.stack(outputs[:of_inputs], 2),
        torch.stack(outputs[of_inputs:of_params], 2) if cell.m else torch.zeros_like(inputs),
        torch.stack(g_fields) if cell.p else torch.zeros_like(params),
    )


def _leaf(tensor: Tensor) -> Tensor:
    """Detached leaf of a tensor for autograd."""
    return tensor.clone() if tensor.is_inference() else tensor.detach()
