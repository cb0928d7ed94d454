"""Containment of Lightning's side effects on the training process."""

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

# Warnings raised by Lightning's own use of torch.
LIGHTNING_WARNINGS = (
    r".*treespec.*is deprecated",
    "Grad strides do not match bucket view strides",
    r"It is recommended to use `self.log\('val_loss'",
    "You defined a `validation_step` but have no `val_dataloader`",
)


@contextlib.contextmanager
def contained(processes: Processes) -> Iterator[None]:
    """Undo Lightning's changes of this process; interrupts and worker errors pass unchanged."""
    with quiet(), _restored_environment(processes), _interrupts(), _worker_errors():
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence Lightning's log lines below warnings in this thread, and `LIGHTNING_WARNINGS`."""
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
    """Ignore `LIGHTNING_WARNINGS` while any thread trains.

    `warnings.catch_warnings` in several threads can leave the filters changed. Here the first
    thread adds filters and the last one removes them.
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
    """Restore the environment variables and thread number that Lightning sets for processes."""
    names = [] if processes.start is None else ["OMP_NUM_THREADS"]
    if processes.start in ("spawn", "fork"):  # else all later trainings would use this port
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
    """Raise interrupts again: Lightning turns them into SystemExit and ignores further ones."""
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
    """Raise the FloatingPointError of a worker process in this process."""
    try:
        yield
    except ProcessRaisedException as error:
        kind, _, message = str(error).rstrip().rpartition("\n")[2].partition(": ")
        if kind != FloatingPointError.__name__:
            raise
        raise FloatingPointError(message) from error
