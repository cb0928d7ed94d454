"""Training of networks by Lightning: epochs of batches, learning rates, the best weights.

Lightning is slow to load, and only a fit needs it: it is imported when training begins.
"""

from typing import TYPE_CHECKING

from tsrnn._lazy import lazy_names
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

__all__ = ["Epoch", "Processes", "Share", "TrainedReplicate", "train", "train_replicates"]

# Loaded for other rooms; no part of the API.
_INNER = ["train_for"]

if not TYPE_CHECKING:  # to a type checker, a name that is not above does not exist
    __getattr__, __dir__ = lazy_names(__name__, __all__, f"{__name__}._lightning", _INNER)
