"""Recurrences on tensors: written once as a step, traced, compiled, differentiated.

The Kalman filter runs on arrays; the other names load torch on first use.
"""

# ruff: noqa: F405 (names of `_with_torch`)

from typing import TYPE_CHECKING, Any

from tsrnn.kernels._kalman import kalman_errors, kalman_gains

if TYPE_CHECKING:
    from tsrnn.kernels._with_torch import *  # noqa: F403

__all__ = [
    "BlockStep",
    "Cell",
    "Convergence",
    "Fields",
    "Lanes",
    "MatrixForm",
    "PathProducts",
    "Paths",
    "Running",
    "Sums",
    "Variants",
    "as_lengths",
    "cells",
    "check_engine",
    "decomposed_recurrence",
    "in_arithmetic",
    "is_small",
    "kalman_errors",
    "kalman_gains",
    "linear",
    "over_replicates",
    "path_products",
    "paths",
    "prepare",
    "prepare_projected",
    "projected_recurrence",
    "recurrence",
    "source",
    "sums",
    "variants",
    "without_padding",
]


if not TYPE_CHECKING:  # to a type checker, a name that is not above does not exist

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from tsrnn.kernels import _with_torch

        return getattr(_with_torch, name)


def __dir__() -> list[str]:
    return sorted(__all__)
