"""Autoregressive moving average models."""

from tsrnn.linear.arma._arma import ARMA

__all__ = ["ARMA"]
