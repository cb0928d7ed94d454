"""What every linear forecaster does with frames, units, tests and files, on a toy model."""

import pickle
import tracemalloc
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tsrnn.contract import read_file, target_scales


@pytest.fixture(scope="module")
def fitted(normal, draws):
    return normal().fit(draws)


@pytest.fixture(scope="module")
def panel_fit(normal, draws_panel):
    return normal(horizon=4).fit(draws_panel)


@pytest.fixture(scope="module")
def wide(draws):
    return pd.DataFrame({"u": draws.to_numpy(), "v": draws.to_numpy()[::-1] * 10}, draws.index)


class TestFrames:
    def test_of_one_series(self, fitted, draws):
        assert fitted.params_.index.tolist() == ["y"]
        assert fitted.params_.columns.tolist() == ["mu", "sigma2"]
        values = draws.to_numpy()
        np.testing.assert_allclose(fitted.params_.loc["y"], [values.mean(), values.var()])
        oracle = sm.OLS(values, np.ones(120)).fit()
        assert fitted.loglik_["y"] == pytest.approx(oracle.llf)
        assert fitted.bse_.loc["y", "mu"] == pytest.approx(np.sqrt(values.var() / 120))
        assert fitted.tvalues_.loc["y", "mu"] == pytest.approx(
            fitted.params_.loc["y", "mu"] / fitted.bse_.loc["y", "mu"]
        )
        assert fitted.nobs_["y"] == 120
        assert fitted.converged_["y"]

    def test_of_an_unnamed_series(self, normal, draws):
        assert normal().fit(draws.rename(None)).units_.tolist() == ["y"]

    def test_of_a_long_frame(self, panel_fit, normal, draws_panel):
        assert panel_fit.units_.tolist() == ["a", "b", "c"]
        assert panel_fit.units_.name == "unique_id"
        for name, rows in draws_panel.groupby("unique_id"):
            alone = normal().fit(rows.set_index("ds")["y"].asfreq("MS"))
            for frame in ("params_", "bse_", "pvalues_"):
                np.testing.assert_array_equal(
                    getattr(panel_fit, frame).loc[name], getattr(alone, frame).iloc[0]
                )
            for series in ("aic_", "bic_", "hqic_", "loglik_"):
                assert getattr(panel_fit, series)[name] == getattr(alone, series).iloc[0]

    def test_of_a_wide_frame(self, normal, wide):
        model = normal().fit(wide)
        assert model.units_.tolist() == ["u", "v"]
        assert model.units_.name is None
        assert model.params_.loc["v", "mu"] == pytest.approx(10 * model.params_.loc["u", "mu"])

    def test_of_several_targets_of_several_series(self, normal, draws_panel):
        frame = draws_panel.assign(z=-2 * draws_panel["y"])
        model = normal(target=["y", "z"]).fit(frame)
        assert model.units_.names == ["unique_id", "target"]
        mu = model.params_["mu"]
        assert mu["b", "z"] == pytest.approx(-2 * mu["b", "y"])
        assert model.conf_int().index.names == ["unique_id", "target", "parameter"]

    def test_of_polars(self, normal, draws_panel, panel_fit):
        columns = {name: draws_panel[name].tolist() for name in draws_panel}
        model = normal().fit(pl.DataFrame(columns))
        pd.testing.assert_frame_equal(model.params_, panel_fit.params_)
        assert isinstance(model.residuals(), pl.DataFrame)

    def test_of_a_multivariate_model(self, normal_with, wide, draws_panel):
        Together = normal_with(
            multivariate=True,
            values_of_units=lambda self, panel: [
                panel.series(i).ravel() for i in range(panel.n_series)
            ],
        )
        alone = Together().fit(wide)
        assert alone.units_.tolist() == [0]
        several = Together(target=["y", "z"]).fit(draws_panel.assign(z=1.5 * draws_panel["y"]))
        assert several.units_.tolist() == ["a", "b", "c"]
        assert several.params_.loc["b", "mu"] == pytest.approx(
            1.25 * draws_panel.loc[draws_panel.unique_id == "b", "y"].mean()
        )

    def test_come_after_fit(self, normal):
        for name in ("params_", "bse_", "aic_", "units_", "messages_"):
            assert not hasattr(normal(), name)
        for call in (
            lambda m: m.summary(),
            lambda m: m.conf_int(),
            lambda m: m.residuals(),
            lambda m: m.diagnostics(),
            lambda m: m.lr_test(m),
        ):
            with pytest.raises(NotFittedError):
                call(normal())


class TestInference:
    def test_conf_int(self, panel_fit):
        table = panel_fit.conf_int(level=90, cov_type="robust")
        assert table.columns.tolist() == ["lower", "upper"]
        middle = table.mean(axis=1)
        np.testing.assert_allclose(middle.to_numpy(), panel_fit.params_.to_numpy().ravel())
        half = (table["upper"] - table["lower"])["b", "mu"] / 2
        error = np.sqrt(panel_fit.cov_params("b", "robust").loc["mu", "mu"])
        assert half == pytest.approx(1.6448536269514722 * error)

    def test_cov_params_of_all_are_stacked(self, panel_fit):
        table = panel_fit.cov_params()
        assert table.shape == (6, 2)
        pd.testing.assert_frame_equal(table.loc["c"], panel_fit.cov_params("c"), check_names=False)

    def test_wald_by_name_and_by_matrix(self, panel_fit):
        by_name = panel_fit.wald_test("mu", 3.0)
        by_matrix = panel_fit.wald_test([[1.0, 0.0]], [3.0])
        pd.testing.assert_frame_equal(by_name, by_matrix)
        z = (panel_fit.params_["mu"] - 3.0) / panel_fit.bse_["mu"]
        np.testing.assert_allclose(by_name["statistic"], z**2)
        with pytest.raises(ValueError, match=r"must name some of \('mu', 'sigma2'\); got \['nu'\]"):
            panel_fit.wald_test(["mu", "nu"])

    @pytest.mark.parametrize(
        "restriction",
        [
            pd.DataFrame([[0.0, 1.0]], columns=["sigma2", "mu"]),
            pd.DataFrame([[1.0, 0.0]]),
            pd.Series([0.0, 1.0], ["sigma2", "mu"]),
            pd.Series(["mu"]),
        ],
        ids=["frame by name", "frame in order", "row by name", "names"],
    )
    def test_wald_of_a_frame(self, panel_fit, restriction):
        expected = panel_fit.wald_test("mu", 3.0)
        pd.testing.assert_frame_equal(panel_fit.wald_test(restriction, 3.0), expected)

    def test_likelihood_ratio(self, fitted, normal, draws):
        smaller = normal(mean=2.5).fit(draws)
        made = fitted.lr_test(smaller)
        spread = ((draws - 2.5) ** 2).mean() / ((draws - draws.mean()) ** 2).mean()
        assert made.loc["y", "statistic"] == pytest.approx(120 * np.log(spread))
        assert made.loc["y", "df"] == 1

    def test_ratios_that_are_all_negative_are_an_error(self, panel_fit, normal, draws_panel):
        larger, smaller = copy(panel_fit), normal(mean=2.5).fit(draws_panel)
        estimates = panel_fit.estimates_
        params, loglik = estimates.params.copy(), smaller.estimates_.loglik - 1.0
        params[1], loglik[1] = np.nan, np.nan  # could not be fitted
        worse = replace(estimates, params=params, loglik=loglik)
        larger.fitted_ = replace(panel_fit.fitted_, estimates=worse)
        with pytest.raises(ValueError, match="of unit 'a' is -2, below zero"):
            larger.lr_test(smaller)

    def test_likelihood_ratio_refuses(self, fitted, normal, normal_with, draws):
        smaller = normal(mean=2.5)
        with pytest.raises(ValueError, match="must have more parameters"):
            smaller.fit(draws).lr_test(fitted)
        with pytest.raises(ValueError, match="same series"):
            fitted.lr_test(smaller.fit(draws.rename("x")))
        with pytest.raises(ValueError, match="same values"):
            fitted.lr_test(smaller.fit(2 * draws))

        Other = normal_with(conventions={"Likelihood": "conditional"})
        with pytest.raises(ValueError, match="'exact'.*'conditional'"):
            fitted.lr_test(Other(mean=2.5).fit(draws))

    def test_likelihood_ratio_needs_the_same_rows(self, fitted, normal_with, draws):
        Shorter = normal_with(values_of_units=lambda self, panel: [panel.values[1:, 0]])
        with pytest.raises(ValueError, match="1 of 1 units, first 'y', the one has 120 .* 119"):
            fitted.lr_test(Shorter(mean=2.5).fit(draws))
        for other in ("normal", None):
            with pytest.raises(TypeError, match="must be a fitted model of tsrnn.linear; got a"):
                fitted.lr_test(other)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([],), r"names of parameters, some of \('mu', 'sigma2'\).*got \[\]"),
            ((3,), "got 3"),
            ((["mu", "sigma2"], [1.0, 2.0, 3.0]), r"one number or 2.*got shape \(3,\)"),
            (([[1.0]],), r"shape \(J, 2\).*got \(1, 1\)"),
            ((["mu", "mu"],), "must be independent; their rank is 1"),
            ((pd.DataFrame({"mu": [1.0], "nu": 0.0}),), r"each parameter, .*got \['mu', 'nu'\]"),
        ],
    )
    def test_wald_refuses(self, panel_fit, arguments, message):
        with pytest.raises(ValueError, match=message):
            panel_fit.wald_test(*arguments)

    def test_units_of_two_levels_are_named_whole(self, normal, draws_panel):
        frame = draws_panel.assign(z=-2 * draws_panel["y"])
        model = normal(target=["y", "z"]).fit(frame)
        for unit in ("b", ["b", "z"], ("b", "q"), ("b", "z", "z")):
            with pytest.raises(ValueError, match=r"such as \('a', 'y'\); got "):
                model.summary(unit)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda model: model.summary("z"), "one of the 3 fitted, such as 'a'; got 'z'"),
            (lambda model: model.conf_int(cov_type="hc0"), "cov_type must be one of"),
            (lambda model: model.summary(cov_type="hc0"), "cov_type must be one of"),
            (lambda m: m.cov_params(cov_type="information"), "needs the expected information"),
            (lambda model: model.conf_int(level=0.95), "level is in percent"),
            (lambda model: model.conf_int(level=[80, 95]), "level must be one number"),
        ],
    )
    def test_unknown_units_kinds_and_levels(self, panel_fit, call, message):
        with pytest.raises(ValueError, match=message):
            call(panel_fit)


class TestUnitsThatFail:
    def test_cost_only_themselves(self, normal, draws_panel, panel_fit):
        frame = draws_panel.copy()
        frame.loc[frame.unique_id == "b", "y"] = 7.0
        with pytest.warns(UserWarning, match="1 of 3 units could not be fitted, 'b'.*not vary"):
            model = normal().fit(frame)
        assert model.params_.loc["b"].isna().all()
        assert not model.converged_["b"]
        assert model.messages_["b"] == ("the series does not vary.",)
        for name in ("params_", "bse_"):
            pd.testing.assert_frame_equal(
                getattr(model, name).drop("b"), getattr(panel_fit, name).drop("b")
            )
        forecast = model.predict(2).set_index("unique_id")["Normal"]
        assert forecast.isna().groupby(level=0).all().to_dict() == {"a": 0, "b": 1, "c": 0}
        assert np.isnan(model.aic_["b"])
        assert model.diagnostics()["ljung_box"].isna().tolist() == [False, True, False]
        assert "1 unit: the series does not vary." in str(model.summary())
        assert "does not vary" in str(model.summary("b"))

    def test_are_an_error_if_there_is_no_other(self, normal, draws):
        model = normal().fit(draws)
        before = model.params_
        with pytest.raises(ValueError, match="no series could be fitted; 'y': the series does not"):
            model.fit(0 * draws)
        pd.testing.assert_frame_equal(model.params_, before)

    def test_are_refused_before_anything_of_many_parameters_is_allocated(self, normal_with, draws):
        Wide = normal_with(names=tuple(f"p{i}" for i in range(500)))
        frame = pd.DataFrame(dict.fromkeys((f"s{i}" for i in range(20)), 1.0), draws.index)
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=r"could be fitted; first 's0', 's1', 's2': the"):
                Wide().fit(frame)
            assert tracemalloc.get_traced_memory()[1] < 500**2 * 8
        finally:
            tracemalloc.stop()

    def test_of_which_many_are_counted(self, normal, draws):
        names = [f"s{i}" for i in range(9)]
        frame = pd.DataFrame(dict.fromkeys(names, 1.0), draws.index).assign(good=draws)
        with pytest.warns(UserWarning, match=r"9 of 10 units .* first 's0', 's1', 's2'\. The"):
            normal().fit(frame)

    def test_not_converged(self, normal, normal_with, draws_panel):
        def infer(self, sample, optimum):
            estimates, constants = normal.family_class.infer(self, sample, optimum)
            return replace(estimates, converged=sample.units == 0), constants

        Stopped = normal_with(infer=infer)
        with pytest.warns(UserWarning, match="2 of 3 units was not maximised to tolerance, 'b'"):
            model = Stopped().fit(draws_panel)
        assert model.converged_.tolist() == [True, False, False]


class TestForecaster:
    def test_intervals_and_horizons(self, panel_fit):
        forecast = panel_fit.predict(level=80)
        assert len(forecast) == 12
        half = (forecast["Normal-hi-80"] - forecast["Normal-lo-80"]) / 2
        sigma = np.sqrt(panel_fit.params_["sigma2"]).repeat(4)
        np.testing.assert_allclose(half, 1.2815515655446004 * sigma)

    def test_default_horizon_is_of_the_frequency(self, fitted):
        assert len(fitted.predict()) == 18

    def test_new_series(self, panel_fit, fitted, normal, draws, draws_panel):
        alone = normal().fit(draws_panel[draws_panel.unique_id == "a"])
        other = draws_panel[draws_panel.unique_id == "b"]
        assert (alone.predict(other, h=2)["Normal"] == alone.params_["mu"].iloc[0]).all()
        known = panel_fit.predict(other, h=2)["Normal"]
        assert (known == panel_fit.params_.loc["b", "mu"]).all()
        with pytest.raises(ValueError, match="for each series it was fitted to; .*: 'new'"):
            panel_fit.predict(other.assign(unique_id="new"), h=2)

    def test_update(self, normal, draws_panel):
        groups = draws_panel.groupby("unique_id").cumcount(ascending=False)
        late = draws_panel[groups < 5]
        model = normal().fit(draws_panel[groups >= 5])
        model.update(late[late.unique_id != "a"])
        assert model.state_.arrays["n"].tolist() == [115, 80, 101]
        ends = draws_panel.groupby("unique_id")["ds"].max()
        ends["a"] = late["ds"][late.unique_id == "a"].min() - pd.offsets.MonthBegin()
        first = model.predict(1).set_index("unique_id")["ds"] - pd.offsets.MonthBegin()
        assert (first == ends).all()
        assert len(model.residuals()) == len(draws_panel) - 15

    def test_exogenous_columns_are_refused(self, normal, draws_panel):
        with pytest.raises(ValueError, match=r"Normal takes no exogenous columns; got \['x'\]"):
            normal().fit(draws_panel.assign(x=1.0))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"horizon": 0}, "horizon must be a positive integer"),
            ({"cov_type": "white"}, "cov_type must be one of"),
            ({"cov_type": "information"}, "needs the expected information"),
            ({"verbose": -1}, "verbose must be"),
            ({"random_state": -1}, "random_state must"),
            ({"missing": "drop"}, "missing must be one of"),
        ],
    )
    def test_arguments_are_checked_by_fit(self, normal, draws, arguments, message):
        with pytest.raises(ValueError, match=message):
            normal(**arguments).fit(draws)

    def test_what_was_fitted_is_compared_as_one(self, normal, draws_panel, panel_fit):
        again = normal(horizon=4).fit(draws_panel)
        for name in ("fitted_", "state_", "estimates_"):
            assert getattr(panel_fit, name) == getattr(panel_fit, name)
            assert getattr(panel_fit, name) != getattr(again, name)
        assert len({panel_fit.fitted_, panel_fit.state_, panel_fit.summary("a")}) == 3

    @pytest.mark.parametrize("name", ["params_", "loglik_", "converged_", "nobs_"])
    def test_frames_are_copies(self, panel_fit, name):
        values = getattr(panel_fit, name).to_numpy()
        own = getattr(panel_fit.estimates_, {"nobs_": "n_obs"}.get(name, name[:-1]))
        assert not np.shares_memory(values, own)

    def test_is_cloned_and_pickled(self, panel_fit):
        assert clone(panel_fit).get_params() == panel_fit.get_params()
        again = pickle.loads(pickle.dumps(panel_fit))
        pd.testing.assert_frame_equal(again.params_, panel_fit.params_)
        pd.testing.assert_frame_equal(again.residuals(), panel_fit.residuals())


class TestFilter:
    def test_of_the_estimates_gives_their_likelihood(self, panel_fit, normal, draws_panel):
        given = normal().filter(draws_panel, panel_fit.params_)
        pd.testing.assert_series_equal(given.loglik_, panel_fit.loglik_)
        pd.testing.assert_frame_equal(given.params_, panel_fit.params_)
        pd.testing.assert_frame_equal(given.predict(3), panel_fit.predict(3))
        assert given.bse_.isna().all(axis=None)
        summary = given.summary("a")
        assert "given, not estimated" in str(summary)
        assert "Standard errors:" not in str(summary)
        assert not {"Iterations", "Converged", "Gradient norm"} & summary.fit.keys()

    @pytest.mark.parametrize("params", [{"mu": 1.0, "sigma2": 4.0}, [1.0, 4.0]])
    def test_of_one_set_for_all(self, normal, draws_panel, params):
        model = normal().filter(draws_panel, params)
        assert (model.params_ == [1.0, 4.0]).all(axis=None)
        assert (model.predict(1)["Normal"] == 1.0).all()

    def test_params_are_found_by_name(self, panel_fit, normal, draws_panel):
        mixed = panel_fit.params_.iloc[::-1, ::-1]
        model = normal().filter(draws_panel, mixed)
        pd.testing.assert_frame_equal(model.params_, panel_fit.params_)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"mu": 1.0}, r"missing are \['sigma2'\], unknown are \[\]"),
            ({"mu": 1.0, "sigma2": 1.0, "nu": 5}, r"unknown are \['nu'\]"),
            ([1.0], r"must be 2 values.*got shape \(1,\)"),
            ([np.nan, 1.0], "params must be finite; those of 'a' are {'mu': nan, 'sigma2': 1.0}"),
            ("mu", "params must be numbers; got 'mu'"),
            ({"mu": "a", "sigma2": 1.0}, "params must be numbers"),
            (pd.DataFrame({"mu": [1.0], "sigma2": 1.0}, ["a"]), "missing is 'b'"),
        ],
    )
    def test_refuses(self, normal, draws_panel, params, message):
        model = normal()
        with pytest.raises(ValueError, match=message):
            model.filter(draws_panel, params)
        assert not hasattr(model, "state_")

    def test_that_fails_leaves_the_fit_before(self, normal, draws_panel, draws):
        model = normal().fit(draws)
        before = model.predict(2)
        with pytest.raises(ValueError, match="must be 2 values"):
            model.filter(draws_panel, [1.0])
        pd.testing.assert_series_equal(model.predict(2), before)


class TestInSample:
    def test_of_a_series(self, fitted, draws):
        residuals = fitted.residuals()
        pd.testing.assert_index_equal(residuals.index, draws.index)
        assert residuals.name == "y"
        pd.testing.assert_series_equal(residuals + fitted.fittedvalues(), draws)
        assert fitted.residuals(standardized=True).std(ddof=0) == pytest.approx(1.0)

    def test_of_a_long_frame(self, panel_fit, draws_panel):
        residuals, values = panel_fit.residuals(), panel_fit.fittedvalues()
        pd.testing.assert_frame_equal(
            residuals[["unique_id", "ds"]], draws_panel[["unique_id", "ds"]]
        )
        np.testing.assert_allclose(residuals["residual"] + values["fitted"], draws_panel["y"])

    def test_of_other_rows(self, panel_fit, draws_panel):
        rows = draws_panel[draws_panel.unique_id == "c"].head(10)
        whole = panel_fit.residuals()
        part = panel_fit.residuals(df=rows)["residual"]
        expected = whole[whole.unique_id == "c"]["residual"].head(10)
        np.testing.assert_array_equal(part, expected)

    def test_of_missing_values(self, normal, draws):
        gap = draws.copy()
        gap.iloc[[4, 60]] = np.nan
        model = normal(missing="keep").fit(gap)
        assert model.nobs_["y"] == 118
        assert model.residuals().isna().sum() == 2
        assert model.fittedvalues().notna().all()

    def test_scales_are_standard_deviations_of_what_is_there(self, normal, draws_panel):
        gap = draws_panel.copy()
        gap.loc[[3, 130], "y"] = np.nan
        panel = normal(missing="keep").fit(gap).fitted_.panel
        expected = gap.groupby("unique_id")["y"].std(ddof=0)
        np.testing.assert_allclose(target_scales(panel)[:, 0], expected)


class TestStorage:
    @pytest.fixture
    def through_file(self, tmp_path):
        def go(model):
            model.save(tmp_path / "m.tsrnn")
            return type(model)._restore(*read_file(tmp_path / "m.tsrnn"))

        return go

    @pytest.fixture
    def loaded(self, panel_fit, through_file):
        return through_file(panel_fit)

    def test_brings_everything_back_but_the_data(self, loaded, panel_fit, draws_panel):
        for name in ("params_", "bse_", "pvalues_"):
            pd.testing.assert_frame_equal(getattr(loaded, name), getattr(panel_fit, name))
        pd.testing.assert_series_equal(loaded.messages_, panel_fit.messages_)
        pd.testing.assert_frame_equal(loaded.predict(level=80), panel_fit.predict(level=80))
        pd.testing.assert_frame_equal(loaded.residuals(df=draws_panel), panel_fit.residuals())
        with pytest.raises(ValueError, match="does not hold the data"):
            loaded.residuals()

    def test_keeps_messages_by_unit(self, normal, draws_panel, through_file):
        model = normal().filter(draws_panel, [1.0, 4.0])
        estimates = replace(model.estimates_, messages=((), ("one", "two"), ("three",)))
        model.fitted_ = replace(model.fitted_, estimates=estimates)
        assert through_file(model).estimates_.messages == estimates.messages

    def test_summaries_lack_only_the_tests(self, loaded, panel_fit):
        summary = loaded.summary("b")
        assert summary.tests is None
        assert summary.model == panel_fit.summary("b").model
        assert summary.fit == panel_fit.summary("b").fit
