"""Checks of the arguments of simulators."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


def check_at_least(least: int, **sizes: Any) -> None:
    """Raise unless every size is an integer of at least `least`."""
    for name, value in sizes.items():
        integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not integer or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")


def not_negative(name: str, value: Any) -> float:
    """Return `value` as a float, checked to be finite and not negative."""
    if not is_real(value) or not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and not negative; got {value!r}")
    return float(value)


def check_positive(**values: Any) -> None:
    """Raise unless every value is a positive and finite number."""
    for name, value in values.items():
        if not is_real(value) or not 0 < value < math.inf:
            raise ValueError(f"{name} must be a positive and finite number; got {value!r}")


def is_real(value: Any) -> bool:
    """Return True for a real number other than a boolean."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
