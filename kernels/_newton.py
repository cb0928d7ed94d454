r"""The engine of Danieli et al. (2025): Newton's method on every step at once.

All states are unknowns of one system h_t = f(h_{t-1}, u_t). Each iteration evaluates f and its
Jacobians J_t at all steps together and solves the linear recurrence
:math:`\delta_t = J_t \delta_{t-1} + f(h_{t-1}, u_t) - h_t`: their equations (3) to (5) and
Algorithm 1. In plain torch, on any device and in any dtype, by parallel reduction; blocks of up
to 4 x 4 are solved by the kernels of the device where it has some. A cell may give its
Jacobian itself, and a structure that sets some entries of it to zero (appendix D.4). The linear
recurrence then splits into one for each group of state fields; they run side by side, as units do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.kernels._backend import backend_of, is_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._derived import named
from tsrnn.kernels._graph import evaluate
from tsrnn.kernels._problem import Problem, cut, extend, without_ends
from tsrnn.kernels._reference import (
    LARGEST_SMALL_BLOCK,
    is_small,
    linearised,
    local_gradients,
    new_states,
    reference,
)
from tsrnn.kernels._time_parallel import ROUNDINGS, most_passes, run_lanes, solve_affine
from tsrnn.kernels._trace import trace_newton

LARGEST_BLOCK_OF_KERNELS = 4  # an affine cell has n^2 inputs; larger ones are solved in torch


def forward(problem: Problem) -> tuple[Tensor, Tensor, Convergence]:
    """States, final state and convergence."""
    cell, inputs, params, initial, lengths = problem
    inputs = without_ends(inputs, lengths)
    states, convergence = iterate(cell, inputs, params, initial, most_passes(cell))
    final = states[:, -1].clone()

    def in_time_order(lanes: Problem) -> tuple[Tensor, Tensor]:
        if not (is_small(cell) and is_compiled(inputs.device, inputs.dtype)):
            return reference(lanes)
        results: tuple[Tensor, Tensor] = backend_of(inputs.device).forward(lanes)
        return results

    whole = Problem(cell, inputs, params, initial)
    run_lanes(in_time_order, whole, states, final, convergence.fell_back)
    return *cut(states, final, initial, lengths), convergence


def iterate(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, passes: int
) -> tuple[Tensor, Convergence]:
    """States (B, T, n, K) after at most `passes` Newton iterations from f(0, u), equation (10)."""
    allowed = ROUNDINGS * torch.finfo(inputs.dtype).eps  # a smaller update is rounding
    zeros = torch.zeros_like(initial)[:, None].expand(-1, inputs.shape[1], -1, -1)
    states = new_states(cell, inputs, params, zeros)
    groups = torch.tensor(cell.groups, device=inputs.device)
    counts = torch.zeros(len(inputs), inputs.shape[3], dtype=torch.int64, device=inputs.device)
    for i in range(passes + 1):  # the last round only measures the residual
        old = torch.cat([initial[:, None], states[:, :-1]], 1)
        new, matrices = _system(cell, inputs, params, old)
        mismatch = new - states
        # Relative for large states, absolute for small ones, which may be zero.
        residual = (mismatch.abs() / (1 + states.abs())).amax((1, 2))
        # Lanes with states that are not finite cannot recover: they are left to time order.
        moving = ~(residual <= allowed) & residual.isfinite()
        if i == passes or not moving.any():
            break
        counts += moving
        states = states + _joined(_solve(matrices, _grouped(mismatch, groups)), groups)
    return states, Convergence(counts, residual, ~(residual <= allowed))


def _system(cell: Cell, inputs: Tensor, params: Tensor, old: Tensor) -> tuple[Tensor, Tensor]:
    """New states (B, T, n, K) and matrices (B, T, s, s, G K) of the G groups of s state fields."""
    n, groups = cell.n, cell.groups
    size = len(groups[0])
    if is_small(cell):
        values = named(h=old.unbind(2), u=inputs.unbind(2), w=params.unbind(0))
        outputs = evaluate(trace_newton(cell), values)
        entries = [
            outputs[n + group[i] * n + group[j]]
            for i in range(size) for j in range(size) for group in groups
        ]  # fmt: skip
        new, matrices = (
            torch.stack([x.expand_as(old[:, :, 0]) for x in fields], 2)
            for fields in (outputs[:n], entries)
        )
        return new, matrices.unflatten(2, (size, size, len(groups))).flatten(4)
    if cell.jacobian is not None:
        raise ValueError(
            f"jacobian of cell {cell.name!r} must be unrolled, which matrices of more than "
            f"{LARGEST_SMALL_BLOCK} rows are not. Leave it out; structure is there for all cells"
        )
    new, jacobians = linearised(cell, inputs, params, old)
    if len(groups) == 1:
        return new, jacobians
    index = torch.tensor(groups, device=old.device)
    blocks = jacobians[:, :, index[:, :, None], index[:, None]]  # (B, T, G, s, s, K)
    return new, blocks.permute(0, 1, 3, 4, 2, 5).flatten(4)


def _grouped(x: Tensor, groups: Tensor) -> Tensor:
    """States (B, T, n, K) as (B, T, s, G K), with groups of state fields side by side as units."""
    return x[:, :, groups].transpose(2, 3).flatten(3)


def _joined(x: Tensor, groups: Tensor) -> Tensor:
    """Undo `_grouped`."""
    fields = x.unflatten(3, (len(groups), -1)).transpose(2, 3).flatten(2, 3)
    return fields[:, :, groups.flatten().argsort()]


def _solve(matrices: Tensor, offsets: Tensor) -> Tensor:
    """x_t = A_t x_{t-1} + b_t from x_0 = 0."""
    small = matrices.shape[2] <= LARGEST_BLOCK_OF_KERNELS
    if small and is_compiled(matrices.device, matrices.dtype):
        return solve_affine(matrices, offsets, torch.zeros_like(offsets[:, 0]))
    solution = parallel_reduce(matrices, offsets)
    if solution.isfinite().all():
        return solution
    # Products of matrices may overflow when the solution does not: solve in time order.
    x, steps = torch.zeros_like(offsets[:, 0]), []
    for a, b in zip(matrices.unbind(1), offsets.unbind(1), strict=True):
        x = torch.einsum("bijk,bjk->bik", a, x) + b
        steps.append(x)
    return torch.stack(steps, 1)


def parallel_reduce(matrices: Tensor, offsets: Tensor) -> Tensor:
    """States x_t = A_t x_{t-1} + b_t (B, T, n, K) from x_0 = 0, in log2(T) passes over time.

    Algorithm 1b of Danieli et al. (2025): each pass lets every step look twice as far back.
    Matrices have shape (B, T, n, n, K): diagonal recurrences have n = 1, a dense one K = 1.
    """
    reach, steps = 1, offsets.shape[1]
    while reach < steps:
        late, early = matrices[:, reach:], offsets[:, :-reach]
        moved = torch.einsum("btijk,btjk->btik", late, early)
        offsets = torch.cat([offsets[:, :reach], offsets[:, reach:] + moved], 1)
        product = torch.einsum("btijk,btjlk->btilk", late, matrices[:, :-reach])
        matrices = torch.cat([matrices[:, :reach], product], 1)
        reach *= 2
    return offsets


def backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state: equation (6), one reduction."""
    cell, inputs, params, initial, lengths = problem
    # States are zero in the padding, where their roots and logarithms have no slope.
    inputs, states = without_ends(inputs, lengths), without_ends(states, lengths)
    g_states, g_final, g_first = extend(g_states, g_final, lengths)
    old = torch.cat([initial[:, None], states[:, :-1]], 1)
    _, jacobians = linearised(cell, inputs, params, old)
    last = g_states[:, -1:] + g_final[:, None]
    backwards = torch.cat([last, g_states[:, :-1].flip(1)], 1)
    turned = jacobians.transpose(2, 3).flip(1)
    # The gradient at step t uses the Jacobian of step t + 1; that at the last step uses none.
    turned = torch.cat([torch.zeros_like(turned[:, :1]), turned[:, :-1]], 1)
    g = _solve(turned, backwards).flip(1)
    g_old, g_inputs, g_params = local_gradients(cell, inputs, params, old, states, g)
    return g_inputs, g_params, g_old[:, 0] + g_first
