"""Functions sigma of a layer, by name."""

from collections.abc import Callable
from typing import Any

import torch


def identity(x: Any) -> Any:
    """Return x."""
    return x


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "identity": identity,
}


def check_activation(nonlinearity: str) -> None:
    """Raise unless the name is known."""
    if nonlinearity not in ACTIVATIONS:
        raise ValueError(f"nonlinearity must be one of {list(ACTIVATIONS)}; got {nonlinearity!r}")
