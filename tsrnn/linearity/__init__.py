"""Tests of linearity: an ARMA or AR against remaining nonlinearity.

`linearity_tests` runs several on one page. `terasvirta_test` and `white_test` regress residuals on
nonlinear terms. `block_test` (score) and `nested_test` (likelihood ratio) add a block of a ParaRNN
to the linear model. `bds_test` tests independence of the residuals.
"""

from tsrnn.linearity._bds import bds_test
from tsrnn.linearity._block import block_test
from tsrnn.linearity._nested import nested_test
from tsrnn.linearity._regression import terasvirta_test, white_test
from tsrnn.linearity._result import LinearityTest, LinearityTests
from tsrnn.linearity._tests import linearity_tests

__all__ = [
    "LinearityTest",
    "LinearityTests",
    "bds_test",
    "block_test",
    "linearity_tests",
    "nested_test",
    "terasvirta_test",
    "white_test",
]
