"""The theta method as an innovations state-space model."""

from tsrnn.linear.theta._theta import Theta

__all__ = ["Theta"]
