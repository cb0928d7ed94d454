"""Intermittent demand: the methods of Croston and of Teunter, Syntetos and Babai."""

from tsrnn.linear.intermittent._demand import demand_classes
from tsrnn.linear.intermittent._intermittent import TSB, Croston

__all__ = ["TSB", "Croston", "demand_classes"]
