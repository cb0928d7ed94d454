"""First calls of kernels inside the capture of a CUDA graph, refused in words."""

from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from triton.runtime import JITFunction


def refuse_first_calls(*modules: ModuleType) -> None:
    """Let kernels raise where they would be compiled while the current stream is captured.

    A compiled kernel is loaded at its first launch, which ends a capture with an error of CUDA that
    does not say what to do. The check stands where Triton compiles, so that other launches pay
    nothing for it.
    """
    for module in modules:
        for kernel in vars(module).values():
            # The interpreter compiles nothing: its kernels are of another class.
            if isinstance(kernel, JITFunction) and kernel.__module__ == module.__name__:
                kernel._do_compile = _checked(kernel._do_compile, kernel.__name__)


def _checked(compile_kernel: Any, name: str) -> Any:
    """Wrap the function by which Triton compiles one kernel."""

    def checked(key: Any, signature: Any, device: Any, constexprs: Any, *rest: Any) -> Any:
        # Kernels are also compiled where there is no device, for their code to be read.
        if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            raise RuntimeError(
                f"kernel {name!r} of {_cell_of(constexprs)} is compiled at its first call, which "
                "must not lie inside the capture of a CUDA graph. Call it once before the "
                "capture, on the same shapes and dtypes, and the backward pass as well if the "
                "graph has one"
            )
        return compile_kernel(key, signature, device, constexprs, *rest)

    return checked


def _cell_of(constants: dict[Any, Any]) -> str:
    """Words for the cell whose functions are among the constants of a kernel."""
    files = [Path(c.fn.__code__.co_filename) for c in constants.values() if hasattr(c, "fn")]
    if not files:
        return "a recurrence"
    name, _, _ = files[0].stem.rpartition("_")  # of the digest of the source
    return f"cell {name.removesuffix('.dense').removesuffix('.tangent')!r}"
