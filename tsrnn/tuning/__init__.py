"""Hyperparameter search: spaces and objectives for Optuna, splits of long panels."""

from tsrnn.tuning._objective import objective
from tsrnn.tuning._space import Choice, Integer, Order, Real, default_space, suggest
from tsrnn.tuning._splits import PanelTimeSeriesSplit

__all__ = [
    "Choice",
    "Integer",
    "Order",
    "PanelTimeSeriesSplit",
    "Real",
    "default_space",
    "objective",
    "suggest",
]
