"""Forecasters whose model is a recurrent network.

A fit resolves settings, builds units (scaling, local level and spread), trains networks and filters
the data. It returns `FittedNetworks` and a `RecurrentState`, which give forecasts, intervals and
the file. `FittedWithColumns` adds the effects of columns known ahead, which are removed before.
`FittedPrior` with a `PriorState` is a pretrained network, adapted or not. `FittedStacked` averages
several models. A *unit* is a series if its targets are forecast jointly, and one target of a series
otherwise. Other exported names describe a fitted network, for programs that run it elsewhere.
Forecasts of short series need no torch: modules that train and run networks load on first use.
"""

# ruff: noqa: F405 (names of `_with_torch`)

from typing import TYPE_CHECKING

from tsrnn._lazy import lazy_names
from tsrnn.forecasters._lem import LEMForecaster
from tsrnn.forecasters._lru import LRUForecaster
from tsrnn.forecasters._newton import NewtonForecaster
from tsrnn.forecasters._para_rnn import ParaRNNForecaster
from tsrnn.forecasters._prior import FittedPrior, PriorState
from tsrnn.forecasters._recurrent import RecurrentForecaster
from tsrnn.forecasters._scaling import (
    boxcox,
    fit_scaling,
    inverse_boxcox,
    scale_padded,
    standardised,
)
from tsrnn.forecasters._stacking import FittedStacked, StackedState
from tsrnn.forecasters._with_columns import FittedWithColumns, StateWithColumns

if TYPE_CHECKING:
    from tsrnn.forecasters._with_torch import *  # noqa: F403

__all__ = [
    "FeatureStability",
    "FittedNetworks",
    "FittedPrior",
    "FittedStacked",
    "FittedWithColumns",
    "ForecastModel",
    "LEMForecaster",
    "LRUForecaster",
    "NewtonForecaster",
    "ParaRNNForecaster",
    "PriorState",
    "RecurrentForecaster",
    "RecurrentState",
    "Settings",
    "StackedState",
    "StateWithColumns",
    "Step",
    "Units",
    "Windows",
    "boxcox",
    "by_series",
    "feature_stability",
    "standardised",
]

# Loaded for other rooms; no part of the API.
_INNER = ["HEADS", "network_inputs", "units_of"]

if not TYPE_CHECKING:  # to a type checker, a name that is not above does not exist
    __getattr__, __dir__ = lazy_names(__name__, __all__, f"{__name__}._with_torch", _INNER)
