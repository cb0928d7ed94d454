"""Weighted means of members: weights by hand, the contract, files."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import tsrnn
from tsrnn import ARMA, Combination, ParaRNNForecaster, backtest
from tsrnn.baselines import ETS, Mean, Naive
from tsrnn.evaluation import inverse_error_weights, stacked_weights

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
        long = long_frame()
        long.loc[long["unique_id"] == "b", "y"] = 3.0
        both = {"ETS": ETS(), "naive": Naive(), "mean": Mean()}
        with pytest.warns(UserWarning, match="ETS could not fit 1 of 3"):
            model = Combination(both, weights=[0.5, 0.25, 0.25], horizon=2).fit(long)
        with pytest.warns(
            UserWarning, match=r"1 of 3 series, the first 'b', .* by 'ETS': the weights"
        ):
            made = model.predict(level=80).set_index("unique_id")
        np.testing.assert_allclose(made.loc["b", "Combination"], 3.0)
        assert made.notna().all(axis=None)
        with pytest.warns(UserWarning, match="ETS could not fit 1 of 3"):
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


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"forecasters": []}, ValueError, "at least one forecaster"),
            ({"forecasters": [ARMA(), ARMA()]}, ValueError, "2 models have the name 'ARMA'"),
            ({"weights": "best"}, ValueError, "weights must be one of"),
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
