"""Backtests from rolling origins, measures and tests of accuracy, combinations."""

from tsrnn.evaluation._accuracy import accuracy
from tsrnn.evaluation._backtest import backtest
from tsrnn.evaluation._combination import Combination
from tsrnn.evaluation._compare import compare
from tsrnn.evaluation._comparison import Comparison, format_p_value
from tsrnn.evaluation._diagnostics import Diagnostics, diagnose
from tsrnn.evaluation._weights import akaike_weights, inverse_error_weights, stacked_weights

__all__ = [
    "Combination",
    "Comparison",
    "Diagnostics",
    "accuracy",
    "akaike_weights",
    "backtest",
    "compare",
    "diagnose",
    "inverse_error_weights",
    "stacked_weights",
]


def __dir__() -> list[str]:
    return sorted(__all__)  # without what other rooms alone import
