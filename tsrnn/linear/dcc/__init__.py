"""Constant and dynamic conditional correlation."""

from tsrnn.linear.dcc._dcc import CCC, DCC

__all__ = ["CCC", "DCC"]
