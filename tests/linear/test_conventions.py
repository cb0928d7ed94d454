"""Conventions by name: published values of other programs, and recursions written by hand."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsrnn.linear import ARMA, GARCH, VARMA, VECMGARCH

MARKS = Path(__file__).parents[2].parent / "shared/data/finance/dem2gbp.csv.gz"
needs_marks = pytest.mark.skipif(
    not MARKS.exists(), reason="needs the returns of Bollerslev and Ghysels"
)


@pytest.fixture(scope="module")
def marks():
    return pd.Series(np.loadtxt(MARKS, skiprows=1), name="r")


@needs_marks
@pytest.mark.parametrize(
    ("initial", "params", "errors", "loglik"),
    [
        (
            "sample", [-0.00617319, 0.010761, 0.153132, 0.805977],
            [0.00920255, 0.00649317, 0.053532, 0.072462], -1106.60665,
        ),
        (
            "fcp", [-0.00619041, 0.010761, 0.153134, 0.805974],
            [0.00918935, 0.00649319, 0.053532, 0.072461], -1106.60788,
        ),
        (
            "unconditional", [-0.00626932, 0.010983, 0.148700, 0.805809],
            [0.00923712, 0.00657626, 0.054033, 0.073853], -1106.94851,
        ),
    ],
)  # fmt: skip
def test_published_garch_of_tsp(marks, initial, params, errors, loglik):
    """HINIT=OLS, SSR and STEADY of TSP 4.4, to the digits printed."""
    model = GARCH(initial_variance=initial, cov_type="robust").fit(marks)
    np.testing.assert_allclose(model.params_.iloc[0], params, rtol=0, atol=6e-7)
    np.testing.assert_allclose(model.bse_.iloc[0], errors, rtol=0, atol=6e-7)
    assert model.loglik_.iloc[0] == pytest.approx(loglik, abs=6e-6)


@needs_marks
def test_published_egarch_of_tsp(marks):
    """Presample residual e'1/T, variance e'e/T at the current mean; Hessian by differences."""
    model = GARCH(vol="egarch", initial_variance="tsp", cov_type="hessian").fit(marks)
    names = ["mu", "omega", "beta[1]", "alpha[1]", "gamma[1]"]
    published = [-0.01167873487, -0.12633933747, 0.91265373928, 0.33305592776, -0.03845788444]
    errors = np.array([0.0083216274259, 0.02721344887, 0.01617807763, 0.03875690246, 0.01829620652])
    # The search of TSP ended 1e-6 standard errors from the maximum.
    gap = np.abs(model.params_[names].iloc[0] - published) / errors
    assert gap.max() < 2e-6
    np.testing.assert_allclose(model.bse_[names].iloc[0], errors, rtol=4e-4)
    assert model.loglik_.iloc[0] == pytest.approx(-1101.6843841, abs=6e-8)


def egarch_loglik(params, y, initial):
    """EGARCH(2, 2) with a constant, observation by observation."""
    mu, omega, *rest = params
    alpha, gamma, beta = rest[:2], rest[2:4], rest[4:6]
    size, e = math.sqrt(2 / math.pi), y - mu
    level = omega / (1 - sum(beta))
    start = level if initial == "unconditional" else math.log((e**2).mean())
    z = e.mean() / math.sqrt((e**2).mean())
    shocks = (abs(z) - size, z) if initial == "tsp" else (0.0, 0.0)
    past, before, total = [shocks, shocks], [start, start], 0.0
    for value in e:
        g = omega + sum(b * level for b, level in zip(beta, before, strict=True))
        g += sum(a * s[0] + c * s[1] for a, c, s in zip(alpha, gamma, past, strict=True))
        total -= 0.5 * (math.log(2 * math.pi) + g + value**2 / math.exp(g))
        z = value / math.exp(g / 2)
        past, before = [(abs(z) - size, z), past[0]], [g, before[0]]
    return total


@pytest.mark.parametrize("initial", ["fcp", "unconditional", "tsp"])
def test_egarch_starts_as_its_option_says(initial):
    y = np.random.default_rng(0).standard_normal(80) * 1.5 + 0.1
    params = np.array([0.1, 0.05, 0.2, 0.1, -0.1, 0.05, 0.5, 0.3])
    model = GARCH((2, 2), vol="egarch", initial_variance=initial)
    found = model.filter(pd.Series(y), params)
    assert found.loglik_.iloc[0] == pytest.approx(egarch_loglik(params, y, initial), rel=1e-12)
    steps = 1e-6 * np.eye(len(params))
    slope = [
        (egarch_loglik(params + d, y, initial) - egarch_loglik(params - d, y, initial)) / 2e-6
        for d in steps
    ]
    np.testing.assert_allclose(found.estimates_.gradient[0], slope, rtol=1e-6, atol=1e-6)
    volatility = found.conditional_volatility().to_numpy().ravel()
    z = (y - 0.1) / volatility
    total = -0.5 * (np.log(2 * np.pi) + 2 * np.log(volatility) + z**2).sum()
    assert total == pytest.approx(found.loglik_.iloc[0], rel=1e-12)


@pytest.mark.few("True-scalar", "True-bekk")
@pytest.mark.parametrize("structure", ["bekk", "scalar"])
@pytest.mark.parametrize("targeting", [False, True])
def test_the_first_covariance_is_that_of_the_recursion(structure, targeting):
    y = np.random.default_rng(0).standard_normal((300, 2)) @ [[1.0, 0.4], [0.0, 0.8]]
    frame = pd.DataFrame(y, columns=["a", "b"])
    model = VECMGARCH(
        structure=structure, mean="zero", targeting=targeting, n_starts=1, random_state=0
    ).fit(frame)
    first = model.covariances()["covariance"].to_numpy()[:3]
    s = (y.T @ y / 300)[np.triu_indices(2)]
    own = model.coefficients()
    recursion = own["b"] + (own["theta"].sum(0) + own["phi"].sum(0)) @ s
    np.testing.assert_allclose(first, recursion, rtol=1e-9)
    if targeting:  # what other programs begin with, the sample or the stationary covariance
        np.testing.assert_allclose(first, s, rtol=1e-9)
        stationary = np.linalg.solve(np.eye(3) - own["theta"][0] - own["phi"][0], own["b"])
        np.testing.assert_allclose(first, stationary, rtol=1e-6)


@pytest.mark.parametrize("likelihood", ["exact", "conditional"])
def test_a_moving_average_that_is_not_invertible_is_refused(likelihood):
    y = pd.DataFrame(np.random.default_rng(0).standard_normal((99, 2)), columns=["a", "b"])
    one = {"const": 0.0, "ma.L1": 1.2, "sigma2": 1.0}
    with pytest.raises(ValueError, match="roots of the MA not inside the unit circle"):
        ARMA(order=(0, 1), likelihood=likelihood).filter(y["a"], one)
    params = [0, 0, 1.2, 0, 0, 0.3, 1, 0, 1]
    with pytest.raises(ValueError, match="the moving average must be invertible"):
        VARMA(order=(0, 1), likelihood=likelihood).filter(y, params)


def test_tsp_is_for_egarch():
    with pytest.raises(ValueError, match="TSP's default is 'fcp', HINIT=OLS is 'sample'"):
        GARCH(initial_variance="tsp").fit(pd.Series(np.random.default_rng(0).normal(size=99)))
