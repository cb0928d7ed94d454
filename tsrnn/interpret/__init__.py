"""What a fitted recurrent network has learned, read from its matrices, states and time steps.

Reading a matrix needs no torch; what reads layers or watches training is imported when it
is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tsrnn.interpret._features import recurrence_features
from tsrnn.interpret._fitted import UninformativeNetworkError
from tsrnn.interpret._fitted import active_networks as active_networks
from tsrnn.interpret._lag_curves import jordan_block, lag_curves
from tsrnn.interpret._page import WIDTH as WIDTH
from tsrnn.interpret._page import feature_section as feature_section
from tsrnn.interpret._page import reading_of as reading_of
from tsrnn.interpret._page import section as section
from tsrnn.interpret._page import two_columns as two_columns
from tsrnn.interpret._page import wrapped as wrapped

if TYPE_CHECKING:
    from tsrnn.interpret._feature_history import FeatureHistory
    from tsrnn.interpret._lem import time_scales, time_steps
    from tsrnn.interpret._lem_gradient_bound import gradient_bound
    from tsrnn.interpret._lem_state_bound import hidden_state_bound
    from tsrnn.interpret._lru import Reconstruction, memory_lengths, reconstruct_input
    from tsrnn.interpret._shares import block_shares

_HOMES = {
    "FeatureHistory": "_feature_history",
    "Reconstruction": "_lru",
    "block_shares": "_shares",
    "gradient_bound": "_lem_gradient_bound",
    "hidden_state_bound": "_lem_state_bound",
    "memory_lengths": "_lru",
    "reconstruct_input": "_lru",
    "time_scales": "_lem",
    "time_steps": "_lem",
}

__all__ = [
    "FeatureHistory",
    "Reconstruction",
    "UninformativeNetworkError",
    "block_shares",
    "gradient_bound",
    "hidden_state_bound",
    "jordan_block",
    "lag_curves",
    "memory_lengths",
    "reconstruct_input",
    "recurrence_features",
    "time_scales",
    "time_steps",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
