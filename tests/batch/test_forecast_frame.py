"""The pure function on one frame: forecasts of the model itself, problems beside them."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tsrnn import ARMA, VARMA
from tsrnn.baselines import Naive
from tsrnn.batch import forecast_batches, forecast_frame
from tsrnn.data import to_polars


def test_a_model_of_each_series_forecasts_as_if_fitted_to_it_alone(panel, arma):
    answer = forecast_frame(panel, arma, h=4, level=80)
    assert not answer.problems
    for name, own in panel.groupby("unique_id"):
        alone = ARMA(order=(1, 0)).fit(own).predict(4, level=80).reset_index(drop=True)
        mine = answer.forecasts[answer.forecasts["unique_id"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, alone, rtol=1e-9)


def test_a_fitted_network_forecasts_as_it_does(panel, network):
    answer = forecast_frame(panel, network, level=[80])
    pd.testing.assert_frame_equal(answer.forecasts, network.predict(panel, level=[80]))


def test_series_at_fault_are_named_with_the_reason_and_stop_no_other(broken, arma):
    answer = forecast_frame(broken, arma)
    told = {problem.unique_id: problem for problem in answer.problems}
    assert set(told) == {"s5", "s7", "s11"}
    assert all(problem.kind == "error" for problem in told.values())
    assert "missing values" in told["s5"].message
    assert "the series has 3" in told["s7"].message
    assert "2024-01-08" in told["s11"].message
    rest = broken[~broken["unique_id"].isin(told)]
    expected = ARMA(order=(1, 0), horizon=3).fit(rest).predict()
    pd.testing.assert_frame_equal(answer.forecasts.reset_index(drop=True), expected, rtol=1e-12)


def test_inserted_and_interpolated_rows_are_among_the_problems(broken):
    """As warnings on the series together, which no process shows."""
    model = ARMA(order=(1, 0), horizon=3, likelihood="conditional")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = forecast_frame(broken[broken["unique_id"] != "s7"], model)
        alone = forecast_frame(broken[broken["unique_id"] == "s11"], model)
    told = [(problem.unique_id, problem.kind) for problem in answer.problems]
    assert told == [(None, "warning"), (None, "warning")]
    inserted, interpolated = (problem.message for problem in answer.problems)
    assert inserted.startswith("1 row was missing at freq='D' and inserted without values")
    assert "'s11'" in inserted
    assert "2 missing values are interpolated linearly" in interpolated
    assert answer.forecasts["unique_id"].nunique() == 23
    assert [problem.unique_id for problem in alone.problems] == ["s11", "s11"]


def test_where_none_can_be_forecast_there_are_problems_only(panel, arma):
    answer = forecast_frame(panel.assign(y=np.nan), arma)
    assert answer.forecasts is None
    assert [problem.unique_id for problem in answer.problems] == list(panel["unique_id"].unique())


@pytest.mark.slow
def test_warnings_are_problems_and_are_not_shown(panel):
    model = ARMA(order=(2, 2), trend="n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = forecast_frame(panel.head(40 * 6), model, h=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loose = ~model.fit(panel.head(40 * 6)).converged_
    warned = [problem.unique_id for problem in answer.problems if problem.kind == "warning"]
    assert warned == list(loose.index[loose])


def test_polars_comes_back_as_polars(panel, arma):
    made = forecast_frame(to_polars(panel), arma).forecasts
    assert isinstance(made, pl.DataFrame)
    expected = forecast_frame(panel, arma).forecasts
    np.testing.assert_array_equal(made["ARMA"].to_numpy(), expected["ARMA"].to_numpy())


def test_columns_known_ahead_go_with_their_series(with_x):
    past, future = with_x
    model = ARMA(order=(1, 0), known_ahead="x", horizon=3)
    answer = forecast_frame(past, model, X_future=future[future["unique_id"] != "s2"])
    assert [problem.unique_id for problem in answer.problems] == ["s2"]
    assert "X_future" in answer.problems[0].message
    others = past[past["unique_id"] != "s2"]
    expected = model.fit(others).predict(X_future=future[future["unique_id"] != "s2"])
    pd.testing.assert_frame_equal(answer.forecasts.reset_index(drop=True), expected, rtol=1e-12)


def test_several_targets(panel):
    frame = panel.assign(z=np.random.default_rng(4).normal(size=len(panel)))
    answer = forecast_frame(frame, VARMA(order=(1, 0), target=["y", "z"]), h=2)
    assert list(answer.forecasts.columns) == ["unique_id", "ds", "y", "z"]
    assert len(answer.forecasts) == 48


def test_columns_that_the_model_does_not_read_are_left_alone(panel, arma):
    answer = forecast_frame(panel.assign(note="text"), arma)
    assert len(answer.forecasts) == 72


def test_it_can_be_sent_to_a_worker(panel, arma):
    function, model = pickle.loads(pickle.dumps((forecast_frame, arma)))
    pd.testing.assert_frame_equal(
        function(panel, model).forecasts, forecast_frame(panel, arma).forecasts
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": ARMA}, "model must be a forecaster"),
        ({"h": 0}, "h must be"),
        ({"level": 0.8}, "level is in percent"),
        ({"frame": [1, 2]}, "long pandas or polars DataFrame"),
    ],
)
def test_arguments_are_refused_at_once(panel, change, message):
    asked = {"frame": panel, "model": Naive(), "h": 2} | change
    with pytest.raises((TypeError, ValueError), match=message):
        forecast_frame(**asked)


def test_a_network_that_is_not_fitted_is_refused(panel, network):
    with pytest.raises(ValueError, match=r"Fit it once, to a sample.*or .*per_series=True"):
        forecast_frame(panel, clone(network))


def test_networks_by_series_are_fitted_to_the_series(panel, network, tmp_path):
    """In whatever partition; a fitted one forecasts those it was fitted to, and no others."""
    few = panel[panel["unique_id"].isin(["s0", "s1", "s2", "s3"])]
    model = clone(network).set_params(per_series=True)
    run = forecast_batches(few, model, level=80, out=tmp_path, rows_per_batch=80)
    assert (run.n_series, run.n_failed) == (4, 0)
    fitted = clone(model).fit(few)
    expected = fitted.predict(level=80)
    forecasts = run.forecasts().sort_values(["unique_id", "ds"], ignore_index=True)
    np.testing.assert_allclose(forecasts.iloc[:, 2:], expected.iloc[:, 2:], rtol=1e-4)
    answer = forecast_frame(few.replace({"unique_id": {"s1": "new"}}), fitted)
    assert answer.forecasts["unique_id"].unique().tolist() == ["s0", "s2", "s3"]
    ((name, kind, message),) = answer.problems
    assert (name, kind) == ("new", "error")
    assert "has a network for each series fitted to; 1 are new" in message


def test_a_short_series_does_not_stop_the_networks_of_the_others(panel, network):
    few = panel[panel["unique_id"].isin(["s0", "s1", "s2"])]
    few = few.drop(index=few.index[few["unique_id"] == "s1"][5:])
    model = clone(network).set_params(per_series=True)
    answer = forecast_frame(few, model)
    assert answer.forecasts["unique_id"].unique().tolist() == ["s0", "s2"]
    (problem,) = answer.problems
    assert problem.unique_id == "s1"
    assert "rows" in problem.message


def test_networks_by_series_need_a_horizon(panel, network):
    with pytest.raises(ValueError, match=r"each partition has another. Construct with horizon="):
        forecast_frame(panel, clone(network).set_params(per_series=True, horizon=None), h=3)


def test_wide_frames_and_missing_ids_are_refused(panel, arma):
    with pytest.raises(ValueError, match="melt a wide frame"):
        forecast_frame(panel[["ds", "y"]], arma)
    with pytest.raises(ValueError, match="40 ids are missing"):
        forecast_frame(panel.assign(unique_id=panel["unique_id"].where(panel.index >= 40)), arma)


def same(frame):
    return frame


def test_a_pipeline_is_fitted_to_each_series_and_is_a_run_to_go_on(panel, arma, tmp_path):
    model = make_pipeline(FunctionTransformer(same), arma)
    made = forecast_frame(panel, model).forecasts
    pd.testing.assert_frame_equal(made, forecast_frame(panel, arma).forecasts)
    for resumed in (0, 1):
        assert forecast_batches(panel, model, out=tmp_path).n_resumed == resumed


class Forgetful(Naive):
    """Forecasts the first series only."""

    def predict(self, X=None, h=None, level=None, X_future=None):
        return super().predict(X, h, level, X_future).head(h)


def test_a_series_without_a_row_is_an_error(panel):
    answer = forecast_frame(panel, Forgetful(), h=2)
    assert list(answer.forecasts["unique_id"]) == ["s0", "s0"]
    assert {problem.message for problem in answer.problems} == {"there is no forecast"}
    assert len(answer.problems) == 23


class Homeless(Naive):
    """Needs what is not installed."""

    def fit(self, df, y=None):
        raise ImportError("pip install it")


def test_a_missing_library_is_no_problem_of_a_series(panel):
    with pytest.raises(ImportError, match="pip install it"):
        forecast_frame(panel, Homeless(), h=2)
