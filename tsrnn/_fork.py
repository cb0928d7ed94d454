"""Forked processes: threads of OpenMP end before a fork, and start again on both sides of it.

GNU's OpenMP, on which torch runs on Linux, keeps its threads for the next operation. A forked
child has the list of them but not the threads, and would wait for them without end.
"""

import os
import sys
import threading

_SOFT = 1  # the kind of pause of OpenMP that keeps all settings


class _Threads(threading.local):
    """Threads of OpenMP that serve the thread that forks, which alone goes on in a child."""

    def __init__(self) -> None:
        self._ended = False
        self._lost = False  # this process is itself a fork made before its threads had ended

    def end(self) -> None:
        """End idle threads."""
        # Imported here, so that ``import tsrnn`` is quick.
        from threadpoolctl import ThreadpoolController

        pools = ThreadpoolController().select(prefix="libgomp").lib_controllers
        # Builds before GCC 9, which scikit-learn has shipped but torch has not, cannot end theirs.
        pauses = [getattr(pool.dynlib, "omp_pause_resource_all", None) for pool in pools]
        # OpenMP would wait here, too, for threads that are lost.
        self._ended = not self._lost and not any([pause(_SOFT) for pause in pauses if pause])

    def begin_parent(self) -> None:
        """Expect threads again."""
        self._ended = False

    def begin_child(self) -> None:
        """Give torch one thread where others are lost, as in a fork that Python did not make."""
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
