"""Unit-root tests and the differences they ask for against statsmodels, series by series."""

import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.stattools import adfuller
from statsmodels.tsa.stattools import kpss as kpss_of_statsmodels

from tsrnn.preprocessing import adf, count_differences, kpss, ndiffs, nsdiffs, seasonal_strength


def series(n=120, seed=0):
    """Noise, a walk and a walk of walks, by column."""
    noise = np.random.default_rng(seed).normal(size=(n, 3))
    noise[:, 1] = noise[:, 1].cumsum()
    noise[:, 2] = noise[:, 2].cumsum().cumsum()
    return pd.DataFrame(noise, columns=["noise", "walk", "smooth"])


def oracle(y, regression, lags):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of p-values beyond the table
        return kpss_of_statsmodels(y, regression, nlags=lags)


def differences(y, max_d=2):
    """Differences by the loop that Hyndman and Khandakar describe."""
    d = 0
    while d < max_d and np.ptp(y) > 0:
        if oracle(y, "c", int(3 * np.sqrt(len(y)) / 13))[1] >= 0.05:
            break
        d, y = d + 1, np.diff(y)
    return d


@pytest.mark.parametrize("regression", ["c", "ct"])
@pytest.mark.parametrize("lags", [None, 0, 4])
def test_kpss_is_that_of_statsmodels(regression, lags):
    frame = series()
    table = kpss(frame, regression, lags)
    used = 2 if lags is None else lags
    for name in frame:
        statistic, p_value, _, _ = oracle(frame[name], regression, used)
        np.testing.assert_allclose(table.loc[name, "statistic"], statistic, rtol=1e-10)
        np.testing.assert_allclose(table.loc[name, "p_value"], p_value, rtol=1e-9)
        assert table.loc[name, "lags"] == used
    assert table.conclusion["walk"] == "unit root"


@pytest.mark.parametrize("lags", [None, 3])
def test_adf_is_that_of_statsmodels(lags):
    frame = series()
    table = adf(frame, "ct", lags)
    for name in frame:
        autolag = None if lags else "AIC"
        expected = adfuller(frame[name], lags, "ct", autolag, result_object=True)
        np.testing.assert_allclose(table.loc[name, "statistic"], expected.statistic, rtol=1e-10)
        np.testing.assert_allclose(table.loc[name, "p_value"], expected.pvalue, rtol=1e-8)
        assert table.loc[name, "lags"] == expected.lags
    assert table.conclusion["noise"] == "stationary"
    assert table.conclusion["walk"] == "unit root"


def test_missing_values_are_left_out():
    frame = series()
    with_gaps = frame.mask(np.random.default_rng(1).uniform(size=frame.shape) < 0.1)
    table = kpss(with_gaps, lags=2)
    for name in frame:
        expected = oracle(with_gaps[name].dropna(), "c", 2)[0]
        np.testing.assert_allclose(table.loc[name, "statistic"], expected, rtol=1e-10)


def test_differences_of_many_series_are_those_of_a_loop():
    rng = np.random.default_rng(3)
    values = np.full((60, 80), np.nan)
    for i, row in enumerate(values):
        n = rng.integers(12, 81)
        row[:n] = np.diff(rng.normal(size=n + 1)) * 0.3 + rng.normal(size=n).cumsum() * (i % 3)
    counted = count_differences(values)
    expected = [differences(row[np.isfinite(row)]) for row in values]
    assert counted.tolist() == expected
    assert len(set(expected)) > 1


def test_differences_of_a_panel_of_unequal_lengths():
    long = series().melt(var_name="unique_id", value_name="y")
    long["ds"] = np.tile(np.arange(120), 3)
    long = long.drop(long.index[100:120])
    assert ndiffs(long).to_dict() == {"noise": 0, "smooth": 2, "walk": 1}
    assert ndiffs(long, test="adf").to_dict()["walk"] == 1
    assert ndiffs(long, max_d=1)["smooth"] == 1


def test_constant_and_short_series_are_not_tested():
    frame = pd.DataFrame({"constant": np.full(30, 7.3), "short": [1.0, 2, 4] + [np.nan] * 27})
    for test in (kpss, adf):
        table = test(frame)
        assert table.conclusion.tolist() == ["constant or too short"] * 2
        assert table.p_value.isna().all()
    assert ndiffs(frame).tolist() == [0, 0]
    assert ndiffs(frame, test="adf").tolist() == [0, 0]


# White noise, a walk, a season of four rows and a line with noise, 120 rows each.
NOISE = np.random.default_rng(0).normal(size=(2, 120))
SHAPES = {
    "noise": NOISE[0],
    "walk": NOISE[1].cumsum(),
    "season": NOISE[0] + np.tile([3.0, 0.0, -1.0, -2.0], 30),
    "line": NOISE[0] + 0.3 * np.arange(120),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("factor", "level"), [(1, 1e8), (1, -1e11), (1e-9, 0), (1e9, -20), (1e100, 0)]
)
def test_nothing_depends_on_level_and_unit(shape, factor, level):
    y = SHAPES[shape]
    moved = pd.Series(factor * y + level)
    digits = {"rtol": 1e-8 + 1e-15 * abs(level) / factor}
    for regression in ("c", "ct", "ctt"):
        expected = adfuller(y, regression=regression, result_object=True)
        row = adf(moved, regression).iloc[0]
        np.testing.assert_allclose(row["statistic"], expected.statistic, **digits)
        assert row["lags"] == expected.lags
    for regression in ("c", "ct"):
        expected = oracle(y, regression, 2)[0]
        np.testing.assert_allclose(kpss(moved, regression).iloc[0]["statistic"], expected, **digits)
    for test in ("kpss", "adf"):
        assert ndiffs(moved, test).item() == ndiffs(pd.Series(y), test).item()
    strength = seasonal_strength(pd.Series(y), 4).item()
    np.testing.assert_allclose(seasonal_strength(moved, 4).item(), strength, **digits)
    assert nsdiffs(moved, 4).item() == (shape == "season")


TIME = np.arange(100.0)
EXACT = {
    "line": TIME,
    "line far away": 1e6 + 0.1 * TIME,
    "parabola": TIME**2,
    "sine": np.sin(TIME / 3),
    "growth": 1.1**TIME,
    "alternating": (-1.0) ** TIME,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", EXACT)
def test_a_series_without_noise_is_told_in_words(shape):
    y = pd.Series(EXACT[shape])
    for regression in ("n", "c", "ct", "ctt"):
        for lags in (None, 2):
            row = adf(y, regression, lags).iloc[0]
            assert (row["conclusion"], np.isnan(row["p_value"])) == ("without noise", True)
    assert ndiffs(y, "adf").item() == ndiffs(y).item()


@pytest.mark.filterwarnings("error")
def test_a_line_is_itself_what_it_is_tested_around_and_has_one_difference():
    for line in (EXACT["line"], EXACT["line far away"]):
        assert kpss(pd.Series(line), "ct").conclusion.tolist() == ["without noise"]
        assert kpss(pd.Series(line)).conclusion.tolist() == ["unit root"]
        assert ndiffs(pd.Series(line)).tolist() == ndiffs(pd.Series(line), "adf").tolist() == [1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("regression", ["n", "c", "ct", "ctt"])
def test_short_series_leave_the_regression_an_observation(regression):
    for n in range(8, 22):
        row = adf(pd.Series(NOISE[0, :n]), regression).iloc[0]
        assert np.isfinite(row["statistic"]), n


def test_seasonal_differences():
    months = pd.date_range("2010-01", periods=96, freq="MS")
    rng = np.random.default_rng(0)
    wave = np.tile(rng.normal(size=12), 8)
    frame = pd.DataFrame(
        {"strong": 5 * wave + rng.normal(size=96), "weak": wave / 9 + rng.normal(size=96)}, months
    )
    assert nsdiffs(frame).to_dict() == {"strong": 1, "weak": 0}
    assert nsdiffs(frame, threshold=1.0).tolist() == [0, 0]
    assert nsdiffs(frame[:24]).tolist() == [0, 0]  # two seasons are no more than their own means


@pytest.mark.parametrize(
    ("count", "arguments", "words"),
    [
        (ndiffs, {"alpha": 0.2}, "alpha"),
        (ndiffs, {"test": "pp"}, "test must be"),
        (ndiffs, {"max_d": 0}, "max_d"),
        (ndiffs, {"target": "absent"}, "absent"),
        (nsdiffs, {}, "Give period"),  # a season of one row
    ],
)
def test_bad_arguments_are_refused(count, arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        count(series(), **arguments)
