"""Exponential smoothing as innovations state-space models."""

from tsrnn.linear.ets._ets import ETS

__all__ = ["ETS"]
