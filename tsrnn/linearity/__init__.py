"""Tests of linearity: whether nonlinearity is left in a series after an ARMA or AR.

`linearity_tests` has them on one page. Regressions of residuals on nonlinear terms:
`terasvirta_test` and `white_test`. A block of a ParaRNN beside the linear model: `block_test` by
its score, `nested_test` by the likelihood ratio. Independence of the residuals: `bds_test`.
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
