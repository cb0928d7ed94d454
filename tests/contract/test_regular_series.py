"""Constants, zeros and straight lines: continued as they are, with intervals that say so."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from tsrnn import baselines, linear
from tsrnn.contract import IntervalWarning
from tsrnn.evaluation import Combination

# Models, and whether a line is among what they can say.
ANSWERS = {
    "ARMA": (linear.ARMA((1, 1)), False),
    "ARMA, line": (linear.ARMA((1, 0), trend="ct"), True),
    "ARIMA": (linear.ARMA((0, 1, 1)), False),
    "ARIMA, drift": (linear.ARMA((0, 1, 1), trend="t"), True),
    "ARIMA, lags": (linear.ARMA((1, 1, 1)), True),
    "ARIMA, many lags": (linear.ARMA((3, 1, 2)), True),
    "ARIMA, a season's lags": (linear.ARMA((0, 1, 0), seasonal_order=(1, 0, 0, 4)), True),
    "AR without mean": (linear.ARMA((1, 0), trend="n"), False),
    "ARIMA, twice": (linear.ARMA((0, 2, 1)), True),
    "ARIMA, seasonal": (linear.ARMA((0, 1, 1), seasonal_order=(0, 1, 1, 4)), True),
    "AutoARIMA": (linear.AutoARIMA(), True),
    "ETS": (linear.ETS(), True),
    "ETS, level": (linear.ETS("add", "none", "none"), False),
    "ETS, trend": (linear.ETS("add", "add", "none", damped=False), True),
    "ETS, usual": (linear.ETS(bounds="usual"), True),
    "ETS, admissible": (linear.ETS("add", "add", "none", damped=False, bounds="admissible"), True),
    "ETS, decomposed": (linear.ETS(trend="add", damped=False, initialization="heuristic"), True),
    "Theta": (linear.Theta(), True),
    "Theta, estimated": (linear.Theta(initialization="estimated"), True),
    "Theta, one line": (linear.Theta(2, dynamic=False), False),
    "CES": (linear.CES(), False),
    "Croston": (linear.Croston(), False),
    "TSB": (linear.TSB(), False),
    "Naive": (baselines.Naive(), False),
    "SeasonalNaive": (baselines.SeasonalNaive(season_length=2), False),
    "Naive2": (baselines.Naive2(season_length=2), False),
    "Drift": (baselines.Drift(), True),
    "Mean": (baselines.Mean(), False),
    "SARIMAX": (baselines.SARIMAX(trend="c"), False),
    "StatsmodelsETS": (baselines.StatsmodelsETS(trend="add"), True),
    "StatsmodelsTheta": (baselines.StatsmodelsTheta(season_length=1), False),
    "StatsmodelsAutoARIMA": (baselines.StatsmodelsAutoARIMA(1, max_p=1, max_q=0, d=1), True),
    "UnobservedComponents": (baselines.UnobservedComponents(), False),
    "Combination": (Combination.classical(), True),
}
# Without a variance, or several targets that vary, these say nothing.
REFUSE = {"GARCH": linear.GARCH(), "ArchModel": baselines.ArchModel()}
JOINT = {"VARMA", "CCC", "DCC", "VECMGARCH", "VAR", "VARMAX", "VECM"}
FEW = r"at least \d+"
CONSTANTS, ROWS = (5.0, 0.0, 0.1), (6, 40)
LINES = {
    "up": np.arange(1.0, 101),
    "down": np.arange(104.0, 4, -1),  # to 2: below zero forecasts would be cut
    "tenths": 3 + np.arange(40) / 10,
}


def months(values):
    return pd.Series(values, pd.date_range("2000-01", periods=len(values), freq="MS"), name="y")


def forecast(model, values, h=3):
    """Forecasts (h, 3) with an interval, and the kinds of warnings; None if it asks for rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            table = model.fit(months(values)).predict(h=h, level=[80])
        except ValueError as refusal:
            if re.search(FEW, str(refusal)):
                return None, set()
            raise
    kinds = {warning.category for warning in caught}
    assert not any(issubclass(kind, RuntimeWarning) for kind in kinds)
    return table.to_numpy(float), kinds


def test_every_model_of_one_target_is_named(contract):
    named = {type(model).__name__ for model, _ in ANSWERS.values()} | set(REFUSE) | JOINT
    assert {cls.__name__ for cls in contract.classical} <= named


@pytest.mark.few("ETS", "ARIMA", "Theta", "AutoARIMA", "Combination", "SARIMAX")
@pytest.mark.parametrize("name", ANSWERS)
def test_a_constant_goes_on(name):
    model, _ = ANSWERS[name]
    for value in CONSTANTS:
        for rows in ROWS:
            found, kinds = forecast(model, np.full(rows, value))
            if found is None:
                assert rows == 6
                continue
            np.testing.assert_allclose(found, value, rtol=1e-12, err_msg=f"{rows} x {value}")
            assert IntervalWarning in kinds
            assert rows == 6 or kinds == {IntervalWarning}  # a member may need more than 6


@pytest.mark.few("ETS", "ARIMA", "ARMA", "Theta", "SARIMAX", "StatsmodelsETS")
@pytest.mark.parametrize("name", ANSWERS)
def test_a_line_goes_on(name):
    model, has_lines = ANSWERS[name]
    for kind, values in LINES.items():
        found, kinds = forecast(model, values)
        assert np.isfinite(found).all()
        if not has_lines:
            continue
        slope = values[1] - values[0]
        ahead = np.repeat(values[-1] + slope * np.arange(1, 4)[:, None], 3, 1)
        numerical = name.startswith(("Statsmodels", "ARIMA, seasonal"))
        tolerance = 1e-2 * abs(slope) if numerical else 1e-9 * np.abs(values).max()
        np.testing.assert_allclose(found, ahead, rtol=0, atol=tolerance, err_msg=kind)
        if not numerical and name != "Combination":
            assert kinds == {IntervalWarning}


@pytest.mark.parametrize("lags", [(1, 1, 1), (2, 1, 0)])
@pytest.mark.parametrize("missing", [None, 20])
def test_a_line_with_a_gap_goes_on(lags, missing):
    values = LINES["up"].copy()
    if missing:
        values[missing] = np.nan
    found, kinds = forecast(linear.ARMA(lags, missing="keep"), values)
    np.testing.assert_allclose(found, np.repeat([[101.0], [102.0], [103.0]], 3, 1), rtol=1e-12)
    assert kinds == {IntervalWarning}


@pytest.mark.filterwarnings("ignore:the likelihood of 1 of 1 units was not maximised")
def test_lines_but_for_small_noise_are_searched():
    noise = 1e-6 * np.random.default_rng(0).normal(size=100).cumsum()
    model = linear.ARMA((1, 1, 1)).fit(months(LINES["up"] + noise))
    assert model.fitted_.estimates.params[0, -1] > 0


@pytest.mark.few("1-ETS", "1-ARIMA", "1-ARMA", "40-AutoARIMA", "40-Theta")
@pytest.mark.parametrize("name", ANSWERS | REFUSE)
@pytest.mark.parametrize("rows", [1, 40])
def test_numbers_that_are_ids_do_not_read_as_counts(name, rows):
    """Of 11 and 12 one is constant, or too short to be fitted."""
    model = REFUSE[name] if name in REFUSE else ANSWERS[name][0]
    noise = 20 + np.random.default_rng(0).normal(size=40).cumsum()
    parts = {11: months(np.full(rows, 7.0)), 12: months(noise)}
    frame = pd.concat(
        [part.rename_axis("ds").reset_index().assign(unique_id=i) for i, part in parts.items()]
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(frame).predict(h=2, level=[80])
    texts = [text for w in caught if "11" in (text := str(w.message))]
    assert texts
    assert all(re.search(r"series 11\b", text) for text in texts)


@pytest.mark.parametrize("name", ANSWERS)
def test_six_rows_of_a_line(name):
    found, _ = forecast(ANSWERS[name][0], np.arange(1.0, 7))
    assert found is None or np.isfinite(found[:, 0]).all()


@pytest.mark.few("ETS", "ARIMA", "Theta", "ARMA", "CES", "AutoARIMA")
@pytest.mark.parametrize("name", ANSWERS | REFUSE)
def test_a_dead_store_stops_no_panel(name):
    """A shop is forecast as it is without two others, of which one never sells anything."""
    model = REFUSE[name] if name in REFUSE else ANSWERS[name][0]
    sales = 20 + np.random.default_rng(0).normal(size=40).cumsum()
    shops = {"open": sales, "dead": np.zeros(40), "steady": np.full(40, 7.0)}
    parts = [months(values).rename_axis("ds").reset_index() for values in shops.values()]
    frame = pd.concat(parts, keys=shops, names=["unique_id"]).reset_index(level=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = model.fit(frame).predict(h=2).set_index("unique_id").iloc[:, 1]
        alone = model.fit(frame[frame["unique_id"] == "open"]).predict(h=2).iloc[:, 2]
    np.testing.assert_allclose(table["open"], alone, rtol=1e-6)
    if name in REFUSE:
        assert table[["dead", "steady"]].isna().all()
        assert any("'dead'" in str(w.message) and "constant" in str(w.message) for w in caught)
    else:
        np.testing.assert_allclose(table["dead"], 0, atol=1e-12)
        np.testing.assert_allclose(table["steady"], 7, rtol=1e-12)
