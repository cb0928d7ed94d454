"""polars frames in, polars frames out, and the numbers of pandas."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tsrnn import (
    ARMA,
    DCC,
    ETS,
    GARCH,
    VARMA,
    ParaRNNForecaster,
    backtest,
    compare,
    load,
    recurrence_features,
)
from tsrnn.baselines import SeasonalNaive

MODELS = {
    "ParaRNN": ParaRNNForecaster(
        hidden_size=4, n_layers=1, max_epochs=1, refit=False, random_state=0
    ),
    "ARMA": ARMA(order=(1, 1)),
    "GARCH": GARCH(random_state=0),
    "SeasonalNaive": SeasonalNaive(),
}


@pytest.fixture(scope="module")
def rows():
    """Return a long pandas frame of two daily series, times in milliseconds."""
    draw = np.random.default_rng(11)
    times = pd.date_range("2023-01-01", periods=80, freq="D", unit="ms")
    parts = [
        pd.DataFrame({"unique_id": name, "ds": times, "y": scale * draw.normal(size=80).cumsum()})
        for name, scale in (("a", 1.0), ("b", 50.0))
    ]
    return pd.concat(parts, ignore_index=True)


def in_polars(frame):
    return pl.DataFrame({name: frame[name].to_list() for name in frame})


def before(frame, n):
    """Return the rows before the last n of each series, and those."""
    late = frame.groupby("unique_id").cumcount(ascending=False) < n
    return frame[~late], frame[late]


def same(found, expected):
    assert isinstance(found, pl.DataFrame)
    assert found.columns == list(expected.columns)
    assert found["unique_id"].to_list() == expected["unique_id"].to_list()
    assert found["ds"].to_list() == expected["ds"].to_list()
    values = [name for name in found.columns if name not in ("unique_id", "ds", "cutoff")]
    np.testing.assert_array_equal(found[values].to_numpy(), expected[values].to_numpy())


@pytest.fixture(scope="module", params=MODELS)
def pair(request, rows):
    """Return a forecaster fitted to polars and one fitted to pandas, without the last 5 rows."""
    past = before(rows, 5)[0]
    model = MODELS[request.param]
    return copy.deepcopy(model).fit(in_polars(past)), copy.deepcopy(model).fit(past)


class TestForecasts:
    def test_with_levels(self, pair):
        found, expected = (model.predict(4, level=[80, 95]) for model in pair)
        same(found, expected)
        assert found["ds"].dtype == pl.Datetime

    def test_after_other_rows(self, pair, rows):
        ours, theirs = pair
        same(ours.predict(in_polars(rows), h=2), theirs.predict(rows, h=2))

    def test_after_an_update(self, pair, rows):
        new = before(rows, 5)[1]
        ours, theirs = (copy.deepcopy(model) for model in pair)
        same(ours.update(in_polars(new)).predict(3), theirs.update(new).predict(3))
        assert pair[0].score(in_polars(new)) == pair[1].score(new)

    def test_from_a_file(self, pair, tmp_path):
        pair[0].save(tmp_path / "model")
        same(load(tmp_path / "model").predict(3), pair[1].predict(3))

    def test_after_rows_in_the_other_library_come_in_that_of_the_fit(self, pair, rows):
        same(pair[0].predict(rows, h=2), pair[1].predict(in_polars(rows), h=2))


def test_rolling_forecasts(rows):
    past, new = before(rows, 8)
    model = MODELS["ParaRNN"]
    ours = copy.deepcopy(model).fit(in_polars(past)).predict_rolling(in_polars(new), h=3)
    theirs = copy.deepcopy(model).fit(past).predict_rolling(new, h=3)
    same(ours, theirs)
    assert ours["cutoff"].to_list() == theirs["cutoff"].to_list()


def test_variances_and_residuals(rows):
    ours, theirs = (copy.deepcopy(MODELS["GARCH"]).fit(frame) for frame in (in_polars(rows), rows))
    same(ours.predict_variance(h=3), theirs.predict_variance(h=3))
    same(ours.residuals(), theirs.residuals())


def test_recurrence_features_are_those_of_pandas(rows):
    frames = [
        recurrence_features(copy.deepcopy(MODELS["ParaRNN"]).fit(frame))
        for frame in (in_polars(rows), rows)
    ]
    pd.testing.assert_frame_equal(frames[0], frames[1])


def test_a_backtest_gives_the_numbers_of_pandas(rows):
    """Its frame is of pandas, as `compare` reads it."""
    models = {name: MODELS[name] for name in ("ARMA", "SeasonalNaive")}
    frames = [backtest(models, frame, h=2, n_windows=2) for frame in (in_polars(rows), rows)]
    pd.testing.assert_frame_equal(frames[0], frames[1], check_dtype=False)
    accuracies = [compare(frame, n_boot=1).accuracy for frame in frames]
    pd.testing.assert_frame_equal(*accuracies)


BY_TIME = {
    "ParaRNN components": (lambda: ParaRNNForecaster(horizon=3), lambda model: model.components()),
    "ETS components": (ETS, lambda model: model.components()),
    "DCC covariances": (DCC, lambda model: model.covariances()),
    "DCC correlations": (DCC, lambda model: model.correlations()),
    "DCC predict_covariances": (DCC, lambda model: model.predict_covariances(3)),
    "DCC predict_correlations": (DCC, lambda model: model.predict_correlations(3)),
    "VARMA forecast_covariance": (VARMA, lambda model: model.forecast_covariance(3)),
}


class TestFramesByTime:
    """Frames with a row a time answer in the library that `predict` answers in."""

    @pytest.fixture(scope="class")
    def wide(self):
        """Return a wide pandas frame of two series, its dates in a column."""
        draw = np.random.default_rng(3)
        times = pd.date_range("2015-01-01", periods=60, freq="MS")
        values = 5 + draw.normal(size=(60, 2))
        return pd.DataFrame({"month": times, "u": values[:, 0], "v": values[:, 1]})

    @pytest.mark.few("False")
    @pytest.mark.parametrize("name", BY_TIME)
    @pytest.mark.parametrize("dates", [False, True])
    def test_wide(self, name, wide, dates):
        make, ask = BY_TIME[name]
        given = in_polars(wide)
        if dates:
            given = given.with_columns(pl.col("month").cast(pl.Date))
        model, there = make().fit(given), ask(make().fit(wide))
        found = ask(model)
        assert isinstance(found, pl.DataFrame)
        assert found.columns == list(there)
        assert found["month"].dtype == model.predict(1)["month"].dtype
        texts = [column for column in ("target", "first", "second") if column in there]
        assert [found[column].to_list() for column in texts] == [list(there[c]) for c in texts]
        numbers = there.drop(columns=["month", *texts])
        np.testing.assert_array_equal(found[list(numbers)].to_numpy(), numbers.to_numpy())

    @pytest.mark.parametrize("name", ["ParaRNN components", "ETS components"])
    def test_long(self, name, rows):
        make, ask = BY_TIME[name]
        same(ask(make().fit(in_polars(rows))), ask(make().fit(rows)))

    def test_tables_about_models_are_of_pandas(self, rows):
        forecaster = ParaRNNForecaster(horizon=3).fit(in_polars(rows))
        assert isinstance(forecaster.contributions(), pd.DataFrame)
        assert len(forecaster.plot_components(series="a"))
