"""Names of `tsrnn.forecasters` that need torch, loaded together on first use."""

# ruff: noqa: F401 (exported by `tsrnn.forecasters`)

from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._fitted import FittedNetworks
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._stability import FeatureStability, feature_stability
from tsrnn.forecasters._state import RecurrentState
from tsrnn.forecasters._step import Step
from tsrnn.forecasters._units import Units, Windows, by_series, network_inputs, units_of
