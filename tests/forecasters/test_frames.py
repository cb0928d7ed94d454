"""The shape of what comes in is the shape of what goes out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tsrnn import backtest, load


@pytest.fixture(scope="module")
def numbers(make, wave):
    """Return the forecasts that every form of the same series must give."""
    return make(freq="MS").fit(wave).predict(4, level=[80]).to_numpy()


def after(series, n):
    return pd.date_range(series.index[-1], periods=n + 1, freq="MS")[1:]


class TestSeries:
    @pytest.mark.few
    def test_point_forecast_is_a_series(self, make, wave, numbers):
        forecast = make().fit(wave).predict(4)
        assert isinstance(forecast, pd.Series)
        assert forecast.name == "y"
        assert list(forecast.index) == list(after(wave, 4))
        np.testing.assert_array_equal(forecast, numbers[:, 0])

    def test_unnamed(self, make, column, wave, numbers):
        model = make().fit(wave.rename(None))
        assert model.predict(4).name is None
        names = [column, f"{column}-lo-80", f"{column}-hi-80"]
        assert list(model.predict(4, level=80).columns) == names
        np.testing.assert_array_equal(model.predict(4), numbers[:, 0])

    def test_rolling_has_cutoffs(self, small, wave):
        forecast = small().fit(wave.iloc[:-8]).predict_rolling(wave.iloc[-8:], h=6)
        assert list(forecast.columns) == ["cutoff", "y"]
        assert list(forecast["cutoff"].unique()) == list(wave.index[-9:-6])


class TestWide:
    @pytest.mark.few
    def test_one_column_or_many(self, make, wave, wide, numbers):
        one = make().fit(wave.to_frame()).predict(4, level=[80])
        assert list(one.columns) == ["y", "y-lo-80", "y-hi-80"]
        np.testing.assert_array_equal(one, numbers)
        many = make().fit(wide).predict(4)
        assert list(many.columns) == ["u", "v", "w"]
        assert list(many.index) == list(after(wide, 4))

    @pytest.mark.parametrize("multivariate", ["joint", "independent"])
    def test_multivariate(self, small, wide, multivariate):
        model = small(multivariate=multivariate).fit(wide)
        forecast = model.predict(8)
        assert forecast.shape == (8, 3)
        level = wide.iloc[-12:].mean()
        assert (abs(forecast.mean() - level) < 3 * wide.std()).all()

    def test_periods(self, make, wave, numbers):
        forecast = make().fit(wave.to_period()).predict(4, level=[80])
        assert list(forecast.index) == list(after(wave, 4).to_period())
        np.testing.assert_allclose(forecast, numbers, rtol=1e-3)

    def test_integers(self, make, wave, numbers):
        forecast = make().fit(wave.set_axis(range(100, 100 + len(wave)))).predict(4, level=[80])
        assert list(forecast.index) == [196, 197, 198, 199]
        assert list(forecast.columns) == ["y", "y-lo-80", "y-hi-80"]

    def test_time_zone(self, make, wave, numbers):
        there = wave.tz_localize("Europe/Berlin")
        forecast = make().fit(there).predict(4, level=[80])
        assert str(forecast.index.tz) == "Europe/Berlin"
        np.testing.assert_allclose(forecast, numbers, rtol=1e-9)

    def test_target(self, small, wide):
        model = small(target="v").fit(wide)
        assert list(model.predict(2).columns) == ["v"]
        assert model.n_features_in_ == 3


def in_column(series, form):
    """The series as a frame with its dates in a column: a CSV file that was read as it is."""
    frame = series.to_frame().rename_axis("month").reset_index()
    if form == "datetimes":
        return frame
    frame["month"] = frame["month"].dt.strftime("%Y-%m-%d" if form == "polars" else "%Y-%m")
    if form == "polars":
        return pl.DataFrame({name: frame[name].tolist() for name in frame})
    return frame


class TestDatesInAColumn:
    """The frame is that with the column as its index; only its shape differs."""

    @pytest.mark.few
    @pytest.mark.parametrize("form", ["datetimes", "text", "polars"])
    def test_forecasts_have_the_column(self, make, wave, numbers, form):
        frame = in_column(wave, form)
        forecast = make().fit(frame).predict(4, level=[80])
        assert type(forecast) is type(frame)
        assert list(forecast.columns) == ["month", "y", "y-lo-80", "y-hi-80"]
        assert [pd.Timestamp(time) for time in forecast["month"]] == list(after(wave, 4))
        np.testing.assert_array_equal(
            forecast[:, 1:] if form == "polars" else forecast.iloc[:, 1:], numbers
        )

    @pytest.mark.few
    def test_through_the_life_of_a_model(self, make, wave, tmp_path):
        frame = in_column(wave, "text")
        model, index = make().fit(frame[:80]), make().fit(wave[:80])
        assert model.score(frame[80:86]) == index.score(wave[80:86])
        expected = index.predict(wave[:90], h=3).to_numpy()
        np.testing.assert_array_equal(model.predict(frame[:90], h=3)["y"].to_numpy(), expected)
        model.save(tmp_path / "model.tsrnn")
        loaded = load(tmp_path / "model.tsrnn").update(frame[80:86])
        expected = index.update(wave[80:86]).predict(3).to_numpy()
        np.testing.assert_array_equal(loaded.predict(3)["y"].to_numpy(), expected)

    @pytest.mark.where.with_args(lambda entry: entry.exogenous)
    @pytest.mark.few("ParaRNN-text", "ARMA", "ETS", "SARIMAX")
    @pytest.mark.parametrize("form", ["text", "polars"])
    def test_columns_known_ahead(self, make, entry, wave, form):
        x = np.random.default_rng(7).normal(size=len(wave))
        frame = in_column(wave, form)
        frame = frame.with_columns(x=x) if form == "polars" else frame.assign(x=x)
        model = make(target="y", known_ahead="x").fit(frame[:90])
        index = make(target="y", known_ahead="x").fit(wave[:90].to_frame().assign(x=x[:90]))
        ahead = wave[90:].to_frame().assign(x=x[90:])[["x"]]
        expected = index.predict(6, X_future=ahead).to_numpy().ravel()
        plan = frame[90:][["month", "x"]]
        np.testing.assert_array_equal(model.predict(6, X_future=plan)["y"].to_numpy(), expected)

    @pytest.mark.few
    def test_backtest(self, make, wave):
        windows = {"h": 2, "n_windows": 3, "refit": False}
        tested = backtest({"model": make()}, in_column(wave, "text"), **windows)
        pd.testing.assert_frame_equal(tested, backtest({"model": make()}, wave, **windows))


class TestLong:
    @pytest.mark.few
    def test_pandas(self, make, column, panel):
        forecast = make().fit(panel).predict(2)
        assert list(forecast.columns) == ["unique_id", "ds", column]
        assert list(forecast["unique_id"]) == list("aabbcc")
        last = panel.groupby("unique_id")["ds"].max()
        assert (forecast.groupby("unique_id")["ds"].min() == last + pd.DateOffset(months=1)).all()

    @pytest.mark.few
    def test_other_names(self, make, panel, same):
        renamed = panel.rename(columns={"unique_id": "shop", "ds": "month", "y": "sales"})
        forecast = make(id_col="shop", time_col="month", target="sales").fit(renamed).predict(2)
        expected = make().fit(panel).predict(2)
        same(forecast, expected.rename(columns={"unique_id": "shop", "ds": "month"}), rtol=0)

    @pytest.mark.few
    def test_integer_ids(self, make, panel):
        numbered = panel.assign(unique_id=panel["unique_id"].map({"a": 7, "b": 3, "c": 5}))
        assert list(make().fit(numbered).predict(1)["unique_id"]) == [7, 3, 5]

    @pytest.mark.few
    def test_polars(self, make, panel):
        forecast = make().fit(pl.DataFrame(panel.to_dict("list"))).predict(3, level=[80])
        assert isinstance(forecast, pl.DataFrame)
        expected = make().fit(panel).predict(3, level=[80])
        assert forecast.columns == list(expected.columns)
        np.testing.assert_array_equal(forecast[:, 2:].to_numpy(), expected.iloc[:, 2:].to_numpy())

    def test_several_targets(self, small, panel):
        frame = panel.assign(v=panel["y"] ** 2)
        forecast = small(target=["y", "v"]).fit(frame).predict(2, level=80)
        names = ["y", "y-lo-80", "y-hi-80", "v", "v-lo-80", "v-hi-80"]
        assert list(forecast.columns) == ["unique_id", "ds", *names]

    def test_rolling(self, small, panel, cut):
        past, future = cut(panel, 7)
        forecast = small().fit(past).predict_rolling(future, h=6, level=[80])
        names = ["unique_id", "ds", "cutoff", "ParaRNN", "ParaRNN-lo-80", "ParaRNN-hi-80"]
        assert list(forecast.columns) == names
        assert len(forecast) == 3 * 2 * 6


class TestExogenous:
    def test_known_ahead(self, small, exog, cut):
        past, future = cut(exog, 10)
        model = small(known_ahead="x").fit(past)
        ahead = future[["unique_id", "ds", "x"]]
        forecast = model.predict(10, X_future=ahead)
        assert len(forecast) == 30
        shuffled = model.predict(10, X_future=ahead.sample(frac=1, random_state=0))
        pd.testing.assert_frame_equal(forecast, shuffled)
        assert np.isfinite(model.score(future))

    def test_history_only(self, small, exog):
        model = small().fit(exog)
        assert model.known_ahead_ == []
        assert len(model.predict(9)) == 27

    def test_wide(self, small, wide):
        model = small(target="u", known_ahead=["v", "w"]).fit(wide.iloc[:-8])
        forecast = model.predict(8, X_future=wide.iloc[-8:][["w", "v"]])
        assert forecast.shape == (8, 1)
