"""Threads of matrix products: small ones are faster with one."""

from __future__ import annotations

import sys
import threading
from functools import lru_cache

from threadpoolctl import ThreadpoolController


class OneThread:
    """Limit of one thread for matrix products while any thread of the process is inside.

    Limits are the process's: set and undone by each of several threads, they would stay behind.
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
    """Threaded libraries of the process, searched for when the number of modules has changed.

    A search through all open files takes longer than a forecast.
    """
    return ThreadpoolController()


ONE_THREAD = OneThread()
