"""Suggestions, objectives and splits of `tsrnn.tuning`, with Optuna and scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tsrnn import (
    ARMA,
    GARCH,
    VARMA,
    LEMForecaster,
    LRUForecaster,
    NewtonForecaster,
    ParaRNNForecaster,
    backtest,
    compare,
)
from tsrnn.baselines import Naive
from tsrnn.kernels import Cell
from tsrnn.tuning import (
    Choice,
    Integer,
    Order,
    PanelTimeSeriesSplit,
    Real,
    default_space,
    objective,
    suggest,
)

optuna = pytest.importorskip("optuna", reason="studies are of optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

SMALL = {"hidden_size": 4, "n_layers": 1, "max_epochs": 1, "refit": False, "random_state": 0}
FORECASTERS = [
    ARMA(),
    VARMA(),
    GARCH(),
    ParaRNNForecaster(horizon=6),
    LEMForecaster(),
    LRUForecaster(),
    NewtonForecaster(),
    ParaRNNForecaster(block_size=5),
    LRUForecaster(r_max=0.2),
]


@pytest.fixture(scope="module")
def autoregression():
    """Return an AR(3) of which an ARMA(1, 1), the default, forecasts badly."""
    draw, y = np.random.default_rng(1), np.zeros(240)
    for t in range(3, 240):
        y[t] = 0.9 * y[t - 3] + draw.normal()
    return pd.Series(y, pd.date_range("2000-01-01", periods=240, freq="MS"), name="y")


@pytest.fixture(scope="module")
def panel():
    """Return a long frame, rows by time, of series that begin and end at different times."""
    times = pd.date_range("2020-01-01", periods=40, freq="D")
    draw = np.random.default_rng(2)
    spans = {"a": slice(0, 40), "b": slice(5, 40), "short": slice(0, 34), "late": slice(36, 40)}
    parts = [
        pd.DataFrame({"unique_id": name, "ds": times[span]}).assign(
            y=lambda part: draw.normal(size=len(part))
        )
        for name, span in spans.items()
    ]
    return pd.concat(parts).sort_values(["ds", "unique_id"], ignore_index=True)


def study_of(function, n_trials, seed=0, **settings):
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), **settings)
    study.optimize(function, n_trials=n_trials)
    return study


class TestSuggest:
    @pytest.mark.few("GARCH", "ParaRNNForecaster0", "NewtonForecaster", "LEMForecaster")
    @pytest.mark.parametrize("forecaster", FORECASTERS, ids=lambda f: type(f).__name__)
    def test_every_default_space_gives_arguments_that_can_be_fitted(self, forecaster):
        draw = np.random.default_rng(0)
        y = pd.DataFrame(draw.normal(size=(60, 2)), columns=["a", "b"])
        quick = {"max_epochs": 1, "refit": False, "n_layers": 1, "freq": 1}
        if getattr(forecaster, "block_size", None) is None:
            quick["hidden_size"] = 16
        known = forecaster.get_params()
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
        for _ in range(2):
            made = suggest(study.ask(), forecaster)
            assert type(made) is type(forecaster)
            made.set_params(**{name: quick[name] for name in quick if name in known})
            assert np.isfinite(made.fit(y).predict(2).to_numpy()).all()

    def test_leaves_the_forecaster_as_it_is(self):
        forecaster = ARMA()
        made = suggest(
            optuna.trial.FixedTrial({"order.p": 3, "order.d": 0, "order.q": 0}), forecaster
        )
        assert made.order == (3, 0, 0)
        assert forecaster.order == (1, 1)

    def test_arguments_given_stay(self):
        space = default_space(ParaRNNForecaster(hidden_size=6, cell="gru", learning_rate=0.1))
        assert set(space) == {"n_layers", "weight_decay", "block_size"}
        assert space["block_size"] == Choice((1, 2))
        assert default_space(ParaRNNForecaster(block_size=8))["hidden_size"].values[0] == 16
        assert default_space(ParaRNNForecaster(block_size=32))["hidden_size"] == Choice(
            (32, 64, 128)
        )
        odd = default_space(ParaRNNForecaster(block_size=5))["hidden_size"]
        assert odd == Choice((20, 35, 65, 130))
        assert default_space(LRUForecaster(r_max=0.2))["r_min"] == Real(0.0, 0.2)
        assert default_space(LRUForecaster(r_max=0.95))["r_min"] == Real(0.0, 0.9)
        assert "cell" not in default_space(ParaRNNForecaster(nonlinearity="relu"))
        assert "order" in default_space(ARMA(order=(1, 1)))
        assert "order" not in default_space(ARMA(order=(2, 1)))

    def test_the_cell_is_searched_where_an_option_goes_with_all(self):
        space = default_space(NewtonForecaster(n_heads=2))
        assert space["cell"] == Choice(("newton-gru", "newton-lstm"))
        assert "cell" not in default_space(ParaRNNForecaster(n_heads=2))

    def test_layer_widths_are_multiples_of_blocks_and_heads(self):
        own = Cell("own", n=3, m=1, p=1, step=lambda h, u, w: tuple(w[0] * x + u[0] for x in h))
        space = default_space(ParaRNNForecaster(cell=own))
        assert "block_size" not in space
        assert space["hidden_size"] == Choice((18, 33, 66, 129))
        assert default_space(NewtonForecaster(n_heads=5))["hidden_size"].values[0] == 20
        both = default_space(ParaRNNForecaster(cell="attention", n_heads=3))
        assert both["block_size"] == Choice((1, 2, 4, 8))
        assert both["hidden_size"] == Choice((24, 48, 72, 144))

    def test_input_sizes_are_multiples_of_the_horizon(self):
        assert "input_size" not in default_space(ParaRNNForecaster())
        sizes = default_space(ParaRNNForecaster(horizon=12))["input_size"]
        assert sizes == Choice((None, 12, 24, 48))
        assert default_space(ParaRNNForecaster(horizon=np.int64(12)))["input_size"] == sizes

    def test_changes_of_the_space(self):
        trial = optuna.trial.FixedTrial({"trend": "n", "likelihood": "conditional"})
        changes = {"order": None, "trend": ["n", "c"], "likelihood": Choice(("conditional",))}
        made = suggest(trial, ARMA(), changes)
        assert (made.order, made.trend, made.likelihood) == ((1, 1), "n", "conditional")

    def test_of_each_distribution(self):
        trial = optuna.trial.FixedTrial({"a": 3, "b": 0.5, "c.p": 1, "c.q": 2})
        drawn = [
            own.suggest(trial, name)
            for name, own in {
                "a": Integer(1, 4, log=True),
                "b": Real(0.1, 1.0),
                "c": Order((("p", 0, 3), ("q", 0, 3))),
            }.items()
        ]
        assert drawn == [3, 0.5, (1, 2)]

    def test_of_a_pipeline(self):
        pipeline = make_pipeline(FunctionTransformer(np.log), ARMA())
        values = {"arma__order.p": 2, "arma__order.d": 0, "arma__order.q": 0}
        made = suggest(optuna.trial.FixedTrial(values), pipeline)
        assert made.steps[-1][1].order == (2, 0, 0)

    @pytest.mark.parametrize(
        ("forecaster", "space", "message"),
        [
            (Naive(), None, "no default space for Naive"),
            (ARMA(order=(2, 0)), None, "nothing to search"),
            (ARMA(), {"order": None}, "nothing to search"),
            (ARMA(), {"lags": [1, 2]}, "Invalid parameter 'lags'"),
        ],
    )
    def test_refusals(self, forecaster, space, message):
        trial = optuna.trial.FixedTrial({"lags": 1, "order.p": 1, "order.d": 0, "order.q": 0})
        with pytest.raises(ValueError, match=message):
            suggest(trial, forecaster, space)

    def test_of_what_is_no_distribution(self):
        with pytest.raises(TypeError, match=r"space\['trend'\] must be a Choice"):
            suggest(None, ARMA(), {"trend": "n"})


class TestObjective:
    def test_is_the_measure_of_the_backtest(self, autoregression):
        arguments = {"h": 3, "n_windows": 4, "step_size": 2}
        trial = optuna.trial.FixedTrial({"order.p": 2, "order.d": 0, "order.q": 0})
        accuracy = compare(backtest(ARMA(order=(2, 0, 0)), autoregression, **arguments)).accuracy
        for metric in ("MAE", "MASE", "RMSSE"):
            error = objective(ARMA(), autoregression, **arguments, metric=metric)
            assert error(trial) == pytest.approx(accuracy.loc["ARMA", metric])

    def test_of_a_panel_with_intervals_and_of_a_function(self, panel):
        long = panel[panel["unique_id"].isin(["a", "b"])]
        trial = optuna.trial.FixedTrial({"order.p": 1, "order.d": 0, "order.q": 0})
        model = ARMA(order=(1, 0, 0))
        frame = backtest(model, long, h=2, n_windows=2, level=80)
        error = objective(ARMA(), long, 2, 2, "Winkler-80", level=80)
        assert error(trial) == pytest.approx(compare(frame).accuracy.loc["ARMA", "Winkler-80"])
        largest = objective(ARMA(), pl.DataFrame(long.to_dict("list")), 2, 2, largest_error)
        expected = (frame["y"] - frame["ARMA"]).abs().max()
        assert largest(trial) == pytest.approx(expected)

    def test_a_study_finds_better_than_the_default(self, autoregression):
        space = {"order": Order((("p", 0, 3), ("q", 0, 1)))}
        function = objective(ARMA(), autoregression[:-60], h=3, n_windows=2, space=space)
        study = study_of(function, n_trials=8)
        assert study.best_value <= function(optuna.trial.FixedTrial({"order.p": 1, "order.q": 1}))
        models = {"default": ARMA(), "best": suggest(study.best_trial, ARMA(), space)}
        later = backtest(models, autoregression, h=3, n_windows=20, refit=False)
        accuracy = compare(later, n_boot=1).accuracy["RMSE"]
        assert accuracy["best"] < accuracy["default"]

    def test_the_same_seed_finds_the_same(self, autoregression):
        function = objective(ParaRNNForecaster(**SMALL), autoregression, 3, 1)
        values = [[t.value for t in study_of(function, 2).trials] for _ in range(2)]
        assert values[0] == values[1]
        assert len(set(values[0])) > 1

    @pytest.mark.slow
    def test_errors_are_reported_after_each_window_and_prune(self, autoregression):
        class AfterTwo(optuna.pruners.BasePruner):
            def prune(self, study, trial):
                return trial.last_step == 1

        function = objective(ARMA(), autoregression, h=3, n_windows=4)
        (trial,) = study_of(function, 1, pruner=AfterTwo()).trials
        assert trial.state == optuna.trial.TrialState.PRUNED
        order = tuple(trial.params[f"order.{part}"] for part in "pdq")
        frame = backtest(ARMA(order=order), autoregression, h=3, n_windows=4)
        early = frame[frame["cutoff"].isin(sorted(frame["cutoff"].unique())[:2])]
        error = (early["y"] - early["ARMA"]).abs()
        assert list(trial.intermediate_values) == [0, 1]
        assert trial.intermediate_values[1] == pytest.approx(error.mean())

    def test_a_forecaster_that_fails_says_why_and_a_study_can_go_on(self, autoregression):
        function = objective(ARMA(), autoregression, h=3, space={"trend": ["nonesuch", "c"]})
        values = {"order.p": 1, "order.d": 0, "order.q": 0, "trend": "nonesuch"}
        with pytest.raises(RuntimeError, match="trend must be one of"):
            function(optuna.trial.FixedTrial(values))
        study = optuna.create_study()
        study.enqueue_trial(values)
        study.enqueue_trial(values | {"trend": "c"})
        study.optimize(function, n_trials=2, catch=RuntimeError)
        assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE"]

    def test_a_series_without_a_forecast_is_a_failure(self):
        good = np.random.default_rng(0).normal(size=40)
        frame = pd.DataFrame({"good": good, "short": np.where(np.arange(40) < 35, np.nan, good)})
        function = objective(ARMA(missing="keep"), frame, h=2, n_windows=1)
        trial = optuna.trial.FixedTrial({"order.p": 1, "order.d": 0, "order.q": 0})
        with (
            pytest.warns(UserWarning, match="could not be fitted"),
            pytest.raises(RuntimeError, match="1 series have no forecast, first 'short'"),
        ):
            function(trial)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"metric": "coverage-80"}, "metric must be one of"),
            ({"n_windows": 0}, "n_windows must be a positive integer"),
            ({"n_windows": 100}, "need more than 297 rows"),
            ({"space": {"order": None}}, "nothing to search"),
        ],
    )
    def test_refusals_before_the_first_trial(self, autoregression, changes, message):
        with pytest.raises(ValueError, match=message):
            objective(ARMA(), autoregression, 3, **changes)

    def test_a_measure_of_intervals_needs_levels(self, autoregression):
        trial = optuna.trial.FixedTrial({"order.p": 1, "order.d": 0, "order.q": 0})
        with pytest.raises(ValueError, match="need level="):
            objective(ARMA(), autoregression, 3, metric="CRPS")(trial)


def largest_error(frame):
    return (frame["y"] - frame["model"]).abs().max()


class TestPanelSplit:
    def test_is_that_of_times_in_a_single_series(self, panel):
        alone = panel[panel["unique_id"] == "a"]
        found = PanelTimeSeriesSplit(3, h=4).split(alone)
        for (train, test), (past, ahead) in zip(
            found, TimeSeriesSplit(3, test_size=4).split(alone), strict=True
        ):
            np.testing.assert_array_equal(train, past)
            np.testing.assert_array_equal(test, ahead)

    def test_cutoffs_are_the_same_for_all_series(self, panel):
        last = panel["ds"].max()
        for k, (train, test) in enumerate(PanelTimeSeriesSplit(2, h=3).split(panel)):
            cutoff = last - pd.Timedelta(days=3 * (2 - k))
            expected = panel[
                (panel["ds"] > cutoff) & (panel["ds"] <= cutoff + pd.Timedelta(days=3))
            ]
            assert list(train) == list(np.flatnonzero(panel["ds"] <= cutoff))
            known = panel.iloc[train]["unique_id"].unique()
            assert list(test) == list(expected.index[expected["unique_id"].isin(known)])

    def test_series_on_one_side_alone_are_not_tested(self, panel):
        first, second = (
            set(panel.iloc[test]["unique_id"])
            for _, test in PanelTimeSeriesSplit(2, h=3).split(panel)
        )
        assert first == {"a", "b"}
        assert second == {"a", "b", "late"}

    def test_in_a_search(self, panel):
        long = panel[panel["unique_id"] != "late"]
        search = GridSearchCV(
            ARMA(),
            {"order": [(1, 0), (0, 1)]},
            cv=PanelTimeSeriesSplit(2, h=3),
            error_score="raise",
        ).fit(long)
        cut = panel["ds"].max() - pd.Timedelta(days=3)
        known = long[long["ds"] <= cut]
        ahead = long[(long["ds"] > cut)]
        score = ARMA(order=(1, 0)).fit(known).score(ahead)
        assert search.cv_results_["split1_test_score"][0] == pytest.approx(score)

    def test_polars_and_other_names(self, panel):
        frame = pl.DataFrame(panel.to_dict("list")).rename({"unique_id": "shop", "ds": "day"})
        own = PanelTimeSeriesSplit(2, h=3, id_col="shop", time_col="day").split(frame)
        for ours, theirs in zip(own, PanelTimeSeriesSplit(2, h=3).split(panel), strict=True):
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)

    def test_refusals(self, panel):
        with pytest.raises(ValueError, match="need at least 41 times; there are 40"):
            next(PanelTimeSeriesSplit(10, h=4).split(panel))
        with pytest.raises(ValueError, match=r"missing are \['unique_id', 'ds'\]"):
            next(PanelTimeSeriesSplit().split(panel[["y"]]))
        with pytest.raises(ValueError, match="h must be a positive integer"):
            PanelTimeSeriesSplit(h=0)

    @pytest.mark.parametrize("frames", [pd.DataFrame, pl.DataFrame])
    @pytest.mark.parametrize(("name", "lost"), [("ds", pd.NaT), ("ds", None), ("unique_id", None)])
    def test_missing_ids_and_times_are_refused(self, frames, name, lost):
        days = pd.date_range("2024-01-01", periods=4)
        columns = {"unique_id": ["a"] * 4, "ds": days.to_pydatetime().tolist()}
        columns[name][2] = None if frames is pl.DataFrame else lost
        with pytest.raises(ValueError, match=rf"'{name}' must have no missing .* in row 2"):
            next(PanelTimeSeriesSplit(1).split(frames(columns)))

    def test_a_split_without_rows_to_test_on_is_refused(self):
        frame = pd.DataFrame({"unique_id": ["a"] * 6 + ["b"] * 3, "ds": range(9)})
        with pytest.raises(ValueError, match="split 1 of 3 has no rows to test on"):
            next(PanelTimeSeriesSplit(3).split(frame))

    def test_is_shown_by_its_arguments(self):
        assert repr(PanelTimeSeriesSplit(2, h=3)).startswith("PanelTimeSeriesSplit(h=3")


def test_time_steps_are_searched_above_the_least():
    space = default_space(LEMForecaster(6, min_step=0.5))
    assert (space["dt"].low, space["dt"].high) == (0.5, 1.0)
    assert "dt" not in default_space(LEMForecaster(6, min_step=1.0))


def test_blocks_of_several_sizes_have_widths_that_they_divide():
    for sizes in ((2, 2, 4), np.array([2, 2, 4])):
        space = default_space(ParaRNNForecaster(6, block_size=sizes))
        assert all(width % 8 == 0 for width in space["hidden_size"].values)
