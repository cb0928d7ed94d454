"""Forecasters inside scikit-learn: pipelines, searches, workers, and what a failure says."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tsrnn import ARMA, GARCH, ParaRNNForecaster, backtest
from tsrnn.baselines import Drift
from tsrnn.tuning import PanelTimeSeriesSplit

SMALL = {"hidden_size": 4, "n_layers": 1, "max_epochs": 1, "refit": False, "random_state": 0}


@pytest.fixture(scope="module")
def sales():
    """Return two positive monthly columns with a season."""
    draw, t = np.random.default_rng(7), np.arange(96)
    season = np.exp(0.3 * np.sin(2 * np.pi * t / 12))[:, None]
    values = season * np.exp(0.1 * draw.normal(size=(96, 2)).cumsum(0)) * [10.0, 300.0]
    index = pd.date_range("2015-01-01", periods=96, freq="MS")
    return pd.DataFrame(values, index, columns=["a", "b"])


@pytest.fixture(scope="module")
def long(sales):
    frame = sales.reset_index(names="ds").melt("ds", var_name="unique_id", value_name="y")
    return frame[["unique_id", "ds", "y"]]


def with_calendar(frame):
    """Columns that follow from the time: known ahead."""
    angle = 2 * np.pi * frame.index.month / 12
    return frame.assign(sin=np.sin(angle), cos=np.cos(angle))


def network(**changes):
    return ParaRNNForecaster(**SMALL | changes)


class TestPipeline:
    def test_a_step_that_adds_calendar_columns(self, sales):
        model = ARMA(order=(1, 0), target=["a", "b"], known_ahead=["sin", "cos"])
        pipeline = make_pipeline(FunctionTransformer(with_calendar), model).fit(sales[:-6])
        ahead = with_calendar(sales[-6:])[["sin", "cos"]]
        forecast = pipeline.predict(sales[:-6], h=6, X_future=ahead)
        direct = clone(model).fit(with_calendar(sales[:-6])).predict(6, X_future=ahead)
        np.testing.assert_allclose(forecast, direct, rtol=1e-6)

    def test_in_a_backtest(self, sales):
        pipeline = make_pipeline(FunctionTransformer(np.log), ARMA(order=(1, 0)))
        frame = backtest({"log": pipeline}, sales, h=2, n_windows=2)
        direct = ARMA(order=(1, 0)).fit(np.log(sales[:-2])).predict(2)
        last = frame[frame["cutoff"] == sales.index[-3]]
        np.testing.assert_allclose(last["log"], direct.to_numpy().T.ravel(), rtol=1e-6)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_are_passed_on_whatever_steps_give(self, long, library):
        double = FunctionTransformer(lambda frame: frame.assign(y=2 * frame["y"]))
        if library == "polars":
            double = FunctionTransformer(lambda frame: frame.with_columns(y=2 * pl.col("y")))
            long = pl.DataFrame(long.to_dict("list"))
        pipeline = make_pipeline(double, network()).set_output(transform=library)
        forecast = pipeline.fit(long).predict(long, h=3, level=[80])
        alone = network().fit(double.func(long)).predict(3, level=[80])
        assert type(forecast) is type(long)
        np.testing.assert_allclose(
            forecast[forecast.columns[2:]].to_numpy(),
            alone[alone.columns[2:]].to_numpy(),
            rtol=1e-6,
        )

    def test_nested_arguments(self):
        pipeline = Pipeline([("log", FunctionTransformer(np.log)), ("model", ARMA())])
        pipeline.set_params(model__order=(2, 0), model__trend="n")
        assert clone(pipeline).get_params()["model__order"] == (2, 0)
        with pytest.raises(ValueError, match="Invalid parameter 'lags' for estimator ARMA"):
            pipeline.set_params(model__lags=2)

    def test_a_pipeline_goes_through_pickle_after_a_fit(self, sales):
        pipeline = make_pipeline(FunctionTransformer(np.log), network()).fit(sales)
        again = pickle.loads(pickle.dumps(pipeline))
        pd.testing.assert_frame_equal(again.predict(sales, h=3), pipeline.predict(sales, h=3))


class TestSearches:
    def test_a_grid_over_a_pipeline_has_the_scores_of_fits_to_the_parts(self, sales):
        pipeline = make_pipeline(FunctionTransformer(np.log), ARMA())
        grid = {"arma__order": [(1, 0), (0, 1, 1)]}
        cv = TimeSeriesSplit(2, test_size=6)
        search = GridSearchCV(pipeline, grid, cv=cv, error_score="raise").fit(sales)
        logs = np.log(sales)
        for i, order in enumerate(grid["arma__order"]):
            for split, (train, test) in enumerate(cv.split(sales)):
                score = ARMA(order=order).fit(logs.iloc[train]).score(logs.iloc[test])
                found = search.cv_results_[f"split{split}_test_score"][i]
                assert found == pytest.approx(score, rel=1e-9)
        best = search.best_params_["arma__order"]
        direct = ARMA(order=best).fit(logs).predict(4)
        np.testing.assert_allclose(search.best_estimator_.predict(sales, h=4), direct, rtol=1e-6)
        assert len(search.predict(sales)) == search.best_estimator_[-1].horizon_

    def test_a_random_search(self, sales):
        search = RandomizedSearchCV(
            network(),
            {"learning_rate": [0.001, 0.01, 0.1], "cell": ["rnn", "gru"]},
            n_iter=2,
            cv=TimeSeriesSplit(2, test_size=6),
            random_state=0,
            error_score="raise",
        ).fit(sales["a"].to_frame())
        scores = search.cv_results_["mean_test_score"]
        assert np.isfinite(scores).all()
        assert search.best_score_ == scores.max()
        assert search.best_estimator_.cell == search.best_params_["cell"]

    def test_cross_validation_of_a_long_frame_by_time(self, long):
        cv = PanelTimeSeriesSplit(2, h=4)
        scores = cross_val_score(GARCH(random_state=0), long, cv=cv, error_score="raise")
        by_hand = [
            GARCH(random_state=0).fit(long.iloc[train]).score(long.iloc[test])
            for train, test in cv.split(long)
        ]
        np.testing.assert_allclose(scores, by_hand, rtol=1e-9)

    def test_splits_by_position_of_a_long_frame_are_refused_by_the_forecaster(self, long):
        with pytest.raises(ValueError, match="new rows must belong to series that are known"):
            cross_val_score(Drift(), long, cv=TimeSeriesSplit(2), error_score="raise")

    def test_a_search_that_fails_says_why(self, sales):
        search = GridSearchCV(
            ARMA(), {"trend": ["constant", "linear"]}, cv=TimeSeriesSplit(2, test_size=6)
        )
        with pytest.raises(ValueError, match="trend must be one of .* got 'constant'"):
            search.fit(sales)

    def test_a_candidate_that_fails_is_warned_of_and_not_chosen(self, sales):
        search = GridSearchCV(
            ARMA(order=(1, 0)), {"trend": ["constant", "n"]}, cv=TimeSeriesSplit(2, test_size=6)
        )
        with pytest.warns(FitFailedWarning, match="trend must be one of .* got 'constant'"):
            search.fit(sales)
        assert search.best_params_ == {"trend": "n"}
        assert np.isnan(search.cv_results_["mean_test_score"][0])


@pytest.mark.slow
def test_searches_in_workers_find_the_same(sales):
    search = GridSearchCV(
        network(), {"learning_rate": [0.001, 0.01]}, cv=TimeSeriesSplit(2, test_size=6)
    )
    alone = clone(search).fit(sales).cv_results_["mean_test_score"]
    with joblib.parallel_config(n_jobs=2):
        together = clone(search).fit(sales).cv_results_["mean_test_score"]
    np.testing.assert_allclose(together, alone, rtol=1e-6)
