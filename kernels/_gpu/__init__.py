"""Recurrences on the GPU: Triton kernels run on tensors, without autograd."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._gpu import chunked, emit, kernels
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._trace import takes_one_pass

_REAL = {torch.float32: tl.float32, torch.float64: tl.float64, torch.bfloat16: tl.float32}


class Launch(NamedTuple):
    """Launch of a kernel: how it is spread over a GPU.

    `block` lanes a program: units of sequences, times chunks where time is cut; `ahead` numbers
    of each lane on their way from memory, `longest` steps at most.
    """

    block: int
    warps: int
    ahead: int
    longest: int

    def prefetch(self, fields: int) -> int:
        """Steps to load ahead where a step reads so many fields: a power of two."""
        return min(self.longest, 1 << max(0, (self.ahead // max(fields, 1)).bit_length() - 1))


# First guesses, not yet timed on a device. In time order a program is one warp, so that few lanes
# are spread over many processors; where time is cut, one has to hold all chunks of a lane.
FORWARD = Launch(block=32, warps=1, ahead=16, longest=8)
BACKWARD = Launch(block=32, warps=1, ahead=24, longest=4)
SHOOTING = Launch(block=256, warps=8, ahead=8, longest=4)
SCAN = Launch(block=256, warps=8, ahead=12, longest=2)
LARGEST_GROUP = 8  # units of a program: in float32 a sector, the least that memory reads
# Products fuse with sums: said, since the default of Triton changes with its versions.
FUSION = {"enable_fp_fusion": True}


def wide(dtype: torch.dtype) -> torch.dtype:
    """Dtype of sums and residuals: of arithmetic, where numbers are stored in fewer bits."""
    return torch.promote_types(dtype, torch.float32)


@functools.cache
def source(cell: Cell, dtype: torch.dtype) -> str:
    """Text of a cell's step and of its vector-Jacobian product."""
    return emit.cell_source(cell, dtype)


@functools.cache
def functions(cell: Cell, dtype: torch.dtype) -> ModuleType:
    """Module of a cell's ``step`` and ``vjp``."""
    return emit.load(cell.name, source(cell, dtype))


def forward(problem: Problem, *, keep: bool = True) -> tuple[Tensor, Tensor]:
    """States and final state, in time order.

    With ``keep=False`` the states are not written: the first result has no steps then.
    """
    cell, inputs, params, initial, _ = problem
    batch, steps = inputs.shape[:2]
    states = inputs.new_empty(batch, steps if keep else 0, cell.n, initial.shape[2])
    final = torch.empty_like(initial, memory_format=torch.contiguous_format)
    tensors = [*_contiguous(inputs, params, initial, problem.ends), states, final]
    step = functions(cell, inputs.dtype).step
    _launch(kernels.forward, FORWARD, cell, tensors, steps, cell.m, STEP=step, KEEP=keep)
    return states, final


def backward(
    problem: Problem,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor,
    *,
    only_initial: bool = False,
) -> tuple[Tensor | None, Tensor | None, Tensor]:
    """Gradients of inputs (None where units share them), parameters and initial state.

    With ``only_initial=True`` the first two are None and nothing is written for them.
    """
    cell, inputs, params, initial, _ = problem
    given = _contiguous(inputs, params, initial, problem.ends, states, g_states, g_final)
    g_inputs = inputs.new_empty(0 if only_initial or cell.shared else inputs.shape)
    sums = params.new_empty(
        (0 if only_initial else len(initial), *params.shape), dtype=wide(params.dtype)
    )
    g_initial = torch.empty_like(given[2])
    vjp = functions(cell, inputs.dtype).vjp
    _launch(
        kernels.backward, BACKWARD, cell, [*given, g_inputs, sums, g_initial],
        inputs.shape[1], cell.m + 2 * cell.n, VJP=vjp, ONLY_INITIAL=only_initial,
    )  # fmt: skip
    if only_initial:
        return None, None, g_initial
    return None if cell.shared else g_inputs, sums.sum(0).to(params.dtype), g_initial


def _contiguous(*tensors: Tensor) -> list[Tensor]:
    return [t.detach().contiguous() for t in tensors]


def _launch(
    kernel: Any,
    launch: Launch,
    cell: Cell,
    tensors: list[Tensor],
    steps: int,
    fields: int,
    **options: Any,
) -> None:
    """Run a kernel on the current stream of the tensors' device."""
    final = tensors[-1]
    lanes = final.shape[0] * final.shape[2]
    if not lanes:
        return
    # Triton launches on the current device, whatever the tensors' own.
    with torch.cuda.device_of(final):
        kernel[(-(-lanes // launch.block),)](
            *tensors, steps, final.shape[2], lanes, N=cell.n, M=cell.m, P=cell.p,
            SHARED=cell.shared, REAL=_REAL[final.dtype], BLOCK=launch.block,
            PREFETCH=launch.prefetch(fields), num_warps=launch.warps, **FUSION, **options,
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
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """States of all chunks of time at once, by Newton's method on their boundaries.

    Parameters
    ----------
    problem : Problem
        Every sequence runs all of T, with inputs of each unit's own.
    chunk : int
        Steps of a chunk.
    max_passes : int
        Newton steps at most, at least 1. A linear cell takes one.
    tolerance : float
        Mismatch at a boundary, relative to 1 + |state|, that counts as agreement.

    Returns
    -------
    states : Tensor of shape (B, T, n, K)
    final : Tensor of shape (B, n, K)
    passes : Tensor of shape (B, K), int64
        Newton steps that a lane took.
    residual : Tensor of shape (B, K)
        Largest mismatch left in the states; infinite where one is not a number.
    converged : Tensor of shape (B, K), bool
        Where it is False, the states are not those of the recurrence.
    """
    cell, inputs, params, initial, _ = problem
    batch, steps, _, units = inputs.shape
    states = inputs.new_empty(batch, steps, cell.n, units)
    final = torch.empty_like(initial, memory_format=torch.contiguous_format)
    residual = torch.empty(batch, units, dtype=wide(inputs.dtype), device=inputs.device)
    passes = torch.empty_like(residual, dtype=torch.int64)
    converged = torch.empty_like(residual, dtype=torch.bool)
    tensors = [*_contiguous(inputs, params, initial), states, final, passes, residual, converged]
    _launch_chunks(
        chunked.shooting, SHOOTING, cell, [*tensors, tolerance], inputs, chunk, cell.m,
        max_passes=max_passes, STEP=functions(cell, inputs.dtype).step,
        TANGENT=_tangent(cell, inputs.dtype), LINEAR=takes_one_pass(cell),
    )  # fmt: skip
    return states, final, passes, residual, converged


def scan_backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor, chunk: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state, all chunks of time at once.

    The backward pass is linear: one scan over the chunks is exact unless a product of Jacobians
    overflows, and then gradients are not finite.
    """
    cell, inputs, params, initial, _ = problem
    given = _contiguous(inputs, params, initial, states, g_states, g_final)
    g_inputs = torch.empty_like(given[0])
    sums = params.new_empty(len(initial), *params.shape, dtype=wide(params.dtype))
    g_initial = torch.empty_like(given[2])
    _launch_chunks(
        chunked.backward, SCAN, cell, [*given, g_inputs, sums, g_initial], inputs, chunk,
        cell.m + 2 * cell.n, VJP=functions(cell, inputs.dtype).vjp,
    )  # fmt: skip
    return g_inputs, sums.sum(0).to(params.dtype), g_initial


def _launch_chunks(
    kernel: Any,
    launch: Launch,
    cell: Cell,
    arguments: list[Any],
    inputs: Tensor,
    chunk: int,
    fields: int,
    **options: Any,
) -> None:
    batch, steps, _, units = inputs.shape
    chunks = -(-steps // chunk)
    rows = 1 << (chunks - 1).bit_length()
    group = max(1, min(LARGEST_GROUP, launch.block // rows, 1 << (units - 1).bit_length()))
    if not batch:
        return
    with torch.cuda.device_of(inputs):
        kernel[(batch * -(-units // group),)](
            *arguments, steps, units, chunk, chunks, N=cell.n, M=cell.m, P=cell.p,
            REAL=_REAL[inputs.dtype], SCAN=_scan(cell.n), CHUNKS=rows, UNITS=group,
            PREFETCH=launch.prefetch(fields), num_warps=launch.warps, **FUSION, **options,
        )  # fmt: skip
