"""Recurrences on the GPU: Triton kernels run on tensors, without autograd."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
import triton.language as tl
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._convergence import Convergence
from tsrnn.kernels._gpu import chunked, emit, kernels
from tsrnn.kernels._gpu.launches import run
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._time_parallel import has_small_state
from tsrnn.kernels._trace import takes_one_pass, trace

_REAL = {torch.float32: tl.float32, torch.float64: tl.float64, torch.bfloat16: tl.float32}


class Launch(NamedTuple):
    """Launch parameters of a kernel.

    `block` lanes a program: units of sequences, or of their chunks. Each lane prefetches `ahead`
    numbers, at most `longest` steps.
    """

    block: int
    warps: int
    ahead: int
    longest: int

    def prefetch(self, fields: int) -> int:
        """Steps to load ahead for a step that reads this many fields: a power of two."""
        return min(self.longest, 1 << max(0, (self.ahead // max(fields, 1)).bit_length() - 1))


# One warp a program spreads few lanes over many processors. At these depths an H200 is bound by the
# arithmetic of an Elman block, not by memory. A GRU would gain from 8 steps ahead, but compile time
# grows with the square of the steps: Triton's coalescing pass scans the whole kernel for each load.
FORWARD = Launch(block=32, warps=1, ahead=32, longest=16)
BACKWARD = Launch(block=32, warps=1, ahead=48, longest=8)
# Newton's method runs one program on each multiprocessor, for cheap barriers. States of more than 8
# bytes leave registers for half as many lanes.
SHOOTING = Launch(block=512, warps=16, ahead=16, longest=8)
SHOOTING_OF_MANY = Launch(block=256, warps=8, ahead=16, longest=8)
SCAN = Launch(block=32, warps=1, ahead=32, longest=4)
LARGEST_GROUP = 8  # units that a program scans: in float32 a sector, the smallest read from memory
SCANNED = 8192  # chunks times units times fields of a map: 32 numbers for each of 256 threads
REGISTERS = 65536  # of a multiprocessor; a thread has 255 at most
ROWS = (64, 256)  # chunks that a program scans, or the next power of two, for few compilations


def wide(dtype: torch.dtype) -> torch.dtype:
    """Dtype of sums and residuals: that of arithmetic if storage has fewer bits."""
    return torch.promote_types(dtype, torch.float32)


@functools.cache
def source(cell: Cell, dtype: torch.dtype) -> str:
    """Source text of a cell's step and vector-Jacobian product."""
    return emit.cell_source(cell, dtype)


@functools.cache
def functions(cell: Cell, dtype: torch.dtype) -> ModuleType:
    """Module with a cell's ``step`` and ``vjp``."""
    return emit.load(cell.name, source(cell, dtype))


@functools.cache
def _fields_read(cell: Cell, given: int) -> int:
    """Count the numbers that the derivative of a step reads, with gradients of `given` fields.

    A state is read once, as the new state of one step and the old state of the next.
    """
    reads = trace(cell)[1].reads
    states = {name[1:] for name in reads if name[0] in "hs"}
    return len(states) + sum(name[0] == "u" for name in reads) + given


def forward(problem: Problem, *, keep: bool = True) -> tuple[Tensor, Tensor]:
    """States and final state, in time order.

    With ``keep=False`` the states are not written, and the first result has no steps.
    """
    cell, inputs, params, initial, _ = problem
    batch, steps = inputs.shape[:2]
    states = inputs.new_empty(batch, steps if keep else 0, cell.n, initial.shape[2])
    final = torch.empty_like(initial, memory_format=torch.contiguous_format)
    tensors = [*_contiguous(inputs, params, initial, problem.lengths), states, final]
    step = functions(cell, inputs.dtype).step
    _launch(
        kernels.forward,
        FORWARD,
        cell,
        tensors,
        steps,
        cell.m,
        STEP=step,
        SHARED=cell.shared,
        KEEP=keep,
    )
    return states, final


def backward(
    problem: Problem,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor | None,
    *,
    only_initial: bool = False,
) -> tuple[Tensor | None, Tensor | None, Tensor]:
    """Gradients of inputs (None where units share them), parameters and initial state.

    `g_states` may hold only the first fields, and `g_final` be None; the rest is zero. With
    ``only_initial=True`` the first two results are None and not computed.
    """
    cell, inputs, params, initial, _ = problem
    given = _contiguous(inputs, params, initial, problem.lengths, states, g_states, g_final)
    g_inputs = inputs.new_empty(0 if only_initial or cell.shared else inputs.shape)
    sums = params.new_empty(
        (0 if only_initial else len(initial), *params.shape), dtype=wide(params.dtype)
    )
    g_initial = torch.empty_like(given[2])
    vjp = functions(cell, inputs.dtype).vjp
    _launch(
        kernels.backward, BACKWARD, cell, [*given, g_inputs, sums, g_initial],
        inputs.shape[1], _fields_read(cell, g_states.shape[2]), VJP=vjp, SHARED=cell.shared,
        GIVEN=g_states.shape[2], ONLY_INITIAL=only_initial,
    )  # fmt: skip
    if only_initial:
        return None, None, g_initial
    return None if cell.shared else g_inputs, sums.sum(0).to(params.dtype), g_initial


def _contiguous(*tensors: Tensor | None) -> list[Any]:
    return [None if t is None else t.detach().contiguous() for t in tensors]


def _launch(
    kernel: Any,
    launch: Launch,
    cell: Cell,
    tensors: list[Tensor],
    steps: int,
    fields: int,
    chunk: int | None = None,
    **options: Any,
) -> None:
    """Run a kernel on the current stream of the tensors' device, one lane a unit.

    With `chunk`, one lane for each chunk of that many steps. The third tensor is the initial
    state; `fields` is the number of fields that a step reads.
    """
    initial = tensors[2]
    batch, _, units = initial.shape
    chunks = 1 if chunk is None else -(-steps // chunk)
    lanes = batch * chunks * units
    sizes = (steps, lanes) if chunk is None else (steps, chunk, chunks, lanes)
    if not lanes:
        return
    run(
        kernel, -(-lanes // launch.block), tensors, sizes, N=cell.n, M=cell.m, P=cell.p, K=units,
        REAL=_REAL[initial.dtype], BLOCK=launch.block, PREFETCH=launch.prefetch(fields),
        num_warps=launch.warps, **options,
    )  # fmt: skip


@functools.cache
def _tangent(cell: Cell, dtype: torch.dtype) -> Any:
    source = emit.tangent_source(cell, dtype)
    return emit.load(f"{cell.name}.tangent", source).tangent


@functools.cache
def _scan(n: int) -> Any:
    return emit.load(f"affine_{n}", emit.affine_source(n)).scan


def shooting(
    problem: Problem, chunk: int, max_passes: int, tolerance: float
) -> tuple[Tensor, Tensor, Convergence | None]:
    """Run all chunks of time at once, by Newton's method on their boundaries.

    Lanes that do not agree after `max_passes` Newton steps run in time order; a linear cell takes
    one. Agreement is a mismatch at each boundary of at most `tolerance` relative to 1 + abs(state).
    A GPU needs one launch, whose programs wait for each other between phases; the interpreter,
    which runs programs in sequence, needs one launch for each phase. Inputs are separate for each
    unit. The convergence is None for a single chunk, which needs no iteration.
    """
    cell, inputs, params, initial, _ = problem
    batch, steps, _, units = inputs.shape
    chunks, n, dtype = -(-steps // chunk), cell.n, wide(inputs.dtype)
    if chunks < 2:
        return *forward(problem), None
    tolerance = float(np.float32(tolerance))  # as the kernels read it
    states = inputs.new_empty(batch, steps, n, units)
    final = torch.empty_like(initial, memory_format=torch.contiguous_format)
    residual = initial.new_empty(batch, units, dtype=dtype)
    passes = torch.empty_like(residual, dtype=torch.int64)
    moving, fell_back = (torch.empty_like(residual, dtype=torch.bool) for _ in range(2))
    if not (lanes := batch * chunks * units):
        return states, final, Convergence(passes, residual, fell_back)
    starts = initial.new_empty(batch, chunks, n, units, dtype=dtype)
    ends = initial.new_empty(batch, chunks, n + n * n, units, dtype=dtype)
    integer = torch.int32 if dtype == torch.float32 else torch.int64
    residuals = initial.new_empty(2, batch, units, dtype=integer)
    most = 1 if takes_one_pass(cell) else min(max_passes, chunks)
    # Phases: a march from zero, a correction and a march a pass, then the rest in time order.
    last = 2 * (most + 1)
    counts = torch.zeros(last + 3, dtype=torch.int32, device=initial.device)
    launch = SHOOTING if has_small_state(cell, dtype) else SHOOTING_OF_MANY
    blocks = -(-lanes // launch.block)
    resident = multiprocessors(initial.device)
    phases = [(0, last)] if resident else [(phase, phase) for phase in range(last + 1)]
    rows, group = _scan_tile(chunks, n, units)
    arrays = [
        *_contiguous(inputs, params, initial, problem.lengths), starts, ends, moving, residuals,
        counts, states, final, passes, residual, fell_back,
    ]  # fmt: skip
    for phase in phases:
        run(
            chunked.shoot, min(blocks, resident or blocks), arrays,
            (steps, chunk, chunks, lanes, tolerance, most, *phase),
            TANGENT=_tangent(cell, inputs.dtype), SCAN=_scan(n), N=n, M=cell.m, P=cell.p,
            K=units, REAL=_REAL[inputs.dtype], BLOCK=launch.block,
            PREFETCH=launch.prefetch(cell.m), CHUNKS=rows, UNITS=group,
            num_warps=launch.warps, launch_cooperative_grid=resident > 0,
            # Explicit, since ptxas spills to make room for two programs on a multiprocessor.
            maxnreg=min(255, REGISTERS // (32 * launch.warps)),
        )  # fmt: skip
    return states, final, Convergence(passes, residual, fell_back)


@functools.cache
def multiprocessors(device: torch.device) -> int:
    """Multiprocessors of a device; 0 if programs run in sequence."""
    if device.type != "cuda":
        return 0
    return torch.cuda.get_device_properties(device).multi_processor_count


def _scan_tile(chunks: int, n: int, units: int) -> tuple[int, int]:
    """Chunks and units that a program scans at a time, powers of two."""
    rows = next((rows for rows in ROWS if chunks <= rows), 1 << (chunks - 1).bit_length())
    fit = max(1, SCANNED // (rows * n * (n + 1)))
    return rows, min(LARGEST_GROUP, 1 << (fit.bit_length() - 1), 1 << (units - 1).bit_length())


def scan_backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor | None, chunk: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state, for all chunks of time at once.

    The backward pass is linear: one scan over the chunks is exact unless a product of Jacobians
    overflows; units with overflow run in time order.
    """
    cell, inputs, params, initial, _ = problem
    batch, steps, _, units = inputs.shape
    chunks, n = -(-steps // chunk), cell.n
    if chunks < 2:
        gradients: Any = backward(problem, states, g_states, g_final)
        return gradients
    dtype = wide(inputs.dtype)
    given = _contiguous(inputs, params, initial, problem.lengths, states, g_states, g_final)
    adjoint = initial.new_empty(batch, chunks, n + n * n, units, dtype=dtype)
    terminal = initial.new_empty(batch, chunks, n, units, dtype=dtype)
    failed = initial.new_empty(batch, units, dtype=torch.int32)
    g_inputs = torch.empty_like(given[0])
    sums = params.new_empty(batch, chunks, *params.shape, dtype=dtype)
    g_initial = torch.empty_like(given[2])
    read = _fields_read(cell, g_states.shape[2])
    vjp = functions(cell, inputs.dtype).vjp
    of_marches = {"VJP": vjp, "GIVEN": g_states.shape[2]}
    _launch(chunked.adjoints, SCAN, cell, [*given, adjoint], steps, read, chunk, **of_marches)
    _launch_scan(chunked.gradients_at_ends, [adjoint, given[-1], terminal, failed], initial, chunks)
    _launch(
        chunked.backward, SCAN, cell, [*given, terminal, failed, g_inputs, sums, g_initial],
        steps, read, chunk, **of_marches,
    )  # fmt: skip
    return g_inputs, sums.sum((0, 1)).to(params.dtype), g_initial


def _launch_scan(kernel: Any, tensors: list[Tensor | None], state: Tensor, chunks: int) -> None:
    """Run a kernel whose programs each hold all chunks of a few units; `state` is (B, n, K)."""
    batch, n, units = state.shape
    rows, group = _scan_tile(chunks, n, units)
    if not batch:
        return
    run(
        kernel, batch * -(-units // group), tensors, (chunks,), N=n, K=units,
        REAL=_REAL[state.dtype], SCAN=_scan(n), CHUNKS=rows, UNITS=group,
        num_warps=max(1, min(8, rows * group // 32)),
    )  # fmt: skip
