"""Memory of large results, kept for the next ones when nobody holds it any more.

A page that is new to a process costs more than filling it: the system clears it at its first
write. The allocator under torch gives large blocks back to the system, so that every step of a
training loop would pay for its results anew. Here they go round: memory returns when the last
tensor on it dies, whoever held it (a view, a graph of autograd, an array of NumPy), and is used for
the next result of about the size.
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

# Bytes. From here on a result that lived until the next was there cost it new pages, all of them at
# 8 MB; smaller blocks the C library keeps for itself.
SMALLEST = 2**20
# Of memory that waits for use; results that are in use do not count. A training step has some
# multiples of its results in use at a time, and all of them wait between two steps.
MOST_IDLE = 2**29
_ALIGNMENT = 64  # bytes: a line of cache, which no vector of a row may straddle

# Blocks by identity, the longest unused first. They are given and taken by single operations of the
# dictionary, without a lock: a tensor dies in any thread, and in the middle of anything.
idle: dict[int, np.ndarray] = {}


def new_empty(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Tensor of the dtype of another one, with no values yet; its memory is used again."""
    if math.prod(shape) * like.element_size() < SMALLEST:
        return like.new_empty(shape)
    import torch  # a process without tensors has no torch

    # The tensor holds the array until its memory is nobody's.
    return torch.from_numpy(empty_array(shape, str(like.dtype).removeprefix("torch.")))


def empty_array(shape: Sequence[int], dtype: DTypeLike) -> np.ndarray:
    """Array with no values yet; its memory is used again."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < SMALLEST:
        return np.empty(shape, dtype)
    # A block serves all sizes in an eighth of a power of two, as sequences are of unequal lengths;
    # pages behind the end are never written to, and so are not there.
    grain = 2 ** (size.bit_length() - 4)
    block = _take(-(-size // grain) * grain)
    array = np.ndarray(tuple(shape), dtype, buffer=block)
    weakref.finalize(array, _give_back, block).atexit = False
    return array


def _take(size: int) -> np.ndarray:
    """Block of `size` bytes, with whatever is in it."""
    for key in reversed(list(idle)):  # the last used may still be in the cache
        block = idle.get(key)
        if block is not None and block.nbytes == size and idle.pop(key, None) is block:
            return block
    # NumPy asks Linux for pages of 2 MB, new ones of which take a fifth of the time of small ones.
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
