"""Constructor arguments that several models have, checked."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any


def order_of(name: str, value: Any, what: str) -> tuple[int, int]:
    """Two lags (p, q), p at least 1."""
    legal = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    if not legal or not all(_is_count(n) for n in value) or value[0] < 1:
        raise ValueError(f"{name} must be two integers (p, q), p >= 1 {what}; got {value!r}")
    return int(value[0]), int(value[1])


def burn_of(value: Any) -> int:
    """Rows drawn and thrown away before a simulation."""
    if not _is_count(value):
        raise ValueError(f"burn must be an integer of at least 0; got {value!r}")
    return int(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0
