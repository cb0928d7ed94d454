"""Forked processes: threads of OpenMP end before a fork, and restart in parent and child.

GNU's OpenMP, which torch uses on Linux, keeps its threads for the next operation. A forked child
inherits the list of threads but not the threads, and would wait for them forever.
"""

import os
import sys
import threading

_SOFT = 1  # omp_pause_soft, which keeps all settings


class _Threads(threading.local):
    """Threads of OpenMP of the thread that forks, the only one to survive in a child."""

    def __init__(self) -> None:
        self._ended = False
        self._lost = False  # True in a fork made before the threads had ended

    def end(self) -> None:
        """End idle threads."""
        # Imported here, so that ``import tsrnn`` is quick.
        from threadpoolctl import ThreadpoolController

        pools = ThreadpoolController().select(prefix="libgomp").lib_controllers
        # Builds before GCC 9, which scikit-learn has shipped, lack this function.
        pauses = [getattr(pool.dynlib, "omp_pause_resource_all", None) for pool in pools]
        # With lost threads OpenMP would hang here, too.
        self._ended = not self._lost and not any([pause(_SOFT) for pause in pauses if pause])

    def begin_parent(self) -> None:
        """Expect threads again."""
        self._ended = False

    def begin_child(self) -> None:
        """Give torch one thread if the others are lost, as in a fork not made by Python."""
        if not self._ended:
            self._lost = True
            if "torch" in sys.modules:
                sys.modules["torch"].set_num_threads(1)
        self._ended = False


if hasattr(os, "register_at_fork"):
    _threads = _Threads()
    os.register_at_fork(
        before=_threads.end,
        after_in_parent=_threads.begin_parent,
        after_in_child=_threads.begin_child,
    )
