"""Vector autoregressive moving average models."""

from tsrnn.linear.varma._varma import VARMA

__all__ = ["VARMA"]
