"""Forecasters: the fit and predict contract."""

from tsrnn.forecasters._load import load
from tsrnn.forecasters._para_rnn import ParaRNNForecaster

__all__ = ["ParaRNNForecaster", "load"]
