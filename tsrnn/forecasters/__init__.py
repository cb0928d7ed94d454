"""Forecasters: the fit and predict contract."""

from tsrnn.forecasters._para_rnn import ParaRNNForecaster
from tsrnn.forecasters._storage import load

__all__ = ["ParaRNNForecaster", "load"]
