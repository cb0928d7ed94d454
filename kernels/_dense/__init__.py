"""Engine for full matrices: a matrix product a step, compiled for the CPU and CUDA."""

import functools
import warnings
from types import ModuleType

import torch
from torch import Tensor

from tsrnn.kernels._backend import backend_of, check_compiled, is_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._dense import cpu
from tsrnn.kernels._matrix_form import block_step
from tsrnn.kernels._problem import Problem, of_all_fields
from tsrnn.kernels._reference import reference, reference_gradients


def forward(problem: Problem) -> tuple[Tensor, Tensor, None]:
    """States and final state of a block of a matrix form, without iteration."""
    kernels = _kernels(problem)
    states, final = kernels.forward(problem) if kernels else reference(problem)
    return states, final, None


def backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state.

    On a GPU `g_states` may hold only the first fields, and `g_final` be None; the rest is zero.
    """
    if kernels := _kernels(problem):
        gradients: tuple[Tensor, Tensor, Tensor]
        gradients = kernels.backward(problem, states, g_states, g_final)
        return gradients
    g_final = torch.zeros_like(problem.initial) if g_final is None else g_final
    return reference_gradients(problem, of_all_fields(g_states, states), g_final)


def prepare(cell: Cell, dtype: torch.dtype) -> None:
    """Compile the loop of a matrix form, one for all sizes, ahead of its use."""
    check_compiled(dtype)
    cpu.kernels_of(block_step(cell).form, dtype)


def _kernels(problem: Problem) -> ModuleType | None:
    """Compiled kernels for these inputs; None if only the loop in torch runs."""
    device = problem.inputs.device
    if not is_compiled(device, problem.inputs.dtype):
        return None
    if device.type == "cpu":
        return cpu
    backend_of(device)  # its error says what to install
    from tsrnn.kernels._gpu import dense

    size = block_step(problem.cell).size
    if size > dense.LARGEST:
        _warn_of_loop(size, dense.LARGEST)
        return None
    return dense


@functools.cache
def _warn_of_loop(size: int, largest: int) -> None:
    """Warn once about a block too large for the CUDA kernels."""
    warnings.warn(
        f"kernels of CUDA devices run blocks of at most {largest} units; got {size}. The loop in "
        f"torch runs instead, which is slow: use smaller blocks side by side, or torch.nn.RNN, GRU "
        "or LSTM for one large one",
        RuntimeWarning,
        stacklevel=2,
    )
