"""Inference in dependent data, with networks or any regressor of scikit-learn as nuisances.

`PartiallyLinear` estimates coefficients of a partially linear regression of time series, and
`LocalProjections` impulse responses, both from residuals of cross-fitted regressions on the
history. `ConditionalQuantiles` estimates conformal quantiles of a later value given the history.
"""

from tsrnn.inference._local_projections import LocalProjections
from tsrnn.inference._nuisance import left_out_residuals
from tsrnn.inference._partially_linear import InferenceSummary, PartiallyLinear
from tsrnn.inference._quantiles import ConditionalQuantiles

__all__ = ["ConditionalQuantiles", "InferenceSummary", "LocalProjections", "PartiallyLinear"]


def __dir__() -> list[str]:
    return sorted(__all__)  # without what other rooms alone import
