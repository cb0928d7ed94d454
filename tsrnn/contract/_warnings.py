"""Warnings that point at the user's line, shown or collected."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class IntervalWarning(UserWarning):
    """A prediction interval that promises less than its level says, or was widened.

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


# Filters of warnings belong to the process: while a thread collects, they let everything pass, and
# what other threads warn of is shown.
_TURN = threading.RLock()
# By thread, the innermost last: what is collected, and the texts.
_COLLECTED: dict[int, list[tuple[type[Warning], list[str]]]] = {}
_BEFORE: list[Any] = []  # what to go back to when no thread collects


@contextmanager
def recorded(category: type[Warning] = Warning) -> Iterator[list[str]]:
    """Collect what this thread warns of in a list, each text once.

    Parameters
    ----------
    category : type of Warning
        Warnings to collect; others are left to whoever collects around it, or shown.

    Yields
    ------
    list of str
        Texts on one line, in the order they came.

    Notes
    -----
    Several threads may collect at the same time, each its own. Filters of warnings are those of
    the process: as long as a thread collects, what others warn of is shown whatever their filters.

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
    with _TURN:
        if not _COLLECTED:
            _begin()
        _COLLECTED.setdefault(me, []).append((category, texts))
    try:
        yield texts
    finally:
        with _TURN:
            _COLLECTED[me].pop()
            if not _COLLECTED[me]:
                del _COLLECTED[me]
            if not _COLLECTED:
                _BEFORE.pop().__exit__(None, None, None)


def _begin() -> None:
    """Send warnings to the thread that they come from."""
    before = warnings.catch_warnings()
    before.__enter__()
    _BEFORE.append(before)
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
