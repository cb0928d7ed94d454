"""Backtests from rolling origins, measures and tests of accuracy, combinations."""

from tsrnn.evaluation._backtest import backtest
from tsrnn.evaluation._combination import Combination, inverse_error_weights, stacked_weights
from tsrnn.evaluation._compare import compare
from tsrnn.evaluation._comparison import Comparison, format_p_value
from tsrnn.evaluation._diagnostics import Diagnostics, diagnose

__all__ = [
    "Combination",
    "Comparison",
    "Diagnostics",
    "backtest",
    "compare",
    "diagnose",
    "format_p_value",
    "inverse_error_weights",
    "stacked_weights",
]
