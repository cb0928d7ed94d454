"""Tests of Teräsvirta and White against least squares by statsmodels."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f

from tsrnn.datasets import threshold_autoregression
from tsrnn.linear import ARMA
from tsrnn.linearity import block_test, terasvirta_test, white_test


@pytest.fixture(scope="module")
def y():
    return 3 + 2 * threshold_autoregression(150, random_state=1, below=0.6, above=0.1)[0]


def lags_of(y, p):
    return np.column_stack([y[p - i : len(y) - i] for i in range(1, p + 1)])


def products(x):
    columns = range(x.shape[1])
    chosen = [itertools.combinations_with_replacement(columns, degree) for degree in (2, 3)]
    return np.column_stack([x[:, list(each)].prod(1) for each in itertools.chain(*chosen)])


def hidden_components(x):
    """Second and third principal component of ten hidden units of seed 7."""
    weights = np.random.default_rng(7).uniform(-2, 2, (x.shape[1] + 1, 10))
    hidden = 1 / (1 + np.exp(-sm.add_constant(x) @ weights))
    return sm.multivariate.PCA(hidden).factors[:, 1:3]


def nested_regressions(y, x, terms):
    small = sm.OLS(y, sm.add_constant(x)).fit()
    return small, sm.OLS(y, sm.add_constant(np.column_stack([x, terms]))).fit()


@pytest.mark.parametrize("p", [1, 2, 3])
def test_terasvirta_is_the_f_test_of_products_of_lags(y, p):
    x = lags_of((y - y.mean()) / y.std(), p)
    small, large = nested_regressions(y[p:], x, products(x))
    F, p_value, m = large.compare_f_test(small)
    table = terasvirta_test(y, lags=p, nonlinear_lags=p, robust=False).table
    np.testing.assert_allclose(table.loc["F", ["statistic", "p_value"]].tolist(), [F, p_value])
    chi2 = len(x) * np.log(small.ssr / large.ssr)  # that of R's terasvirta.test
    assert table.loc["chi2", "statistic"] == pytest.approx(chi2)
    assert table.loc["chi2", "df"] == f"{m:.0f}"


def test_white_is_the_f_test_of_principal_components_of_hidden_units(y):
    x = lags_of((y - y.mean()) / y.std(ddof=1), 2)
    small, large = nested_regressions(y[2:], x, hidden_components(x))
    F, p_value, _ = large.compare_f_test(small)
    table = white_test(y, lags=2, robust=False, random_state=7).table
    np.testing.assert_allclose(table.loc["F", ["statistic", "p_value"]].tolist(), [F, p_value])


@pytest.mark.parametrize("test", [terasvirta_test, white_test])
def test_robust_statistics_are_those_of_wooldridge(y, test):
    result = test(y, lags=2, random_state=7)
    x = lags_of((y - y.mean()) / y.std(ddof=1), 2)
    terms = products(x) if test is terasvirta_test else hidden_components(x)
    X = sm.add_constant(x)
    e = sm.OLS(y[2:], X).fit().resid
    left = np.column_stack([sm.OLS(column, X).fit().resid for column in terms.T])
    ones = np.ones(len(e))
    expected = len(e) - sm.OLS(ones, e[:, None] * left).fit().ssr
    assert result.table.loc["robust chi2", "statistic"] == pytest.approx(expected)
    assert result.statistic == pytest.approx(expected)


@settings(max_examples=15, deadline=None)
@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.booleans(), st.integers(1, 3))
def test_tests_do_not_depend_on_level_unit_and_sign(level, unit, sign, p):
    y = threshold_autoregression(120, random_state=3)[0]
    moved = level + (-unit if sign else unit) * y
    for test in (terasvirta_test, block_test):
        if test is block_test and sign:
            continue  # draws of blocks are not mirrored
        before, after = (test(s, lags=p, n_bootstrap=19, random_state=0) for s in (y, moved))
        np.testing.assert_allclose(after.table["statistic"], before.table["statistic"], rtol=1e-5)
        assert after.p_value == before.p_value


@pytest.mark.parametrize("level", [1e8, -1e11])
def test_a_large_level_leaves_the_statistics_their_digits(y, level):
    for test in (terasvirta_test, white_test, block_test):
        before, after = (test(s, lags=2, n_bootstrap=9, random_state=0) for s in (y, y + level))
        assert after.statistic == pytest.approx(before.statistic, rel=1e-3)


def test_conditional_arma_without_moving_average_is_the_autoregression(y):
    fitted = ARMA(order=(2, 0), likelihood="conditional").fit(pd.Series(y))
    tables = [terasvirta_test(s, lags, robust=False).table for s, lags in ((fitted, None), (y, 2))]
    # The same residuals and scores but for the constant, which is that of the mean.
    np.testing.assert_allclose(tables[0]["statistic"], tables[1]["statistic"], rtol=1e-4)


def test_scores_of_an_arma_take_its_parameters_out():
    # With the scores as regressors the statistic is that of a regression, which leaves residuals
    # that are orthogonal to numerical derivatives of the residuals of the fitted model.
    y = pd.Series(threshold_autoregression(250, random_state=2, below=0.6, above=0.1)[0])
    fitted = ARMA(order=(1, 1)).fit(y)
    params = fitted.params_
    columns = []
    for name in ("const", "ar.L1", "ma.L1"):
        ends = []
        for step in (1e-5, -1e-5):
            changed = params.copy()
            changed[name] += step
            ends.append(ARMA(order=(1, 1)).filter(y, changed).residuals().to_numpy())
        columns.append((ends[1] - ends[0]) / 2e-5)
    e = fitted.residuals().to_numpy()
    w = y.to_numpy() - params["const"].iloc[0]
    x = np.column_stack([w[:-1] ** 2, w[:-1] ** 3])
    scores = np.column_stack(columns)
    small = sm.OLS(e[1:], scores[1:]).fit()
    large = sm.OLS(e[1:], np.column_stack([scores[1:], x])).fit()
    F = (small.ssr - large.ssr) / 2 / (large.ssr / (len(x) - 5))
    result = terasvirta_test(fitted, robust=False)
    # Scores here are of the exact likelihood, there of the conditional one: alike but at the start.
    assert result.statistic == pytest.approx(F, rel=0.02)
    assert result.p_value == pytest.approx(f.sf(F, 2, len(x) - 5), rel=0.1)


@pytest.mark.parametrize("test", [terasvirta_test, white_test])
def test_wild_bootstrap_ignores_arch_and_the_f_test_does_not(test):
    rng, n, rejected = np.random.default_rng(2), 500, np.zeros(2)
    for seed in range(40):
        z, e, h = rng.normal(size=n), np.zeros(n), 1.0
        for t in range(n):
            e[t] = np.sqrt(h) * z[t]
            h = 0.3 + 0.7 * e[t] ** 2
        table = test(e, lags=2, n_bootstrap=99, random_state=seed).table["p_value"]
        rejected += table[["F", "robust"]].to_numpy() <= 0.05
    # Under a size of 5 percent 8 of 40 have a probability of 0.1 percent.
    assert rejected[1] < 8
    if test is terasvirta_test:
        assert rejected[0] > 20


def test_random_state_settles_all_draws(y):
    for test in (terasvirta_test, white_test, block_test):
        a, b = (test(y, n_bootstrap=49, random_state=4) for _ in range(2))
        pd.testing.assert_frame_equal(a.table, b.table)


def test_lags_are_those_of_the_lowest_aic(y):
    fits = [sm.OLS(y[12:], sm.add_constant(lags_of(y, 12)[:, :p])).fit().aic for p in range(1, 13)]
    assert terasvirta_test(y, robust=False).model == f"AR({np.argmin(fits) + 1})"


def test_many_lags_keep_the_products_few():
    y = np.random.default_rng(0).normal(size=300)
    result = terasvirta_test(y, lags=9, robust=False)
    assert (result.nonlinear_lags, result.df[0]) == (3, 16)  # 4 lags have 30 > 291 / 10
