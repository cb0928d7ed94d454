"""Faults of series: named in messages, told apart from the series without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

__all__ = ["listed", "quote", "quoted", "tell_apart"]

Label = TypeVar("Label")


def tell_apart(
    series: Sequence[Label], attempt: Callable[[list[Label]], Any], hopeless: int | None = None
) -> tuple[list[Any], dict[Label, Exception]]:
    """Attempt something on all series together; where it raises, on halves of them, and so on.

    Parameters
    ----------
    series : sequence
        Labels of the series.
    attempt : callable
        Takes a list of labels.
    hopeless : int, optional
        After so many series, or all, have failed alone and nothing has succeeded, the fault is
        taken to lie in what all of them share, such as an argument.

    Returns
    -------
    results : list
        What `attempt` gave, part by part, in the order of the series.
    faults : dict
        By label of the series at fault, what it raised alone.

    Raises
    ------
    Exception
        What all series together raised, if the fault is taken to be common.
    ImportError
        If a package is missing, which is no fault of a series.

    Examples
    --------
    >>> from tsrnn.data import tell_apart
    >>> results, faults = tell_apart([1, 2, 0, 4], lambda part: [8 // i for i in part])
    >>> results, list(faults)
    ([[8, 4], [2]], [0])
    """
    results: list[Any] = []
    faults: dict[Label, Exception] = {}
    raised: list[Exception] = []  # of all together
    parts = [list(series)]
    while parts:
        part = parts.pop()
        try:
            results.append(attempt(part))
        except ImportError:
            raise
        except Exception as error:  # whatever a model of the user's raises
            raised = raised or [error]
            if len(part) > 1:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
                continue
            faults[part[0]] = error
            if hopeless and not results and len(faults) == min(hopeless, len(series)):
                raise raised[0] from None
    return results, faults


def quote(name: object) -> str:
    """Return a name as Python writes it, whatever numpy scalar it came as."""
    return repr(name.item() if isinstance(name, np.generic) else name)


def listed(items: Iterable[object], limit: int = 5, conjunction: str = "and") -> str:
    """Join the first `limit` items by commas and say how many more there are."""
    texts = [str(item) for item in items]
    shown = ", ".join(texts[:limit])
    more = len(texts) - limit
    return f"{shown} {conjunction} {more} more" if more > 0 else shown


def quoted(names: Iterable[object], limit: int = 5) -> str:
    """Join the first `limit` names, each in quotation marks."""
    return listed((quote(name) for name in names), limit)
