"""Spread serial kernels that release the GIL over threads.

The pool belongs to the package and is made on first use, again after a fork.
The number of threads is torch's setting, read at every call, or torch's default in a process
without torch.
"""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

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
        # A smaller pool may still serve another thread: let it finish.
        _pool = ThreadPoolExecutor(count, thread_name_prefix="tsrnn")
        _pool_size = count
    return _pool


def run_ranges(kernel: Callable[..., Any], ranges: Sequence[tuple[int, ...]]) -> None:
    """Call ``kernel(*range)`` for every range, the first on this thread.

    No call is still running when this one ends, even by an exception or interrupt,
    since the memory of the kernels may be freed then.
    """
    if len(ranges) == 1:
        kernel(*ranges[0])
        return
    # Created before submitting, so that an interrupt meanwhile loses none.
    futures: list[Future[None]] = [Future() for _ in ranges[1:]]
    try:
        workers = _workers(len(futures))
        for future, arguments in zip(futures, ranges[1:], strict=True):
            workers.submit(_settle, future, kernel, arguments)
        kernel(*ranges[0])
        wait(futures)
    finally:
        _end(futures)
    for future in futures:
        future.result()


def _settle(future: "Future[None]", kernel: Callable[..., Any], arguments: tuple[int, ...]) -> None:
    """Run a call unless cancelled, and set its outcome."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        kernel(*arguments)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(None)


def _end(futures: "Sequence[Future[None]]") -> None:
    """Cancel calls that have not begun; wait for the others despite further interrupts."""
    interrupt = None
    while True:
        try:
            wait([future for future in futures if not future.cancel()])
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


_WORK_PER_THREAD = 8192  # values: below some ten thousand a second thread does not pay
_VECTOR = 16  # units of a range, so that no range ends within a tile


def thread_count() -> int:
    """Number of threads: torch's setting, or its default."""
    setting_of_torch = getattr(sys.modules.get("torch"), "get_num_threads", None)
    if setting_of_torch is not None:
        return int(setting_of_torch())
    # As OpenMP: first level of the variable, else the cores available to this process.
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if setting.isdecimal() and int(setting):
        return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def split(n_sequences: int, n_units: int, work: int) -> list[tuple[int, int, int, int]]:
    """Ranges ``(b0, b1, k0, k1)`` that cover sequences x units, one a thread.

    Sequences are divided if there are enough of them, else units.
    """
    threads = max(1, min(thread_count(), work // _WORK_PER_THREAD))
    by_sequences = n_sequences >= threads
    count, multiple = (n_sequences, 1) if by_sequences else (n_units, _VECTOR)
    share = -(-count // threads)
    step = -(-share // multiple) * multiple
    ranges = [(lo, min(lo + step, count)) for lo in range(0, count, step)]
    if by_sequences:
        return [(lo, hi, 0, n_units) for lo, hi in ranges]
    return [(0, n_sequences, lo, hi) for lo, hi in ranges]
