"""Guard against polars in forked processes, which lack the threads of their parent."""

import os
from pathlib import Path

_running = False  # threads of polars exist just before a fork
_lost = False  # threads of polars existed in the parent of this process

TASKS = Path("/proc/self/task")  # Linux alone forks by default


def check_threads() -> None:
    """Raise RuntimeError in a process where polars would wait for ever."""
    if _lost:
        raise RuntimeError(
            "polars, which holds the data or reads and writes the files, must not be used in a "
            "process that was forked after polars had started its threads: it would wait for them "
            "without end. Start processes by 'spawn' or 'forkserver' (multiprocessing.get_context) "
            "or joblib's 'loky'"
        )


def _look() -> None:
    """Look, before a fork, for threads named polars-0, polars-1 and so on."""
    global _running
    _running = False
    if TASKS.is_dir():
        for task in TASKS.iterdir():
            try:
                name = (task / "comm").read_text("utf-8", errors="replace")
            except OSError:  # the thread has ended meanwhile
                continue
            _running |= name.removeprefix("polars-").strip().isdigit()


def _remember() -> None:
    global _lost
    _lost |= _running


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_look, after_in_child=_remember)
