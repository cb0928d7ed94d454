"""Forecasters whose model is a recurrent network."""

from tsrnn.forecasters._lem import LEMForecaster
from tsrnn.forecasters._lru import LRUForecaster
from tsrnn.forecasters._newton import NewtonForecaster
from tsrnn.forecasters._para_rnn import ParaRNNForecaster

__all__ = ["LEMForecaster", "LRUForecaster", "NewtonForecaster", "ParaRNNForecaster"]
