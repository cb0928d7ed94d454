"""What all fitted baselines do with their units: failures, messages, processes, files, words."""

import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from statsmodels.tsa.statespace import sarimax
from statsmodels.tsa.statespace.structural import UnobservedComponents as DirectComponents
from threadpoolctl import threadpool_info, threadpool_limits

import tsrnn
from tsrnn.baselines import (
    SARIMAX,
    VAR,
    VARMAX,
    VECM,
    ArchModel,
    StatsmodelsAutoARIMA,
    StatsmodelsETS,
    StatsmodelsTheta,
    UnobservedComponents,
)
from tsrnn.contract import IntervalWarning

ONE_TARGET = {
    "SARIMAX": SARIMAX(trend="c"),
    "StatsmodelsETS": StatsmodelsETS(trend="add"),
    "StatsmodelsTheta": StatsmodelsTheta(),
    "UnobservedComponents": UnobservedComponents(max_iter=300),
    "StatsmodelsAutoARIMA": StatsmodelsAutoARIMA(1, max_p=1, max_q=1, d=1),
    "ArchModel": ArchModel(mean="AR", lags=1, rescale=True),
}
TWO_TARGETS = {"VAR": VAR(), "VARMAX": VARMAX(), "VECM": VECM(rank=1)}


@pytest.fixture(params=ONE_TARGET)
def model(request):
    return ONE_TARGET[request.param]


@pytest.fixture(params=ONE_TARGET | TWO_TARGETS)
def any_model(request, wave, pair):
    """Return a model and data for it."""
    name = request.param
    return (ONE_TARGET | TWO_TARGETS)[name], pair if name in TWO_TARGETS else wave


@pytest.fixture(scope="module")
def flawed(panel):
    """Return the panel with "b" too short."""
    return panel[(panel["unique_id"] != "b") | (panel.groupby("unique_id").cumcount() < 3)]


@pytest.fixture(scope="module")
def gappy(wave):
    return wave.where(np.arange(96) % 11 != 4)


class TestFailures:
    @pytest.mark.few("SARIMAX", "ArchModel", "StatsmodelsTheta")
    def test_are_named_and_the_others_are_as_if_alone(self, model, flawed):
        words = r"could not fit 1 of 3 units, 'b': .* needs at least \d+ rows; there are 3"
        with pytest.warns(UserWarning, match=words):
            model.fit(flawed)
        forecast = model.predict(5, level=80)
        columns = [name for name in forecast if name.startswith(model.column_name)]
        assert forecast.loc[forecast["unique_id"] == "b", columns].isna().all(axis=None)
        assert model.params_.loc["b"].isna().all()
        assert not model.converged_["b"]
        for name in "ac":
            alone = model.fit(flawed[flawed["unique_id"] == name]).predict(5, level=80)
            own = forecast[forecast["unique_id"] == name].reset_index(drop=True)
            pd.testing.assert_frame_equal(own, alone, rtol=1e-10)

    def test_of_all_is_an_error(self, model, flawed):
        with pytest.raises(ValueError, match="could fit no series: 'b' needs at least"):
            model.fit(flawed[flawed["unique_id"] == "b"])

    def test_a_constant_has_no_variance_to_model(self, panel):
        flat = panel.assign(y=panel["y"].where(panel["unique_id"] != "b", 7.0))
        with pytest.warns(UserWarning, match="'b': the first is constant, 7. Drop it"):
            model = ArchModel().fit(flat)
        assert model.params_.loc["b"].isna().all()

    def test_a_library_that_raises_is_quoted(self, wave):
        both = pd.DataFrame({"u": wave, "v": wave - 60})
        with pytest.warns(UserWarning, match="'v': the first cannot be fitted: ValueError: endog"):
            forecast = StatsmodelsETS("mul").fit(both).predict(3)
        assert forecast["v"].isna().all()
        assert np.isfinite(forecast["u"]).all()

    def test_saved_ones_stay_failed(self, flawed, tmp_path):
        with pytest.warns(UserWarning, match="could not fit"):
            model = SARIMAX(trend="c").fit(flawed)
        model.save(tmp_path / "model")
        loaded = tsrnn.load(tmp_path / "model")
        pd.testing.assert_frame_equal(loaded.predict(3), model.predict(3))
        pd.testing.assert_frame_equal(loaded.params_, model.params_)
        pd.testing.assert_series_equal(loaded.messages_, model.messages_)
        assert str(loaded.summary("b")) == str(model.summary("b"))

    def test_a_constant_goes_on(self, panel, model, tmp_path):
        """Libraries have no likelihood of it: its level is forecast, and that of later rows."""
        if isinstance(model, ArchModel):
            pytest.skip("it has no variance to model")
        flat = panel.assign(y=panel["y"].where(panel["unique_id"] != "b", 7.0))
        flat = flat[flat["unique_id"] != "c"]
        model.fit(flat)
        model.save(tmp_path / "model")
        for each in (model, tsrnn.load(tmp_path / "model")):
            with pytest.warns(IntervalWarning, match="'b' have no width"):
                forecast = each.predict(5, level=80).set_index("unique_id")
            assert (forecast.loc["b"].iloc[:, 1:] == 7).all(axis=None)
            assert "7 is forecast" in str(each.summary("b"))
            assert each.spec_["b"] == {"constant": True}
        alone = model.fit(flat[flat["unique_id"] == "a"]).predict(5)
        np.testing.assert_allclose(forecast.loc["a"].iloc[:, 1], alone.iloc[:, 2], rtol=1e-10)

    def test_data_too_short_to_forecast_after(self, pair):
        model = VAR(4).fit(pair)
        with pytest.raises(ValueError, match="forecasts need 4 rows; there are 2"):
            model.predict(pair.iloc[:2], h=3)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_an_answer_that_is_not_finite_is_one(self, panel, monkeypatch, bad):
        model = SARIMAX(trend="c").fit(panel)
        of_units = type(model.fitted_.model)
        ahead = of_units.ahead

        def flawed(self, unit, *arguments):
            found = ahead(self, unit, *arguments)
            return found._replace(mean=found.mean * bad) if len(unit.rows.y) == 72 else found

        monkeypatch.setattr(of_units, "ahead", flawed)
        with pytest.warns(UserWarning, match="cannot forecast 1 of 3 units, 'b'.*not finite"):
            forecast = model.predict(4, level=80)
        lost = forecast["unique_id"] == "b"
        assert forecast.loc[lost, ["SARIMAX", "SARIMAX-lo-80"]].isna().all(axis=None)
        assert forecast[~lost].notna().all(axis=None)
        with pytest.raises(ValueError, match="cannot forecast 1 of 1 units"):
            model.predict(panel[panel["unique_id"] == "b"], h=4)

    def test_a_single_series_has_no_name(self, pair):
        with pytest.raises(ValueError, match="could fit no series: the series needs at least 6"):
            VAR().fit(pair.iloc[:3])
        assert str(VAR(1).fit(pair).summary()).startswith("VAR of the series")


class TestMessages:
    def test_are_kept_and_told_once(self, panel):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SARIMAX((2, 0, 2), trend="c", max_iter=1).fit(panel)
        (told,) = [str(w.message) for w in caught]
        assert "3 of 3 units came with warnings, 'a', 'b', 'c'" in told
        assert "failed to converge" in told
        assert not model.converged_.any()
        assert all("failed to converge" in " ".join(own) for own in model.messages_)

    def test_a_note_on_starting_values_is_kept_only(self, wave, recwarn):
        model = SARIMAX((1, 0, 0)).fit(wave)
        assert "starting" in model.messages_["y"][0]
        assert not recwarn.list

    def test_are_those_of_the_own_thread(self, panel):
        make = SARIMAX((2, 0, 2), trend="c", max_iter=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with ThreadPoolExecutor(3) as pool:
                models = list(pool.map(lambda _: clone(make).fit(panel), range(6)))
        assert len(caught) == 6
        texts = {text for model in models for own in model.messages_ for text in own}
        assert any("failed to converge" in text for text in texts)
        assert not any("came with warnings" in text for text in texts)

    def test_point_at_the_line_of_the_user(self, wave):
        with pytest.warns(UserWarning, match="came with warnings") as caught:
            SARIMAX((2, 0, 2), max_iter=1).fit(wave)
        assert caught[0].filename == __file__


class TestProcesses:
    @pytest.mark.few("UnobservedComponents", "ArchModel")
    def test_give_the_same_numbers(self, model, panel):
        one = model.fit(panel)
        params, forecast = one.params_, one.predict(4, level=80)
        two = model.set_params(n_jobs=2).fit(panel)
        try:
            pd.testing.assert_frame_equal(two.params_, params, rtol=1e-10)
            pd.testing.assert_frame_equal(two.predict(4, level=80), forecast, rtol=1e-10)
        finally:
            model.set_params(n_jobs=1)

    def test_threads_leave_the_limits_of_the_process(self, wave):
        with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: SARIMAX().fit(wave[:20]), range(9)))
            blas = [info for info in threadpool_info() if info["user_api"] == "blas"]
            assert {info["num_threads"] for info in blas} == {2}

    def test_the_bar_is_shown_on_request(self, panel, capfd):
        SARIMAX(trend="c", verbose=1).fit(panel)
        assert "SARIMAX" in capfd.readouterr().err

    @pytest.mark.parametrize(("n_jobs", "error"), [(0, ValueError), (1.5, TypeError)])
    def test_their_number_is_checked(self, wave, n_jobs, error):
        with pytest.raises(error, match="n_jobs must be a number of processes"):
            SARIMAX(n_jobs=n_jobs).fit(wave)


class TestMissing:
    @pytest.mark.parametrize(
        ("model", "build", "less"),
        [
            (
                SARIMAX((1, 0, 1), trend="c", missing="keep"),
                lambda y: sarimax.SARIMAX(y, order=(1, 0, 1), trend="c"),
                "mean",
            ),
            (
                UnobservedComponents("local linear trend", seasonal=12, missing="keep"),
                lambda y: DirectComponents(y, "local linear trend", seasonal=12),
                "first",
            ),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*came with warnings:UserWarning")
    def test_values_are_left_out(self, gappy, close, ends, model, build, less):
        forecast = model.fit(gappy).predict(6, level=80)
        scale = gappy.std(ddof=0)
        own = gappy.to_numpy() / scale
        origin = own[0] if less == "first" else np.nanmean(own)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = build(own - origin).fit(disp=False)
        expected = results.get_forecast(6)
        close(forecast["y"], (expected.predicted_mean + origin) * scale)
        close(ends(forecast, "y"), (expected.conf_int(alpha=0.2) + origin) * scale)

    def test_in_the_search_for_orders(self, gappy):
        model = StatsmodelsAutoARIMA(max_p=1, max_q=1, max_P=0, max_Q=1, missing="keep").fit(gappy)
        assert np.isfinite(model.predict(5)).all()

    def test_are_refused_by_the_others(self, gappy):
        with pytest.raises(ValueError, match="missing must be one of"):
            StatsmodelsETS(missing="keep").fit(gappy)


class TestWords:
    def test_one_unit_has_the_page_of_the_library(self, any_model):
        model, data = any_model
        page = str(model.fit(data).summary())
        assert page.startswith(type(model).__name__)
        assert len(page.splitlines()) > 10
        assert not re.search(r"\d\d:\d\d:\d\d", page)

    def test_the_page_of_theta_has_parameters_at_their_names(self, wave):
        model = StatsmodelsTheta().fit(wave)
        page = str(model.summary())
        for name, value in model.params_.loc["y"].items():
            assert re.search(rf"^{re.escape(name)} +{re.escape(f'{value:.6g}')}$", page, re.M)
        assert "multiplicative" in page
        assert re.search(
            "Season +none", str(StatsmodelsTheta(deseasonalize=False).fit(wave).summary())
        )

    def test_are_the_same_from_a_file_and_later(self, any_model, tmp_path):
        model, data = any_model
        page = str(model.fit(data.iloc[:-5]).summary())
        model.save(tmp_path / "model")
        assert str(tsrnn.load(tmp_path / "model").summary()) == page
        assert str(model.update(data.iloc[-5:]).summary()) == page

    def test_many_units_are_a_table(self, panel):
        model = SARIMAX((1, 0, 1), trend="c").fit(panel)
        text = str(model.summary())
        for part in ("log-likelihood", "(1, 0, 1)", "AIC", *"abc"):
            assert part in text
        assert "SARIMAX(1, 0, 1)" in str(model.summary("b"))
        with pytest.raises(KeyError, match="unit must be one of"):
            model.summary("z")

    def test_units_are_targets_of_series(self, panel):
        frame = panel.assign(z=panel["y"] ** 2)
        model = SARIMAX(trend="c", target=["y", "z"]).fit(frame)
        labels = [(series, target) for series in "abc" for target in "yz"]
        assert list(model.units_) == list(model.params_.index) == labels
        alone = SARIMAX(trend="c", target="z").fit(
            panel.assign(z=panel["y"] ** 2).drop(columns="y")
        )
        np.testing.assert_array_equal(model.params_.loc[("b", "z")], alone.params_.loc["b"])
        assert "SARIMAX of ('b', 'z')" in str(model.summary(("b", "z")))

    def test_criteria_are_those_of_the_library(self, wave, close):
        model = SARIMAX((1, 0, 1), trend="c").fit(wave)
        by_hand = sarimax.SARIMAX(wave.to_numpy(), order=(1, 0, 1), trend="c")
        results = by_hand.smooth(model.params_.loc["y"].to_numpy())
        assert list(model.params_) == results.model.param_names
        close([model.loglik_["y"], model.aic_["y"], model.bic_["y"]],
              [results.llf, results.aic, results.bic])  # fmt: skip


class TestArguments:
    @pytest.mark.parametrize(
        ("model", "told"),
        [
            (SARIMAX((1, 0)), r"order must be 3 integers \(p, d, q\) of at least 0; got \(1, 0\)"),
            (SARIMAX(seasonal_order=(1, 0, 0, 1)), "needs a season s of at least 2"),
            (SARIMAX(trend="x"), "trend must be one of"),
            (StatsmodelsETS(damped_trend=True), "damped_trend=True needs a trend"),
            (StatsmodelsETS(seasonal="add", season_length=1), "season_length of at least 2"),
            (StatsmodelsETS("sum"), "error must be one of"),
            (StatsmodelsTheta(method="sum"), "method must be one of"),
            (StatsmodelsTheta(theta=0.5), "theta must be a number of at least 1"),
            (UnobservedComponents("flat"), "level must be one of"),
            (UnobservedComponents(damped_cycle=True), "damped_cycle=True needs a cycle"),
            (UnobservedComponents(stochastic_cycle=True), "needs a cycle; got cycle=False"),
            (UnobservedComponents(seasonal=1), "seasonal must be a season of at least 2"),
            (ArchModel(mean="AR"), "need at least one; got mean='AR' and lags=0"),
            (ArchModel(lags=2), "got mean='Constant' and lags=2"),
            (ArchModel(p=-1), "p must be an integer of at least 0"),
            (ArchModel(vol="X"), "vol must be one of"),
        ],
    )
    def test_of_one_target(self, wave, model, told):
        with pytest.raises(ValueError, match=told):
            model.fit(wave)

    @pytest.mark.parametrize(
        ("model", "told"),
        [
            (VAR(-1), "lags must be an integer of at least 0"),
            (VAR(0, trend="n"), "lags=0 needs a trend"),
            (VAR(criterion="x"), "criterion must be one of"),
            (VARMAX((0, 0)), "needs a lag of either"),
            (VECM(rank=3), "rank must be at most the number of targets, 2; got 3"),
            (VECM(significance=0.2), "significance must be 0.01, 0.05 or 0.1"),
            (VECM(deterministic="c"), "deterministic must be one of"),
        ],
    )
    def test_of_several(self, pair, model, told):
        with pytest.raises(ValueError, match=told):
            model.fit(pair)
