"""Fits of VARMA models: the optimum, bad units, identification, the edge of invertibility."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.tsa.api import VAR
from statsmodels.tsa.statespace.varmax import VARMAX
from threadpoolctl import threadpool_limits

from tsrnn import VARMA
from tsrnn.linear._inference import covariance, standard_errors
from tsrnn.linear.varma._inference import identification
from tsrnn.linear.varma._specification import Coefficients, Shape

pytestmark = pytest.mark.filterwarnings("ignore:Estimation of VARMA")

AR = np.array([[0.6, 0.2], [-0.1, 0.4]])
MA = np.array([[0.4, -0.1], [0.2, 0.3]])
CHOL = np.array([[1.0, 0.0], [0.5, 0.8]])


def simulated(rows, ar=AR, ma=MA, seed=0):
    """A VARMA(1, 1) with a constant, long past its beginning."""
    shocks = np.random.default_rng(seed).standard_normal((rows + 200, 2)) @ CHOL.T
    y = np.zeros_like(shocks)
    for t in range(1, len(y)):
        y[t] = [1.0, -2.0] + ar @ y[t - 1] + shocks[t] + ma @ shocks[t - 1]
    return y[200:]


def frame_of(parts):
    """Long frame of series of equal or unequal lengths."""
    parts = [parts] if isinstance(parts, np.ndarray) else parts
    return pd.concat(
        pd.DataFrame(part, columns=["y1", "y2"]).assign(unique_id=i, ds=range(len(part)))
        for i, part in enumerate(parts)
    )


def varma(p, q, trend="c", *, exact=True, searches=5):
    """Model of two targets that keeps missing values."""
    likelihood = "exact" if exact else "conditional"
    columns = {"target": ["y1", "y2"], "missing": "keep"}
    return VARMA((p, q), trend, likelihood, n_starts=searches, **columns)


def fitted(y, p, q, trend="c", **options):
    """Estimates of one series or of several."""
    return varma(p, q, trend, **options).fit(frame_of(y)).estimates_


def matrix(estimates, pattern, lag=1):
    """Coefficients of the first unit by effect and cause; NaN where there are none."""
    values = dict(zip(estimates.names, estimates.params[0], strict=True))
    names = ("y1", "y2")
    return np.array(
        [[values.get(pattern.format(lag, cause, effect), np.nan) for cause in names]
         for effect in names]
    )  # fmt: skip


AR_NAME, MA_NAME = "L{}.{}.{}", "L{}.e({}).{}"


def factor(estimates):
    """Lower triangular factor of the innovations' covariance of the first unit."""
    values = dict(zip(estimates.names, estimates.params[0], strict=True))
    entries = (values[f"sqrt.{name}"] for name in ("var.y1", "cov.y1.y2", "var.y2"))
    chol = np.zeros((2, 2))
    chol[np.tril_indices(2)] = list(entries)
    return chol


def intercepts(estimates):
    """Constants of the first unit."""
    return estimates.params[0, [estimates.names.index(f"intercept.{y}") for y in ("y1", "y2")]]


@pytest.mark.parametrize(
    ("p", "q", "missing"), [(1, 1, 0.0), (0, 1, 0.0), (2, 0, 0.0), (1, 1, 0.1)]
)
def test_optimum_is_no_lower_than_that_of_varmax(p, q, missing):
    y = simulated(80, AR if p else 0 * AR, MA if q else 0 * MA)
    y[np.random.default_rng(1).random(y.shape) < missing] = np.nan
    estimates = fitted(y, p, q)
    varmax = VARMAX(y, order=(p, q))
    varmax.ssm.tolerance = 0
    with threadpool_limits(1):  # its small matrices are no work for threads
        oracle = varmax.fit(disp=False, maxiter=100)
    np.testing.assert_allclose(estimates.loglik[0], varmax.loglike(estimates.params[0]), rtol=1e-10)
    assert estimates.loglik[0] > oracle.llf - 1e-6
    assert estimates.loglik[0] < oracle.llf + 0.5
    assert estimates.converged[0]
    assert estimates.names == tuple(varmax.param_names)


def test_gradient_vanishes_and_the_hessian_is_that_of_differences():
    estimates = fitted(simulated(120), 1, 1)
    error = np.sqrt(np.diagonal(covariance(estimates, "hessian")[0]))
    assert np.abs(estimates.gradient[0] * error).max() < 1e-6
    assert np.linalg.eigvalsh(estimates.hessian[0]).max() < 0
    for kind in ("opg", "information", "robust", "bollerslev-wooldridge"):
        ratio = np.sqrt(np.diagonal(covariance(estimates, kind)[0])) / error
        assert (ratio > 0.3).all()
        assert (ratio < 3).all()


@pytest.mark.parametrize("p", [1, 2])
def test_conditional_var_is_least_squares(p):
    y = simulated(100)
    estimates = fitted(y, p, 0, exact=False)
    # Before the first row are rows at the mean, where the trend puts them.
    oracle = VAR(np.vstack([np.tile(y.mean(0), (p, 1)), y])).fit(p)
    for lag in range(p):
        found = matrix(estimates, AR_NAME, lag + 1)
        np.testing.assert_allclose(found, oracle.coefs[lag], atol=1e-9)
    np.testing.assert_allclose(intercepts(estimates), oracle.intercept, atol=1e-8)
    chol = factor(estimates)
    np.testing.assert_allclose(chol @ chol.T, oracle.sigma_u_mle, atol=1e-9)
    errors = standard_errors(covariance(estimates, "information"))
    rows = np.sqrt((100 - 2 * p - 1) / 100)  # degrees of freedom in statsmodels' sigma
    expected = rows * oracle.stderr[1:].reshape(p, 2, 2)  # lag, cause, effect
    for lag in range(p):
        found = matrix(replace(estimates, params=errors), AR_NAME, lag + 1)
        np.testing.assert_allclose(found, expected[lag].T, rtol=1e-9)


@pytest.mark.parametrize("exact", [True, False])
def test_estimates_follow_the_units_of_the_data(exact):
    y = simulated(100)
    scale, shift = np.array([1e6, 1e-3]), np.array([5e6, 3.0])
    plain = fitted(y, 1, 1, exact=exact)
    moved = fitted(shift + scale * y, 1, 1, exact=exact)
    ratio = scale[:, None] / scale
    for name in (AR_NAME, MA_NAME):
        np.testing.assert_allclose(matrix(moved, name), matrix(plain, name) * ratio, rtol=1e-6)
    expected = factor(plain) * scale[:, None]
    np.testing.assert_allclose(factor(moved), expected, rtol=1e-6, atol=1e-12)
    level = scale * intercepts(plain) + shift - matrix(moved, AR_NAME) @ shift
    np.testing.assert_allclose(intercepts(moved), level, rtol=1e-6)
    np.testing.assert_allclose(moved.loglik, plain.loglik - 100 * np.log(scale).sum(), rtol=1e-9)
    z = [own.params[0, 2:10] / np.sqrt(np.diagonal(covariance(own, "robust")[0]))[2:10]
         for own in (plain, moved)]  # fmt: skip
    np.testing.assert_allclose(*z, rtol=1e-5)


def test_given_parameters_are_evaluated_in_the_units_of_the_data():
    y = 1000 + 10 * simulated(60)
    model = varma(1, 1, "ct").fit(frame_of(y))
    estimates = model.estimates_

    def evaluated(params):
        return varma(1, 1, "ct").filter(frame_of(y), params).estimates_

    again = evaluated(model.params_)
    for name in ("params", "loglik", "hessian", "opg", "information"):
        ours, first = getattr(again, name), getattr(estimates, name)
        np.testing.assert_allclose(ours, first, rtol=1e-6, atol=1e-9 * abs(first).max())
    elsewhere = estimates.params + 0.05 * np.abs(estimates.params) * np.cos(np.arange(15))
    found = evaluated(elsewhere)
    varmax = VARMAX(y, order=(1, 1), trend="ct")
    varmax.ssm.tolerance = 0
    np.testing.assert_allclose(found.loglik[0], varmax.loglike(elsewhere[0]), rtol=1e-9)
    outside = model.params_ * np.where(model.params_.columns.str.match(r"L1\.y"), 100, 1)
    with pytest.raises(ValueError, match="must be invertible, the autoregression stationary"):
        evaluated(outside)


BAD = {
    "does not vary": lambda y: np.column_stack([y[:, 0], np.full(len(y), 3.0)]),
    "has no value": lambda y: np.column_stack([y[:, 0], np.full(len(y), np.nan)]),
    "at least": lambda y: y[:7],
    "'y1', 'y2' are perfectly collinear": lambda y: np.column_stack([y[:, 0], 2 - 3 * y[:, 0]]),
    "'y2' is a function of the past": lambda y: np.column_stack([y[1:, 0], y[:-1, 0]]),
}


@pytest.mark.parametrize("words", list(BAD))
@pytest.mark.parametrize("order", [(1, 0), (1, 1)])
def test_a_bad_unit_says_why_and_costs_no_other(words, order):
    y = simulated(70)
    with pytest.warns(UserWarning, match="1 of 2 units could not be fitted, series 1"):
        both = fitted([y, BAD[words](simulated(90, seed=1))], *order)
    alone = fitted(y, *order)
    assert both.fitted.tolist() == [True, False]
    assert words in both.messages[1][0]
    np.testing.assert_allclose(both.loglik[0], alone.loglik[0], rtol=1e-10)
    np.testing.assert_allclose(both.params[0], alone.params[0], rtol=1e-5, atol=1e-7)


def test_hankel_singular_value_of_a_scalar_model_in_closed_form():
    shape, phi, theta = Shape(1, 1, 1, "n", 0, exact=True), 0.7, -0.3
    one = np.ones((1, 1, 1))
    made = Coefficients(one[:, :, :0], phi * one[None], theta * one[None], 2.0 * one)
    found = identification(shape, made, np.array([100]))
    geometric = (1 - phi ** (2 * 25)) / (1 - phi**2)  # 25 responses
    np.testing.assert_allclose(found.singular_values, (phi + theta) * np.sqrt(geometric))
    np.testing.assert_allclose([found.ar_root[0], found.ma_root[0]], [phi, -theta])
    assert found.identified[0]


@pytest.mark.parametrize(("p", "q"), [(1, 1), (2, 1), (1, 2)])
def test_rank_of_the_hankel_matrix_decides_as_the_jacobian_of_the_responses(p, q):
    """Coefficients are identified where their impulse responses move in all directions."""
    rng = np.random.default_rng(p + 10 * q)
    shape = Shape(2, p, q, "n", 0, exact=True)
    draw = 0.4 * rng.standard_normal((2, p + q, 2, 2))
    for cancel in (False, True):
        ar, ma = draw[:1, :p].copy(), draw[:1, p:].copy()
        if cancel:  # (I + D L) in front of both
            D = np.array([[0.5, 0.0], [0.0, 0.0]])
            ar[:], ma[:] = 0, 0
            ar[:, 0], ma[:, 0] = -D, D
        made = Coefficients(np.zeros((1, 2, 0)), ar, ma, np.eye(2)[None])
        params = torch.tensor(shape.pack(made)[0])

        def responses(theta, shape=shape, p=p, q=q):
            a, b = theta[shape.at_ar], theta[shape.at_ma]
            psi = [torch.eye(2, dtype=theta.dtype)]
            for k in range(1, 9):
                new = sum(a[:, i] @ psi[k - 1 - i] for i in range(min(p, k)))
                psi.append(new + b[:, k - 1] if k <= q else new)
            return torch.stack(psi)

        jacobian = torch.autograd.functional.jacobian(responses, params)
        slopes = jacobian.reshape(-1, shape.k)[:, : shape.n_mean].numpy()
        full = np.linalg.matrix_rank(slopes, tol=1e-8) == shape.n_mean
        smallest = identification(shape, made, np.array([100])).singular_values[0, -1]
        assert (smallest > 1e-8) == full == (not cancel)


def test_white_noise_has_no_standard_errors_and_a_warning():
    noise = fitted(simulated(150, 0 * AR, 0 * MA), 1, 1)
    shape_mean = 10
    assert noise.fixed[0, :shape_mean].all()
    assert not noise.fixed[0, shape_mean:].any()
    assert "not identified" in " ".join(noise.messages[0])
    clear = fitted(simulated(150), 1, 1)
    assert not clear.fixed.any()
    assert "only if no AR and MA factors cancel" in clear.messages[0][0]


def test_overdifferenced_series_end_on_the_unit_circle():
    noise = np.random.default_rng(3).standard_normal((81, 2)) @ CHOL.T
    estimates = fitted(np.diff(noise, axis=0), 0, 1)
    ma = matrix(estimates, MA_NAME)
    assert np.abs(np.linalg.eigvals(ma)).max() == pytest.approx(1, abs=1e-6)
    assert estimates.converged[0]
    assert (matrix(replace(estimates, params=estimates.fixed), MA_NAME) == 1).all()
    assert "edge of invertibility" in " ".join(estimates.messages[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was not maximised to tolerance")
def test_further_searches_find_higher_maxima():
    parts = [simulated(40, 0.5 * AR, seed=seed) for seed in range(30)]
    one, five = (fitted(parts, 1, 1, searches=count) for count in (1, 5))
    gain = five.loglik - one.loglik
    assert gain.min() > -1e-6
    assert gain.max() > 0.1
    assert (five.agreement[gain > 1e-3] < five.starts[gain > 1e-3]).all()
