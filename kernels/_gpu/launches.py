"""Launches of Triton kernels that bypass Triton's look-up of compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

# Products fuse with sums: explicit, since the default depends on Triton's version.
FUSION = {"enable_fp_fusion": True}
# Compiled kernel, and the constants after its arguments, by specialisation.
compiled: dict[tuple[Any, ...], tuple[Any, list[Any]]] = {}


def run(
    kernel: Any,
    programs: int,
    tensors: Sequence[Tensor | None],
    scalars: tuple[float, ...],
    **options: Any,
) -> None:
    """Launch a kernel on the device of its tensors, on the current stream there.

    Triton's look-up of the compiled kernel takes half of the host's time at a launch. Kernels do
    not specialise on argument values, so types and constants determine the result. Refuses to
    compile while a CUDA graph is captured: loading ends the capture with an unhelpful CUDA error.
    """
    # Triton launches on the current device, not that of the tensors.
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
        if binary is not None:  # None in the interpreter
            names = kernel.arg_names[len(tensors) + len(scalars) :]
            compiled[key] = binary, [options[name] for name in names]
