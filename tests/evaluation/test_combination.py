"""Means and medians of members: weights by hand, the contract, files."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import tsrnn
from tsrnn import ARMA, Combination, ParaRNNForecaster, backtest
from tsrnn.baselines import Drift, Mean, Naive, SeasonalNaive, StatsmodelsETS
from tsrnn.batch import forecast_frame
from tsrnn.evaluation import akaike_weights, inverse_error_weights, stacked_weights
from tsrnn.linear import ETS

SMALL = {"input_size": 8, "hidden_size": 4, "n_layers": 1, "max_epochs": 1, "random_state": 0}


def monthly(n=90, seed=0):
    noise = np.random.default_rng(seed).normal(size=n)
    index = pd.date_range("2001-01", periods=n, freq="MS")
    return pd.Series(10 + np.sin(np.arange(n) / 2) + 0.3 * noise.cumsum(), index, name="y")


def long_frame():
    return pd.concat(
        [monthly(90 - 5 * i, i).rename_axis("ds").reset_index().assign(unique_id=u)
         for i, u in enumerate("abc")]
    )  # fmt: skip


def with_short_series(rows):
    """Return the frame with so many rows of "b", of six with a mean and a last value of 3."""
    long = long_frame()
    long = long[(long["unique_id"] != "b") | (long.groupby("unique_id").cumcount() < rows)].copy()
    long.loc[long["unique_id"] == "b", "y"] = [2.0, 4, 2, 4, 3, 3][:rows]
    return long


def members():
    return {"AR": ARMA(order=(2, 0)), "ARI": ARMA(order=(1, 1, 0)), "MA": ARMA(order=(0, 1))}


class TestWeights:
    def test_inverse_errors(self):
        errors = np.random.default_rng(0).normal(size=(50, 3)) * [1, 2, 4]
        inverse = 1 / (errors**2).mean(0)
        np.testing.assert_allclose(inverse_error_weights(errors), inverse / inverse.sum())

    @pytest.mark.parametrize("seed", range(5))
    def test_stacked_are_the_least_squares_on_the_simplex(self, seed):
        rng = np.random.default_rng(seed)
        errors = rng.normal(size=(80, 4)) @ rng.normal(size=(4, 4)) * rng.uniform(0.1, 9, 4)
        found = stacked_weights(errors)
        best = minimize(
            lambda w: ((errors @ w) ** 2).mean(), np.full(4, 0.25), method="SLSQP",
            bounds=[(0, 1)] * 4, constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 1000},
        )  # fmt: skip
        assert found.sum() == pytest.approx(1, abs=1e-12)
        assert (found >= 0).all()
        assert ((errors @ found) ** 2).mean() <= best.fun * (1 + 1e-6)
        np.testing.assert_allclose(found, best.x, atol=1e-3)

    def test_of_a_perfect_member(self):
        errors = np.random.default_rng(0).normal(size=(20, 3))
        errors[:, 1] = 0
        np.testing.assert_allclose(stacked_weights(errors), [0, 1, 0], atol=1e-6)
        np.testing.assert_allclose(inverse_error_weights(errors), [0, 1, 0])
        np.testing.assert_allclose(stacked_weights(0 * errors), np.full(3, 1 / 3))

    def test_stacking_finds_the_members_of_a_mixture(self):
        rng = np.random.default_rng(1)
        noise = rng.normal(size=(5000, 2))
        shared = rng.normal(size=5000)
        errors = np.column_stack([noise[:, 0] + shared, noise[:, 1] - shared])
        np.testing.assert_allclose(stacked_weights(errors), [0.5, 0.5], atol=0.03)

    def test_akaike_weights_are_likelihoods_less_their_parameters(self):
        criteria = np.array([[10.0, 12.0, np.nan], [np.inf, 1e4, 1e4 + 2], [np.nan] * 3])
        half = np.exp(-1)
        expected = np.array([[1, half, 0], [0, 1, half], [0, 0, 0]])
        expected[:2] /= 1 + half
        np.testing.assert_allclose(akaike_weights(criteria), expected, rtol=1e-12)


@pytest.mark.parametrize("rule", ["inverse-error", "stacked"])
def test_weights_come_from_rolling_forecasts(rule):
    long = long_frame()
    model = Combination(members(), weights=rule, n_windows=4, horizon=3).fit(long)
    frame = backtest(members(), long, h=3, n_windows=4, refit=False)
    first = frame.groupby("unique_id")["cutoff"].first()
    known = long[long["ds"] <= long["unique_id"].map(first)]
    scale = frame["unique_id"].map(known.groupby("unique_id")["y"].std(ddof=0))
    errors = np.column_stack([(frame["y"] - frame[name]) / scale for name in members()])
    rules = {"inverse-error": inverse_error_weights, "stacked": stacked_weights}
    np.testing.assert_allclose(model.weights_, rules[rule](errors), rtol=1e-6, atol=1e-9)
    rmse = np.sqrt((errors**2).mean(0))
    np.testing.assert_allclose(model.validation_[list(members())], rmse, rtol=1e-9)
    assert rule in str(model.summary())

    own = Combination(members(), weights=rule, by_series=True, n_windows=4, horizon=3).fit(long)
    for u in "abc":
        rows = errors[(frame["unique_id"] == u).to_numpy()]
        np.testing.assert_allclose(own.weights_.loc[u], rules[rule](rows), rtol=1e-6, atol=1e-9)
        alone = Combination(members(), weights=rule, n_windows=4, horizon=3)
        alone.fit(long[long["unique_id"] == u])
        made = own.predict(level=80, ids=u)["Combination"]
        np.testing.assert_allclose(made, alone.predict(level=80)["Combination"], rtol=1e-6)
    assert own.validation_["Combination"] <= model.validation_["Combination"] * 1.1
    assert f"{rule}, of each series" in str(own.summary())


class TestCriterion:
    def test_weights_are_those_of_each_likelihood(self):
        both = {"AR": ARMA(order=(1, 0)), "walk": ETS("add", "none", "none"), "MA": ARMA((0, 1))}
        long = long_frame()
        model = Combination(both, weights="aicc", horizon=3).fit(long)
        criteria = pd.DataFrame({name: m.fit(long).aicc_ for name, m in both.items()})
        n, k = both["AR"].nobs_, 3
        np.testing.assert_allclose(criteria["AR"], both["AR"].aic_ + 2 * k * (k + 1) / (n - k - 1))
        expected = np.exp(-criteria.sub(criteria.min(axis=1), axis=0) / 2)
        expected = expected.div(expected.sum(axis=1), axis=0)
        pd.testing.assert_frame_equal(model.weights_, expected, check_names=False)
        made = model.predict(level=80, ids=["c", "a"]).drop(columns=["unique_id", "ds"]).to_numpy()
        alone = [
            m.predict(3, level=80, ids=["c", "a"]).iloc[:, 2:].to_numpy() for m in both.values()
        ]
        shares = expected.loc[["c", "a"]].to_numpy().repeat(3, 0).T[:, :, None]
        np.testing.assert_allclose(made, (shares * np.array(alone)).sum(0), rtol=1e-12)
        assert model.validation_ is None
        assert "aicc, of each series" in str(model.summary())

    @pytest.mark.parametrize(
        ("others", "error", "message"),
        [
            ({"ARI": ARMA((1, 1, 0))}, ValueError, r"3 of 3 series, the first 'a', that of 'AR' is "
             r"of 90 rows and that of 'ARI' of 89: one of differences"),
            ({"CSS": ARMA((1, 0), likelihood="conditional")}, ValueError, "the same conventions"),
            ({"naive": Naive()}, TypeError, r"needs members with a likelihood, of ARMA, .*'naive'"),
        ],
    )  # fmt: skip
    def test_refuses_likelihoods_of_other_data(self, others, error, message):
        model = Combination({"AR": ARMA((1, 0))} | others, weights="aicc", horizon=2)
        with pytest.raises(error, match=message):
            model.fit(long_frame())

    def test_a_member_without_a_series_has_no_weight_there(self):
        long = long_frame()
        short = (long["unique_id"] == "b") & (long.groupby("unique_id").cumcount() >= 8)
        both = {"small": ARMA((1, 0)), "large": ARMA((5, 0))}
        with pytest.warns(UserWarning, match="1 of 3 units could not be fitted, 'b'"):
            model = Combination(both, weights="aicc", horizon=2).fit(long[~short])
        assert model.weights_.loc["b"].tolist() == [1, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it has been named at the fit
            made = model.predict(level=80)
        assert made.notna().all(axis=None)

    @pytest.mark.filterwarnings("ignore:1 of 3 units could not be fitted")
    def test_a_series_without_a_member_has_no_forecast(self):
        long = with_short_series(3)
        both = {"AR": ARMA((1, 0)), "MA": ARMA((0, 1))}
        model = Combination(both, weights="aicc", horizon=2).fit(long)
        assert model.weights_.loc["b"].tolist() == [0, 0]
        for ids in (None, "b"):
            made = model.predict(level=80, ids=ids).set_index("unique_id").drop(columns="ds")
            assert made.loc["b"].isna().all(axis=None)


class TestMedian:
    def test_of_points_and_of_ends(self):
        four = members() | {"walk": Drift()}
        y = monthly()
        for names in (list(four), list(four)[:3]):
            chosen = {name: four[name] for name in names}
            model = Combination(chosen, combine="median", horizon=5).fit(y)
            alone = [m.fit(y).predict(5, level=[80, 95]) for m in chosen.values()]
            expected = np.median([frame.to_numpy() for frame in alone], axis=0)
            made = model.predict(level=[80, 95])
            np.testing.assert_array_equal(made, expected)
            ends = made[["y-lo-95", "y-lo-80", "y", "y-hi-80", "y-hi-95"]].to_numpy()
            assert (np.diff(ends, axis=1) > 0).all()  # levels do not cross
        assert "3 forecasters, median of AR, ARI, MA" in str(model.summary())
        assert "medians" in model.interval_guarantee_

    def test_the_others_stand_in_for_a_member_without_a_forecast(self):
        long = with_short_series(6)
        three = {"StatsmodelsETS": StatsmodelsETS(), "naive": Naive(), "mean": Mean()}
        with pytest.warns(UserWarning, match="StatsmodelsETS could not fit 1 of 3"):
            model = Combination(three, combine="median", horizon=2).fit(long)
        with pytest.warns(UserWarning, match=r"1 of 3 series, .* by 'StatsmodelsETS': the median"):
            made = model.predict().set_index("unique_id")["Combination"]
        np.testing.assert_allclose(made["b"], 3.0)
        expected = np.median([made.loc["a"] for made in (
            m.fit(long[long["unique_id"] == "a"]).predict(2).set_index("unique_id").iloc[:, -1]
            for m in three.values())], axis=0)  # fmt: skip
        np.testing.assert_allclose(made["a"], expected, rtol=1e-6)

    def test_an_end_that_a_member_cannot_tell_is_missing(self, monkeypatch):
        for combine in ("mean", "median"):
            both = {"walk": Drift(), "AR": ARMA((1, 0))}
            model = Combination(both, combine=combine).fit(monthly())
            cls = type(model.fitted_.members["walk"].fitted_)
            forecast = cls.forecast

            def without_end(self, *given, forecast=forecast):
                parts = forecast(self, *given)
                return parts | {"-hi-80": np.full_like(parts[""], np.nan)}

            monkeypatch.setattr(cls, "forecast", without_end)
            made = model.predict(2, level=80)
            monkeypatch.undo()
            assert made["y-hi-80"].isna().all()
            assert made[["y", "y-lo-80"]].notna().all(axis=None)


class TestMissingValues:
    def test_are_kept_for_members_that_take_them(self):
        y = monthly()
        y.iloc[[7, 30]] = np.nan
        both = {"AR": ARMA((2, 0)), "ETS": ETS("add", "none", "none")}
        alone = [m.set_params(missing="keep").fit(y).predict(3) for m in both.values()]
        model = Combination(both, missing="keep", horizon=3).fit(y)
        np.testing.assert_allclose(model.predict(), sum(alone) / 2)
        for nested in ({"mean": Mean()}, {"inner": Combination({"mean": Mean()})}):
            with pytest.raises(ValueError, match="missing='keep' needs members that take it; '"):
                Combination(both | nested, missing="keep", horizon=3).fit(y)


class TestClassical:
    def test_is_the_median_of_four(self, monkeypatch):
        table = dict.fromkeys(("ETS", "Theta", "CES", "AutoARIMA"), SeasonalNaive)
        monkeypatch.setattr("tsrnn.evaluation._combination.model_class", table.__getitem__)
        model = Combination.classical(season_length=4, horizon=3, target="z")
        assert list(model.forecasters) == ["ETS", "Theta", "CES", "AutoARIMA"]
        assert {member.season_length for member in model.forecasters.values()} == {4}
        assert (model.combine, model.horizon, model.target) == ("median", 3, "z")
        assert Combination.classical(combine="mean").combine == "mean"

    @pytest.mark.slow
    def test_forecasts_a_panel(self):
        long = long_frame()
        model = Combination.classical(horizon=4)
        for member in model.forecasters.values():
            member.set_params(random_state=0)  # of paths
        model.fit(long)
        made = model.predict(level=[80, 95])
        alone = [
            type(member)(horizon=4, random_state=0).fit(long).predict(level=[80, 95]).iloc[:, 2:]
            for member in model.forecasters.values()
        ]
        expected = np.median([frame.to_numpy() for frame in alone], axis=0)
        np.testing.assert_allclose(made.iloc[:, 2:], expected, rtol=1e-10)


class TestRecurrent:
    @staticmethod
    def fitted(rows):
        model = Combination.recurrent(horizon=4)
        for name, member in model.forecasters.items():
            if name != "prior":
                member.set_params(random_state=0)  # of paths
        return model.fit(rows)

    def test_weighs_the_forecasts_of_its_members(self):
        long = long_frame()
        model = self.fitted(long)
        made = model.predict(level=[80, 95])
        five = np.array(
            [m.predict(4).iloc[:, -1].to_numpy() for m in model.forecasters_.values()]
        ).reshape(5, 3, 4)
        point = made["Combination"].to_numpy().reshape(3, 4)
        assert (point >= five.min(0)).all()
        assert (point <= five.max(0)).all()
        weights = model.weights_
        assert list(weights.columns) == ["ETS", "Theta", "CES", "AutoARIMA", "prior"]
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)
        ends = made[[f"Combination{end}" for end in ("-lo-95", "-lo-80", "", "-hi-80", "-hi-95")]]
        assert (np.diff(ends, axis=1) > 0).all()
        assert "weights: network, of each series" in model.summary()
        assert "prior network" in model.interval_guarantee_
        alone = self.fitted(long[long["unique_id"] == "b"]).predict(level=[80, 95])
        np.testing.assert_allclose(
            alone.iloc[:, 2:], made[made["unique_id"] == "b"].iloc[:, 2:], rtol=1e-6
        )

    @pytest.mark.slow
    def test_update_new_data_and_files(self, tmp_path):
        long = long_frame()
        last = long.groupby("unique_id").cumcount(ascending=False) < 4
        model = self.fitted(long[~last])
        whole = model.predict(long, h=3)
        model.save(tmp_path / "model")
        loaded = tsrnn.load(tmp_path / "model")
        pd.testing.assert_frame_equal(loaded.predict(level=80), model.predict(level=80))
        pd.testing.assert_frame_equal(loaded.weights_, model.weights_)
        model.update(long[last])
        pd.testing.assert_frame_equal(model.predict(3), whole)
        backtested = backtest({"all": model}, long, h=3, n_windows=2, refit=False)
        assert backtested["all"].notna().all()

    @pytest.mark.slow
    def test_order_and_names_of_members_are_free(self):
        y = monthly()
        given = Combination.recurrent(horizon=3).forecasters
        for name in list(given)[:4]:
            given[name].set_params(random_state=0)
        named = {f"{name} model": given[name] for name in reversed(given)}
        usual = Combination(given, weights="network", horizon=3).fit(y)
        model = Combination(named, weights="network", horizon=3).fit(y)
        pd.testing.assert_series_equal(model.predict(), usual.predict())
        assert list(model.weights_.columns) == list(named)

    def test_seasons_are_given_to_all_members(self):
        members = Combination.recurrent(season_length=6).forecasters
        assert {member.season_length for member in members.values()} == {6}

    def test_refuses_other_members(self):
        four = Combination.classical().forecasters
        auto = four | {"prior": ParaRNNForecaster()}
        for given, message in (
            (four, "one of each; got ETS, Theta, CES, AutoARIMA. Take Combination.recurrent"),
            (four | {"naive": Naive()}, "AutoARIMA, Naive"),
            (auto, r"prior='only'\); got prior='auto'"),
        ):
            with pytest.raises(ValueError, match=message):
                Combination(given, weights="network", horizon=2).fit(monthly())
        with pytest.raises(ValueError, match="the median has no weights"):
            Combination.recurrent(combine="median").fit(monthly())


class TestForecasts:
    def test_are_the_weighted_mean(self):
        y, weights = monthly(), [0.5, 0.3, 0.2]
        model = Combination(members(), weights=weights, horizon=5).fit(y)
        alone = [m.fit(y).predict(5, level=[80]) for m in members().values()]
        expected = sum(w * made for w, made in zip(weights, alone, strict=True))
        pd.testing.assert_frame_equal(model.predict(level=[80]), expected)

    def test_update_and_new_data(self):
        long = long_frame()
        last = long.groupby("unique_id").cumcount(ascending=False) < 4
        model = Combination(members(), horizon=3).fit(long[~last])
        whole = model.predict(long, h=3)
        one = copy.deepcopy(model).update(long[last])
        pd.testing.assert_frame_equal(one.predict(3), whole)
        some = copy.deepcopy(model).update(long[last & (long["unique_id"] == "b")]).predict(3)
        pd.testing.assert_frame_equal(
            some[some["unique_id"] == "b"], whole[whole["unique_id"] == "b"]
        )
        assert model.score(long[last]) == pytest.approx(
            clone(model).fit(long[~last]).score(long[last])
        )

    def test_weights_by_a_network_for_counts(self):
        counts = pd.Series(np.random.default_rng(0).poisson(0.8, 60), name="y").to_frame()
        model = Combination.recurrent(horizon=2, season_length=1).fit(counts)
        points = np.stack([m.predict(2).squeeze() for m in model.forecasters_.values()])
        forecast = model.predict(level=80)
        assert forecast.notna().all(axis=None)
        point = forecast.iloc[:, 0]
        assert ((points.min(0) <= point) & (point <= points.max(0))).all()

    @pytest.mark.slow
    def test_weights_by_a_network_with_columns(self, tmp_path):
        rng = np.random.default_rng(0)
        x = rng.normal(size=66)
        y = 20 + 3 * x + rng.normal(size=66).cumsum() / 3
        df = pd.DataFrame({"y": y, "x": x}, pd.date_range("2020", periods=66, freq="MS"))
        train, ahead = df[:60], df[["x"]][60:]
        model = Combination.recurrent(horizon=6, target="y", known_ahead="x").fit(train)
        forecast = model.predict(X_future=ahead, level=80)
        # The network weighs the forecasts of the members, which all have the column.
        points = np.stack([m.predict(X_future=ahead)["y"] for m in model.forecasters_.values()])
        assert (forecast["y"] <= points.max(0)).all()
        assert (forecast["y"] >= points.min(0)).all()
        assert abs(np.polyfit(ahead["x"], forecast["y"], 1)[0] - 3) < 1
        np.testing.assert_allclose(model.weights_.sum(axis=1), 1)
        model.save(tmp_path / "model.tsrnn")
        restored = tsrnn.load(tmp_path / "model.tsrnn").predict(X_future=ahead, level=80)
        pd.testing.assert_frame_equal(restored, forecast, rtol=1e-12)

    def test_networks_and_columns_known_ahead(self):
        long = long_frame().assign(x=lambda d: np.sin(np.arange(len(d))))
        long["y"] += long["x"]
        future = long.groupby("unique_id").tail(3).drop(columns="y")
        past = long.drop(future.index) if long.index.is_unique else None
        past = long[long.groupby("unique_id").cumcount(ascending=False) >= 3]
        both = {
            "network": ParaRNNForecaster(known_ahead=["x"], **SMALL),
            "arma": ARMA(order=(1, 0), known_ahead=["x"]),
        }
        model = Combination(both, weights="stacked", n_windows=2, horizon=3, known_ahead=["x"])
        made = model.fit(past).predict(X_future=future)
        alone = {
            name: m.set_params(horizon=3).fit(past).predict(X_future=future)
            for name, m in both.items()
        }
        expected = sum(
            model.weights_[name] * made[m.column_name]
            for (name, made), m in zip(alone.items(), both.values(), strict=True)
        )
        np.testing.assert_allclose(made["Combination"], expected, rtol=1e-6)

    def test_members_without_regressors(self):
        long = long_frame().assign(x=lambda d: np.sin(np.arange(len(d))))
        past = long[long.groupby("unique_id").cumcount(ascending=False) >= 3]
        future = long.groupby("unique_id").tail(3).drop(columns="y")
        both = {"arma": ARMA(order=(1, 0), known_ahead="x"), "naive": Naive()}
        model = Combination(both, weights="stacked", n_windows=2, horizon=3, known_ahead="x")
        made = model.fit(past).predict(X_future=future)["Combination"]
        naive = Naive(horizon=3).fit(past.drop(columns="x")).predict()["Naive"]
        arma = both["arma"].fit(past).predict(3, X_future=future)["ARMA"]
        weights = model.weights_
        np.testing.assert_allclose(made, weights["arma"] * arma + weights["naive"] * naive)

    def test_a_series_that_a_member_cannot_forecast(self):
        long = with_short_series(6)
        both = {"StatsmodelsETS": StatsmodelsETS(), "naive": Naive(), "mean": Mean()}
        with pytest.warns(UserWarning, match="StatsmodelsETS could not fit 1 of 3"):
            model = Combination(both, weights=[0.5, 0.25, 0.25], horizon=2).fit(long)
        with pytest.warns(
            UserWarning, match=r"1 of 3 series, the first 'b', .* by 'StatsmodelsETS': the weights"
        ):
            made = model.predict(level=80).set_index("unique_id")
        np.testing.assert_allclose(made.loc["b", "Combination"], 3.0)
        assert made.notna().all(axis=None)
        with pytest.warns(UserWarning, match="StatsmodelsETS could not fit 1 of 3"):
            without = Combination(both, weights=[0, 0.5, 0.5], horizon=2).fit(long)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert without.predict()["Combination"].notna().all()

    def test_members_are_updated_with_it(self):
        y = monthly()
        model = Combination(members(), horizon=2).fit(y[:-3]).update(y[-3:])
        alone = model.forecasters_["AR"].predict(2)
        pd.testing.assert_series_equal(
            alone, ARMA(order=(2, 0)).fit(y[:-3]).update(y[-3:]).predict(2)
        )

    def test_in_a_backtest(self):
        models = {**members(), "mean": Combination(members())}
        frame = backtest(models, monthly(), h=3, n_windows=3, refit=False)
        np.testing.assert_allclose(frame["mean"], frame[list(members())].mean(axis=1))

    def test_parameters_stay_as_they_were(self):
        own = members()
        model = Combination(own, weights="inverse-error", horizon=2, n_windows=2)
        before = model.get_params()
        model.fit(monthly())
        assert model.get_params() == before
        assert not hasattr(own["AR"], "state_")
        assert repr(clone(model)) == repr(model)


class Refusing(Naive):
    """Member that can be fitted to nothing."""

    column_name = "Refusing"

    def _fit_panel(self, arguments, data, panel):
        raise RuntimeError("no fit today")


def two_series(values):
    """One series as a long frame, and a panel that begins with it."""
    alone = pd.DataFrame({"unique_id": "x", "ds": np.arange(len(values)), "y": values})
    other = monthly(60).to_numpy()
    beside = pd.DataFrame({"unique_id": "y", "ds": np.arange(60), "y": other})
    return alone, pd.concat([alone, beside])


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestMembersLeftOut:
    """One series is forecast by the members that can be fitted to it, as it is in a panel."""

    @pytest.mark.few("classical-values1", "recurrent-values0")
    @pytest.mark.parametrize(
        "values", [np.arange(1.0, 101.0), np.array([3.5, 5, 4, 6, 5, 7]), monthly(9).to_numpy()]
    )
    @pytest.mark.parametrize("make", [Combination.classical, Combination.recurrent])
    def test_one_series_is_forecast_as_in_a_panel(self, make, values):
        made = []
        for frame in two_series(values):
            model = make(horizon=3)
            for name, member in model.forecasters.items():
                if name != "prior":
                    member.set_params(random_state=0)  # of paths
            made.append(model.fit(frame).predict(level=80)[:3])
        assert made[0].notna().all(axis=None)
        np.testing.assert_allclose(made[0].iloc[:, 2:], made[1].iloc[:, 2:], rtol=1e-5)

    @pytest.mark.few("bad0", "bad1-arguments0-left0")
    @pytest.mark.parametrize(
        ("arguments", "left"),
        [
            ({"combine": "median"}, [0.5, 0.5]),
            ({}, [0.5, 0.5]),
            ({"weights": [0.2, 0.6, 0.2]}, [0.5, 0.5]),
            ({"weights": {"drift": 0.6, "bad": 0.2, "mean": 0.2}}, [0.75, 0.25]),
            ({"weights": "inverse-error", "by_series": True, "n_windows": 2}, None),
        ],
    )
    @pytest.mark.parametrize("bad", [Refusing(), ARMA((5, 0))])
    def test_whichever_member_fails(self, bad, arguments, left, tmp_path):
        three = {"drift": Drift(), "bad": bad, "mean": Mean()}
        alone, panel = two_series(monthly(9).to_numpy())
        model = Combination(three, horizon=2, **arguments)
        with pytest.warns(UserWarning, match=r"leaves out 'bad', .* other members\. .*Error: no"):
            made = model.fit(alone).predict(level=80)
        assert list(model.forecasters_) == ["drift", "mean"]
        weights = model.weights_ if left is not None else model.weights_.loc["x"]
        assert weights.sum() == pytest.approx(1)
        if left is not None:
            np.testing.assert_allclose(weights, left)
        among = clone(model).fit(panel).predict(level=80)[:2]
        np.testing.assert_allclose(made.iloc[:, 2:], among.iloc[:, 2:], rtol=1e-9)
        (texts,) = model.messages_
        assert texts[0].startswith("'bad': ")
        # Its file holds what was fitted, and goes on.
        model.save(tmp_path / "model")
        loaded = tsrnn.load(tmp_path / "model")
        later = pd.DataFrame({"unique_id": "x", "ds": [9], "y": [11.0]})
        for each in (model, loaded):
            each.update(later)
        pd.testing.assert_frame_equal(loaded.predict(level=80), model.predict(level=80))
        assert loaded.fit(alone).predict()["Combination"].tolist() == pytest.approx(
            made["Combination"].tolist()
        )

    def test_a_member_that_cannot_forecast(self, monkeypatch):
        both = {"drift": Drift(), "AR": ARMA((1, 0))}
        alone, _ = two_series(monthly(30).to_numpy())
        model = Combination(both, horizon=2).fit(alone)
        expected = model.forecasters_["drift"].predict(level=80).iloc[:, 2:]

        def broken(self, *given):
            raise RuntimeError("no forecast today")

        monkeypatch.setattr(type(model.forecasters_["AR"].fitted_), "forecast", broken)
        with pytest.warns(UserWarning, match="cannot forecast. 'AR': no forecast today"):
            np.testing.assert_allclose(model.predict(level=80).iloc[:, 2:], expected)
        monkeypatch.setattr(type(model.forecasters_["drift"].fitted_), "forecast", broken)
        with pytest.raises(ValueError, match="no member of the combination can forecast. 'drift'"):
            model.predict()

    def test_of_weights_from_earlier_rows_that_are_too_few_for_a_member(self):
        both = {"walk": Naive(), "mean": Mean(), "AR": ARMA((5, 0))}
        model = Combination(both, weights="inverse-error", horizon=4, n_windows=3)
        model.fit(monthly(20))
        assert model.weights_["AR"] == 0
        assert model.weights_.sum() == pytest.approx(1)
        assert model.validation_.isna().tolist() == [False, False, True, False]

    def test_refused_where_no_member_can_be_fitted(self):
        alone, panel = two_series(np.array([3.0, 5.0]))
        both = {"bad": Refusing(), "AR": ARMA((1, 0))}
        match = "no member .* 'bad': RuntimeError: no fit today; 'AR': ValueError: no series could"
        with pytest.raises(ValueError, match=match):
            Combination(both, horizon=2).fit(alone)
        with pytest.warns(UserWarning, match="'x', are forecast by no member: .* NaN"):
            made = Combination(both, horizon=2).fit(panel).predict()
        assert made["Combination"].isna().tolist() == [True, True, False, False]

    def test_refused_where_the_others_have_no_weight(self):
        both = {"bad": Refusing(), "walk": Naive()}
        with pytest.raises(ValueError, match=r"'walk', have no weight; got weights=\[1, 0\]"):
            Combination(both, weights=[1, 0], horizon=2).fit(monthly())

    @pytest.mark.parametrize(
        ("bad", "error"),
        [
            (ARMA(order=(1, -1)), ValueError),
            (StatsmodelsETS(trend="sub"), ValueError),
            (SeasonalNaive(season_length=0), ValueError),
            (ParaRNNForecaster(hidden_size=-1), ValueError),
            (ETS(season_length="a"), TypeError),
        ],
    )
    def test_arguments_are_refused_and_not_left_out(self, bad, error):
        with pytest.raises(error) as caught:
            Combination({"walk": Naive(), "bad": bad}, horizon=2).fit(monthly())
        assert "member 'bad'" in caught.value.__notes__[0]

    def test_a_network_of_many_series_is_not_left_out_for_one(self):
        alone, panel = two_series(np.array([3.0, 5.0]))
        both = {"walk": Naive(), "prior": ParaRNNForecaster(prior="only")}
        with pytest.raises(ValueError, match="'x'.*needs at least 3 observed rows"):
            Combination(both, horizon=2).fit(panel)
        assert Combination(both, horizon=2).fit(alone).predict()["Combination"].tolist() == [5, 5]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_members_reasons_reach_the_problems_of_a_batch_and_of_a_backtest():
    _, panel = two_series(np.array([3.0, 5.0, 4.0, 6.0]))
    inner = Combination({"larger": ARMA((5, 0))})
    model = Combination({"AR": ARMA((2, 0)), "inner": inner}, horizon=2)
    wanted = ["'AR': ", "need at least 7 observations; the series has", "'inner': ", "'larger': "]
    (problem,) = forecast_frame(panel, model).problems
    assert (problem.unique_id, problem.kind) == ("x", "error")
    assert all(words in problem.message for words in wanted)
    alone = panel[panel["unique_id"] == "x"]
    (problem,) = forecast_frame(alone, model).problems
    assert all(words in problem.message for words in wanted)
    frame = backtest({"all": model, "naive": Naive()}, panel, h=1, n_windows=1)
    (failure,) = frame.attrs["backtest"]["failures"]
    assert failure["unique_id"] == "x"
    assert all(words in failure["error"] for words in wanted)


def test_a_naive_method_says_which_series_is_too_short():
    _, panel = two_series(np.array([3.0]))
    for alone in (Naive(horizon=2), Combination({"naive": Naive()}, horizon=2)):
        (problem,) = forecast_frame(panel, alone).problems
        assert problem.message.endswith("needs at least 2 rows; there are 1.")


def test_files(tmp_path):
    y = monthly()
    both = {"network": ParaRNNForecaster(**SMALL), "arma": ARMA(order=(1, 1))}
    model = Combination(both, weights="stacked", n_windows=2, horizon=3).fit(y[:-2]).update(y[-2:])
    model.save(tmp_path / "model")
    loaded = tsrnn.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.predict(level=80), model.predict(level=80))
    pd.testing.assert_series_equal(loaded.weights_, model.weights_)
    assert str(loaded.summary()) == str(model.summary())
    again = loaded.fit(y).predict()
    pd.testing.assert_series_equal(again, model.fit(y).predict())


@pytest.mark.parametrize(
    "arguments", [{"weights": "stacked", "by_series": True, "n_windows": 2}, {"combine": "median"}]
)
def test_files_of_a_panel(tmp_path, arguments):
    model = Combination(members(), horizon=3, **arguments).fit(long_frame())
    model.save(tmp_path / "model")
    loaded = tsrnn.load(tmp_path / "model")
    pd.testing.assert_frame_equal(
        loaded.predict(level=80, ids="b"), model.predict(level=80, ids="b")
    )
    assert str(loaded.summary()) == str(model.summary())
    assert loaded.interval_guarantee_ == model.interval_guarantee_


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"forecasters": []}, ValueError, "at least one forecaster"),
            ({"forecasters": [ARMA(), ARMA()]}, ValueError, "2 models have the name 'ARMA'"),
            ({"weights": "best"}, ValueError, "weights must be one of"),
            ({"combine": "mode"}, ValueError, "combine must be"),
            ({"combine": "median", "weights": "stacked"}, ValueError, "the median has no weights"),
            ({"by_series": True}, ValueError, "by_series=True needs weights that are estimated"),
            ({"weights": [0.5, 0.5]}, ValueError, "weights must be 3 numbers"),
            ({"weights": [0.5, 0.2, 0.2]}, ValueError, "finite and sum to one"),
            ({"weights": ["a", "b", "c"]}, ValueError, "weights must be 3 numbers"),
            ({"weights": np.array(1.0)}, ValueError, "weights must be 3 numbers"),
            ({"weights": {"AR": 1.0}}, ValueError, "weights must be those of"),
            ({"weights": "stacked", "n_windows": 0}, ValueError, "n_windows must be a positive"),
            ({"weights": "stacked", "n_windows": 99}, ValueError, "99 windows of h=3"),
            ({"horizon": 0}, ValueError, "horizon must be a positive integer"),
            (
                {"forecasters": {"a": ARMA(known_ahead="x")}},
                ValueError,
                "known_ahead of the member 'a' must be None or that of the combination",
            ),
        ],
    )
    def test_of_arguments(self, arguments, error, message):
        settings = {"forecasters": members(), "horizon": 3} | arguments
        with pytest.raises(error, match=message):
            Combination(**settings).fit(monthly())

    def test_the_member_that_fails_is_named(self):
        with pytest.raises(ValueError, match="roots|order|order must") as caught:
            Combination({"bad": ARMA(order=(1, -1))}, horizon=2).fit(monthly())
        assert "member 'bad'" in caught.value.__notes__[0]
