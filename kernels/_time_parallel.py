r"""Engines parallel in time: `scan` for linear cells, `shooting` for the others.

Time is cut into chunks that run side by side from guessed starts s_c, each carrying the
product M_c of its Jacobians. The ends e_c(s_c) and the starts must agree. Newton's method on
the boundaries alone (multiple shooting) is the short linear recurrence

.. math:: \delta_{c+1} = M_c \delta_c + e_c - s_{c+1}, \qquad s_{c+1} \leftarrow e_c + M_c \delta_c.

After k steps the first k chunks are exact whatever the cell; a linear cell is exact after one.
On a CPU everything runs on the kernels in time order: chunks are only more lanes to them. On a
GPU the same iteration is one kernel.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tsrnn.kernels._backend import backend_of
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._chunks import Chunks
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._derived import affine, tangent
from tsrnn.kernels._lengths import whole
from tsrnn.kernels._trace import is_linear
from tsrnn.kernels._whole import cut, extend, without_ends

MAX_PASSES = 12
ROUNDINGS = 16  # of mismatch at a boundary that count as agreement
LANES = 16  # with fewer units on a CPU, chunks fill the lanes of vector registers
WANTED_LANES = 256
WANTED_CHUNKS = 64
SHORTEST_CHUNK = 64
MOST_CHUNKS = 1024  # of a lane on a GPU


def forward(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Convergence]:
    """States, final state and convergence; arguments as in `recurrence`."""
    inputs = without_ends(inputs, lengths)
    fused = getattr(backend_of(inputs.device), "shooting", None)
    if fused is not None:
        steps = fused_chunk(inputs)
        allowed = _allowed(cell, inputs, steps)
        given = (cell, inputs, params, initial, steps, MAX_PASSES, allowed)
        states, final, passes, residual, converged = fused(*given)
        convergence = Convergence(passes, residual, ~converged)
    elif (chunks := chosen_chunks(inputs)).count > 1:
        states, final, convergence = _shoot_and_go_on(cell, inputs, params, initial, chunks)
    else:
        states, final = _in_time_order(cell, inputs, params, initial)
        convergence = Convergence.exact(initial)
    run_lanes(_in_time_order, cell, inputs, params, initial, states, final, convergence.fell_back)
    return *cut(states, final, initial, lengths), convergence


def fused_chunk(inputs: Tensor) -> int:
    """Steps of a chunk where one program of a GPU owns all chunks of a lane."""
    return max(SHORTEST_CHUNK, -(-inputs.shape[1] // MOST_CHUNKS))


def _shoot_and_go_on(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, chunks: Chunks
) -> tuple[Tensor, Tensor, Convergence]:
    """Chunks side by side, then the steps that are left over in time order."""
    head, rest = inputs[:, : chunks.total], inputs[:, chunks.total :]
    states, final, convergence = _shoot(cell, head, params, initial, chunks)
    if rest.shape[1]:
        more, final = _in_time_order(cell, rest, params, final)
        states = torch.cat([states, more], 1)
    return states, final, convergence


def _in_time_order(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, *, keep: bool = True
) -> tuple[Tensor, Tensor]:
    lengths = whole(None, inputs)
    run = backend_of(inputs.device).forward
    states, final = run(cell, inputs, params, initial, lengths, keep=keep)
    return states, final


def _shoot(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, chunks: Chunks
) -> tuple[Tensor, Tensor, Convergence]:
    """Newton's method on the boundaries of chunks."""
    u, w = chunks.split(inputs).contiguous(), chunks.split_params(params)
    starts = torch.zeros_like(initial)[:, None].repeat(1, chunks.count, 1, 1)
    starts[:, 0] = initial
    allowed = _allowed(cell, inputs, chunks.steps)
    passes = torch.zeros(len(inputs), inputs.shape[3], dtype=torch.int64, device=inputs.device)
    moving = ~passes.bool()
    for _ in range(1 if is_linear(cell) else min(MAX_PASSES, chunks.count)):
        passes += moving
        ends, jacobians = _tangents(cell, u, w, starts, chunks)
        starts = _corrected(starts, ends, jacobians)
        states, last = _in_time_order(cell, u, w, chunks.split_boundaries(starts))
        ends = chunks.join_boundaries(last)
        residual = _mismatch(starts, ends)
        agreed = residual <= allowed
        # What is not a number will not become one: it is left to time order.
        moving = ~agreed & residual.isfinite()
        if not moving.any():
            break
    return chunks.join(states), ends[:, -1].clone(), Convergence(passes, residual, ~agreed)


def _allowed(cell: Cell, inputs: Tensor, steps: int) -> float:
    """Mismatch at a boundary, relative to 1 + |state|, that is rounding.

    Newton's method corrects the rounding of a chunk of so many steps in its next pass; a linear
    cell has no next pass.
    """
    arithmetic = torch.promote_types(inputs.dtype, torch.float32)
    return ROUNDINGS * torch.finfo(arithmetic).eps * (steps if is_linear(cell) else 1)


def _is_finite(jacobians: Tensor) -> Tensor:
    """Lanes (B, K) none of whose products has overflowed."""
    return jacobians.isfinite().all(1).all(1).all(1)


def _tangents(
    cell: Cell, u: Tensor, w: Tensor, starts: Tensor, chunks: Chunks
) -> tuple[Tensor, Tensor]:
    """Ends (B, C, n, K) of the chunks and their derivatives by the starts (B, C, n, n, K)."""
    n = cell.n
    identity = torch.eye(n, dtype=starts.dtype, device=starts.device).flatten()[:, None]
    shape = (*starts.shape[:2], n * n, starts.shape[3])
    begin = torch.cat([starts, identity.expand(shape)], 2)
    _, last = _in_time_order(tangent(cell), u, w, chunks.split_boundaries(begin), keep=False)
    last = chunks.join_boundaries(last)
    return last[:, :, :n], last[:, :, n:].unflatten(2, (n, n))


def _corrected(starts: Tensor, ends: Tensor, jacobians: Tensor) -> Tensor:
    """Starts after a Newton step.

    Where a product of Jacobians has overflowed, a chunk starts from where the one before ended:
    slower, but exact in the end all the same.
    """
    mismatch = ends[:, :-1] - starts[:, 1:]
    finite = jacobians[:, :-1].isfinite().all(2, keepdim=True).all(3, keepdim=True)
    jacobians = torch.where(finite, jacobians[:, :-1], torch.zeros_like(jacobians[:, :-1]))
    deltas = solve_affine(jacobians, mismatch, torch.zeros_like(starts[:, 0]))
    before = torch.cat([torch.zeros_like(deltas[:, :1]), deltas[:, :-1]], 1)
    moved = (jacobians * before[:, :, None]).sum(3)
    moved = torch.where(moved.isfinite(), moved, torch.zeros_like(moved))
    return torch.cat([starts[:, :1], ends[:, :-1] + moved], 1)


def solve_affine(matrices: Tensor, offsets: Tensor, first: Tensor) -> Tensor:
    """Solve all x_c = A_c x_{c-1} + b_c: A (B, C, n, n, K), b (B, C, n, K), x_0 (B, n, K)."""
    fields = torch.cat([matrices.flatten(2, 3), offsets], 2)
    empty = fields.new_empty(0, fields.shape[3])
    return _in_time_order(affine(first.shape[1]), fields, empty, first)[0]


def _mismatch(starts: Tensor, ends: Tensor) -> Tensor:
    """Largest relative difference at a boundary of each lane (B, K); NaN where one is."""
    relative = (ends[:, :-1] - starts[:, 1:]).abs() / (1 + starts[:, 1:].abs())
    return relative.amax((1, 2))


def run_lanes(
    run: Callable[[Cell, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    states: Tensor,
    final: Tensor,
    lanes: Tensor,
) -> None:
    """Run the marked lanes (B, K) by themselves and write them over `states` and `final`."""
    b, k = lanes.nonzero(as_tuple=True)
    if not len(b):
        return
    u = inputs[b, :, :, k].permute(1, 2, 0)[None]
    exact, last = run(cell, u, params[:, k], initial[b, :, k].T[None])
    states[b, :, :, k] = exact[0].permute(2, 0, 1)
    final[b, :, k] = last[0].T


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
    """Gradients of inputs, parameters and initial state: linear, so one scan is exact."""
    inputs = without_ends(inputs, lengths)
    g_states, g_final, g_first = extend(g_states, g_final, lengths)
    fused = getattr(backend_of(inputs.device), "scan_backward", None)
    if fused is not None:
        given = (cell, inputs, params, initial, states, g_states, g_final)
        g_inputs, g_params, g_initial = fused(*given, fused_chunk(inputs))
        if all(g.isfinite().all() for g in (g_inputs, g_params, g_initial)):
            return g_inputs, g_params, g_initial + g_first
    chunks = chosen_chunks(inputs)
    if fused is not None or chunks.count < 2:
        g_inputs, g_params, g_initial = _backward_in_time_order(
            cell, inputs, params, initial, states, g_states, g_final
        )
        return g_inputs, g_params, g_initial + g_first
    at = chunks.total
    rest = []
    if at < inputs.shape[1]:
        tail = (inputs[:, at:], params, states[:, at - 1], states[:, at:], g_states[:, at:])
        rest.append(_backward_in_time_order(cell, *tail, g_final))
        g_final = rest[0][2]
    head = (inputs[:, :at], params, initial, states[:, :at], g_states[:, :at])
    g_inputs, g_params, g_initial = _backward_scan(cell, *head, g_final, chunks)
    for g_rest, more, _ in rest:
        g_inputs, g_params = torch.cat([g_inputs, g_rest], 1), g_params + more
    return g_inputs, g_params, g_initial + g_first


def _backward_in_time_order(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor,
    *,
    only_initial: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    lengths = whole(None, inputs)
    given = (inputs, params, initial, lengths, states, g_states, g_final)
    return backend_of(inputs.device).backward(cell, *given, only_initial=only_initial)


def _backward_scan(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor,
    chunks: Chunks,
) -> tuple[Tensor, Tensor, Tensor]:
    """Backward pass of chunks side by side, the gradients at their ends from a scan."""
    starts = torch.cat([initial[:, None], states[:, chunks.steps - 1 : -1 : chunks.steps]], 1)
    u, s, g = (chunks.split(x).contiguous() for x in (inputs, states, g_states))
    w, first = chunks.split_params(params), chunks.split_boundaries(starts)
    _, jacobians = _tangents(cell, u, w, starts, chunks)
    if not _is_finite(jacobians).all():
        return _backward_in_time_order(cell, inputs, params, initial, states, g_states, g_final)
    nothing = torch.zeros_like(first)
    local = _backward_in_time_order(cell, u, w, first, s, g, nothing, only_initial=True)[2]
    local = chunks.join_boundaries(local)
    backwards = solve_affine(
        jacobians[:, 1:].transpose(2, 3).flip(1), local[:, 1:].flip(1), g_final
    )
    at_ends = torch.cat([backwards.flip(1), g_final[:, None]], 1)
    g_u, g_w, g_h = _backward_in_time_order(
        cell, u, w, first, s, g, chunks.split_boundaries(at_ends)
    )
    return chunks.join(g_u), chunks.join_params(g_w), chunks.join_boundaries(g_h)[:, 0]


def chosen_chunks(inputs: Tensor) -> Chunks:
    """How time is cut: enough chunks to fill the lanes of a device, long enough to pay."""
    steps, units = inputs.shape[1], inputs.shape[3]
    few = inputs.device.type == "cpu" and units < LANES
    wanted = WANTED_LANES // units if few else WANTED_CHUNKS
    count = max(1, min(wanted, steps // SHORTEST_CHUNK))
    divisors = [c for c in range(count, count // 2, -1) if steps % c == 0]
    count = divisors[0] if divisors else count
    return Chunks(count, steps // count, few)
