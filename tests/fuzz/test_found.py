"""What odd frames have brought to light, each in its smallest form."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_array_equal

from tsrnn import ARMA, GARCH, ParaRNNForecaster, ParaRNNRegressor
from tsrnn.baselines import Drift, Mean, Naive
from tsrnn.data import read_panel
from tsrnn.layers import ParaRNN

DAYS = pd.date_range("2020-01-01", periods=30)
NOISE = np.random.default_rng(0).normal(size=30)
SMALL = {"input_size": 4, "hidden_size": 4, "n_layers": 1, "max_epochs": 1, "refit": False}


def daily(values, name="y"):
    return pd.Series(values, DAYS[: len(values)], name=name, dtype="float64")


def network():
    return ParaRNNForecaster(horizon=2, random_state=0, **SMALL)


class TestColumns:
    def test_ids_of_128_bits(self):
        ids = pl.Series([2**70] * 3 + [1] * 3, dtype=pl.Int128)
        frame = pl.DataFrame({"unique_id": ids, "ds": [1, 2, 3] * 2, "y": NOISE[:6]})
        assert list(read_panel(frame).ids) == [2**70, 1]

    def test_ids_that_are_dates_come_back_as_dates(self):
        day = datetime.date(2024, 1, 1)
        frame = pl.DataFrame({"unique_id": [day] * 3, "ds": [1, 2, 3], "y": [1.0, 2.0, 4.0]})
        forecast = Naive().fit(frame).predict(2)
        assert forecast["unique_id"].to_list() == [day, day]
        assert forecast.schema["unique_id"] == pl.Date


class TestNamesOfForecasts:
    def test_an_interval_never_stands_in_for_a_target(self):
        frame = pd.DataFrame({"y": NOISE, "y-lo-80": NOISE}, DAYS)
        model = Naive().fit(frame)
        assert list(model.predict(2).columns) == ["y", "y-lo-80"]
        with pytest.raises(ValueError, match="more than one 'y-lo-80'.*Rename it"):
            model.predict(2, level=80)

    @pytest.mark.parametrize("option", ["id_col", "time_col"])
    def test_a_forecast_never_stands_in_for_ids_or_times(self, option):
        name = {"id_col": "unique_id", "time_col": "ds"}[option]
        frame = pd.DataFrame({"unique_id": "a", "ds": DAYS, "y": NOISE})
        model = Naive(**{option: "Naive"}).fit(frame.rename(columns={name: "Naive"}))
        with pytest.raises(ValueError, match="more than one 'Naive'.*Rename it"):
            model.predict(2)


class TestTimes:
    def test_horizons_that_would_wrap_are_refused(self):
        model = Naive().fit(pd.Series([1.0, 2.0, 4.0], [0, 2**60, 2**61]))
        assert model.predict(1).index[0] == 3 * 2**60
        with pytest.raises(ValueError, match="must stay within 64 bits.*Take a smaller h"):
            model.predict(5)

    @pytest.mark.parametrize("h", [10**9, 2**62, 2**70])
    def test_a_horizon_beyond_memory_is_refused(self, h):
        with pytest.raises(ValueError, match="would take about .* of memory.*Take a smaller h"):
            Naive().fit(pd.Series(NOISE)).predict(h)

    def test_many_missing_rows_are_inserted_where_many_came(self):
        times = np.append([0, 1], np.arange(1, 20_000) * 60)
        panel = read_panel(pd.Series(times, times), missing="interpolate", freq=1)
        assert_array_equal(panel.values[:, 0], np.arange(19_999 * 60 + 1))


class TestSizes:
    @pytest.mark.parametrize("cls", [Naive, Drift, Mean, ARMA, GARCH])
    @pytest.mark.parametrize("unit", [1e-60, 1e60])
    def test_the_unit_does_not_matter(self, cls, unit):
        base, moved = (
            cls(random_state=0).fit(daily(NOISE * u)).predict(3, level=80) for u in (1.0, unit)
        )
        np.testing.assert_allclose(moved / unit, base, rtol=0, atol=1e-4)

    @pytest.mark.parametrize("cls", [Naive, Mean, ARMA, GARCH])
    def test_values_whose_powers_overflow_are_refused(self, cls):
        values = NOISE.copy()
        values[3] = 1e80
        with pytest.raises(ValueError, match="'y' must be at most 1e\\+70.*2020-01-04.*Divide"):
            cls().fit(daily(values))
        model = cls().fit(daily(NOISE))
        later = pd.Series([1e80], [DAYS[-1] + pd.Timedelta("1D")], name="y")
        for call in (model.update, model.score, model.predict):
            with pytest.raises(ValueError, match="must be at most 1e\\+70"):
                call(later)

    @pytest.mark.parametrize("cls", [Naive, Mean, ARMA, GARCH])
    def test_series_whose_squares_underflow_are_refused(self, cls):
        frame = pd.DataFrame({"ds": DAYS, "unique_id": "a", "y": NOISE})
        both = pd.concat([frame, frame.assign(unique_id="b", y=NOISE * 1e-200)])
        with pytest.raises(ValueError, match="series 'b'.*'y' must reach 1e-70.*Multiply"):
            cls().fit(both)

    def test_zeros_are_no_underflow(self):
        assert_array_equal(Naive().fit(daily(np.zeros(30))).predict(2), [0.0, 0.0])

    @pytest.mark.parametrize("value", [1e39, 1e200])
    def test_a_network_forecasts_no_nan_after_an_outlier(self, value):
        model = network().fit(daily(NOISE))
        later = pd.Series([value], [DAYS[-1] + pd.Timedelta("1D")], name="y")
        with pytest.raises(ValueError, match="'y' must lie within 1e\\+30.*2020-01-31.*Replace"):
            model.update(later)
        with pytest.raises(ValueError, match="'y' must lie within 1e\\+30"):
            model.predict(pd.concat([daily(NOISE), later]), h=2)
        assert np.isfinite(model.predict(2)).all()

    def test_a_network_refuses_values_whose_differences_overflow(self):
        with pytest.raises(ValueError, match="must be at most 1e\\+290.*Divide"):
            network().fit(daily(np.where(np.arange(30) % 2, 1.7e308, -1.7e308)))

    def test_a_score_that_overflows_is_refused(self):
        model = network().fit(daily(NOISE))
        with pytest.raises(ValueError, match="squared errors.*overflow.*Replace"):
            model.score(pd.Series([1e200], [DAYS[-1] + pd.Timedelta("1D")], name="y"))


class TestPerfectFits:
    """An ARMA without errors: the likelihood has no bound."""

    @pytest.mark.parametrize(
        "values",
        [np.arange(30) * 1.5, np.where(np.arange(30) % 2, 1.0, -1.0), np.sin(np.arange(30.0))],
    )
    @pytest.mark.parametrize("order", [(1, 1, 1), (2, 0, 0), (2, 1, 2)])
    def test_ends_with_numbers(self, values, order):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it did not converge
            model = ARMA(order=order, trend="n").fit(daily(values))
        assert np.isfinite(model.params_).all(axis=None)
        assert np.isfinite(model.predict(2)).all()
        assert "Results" in str(model.summary())

    def test_a_constant_is_refused_with_advice(self):
        with pytest.raises(ValueError, match=r"constant.*Drop it"):
            GARCH().fit(daily(np.ones(30)))


class TestSequences:
    @pytest.mark.parametrize(
        ("column", "shown"),
        [
            (list("abcdef"), "'a'"),
            (pd.date_range("2024-01-01", periods=6), "2024-01-01"),
            (pd.timedelta_range("1h", periods=6), "3600"),
            ([[1.0]] * 6, r"\[1.0\]"),
        ],
    )
    def test_columns_of_no_numbers_are_named(self, column, shown):
        frame = pd.DataFrame({"a": np.ones(6), "b": column})
        model = ParaRNNRegressor(hidden_size=4, max_epochs=1)
        for X, what in ((frame, "X"), ([frame] * 6, "sequence 0 of X")):
            with pytest.raises(ValueError, match=rf"{what} .*column 'b'.*{shown}.*drop it"):
                model.fit(X, np.arange(6.0))

    def test_columns_of_polars_too(self):
        frame = pl.DataFrame({"a": [1.0] * 6, "b": list("abcdef")})
        with pytest.raises(ValueError, match=r"X .*column 'b' \(dtype String\) holds 'a'"):
            ParaRNNRegressor(hidden_size=4).fit(frame, np.arange(6.0))

    @pytest.mark.parametrize("lengths", ["a", ["a", "b"], [1, "b"], [None, 1], {}, [2**70, 1]])
    def test_lengths_that_are_no_integers(self, lengths):
        with pytest.raises(ValueError, match="lengths must be 2 integers, one a sequence; got"):
            ParaRNN(2, 4)(torch.zeros(2, 3, 2), lengths=lengths)
