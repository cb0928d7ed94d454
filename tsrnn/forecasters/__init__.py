"""Forecasters whose model is a recurrent network."""

from tsrnn.forecasters._para_rnn import ParaRNNForecaster

__all__ = ["ParaRNNForecaster"]
