"""Forecasts of means, variances and correlations from a state."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._matrices import Forecast
from tsrnn.linear._mean import accumulated, paths
from tsrnn.linear.dcc._equations import level_forms
from tsrnn.linear.dcc._specification import Parts, Specification
from tsrnn.linear.dcc._state import State, covariances_of, walk_of
from tsrnn.linear.garch._filter import State as VarianceState
from tsrnn.linear.garch._simulate import expected_variance


def forecast(spec: Specification, parts: Parts, state: State, h: int) -> Forecast:
    r"""Forecast h steps.

    Variances have exact expectations. :math:`E Q_{T+k}` follows its recursion with
    :math:`E[u u'] \approx E[Q]`, exactly so for the corrected model; taking its correlations for
    :math:`E R_{T+k}` is an approximation from the second step on (Engle and Sheppard 2001).
    """
    s, n = len(state.history), spec.n
    intercept, lags = level_forms(spec.step.mean, parts.coefficients, parts.beta)
    mean = paths(state.history, intercept, lags, np.zeros((s, h, n)))
    rows = parts.variance.reshape(s * n, -1)
    own = VarianceState(state.variance.reshape(s * n, -1), np.empty((s * n, 0)))
    variance = expected_variance(spec.step.model(), rows, own, h).reshape(s, n, h).swapaxes(1, 2)
    walk, correlation = walk_of(spec, parts, state), np.empty((s, h, n, n))
    for k in range(h):
        correlation[:, k] = walk.correlation
        walk.expect()
    covariance = covariances_of(variance, correlation)
    return Forecast(mean, covariance, accumulated(lags, covariance))
