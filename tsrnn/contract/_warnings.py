"""Warnings of intervals, and a thread-safe collector of warnings."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class IntervalWarning(UserWarning):
    """Warning of a prediction interval that was widened, or promises less than its level.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.contract import IntervalWarning
    >>> import pandas as pd
    >>> model = Naive().fit(pd.Series([3.0, 5.0], pd.RangeIndex(2)))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", IntervalWarning)
    ...     try:
    ...         model.predict(1, level=80)
    ...     except IntervalWarning as warning:
    ...         print(str(warning)[:56])
    the intervals of the series rest on 1 error: they follow
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


# Warning filters are global: while a thread collects, they pass everything, and warnings of other
# threads are shown.
_LOCK = threading.RLock()
# Thread -> stack of collectors, innermost last: category and texts.
_COLLECTED: dict[int, list[tuple[type[Warning], list[str]]]] = {}
_SAVED: list[Any] = []  # filters to restore when the last thread stops collecting


@contextmanager
def recorded(category: type[Warning] = Warning) -> Iterator[list[str]]:
    """Collect the warnings of this thread in a list, each text once.

    Parameters
    ----------
    category : type of Warning
        Category to collect; other warnings go to an outer collector, or are shown.

    Yields
    ------
    list of str
        Texts in one line each, in order of appearance.

    Notes
    -----
    Several threads may collect at the same time. Warning filters are global: while a thread
    collects, warnings of other threads are shown whatever their filters.

    Examples
    --------
    >>> import warnings
    >>> from tsrnn.contract import recorded
    >>> with recorded() as texts:
    ...     warnings.warn("the series is short")
    >>> texts
    ['the series is short']
    """
    texts: list[str] = []
    me = threading.get_ident()
    with _LOCK:
        if not _COLLECTED:
            _begin()
        _COLLECTED.setdefault(me, []).append((category, texts))
    try:
        yield texts
    finally:
        with _LOCK:
            _COLLECTED[me].pop()
            if not _COLLECTED[me]:
                del _COLLECTED[me]
            if not _COLLECTED:
                _SAVED.pop().__exit__(None, None, None)


def _begin() -> None:
    """Route each warning to the collectors of its thread."""
    saved = warnings.catch_warnings()
    saved.__enter__()
    _SAVED.append(saved)
    shown = warnings.showwarning

    def keep(message: Warning | str, *where: Any, **other: Any) -> None:
        text = " ".join(str(message).split())
        for category, texts in reversed(_COLLECTED.get(threading.get_ident(), [])):
            if isinstance(message, category):
                if text not in texts:
                    texts.append(text)
                return
        shown(message, *where, **other)

    warnings.showwarning = keep  # type: ignore[assignment]
    warnings.simplefilter("always")
