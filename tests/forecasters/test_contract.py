"""What every forecaster promises: fit, predict, update, score, and the rules of scikit-learn."""

import copy
import importlib

import joblib
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

mpl.use("Agg")

import matplotlib.pyplot as plt

import tsrnn
from tsrnn.models import MODELS

MULTIVARIATE_TOO = EVERY_NETWORK = True


@pytest.fixture(scope="module")
def fitted(fitted_to):
    return fitted_to("data")


@pytest.fixture(scope="module")
def early(make, data, cut):
    """Return a forecaster that has not seen the last nine rows of each series."""
    return make().fit(cut(data, 9)[0])


def shown(params):
    """Parameters by name; forecasters among them are never equal to others, but look the same."""
    return {name: repr(v) if name == "forecasters" else v for name, v in params.items()}


class TestParameters:
    @pytest.mark.few
    def test_are_untouched_by_fit(self, make, entry, wide):
        target = ["u", "v"][: entry.n_targets]
        known = ["w"] if entry.exogenous else None
        model = make(target=target, known_ahead=known)
        before = model.get_params()
        model.fit(wide[[*target, *(known or [])]])
        after = model.get_params()
        assert after == before
        assert all(after[name] is before[name] for name in before)
        assert model.target is target


class TestFit:
    @pytest.mark.few
    def test_returns_self_and_does_not_touch_the_data(self, make, data):
        frame, model = data.copy(), make()
        assert model.fit(frame) is model
        model.predict(frame, h=2)
        pd.testing.assert_frame_equal(frame, data)

    def test_fitted_attributes(self, fitted, entry):
        assert fitted.horizon_ == 6
        assert fitted.freq_ == "MS"
        assert fitted.n_features_in_ == entry.n_targets

    @pytest.mark.few
    def test_a_second_fit_forgets_the_first(self, fitted_to, single, same):
        again = fitted_to("data").fit(single)
        same(again.predict(), fitted_to("single").predict(), rtol=0)

    @pytest.mark.few
    def test_needs_rows(self, make, entry, single):
        assert np.isfinite(make().fit(single.iloc[: entry.fewest]).predict().to_numpy()).all()
        with pytest.raises(ValueError, match=entry.too_short):
            make(freq="MS").fit(single.iloc[: entry.fewest - 1])

    @pytest.mark.parametrize(
        ("method", "arguments"),
        [
            ("predict", lambda df: ()),
            ("predict", lambda df: (df, 3)),
            ("predict_rolling", lambda df: (df,)),
            ("update", lambda df: (df,)),
            ("score", lambda df: (df,)),
            ("save", lambda df: ("never.tsrnn",)),
            ("summary", lambda df: ()),
        ],
    )
    def test_comes_first(self, make, single, method, arguments):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(make(), method)(*arguments(single))

    @pytest.mark.where.with_args(
        lambda entry: hasattr(entry.cls(**entry.settings), "contributions")
    )
    def test_comes_before_contributions(self, make):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            make().contributions()


class TestPredict:
    def test_horizon_by_position_and_by_name(self, fitted, same):
        same(fitted.predict(24), fitted.predict(h=24), rtol=0)
        same(fitted.predict(), fitted.predict(6), rtol=0)
        same(fitted.predict(np.int64(3)), fitted.predict(3), rtol=0)

    @pytest.mark.parametrize("h", [1, 5, 6, 7, 12, 25])
    def test_any_horizon(self, fitted, columns, same, h):
        forecast = fitted.predict(h)
        assert len(forecast) == 3 * h
        assert np.isfinite(forecast[columns].to_numpy()).all()
        shorter = min(h, 6)
        same(
            forecast.groupby("unique_id").head(shorter).reset_index(drop=True),
            fitted.predict(shorter),
            rtol=1e-12,
        )

    @pytest.mark.where.with_args(lambda entry: entry.goes_on)
    def test_longer_horizons_go_on_from_their_own_forecasts(self, fitted, columns, same, entry):
        first = fitted.predict(6).rename(columns={columns[0]: "y"})
        gone_on = copy.deepcopy(fitted).update(first).predict(6)
        late = fitted.predict(12).groupby("unique_id").tail(6).reset_index(drop=True)
        same(late, gone_on, rtol=1e-12)

    def test_levels(self, fitted, columns, same):
        def named(*suffixes):
            return ["unique_id", "ds", *(c + end for c in columns for end in ("", *suffixes))]

        both = fitted.predict(4, level=[80, 95])
        assert list(both.columns) == named("-lo-80", "-hi-80", "-lo-95", "-hi-95")
        same(fitted.predict(4, level=80), both[named("-lo-80", "-hi-80")], rtol=0)
        for column in columns:
            assert (both[f"{column}-lo-95"] <= both[f"{column}-lo-80"]).all()
            assert (both[f"{column}-lo-80"] < both[column]).all()
            assert (both[column] < both[f"{column}-hi-80"]).all()
            assert (both[f"{column}-hi-80"] <= both[f"{column}-hi-95"]).all()
        assert f"{columns[0]}-lo-52.5" in fitted.predict(4, level=[52.5])

    def test_after_the_data_fitted_to(self, fitted, data, same):
        same(fitted.predict(data, h=9), fitted.predict(9))

    def test_of_some_series(self, fitted, data, same):
        two = data[data["unique_id"] != "b"]
        expected = fitted.predict(5).query("unique_id != 'b'").reset_index(drop=True)
        same(fitted.predict(two, h=5), expected)

    def test_does_not_change_the_forecaster(self, fitted, data, same):
        before = fitted.predict(3)
        fitted.predict(data.iloc[:24], h=6, level=[50])
        same(fitted.predict(3), before, rtol=0)


@pytest.mark.where.with_args(lambda entry: entry.new_series)
class TestNewSeries:
    def test_beside_known_ones(self, fitted, data, same):
        two = data[data["unique_id"] != "b"]
        expected = fitted.predict(two, h=5)
        new = data[data["unique_id"] == "a"].assign(unique_id="new")
        forecast = fitted.predict(pd.concat([new, two]), h=5, level=[80])
        assert list(forecast["unique_id"].unique()) == ["new", "a", "c"]
        same(forecast.iloc[5:, :3].reset_index(drop=True), expected)

    @pytest.mark.where.with_args(lambda entry: entry.equivariant)
    def test_are_scaled_by_themselves(self, fitted, columns, data, entry):
        def forecast(factor, shift):
            new = data[data["unique_id"] == "a"].assign(unique_id="new")
            new["y"] = factor * new["y"] + shift
            return fitted.predict(new, h=6)[columns]

        np.testing.assert_allclose(forecast(1e6, -3e8), 1e6 * forecast(1, 0) - 3e8, rtol=1e-5)

    def test_may_be_shorter_than_the_window(self, fitted, columns, data):
        new = data.iloc[:3].assign(unique_id="new")
        assert np.isfinite(fitted.predict(new, h=8)[columns].to_numpy()).all()


@pytest.mark.where.with_args(lambda entry: not entry.new_series)
class TestSeriesOfTheirOwn:
    """Forecasters of which each series has parameters of its own."""

    def test_new_ones_are_refused_where_several_were_fitted(self, fitted, data):
        new = data[data["unique_id"] == "a"].assign(unique_id="new")
        with pytest.raises(ValueError, match="'new'"):
            fitted.predict(pd.concat([data, new]), h=5)

    def test_new_ones_take_the_parameters_of_the_only_one(self, make, data, same):
        a = data[data["unique_id"] == "a"]
        model = make().fit(a)
        forecast = model.predict(a.assign(unique_id="new"), h=5)
        same(forecast.assign(unique_id="a"), model.predict(5))

    @pytest.mark.few
    def test_are_fitted_as_if_alone(self, make, fitted, data, same):
        for name in "abc":
            alone = make().fit(data[data["unique_id"] == name])
            together = fitted.predict(4).query("unique_id == @name").reset_index(drop=True)
            same(alone.predict(4), together, rtol=1e-5)


class TestUpdate:
    @pytest.mark.few(
        "ParaRNN",
        "LRU",
        "ARMA",
        "ETS",
        "CES",
        "Theta",
        "GARCH",
        "VARMA",
        "CCC",
        "DCC",
        "VECMGARCH",
        "SARIMAX",
        "StatsmodelsTheta",
        "ArchModel",
        "Naive",
        "SeasonalNaive",
        "Drift",
        "Mean",
        "Naive2",
        "VAR",
        "VECM",
        "Combination",
        "StatsmodelsAutoARIMA",
    )
    def test_equals_the_whole_history(self, early, data, cut, same):
        model = copy.deepcopy(early)
        assert model.update(cut(data, 9)[1]) is model
        same(model.predict(8), early.predict(data, h=8))

    @pytest.mark.few
    def test_row_by_row_equals_all_at_once(self, early, data, cut, same):
        rows = cut(data, 9)[1]
        one, all_ = copy.deepcopy(early), copy.deepcopy(early).update(rows)
        for step in range(9):
            one.update(rows.groupby("unique_id").nth(step))
        same(one.predict(6, level=[80]), all_.predict(6, level=[80]))

    def test_of_some_series(self, early, data, cut, same):
        rows = cut(data, 9)[1]
        some = copy.deepcopy(early).update(rows[rows["unique_id"] == "b"])
        all_ = copy.deepcopy(early).update(rows)
        forecast = some.predict(3).set_index("unique_id")
        same(forecast.loc[["b"]], all_.predict(3).set_index("unique_id").loc[["b"]])
        same(forecast.loc[["a", "c"]], early.predict(3).set_index("unique_id").loc[["a", "c"]])

    def test_order_of_series_does_not_matter(self, early, data, cut, same):
        rows = cut(data, 9)[1]
        turned = pd.concat([rows[rows["unique_id"] == name] for name in "cab"])
        one, other = copy.deepcopy(early).update(turned), copy.deepcopy(early).update(rows)
        # a product of matrices in float32 rounds by the place of a row
        same(one.predict(3), other.predict(3), rtol=1e-6)

    def test_that_fails_changes_nothing(self, early, data, cut, same):
        model = copy.deepcopy(early)
        with pytest.raises(ValueError, match="new rows must begin at"):
            model.update(cut(data, 8)[1])
        same(model.predict(), early.predict(), rtol=0)


class TestScore:
    def test_is_its_definition(self, early, columns, data, cut):
        future = cut(data, 9)[1]
        forecast = early.predict(9)[columns].to_numpy().reshape(3, 9, -1)
        actual = future.drop(columns=["unique_id", "ds"]).to_numpy().reshape(3, 9, -1)
        training = early.state_.target_scale
        expected = np.mean(1 - ((actual - forecast) ** 2).mean(1) / training**2)
        assert early.score(future) == pytest.approx(expected, rel=1e-9)

    def test_of_unequal_lengths(self, early, data, cut):
        future = cut(data, 9)[1]
        parts = [future[future["unique_id"] == name] for name in "abc"]
        parts[1] = parts[1].iloc[:2]
        expected = np.mean([early.score(part) for part in parts])
        assert early.score(pd.concat(parts)) == pytest.approx(expected, rel=1e-6)

    @pytest.mark.few
    def test_in_a_search(self, make, single):
        search = GridSearchCV(
            make(), {"horizon": [3, 6]}, cv=TimeSeriesSplit(2, test_size=6), error_score="raise"
        )
        search.fit(pd.DataFrame(single))
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert len(search.predict(pd.DataFrame(single))) == search.best_params_["horizon"]

    @pytest.mark.few
    def test_in_cross_validation(self, make, single):
        scores = cross_val_score(
            make(), pd.DataFrame(single), cv=TimeSeriesSplit(2, test_size=6), error_score="raise"
        )
        by_hand = [
            make().fit(single.iloc[:n]).score(single.iloc[n : n + 6])
            for n in (len(single) - 12, len(single) - 6)
        ]
        np.testing.assert_allclose(scores, by_hand, rtol=1e-9)


class TestComposition:
    @pytest.mark.few
    def test_in_a_pipeline(self, make, wide, same):
        scaler = StandardScaler().set_output(transform="pandas")
        model = make(target=None)
        pipeline = make_pipeline(FunctionTransformer(np.log), scaler, model).fit(wide)
        logs = np.log(wide)
        standard = (logs - logs.mean()) / logs.std(ddof=0)
        forecast = pipeline.predict(wide, h=4)
        assert list(forecast.columns) == ["u", "v", "w"]
        same(forecast, make(target=None).fit(standard).predict(4), rtol=1e-4)

    @pytest.mark.few("ARMA", "LEM", "Naive", "SARIMAX", "VARMA")
    def test_in_workers(self, make, entry, wide, same):
        frames = [wide.iloc[:, i : i + entry.n_targets] for i in range(2)]
        model = make(target=None)
        with joblib.Parallel(n_jobs=2) as parallel:
            models = parallel(joblib.delayed(clone(model).fit)(frame) for frame in frames)
        # Workers have one thread: matrix products of torch may differ in the last digit.
        for made, frame in zip(models, frames, strict=True):
            same(made.predict(), model.fit(frame).predict(), rtol=1e-6)


def drawn(axes, label):
    """Return the numbers of the lines of a label, a row a panel."""
    return [line.get_ydata() for ax in axes for line in ax.get_lines() if line.get_label() == label]


class TestPlot:
    """The picture has the numbers of the data and of `predict`."""

    @pytest.fixture(autouse=True)
    def _no_figure_stays(self):
        yield
        plt.close("all")

    def check(self, axes, data, forecast, columns, last=40):
        """Panels are the series, of each the targets."""
        panels = [(one, i) for one in data["unique_id"].unique() for i in range(len(columns))]
        panels = panels[: len(axes)]
        targets = [name for name in ("y", "z") if name in data]
        past, ahead = drawn(axes, "history"), drawn(axes, "forecast")
        assert len(past) == len(ahead) == len(panels)
        for (one, i), own, made in zip(panels, past, ahead, strict=True):
            expected = data.loc[data["unique_id"] == one, targets[i]]
            np.testing.assert_allclose(own, expected[-last:])
            rows = forecast["unique_id"] == one
            np.testing.assert_allclose(made, forecast.loc[rows, columns[i]], rtol=1e-5)

    @pytest.mark.few
    def test_history_and_forecast_in_one_call(self, fitted, data, columns):
        axes = fitted.plot(5)
        assert len(axes) == (3 if len(columns) == 1 else 4)
        self.check(axes, data, fitted.predict(5), columns)
        legend = [text.get_text() for text in axes[0].get_legend().get_texts()]
        assert legend == ["history", "80% interval", "forecast"]

    @pytest.mark.few
    def test_of_rows_taken_in_and_of_a_file(self, early, data, cut, columns, tmp_path):
        model = copy.deepcopy(early).update(cut(data, 9)[1])
        model.save(tmp_path / "model")
        loaded = tsrnn.load(tmp_path / "model")
        self.check(model.plot(last=30), data, model.predict(), columns, last=30)
        self.check(loaded.plot(), data, model.predict(), columns)

    def test_of_some_series_after_data(self, fitted, data, cut, columns):
        part = cut(data, 9)[0]
        part = part[part["unique_id"] == "b"]
        axes = fitted.plot(part, h=4, level=None, series="b", ax=plt.subplots(len(columns))[1])
        self.check(axes, part, fitted.predict(part, h=4), columns)


class TestFile:
    @pytest.mark.few
    def test_everything_comes_back(self, early, data, cut, same, tmp_path):
        early.save(tmp_path / "model")
        loaded, future = tsrnn.load(tmp_path / "model"), cut(data, 9)[1]
        assert type(loaded) is type(early)
        assert shown(loaded.get_params()) == shown(early.get_params())
        assert loaded.n_features_in_ == early.n_features_in_
        assert str(loaded.summary()) == str(early.summary())
        same(loaded.predict(15), early.predict(15), rtol=0)
        same(loaded.predict(level=[80]), early.predict(level=[80]), rtol=0)
        same(loaded.predict(data), early.predict(data), rtol=0)
        assert loaded.score(future) == early.score(future)
        same(loaded.update(future).predict(), copy.deepcopy(early).update(future).predict(), 0)

    def test_classes_are_known_by_name(self, entry):
        assert entry.cls.__name__ in MODELS
        home = importlib.import_module(MODELS[entry.cls.__name__].module)
        assert getattr(tsrnn if entry.at_top else home, entry.cls.__name__) is entry.cls
        assert entry.cls.__module__.startswith(f"{home.__name__}.")
