"""Constructor arguments, checked."""

from __future__ import annotations

from typing import Any

from tsrnn.contract import number

INITIAL_VARIANCES = ("backcast", "sample")


def initial_of(value: Any) -> str | float:
    """Presample variance: by name, or a number."""
    if isinstance(value, str):
        if value not in INITIAL_VARIANCES:
            raise ValueError(
                f"initial_variance must be one of {INITIAL_VARIANCES} or a number; got {value!r}. "
                "It must not move with the parameters here"
            )
        return value
    return number("initial_variance", value, lowest=0.0, open_=True)
