"""Univariate models of conditional variance."""

from tsrnn.linear.garch._garch import GARCH
from tsrnn.linear.garch._volatility import VOLATILITIES, Volatility

__all__ = ["GARCH", "VOLATILITIES", "Volatility"]
