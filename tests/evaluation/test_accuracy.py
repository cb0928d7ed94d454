"""Accuracy of forecasts from one origin against utilsforecast and scoringrules."""

import numpy as np
import pandas as pd
import pytest
import scoringrules
from utilsforecast import losses as uf

from tsrnn.baselines import Drift, Naive2, SeasonalNaive
from tsrnn.evaluation import accuracy, backtest, compare

STEPS, SEASON, KEYS = 6, 4, ["unique_id", "ds"]
MODELS = {"Naive2": Naive2(), "SeasonalNaive": SeasonalNaive(), "Drift": Drift()}


def panel():
    rng, parts = np.random.default_rng(3), []
    for i, rows in enumerate((40, 57, 31)):
        season = np.tile([3.0, 0.0, -2.0, 1.0], 20)[:rows]
        y = 10 ** (i + 1) * (20 + season + rng.normal(size=rows).cumsum())
        days = pd.date_range("2001-01-01", periods=rows, freq="QS")
        parts.append(pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": y}))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def data():
    whole = panel()
    late = whole.groupby("unique_id").cumcount(ascending=False) < STEPS
    train, test = whole[~late], whole[late]
    frames = [m.fit(train).predict(STEPS, level=[80, 95]) for m in MODELS.values()]
    forecasts = frames[0].merge(frames[1], on=KEYS).merge(frames[2], on=KEYS)
    return train, test, forecasts


def test_measures_are_those_of_utilsforecast_and_scoringrules(data):
    train, test, forecasts = data
    table = accuracy(forecasts, test, train=train, season_length=SEASON, by="series")
    rows, names = forecasts.merge(test, on=KEYS), list(MODELS)

    def assert_equal(name, wanted):
        columns = table[name].unstack("model")[names]
        np.testing.assert_allclose(columns, wanted.set_index("unique_id")[names], rtol=1e-12)

    assert_equal("MAE", uf.mae(rows, names))
    assert_equal("RMSE", uf.rmse(rows, names))
    assert_equal("MASE", uf.mase(rows, names, SEASON, train))
    assert_equal("RMSSE", uf.rmsse(rows, names, SEASON, train))
    smape = uf.smape(rows, names)
    assert_equal("sMAPE", smape.assign(**200 * smape[names]))
    for level in (80, 95):
        assert_equal(f"coverage-{level}", uf.coverage(rows, names, level))
        assert_equal(f"MSIS-{level}", msis(rows, train, level))


def msis(rows, train, level):
    """Scaled interval scores of scoringrules, a row a series."""
    found = []
    for label, part in rows.groupby("unique_id"):
        y = train.loc[train["unique_id"] == label, "y"].to_numpy()
        scale, row = np.abs(y[SEASON:] - y[:-SEASON]).mean(), {"unique_id": label}
        for name in MODELS:
            ends = (part[f"{name}-{side}-{level}"].to_numpy() for side in ("lo", "hi"))
            score = scoringrules.interval_score(part["y"].to_numpy(), *ends, 1 - level / 100)
            row[name] = score.mean() / scale
        found.append(row)
    return pd.DataFrame(found)


def test_it_is_what_compare_says_of_one_window(data):
    train, test, forecasts = data
    table = accuracy(forecasts, test, train=train, season_length=SEASON)
    frame = backtest(MODELS, panel(), h=STEPS, n_windows=1, level=[80, 95])
    result = compare(frame)
    pd.testing.assert_frame_equal(table, result.accuracy, rtol=1e-10)
    by_step = accuracy(forecasts, test, train=train, season_length=SEASON, by="step")
    pd.testing.assert_frame_equal(by_step, result.by_step, rtol=1e-10)
    assert table.loc["Naive2", "OWA"] == 1


def test_without_a_past_there_are_no_scaled_measures(data):
    _, test, forecasts = data
    table = accuracy(forecasts, test)
    assert {"MASE", "RMSSE", "OWA", "MSIS-80"}.isdisjoint(table)
    assert any("train=" in note for note in table.attrs["notes"])
    assert table["RMSE"].is_monotonic_increasing


def test_rows_without_a_value_are_left_out_and_told(data):
    train, test, forecasts = data
    gone = test.index[[0, 7]]
    table = accuracy(forecasts, test.drop(gone), train=train, season_length=SEASON)
    assert "2 rows without an actual value left out for every model" in table.attrs["notes"][0]
    rows = forecasts.merge(test.drop(gone), on=KEYS)
    wanted = uf.mae(rows, list(MODELS))[list(MODELS)].mean()
    np.testing.assert_allclose(table["MAE"][list(MODELS)], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"forecasts": [1.0]}, TypeError, "forecasts must be a long pandas DataFrame .*; got list"),
        ({"actual": pd.DataFrame({"y": [1.0]})}, TypeError, r"got the columns \['y'\]"),
        ({"by": "window"}, ValueError, "by must be one of"),
        ({"season_length": None}, ValueError, "season_length= must be given"),
    ],
)
def test_refusals(data, change, error, message):
    train, test, forecasts = data
    arguments = {"forecasts": forecasts, "actual": test, "train": train, "season_length": SEASON}
    with pytest.raises(error, match=message):
        accuracy(**arguments | change)


def test_actual_values_stand_in_one_place(data):
    _, test, forecasts = data
    with pytest.raises(ValueError, match="actual values must stand in column 'y' of actual"):
        accuracy(forecasts.assign(y=1.0), test)
