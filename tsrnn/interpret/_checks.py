"""Shared checks of arguments."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


def is_count(value: Any) -> bool:
    """Return True for a positive integer of Python or numpy."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return whole and int(value) >= 1


def as_floats(value: Any) -> np.ndarray | None:
    """Convert to an array of float64; None if the value is not numeric."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def check_tensor(name: str, value: Any, dtype: torch.dtype, hint: str = "") -> None:
    """Raise unless the value is a tensor, with advice on the conversion to `dtype`."""
    from torch import Tensor

    if not isinstance(value, Tensor):
        given = f"{name}.to_numpy()" if hasattr(value, "to_numpy") else name
        raise TypeError(
            f"{name} must be a torch.Tensor; got {type(value).__name__}. Convert it with "
            f"torch.as_tensor({given}, dtype={dtype}){hint}"
        )
