"""ARMA, VARMA and GARCH models as linear recurrent networks, by maximum likelihood."""

from tsrnn.linear._covariance import CovarianceFamily, normal_derivatives
from tsrnn.linear._matrices import MatrixForecaster
from tsrnn.linear.arma import ARMA
from tsrnn.linear.auto_arima import AutoARIMA
from tsrnn.linear.ces import CES
from tsrnn.linear.dcc import CCC, DCC
from tsrnn.linear.ets import ETS
from tsrnn.linear.garch import GARCH, VOLATILITIES, Volatility
from tsrnn.linear.intermittent import TSB, Croston, demand_classes
from tsrnn.linear.theta import Theta
from tsrnn.linear.varma import VARMA
from tsrnn.linear.vech import VECMGARCH

__all__ = [
    "ARMA",
    "CCC",
    "CES",
    "DCC",
    "ETS",
    "GARCH",
    "TSB",
    "VARMA",
    "VECMGARCH",
    "VOLATILITIES",
    "AutoARIMA",
    "CovarianceFamily",
    "Croston",
    "MatrixForecaster",
    "Theta",
    "Volatility",
    "demand_classes",
    "normal_derivatives",
]
