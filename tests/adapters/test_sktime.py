"""Forecasters of tsrnn inside sktime: its own checks, and the numbers of tsrnn."""

import copy
import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip(
    "sktime", reason="the adapter of sktime needs it; pandas 3.1 does not go with it"
)

from sktime.datasets import load_airline, load_longley
from sktime.forecasting.compose import ForecastByLevel, TransformedTargetForecaster
from sktime.forecasting.model_evaluation import evaluate
from sktime.forecasting.model_selection import ForecastingGridSearchCV
from sktime.split import ExpandingWindowSplitter
from sktime.transformations.series.boxcox import LogTransformer
from sktime.utils.estimator_checks import check_estimator

import tsrnn
import tsrnn.sktime as adapters
from tsrnn.baselines import Naive, SeasonalNaive
from tsrnn.sktime._adapter import ID, TIME

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
SMALL = {"hidden_size": 4, "n_layers": 1, "max_epochs": 1, "refit": False, "random_state": 0}
WHOLE = ["ParaRNNForecaster", "ARMA", "GARCH", "VARMA"]
# Of the classes that differ from those in their arguments alone.
OF_ARGUMENTS = [
    "test_constructor",
    "test_get_params",
    "test_set_params",
    "test_set_params_sklearn",
    "test_clone",
    "test_repr",
    "test_get_test_params",
    "test_get_test_params_coverage",
    "test_class_has_doctest_example",
    "test_valid_estimator_class_tags",
    "test_valid_estimator_tags",
    "test_random_tags",
    "test_predict_series_name_preserved",
    "test_update_predict_single",
]


@pytest.fixture(scope="module")
def airline():
    return load_airline()


@pytest.fixture(scope="module")
def panel():
    """Return a panel of two series of unequal scale, instances and time in the index."""
    draw = np.random.default_rng(3)
    index = pd.MultiIndex.from_product(
        [["a", "b"], pd.period_range("2010-01", periods=60, freq="M")], names=["shop", "month"]
    )
    return pd.DataFrame({"sales": draw.normal(size=120).cumsum() + 50.0}, index=index)


def long_of(panel):
    frame = panel.reset_index()
    return frame.rename(columns={"shop": "unique_id", "month": "ds", "sales": "y"})


def checked(name, subject, **chosen):
    """Results of sktime's checks, but for those that the class says it refuses."""
    refused = getattr(adapters, name).get_class_tag("tests:skip_by_name", None)
    return check_estimator(
        subject, raise_exceptions=True, verbose=False, tests_to_exclude=refused, **chosen
    )


class TestConformance:
    @pytest.mark.parametrize("name", WHOLE)
    def test_of_an_instance(self, name):
        assert len(checked(name, getattr(adapters, name).create_test_instance())) > 400

    @pytest.mark.parametrize("name", sorted(set(adapters.__all__) - set(WHOLE)))
    def test_of_the_arguments(self, name):
        subject = getattr(adapters, name)
        assert len(checked(name, subject, tests_to_run=OF_ARGUMENTS)) > 20

    @pytest.mark.slow
    @pytest.mark.parametrize("name", adapters.__all__)
    def test_of_the_class(self, name):
        assert len(checked(name, getattr(adapters, name))) > 800

    def test_what_is_refused_is_y_that_follows_from_x_without_error(self):
        X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["u", "v"])
        with pytest.raises(ValueError, match="there is no variance|without error"):
            adapters.VARMA(order=(1, 0)).fit(X.add_prefix("y_") + 10, X=X)


class TestDocstrings:
    @pytest.mark.parametrize("name", adapters.__all__)
    def test_their_examples_run(self, name):
        cls = getattr(adapters, name)
        (test,) = doctest.DocTestFinder(recurse=False).find(cls, name, globs={})
        assert doctest.DocTestRunner().run(test) == (0, len(test.examples))

    @pytest.mark.parametrize("name", adapters.__all__)
    def test_they_tell_every_argument_and_no_other(self, name):
        cls = getattr(adapters, name)
        section = inspect.cleandoc(cls.__doc__).split("Parameters\n----------\n")[1]
        section = re.split("Attributes\n|Examples\n", section)[0]
        heads = [line.split(" : ")[0] for line in section.splitlines() if line[:1].strip()]
        told = {part for head in heads for part in head.split(", ")}
        assert told == set(cls.get_param_names())


class TestArguments:
    @pytest.mark.parametrize("name", sorted(set(adapters.__all__) - {"TsrnnForecaster"}))
    def test_are_those_of_tsrnn_but_for_the_frame(self, name):
        own, theirs = getattr(adapters, name)().get_params(), getattr(tsrnn, name)().get_params()
        assert own == {
            key: value
            for key, value in theirs.items()
            if key not in ("target", "known_ahead", "static", "id_col", "time_col")
        }

    def test_unknown_ones_are_refused(self):
        with pytest.raises(TypeError, match="hidden"):
            adapters.ParaRNNForecaster(hidden=3)

    def test_tags_follow_the_forecaster(self):
        def tags(forecaster):
            made = adapters.TsrnnForecaster(forecaster)
            names = ("exogenous", "insample", "missing_values")
            return [made.get_tag(f"capability:{name}") for name in names]

        assert tags(tsrnn.ARMA(missing="keep")) == [True, True, True]
        assert tags(tsrnn.GARCH()) == [False, True, True]
        assert tags(tsrnn.ParaRNNForecaster()) == [True, False, True]
        assert tags(Naive()) == [False, False, True]

    def test_of_the_inner_forecaster_are_reached(self):
        made = adapters.TsrnnForecaster(tsrnn.ARMA()).set_params(forecaster__order=(2, 0))
        assert made.clone().forecaster.order == (2, 0)


EVERY = [
    adapters.TsrnnForecaster(SeasonalNaive(season_length=12)),
    *(getattr(adapters, name)(order=(1, 0)) for name in ("ARMA", "VARMA")),
    adapters.GARCH(order=(1, 0), intervals="analytic"),
    *(
        getattr(adapters, name)(**SMALL, intervals="gaussian")
        for name in ("ParaRNNForecaster", "LEMForecaster", "LRUForecaster", "NewtonForecaster")
    ),
]


@pytest.mark.parametrize("made", EVERY, ids=lambda made: type(made).__name__)
class TestCopies:
    """A fit does not know what becomes of the arguments, or of a copy."""

    @staticmethod
    def forecasts(forecaster):
        fh = range(1, 4)
        return pd.concat([forecaster.predict(fh=fh), forecaster.predict_interval(fh=fh)], axis=1)

    def test_arguments_are_read_at_the_fit(self, made, airline):
        fitted = made.clone().fit(airline[:-6])
        expected = self.forecasts(fitted)
        later = self.forecasts(
            fitted.clone().fit(airline[:-6]).update(airline, update_params=False)
        )
        for name in fitted.get_params(deep=False):
            setattr(fitted, name, object())
        pd.testing.assert_frame_equal(self.forecasts(fitted), expected)
        fitted.update(airline, update_params=False)
        pd.testing.assert_frame_equal(self.forecasts(fitted), later)

    @pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
    def test_a_copy_that_goes_on_leaves_the_original(self, made, airline, way):
        fitted = made.clone().fit(airline[:-6])
        for one, other in ((fitted, way(fitted)), (way(fitted), fitted)):
            expected = self.forecasts(one)
            other.update(airline, update_params=False)
            pd.testing.assert_frame_equal(self.forecasts(one), expected)


class TestNumbers:
    """What tsrnn gives by itself."""

    @pytest.mark.parametrize(
        "name_and_arguments",
        [("ARMA", {"order": (2, 1)}), ("GARCH", {"random_state": 0}), ("ParaRNNForecaster", SMALL)],
    )
    def test_of_a_series(self, airline, name_and_arguments):
        name, arguments = name_and_arguments
        found = getattr(adapters, name)(**arguments).fit(airline)
        expected = getattr(tsrnn, name)(**arguments).fit(airline)
        ahead = expected.predict(6, level=[80])
        point = found.predict(fh=range(1, 7))
        assert list(point.index) == list(ahead.index)
        assert point.name == airline.name
        np.testing.assert_allclose(point, ahead.iloc[:, 0], rtol=1e-6)
        interval = found.predict_interval(fh=range(1, 7), coverage=0.8)
        np.testing.assert_allclose(interval, ahead.iloc[:, 1:], rtol=1e-6)
        quantiles = found.predict_quantiles(fh=range(1, 7), alpha=[0.1, 0.5, 0.9])
        np.testing.assert_allclose(quantiles, ahead.iloc[:, [1, 0, 2]], rtol=1e-6)

    def test_any_steps_absolute_or_relative(self, airline):
        found = adapters.ARMA(order=(1, 0)).fit(airline)
        whole = found.predict(fh=range(1, 13))
        pd.testing.assert_series_equal(found.predict(fh=[2, 7]), whole.iloc[[1, 6]])
        pd.testing.assert_series_equal(found.predict(fh=whole.index[[1, 6]]), whole.iloc[[1, 6]])

    def test_in_sample_is_one_step_ahead(self, airline):
        found = adapters.ARMA(order=(1, 1)).fit(airline)
        fitted = tsrnn.ARMA(order=(1, 1)).fit(airline).fittedvalues()
        both = found.predict(fh=range(-3, 3))
        np.testing.assert_allclose(both.iloc[:4], fitted.iloc[-4:], rtol=1e-6)
        np.testing.assert_allclose(both.iloc[4:], found.predict(fh=[1, 2]), rtol=1e-9)
        residuals = found.predict_residuals(airline)
        np.testing.assert_allclose(residuals, airline - fitted, rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("name", ["ParaRNNForecaster", "ARMA"])
    def test_of_a_panel(self, panel, name):
        arguments = SMALL if name == "ParaRNNForecaster" else {}
        found = getattr(adapters, name)(**arguments).fit(panel)
        expected = getattr(tsrnn, name)(**arguments).fit(long_of(panel)).predict(4)
        forecast = found.predict(fh=range(1, 5))
        assert forecast.index.names == panel.index.names
        assert list(forecast.index.get_level_values("shop")) == list("aaaabbbb")
        np.testing.assert_allclose(forecast["sales"], expected.iloc[:, 2], rtol=1e-6)

    def test_a_network_of_each_series(self, panel):
        made = ForecastByLevel(adapters.ParaRNNForecaster(**SMALL), groupby="local")
        forecast = made.fit(panel).predict(fh=[1, 2])
        alone = tsrnn.ParaRNNForecaster(**SMALL).fit(panel.loc["b"]).predict(2)
        np.testing.assert_allclose(forecast.loc["b"], alone, rtol=1e-6)

    def test_networks_by_series(self, panel, airline):
        """A series is an instance, whose columns share its network."""
        arguments = SMALL | {"per_series": True, "horizon": 4}
        found = adapters.ParaRNNForecaster(**arguments).fit(panel)
        expected = tsrnn.ParaRNNForecaster(**arguments).fit(long_of(panel)).predict(4, level=80)
        forecast = found.predict(fh=range(1, 5))
        np.testing.assert_allclose(forecast["sales"], expected.iloc[:, 2], rtol=1e-6)
        interval = found.predict_interval(fh=range(1, 5), coverage=0.8)
        np.testing.assert_allclose(interval, expected.iloc[:, 3:], rtol=1e-6)
        alone = adapters.ParaRNNForecaster(**SMALL, horizon=4).fit(panel.loc["b"])
        np.testing.assert_allclose(forecast.loc["b"], alone.predict(fh=range(1, 5)), rtol=1e-3)
        both = pd.DataFrame({"a": airline, "b": airline[::-1].to_numpy()})
        shared = adapters.ParaRNNForecaster(**SMALL, horizon=4).fit(both).predict(fh=[1, 2])
        by_series = adapters.ParaRNNForecaster(**arguments).fit(both).predict(fh=[1, 2])
        np.testing.assert_allclose(by_series, shared, rtol=1e-6)

    def test_with_exogenous_columns(self):
        y, X = load_longley()
        X = X[["UNEMP", "POP"]]
        found = adapters.ARMA(order=(1, 0)).fit(y[:-3], X=X[:-3])
        expected = tsrnn.ARMA(order=(1, 0), target=y.name, known_ahead=["UNEMP", "POP"]).fit(
            pd.concat([y, X], axis=1)[:-3]
        )
        forecast = found.predict(fh=[1, 3], X=X[-3:])
        ahead = expected.predict(3, X_future=X[-3:])
        np.testing.assert_allclose(forecast, ahead.iloc[[0, 2], 0], rtol=1e-6)

    def test_x_may_have_the_names_of_y(self, airline):
        y, X = airline.rename("v").to_frame(), np.log(airline).rename("v").to_frame()
        found = adapters.ARMA(order=(1, 0)).fit(y[:-2], X=X[:-2])
        renamed = adapters.ARMA(order=(1, 0)).fit(y[:-2], X=X[:-2].rename(columns={"v": "x"}))
        np.testing.assert_allclose(
            found.predict(fh=[1, 2], X=X[-2:]),
            renamed.predict(fh=[1, 2], X=X[-2:].rename(columns={"v": "x"})),
        )

    def test_series_that_end_earlier_are_forecast_to_the_same_time(self, panel):
        cut = panel.drop([("a", period) for period in panel.loc["a"].index[-3:]])
        found = adapters.TsrnnForecaster(tsrnn.ARMA(order=(1, 0))).fit(cut)
        forecast = found.predict(fh=[1, 2])
        alone = tsrnn.ARMA(order=(1, 0)).fit(cut.loc["a"]).predict(5)
        np.testing.assert_allclose(forecast.loc["a"], alone.iloc[-2:], rtol=1e-5)
        assert list(forecast.loc["a"].index) == list(forecast.loc["b"].index)

    def test_varma_of_one_column_is_arma(self, airline):
        one = adapters.VARMA(order=(1, 1)).fit(airline)
        expected = tsrnn.ARMA(order=(1, 1), trend="c").fit(airline).predict(3)
        np.testing.assert_allclose(one.predict(fh=[1, 2, 3]), expected, rtol=1e-6)

    def test_missing_values_where_the_forecaster_takes_them(self, airline):
        gap = airline.astype(float).copy()
        gap.iloc[20] = np.nan
        found = adapters.ARMA(order=(1, 0), missing="keep").fit(gap)
        expected = tsrnn.ARMA(order=(1, 0), missing="keep").fit(gap).predict(2)
        np.testing.assert_allclose(found.predict(fh=[1, 2]), expected, rtol=1e-6)
        with pytest.raises(ValueError, match="missing"):
            adapters.ARMA(order=(1, 0), missing="error").fit(gap)


class TestUpdate:
    def test_carries_the_state_on(self, airline):
        found = adapters.ParaRNNForecaster(**SMALL).fit(airline[:-10])
        expected = tsrnn.ParaRNNForecaster(**SMALL).fit(airline[:-10]).update(airline[-10:])
        found.update(airline[-10:], update_params=False)
        np.testing.assert_allclose(found.predict(fh=[1, 2]), expected.predict(2), rtol=1e-6)

    def test_or_fits_again(self, airline):
        found = adapters.ARMA(order=(1, 0)).fit(airline[:-10]).update(airline[-10:])
        expected = adapters.ARMA(order=(1, 0)).fit(airline)
        np.testing.assert_allclose(found.predict(fh=[1]), expected.predict(fh=[1]), rtol=1e-9)

    def test_known_rows_may_come_again_unchanged(self, airline):
        found = adapters.ARMA(order=(1, 0)).fit(airline[:-5])
        found.update(airline[-20:], update_params=False)
        expected = tsrnn.ARMA(order=(1, 0)).fit(airline[:-5]).update(airline[-5:]).predict(1)
        np.testing.assert_allclose(found.predict(fh=[1]), expected, rtol=1e-6)
        with pytest.raises(ValueError, match="20 rows that are known came with other values"):
            found.update(airline[-20:] + 1, update_params=False)

    @pytest.mark.parametrize("made", [adapters.ARMA(order=(1, 0)), adapters.GARCH(mean="ar")])
    def test_backtests_look_at_nothing_after_the_cutoff(self, airline, made):
        """Windows within the rows fitted to see those before them alone."""
        found = made.fit(airline)
        cv = ExpandingWindowSplitter(initial_window=130, step_length=5, fh=[1, 2])
        forecast = found.update_predict(airline, cv, update_params=False)
        fitted = found.forecaster_
        past = airline[:135].to_frame()
        past = past.reset_index(names=TIME).assign(**{ID: airline.name})
        expected = fitted.predict(past, h=2)
        of_cutoff = forecast[airline.index[134]].dropna()
        assert list(of_cutoff.index) == list(airline.index[135:137])
        np.testing.assert_allclose(of_cutoff, expected.iloc[:, 2], rtol=1e-6)


class TestInsideSktime:
    def test_pipeline_search_and_evaluation(self, airline):
        cv = ExpandingWindowSplitter(initial_window=120, step_length=12, fh=[1, 2, 3])
        pipeline = TransformedTargetForecaster(
            [("log", LogTransformer()), ("model", adapters.ARMA(order=(1, 0)))]
        )
        search = ForecastingGridSearchCV(
            pipeline, cv=cv, param_grid={"model__order": [(1, 0), (3, 0)]}, error_score="raise"
        ).fit(airline)
        assert search.best_params_["model__order"] in [(1, 0), (3, 0)]
        table = evaluate(adapters.TsrnnForecaster(SeasonalNaive()), cv, airline)
        season = airline.shift(12)
        first = slice(120, 123)
        error = (abs(airline - season) / airline)[first].mean()
        assert table.filter(like="test_").iloc[0, 0] == pytest.approx(error)

    def test_the_block_of_the_page_prints_what_stands_there(self, capsys):
        text = PAGE.read_text(encoding="utf-8")
        code = text.split("```py\n")[1].split("```")[0]
        printed = text.split("```py\n")[1].split("```text\n")[1].split("```")[0]
        exec(compile(code, str(PAGE), "exec"), {})
        assert capsys.readouterr().out.split() == printed.split()


class TestRefusals:
    def test_of_fits_without_the_exogenous_columns_of_the_future(self, airline):
        X = pd.DataFrame({"x": np.arange(144.0)}, index=airline.index)
        found = adapters.ParaRNNForecaster(**SMALL).fit(airline, X=X)
        with pytest.raises(ValueError, match=r"fitted with X, columns \['x'\]; give X"):
            found.predict(fh=[1])
        with pytest.raises(ValueError, match="fitted without X"):
            adapters.ARMA().fit(airline).predict(fh=[1], X=X)

    def test_of_exogenous_rows_that_are_missing(self, airline):
        X = pd.DataFrame({"x": np.arange(144.0)}, index=airline.index)
        with pytest.raises(ValueError, match="4 are missing, the first at 1949-03"):
            adapters.ARMA().fit(airline, X=X.drop(airline.index[2:6]))

    def test_of_steps_that_are_none(self):
        y = pd.Series(np.random.default_rng(0).normal(size=30), index=range(0, 60, 2))
        with pytest.raises(ValueError, match="there is none at 59"):
            adapters.ARMA(order=(1, 0)).fit(y).predict(fh=[1])


@pytest.mark.parametrize("first", [202401, 20240101, 20241])
def test_dates_in_digits_are_not_counted(first):
    y = pd.Series(np.arange(4.0), pd.Index(range(first, first + 4)))
    with pytest.raises(ValueError, match="PeriodIndex or a DatetimeIndex; .* give freq=1"):
        adapters.TsrnnForecaster(Naive()).fit(y)
    counted = adapters.TsrnnForecaster(Naive(freq=1)).fit(y).predict(fh=[1, 2])
    assert counted.index.tolist() == [first + 4, first + 5]
