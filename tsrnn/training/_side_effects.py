"""Side effects of Lightning on the process that trains, and how they are undone."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.multiprocessing import ProcessRaisedException

from tsrnn.training._machine import Processes

# Warnings that Lightning's own use of torch raises.
LIGHTNING_WARNINGS = (
    r".*treespec.*is deprecated",
    "Grad strides do not match bucket view strides",
    r"It is recommended to use `self.log\('val_loss'",
    "You defined a `validation_step` but have no `val_dataloader`",
)


@contextlib.contextmanager
def contained(processes: Processes) -> Iterator[None]:
    """Undo what training by Lightning does to this process.

    Interrupts and errors of workers leave the block as they would without Lightning.
    """
    with quiet(), _restored_environment(processes), _interrupts(), _worker_errors():
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold back this thread's log lines below warnings, and warnings of Lightning's own use."""
    here = threading.get_ident()

    def keep(record: logging.LogRecord) -> bool:
        return record.thread != here or record.levelno >= logging.WARNING

    names = [
        name
        for name in list(logging.root.manager.loggerDict)  # other threads may add to it
        if name.startswith(("lightning.pytorch", "lightning.fabric"))
    ]
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(keep)
    try:
        with _ignored_warnings:
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(keep)


class _IgnoredWarnings:
    """Ignore the warnings that Lightning's own use of torch raises, while any thread trains.

    Entering `warnings.catch_warnings` in several threads can leave the filters changed;
    this adds filters with the first thread and takes them away with the last.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._filters: list[Any] = []

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                for message in LIGHTNING_WARNINGS:
                    warnings.filterwarnings("ignore", message)
                self._filters = list(warnings.filters[: len(LIGHTNING_WARNINGS)])

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for added in self._filters:
                    if added in warnings.filters:
                        warnings.filters.remove(added)  # type: ignore[attr-defined]


_ignored_warnings = _IgnoredWarnings()


@contextlib.contextmanager
def _restored_environment(processes: Processes) -> Iterator[None]:
    """Restore what Lightning sets to start processes and to share the cores among them."""
    names = [] if processes.start is None else ["OMP_NUM_THREADS"]
    if processes.start in ("spawn", "fork"):  # else all later trainings meet at this port
        names.append("MASTER_PORT")
    threads, before = torch.get_num_threads(), {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        if names:
            torch.set_num_threads(threads)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _interrupts() -> Iterator[None]:
    """Pass an interrupt on: Lightning makes it the end of Python and ignores the next ones."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as end:
        interrupt = end.__context__
        if not isinstance(interrupt, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)
        raise interrupt from None


@contextlib.contextmanager
def _worker_errors() -> Iterator[None]:
    """Raise the error that stopped a worker process as if it were of this process."""
    try:
        yield
    except ProcessRaisedException as error:
        kind, _, message = str(error).rstrip().rpartition("\n")[2].partition(": ")
        if kind != FloatingPointError.__name__:
            raise
        raise FloatingPointError(message) from error
