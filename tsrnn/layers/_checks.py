"""Checks of constructor arguments."""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any


def check_sizes(**sizes: int) -> None:
    """Raise unless every size is a positive integer."""
    for name, value in sizes.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {tuple(choices)}; got {value!r}")


def check_dropout(value: Any) -> None:
    """Raise unless it is a share of at least 0 and below 1."""
    if not isinstance(value, Real) or not 0 <= value < 1:  # type: ignore[operator]
        raise ValueError(f"dropout must lie in [0, 1); got {value!r}")


def check_bias(value: Any) -> None:
    """Raise unless it is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"bias must be either True or False; got {value!r}")
