"""Interpretation of fitted recurrent networks by their matrices, states and time steps.

Functions that read matrices need no torch; functions that read layers or training are imported on
first use. ``WIDTH`` is the number of characters of a line of a summary.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tsrnn._lazy import lazy_names
from tsrnn.interpret._features import recurrence_features
from tsrnn.interpret._fitted import UninformativeNetworkError, active_networks
from tsrnn.interpret._forecast_features import ForecastPaths, forecast_features, path_steps
from tsrnn.interpret._jordan import jordan_block, lag_curves
from tsrnn.interpret._matching import match_features
from tsrnn.interpret._page import (
    WIDTH,
    feature_section,
    reading_of,
    reading_of_forecasts,
    section,
    two_columns,
    wrapped,
)
from tsrnn.interpret._realisation import Realisation, realise, realise_paths

if TYPE_CHECKING:
    from tsrnn.interpret._feature_history import FeatureHistory
    from tsrnn.interpret._lem import time_scales, time_steps
    from tsrnn.interpret._lem_bounds import gradient_bound, hidden_state_bound
    from tsrnn.interpret._lem_gradients import gradient_growth, partial_gradients
    from tsrnn.interpret._lem_systems import (
        LEMSystem,
        TanhMap,
        lem_of_fast_slow_ode,
        lem_of_multiscale_system,
        lem_of_system,
        lem_of_two_scale_system,
    )
    from tsrnn.interpret._lru import (
        Reconstruction,
        elapsed_steps,
        memory_lengths,
        reconstruct_input,
    )
    from tsrnn.interpret._lru_units import StateUnits, choose_state_units
    from tsrnn.interpret._lyapunov import LyapunovExponents, lyapunov_exponent
    from tsrnn.interpret._shares import block_shares

_MODULES = {
    "FeatureHistory": "_feature_history",
    "LEMSystem": "_lem_systems",
    "LyapunovExponents": "_lyapunov",
    "Reconstruction": "_lru",
    "StateUnits": "_lru_units",
    "TanhMap": "_lem_systems",
    "block_shares": "_shares",
    "choose_state_units": "_lru_units",
    "elapsed_steps": "_lru",
    "gradient_bound": "_lem_bounds",
    "gradient_growth": "_lem_gradients",
    "hidden_state_bound": "_lem_bounds",
    "lem_of_fast_slow_ode": "_lem_systems",
    "lem_of_multiscale_system": "_lem_systems",
    "lem_of_system": "_lem_systems",
    "lem_of_two_scale_system": "_lem_systems",
    "lyapunov_exponent": "_lyapunov",
    "memory_lengths": "_lru",
    "partial_gradients": "_lem_gradients",
    "reconstruct_input": "_lru",
    "time_scales": "_lem",
    "time_steps": "_lem",
}

__all__ = [
    "FeatureHistory",
    "ForecastPaths",
    "LEMSystem",
    "LyapunovExponents",
    "Realisation",
    "Reconstruction",
    "StateUnits",
    "TanhMap",
    "UninformativeNetworkError",
    "choose_state_units",
    "elapsed_steps",
    "forecast_features",
    "gradient_bound",
    "gradient_growth",
    "hidden_state_bound",
    "jordan_block",
    "lag_curves",
    "lem_of_fast_slow_ode",
    "lem_of_multiscale_system",
    "lem_of_system",
    "lem_of_two_scale_system",
    "lyapunov_exponent",
    "memory_lengths",
    "partial_gradients",
    "realise",
    "realise_paths",
    "reconstruct_input",
    "recurrence_features",
    "section",
    "time_scales",
    "time_steps",
]

if not TYPE_CHECKING:  # to a type checker, a name that is not above does not exist
    __getattr__, __dir__ = lazy_names(
        __name__,
        __all__,
        lambda name: getattr(import_module(f"{__name__}.{_MODULES[name]}"), name),
        _MODULES,
    )
