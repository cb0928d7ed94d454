"""Outliers of forecasters: skipped as missing rows are, two futures at the end, listed, kept."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import LRUForecaster, ParaRNNForecaster, load
from tsrnn.datasets import load_elec_equip

SMALL = {"hidden_size": 4, "max_epochs": 1, "random_state": 0}


def turnover(n=90):
    return load_elec_equip()[["turnover"]][:n]


def with_error(y, row, value):
    y = y.copy()
    y.iloc[row, 0] = value
    return y


@pytest.mark.parametrize("value", [800.0, 1.0, -500.0, 1e12])
def test_an_error_is_skipped_as_a_missing_row_is(value):
    y = turnover()
    model = ParaRNNForecaster(6).fit(with_error(y, 60, value))
    missing = ParaRNNForecaster(6, missing="keep", outliers=None).fit(with_error(y, 60, np.nan))
    assert model.outliers_["ds"].tolist() == [y.index[60]]
    pd.testing.assert_frame_equal(model.predict(level=80), missing.predict(level=80))


def test_series_without_outliers_are_forecast_as_ever():
    y = turnover()
    model, plain = ParaRNNForecaster(6).fit(y), ParaRNNForecaster(6, outliers=None).fit(y)
    assert model.outliers_.empty
    assert "Outliers" not in str(model.summary())
    pd.testing.assert_frame_equal(model.predict(level=80), plain.predict(level=80))


def test_nothing_is_looked_for_with_none():
    model = ParaRNNForecaster(6, outliers=None).fit(with_error(turnover(), 60, 800.0))
    assert model.outliers_.empty


@pytest.mark.parametrize("size", [-60.0, 60.0])
def test_an_error_in_the_last_row_leaves_two_futures(size):
    y = turnover()
    changed = with_error(y, -1, y.iloc[-1, 0] + size)
    mixed = ParaRNNForecaster(6).fit(changed).predict(level=[80, 95])
    skipped = ParaRNNForecaster(6, missing="keep").fit(with_error(y, -1, np.nan))
    skipped = skipped.predict(level=[80, 95])
    followed = ParaRNNForecaster(6, outliers=None).fit(changed).predict(level=[80, 95])
    between = (skipped["turnover"] - mixed["turnover"]) * np.sign(skipped - followed)["turnover"]
    assert (between >= -1e-9).all()
    # The error is likelier, so that the median lies within its future.
    near = "turnover-lo-95" if size < 0 else "turnover-hi-95"
    assert ((mixed["turnover"] - skipped[near]) * np.sign(size) < 0).all()
    # And the intervals reach to the other.
    far = "turnover-lo-80" if size < 0 else "turnover-hi-80"
    assert ((mixed[far] - skipped[far]) * np.sign(size) > 0).all()


def test_an_error_becomes_a_shift_when_the_level_stays():
    y = turnover()
    changed = y.copy()
    changed.iloc[-3:] += 60.0
    model = ParaRNNForecaster(6).fit(changed[:-2])
    assert model.outliers_["kind"].tolist() == ["error"]
    model.update(changed[-2:])
    assert model.outliers_["kind"].tolist() == ["shift"]
    assert model.outliers_["ds"].tolist() == [y.index[-3]]
    whole = ParaRNNForecaster(6).fit(changed).predict(level=80)
    pd.testing.assert_frame_equal(model.predict(level=80), whole)


def test_parts_add_up_where_there_are_two_futures():
    y = turnover()
    model = ParaRNNForecaster(6).fit(with_error(y, -1, y.iloc[-1, 0] - 60))
    forecast = model.predict()["turnover"].to_numpy()
    np.testing.assert_allclose(model.contributions().sum(axis=1), forecast, rtol=1e-9)
    ahead = model.components()[-6:]
    np.testing.assert_allclose(ahead["fit"], forecast, rtol=1e-9)
    assert model.components()["data"].iloc[-7] == y.iloc[-1, 0] - 60  # data are shown as they are


def test_outliers_of_panels_and_targets_have_their_keys():
    y = turnover()
    wide = pd.DataFrame(
        {"a": with_error(y, 30, 700.0)["turnover"], "b": with_error(y, 70, 900.0)["turnover"]}
    )
    table = ParaRNNForecaster(6).fit(wide).outliers_
    assert table.columns.tolist() == ["ds", "target", "kind", "size", "probability"]
    assert table["target"].tolist() == ["a", "b"]
    assert table["ds"].tolist() == [y.index[30], y.index[70]]
    long = wide.stack().rename("y").rename_axis(["ds", "unique_id"]).reset_index()
    table = ParaRNNForecaster(6).fit(long).outliers_
    assert table.columns.tolist() == ["unique_id", "ds", "kind", "size", "probability"]
    assert table["unique_id"].tolist() == ["a", "b"]
    (ax_a, ax_b) = ParaRNNForecaster(6).fit(long).plot(last=90)
    for axes, value in ((ax_a, 700.0), (ax_b, 900.0)):
        (line,) = [line for line in axes.get_lines() if line.get_label() == "error"]
        assert line.get_ydata().tolist() == [value]


def test_summaries_list_outliers_with_their_reading():
    text = str(ParaRNNForecaster(6).fit(with_error(turnover(), 60, 800.0)).summary())
    assert "Outliers" in text
    assert "error" in text
    assert "skipped" in text


def test_effects_are_those_of_the_rows_without_errors():
    rng = np.random.default_rng(0)
    promotion = (rng.random(80) < 0.3).astype(float)
    y = 50 + 20 * promotion + rng.normal(size=80)
    dates = pd.date_range("2015-01-01", periods=80, freq="MS", name="ds")
    frame = pd.DataFrame({"y": y, "promotion": promotion}, dates)
    changed = frame.copy()
    row = int(np.flatnonzero(promotion)[-5])
    changed.iloc[row, 0] = 5000.0
    options = {"target": "y", "known_ahead": "promotion"}
    clean = ParaRNNForecaster(6, **options).fit(frame)
    model = ParaRNNForecaster(6, **options).fit(changed)
    assert model.outliers_["ds"].tolist() == [dates[row]]
    assert model.outliers_["size"].iloc[0] == pytest.approx(4930, rel=0.01)
    coef = model.summary().effects["coef"]
    np.testing.assert_allclose(coef, clean.summary().effects["coef"], rtol=0.05)


@pytest.mark.parametrize("size", [100.0, 1e5, 1e9])
def test_effects_of_hours_are_those_of_the_rows_without_errors(size):
    rng = np.random.default_rng(0)
    hours = pd.date_range("2024-01-01", periods=524, freq="h", name="ds")
    x = rng.normal(size=524)
    y = 100 + 10 * np.sin(np.arange(524) * np.pi / 12) + 5 * x + rng.normal(size=524)
    frame = pd.DataFrame({"y": y, "x": x}, hours)
    changed = frame[:500].copy()
    changed.iloc[400, 0] += size
    options = {"target": "y", "known_ahead": "x", "prior": "only"}
    clean = ParaRNNForecaster(24, **options).fit(frame[:500])
    model = ParaRNNForecaster(24, **options).fit(changed)
    ahead = frame[["x"]][500:]
    expected = clean.predict(X_future=ahead, level=80)
    np.testing.assert_allclose(model.predict(X_future=ahead, level=80), expected, atol=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e3, 1e9, 1e15])
def test_the_network_is_adapted_to_the_rows_without_errors(size):
    rng = np.random.default_rng(0)
    months = pd.date_range("1990-01-01", periods=360, freq="MS", name="ds")
    y = pd.Series(10 * np.sin(np.arange(360) * np.pi / 6) + rng.normal(size=360), months, name="y")
    clean = ParaRNNForecaster(12).fit(y).predict(level=80)
    model = ParaRNNForecaster(12).fit(y.mask(np.arange(360) == 200, y + size))
    np.testing.assert_allclose(model.predict(level=80), clean, atol=0.5)


def test_rolling_forecasts_know_the_rows_before_each_origin():
    y = with_error(turnover(), 80, 900.0)
    model = ParaRNNForecaster(3).fit(y[:78])
    rolling = model.predict_rolling(y[78:], step_size=1)
    for origin in (79, 81, 84):
        alone = ParaRNNForecaster(3).fit(y[:78]).update(y[78:origin]).predict()
        rows = rolling[rolling["cutoff"] == y.index[origin - 1]]
        np.testing.assert_allclose(rows["turnover"], alone["turnover"], rtol=1e-9)


def test_files_keep_the_choice(tmp_path):
    y = with_error(turnover(), 60, 800.0)
    for outliers in ("pulse", None):
        model = ParaRNNForecaster(6, outliers=outliers).fit(y)
        model.save(tmp_path / "model.tsrnn")
        again = load(tmp_path / "model.tsrnn")
        pd.testing.assert_frame_equal(again.outliers_, model.outliers_)
        pd.testing.assert_frame_equal(again.predict(), model.predict())


def test_what_is_no_kind_of_outliers_is_refused():
    with pytest.raises(ValueError, match="outliers must be"):
        ParaRNNForecaster(outliers="steps").fit(turnover())


def test_trained_networks_have_none():
    model = ParaRNNForecaster(6, prior=None, **SMALL).fit(turnover())
    lru = LRUForecaster(6, prior=None, **SMALL).fit(turnover())
    for trained in (model, lru):
        with pytest.raises(AttributeError, match="find_outliers"):
            _ = trained.outliers_
