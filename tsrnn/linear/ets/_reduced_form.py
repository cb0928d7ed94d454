r"""Exponential smoothing without products as an ARIMA: polynomials, linear layer, admissibility.

With additive trend and season, means are linear in the rows for either kind of errors:

.. math::
    a(B) y_t &= \theta(B) r_t, \qquad a(B) = (1 - \phi B)^{[\text{trend}]} (1 - B^m), \\
    \theta(B) &= a(B) \Big( 1 + \sum_{j \ge 1} c_j B^j \Big), \qquad
    c_j = \alpha + \beta (\phi + \dots + \phi^j) + \gamma 1[m | j]

where m is 1 without a season. Level and season share a unit root, which counts once. Roots of a
determine how forecasts continue. Roots of :math:`\theta`, the eigenvalues of the discount matrix of
Hyndman et al. (2008, chapter 10) that reach the forecasts, determine the memory of the model.
"""

from __future__ import annotations

import numpy as np

from tsrnn.linear._as_rnn import DifferenceEquation, Recursion
from tsrnn.linear.arma._polynomials import inverse_roots
from tsrnn.linear.ets._forecast import expected
from tsrnn.linear.ets._specification import Components

_ON_CIRCLE = 1e-4  # a double root on the circle is accurate to the root of rounding only


def polynomials(model: Components, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (N, r + 1) of a and of theta, 1 the first, for parameters (N, 4 or more)."""
    n, m = len(params), model.period
    has_trend = model.trend != "none"
    a = np.zeros((n, m + 1 + has_trend))
    a[:, 0], a[:, m] = 1.0, -1.0
    if has_trend:
        a[:, 1:] -= params[:, 3:4] * a[:, :-1]
    lags = np.arange(1, a.shape[1])
    alpha, beta, gamma, phi = (column[:, None] for column in params.T[:4])
    weights = np.ones_like(a)
    weights[:, 1:] = alpha + beta * (phi**lags).cumsum(1)
    weights[:, m::m] += gamma * (model.seasonal != "none")
    # A convolution, exact up to order r: the model has r states.
    theta = np.stack(
        [(a[:, : j + 1] * weights[:, j::-1]).sum(1) for j in range(a.shape[1])], axis=1
    )
    return a, theta


def linear_recursion(model: Components, params: np.ndarray) -> Recursion:
    """Linear recursion of the means of one unit, with its states before the first row.

    Parameters (k,) are in the order of the model's `Recursion`.
    """
    a, theta = (part[0, 1:] for part in polynomials(model, params[None]))
    equation = DifferenceEquation(-theta[:, None, None], (theta - a)[:, None, None], np.zeros(1))
    _, states = model.recursion.split(params[None])
    means = expected(model.recursion, params[None, :4], states, len(a))[0]
    # Part i of the layer's state is the part of mean i that earlier rows do not explain.
    start = np.convolve(np.concatenate([[1.0], a]), means)[: len(a)]
    return Recursion(equation, start=start)


def is_admissible(model: Components, params: np.ndarray) -> np.ndarray:
    """Mask (N,) of parameters (N, 4 or more) with no root of theta outside the unit circle."""
    theta = polynomials(model, params)[1][:, 1:]
    return (np.abs(inverse_roots(-theta.T)) < 1 + _ON_CIRCLE).all(0)


def companion(coefficients: np.ndarray) -> np.ndarray:
    """Companion matrices (N, r, r) of polynomials (N, r + 1) that begin with 1."""
    n, r = len(coefficients), coefficients.shape[1] - 1
    matrices = np.tile(np.eye(r, k=1), (n, 1, 1))
    matrices[:, :, 0] -= coefficients[:, 1:]
    return matrices
