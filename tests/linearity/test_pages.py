"""Pages, conclusions and refusals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from tsrnn import load
from tsrnn.contract import Summary
from tsrnn.datasets import threshold_autoregression
from tsrnn.linear import ARMA
from tsrnn.linearity import (
    bds_test,
    block_test,
    linearity_tests,
    nested_test,
    terasvirta_test,
    white_test,
)

TESTS = [terasvirta_test, white_test, block_test, bds_test, nested_test]


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(4).normal(size=120)


@pytest.fixture(scope="module")
def threshold():
    return threshold_autoregression(200, random_state=0)[0]


def test_series_frames_and_arrays_are_the_same(noise):
    dates = pd.date_range("2000-01-01", periods=len(noise), freq="MS")
    kinds = [noise, pd.Series(noise, dates), pd.DataFrame({"y": noise}, dates), list(noise)]
    p_values = [linearity_tests(kind, random_state=0).table["p_value"].tolist() for kind in kinds]
    assert all(values == p_values[0] for values in p_values)


def test_page_has_a_row_a_test_and_holm_is_that_of_statsmodels(threshold):
    from statsmodels.stats.multitest import multipletests

    page = linearity_tests(threshold, random_state=0, n_bootstrap=99)
    assert isinstance(page, Summary)
    assert list(page.table.columns) == ["statistic", "df", "p_value", "p_holm", "note"]
    expected = multipletests(page.table["p_value"], method="holm")[1]
    np.testing.assert_allclose(page.table["p_holm"], expected)
    for name, result in page.results.items():
        assert result.p_value == page.table.loc[name, "p_value"]
        assert name in str(page)
        assert result.test in str(result)
    assert page.conclusion.split(":")[0] in str(page)
    assert max(map(len, str(page).splitlines())) <= 100


@pytest.mark.parametrize("n", [99, 499])
def test_a_threshold_is_seen_and_noise_is_not(threshold, noise, n):
    seen = linearity_tests(threshold, lags=1, random_state=0, n_bootstrap=n)
    assert seen.conclusion.startswith("The mean is not linear in the past")
    assert "no nonlinearity is seen" in linearity_tests(noise, random_state=0).conclusion


def test_arch_alone_is_no_nonlinearity_of_the_mean():
    rng, e, h = np.random.default_rng(3), np.zeros(400), 1.0
    for t in range(400):
        e[t] = np.sqrt(h) * rng.normal()
        h = 0.3 + 0.7 * e[t] ** 2
    page = linearity_tests(e, lags=1, random_state=0)
    assert page.table.loc["bds", "p_holm"] <= 0.05
    assert "ARCH is enough" in page.conclusion


def test_fitted_arma_with_a_season_and_differences(noise):
    y = pd.Series(noise.cumsum())
    fitted = ARMA(order=(0, 1, 1), seasonal_order=(1, 0, 0, 4)).fit(y)
    page = linearity_tests(fitted, random_state=0, n_bootstrap=49)
    assert page.model.startswith("Seasonal ARIMA(0, 1, 1)(1, 0, 0)[4]")
    assert page.table["p_value"].between(0, 1).all()
    for test in (nested_test, partial(block_test, bootstrap="recursive")):
        with pytest.raises(ValueError, match="without season, differences and drift"):
            test(fitted)


def test_orders_fitted_here_are_those_of_a_fitted_arma(noise):
    y = (noise - noise.mean()) / noise.std(ddof=1)
    fitted = ARMA(order=(1, 1)).fit(pd.Series(y))
    tables = [
        terasvirta_test(noise, order=(1, 1), random_state=0).table,
        terasvirta_test(fitted, random_state=0).table,
    ]
    pd.testing.assert_frame_equal(*tables, rtol=1e-5)


def test_nested_among_the_tests(noise):
    page = linearity_tests(noise[:60], 1, tests=["nested", "white"], random_state=0, n_bootstrap=9)
    assert list(page.table.index) == ["nested", "white"]
    assert any("cannot be below" in note for note in page.notes)


BAD_SERIES = [
    ("constant", np.ones(50), "constant"),
    ("short", np.arange(5.0), "at least 30"),
    ("missing", np.r_[np.nan, np.arange(50.0)], "missing or infinite"),
    ("missing in a Series", pd.Series(np.r_[np.arange(30.0), np.nan, np.arange(20.0)]), "missing"),
    ("text", "series", "series of numbers"),
    ("matrix", np.zeros((50, 2)), r"shape \(T,\)"),
    ("two columns", pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2))), "one series"),
    ("line", np.arange(50.0), "fits the series exactly"),
    ("empty", [], "at least 30"),
]


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize(("name", "y", "message"), BAD_SERIES, ids=[case[0] for case in BAD_SERIES])
def test_series_that_cannot_be_tested_are_refused(test, name, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        test(y, lags=1)


BAD_ARGUMENTS = [
    (terasvirta_test, {"lags": 0}, "lags"),
    (terasvirta_test, {"lags": 1, "order": (1, 1)}, "lags or order"),
    (terasvirta_test, {"order": (1, 1, 1)}, r"\(p, q\)"),
    (terasvirta_test, {"order": (0, 0)}, "must have a lag"),
    (terasvirta_test, {"lags": 60}, "fewer lags"),
    (terasvirta_test, {"lags": 8, "nonlinear_lags": 8}, "fewer nonlinear_lags"),
    (terasvirta_test, {"robust": "yes"}, "robust"),
    (white_test, {"components": 10}, "fewer than hidden_units"),
    (white_test, {"weight_range": 0}, "weight_range"),
    (block_test, {"form": "max"}, "form"),
    (block_test, {"bootstrap": "pairs"}, "bootstrap"),
    (block_test, {"n_blocks": 0}, "n_blocks"),
    (bds_test, {"max_dim": 1}, "max_dim"),
    (nested_test, {"null_blocks": -1}, "null_blocks"),
    (nested_test, {"null_blocks": 1, "blocks": 1}, "nested"),
    (nested_test, {"null_blocks": 1, "null_block_size": 2, "block_size": 1}, "nested"),
    (nested_test, {"blocks": 9}, "observations"),
    (nested_test, {"n_starts": 99}, "n_starts"),
    (linearity_tests, {"tests": ["keenan"]}, "tests"),
    (linearity_tests, {"alpha": 2}, "alpha"),
    (linearity_tests, {"random_state": "x"}, "random_state"),
]


@pytest.mark.parametrize(("test", "arguments", "message"), BAD_ARGUMENTS)
def test_arguments_that_are_not_legal_are_refused(noise, test, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        test(noise, **arguments)


@pytest.mark.parametrize(
    ("arguments", "columns", "lags", "message"),
    [({}, ["a", "b"], None, "fitted to 2"),
     ({"target": "a"}, ["a", "b"], None, "without regressors"), ({}, ["a"], 1, "leave them out")],
)  # fmt: skip
def test_other_arma_are_refused(noise, arguments, columns, lags, message):
    frame = pd.DataFrame({"a": noise, "b": noise[::-1]})[columns]
    with pytest.raises(ValueError, match=message):
        terasvirta_test(ARMA(order=(1, 0), **arguments).fit(frame), lags)


@pytest.mark.parametrize(
    ("test", "values", "arguments", "message"),
    [(terasvirta_test, (0.0, 1.0), {}, "few values that differ"),
     (white_test, (-1.0, 1.0), {"weight_range": 1e9, "hidden_units": 3}, "constant")],
)  # fmt: skip
def test_two_values_leave_no_terms(test, values, arguments, message):
    y = np.random.default_rng(0).choice(values, 100)
    with pytest.raises(ValueError, match=message):
        test(y, lags=1, random_state=0, **arguments)


def test_arma_of_a_series_with_gaps_or_without_its_data_is_refused(noise, tmp_path):
    gaps = pd.Series(noise.copy())
    gaps[40] = np.nan
    with pytest.raises(ValueError, match="missing values"):
        terasvirta_test(ARMA(order=(1, 0), missing="keep").fit(gaps))
    fitted = ARMA(order=(1, 0)).fit(pd.Series(noise))
    fitted.save(tmp_path / "arma")
    (file,) = tmp_path.iterdir()
    with pytest.raises(ValueError, match="does not hold the data"):
        linearity_tests(load(file))
