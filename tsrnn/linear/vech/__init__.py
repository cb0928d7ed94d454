"""Multivariate GARCH in vech form."""

from tsrnn.linear.vech._vecm_garch import VECMGARCH

__all__ = ["VECMGARCH"]
