"""BDS test against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm
from statsmodels.tsa.stattools import bds

from tsrnn.datasets import bilinear
from tsrnn.linearity import bds_test, linearity_tests


@pytest.mark.parametrize("n", [60, 250])
@pytest.mark.parametrize("distance", [1.0, 1.5])
def test_statistics_are_those_of_statsmodels(n, distance):
    y = np.random.default_rng(n).standard_t(4, size=n)
    X = sm.add_constant(y[:-1])
    e = sm.OLS(y[1:], X).fit().resid
    expected, p_values = bds(e, max_dim=4, distance=distance)
    table = bds_test(y, lags=1, max_dim=4, distance=distance, n_bootstrap=9, random_state=0).table
    np.testing.assert_allclose(table["statistic"].iloc[:3], expected, rtol=1e-8)
    np.testing.assert_allclose(table["p_value_normal"].iloc[:3], p_values, rtol=1e-8)


def test_largest_statistic_and_its_p_value():
    y = np.random.default_rng(0).normal(size=80)
    result = bds_test(y, lags=1, n_bootstrap=99, random_state=0)
    sizes = result.table["statistic"].iloc[:2].abs()
    assert result.statistic == sizes.max()
    assert result.p_value >= result.table["p_value"].iloc[:2].min()
    assert (result.table["p_value"] >= 0.01).all()


def test_permutations_hold_the_size_that_the_normal_limit_exceeds():
    rng, rejected = np.random.default_rng(1), np.zeros(2)
    for seed in range(150):
        table = bds_test(rng.normal(size=60), lags=1, n_bootstrap=99, random_state=seed).table
        rejected += [table.loc["m = 3", k] <= 0.05 for k in ("p_value_normal", "p_value")]
    assert rejected[1] <= 16  # 7.5 expected; 17 and more have a probability of 0.1 percent
    assert rejected[0] > rejected[1]


def test_residuals_of_a_bilinear_process_are_not_independent():
    y = bilinear(200, random_state=0, cross=0.5)[0]
    assert bds_test(y, lags=1, n_bootstrap=99, random_state=0).p_value == 0.01


@pytest.mark.parametrize("distance", [10, 1e-6])
def test_a_distance_that_tells_nothing_is_refused(distance):
    y = np.random.default_rng(0).normal(size=200)
    with pytest.raises(ValueError, match="take another distance"):
        bds_test(y, lags=1, distance=distance)


def test_more_pairs_than_memory_holds_are_refused_or_left_out():
    y = np.random.default_rng(0).normal(size=6000)
    with pytest.raises(ValueError, match="at most 5,000 residuals"):
        bds_test(y, lags=1)
    page = linearity_tests(y, lags=1, tests=("terasvirta", "bds"), n_bootstrap=19, random_state=0)
    assert list(page.table.index) == ["terasvirta"]
    assert any("BDS test is left out" in note for note in page.notes)
