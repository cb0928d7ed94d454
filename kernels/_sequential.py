"""The engine in time order on the CPU: emitted kernels under autograd."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tsrnn.kernels import _compile
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._kernel_ir import POINTERS, SIZES, kernel_ir
from tsrnn.kernels._threads import run_ranges, split

COMPILED_DTYPES = (torch.float32, torch.float64)


class Kernels(NamedTuple):
    """A cell's compiled recurrence forward and backward in time."""

    forward: Callable[..., None]
    backward: Callable[..., None]


@functools.cache
def _source(cell: Cell, dtype: torch.dtype) -> str:
    return kernel_ir(cell, str(dtype).removeprefix("torch."))


@functools.cache
def kernels_for(cell: Cell, dtype: torch.dtype) -> Kernels:
    """Trace, emit and compile, or load what an earlier process has compiled."""
    arguments = {kind: len(names) + len(SIZES) for kind, names in POINTERS.items()}
    return Kernels(**_compile.load(cell.name, _source(cell, dtype), arguments))


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
    """
    if dtype not in COMPILED_DTYPES:
        raise ValueError(f"dtype must be torch.float32 or torch.float64; got {dtype!r}")
    path = _compile.object_file(cell.name, _source(cell, dtype))
    announce = verbose and not _compile.is_kept(path)
    if announce:
        print(f"Compiling the recurrence {cell.name} ({dtype}) once; it is kept in {path.parent}")
    start = time.perf_counter()
    kernels_for(cell, dtype)
    if announce:
        print(f"Compiled in {time.perf_counter() - start:.1f} s")


class _Sequential(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        batch, steps = inputs.shape[:2]
        states = inputs.new_empty(batch, steps, cell.n, initial.shape[2])
        final = initial.new_empty(initial.shape)
        given = [t.detach().contiguous() for t in (inputs, params, initial, lengths)]
        kernel = kernels_for(cell, inputs.dtype).forward
        _run(kernel, [*given, states, final], states.shape)
        ctx.cell = cell
        ctx.save_for_backward(*given, states)
        return states, final

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_states: Tensor, g_final: Tensor) -> tuple[Tensor | None, ...]:
        inputs, params, initial, _, states = ctx.saved_tensors
        g_inputs = inputs.new_empty(0 if ctx.cell.shared else inputs.shape)
        g_params = params.new_empty(len(initial), *params.shape)
        g_initial = torch.empty_like(initial)
        kernel = kernels_for(ctx.cell, inputs.dtype).backward
        given = [*ctx.saved_tensors, g_states.contiguous(), g_final.contiguous()]
        _run(kernel, [*given, g_inputs, g_params, g_initial], states.shape)
        return (
            None,
            None if ctx.cell.shared else g_inputs,
            _pairwise_sum(g_params),
            g_initial,
            None,
        )


def _pairwise_sum(parts: Tensor) -> Tensor:
    """Sum over the first axis in a fixed order; `parts` is used up.

    torch.sum may order its terms by the number of threads.
    """
    if not len(parts):
        return parts.sum(0)
    while len(parts) > 1:
        kept = (len(parts) + 1) // 2
        parts[: len(parts) - kept] += parts[kept:]
        parts = parts[:kept]
    return parts[0]


def _run(kernel: Callable[..., None], tensors: list[Tensor], shape: torch.Size) -> None:
    batch, steps, _, units = shape
    addresses = [t.data_ptr() for t in tensors]
    run_ranges(
        functools.partial(kernel, *addresses, steps, units), split(batch, units, shape.numel())
    )


def sequential(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """Run the recurrence in time order, lanes in parallel; arguments as in `recurrence`.

    Inputs that all units share must not require grad.
    """
    return _Sequential.apply(cell, inputs, params, initial, lengths)
