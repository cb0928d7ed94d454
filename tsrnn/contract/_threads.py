"""Limit of one thread for matrix products, which is faster for small matrices."""

from __future__ import annotations

import sys
import threading
from functools import lru_cache

from threadpoolctl import ThreadpoolController


class OneThread:
    """Context manager that limits matrix products to one thread.

    The limit is global. It is set by the first thread that enters and undone by the last that
    leaves, since several threads that set and undo it would leave it behind.
    """

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limits = libraries(len(sys.modules)).limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limits.restore_original_limits()


@lru_cache(maxsize=1)
def libraries(n_modules: int) -> ThreadpoolController:
    """Return the threaded libraries, cached until the number of imported modules changes.

    The search through all open files takes longer than a forecast.
    """
    return ThreadpoolController()


ONE_THREAD = OneThread()
