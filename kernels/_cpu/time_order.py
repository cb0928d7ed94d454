"""Recurrences on the CPU in time order: emitted kernels run on tensors, without autograd."""

import functools
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tsrnn.kernels._backend import check_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._cpu import compiler, rolled_ir
from tsrnn.kernels._cpu.buffers import new_empty
from tsrnn.kernels._cpu.compiler import entries_ir
from tsrnn.kernels._cpu.kernel_ir import POINTERS, SIZES, kernel_ir
from tsrnn.kernels._cpu.threads import run_ranges, split
from tsrnn.kernels._matrix_form import block_step, is_rolled
from tsrnn.kernels._problem import Problem, of_all_fields


@functools.cache
def source(cell: Cell, dtype: torch.dtype, kinds: Sequence[str] = ("forward", "backward")) -> str:
    """LLVM source of a cell's kernels and their entries."""
    name = str(dtype).removeprefix("torch.")
    if is_rolled(cell):
        code = rolled_ir.rolled_ir(block_step(cell).form, name, kinds)
        return code + entries_ir(
            {kind: rolled_ir.POINTERS[kind] for kind in kinds}, rolled_ir.SIZES
        )
    return kernel_ir(cell, name, kinds) + entries_ir({k: POINTERS[k] for k in kinds}, SIZES)


@functools.cache
def kernel_of(cell: Cell, dtype: torch.dtype, kind: str) -> Callable[..., None]:
    """Trace, emit and compile one kernel, or load it from the cache."""
    sizes = rolled_ir.SIZES if is_rolled(cell) else SIZES
    arguments = {kind: len(POINTERS[kind]) + len(sizes)}
    return compiler.load(_name(cell), source(cell, dtype, (kind,)), arguments)[kind]


def _name(cell: Cell) -> str:
    """Stem of the files of a cell's kernels, one for all sizes of rolled blocks."""
    return f"{block_step(cell).form.name}.blocks" if is_rolled(cell) else cell.name


def prepare(cell: Cell, dtype: torch.dtype, *, verbose: bool = False) -> None:
    """Compile the kernels of a cell in float32 or float64 ahead of their use, once on a machine.

    `verbose` prints one line before and after a compilation. A ValueError tells of a cell without a
    compiled form, or without any in this dtype.
    """
    check_compiled(dtype)
    kinds = ["forward", "backward"]
    if cell.n_outputs < cell.n and not is_rolled(cell):
        kinds.append("backward_outputs")
    announce = False
    if verbose:
        sources = [source(cell, dtype, (kind,)) for kind in kinds]
        paths = [compiler.object_file(_name(cell), code) for code in sources]
        announce = not all(map(compiler.is_kept, paths))
    if announce:
        folder = compiler.cache_dir()
        print(f"Compiling the recurrence {cell.name} ({dtype}) once; it is kept in {folder}")
    start = time.perf_counter()
    for kind in kinds:
        kernel_of(cell, dtype, kind)
    if announce:
        print(f"Compiled in {time.perf_counter() - start:.1f} s")


def forward(problem: Problem, *, keep: bool = True) -> tuple[Tensor, Tensor]:
    """States and final state, in time order.

    With ``keep=False`` the states are not written, and the first result has no steps.
    """
    if is_rolled(problem.cell):  # whose kernels always write states
        states, final = _forward(problem, "forward")
        return states if keep else states[:, :0], final
    return _forward(problem, "forward" if keep else "forward_final")


def forward_outputs(problem: Problem) -> tuple[Tensor, Tensor]:
    """Output fields of the states, and the final state, in time order."""
    return _forward(problem, "forward_outputs")


def _forward(problem: Problem, kind: str) -> tuple[Tensor, Tensor]:
    cell, inputs, params, initial, _ = problem
    batch, steps = inputs.shape[:2]
    final = torch.empty_like(initial, memory_format=torch.contiguous_format)
    fields = cell.n_outputs if kind == "forward_outputs" else cell.n
    kept = kind != "forward_final"
    states = new_empty(inputs, (batch, steps if kept else 0, fields, initial.shape[2]))
    given = _contiguous(inputs, params, initial, problem.ends)
    _run(problem, kind, given + ([states, final] if kept else [final]))
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

    `g_states` may hold only the output fields, or none. With ``only_initial=True`` the first two
    results are None and not computed, except by kernels of rolled blocks.
    """
    cell, inputs, params, initial, _ = problem
    if is_rolled(cell):
        g_states = of_all_fields(g_states, states)
    given = _contiguous(inputs, params, initial, problem.ends, states, g_states, g_final)
    g_initial = torch.empty_like(given[2])
    if only_initial and not is_rolled(cell):
        _run(problem, "backward_initial", [*given, g_initial])
        return None, None, g_initial
    g_inputs = new_empty(inputs, (0,) if cell.shared else inputs.shape)
    g_params = params.new_empty(len(initial), *params.shape[-2:])
    kind = "backward"
    if g_states.shape[2] < cell.n:
        kind = "backward_outputs" if g_states.shape[2] else "backward_final"
    _run(problem, kind, [*given, g_inputs, g_params, g_initial])
    if params.ndim == 3:  # summed over the sequences of each set
        g_params = g_params.unflatten(0, (len(params), -1)).transpose(0, 1)
    return None if cell.shared else g_inputs, pairwise_sum(g_params), g_initial


def _contiguous(*tensors: Tensor) -> list[Tensor]:
    return [t.contiguous() for t in tensors]


def pairwise_sum(parts: Tensor) -> Tensor:
    """Sum over the first axis in a fixed order; overwrites `parts`.

    The order in torch.sum may depend on the number of threads.
    """
    if not len(parts):
        return parts.sum(0)
    while len(parts) > 1:
        kept = (len(parts) + 1) // 2
        first, rest = parts.split_with_sizes([kept, len(parts) - kept])
        first[: len(rest)].add_(rest)
        parts = first
    return parts[0].clone()  # a view would keep all parts in memory


def _run(problem: Problem, kind: str, tensors: list[Tensor]) -> None:
    """Run a kernel over all sequences and units."""
    cell, params, (batch, _, units) = problem.cell, problem.params, problem.initial.shape
    kernel = kernel_of(cell, params.dtype, kind)
    per_set = batch // len(params) if params.ndim == 3 else batch
    addresses = [t.data_ptr() for t in tensors]
    sizes = [problem.steps, units, max(per_set, 1)]
    if is_rolled(cell):
        sizes.insert(0, block_step(cell).size)
    run_ranges(
        functools.partial(kernel, *addresses, *sizes),
        split(batch, units, batch * problem.steps * cell.n * units),
    )
