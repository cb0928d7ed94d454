"""ARMA, VARMA and GARCH models as linear recurrent networks, by maximum likelihood."""

from tsrnn.linear._covariance import CovarianceFamily, normal_derivatives
from tsrnn.linear._matrices import MatrixForecaster
from tsrnn.linear.arma import ARMA
from tsrnn.linear.dcc import CCC, DCC
from tsrnn.linear.garch import GARCH, VOLATILITIES, Volatility
from tsrnn.linear.varma import VARMA
from tsrnn.linear.vech import VECMGARCH

__all__ = [
    "ARMA",
    "CCC",
    "DCC",
    "GARCH",
    "VARMA",
    "VECMGARCH",
    "VOLATILITIES",
    "CovarianceFamily",
    "MatrixForecaster",
    "Volatility",
    "normal_derivatives",
]
