"""Search of constructor arguments: spaces and objectives for Optuna, splits of long panels."""

from tsrnn.tuning._distributions import Choice, Integer, Order, Real
from tsrnn.tuning._objective import objective
from tsrnn.tuning._spaces import default_space
from tsrnn.tuning._splits import PanelTimeSeriesSplit
from tsrnn.tuning._suggest import suggest

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
