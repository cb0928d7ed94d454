"""Which compiled kernels run on a device.

A backend is a module with two functions on tensors, without autograd: ``forward(cell, inputs,
params, initial, lengths, keep=True)`` and ``backward(cell, inputs, params, initial, lengths,
states, g_states, g_final, only_initial=False)``, both in time order. One that has ``shooting`` and
``scan_backward`` runs all chunks of time in one launch.
"""

import importlib
from types import ModuleType

import torch

_CPU = (torch.float32, torch.float64)
DTYPES = {"cpu": _CPU, "cuda": (*_CPU, torch.bfloat16)}
_MODULES = {"cpu": "tsrnn.kernels._cpu", "cuda": "tsrnn.kernels._gpu"}


def is_compiled(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether there are kernels for a device and dtype."""
    return dtype in DTYPES.get(device.type, ())


def backend_of(device: torch.device) -> ModuleType:
    """Kernels of a device; `is_compiled` says whether there are any."""
    try:
        return importlib.import_module(_MODULES[device.type])
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise ImportError(
            "the kernels of CUDA devices need triton: install tsrnn[gpu] on Linux, or use "
            "engine='reference'"
        ) from error
