"""Complex exponential smoothing."""

from tsrnn.linear.ces._ces import CES

__all__ = ["CES"]
