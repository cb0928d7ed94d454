"""Intervals of series that say little of their errors promise nothing without a word."""

import copy
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from tsrnn import ParaRNNForecaster, load
from tsrnn.baselines import Mean, Naive, SeasonalNaive
from tsrnn.contract import IntervalWarning

MULTIVARIATE_TOO = True
EVERY_NETWORK = True
ROWS = 48


def intermittent(rows, rate, seed):
    """Return demand of 1 + Poisson(2) in some of the rows, and none in the others."""
    draw = np.random.default_rng(seed)
    return (draw.random(rows) < rate) * (1.0 + draw.poisson(2.0, rows))


def spike(rows, level):
    values = np.full(rows, level)
    values[-3] += 1.0
    return values


SERIES = {
    "constant, then a spike": spike(ROWS, 5.0),
    "zeros but one": spike(ROWS, 0.0),
    "zeros, then one": np.r_[np.zeros(ROWS - 1), 1.0],
    "constant": np.full(ROWS, 7.0),
    "intermittent": intermittent(ROWS, 0.15, 3),
    "two rows": np.array([3.0, 5.0]),
    "three rows": np.array([3.0, 5.0, 4.0]),
}


def frame_of(values, entry):
    index = pd.date_range("2015-01-01", periods=len(values), freq="MS")
    if entry.n_targets == 1:
        return pd.Series(values, index, name="y")
    noise = np.random.default_rng(9).normal(size=len(values))
    return pd.DataFrame({"y": values, "z": noise}, index)


def forecast_of(model, level=80):
    """Return ends of the intervals of y, and texts of the warnings that concern them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        forecast = model.predict(6, level=level)
    texts = [str(w.message) for w in caught if issubclass(w.category, IntervalWarning)]
    column = "y" if "y" in forecast else model.column_name
    ends = forecast[[f"{column}-lo-{level}", f"{column}-hi-{level}"]].to_numpy()
    return forecast[column].to_numpy(), ends, texts


class TestEveryForecaster:
    @pytest.mark.few
    @pytest.mark.parametrize("case", SERIES)
    @pytest.mark.filterwarnings("ignore")
    def test_an_error_or_ends_of_some_width_or_a_warning(self, case, make, entry):
        changes = {"freq": "MS"} if len(SERIES[case]) < 4 else {}
        advice = ""
        try:
            model = make(**changes).fit(frame_of(SERIES[case], entry))
            point, ends, texts = forecast_of(model)
        except (ValueError, FloatingPointError) as error:
            advice = str(error)
        if advice:
            assert len(advice) > 40
            return
        assert np.isfinite(point).all()
        assert np.isfinite(ends).all()
        low, high = ends.T
        assert (low <= high).all()
        whole = model.support_["y"] in ("count", "binary")
        # of whole numbers an interval of a single one can be right, and what varies has errors
        if (low == high).any() and not (whole and np.ptp(SERIES[case])):
            assert any("have no width" in text for text in texts)
        if len(SERIES[case]) < 4:
            assert any("rest on" in text for text in texts)
        if case in ("intermittent", "zeros but one", "zeros, then one"):
            assert ((low <= 0) & (high >= 0)).all(), "80 percent without the value of 90"

    @pytest.mark.few
    def test_forecasts_say_what_their_intervals_guarantee(self, make, single, tmp_path):
        model = make().fit(single)
        forecast = model.predict(2, level=80)
        assert forecast.attrs["guarantee"] == model.interval_guarantee_
        assert re.search(
            "exact|asymptotic|exchangeable|simulated|none", forecast.attrs["guarantee"].lower()
        )
        model.save(tmp_path / "model.tsrnn")
        assert load(tmp_path / "model.tsrnn").interval_guarantee_ == model.interval_guarantee_


class TestZeros:
    """An interval of level p that leaves out a value of probability above 1 - p cannot cover."""

    @pytest.fixture
    def sales(self):
        rows = {"few": intermittent(60, 0.1, 0), "many": 5 + intermittent(60, 0.9, 1)}
        index = pd.date_range("2015-01-01", periods=60, freq="MS")
        return pd.DataFrame(
            [(name, ds, y) for name, own in rows.items() for ds, y in zip(index, own, strict=True)],
            columns=["unique_id", "ds", "y"],
        )

    def test_only_the_series_with_zeros_is_widened_and_named(self, sales, small):
        model = small(linear_path=False).fit(sales)
        model._zero_shares = np.zeros((2, 1))
        plain = copy.deepcopy(model).predict(6, level=[50, 80])
        model._zero_shares = np.array([[0.9], [0.0]])
        model.calibration_.errors[:] = 1e-3 * model.calibration_.errors
        with pytest.warns(IntervalWarning, match="intervals of 'few' were widened to contain 0"):
            widened = model.predict(6, level=[50, 80])
        few = widened["unique_id"] == "few"
        assert (widened.loc[few, "ParaRNN-lo-80"] <= 0).all()
        assert (widened.loc[~few, "ParaRNN-lo-80"] > 0).all()
        pd.testing.assert_series_equal(widened["ParaRNN"], plain["ParaRNN"])

    def test_a_level_that_may_leave_zero_out_does(self):
        y = pd.Series(np.r_[np.zeros(8), np.full(22, 9.0), 9.5], pd.RangeIndex(31))
        model = Mean().fit(y)
        assert 0.2 < np.mean(y == 0) < 0.3
        with warnings.catch_warnings():
            warnings.simplefilter("error", IntervalWarning)
            assert (model.predict(2, level=50)["Mean-lo-50"] > 0).all()
        with pytest.warns(IntervalWarning, match="were widened"):
            assert (model.predict(2, level=80)["Mean-lo-80"] == 0).all()

    def test_the_zeros_of_other_data_count_for_them(self):
        index = pd.RangeIndex(40)
        full = pd.Series(np.random.default_rng(0).normal(50, 1, 40), index, name="y")
        empty = pd.Series(np.where(np.arange(40) < 38, 0.0, 30.0), index, name="y")
        model = Mean().fit(full)
        assert (model.predict(3, level=80)["y-lo-80"] > 40).all()
        after = model.predict(empty, h=3, level=80)
        assert (after["y-lo-80"] <= 0).all()

    def test_rolling_forecasts_are_widened_as_others(self, sales, small):
        few = sales[sales["unique_id"] == "few"]
        model = small(horizon=2, val_size=20).fit(few[:50])
        model.calibration_.errors[:] = 1e-3 * model.calibration_.errors
        with pytest.warns(IntervalWarning, match="'few' were widened"):
            rolled = model.predict_rolling(few[50:], level=80)
        low, high = rolled["ParaRNN-lo-80"], rolled["ParaRNN-hi-80"]
        assert ((low <= 0) & (high >= 0)).all()
        assert rolled.attrs["guarantee"].startswith("Intervals: split conformal")

    # Without the rule 65 percent of one panel lay inside; with it no interval leaves out the zeros.
    @pytest.mark.parametrize("rate", [0.05, 0.15])
    def test_intervals_of_intermittent_series_cover(self, rate, small):
        rows = 72
        demand = [intermittent(rows + 6, rate, seed) for seed in range(60)]
        frame = pd.DataFrame({
            "unique_id": np.repeat(np.arange(60), rows + 6),
            "ds": np.tile(np.arange(rows + 6), 60),
            "y": np.concatenate(demand),
        })  # fmt: skip
        future = frame["ds"] >= rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IntervalWarning)
            forecast = small(freq=1).fit(frame[~future]).predict(6, level=80)
        y = frame.loc[future, "y"].to_numpy()
        inside = (forecast["ParaRNN-lo-80"] <= y) & (y <= forecast["ParaRNN-hi-80"])
        assert inside.mean() >= 0.8


class TestFewErrors:
    @pytest.mark.parametrize(
        ("cls", "rows", "lag"), [(Naive, 3, 1), (Mean, 3, 0), (SeasonalNaive, 14, 12)]
    )
    def test_normal_errors_are_covered_exactly_however_few(self, cls, rows, lag):
        """Two errors: 80 percent by Student's t, 63 by the normal quantile."""
        values = np.random.default_rng(0).normal(size=(4000, rows + 1))
        if lag:  # of the random walk that the method is right for
            for row in range(lag, rows + 1):
                values[:, row] += values[:, row - lag]
        frame = pd.DataFrame({
            "unique_id": np.repeat(np.arange(4000), rows),
            "ds": np.tile(pd.date_range("2015-01-01", periods=rows, freq="MS"), 4000),
            "y": values[:, :rows].ravel(),
        })  # fmt: skip
        model = cls(freq="MS").fit(frame)
        with pytest.warns(IntervalWarning, match=r"rest on 2 errors"):
            forecast = model.predict(1, level=80)
        name, actual = cls.column_name, values[:, rows]
        inside = (forecast[f"{name}-lo-80"] <= actual) & (actual <= forecast[f"{name}-hi-80"])
        assert inside.mean() == pytest.approx(0.8, abs=0.025)

    def test_enough_errors_need_no_word(self):
        series = pd.Series(np.random.default_rng(0).normal(size=6).cumsum(), pd.RangeIndex(6))
        with warnings.catch_warnings():
            warnings.simplefilter("error", IntervalWarning)
            Naive().fit(series).predict(3, level=80)


def test_a_conformal_guarantee_says_how_far_its_errors_reach(wave):
    model = ParaRNNForecaster(
        horizon=3, hidden_size=4, n_layers=1, max_epochs=1, val_size=20, random_state=0
    ).fit(wave)
    n = int(np.isfinite(model.calibration_.errors[0, :, 0, 0]).sum())
    assert f"With {n} errors of the first step" in model.interval_guarantee_
    reached = 100 * n / (n + 1)
    assert f"levels of up to {reached:.3g}" in model.interval_guarantee_
    widths = []
    for level in (np.floor(reached), np.ceil(reached)):
        with pytest.warns(
            IntervalWarning, match=f"level {level:g} are guaranteed for {level < reached:d}"
        ):
            forecast = model.predict(level=level)
        widths.append(forecast.iloc[:, 2] - forecast.iloc[:, 1])
    assert (widths[1] >= widths[0]).all()
