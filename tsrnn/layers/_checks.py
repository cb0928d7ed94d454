"""Checks of constructor arguments."""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

LARGEST_SIZE = 2**31 - 1  # torch and the kernels count in 32 bits
LARGEST_BLOCK = 2048  # a cell names each entry of its matrices, four million at this size


def check_sizes(**sizes: int) -> list[int]:
    """Validate positive sizes, and return Python integers, whose products do not overflow."""
    for name, value in sizes.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}")
        if value > LARGEST_SIZE:
            raise ValueError(f"{name} must be at most {LARGEST_SIZE:,}; got {value!r}")
    return [int(value) for value in sizes.values()]


def check_block_size(hidden_size: int, block_size: int) -> list[int]:
    """Validate both sizes before a cell is traced, and return Python integers."""
    sizes = check_sizes(hidden_size=hidden_size, block_size=block_size)
    if block_size > LARGEST_BLOCK:
        raise ValueError(
            f"blocks must have at most {LARGEST_BLOCK:,} units; got {block_size:,}. Take a "
            "block_size that divides hidden_size"
        )
    if hidden_size % block_size:
        raise ValueError(
            f"hidden_size must be a multiple of block_size; got hidden_size={hidden_size}, "
            f"block_size={block_size}"
        )
    return sizes


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise unless the value is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {tuple(choices)}; got {value!r}")


def check_dropout(value: Any) -> None:
    """Raise unless the value is in [0, 1)."""
    if not isinstance(value, Real) or not 0 <= value < 1:  # type: ignore[operator]
        raise ValueError(f"dropout must lie in [0, 1); got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be either True or False; got {value!r}")


def check_tensor_kind(device: Any, dtype: Any) -> None:
    """Raise unless `device` and `dtype` are legal for weights or None."""
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype must be a type of real numbers of torch, or None; got {dtype!r}")
    if device is None or isinstance(device, torch.device):
        return
    try:
        torch.device(device)
    except Exception as error:
        raise ValueError(
            f"device must be one of torch, such as 'cpu' or 'cuda', or None; got {device!r}"
        ) from error
