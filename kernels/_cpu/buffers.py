"""Memory of large results, reused once no tensor holds it.

Getting a new page costs more than filling it, since the system clears it at its first write. The
allocator of torch returns large blocks to the system, so that every step of a training loop would
pay for new pages. Here a block comes back when the last tensor on it dies (or view, autograd graph,
NumPy array) and serves the next result of similar size.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from torch import Tensor

# Bytes above which the allocator returned blocks to the system, always at 8 MB; the C library keeps
# smaller ones itself.
SMALLEST = 2**20
# Limit of idle memory. A training step uses several results at a time, and all of them are idle
# between two steps.
MOST_IDLE = 2**29
_ALIGNMENT = 64  # bytes: a line of cache, which no vector of a row may straddle

# Blocks by identity, longest unused first, added and removed by single dictionary operations
# without a lock, because a tensor may die in any thread at any time.
idle: dict[int, np.ndarray] = {}


def new_empty(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Uninitialised tensor of the dtype of another one, in reused memory."""
    if math.prod(shape) * like.element_size() < SMALLEST:
        return like.new_empty(shape)
    import torch  # not loaded in a process without tensors

    # The tensor keeps the array alive.
    return torch.from_numpy(empty_array(shape, str(like.dtype).removeprefix("torch.")))


def empty_array(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
    """Uninitialised array in reused memory."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < SMALLEST:
        return np.empty(shape, dtype)
    # A block serves all sizes in an eighth of a power of two, as lengths of sequences vary; pages
    # behind the end are never written to, so they take no memory.
    grain = 2 ** (size.bit_length() - 4)
    block = _take(-(-size // grain) * grain)
    array = np.ndarray(tuple(shape), dtype, buffer=block)
    weakref.finalize(array, _give_back, block).atexit = False
    return array


def _take(size: int) -> np.ndarray:
    """Uninitialised block of `size` bytes."""
    for key in reversed(list(idle)):  # the most recent may still be in the cache
        block = idle.get(key)
        if block is not None and block.nbytes == size and idle.pop(key, None) is block:
            return block
    # NumPy requests pages of 2 MB, which take a fifth of the time of small ones.
    room = np.empty(size + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + size]


def _give_back(block: np.ndarray) -> None:
    idle[id(block)] = block
    excess = sum(block.nbytes for block in list(idle.values())) - MOST_IDLE
    for key in list(idle):
        if excess <= 0:
            break
        if (oldest := idle.pop(key, None)) is not None:
            excess -= oldest.nbytes
