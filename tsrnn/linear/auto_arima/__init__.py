"""Seasonal ARIMA models whose orders are chosen."""

from tsrnn.linear.auto_arima._auto_arima import AutoARIMA

__all__ = ["AutoARIMA"]
