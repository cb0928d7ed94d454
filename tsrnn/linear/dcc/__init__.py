"""Constant and dynamic conditional correlation."""

from tsrnn.linear.dcc._ccc import CCC
from tsrnn.linear.dcc._dcc import DCC

__all__ = ["CCC", "DCC"]
