"""Warnings of a thread, collected instead of shown."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tsrnn.contract._warnings import warn_user

# Filters of warnings belong to the process: threads must take turns in changing them.
_TURN = threading.RLock()


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Collect what this thread warns of in a list, each text once.

    Yields
    ------
    list of str
        Texts on one line, in the order they came.

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

    def keep(message: Warning | str, *where: Any, **other: Any) -> None:
        text = " ".join(str(message).split())
        if threading.get_ident() != me:
            shown(message, *where, **other)
        elif text not in texts:
            texts.append(text)

    with _TURN, warnings.catch_warnings():
        shown = warnings.showwarning
        warnings.showwarning = keep  # type: ignore[assignment]
        warnings.simplefilter("always")
        yield texts


def tell(message: str) -> None:
    """Warn the user, not another thread that collects warnings.

    Parameters
    ----------
    message : str
        Of a UserWarning.

    Examples
    --------
    >>> from tsrnn.contract import recorded, tell
    >>> with recorded() as texts:
    ...     tell("the series is short")
    >>> texts
    ['the series is short']
    """
    with _TURN:
        warn_user(message)
