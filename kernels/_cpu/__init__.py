"""Recurrences on the CPU in time order: emitted kernels run on tensors, without autograd."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.kernels._backend import check_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._cpu import compiler
from tsrnn.kernels._cpu.buffers import new_empty
from tsrnn.kernels._cpu.compiler import entries_ir
from tsrnn.kernels._cpu.kernel_ir import POINTERS, SIZES, kernel_ir
from tsrnn.kernels._cpu.threads import run_ranges, split
from tsrnn.kernels._problem import Problem


class Kernels(NamedTuple):
    """A cell's compiled recurrence forward and backward in time."""

    forward: Callable[..., None]
    backward: Callable[..., None]


@functools.cache
def source(cell: Cell, dtype: torch.dtype, kinds: Sequence[str] = Kernels._fields) -> str:
    """LLVM source of a cell's kernels and their entries."""
    entries = entries_ir({kind: POINTERS[kind] for kind in kinds}, SIZES)
    return kernel_ir(cell, str(dtype).removeprefix("torch."), kinds) + entries


@functools.cache
def kernels_for(cell: Cell, dtype: torch.dtype) -> Kernels:
    """Trace, emit and compile, or load what an earlier process has compiled."""
    return Kernels(**_load(cell, source(cell, dtype), Kernels._fields))


@functools.cache
def _variant(cell: Cell, dtype: torch.dtype, kind: str) -> Callable[..., None]:
    """Load a kernel that does less; compiled where it is first used."""
    return _load(cell, source(cell, dtype, (kind,)), (kind,))[kind]


def _load(cell: Cell, code: str, kinds: Sequence[str]) -> dict[str, Callable[..., None]]:
    arguments = {kind: len(POINTERS[kind]) + len(SIZES) for kind in kinds}
    return compiler.load(cell.name, code, arguments)


def prepare(cell: Cell, dtype: torch.dtype, *, verbose: bool = False) -> None:
    """Have the kernels of a cell ready; with `verbose` say so where that means compiling.

    Parameters
    ----------
    cell : Cell
    dtype : torch.float32 or torch.float64
    verbose : bool, default False
        Print one line before and after a compilation. Compiled files are kept,
        so that this happens once on a machine.

    Raises
    ------
    ValueError
        If the cell has no compiled form, or there is none in this dtype.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, prepare
    >>> prepare(cells.para_rnn(2), torch.float32)
    """
    check_compiled(dtype)
    announce = False
    if verbose:
        path = compiler.object_file(cell.name, source(cell, dtype))
        announce = not compiler.is_kept(path)
    if announce:
        print(f"Compiling the recurrence {cell.name} ({dtype}) once; it is kept in {path.parent}")
    start = time.perf_counter()
    kernels_for(cell, dtype)
    if cell.n_outputs < cell.n:
        _variant(cell, dtype, "backward_outputs")
    if announce:
        print(f"Compiled in {time.perf_counter() - start:.1f} s")


def forward(problem: Problem, *, keep: bool = True) -> tuple[Tensor, Tensor]:
    """States and final state, in time order.

    With ``keep=False`` the states are not written: the first result has no steps then.
    """
    return _forward(problem, "forward" if keep else "forward_final")


def forward_outputs(problem: Problem) -> tuple[Tensor, Tensor]:
    """Fields of the states that a layer hands on, and the final state, in time order."""
    return _forward(problem, "forward_outputs")


def _forward(problem: Problem, kind: str) -> tuple[Tensor, Tensor]:
    cell, inputs, params, initial, _ = problem
    batch, steps = inputs.shape[:2]
    final = torch.empty_like(initial, memory_format=torch.contiguous_format)
    if kind == "forward":
        kernel, fields = kernels_for(cell, inputs.dtype).forward, cell.n
    else:
        kernel = _variant(cell, inputs.dtype, kind)
        fields = cell.n_outputs if kind == "forward_outputs" else cell.n
    kept = kind != "forward_final"
    states = new_empty(inputs, (batch, steps if kept else 0, fields, initial.shape[2]))
    given = _contiguous(inputs, params, initial, problem.ends)
    _run(kernel, given + ([states, final] if kept else [final]), cell.n, steps)
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

    `g_states` may hold the fields alone that a layer hands on, or none. With
    ``only_initial=True`` the first two results are None and nothing is written for them.
    """
    cell, inputs, params, initial, _ = problem
    given = _contiguous(inputs, params, initial, problem.ends, states, g_states, g_final)
    steps, dtype = inputs.shape[1], inputs.dtype
    g_initial = torch.empty_like(given[2])
    if only_initial:
        _run(_variant(cell, dtype, "backward_initial"), [*given, g_initial], cell.n, steps)
        return None, None, g_initial
    g_inputs = new_empty(inputs, (0,) if cell.shared else inputs.shape)
    g_params = params.new_empty(len(initial), *params.shape[-2:])
    if g_states.shape[2] == cell.n:
        kernel = kernels_for(cell, dtype).backward
    else:
        kernel = _variant(
            cell, dtype, "backward_outputs" if g_states.shape[2] else "backward_final"
        )
    _run(kernel, [*given, g_inputs, g_params, g_initial], cell.n, steps)
    if params.ndim == 3:  # summed over the sequences of each set
        g_params = g_params.unflatten(0, (len(params), -1)).transpose(0, 1)
    return None if cell.shared else g_inputs, pairwise_sum(g_params), g_initial


def _contiguous(*tensors: Tensor) -> list[Tensor]:
    return [t.contiguous() for t in tensors]


def pairwise_sum(parts: Tensor) -> Tensor:
    """Sum over the first axis in a fixed order; `parts` is used up.

    torch.sum may order its terms by the number of threads.
    """
    if not len(parts):
        return parts.sum(0)
    while len(parts) > 1:
        kept = (len(parts) + 1) // 2
        first, rest = parts.split_with_sizes([kept, len(parts) - kept])
        first[: len(rest)].add_(rest)
        parts = first
    return parts[0].clone()  # not a view that keeps all parts in memory


def _run(kernel: Callable[..., None], tensors: list[Tensor], n: int, steps: int) -> None:
    """Run a kernel over all sequences and units of the initial state, its third argument."""
    params, (batch, _, units) = tensors[1], tensors[2].shape
    per_set = batch // len(params) if params.ndim == 3 else batch
    addresses = [t.data_ptr() for t in tensors]
    run_ranges(
        functools.partial(kernel, *addresses, steps, units, max(per_set, 1)),
        split(batch, units, batch * steps * n * units),
    )
