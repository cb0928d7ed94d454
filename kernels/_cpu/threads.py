"""Spread serial kernels that release the GIL over threads.

The pool belongs to the package and is made on first use, again after a fork.
How many threads work is torch's setting, read at every call; in a process without torch it is the
number that torch would begin with.
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
        # A smaller pool may still serve another thread: it is left to finish, not shut down.
        _pool = ThreadPoolExecutor(count, thread_name_prefix="tsrnn")
        _pool_size = count
    return _pool


def run_ranges(kernel: Callable[..., Any], ranges: Sequence[tuple[int, ...]]) -> None:
    """Call ``kernel(*range)`` for every range, the first on this thread.

    Whatever is raised, an interrupt too, no call goes on after this one has ended:
    the memory that the kernels write to may be freed then.
    """
    if len(ranges) == 1:
        kernel(*ranges[0])
        return
    # Made before they are submitted: an interrupt while submitting loses none.
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
    """Run a call that has not been cancelled and keep how it ended."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        kernel(*arguments)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(None)


def _end(futures: "Sequence[Future[None]]") -> None:
    """Cancel calls that have not begun and wait for the others, through further interrupts."""
    interrupt = None
    while True:
        try:
            wait([future for future in futures if not future.cancel()])
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


_WORK_PER_THREAD = 8192  # values: below some ten thousand a second thread costs more than it gives
_VECTOR = 16  # units of a range, so that no range ends within a tile


def thread_count() -> int:
    """Count the threads that may work: torch's setting, or the one it would begin with."""
    setting_of_torch = getattr(sys.modules.get("torch"), "get_num_threads", None)
    if setting_of_torch is not None:
        return int(setting_of_torch())
    # OpenMP's rule: the variable's first level, else the cores that this process may use.
    setting = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if setting.isdecimal() and int(setting):
        return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def split(n_sequences: int, n_units: int, work: int) -> list[tuple[int, int, int, int]]:
    """Ranges ``(b0, b1, k0, k1)`` that cover sequences x units, one a thread.

    Sequences are divided where there are enough of them, else units.
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
