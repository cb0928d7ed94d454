"""Means of multivariate models against statsmodels' VAR and VECM and against loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.api import VAR
from statsmodels.tsa.vector_ar.vecm import VECM

from tsrnn.linear._mean import Mean, johansen, level_form, paths, regression, residuals, responses


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    trend = rng.standard_normal(300).cumsum()
    noise = rng.standard_normal((300, 3))
    return np.column_stack([trend, 0.5 * trend, 0.2 * trend]) + noise + [100.0, 0.0, -3.0]


@pytest.mark.parametrize("order", [1, 3])
def test_var_is_that_of_statsmodels(values, order):
    fit = regression(Mean("var", order), values)
    oracle = VAR(values).fit(order)
    np.testing.assert_allclose(fit.coefficients, oracle.params.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.residuals, oracle.resid, atol=1e-9)
    intercept, lags = level_form(Mean("var", order), fit.coefficients, fit.beta)
    np.testing.assert_allclose(lags, oracle.coefs, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(responses(lags, 6), oracle.ma_rep(5), atol=1e-9)
    forecast = paths(values[-order:], intercept, lags, np.zeros((5, 3)))
    np.testing.assert_allclose(forecast, oracle.forecast(values[-order:], 5), rtol=1e-9)


@pytest.mark.parametrize(("order", "rank"), [(0, 1), (1, 1), (2, 2)])
def test_vecm_is_that_of_statsmodels(values, order, rank):
    mean = Mean("vecm", order, rank)
    fit = regression(mean, values)
    oracle = VECM(values, k_ar_diff=order, coint_rank=rank, deterministic="co").fit()
    np.testing.assert_allclose(fit.beta, oracle.beta, rtol=1e-6, atol=1e-8)
    expected = np.hstack([oracle.const, oracle.alpha, oracle.gamma])
    np.testing.assert_allclose(fit.coefficients, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fit.residuals, oracle.resid, atol=1e-7)
    intercept, lags = level_form(mean, fit.coefficients, fit.beta)
    np.testing.assert_allclose(lags, oracle.var_rep, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(residuals(values, intercept, lags), fit.residuals, atol=1e-9)
    forecast = paths(values[-order - 1 :], intercept, lags, np.zeros((5, 3)))
    np.testing.assert_allclose(forecast, oracle.predict(5), rtol=1e-7)


def test_relations_do_not_depend_on_the_units(values):
    units = np.array([1e-4, 1e3, 7.0])
    beta = johansen(values, 1, 1)
    scaled = johansen(values * units, 1, 1)
    np.testing.assert_allclose(scaled, beta / units[:, None] * units[0], rtol=1e-7)


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["zero", "constant", "var", "vecm"]),
    order=st.integers(1, 3),
    n=st.integers(2, 4),
    seed=st.integers(0, 1000),
)
def test_paths_undo_residuals(kind, order, n, seed):
    """A series is the path of its own residuals."""
    values = np.random.default_rng(seed).standard_normal((60, n)).cumsum(0)
    mean = Mean(kind, order)
    fit = regression(mean, values)
    intercept, lags = level_form(mean, fit.coefficients, fit.beta)
    assert len(mean.names(range(n))) == fit.coefficients.size
    errors = residuals(values, intercept, lags)
    np.testing.assert_allclose(errors, fit.residuals, atol=1e-9)
    again = paths(values[: mean.n_lags], intercept, lags, errors)
    np.testing.assert_allclose(again, values[mean.n_lags :], atol=1e-8)


def test_responses_are_paths_after_one_error():
    lags = np.random.default_rng(1).standard_normal((2, 2, 3, 3)) / 3
    weights = responses(lags, 6)
    for j in range(3):
        errors = np.zeros((2, 6, 3))
        errors[:, 0, j] = 1
        alone = paths(np.zeros((2, 2, 3)), np.zeros((2, 3)), lags, errors)
        np.testing.assert_allclose(weights[..., j], alone, atol=1e-12)


def test_names_are_those_of_varmax():
    assert Mean("var", 1).names(["a", "b"]) == (
        "intercept.a", "L1.a.a", "L1.b.a", "intercept.b", "L1.a.b", "L1.b.b",
    )  # fmt: skip
    assert Mean("vecm", 1).names(["a", "b"])[:4] == (
        "intercept.a", "alpha.ec1.a", "L1.D.a.a", "L1.D.b.a",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ar",), "mean must be one of"),
        (("var", 0), "mean_order of mean='var' must be an integer of at least 1; got 0"),
        (("vecm", -1), "at least 0; got -1"),
        (("vecm", 1, 0), "coint_rank .* at least 1; got 0"),
    ],
)
def test_arguments_that_make_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        Mean(*arguments)


def test_series_that_have_no_regression(values):
    with pytest.raises(ValueError, match="needs at least 11 rows; got 10"):
        regression(Mean("var", 2), values[:10])
    twice = np.column_stack([values, values[:, 0]])
    for kind in ("var", "vecm"):
        with pytest.raises(ValueError, match="linear combination of others"):
            regression(Mean(kind), twice)
        flat = np.column_stack([values, np.ones(300)])
        with pytest.raises(ValueError, match="constant"):
            regression(Mean(kind), flat)
    with pytest.raises(ValueError, match="between 1 and 2 for 3 variables; got 3"):
        regression(Mean("vecm", 1, 3), values)
