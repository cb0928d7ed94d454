"""VARMA as a linear difference equation, and names of the parameters that one stands for."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._as_rnn import Recursion, padded
from tsrnn.linear._rnn import DifferenceEquation
from tsrnn.linear.varma._shape import Coefficients, Shape


def recursion(shape: Shape, coefficients: Coefficients, presample: np.ndarray) -> Recursion:
    r"""One-step predictions of one unit: M_i = -Theta_i, N_i = Phi_i + Theta_i.

    Before the data there are no innovations, and y is at the presample, (n,), under the
    conditional likelihood, at its mean under the exact one.
    """
    ar, ma = (padded(lags[0], shape.lags) for lags in (coefficients.ar, coefficients.ma))
    intercept = coefficients.design[0].sum(1)
    before = presample
    if shape.exact:
        before = np.linalg.solve(np.eye(shape.n) - ar.sum(0), intercept)
    return Recursion(DifferenceEquation(-ma, ar + ma, intercept), before, before)


def named(equation: DifferenceEquation) -> dict[str, float]:
    """Coefficients of the mean, of targets y1 to yn."""
    recurrent, inputs, intercept = equation
    r, n, _ = inputs.shape
    shape = Shape(n, r, r, "c", 0, exact=True)
    found = Coefficients(
        intercept[None, :, None], (recurrent + inputs)[None], -recurrent[None], np.eye(n)[None]
    )
    names = shape.names([f"y{i + 1}" for i in range(n)], [])
    values = shape.pack(found)[0, : shape.n_mean]
    return dict(zip(names[: shape.n_mean], values.tolist(), strict=True))
