"""Compiled kernels by device: availability, source, and the engine in time order.

A backend is a module with two functions on tensors, without autograd: ``forward(problem,
keep=True)`` and ``backward(problem, states, g_states, g_final, only_initial=False)``, both in time
order, lanes in parallel. `g_states` may hold only the first fields of the states; the others then
have no gradient. A backend with ``shooting`` and ``scan_backward`` has its own kernels for chunks
of time and accepts None as a zero `g_final`.
"""

import importlib
from types import ModuleType

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._problem import Problem

_CPU = (torch.float32, torch.float64)
# A GPU stores bfloat16 and computes in float32.
DTYPES = {"cpu": _CPU, "cuda": (*_CPU, torch.bfloat16)}
_MODULES = {"cpu": "tsrnn.kernels._cpu.time_order", "cuda": "tsrnn.kernels._gpu"}


def is_compiled(device: torch.device, dtype: torch.dtype) -> bool:
    """True if kernels exist for a device and dtype."""
    return dtype in DTYPES.get(device.type, ())


def check_compiled(dtype: torch.dtype) -> None:
    """Raise unless the CPU has kernels of a dtype."""
    if dtype not in DTYPES["cpu"]:
        raise ValueError(f"dtype must be torch.float32 or torch.float64; got {dtype!r}")


def backend_of(device: torch.device) -> ModuleType:
    """Kernels for a device; check `is_compiled` first."""
    try:
        return importlib.import_module(_MODULES[device.type])
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise ImportError(
            "the kernels of CUDA devices need triton: install tsrnn[gpu] on Linux, or use "
            "engine='reference'"
        ) from error


def source(cell: Cell, dtype: torch.dtype = torch.float32, device: str = "cpu") -> str:
    """Return the source that is compiled for a cell.

    Parameters
    ----------
    cell : Cell
    dtype : torch.dtype
        float32 or float64; bfloat16 too on CUDA devices.
    device : {"cpu", "cuda"}
        LLVM assembly for the CPU, Triton for CUDA devices; no device is needed.

    Returns
    -------
    str
        Code with a header naming the cell, and with its field names.

    Raises
    ------
    ValueError
        If there are no kernels for the device and dtype, or the cell has no compiled form.
    ImportError
        If triton is not installed, for ``device="cuda"``.

    Examples
    --------
    >>> from tsrnn.kernels import cells
    >>> from tsrnn.kernels import source
    >>> "tanh" in source(cells.para_rnn(2))
    True
    """
    if dtype not in DTYPES.get(device, ()):
        known = {name: [str(d) for d in dtypes] for name, dtypes in DTYPES.items()}
        raise ValueError(f"kernels exist for {known}; got {dtype} on {device!r}")
    text: str = backend_of(torch.device(device)).source(cell, dtype)
    return text


def forward(problem: Problem) -> tuple[Tensor, Tensor, None]:
    """States and final state in time order, without iteration."""
    states, final = backend_of(problem.inputs.device).forward(problem)
    return states, final, None


def backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor | None
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Gradients of inputs (None where units share them), parameters and initial state."""
    gradients: tuple[Tensor | None, Tensor, Tensor]
    gradients = backend_of(problem.inputs.device).backward(problem, states, g_states, g_final)
    return gradients
