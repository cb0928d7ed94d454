"""New arrays for results, on large pages of memory where they are large.

Memory fresh from the system costs time when a page of it is first written to: with the usual
4096 bytes as long as a kernel takes to fill it. Linux maps 2 MB at once where it is asked to.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence

from torch import Tensor

_LARGE_PAGE = 2**21
_MADV_HUGEPAGE = 14


def new_empty(like: Tensor, shape: Sequence[int]) -> Tensor:
    """An array of the dtype of another one, with no values yet."""
    array = like.new_empty(shape)
    if _advise is not None and array.nbytes >= 2 * _LARGE_PAGE:
        start = -(-array.data_ptr() // _LARGE_PAGE) * _LARGE_PAGE
        end = (array.data_ptr() + array.nbytes) // _LARGE_PAGE * _LARGE_PAGE
        # Whether it is heeded does not matter: pages are there all the same.
        _advise(start, end - start, _MADV_HUGEPAGE)
    return array


def _system_call() -> Callable[[int, int, int], int] | None:
    """Linux's madvise; None elsewhere."""
    if sys.platform != "linux":
        return None
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


_advise = _system_call()
