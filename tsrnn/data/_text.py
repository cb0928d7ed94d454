"""Words for error messages: lists cut short, names quoted."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["listed", "quote", "quoted"]


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
