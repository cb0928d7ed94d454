"""Univariate models of conditional variance."""

from tsrnn.linear.garch._garch import GARCH

__all__ = ["GARCH"]
