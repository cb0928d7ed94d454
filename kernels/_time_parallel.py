r"""Engines parallel in time: `scan` for linear cells, `shooting` for the others.

Time is divided into chunks that run side by side from guessed starts s_c, each with the product
M_c of its Jacobians. The ends e_c(s_c) and the starts must agree. Newton's method on the
boundaries (multiple shooting) is the short linear recurrence

.. math:: \delta_{c+1} = M_c \delta_c + e_c - s_{c+1}, \qquad s_{c+1} \leftarrow e_c + M_c \delta_c.

After k steps the first k chunks are exact for any cell; a linear cell is exact after one. On a CPU
everything uses the kernels in time order, with chunks as further lanes. A GPU has its own kernels
for the same iteration, independent of the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tsrnn.kernels._backend import backend_of
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._derived import affine, newton_tangent, tangent, tangent_column
from tsrnn.kernels._matrix_form import is_rolled
from tsrnn.kernels._problem import Problem, cut, extend, without_ends
from tsrnn.kernels._trace import takes_one_pass

MAX_PASSES = 12  # random 2 x 2 blocks with weights of scale 1.5 take 11 at worst
# For a cell whose structure drops entries of its Jacobian: enough for an error shrinking by 0.45 a
# pass to fall from one to the rounding of float64.
MAX_QUASI_PASSES = 48
ROUNDINGS = 16  # mismatch at a boundary that counts as agreement
LANES = 16  # with fewer units on a CPU, chunks fill the lanes of vector registers
WANTED_LANES = 256  # units times chunks: several vectors, to overlap their steps
WANTED_CHUNKS = 64  # as sequences: the scan over their boundaries stays short
SHORTEST_CHUNK = 64  # steps: a chunk has to cost more than its share of that scan
GPU_LANES = 2**16  # units times chunks: some sixteen warps for each of 132 multiprocessors
MOST_CHUNKS = 2048  # a unit on a GPU: rows that a program can scan


def forward(problem: Problem) -> tuple[Tensor, Tensor, Convergence | None]:
    """States, final state and convergence, which is None for a single chunk."""
    cell, inputs, params, initial, lengths = problem
    backend = backend_of(inputs.device)
    on_gpu = getattr(backend, "shooting", None)
    if on_gpu is not None:
        steps = gpu_chunk(cell, inputs)
        results: tuple[Tensor, Tensor, Convergence | None]
        results = on_gpu(problem, steps, most_passes(cell), _allowed(cell, inputs, steps))
        return results
    inputs = without_ends(inputs, lengths)
    whole = Problem(cell, inputs, params, initial)
    convergence = None
    if (chunks := chosen_chunks(inputs)).count > 1:
        states, final, convergence = _shoot(whole, chunks)
        run_lanes(backend.forward, whole, states, final, convergence.fell_back)
    else:
        states, final = backend.forward(whole)
    return *cut(states, final, initial, lengths), convergence


def gpu_chunk(cell: Cell, inputs: Tensor) -> int:
    """Steps of a chunk on a GPU: enough chunks to fill it, at most what a program can scan."""
    batch, steps, _, units = inputs.shape
    # Registers hold half the lanes for larger states.
    part = 1 if has_small_state(cell, inputs.dtype) else 2
    wanted = max(1, min(GPU_LANES // max(1, batch * units), MOST_CHUNKS) // part)
    return max(SHORTEST_CHUNK, -(-steps // wanted))


def has_small_state(cell: Cell, dtype: torch.dtype) -> bool:
    """True if a state takes at most 8 bytes in the precision of GPU arithmetic."""
    return cell.n * torch.promote_types(dtype, torch.float32).itemsize <= 8


def boundary_steps(cell: Cell, inputs: Tensor) -> int:
    """Steps between boundaries of the iteration."""
    if getattr(backend_of(inputs.device), "shooting", None) is not None:
        return gpu_chunk(cell, inputs)
    return chosen_chunks(inputs).steps


def _shoot(problem: Problem, chunks: Chunks) -> tuple[Tensor, Tensor, Convergence]:
    """Newton's method on the boundaries of chunks, then the remaining steps in time order."""
    cell, inputs, params, initial, _ = problem
    run = backend_of(inputs.device).forward
    u = chunks.split(inputs[:, : chunks.total]).contiguous()
    w = chunks.split_params(params)
    # From zero: a cell that forgets within a chunk ends right from any start.
    starts = torch.zeros_like(initial)[:, None].repeat(1, chunks.count, 1, 1)
    starts[:, 0] = initial
    allowed = _allowed(cell, inputs, chunks.steps)
    passes = torch.zeros(len(inputs), inputs.shape[3], dtype=torch.int64, device=inputs.device)
    moving = ~passes.bool()
    # After one pass for each chunk every start is the previous end.
    for _ in range(1 if takes_one_pass(cell) else min(most_passes(cell), chunks.count)):
        passes += moving
        ends, jacobians = _tangents(cell, u, w, starts, chunks, newton=True)
        starts = _corrected(starts, ends, jacobians)
        states, last = run(Problem(cell, u, w, chunks.split_boundaries(starts)))
        ends = chunks.join_boundaries(last)
        # Largest mismatch at a boundary of each lane, relative for large states and absolute for
        # small ones, which may be zero; NaN if one is.
        mismatch = (ends[:, :-1] - starts[:, 1:]).abs() / (1 + starts[:, 1:].abs())
        residual = mismatch.amax((1, 2))
        agreed = residual <= allowed
        # NaN cannot recover: such lanes are left to time order.
        moving = ~agreed & residual.isfinite()
        if not moving.any():
            break
    states, final = chunks.join(states), ends[:, -1].clone()
    if chunks.total < problem.steps:
        more, final = run(Problem(cell, inputs[:, chunks.total :], params, final))
        states = torch.cat([states, more], 1)
    return states, final, Convergence(passes, residual, ~agreed)


def most_passes(cell: Cell) -> int:
    """Passes of Newton's method, after which remaining lanes run in time order."""
    return MAX_PASSES if len(cell.groups) == 1 else MAX_QUASI_PASSES


def _allowed(cell: Cell, inputs: Tensor, steps: int) -> float:
    """Mismatch at a boundary, relative to 1 + |state|, attributed to rounding.

    Newton's method corrects the rounding within a chunk in its next pass; a linear cell has no
    next pass.
    """
    # bfloat16 is for storage only; boundaries are compared in the precision of arithmetic.
    arithmetic = torch.promote_types(inputs.dtype, torch.float32)
    return ROUNDINGS * torch.finfo(arithmetic).eps * (steps if takes_one_pass(cell) else 1)


def _tangents(
    cell: Cell, u: Tensor, w: Tensor, starts: Tensor, chunks: Chunks, *, newton: bool
) -> tuple[Tensor, Tensor]:
    """Ends (B, C, n, K) of the chunks and their derivatives by the starts (B, C, n, n, K).

    With `newton` the derivatives use the matrices of Newton's iteration, which may omit entries.
    """
    n = starts.shape[2]
    identity = torch.eye(n, dtype=starts.dtype, device=starts.device)[..., None]
    shape = (*starts.shape[:2], n, n, starts.shape[3])
    columns = identity.expand(shape)

    def run(carrying: Cell, matrix: Tensor) -> tuple[Tensor, Tensor]:
        begin = chunks.split_boundaries(torch.cat([starts, matrix], 2))
        _, last = backend_of(u.device).forward(Problem(carrying, u, w, begin), keep=False)
        ends, moved = chunks.join_boundaries(last).split([n, matrix.shape[2]], 2)
        return ends, moved

    if is_rolled(cell):  # the code of all columns together grows with the cube of n
        each = [run(tangent_column(cell), column) for column in columns.unbind(3)]
        return each[0][0], torch.stack([moved for _, moved in each], 3)
    carrying = newton_tangent(cell) if newton else tangent(cell)
    ends, moved = run(carrying, columns.flatten(2, 3))
    return ends, moved.unflatten(2, (n, n))


def _corrected(starts: Tensor, ends: Tensor, jacobians: Tensor) -> Tensor:
    """Starts after a Newton step.

    If a product of Jacobians has overflowed, a chunk starts at the end of the previous one: slower,
    but finally exact too.
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
    problem = Problem(affine(first.shape[1]), fields, empty, first)
    backend = backend_of(fields.device)
    if hasattr(backend, "shooting"):  # it scans, as the cell is linear
        return forward(problem)[0]
    solution: Tensor = backend.forward(problem)[0]
    return solution


def run_lanes(
    run: Callable[[Problem], tuple[Tensor, Tensor]],
    problem: Problem,
    states: Tensor,
    final: Tensor,
    lanes: Tensor,
) -> None:
    """Run the marked lanes (B, K) separately and overwrite them in `states` and `final`."""
    b, k = lanes.nonzero(as_tuple=True)
    if not len(b):
        return
    if lanes.is_cuda:  # kernels are compiled for a number of units: only for powers of two
        count = len(b)
        filled = torch.arange(1 << (count - 1).bit_length(), device=b.device).clamp(max=count - 1)
        b, k = b[filled], k[filled]
    cell, inputs, params, initial, _ = problem
    u = inputs[b, :, :, k].permute(1, 2, 0)[None]
    exact, last = run(Problem(cell, u, params[:, k], initial[b, :, k].T[None]))
    states[b, :, :, k] = exact[0].permute(2, 0, 1)
    final[b, :, k] = last[0].T


def backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor | None
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state: linear, so one scan is exact.

    GPU kernels accept None as a zero `g_final`.
    """
    cell, inputs, params, initial, lengths = problem
    backend = backend_of(inputs.device)
    on_gpu = getattr(backend, "scan_backward", None)
    if on_gpu is not None:
        gradients: tuple[Tensor | None, Tensor, Tensor]
        gradients = on_gpu(problem, states, g_states, g_final, gpu_chunk(cell, inputs))
        return gradients
    assert g_final is not None  # CPU kernels read it
    # States are zero in the padding, where their roots and logarithms have no slope.
    inputs, states = without_ends(inputs, lengths), without_ends(states, lengths)
    whole = Problem(cell, inputs, params, initial)
    g_states, g_final, g_first = extend(g_states, g_final, lengths)
    chunks = chosen_chunks(inputs)
    if chunks.count < 2:
        g_inputs, g_params, g_initial = backend.backward(whole, states, g_states, g_final)
        return g_inputs, g_params, g_initial + g_first
    at = chunks.total
    rest = None
    if at < problem.steps:  # the remaining steps come first, backward in time
        tail = Problem(cell, inputs[:, at:], params, states[:, at - 1])
        rest = backend.backward(tail, states[:, at:], g_states[:, at:], g_final)
        g_final = rest[2]
    head = Problem(cell, inputs[:, :at], params, initial)
    g_inputs, g_params, g_initial = _scan_backward(
        head, states[:, :at], g_states[:, :at], g_final, chunks
    )
    if rest is not None:
        g_inputs, g_params = torch.cat([g_inputs, rest[0]], 1), g_params + rest[1]
    return g_inputs, g_params, g_initial + g_first


def _scan_backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor, chunks: Chunks
) -> tuple[Tensor, Tensor, Tensor]:
    """Backward pass of chunks side by side, with gradients at their ends from a scan."""
    cell, inputs, params, initial, _ = problem
    run = backend_of(inputs.device).backward
    starts = torch.cat([initial[:, None], states[:, chunks.steps - 1 : -1 : chunks.steps]], 1)
    u, s, g = (chunks.split(x).contiguous() for x in (inputs, states, g_states))
    w, first = chunks.split_params(params), chunks.split_boundaries(starts)
    _, jacobians = _tangents(cell, u, w, starts, chunks, newton=False)  # gradients are exact
    if not jacobians.isfinite().all():  # a product has overflowed; time order needs none
        gradients: tuple[Tensor, Tensor, Tensor] = run(problem, states, g_states, g_final)
        return gradients
    pieces = Problem(cell, u, w, first)
    local = run(pieces, s, g, torch.zeros_like(first), only_initial=True)[2]
    local = chunks.join_boundaries(local)
    backwards = solve_affine(
        jacobians[:, 1:].transpose(2, 3).flip(1), local[:, 1:].flip(1), g_final
    )
    at_ends = torch.cat([backwards.flip(1), g_final[:, None]], 1)
    g_u, g_w, g_h = run(pieces, s, g, chunks.split_boundaries(at_ends))
    return chunks.join(g_u), chunks.join_params(g_w), chunks.join_boundaries(g_h)[:, 0]


def chosen_chunks(inputs: Tensor) -> Chunks:
    """Division of time: enough chunks to fill the lanes of a device, each long enough to pay."""
    steps, units = inputs.shape[1], inputs.shape[3]
    few = inputs.device.type == "cpu" and units < LANES
    wanted = WANTED_LANES // units if few else WANTED_CHUNKS
    count = max(1, min(wanted, steps // SHORTEST_CHUNK))
    # With a divisor of T no steps are left over for time order.
    divisors = [c for c in range(count, count // 2, -1) if steps % c == 0]
    count = divisors[0] if divisors else count
    return Chunks(count, steps // count, few)


@dataclass(frozen=True)
class Chunks:
    """Chunks of time side by side: `count` of `steps` steps each.

    As sequences they are views if possible. As units they fill the lanes of vector registers when
    units are few, at the price of a copy.
    """

    count: int
    steps: int
    as_units: bool

    @property
    def total(self) -> int:
        """Steps in all chunks."""
        return self.count * self.steps

    def split(self, x: Tensor) -> Tensor:
        """(B, count * steps, fields, K) as (B', steps, fields, K')."""
        x = x.unflatten(1, (self.count, self.steps))
        if not self.as_units:
            return x.flatten(0, 1)
        return x.permute(0, 2, 3, 1, 4).flatten(3)

    def join(self, x: Tensor) -> Tensor:
        """Undo `split`."""
        if not self.as_units:
            return x.unflatten(0, (-1, self.count)).flatten(1, 2)
        return x.unflatten(3, (self.count, -1)).permute(0, 3, 1, 2, 4).flatten(1, 2)

    def split_boundaries(self, x: Tensor) -> Tensor:
        """(B, count, fields, K) as (B', fields, K')."""
        return x.transpose(1, 2).flatten(2) if self.as_units else x.flatten(0, 1)

    def join_boundaries(self, x: Tensor) -> Tensor:
        """Undo `split_boundaries`."""
        if self.as_units:
            return x.unflatten(2, (self.count, -1)).transpose(1, 2)
        return x.unflatten(0, (-1, self.count))

    def split_params(self, params: Tensor) -> Tensor:
        """Parameters (p, K) for every chunk."""
        return params.repeat(1, self.count) if self.as_units else params

    def join_params(self, g_params: Tensor) -> Tensor:
        """Sum of the parameter gradients of all chunks."""
        return g_params.unflatten(1, (self.count, -1)).sum(1) if self.as_units else g_params
