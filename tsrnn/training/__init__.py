"""Training of networks by Lightning: epochs of batches, learning rates, the best weights.

Lightning is slow to load, and only a fit needs it: it is imported when training begins.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tsrnn.training._epoch import Epoch, Share
from tsrnn.training._machine import Processes, checked_device, checked_processes
from tsrnn.training._parameter_groups import LARGEST_RATE, parameter_groups
from tsrnn.training._replicates import (
    TrainedReplicate,
    stack_batches,
    train_replicates,
    train_replicates_for,
)

if TYPE_CHECKING:
    from tsrnn.training._lightning import train, train_for

_LAZY = ("train", "train_for")

__all__ = [
    "LARGEST_RATE",
    "Epoch",
    "Processes",
    "Share",
    "TrainedReplicate",
    "checked_device",
    "checked_processes",
    "parameter_groups",
    "stack_batches",
    "train",
    "train_for",
    "train_replicates",
    "train_replicates_for",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}._lightning"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
