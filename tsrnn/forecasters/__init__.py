"""Forecasters whose model is a recurrent network.

A fit goes from settings to units (scaling, local level and spread), training, the filter and its
memory, forecasts, intervals, and the file. A *unit* is a series where its targets are forecast
jointly, and one target of a series where each is forecast by itself. What is exported beside the
forecasters is the shape of a fitted network, for programs that run one elsewhere.
"""

from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._lem import LEMForecaster
from tsrnn.forecasters._lru import LRUForecaster
from tsrnn.forecasters._memory import (
    Memory,
    continued_units,
    fitted_units,
    memory_after,
    run_filter,
)
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._newton import NewtonForecaster
from tsrnn.forecasters._para_rnn import ParaRNNForecaster
from tsrnn.forecasters._recurrent import RecurrentForecaster
from tsrnn.forecasters._scaling import (
    SMALLEST_SCALE,
    boxcox,
    fit_scaling,
    inverse_boxcox,
    standardise,
)
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import SPREAD_FLOOR, Units, units_of

__all__ = [
    "HEADS",
    "SMALLEST_SCALE",
    "SPREAD_FLOOR",
    "ForecastModel",
    "LEMForecaster",
    "LRUForecaster",
    "Memory",
    "NewtonForecaster",
    "ParaRNNForecaster",
    "RecurrentForecaster",
    "Settings",
    "Units",
    "boxcox",
    "continued_units",
    "fit_scaling",
    "fitted_units",
    "inverse_boxcox",
    "memory_after",
    "run_filter",
    "standardise",
    "units_of",
]
