"""What every forecaster promises: fit, predict, update, score, and the rules of scikit-learn."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler


@pytest.fixture(scope="module")
def fitted(make, panel):
    return make().fit(panel)


@pytest.fixture(scope="module")
def early(make, panel, cut):
    """Return a forecaster that has not seen the last nine rows of each series."""
    return make().fit(cut(panel, 9)[0])


class TestParameters:
    def test_are_untouched_by_fit(self, make, wide):
        target = ["u"]
        model = make(target=target, known_ahead=["v"])
        before = model.get_params()
        model.fit(wide)
        after = model.get_params()
        assert after == before
        assert all(after[name] is before[name] for name in before)
        assert model.target is target

    def test_set_and_clone(self, fitted):
        copied = clone(fitted).set_params(horizon=4)
        assert copied.get_params() == fitted.get_params() | {"horizon": 4}
        assert not hasattr(copied, "memory_")
        with pytest.raises(ValueError, match="Invalid parameter 'horizons'"):
            copied.set_params(horizons=4)

    def test_repr_shows_what_was_chosen(self, make):
        assert "horizon=6" in repr(make())


class TestFit:
    def test_returns_self(self, make, wave):
        model = make()
        assert model.fit(wave) is model

    def test_does_not_touch_the_data(self, make, panel):
        frame = panel.copy()
        make().fit(frame).predict(frame, h=2)
        pd.testing.assert_frame_equal(frame, panel)

    def test_fitted_attributes(self, fitted):
        assert fitted.horizon_ == 6
        assert fitted.freq_ == "MS"
        assert fitted.n_features_in_ == 1

    def test_a_second_fit_forgets_the_first(self, make, wave, panel, same):
        again = make().fit(panel).fit(wave)
        same(again.predict(), make().fit(wave).predict(), rtol=0)

    def test_a_fit_that_fails_leaves_the_one_before(self, make, wave, same):
        model = make().fit(wave)
        before = model.predict()
        with pytest.raises(ValueError, match="needs at least 18 rows"):
            model.fit(wave.iloc[:10].rename("other"))
        same(model.predict(), before, rtol=0)

    @pytest.mark.parametrize(
        "call",
        [
            lambda m, df: m.predict(),
            lambda m, df: m.predict(df, h=3),
            lambda m, df: m.predict_rolling(df),
            lambda m, df: m.update(df),
            lambda m, df: m.score(df),
            lambda m, df: m.save("never.tsrnn"),
            lambda m, df: m.summary(),
            lambda m, df: m.contributions(),
        ],
        ids=["predict", "new", "rolling", "update", "score", "save", "summary", "contributions"],
    )
    def test_comes_first(self, make, wave, call):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(make(), wave)


class TestPredict:
    def test_horizon_by_position_and_by_name(self, fitted, same):
        same(fitted.predict(24), fitted.predict(h=24), rtol=0)
        same(fitted.predict(), fitted.predict(6), rtol=0)
        same(fitted.predict(np.int64(3)), fitted.predict(3), rtol=0)

    @pytest.mark.parametrize("h", [1, 5, 6, 7, 12, 25])
    def test_any_horizon(self, fitted, same, h):
        forecast = fitted.predict(h)
        assert len(forecast) == 3 * h
        assert np.isfinite(forecast["ParaRNN"]).all()
        shorter = min(h, 6)
        same(
            forecast.groupby("unique_id").head(shorter).reset_index(drop=True),
            fitted.predict(shorter),
            rtol=1e-12,
        )

    def test_longer_horizons_go_on_from_their_own_forecasts(self, fitted, same):
        first = fitted.predict(6).rename(columns={"ParaRNN": "y"})
        gone_on = copy.deepcopy(fitted).update(first).predict(6)
        late = fitted.predict(12).groupby("unique_id").tail(6).reset_index(drop=True)
        same(late, gone_on, rtol=1e-12)

    def test_levels(self, fitted, same):
        names = ["unique_id", "ds", "ParaRNN"]
        both = fitted.predict(4, level=[80, 95])
        suffixes = ["lo-80", "hi-80", "lo-95", "hi-95"]
        assert list(both.columns) == names + [f"ParaRNN-{suffix}" for suffix in suffixes]
        one = fitted.predict(4, level=80)
        same(one, both[[*names, "ParaRNN-lo-80", "ParaRNN-hi-80"]], rtol=0)
        assert (both["ParaRNN-lo-95"] <= both["ParaRNN-lo-80"]).all()
        assert (both["ParaRNN-lo-80"] < both["ParaRNN"]).all()
        assert (both["ParaRNN"] < both["ParaRNN-hi-80"]).all()
        assert (both["ParaRNN-hi-80"] <= both["ParaRNN-hi-95"]).all()
        assert "ParaRNN-lo-52.5" in fitted.predict(4, level=[52.5])

    def test_after_the_data_fitted_to(self, fitted, panel, same):
        same(fitted.predict(panel, h=9), fitted.predict(9))

    def test_of_some_series_and_new_ones(self, fitted, panel, same):
        two = panel[panel["unique_id"] != "b"]
        expected = fitted.predict(5).query("unique_id != 'b'").reset_index(drop=True)
        same(fitted.predict(two, h=5), expected)
        new = panel[panel["unique_id"] == "a"].assign(unique_id="new")
        forecast = fitted.predict(pd.concat([new, two]), h=5, level=[80])
        assert list(forecast["unique_id"].unique()) == ["new", "a", "c"]
        same(forecast.iloc[5:, :3].reset_index(drop=True), expected)

    def test_new_series_are_scaled_by_themselves(self, fitted, panel):
        def forecast(factor, shift):
            new = panel[panel["unique_id"] == "a"].assign(unique_id="new")
            new["y"] = factor * new["y"] + shift
            return fitted.predict(new, h=6)["ParaRNN"]

        np.testing.assert_allclose(forecast(1e6, -3e8), 1e6 * forecast(1, 0) - 3e8, rtol=1e-5)

    def test_new_series_may_be_shorter_than_the_window(self, fitted, panel):
        new = panel.iloc[:3].assign(unique_id="new")
        assert np.isfinite(fitted.predict(new, h=8)["ParaRNN"]).all()

    def test_does_not_change_the_forecaster(self, fitted, panel, same):
        before = fitted.predict(3)
        fitted.predict(panel.iloc[:20], h=6, level=[50])
        same(fitted.predict(3), before, rtol=0)


class TestUpdate:
    def test_equals_the_whole_history(self, early, panel, cut, same):
        model = copy.deepcopy(early)
        assert model.update(cut(panel, 9)[1]) is model
        same(model.predict(8), early.predict(panel, h=8))

    def test_row_by_row_equals_all_at_once(self, early, panel, cut, same):
        rows = cut(panel, 9)[1]
        one, all_ = copy.deepcopy(early), copy.deepcopy(early).update(rows)
        for step in range(9):
            one.update(rows.groupby("unique_id").nth(step))
        same(one.predict(6, level=[80]), all_.predict(6, level=[80]))

    def test_of_some_series(self, early, panel, cut, same):
        rows = cut(panel, 9)[1]
        some = copy.deepcopy(early).update(rows[rows["unique_id"] == "b"])
        all_ = copy.deepcopy(early).update(rows)
        forecast = some.predict(3).set_index("unique_id")
        same(forecast.loc[["b"]], all_.predict(3).set_index("unique_id").loc[["b"]])
        same(forecast.loc[["a", "c"]], early.predict(3).set_index("unique_id").loc[["a", "c"]])

    def test_order_of_series_does_not_matter(self, early, panel, cut, same):
        rows = cut(panel, 9)[1]
        turned = pd.concat([rows[rows["unique_id"] == name] for name in "cab"])
        one, other = copy.deepcopy(early).update(turned), copy.deepcopy(early).update(rows)
        same(one.predict(3), other.predict(3), rtol=0)

    def test_that_fails_changes_nothing(self, early, panel, cut, same):
        model = copy.deepcopy(early)
        with pytest.raises(ValueError, match="new rows must begin at"):
            model.update(cut(panel, 8)[1])
        same(model.predict(), early.predict(), rtol=0)


class TestScore:
    def test_is_its_definition(self, early, panel, cut):
        future = cut(panel, 9)[1]
        forecast = early.predict(9)["ParaRNN"].to_numpy().reshape(3, 9)
        actual = future["y"].to_numpy().reshape(3, 9)
        training = early.memory_.scaling.target.scale
        expected = np.mean(1 - ((actual - forecast) ** 2).mean(1) / training[:, 0] ** 2)
        assert early.score(future) == pytest.approx(expected, rel=1e-9)

    def test_of_unequal_lengths(self, early, panel, cut):
        future = cut(panel, 9)[1]
        parts = [future[future["unique_id"] == name] for name in "abc"]
        parts[1] = parts[1].iloc[:2]
        expected = np.mean([early.score(part) for part in parts])
        assert early.score(pd.concat(parts)) == pytest.approx(expected, rel=1e-6)

    def test_in_a_search(self, make, wave):
        search = GridSearchCV(
            make(), {"horizon": [3, 6]}, cv=TimeSeriesSplit(2, test_size=6), error_score="raise"
        )
        search.fit(wave.to_frame())
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert len(search.predict(wave.to_frame())) == search.best_params_["horizon"]

    def test_in_cross_validation(self, make, wave):
        scores = cross_val_score(
            make(), wave.to_frame(), cv=TimeSeriesSplit(2, test_size=6), error_score="raise"
        )
        by_hand = [
            make().fit(wave.iloc[:n]).score(wave.iloc[n : n + 6])
            for n in (len(wave) - 12, len(wave) - 6)
        ]
        np.testing.assert_allclose(scores, by_hand, rtol=1e-9)


class TestComposition:
    def test_in_a_pipeline(self, make, wide, same):
        scaler = StandardScaler().set_output(transform="pandas")
        pipeline = make_pipeline(FunctionTransformer(np.log), scaler, make()).fit(wide)
        logs = np.log(wide)
        standard = (logs - logs.mean()) / logs.std(ddof=0)
        forecast = pipeline.predict(wide, h=4)
        assert list(forecast.columns) == ["u", "v", "w"]
        same(forecast, make().fit(standard).predict(4), rtol=1e-4)

    def test_in_workers(self, make, wide, same):
        columns = [wide[name] for name in wide]
        with joblib.Parallel(n_jobs=2) as parallel:
            models = parallel(joblib.delayed(make().fit)(column) for column in columns[:2])
        for model, column in zip(models, columns, strict=False):
            same(model.predict(), make().fit(column).predict(), rtol=0)

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    def test_copies_are_whole(self, early, panel, cut, same, copied):
        model = copied(early)
        same(model.predict(6, level=[80]), early.predict(6, level=[80]), rtol=0)
        model.update(cut(panel, 9)[1])
        assert (early.predict(1)["ds"] < model.predict(1)["ds"]).all()
