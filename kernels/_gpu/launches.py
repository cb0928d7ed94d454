"""Launches of Triton kernels, past Triton's search for what it has compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

# Products fuse with sums: said, since the default of Triton changes with its versions.
FUSION = {"enable_fp_fusion": True}
# Compiled kernel, and the constants that it takes after its arguments, by what it is compiled for.
compiled: dict[tuple[Any, ...], tuple[Any, list[Any]]] = {}


def run(
    kernel: Any,
    programs: int,
    tensors: Sequence[Tensor | None],
    scalars: tuple[float, ...],
    **options: Any,
) -> None:
    """Launch a kernel on the device of its tensors, on the current stream there.

    Triton looks for what it has compiled at every launch, which takes half of the host's time. No
    value of an argument is compiled for, so that types and constants tell what it would find.

    Raises
    ------
    RuntimeError
        If the kernel would be compiled while a CUDA graph is captured: it is loaded at its first
        launch, which ends a capture with an error of CUDA that does not say what to do.
    """
    # Triton launches on the current device, whatever the tensors' own.
    with torch.cuda.device_of(tensors[0]):
        on_device = torch.cuda.is_initialized()
        key = (
            kernel, torch.cuda.current_device() if on_device else None,
            *[None if t is None else t.dtype for t in tensors],
            *[scalar < 2**31 for scalar in scalars], *options.values(),
        )  # fmt: skip
        if key in compiled:
            binary, constants = compiled[key]
            binary[(programs, 1, 1)](*tensors, *scalars, *constants)
            return
        if on_device and torch.cuda.is_current_stream_capturing():
            raise RuntimeError(
                "a kernel is compiled at its first call, which must not lie inside the capture of "
                "a CUDA graph. Call the recurrence once before the capture, on the same shapes "
                "and dtypes, and the backward pass as well if the graph has one"
            )
        binary = kernel[(programs,)](*tensors, *scalars, **FUSION, **options)
        if binary is not None:  # as it is in the interpreter
            names = kernel.arg_names[len(tensors) + len(scalars) :]
            compiled[key] = binary, [options[name] for name in names]
