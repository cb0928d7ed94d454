"""Spread serial kernels that release the GIL over threads.

The pool belongs to the package and is made on first use, again after a fork.
How many threads work is torch's setting, read at every call.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _forget_pool() -> None:
    global _pool, _pool_size
    _pool, _pool_size = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)  # threads do not survive a fork


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    if _pool is None or _pool_size < count:
        # A smaller pool may still serve another thread: it is left to finish, not shut down.
        _pool = ThreadPoolExecutor(count, thread_name_prefix="tsrnn")
        _pool_size = count
    return _pool


def run_ranges(kernel: Callable[..., Any], ranges: Sequence[tuple[int, ...]]) -> None:
    """Call ``kernel(*range)`` for every range, the first on this thread."""
    if len(ranges) == 1:
        kernel(*ranges[0])
        return
    futures = [_workers(len(ranges) - 1).submit(kernel, *r) for r in ranges[1:]]
    kernel(*ranges[0])
    for future in futures:
        future.result()


def split(n_sequences: int, n_units: int, work: int) -> list[tuple[int, int, int, int]]:
    """Ranges ``(b0, b1, k0, k1)`` that cover sequences x units, one a thread.

    Sequences are divided where there are enough of them, else units. Below some
    ten thousand values a second thread costs more than it gives.
    """
    threads = max(1, min(torch.get_num_threads(), work // _WORK_PER_THREAD))
    if n_sequences >= threads:
        return [(lo, hi, 0, n_units) for lo, hi in _parts(n_sequences, threads, 1)]
    return [(0, n_sequences, lo, hi) for lo, hi in _parts(n_units, threads, _VECTOR)]


_WORK_PER_THREAD = 8192
_VECTOR = 16


def _parts(count: int, parts: int, multiple: int) -> list[tuple[int, int]]:
    step = -(-count // parts)
    step = -(-step // multiple) * multiple
    return [(lo, min(lo + step, count)) for lo in range(0, count, step)]
