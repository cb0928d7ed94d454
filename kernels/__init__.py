"""Recurrences on tensors: written once as a step, traced, compiled, differentiated.

The Kalman filter runs on arrays; the other names load torch on first use.
"""

# ruff: noqa: F405 (names of `_with_torch`)

from typing import TYPE_CHECKING

from tsrnn._lazy import lazy_names
from tsrnn.kernels._kalman import kalman_errors, kalman_gains

if TYPE_CHECKING:
    from tsrnn.kernels._with_torch import *  # noqa: F403

__all__ = [
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
    "kalman_errors",
    "kalman_gains",
    "linear",
    "over_replicates",
    "path_products",
    "paths",
    "projected_recurrence",
    "recurrence",
    "source",
    "sums",
    "variants",
]

# Loaded for other rooms; no part of the API.
_INNER = [
    "BlockStep",
    "check_engine",
    "decomposed_recurrence",
    "in_arithmetic",
    "is_small",
    "prepare",
    "prepare_projected",
    "without_padding",
]

if not TYPE_CHECKING:  # to a type checker, a name that is not above does not exist
    __getattr__, __dir__ = lazy_names(__name__, __all__, f"{__name__}._with_torch", _INNER)
