"""Checks of arguments that several functions share."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["as_floats", "check_tensor", "is_count"]


def is_count(value: Any) -> bool:
    """Whether the value is a positive integer, of Python or numpy."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return whole and int(value) >= 1


def as_floats(value: Any) -> np.ndarray | None:
    """The value as an array of float64; None where it is not numbers."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def check_tensor(name: str, value: Any, dtype: torch.dtype, hint: str = "") -> None:
    """Raise unless the value is a tensor; say how it becomes one of the type needed."""
    from torch import Tensor

    if not isinstance(value, Tensor):
        given = f"{name}.to_numpy()" if hasattr(value, "to_numpy") else name
        raise TypeError(
            f"{name} must be a torch.Tensor; got {type(value).__name__}. Convert it with "
            f"torch.as_tensor({given}, dtype={dtype}){hint}"
        )
