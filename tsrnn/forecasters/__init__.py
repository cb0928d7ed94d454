"""Forecasters whose model is a recurrent network.

A fit goes from settings to units (scaling, local level and spread), training and the filter, and
gives `FittedNetworks` with the `RecurrentState` of the series, from which forecasts, intervals and
the file follow. The effects of columns known ahead are taken out before, and `FittedWithColumns`
puts them back. A network trained before, at most adapted, is `FittedPrior` with the `PriorState` of
the series. A *unit* is a series where its targets are forecast jointly, and one target of a series
where each is forecast by itself. What is exported beside the forecasters is the shape of a fitted
network, for programs that run one elsewhere.
"""

from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._fitted import FittedNetworks
from tsrnn.forecasters._lem import LEMForecaster
from tsrnn.forecasters._lru import LRUForecaster
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._newton import NewtonForecaster
from tsrnn.forecasters._para_rnn import ParaRNNForecaster
from tsrnn.forecasters._prior import FittedPrior, PriorState
from tsrnn.forecasters._recurrent import RecurrentForecaster
from tsrnn.forecasters._scaling import (
    boxcox,
    fit_scaling,
    inverse_boxcox,
    scale_padded,
    standardise,
    standardised,
)
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._stability import FeatureStability, feature_stability
from tsrnn.forecasters._state import RecurrentState
from tsrnn.forecasters._step import Step
from tsrnn.forecasters._units import (
    Units,
    Windows,
    by_series,
    network_inputs,
    units_of,
)
from tsrnn.forecasters._with_columns import FittedWithColumns, StateWithColumns

__all__ = [
    "HEADS",
    "FeatureStability",
    "FittedNetworks",
    "FittedPrior",
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
    "StateWithColumns",
    "Step",
    "Units",
    "Windows",
    "boxcox",
    "by_series",
    "feature_stability",
    "fit_scaling",
    "inverse_boxcox",
    "network_inputs",
    "scale_padded",
    "standardise",
    "standardised",
    "units_of",
]
