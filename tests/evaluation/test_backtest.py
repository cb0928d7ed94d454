"""Windows, no look ahead, updates in place of fits, failures apart, and a file to go on from."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tsrnn import ARMA, GARCH, VARMA, ParaRNNForecaster, backtest, compare
from tsrnn.baselines import ArchModel, Naive, StatsmodelsETS
from tsrnn.contract import with_shared_arguments

SMALL = {"input_size": 8, "hidden_size": 4, "n_layers": 1, "max_epochs": 1, "random_state": 0}


def monthly(n, seed):
    index = pd.date_range("2001-01", periods=n, freq="MS")
    noise = np.random.default_rng(seed).normal(size=n)
    return pd.Series(10 + np.sin(np.arange(n) / 2) + 0.3 * noise.cumsum(), index, name="y")


def long_frame(lengths=(60, 52, 57)):
    parts = [
        monthly(n, seed).rename_axis("ds").reset_index().assign(unique_id=name)
        for seed, (name, n) in enumerate(zip("abc", lengths, strict=False))
    ]
    return pd.concat(parts, ignore_index=True)[["unique_id", "ds", "y"]]


class Spy(BaseEstimator):
    """Forecasts the last value, and notes what it was shown."""

    def __init__(self, target=None, known_ahead=None, log=None):
        self.target, self.known_ahead, self.log = target, known_ahead, log

    def __sklearn_clone__(self):
        return Spy(self.target, self.known_ahead, self.log)

    def fit(self, df):
        self.log.append(("fit", df))
        self.last_ = df
        return self

    def update(self, df):
        self.log.append(("update", df))
        self.last_ = df
        return self

    def predict(self, h, X_future=None):
        if X_future is not None:
            self.log.append(("future", X_future))
        step = self.last_.index.freq or pd.tseries.frequencies.to_offset("MS")
        index = pd.date_range(self.last_.index[-1], periods=h + 1, freq=step)[1:]
        last = self.last_ if isinstance(self.last_, pd.Series) else self.last_["y"]
        return pd.Series(last.iloc[-1], index)


class Peeking(Spy):
    """Forecasts the mean of everything in the log of its data, the future too."""

    def __init__(self, series=None):
        self.series = series

    def __sklearn_clone__(self):
        return Peeking(self.series)

    def fit(self, df):
        self.last_ = df
        return self

    def update(self, df):
        self.last_ = df
        return self

    def predict(self, h):
        return super().predict(h) * 0 + self.series.mean()


class TestWindows:
    def test_end_with_the_data(self):
        y = monthly(40, 0)
        frame = backtest(ARMA(order=(1, 0)), y, h=3, n_windows=4, step_size=2)
        assert list(frame.columns) == ["unique_id", "ds", "cutoff", "y", "ARMA"]
        cutoffs = [y.index[40 - 3 - 2 * back - 1] for back in (3, 2, 1, 0)]
        assert list(frame["cutoff"]) == list(np.repeat(cutoffs, 3))
        expected = [y.index.get_loc(cutoff) + step for cutoff in cutoffs for step in (1, 2, 3)]
        assert list(frame["ds"]) == list(y.index[expected])
        np.testing.assert_array_equal(frame["y"], y.iloc[expected])
        assert set(frame["unique_id"]) == {"y"}

    def test_of_series_that_end_at_different_times(self):
        long = long_frame()
        frame = backtest(ARMA(order=(1, 0)), long, h=4, n_windows=2)
        for name, own in long.groupby("unique_id"):
            part = frame[frame["unique_id"] == name]
            np.testing.assert_array_equal(part["ds"], own["ds"].iloc[-8:])
            np.testing.assert_array_equal(part["y"], own["y"].iloc[-8:])
            ends = own["ds"].iloc[[-9, -5]]
            np.testing.assert_array_equal(part["cutoff"], np.repeat(ends.to_numpy(), 4))

    @settings(max_examples=25, deadline=None)
    @given(
        st.lists(st.integers(16, 24), min_size=1, max_size=3),
        st.integers(1, 3),
        st.integers(1, 3),
        st.integers(1, 2),
    )
    def test_forecasts_are_those_of_a_loop(self, lengths, h, n_windows, step):
        long, model = long_frame(lengths), ARMA(order=(1, 0), freq="MS")
        frame = backtest(model, long, h=h, n_windows=n_windows, step_size=step, level=90)
        expected = []
        for window in reversed(range(n_windows)):
            past = long.groupby("unique_id").apply(
                lambda own, back=h + step * window: own.iloc[: len(own) - back]
            )
            past = past.reset_index("unique_id").reset_index(drop=True)
            made = clone(model).fit(past).predict(h, level=90)
            expected.append(made.assign(window=n_windows - window))
        expected = pd.concat(expected).sort_values(["unique_id", "window", "ds"])
        columns = ["unique_id", "ds", "ARMA", "ARMA-lo-90", "ARMA-hi-90"]
        pd.testing.assert_frame_equal(
            frame[columns], expected[columns].reset_index(drop=True), rtol=1e-9
        )

    @pytest.mark.parametrize(
        ("refit", "fits"), [(True, [0, 1, 2, 3]), (False, [0]), (2, [0, 2]), (3, [0, 3]), (9, [0])]
    )
    def test_refit_and_update(self, refit, fits):
        y, log = monthly(30, 0), []
        backtest({"spy": Spy(log=log)}, y, h=2, n_windows=4, step_size=3, refit=refit)
        assert [what for what, _ in log] == ["fit" if w in fits else "update" for w in range(4)]
        for window, (what, df) in enumerate(log):
            end = 30 - 2 - 3 * (3 - window)
            begin = 0 if what == "fit" else end - 3
            pd.testing.assert_series_equal(df, y.iloc[begin:end], check_freq=False)

    @pytest.mark.parametrize(
        "make", [lambda: ARMA(order=(1, 1)), lambda: ParaRNNForecaster(**SMALL)]
    )
    def test_without_refit_equals_updates_by_hand(self, make):
        y = monthly(80, 3)
        frame = backtest({"m": make()}, y, h=4, n_windows=5, step_size=2, refit=False, level=[80])
        model = make().fit(y.iloc[: 80 - 4 - 8])
        for window in range(5):
            if window:
                end = 80 - 4 - 8 + 2 * window
                model.update(y.iloc[end - 2 : end])
            made = model.predict(4, level=[80])
            own = frame.iloc[4 * window : 4 * window + 4]
            np.testing.assert_allclose(own["m"], made["y"], rtol=1e-6)
            np.testing.assert_allclose(own["m-hi-80"], made["y-hi-80"], rtol=1e-6)


def cutoffs_of(y, h, **given):
    frame = backtest(Spy(log=[]), y, h, **given)
    rows = [y.index.get_loc(cutoff) + 1 for cutoff in frame["cutoff"].unique()]
    return rows, frame.attrs["backtest"]["remark"]


class TestDefaultWindows:
    def test_are_twenty_without_overlap_where_they_fit(self):
        rows, remark = cutoffs_of(monthly(122, 0), h=3)
        assert rows == list(range(122 - 60, 122, 3))
        assert remark == ""

    @pytest.mark.parametrize("n", range(80, 121, 8))
    def test_move_together_for_twenty_before_they_are_fewer(self, n):
        rows, remark = cutoffs_of(monthly(n, 0), h=12)
        assert len(rows) == 20
        assert rows[0] >= n / 2 - 1
        assert rows[-1] == n - 12
        assert f"The windows are {rows[1] - rows[0]} row" in remark
        assert len(set(np.diff(rows))) == 1

    @pytest.mark.parametrize("n", [14, 17, 24, 40])
    def test_of_short_series_are_as_many_as_fit(self, n):
        rows, remark = cutoffs_of(monthly(n, 0), h=4)
        assert rows == list(range(n // 2, n - 3))
        assert "as many windows as fit into the second half" in remark
        assert f"of {n} rows" in remark

    def test_keep_the_steps_that_are_given(self):
        rows, _ = cutoffs_of(monthly(100, 0), h=2, step_size=5)
        assert rows == list(range(53, 99, 5))

    def test_do_not_follow_a_single_short_series(self):
        with pytest.warns(UserWarning, match="1 series set aside: 'c'"):
            frame = backtest(Naive(), long_frame((60, 60, 12)), h=2)
        assert frame["cutoff"].nunique() == 20
        assert set(frame["unique_id"]) == {"a", "b"}

    def test_give_tests(self):
        result = compare(backtest([Naive(), ARMA(order=(1, 0))], monthly(100, 0), h=12))
        assert np.isfinite(result.diebold_mariano["p_value"]).all()
        assert len(result.confidence_set) == 2


class TestShapes:
    def test_wide_frames_have_a_series_a_column(self):
        wide = pd.DataFrame({"u": monthly(50, 1), "v": monthly(50, 2)})
        frame = backtest([VARMA(order=(1, 0))], wide, h=2, n_windows=2, level=80)
        assert list(frame["unique_id"]) == ["u"] * 4 + ["v"] * 4
        model = VARMA(order=(1, 0)).fit(wide.iloc[:-2]).predict(2, level=80)
        np.testing.assert_allclose(
            frame["VARMA"].iloc[[2, 3, 6, 7]], model[["u", "v"]].T.to_numpy().ravel()
        )
        np.testing.assert_allclose(frame["VARMA-lo-80"].iloc[[6, 7]], model["v-lo-80"])

    def test_several_targets_of_several_series(self):
        long = long_frame().assign(z=lambda d: 2 * d["y"] + np.arange(len(d)) % 5)
        frame = backtest([ARMA(order=(1, 0), target=["y", "z"])], long, h=2, n_windows=1)
        assert list(frame["unique_id"].unique()) == ["a/y", "a/z", "b/y", "b/z", "c/y", "c/z"]
        np.testing.assert_array_equal(
            frame.loc[frame["unique_id"] == "b/z", "y"],
            long.loc[long["unique_id"] == "b", "z"].iloc[-2:],
        )

    @pytest.mark.parametrize(
        "turn",
        [
            lambda d: d.assign(ds=d["ds"].dt.to_period("M")),
            lambda d: d.assign(ds=d["ds"].dt.tz_localize("Europe/Rome")),
            lambda d: d.assign(ds=d.groupby("unique_id").cumcount()),
            lambda d: d.sample(frac=1, random_state=0).sort_values("ds", kind="stable"),
            lambda d: d.rename(columns={"unique_id": "who", "ds": "when"}),
            lambda d: pl.DataFrame({name: d[name].to_list() for name in d}),
        ],
    )
    def test_any_timestamps_and_names(self, turn):
        long = long_frame()
        names = {"id_col": "who", "time_col": "when"} if "who" in turn(long).columns else {}
        one = backtest([ARMA(order=(1, 0))], long, h=3, n_windows=2)
        other = backtest([ARMA(order=(1, 0), **names)], turn(long), h=3, n_windows=2)
        assert list(other.columns) == list(one.columns)
        merged = one.merge(other, on="y", suffixes=("", "_other"))
        assert len(merged) == len(one)
        np.testing.assert_allclose(merged["ARMA"], merged["ARMA_other"])
        assert (merged["unique_id"] == merged["unique_id_other"]).all()

    def test_columns_known_ahead_are_given(self):
        y, log = monthly(30, 0), []
        data = pd.DataFrame({"y": y, "x": np.arange(30.0), "past": np.arange(30.0)})
        backtest({"spy": Spy("y", ["x"], log)}, data, h=2, n_windows=2)
        futures = [df for what, df in log if what == "future"]
        assert [list(df.columns) for df in futures] == [["x"], ["x"]]
        np.testing.assert_array_equal(futures[0]["x"], [26, 27])
        np.testing.assert_array_equal(futures[1].index, y.index[-2:])

    def test_known_ahead_equals_a_fit_by_hand(self):
        long = long_frame().assign(x=lambda d: np.sin(np.arange(len(d))))
        long["y"] += long["x"]
        model = ARMA(order=(1, 0), known_ahead="x")
        frame = backtest([model], long, h=3, n_windows=1)
        past = long[long.groupby("unique_id").cumcount(ascending=False) >= 3]
        made = model.fit(past).predict(3, X_future=long.drop(columns="y"))
        np.testing.assert_allclose(frame["ARMA"], made["ARMA"])

    def test_models_without_regressors_stand_beside_those_with(self):
        long = long_frame().assign(x=lambda d: np.sin(np.arange(len(d))))
        models = {
            "with": ARMA(order=(1, 0), known_ahead="x"),
            "naive": Naive(),
            "StatsmodelsETS": StatsmodelsETS(),
        }
        both = backtest(models, long, h=3, n_windows=2)
        alone = backtest([Naive(), StatsmodelsETS()], long.drop(columns="x"), h=3, n_windows=2)
        np.testing.assert_allclose(both["naive"], alone["Naive"])
        np.testing.assert_allclose(both["StatsmodelsETS"], alone["StatsmodelsETS"])
        assert both["with"].notna().all()

    def test_a_column_may_be_called_cutoff(self):
        wide = pd.DataFrame({"cutoff": monthly(50, 1), "v": monthly(50, 2)})
        frame = backtest(ARMA(order=(1, 0)), wide, h=2, n_windows=1)
        assert list(frame["unique_id"]) == ["cutoff"] * 2 + ["v"] * 2

    def test_pipelines(self):
        wide = pd.DataFrame({"u": monthly(50, 1), "v": monthly(50, 2)})
        pipeline = make_pipeline(FunctionTransformer(), ARMA(order=(1, 0)))
        alone = backtest(ARMA(order=(1, 0)), wide, h=2, n_windows=3, refit=False)
        piped = backtest(pipeline, wide, h=2, n_windows=3, refit=False)
        np.testing.assert_allclose(piped["ARMA"], alone["ARMA"])

    def test_variances(self):
        returns = pd.DataFrame(
            np.random.default_rng(0).normal(1, 2, (300, 2)),
            pd.date_range("2001", periods=300, freq="B"),
            columns=["u", "v"],
        )
        frame = backtest([GARCH()], returns, h=2, n_windows=3, kind="variance")
        known = returns.iloc[: 300 - 6]
        expected = ((returns - known.mean()) ** 2).iloc[-6:].to_numpy().T.ravel()
        np.testing.assert_allclose(frame["y"], expected)
        made = GARCH().fit(returns.iloc[:-2]).predict_variance(2)
        np.testing.assert_allclose(frame["GARCH"].iloc[[4, 5, 10, 11]], made.to_numpy().T.ravel())

    def test_ids_may_be_true_and_false(self):
        long = long_frame((30, 30))
        long.loc[long["unique_id"] == "b", "y"] = 3.0
        long["unique_id"] = long["unique_id"] == "a"
        with pytest.warns(UserWarning, match="1 series set aside: False"):
            frame = backtest([ArchModel()], long, h=2, n_windows=2)
        assert frame.loc[frame["ArchModel"].isna(), "unique_id"].tolist() == [False] * 4

    def test_a_frequency_that_the_first_rows_do_not_show(self):
        weekdays = pd.Series(np.arange(15.0), pd.bdate_range("2024-01-01", periods=15))
        assert weekdays.index[4].day_name() == "Friday"  # the first window looks like all days
        assert backtest(Naive(), weekdays, h=5, n_windows=2)["Naive"].tolist() == [4] * 5 + [9] * 5
        assert backtest(Naive(), weekdays, h=7, n_windows=1)["Naive"].tolist() == [7.0] * 7

    @pytest.mark.parametrize(
        ("df", "arguments"),
        [
            (pd.DataFrame({1: monthly(30, 0), "1": monthly(30, 1)}), {}),
            (
                long_frame((30, 30))
                .assign(z=0.0, **{"b/z": 1.0})
                .replace({"unique_id": {"b": "a/b"}}),
                {"target": ["z", "b/z"]},
            ),
        ],
    )
    def test_names_that_are_the_same_as_text_are_refused(self, df, arguments):
        with pytest.raises(ValueError, match=r"must have different names as text.*Rename"):
            backtest(Naive(**arguments), df.drop(columns="y", errors="ignore"), h=2, n_windows=2)

    def test_attributes_for_compare(self):
        long = long_frame()
        told = backtest(ARMA(order=(1, 0)), long, h=4, n_windows=2).attrs["backtest"]
        assert (told["h"], told["kind"], told["season_length"]) == (4, "mean", 12)
        assert told["failures"] == []
        assert told["seconds"]["ARMA"] > 0
        for name, mae, mse in zip(
            *(told["scale"][key] for key in ("unique_id", "mae", "mse")), strict=True
        ):
            past = long.loc[long["unique_id"] == name, "y"].iloc[:-8]
            assert mae == pytest.approx(past.diff(12).abs().mean())
            assert mse == pytest.approx((past.diff(12) ** 2).mean())


def changed_by_the_future(models, y):
    """Names of models whose forecasts change when only rows after their cutoffs do."""
    arguments = {"h": 3, "n_windows": 4, "step_size": 3, "refit": False, "level": None}
    before = backtest(models(y), y, **arguments)
    after = y.copy()
    after.iloc[-6:] += 100.0
    other = backtest(models(after), after, **arguments)
    known = before["cutoff"] < y.index[-6]
    assert known.sum() == 9
    names = [name for name in before if name not in ("unique_id", "ds", "cutoff", "y")]
    return [name for name in names if (before[name][known] != other[name][known]).any()]


class TestNoLookAhead:
    def test_a_planted_leak_is_caught(self):
        found = changed_by_the_future(
            lambda y: {"honest": Spy(log=[]), "peeking": Peeking(y)}, monthly(40, 0)
        )
        assert found == ["peeking"]

    def test_the_future_does_not_change_the_past(self):
        found = changed_by_the_future(
            lambda _: {"ARMA": ARMA(order=(1, 1)), "ParaRNN": ParaRNNForecaster(**SMALL)},
            monthly(90, 4),
        )
        assert found == []

    def test_nothing_after_the_cutoff_is_shown(self):
        y, log = monthly(30, 0), []
        frame = backtest({"spy": Spy(log=log)}, y, h=2, n_windows=4, step_size=1, refit=2)
        cutoffs = frame["cutoff"].unique()
        assert [df.index[-1] for _, df in log] == list(cutoffs)

    def test_the_scale_is_that_of_the_past(self):
        y = monthly(60, 0)
        one = backtest(ARMA(order=(1, 0)), y, h=3, n_windows=1).attrs["backtest"]["scale"]
        y.iloc[-3:] = 1e6
        assert backtest(ARMA(order=(1, 0)), y, h=3, n_windows=1).attrs["backtest"]["scale"] == one


@with_shared_arguments
class Failing(ARMA):
    """Raises when its data end in a given month."""

    def __init__(self, month=None, error=ValueError, **shared):
        super().__init__(**shared)
        self.month, self.error = month, error

    def fit(self, df, y=None):
        if df.index[-1].month == self.month:
            raise self.error("no luck")
        return super().fit(df)


class TestFailures:
    def run(self, models, **changes):
        return backtest(models, monthly(60, 0), **({"h": 1, "n_windows": 4} | changes))

    def test_are_named_and_kept_apart(self):
        models = {"good": ARMA(order=(1, 0)), "bad": Failing(10, order=(1, 0))}
        with pytest.warns(UserWarning, match=r"1 of 8 windows.*'bad' at 2005-10-01.*no luck"):
            frame = self.run(models)
        assert frame["bad"].isna().tolist() == [False, False, True, False]
        assert frame["good"].notna().all()
        np.testing.assert_allclose(frame["bad"].dropna(), frame["good"][frame["bad"].notna()])
        (failure,) = frame.attrs["backtest"]["failures"]
        assert failure["model"] == "bad"
        assert failure["error"] == "ValueError: no luck"

    def test_of_a_fit_last_until_the_next_one(self):
        models = {"good": ARMA(order=(1, 0)), "bad": Failing(8, order=(1, 0))}
        with pytest.warns(UserWarning, match="2 of 8 windows"):
            frame = self.run(models, refit=2)
        assert frame["bad"].isna().tolist() == [True, True, False, False]
        assert "as in an earlier window" in frame.attrs["backtest"]["failures"][1]["error"]

    def test_of_one_series_are_kept_with_their_reason(self):
        long = long_frame()
        long.loc[long["unique_id"] == "b", "y"] = 3.0
        with pytest.warns(UserWarning, match="'b'"):
            frame = backtest([ArchModel(), Naive()], long, h=2, n_windows=2, refit=False)
        lost = frame["ArchModel"].isna()
        assert set(frame.loc[lost, "unique_id"]) == {"b"}
        assert lost.sum() == 4
        told = frame.attrs["backtest"]["failures"]
        assert [(f["model"], f["unique_id"]) for f in told] == [("ArchModel", "b")] * 2
        assert "constant" in told[0]["error"]

    def test_of_other_models_need_no_messages(self):
        class Silent(Spy):
            messages_ = "none"

            def __sklearn_clone__(self):
                return Silent(log=[])

            def predict(self, h):
                return super().predict(h) * np.nan

        with pytest.warns(UserWarning, match="no forecast"):
            frame = backtest({"s": Silent(), "n": Naive()}, monthly(20, 0), h=2, n_windows=2)
        assert frame["s"].isna().all()

    def test_everywhere_are_an_error(self):
        with pytest.raises(RuntimeError, match="all models failed in all windows.*no luck"):
            self.run({"bad": Failing(11, order=(1, 0))}, n_windows=1)

    def test_of_forecasts_in_another_shape(self):
        class Short(Spy):
            def __sklearn_clone__(self):
                return Short(log=[])

            def predict(self, h):
                return super().predict(h - 1)

        with pytest.warns(UserWarning, match="predict must give a frame of 2 rows"):
            self.run({"good": ARMA(order=(1, 0)), "short": Short(log=[])}, h=2)

    def test_missing_values_stay_missing(self):
        y = monthly(60, 0)
        y.iloc[-2] = np.nan
        frame = backtest(ARMA(order=(1, 0), missing="keep"), y, h=3, n_windows=2)
        assert frame["y"].isna().tolist() == [False, False, False, False, True, False]
        assert frame["ARMA"].notna().all()

    def test_interruptions_pass(self):
        with pytest.raises(KeyboardInterrupt):
            self.run({"bad": Failing(9, KeyboardInterrupt, order=(1, 0))})


FOUR = {"h": 2, "n_windows": 4, "step_size": 1, "level": [80]}


class TestFile:
    def test_goes_on_where_it_was_interrupted(self, tmp_path):
        long, path = long_frame((40, 40)), tmp_path / "done.parquet"
        expected = backtest([ARMA(order=(1, 0))], long, refit=False, **FOUR)

        class Once(ARMA):
            fits, fails = 0, True

            def predict(self, *args, **kwargs):
                if Once.fails and Once.fits == 2:
                    raise KeyboardInterrupt
                Once.fits += 1
                return super().predict(*args, **kwargs)

        models = {"ARMA": Once(order=(1, 0))}
        with pytest.raises(KeyboardInterrupt):
            backtest(models, long, refit=False, path=path, **FOUR)
        assert pl.read_parquet(path)["window"].unique().to_list() == [0, 1]
        Once.fails = False
        found = backtest(models, long, refit=False, path=path, **FOUR)
        assert Once.fits == 4
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12)

    def test_takes_further_models(self, tmp_path):
        y, path = monthly(40, 0), tmp_path / "done.parquet"
        first = backtest({"a": ARMA(order=(1, 0))}, y, path=path, **FOUR)
        both = {"a": ARMA(order=(1, 0)), "b": ARMA(order=(0, 1))}
        found = backtest(both, y, path=path, **FOUR)
        assert found.attrs["backtest"]["seconds"]["a"] == first.attrs["backtest"]["seconds"]["a"]
        pd.testing.assert_frame_equal(found, backtest(both, y, **FOUR))

    def test_tries_again_what_failed(self, tmp_path):
        path, y = tmp_path / "done.parquet", monthly(60, 0)

        class Unlucky(ARMA):
            lucky = False

            def fit(self, df, y=None):
                if not Unlucky.lucky and df.index[-1].month == 10:
                    raise MemoryError("now")
                return super().fit(df)

        models = {"a": Unlucky(order=(1, 0))}
        with pytest.warns(UserWarning, match="MemoryError: now"):
            first = backtest(models, y, h=1, n_windows=3, path=path)
        assert first["a"].isna().sum() == 1
        Unlucky.lucky = True
        again = backtest(models, y, h=1, n_windows=3, path=path)
        pd.testing.assert_frame_equal(again, backtest(models, y, h=1, n_windows=3))

    def test_of_what_cannot_be_known_again_is_refused(self, tmp_path):
        model = ParaRNNForecaster(**(SMALL | {"random_state": np.random.default_rng(0)}))
        with pytest.raises(ValueError, match="random_state of 'ParaRNN' is Generator.*integer"):
            backtest(model, monthly(60, 0), h=1, n_windows=1, path=tmp_path / "done.parquet")

    @pytest.mark.parametrize(
        ("ids", "shown"),
        [("abc", "'b'"), ((3, 1, 2), "1"), (tuple(pd.date_range("2001", periods=3)), "2001-01-02")],
    )
    def test_keeps_lost_series(self, tmp_path, ids, shown):
        path, long = tmp_path / "done.parquet", long_frame()
        long.loc[long["unique_id"] == "b", "y"] = 3.0
        long["unique_id"] = long["unique_id"].map(dict(zip("abc", ids, strict=True)))
        with pytest.warns(UserWarning, match=re.escape(f"set aside: {shown}. ")):
            first = backtest([ArchModel()], long, h=2, n_windows=1, path=path)
        again = backtest([ArchModel()], long, h=2, n_windows=1, path=path)
        assert again.attrs == first.attrs

    def test_of_the_version_before_has_the_names_of_lost_series(self, tmp_path):
        path, long = tmp_path / "done.parquet", long_frame()
        long.loc[long["unique_id"] == "b", "y"] = 3.0
        first = backtest([ArchModel()], long, h=2, n_windows=1, path=path)
        metadata = pl.read_parquet_metadata(path)
        header = json.loads(metadata["tsrnn_backtest"])
        (window,) = header["windows"]
        window[3] = [["b", reason] for _, reason in window[3]]
        metadata["tsrnn_backtest"] = json.dumps(header)
        pl.read_parquet(path).write_parquet(path, metadata=metadata)
        assert backtest([ArchModel()], long, h=2, n_windows=1, path=path).attrs == first.attrs

    def test_keeps_failures(self, tmp_path):
        path, y = tmp_path / "done.parquet", monthly(60, 0)
        models = {"good": ARMA(order=(1, 0)), "bad": Failing(10, order=(1, 0))}
        frames = []
        for _ in range(2):
            with pytest.warns(UserWarning, match="no luck"):
                frames.append(backtest(models, y, h=1, n_windows=3, path=path))
        pd.testing.assert_frame_equal(*frames)
        told = [frame.attrs["backtest"]["failures"] for frame in frames]
        assert told[0] == told[1]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"h": 3}, "other windows or horizon"),
            ({"level": 90}, "other level"),
            ({"refit": 2}, "other refit"),
            ({"df": monthly(40, 1)}, "other data"),
            ({"models": {"a": ARMA(order=(2, 0))}}, "a model 'a' with other arguments"),
        ],
    )
    def test_of_another_backtest_is_refused(self, tmp_path, changes, message):
        path = tmp_path / "done.parquet"
        arguments = {"models": {"a": ARMA(order=(1, 0))}, "df": monthly(40, 0), **FOUR}
        backtest(path=path, **arguments)
        with pytest.raises(ValueError, match=message):
            backtest(path=path, **(arguments | changes))

    def test_of_something_else_is_refused(self, tmp_path):
        path = tmp_path / "other.parquet"
        pl.DataFrame({"x": [1]}).write_parquet(path)
        with pytest.raises(ValueError, match="not the file of a backtest"):
            backtest(ARMA(), monthly(40, 0), h=1, n_windows=1, path=path)
        path.write_text("nothing")
        with pytest.raises(ValueError, match="no parquet file"):
            backtest(ARMA(), monthly(40, 0), h=1, n_windows=1, path=path)
        with pytest.raises(FileNotFoundError, match="make it first"):
            backtest(ARMA(), monthly(40, 0), h=1, path=tmp_path / "no" / "done.parquet")


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"h": 0}, ValueError, "h must be a positive integer; got 0"),
            ({"n_windows": 2.0}, TypeError, "n_windows must be a positive integer"),
            ({"step_size": -1}, ValueError, "step_size must be a positive integer; got -1"),
            ({"refit": 0}, ValueError, "refit, if not True or False, must be a positive integer"),
            ({"refit": "no"}, TypeError, "refit"),
            ({"level": 0.8}, ValueError, "level is in percent"),
            ({"kind": "median"}, ValueError, "kind must be one of"),
            ({"kind": "variance"}, TypeError, "needs models with predict_variance.*'ARMA'"),
            (
                {"n_windows": 20},
                ValueError,
                "20 windows of h=2, 2 rows apart, need more than 40 rows",
            ),
            ({"models": []}, ValueError, "at least one forecaster"),
            ({"models": [ARMA(), ARMA()]}, ValueError, "2 models have the name 'ARMA'. Name them"),
            ({"n_windows": 1, "h": 40}, ValueError, "a window of h=40 needs more than 40 rows"),
            ({"models": ARMA}, TypeError, r"got the class ARMA\. Construct it: ARMA\(\)"),
            ({"models": ["ETS", "ARMA"]}, TypeError, r"ARMA\(\); got 'ETS'\. Construct it: ETS"),
            ({"models": {"a": ARMA}}, TypeError, r"'a' is the class ARMA\. Construct it: ARMA"),
            ({"models": {"a": 3}}, TypeError, r"'a' is 3\. Give an object of a forecaster"),
            ({"models": {"y": ARMA()}}, ValueError, "names of models must be text other than"),
            ({"models": {"a-lo-80": ARMA()}}, ValueError, "must not contain -lo-"),
            ({"models": "ARMA"}, TypeError, "forecasters with fit and predict"),
            (
                {"models": {"a": ARMA(target="y"), "b": ARMA(target="z")}},
                ValueError,
                "target is 'y' in 'a' and 'z' in 'b'",
            ),
            ({"df": monthly(40, 0).iloc[:0]}, ValueError, "empty"),
            ({"df": monthly(40, 0).map("no {:.3f}".format)}, TypeError, "must be numeric"),
            ({"df": pd.concat([monthly(9, 0)] * 2)}, ValueError, "timestamps"),
        ],
    )
    def test_of_arguments(self, changes, error, message):
        arguments = {"models": ARMA(order=(1, 0)), "df": monthly(40, 0), "h": 2}
        with pytest.raises(error, match=message):
            backtest(**(arguments | changes))

    def test_the_shortest_series_is_named_where_all_are_too_short(self):
        with pytest.raises(ValueError, match=r"'b'.*need more than 12 rows; there are 11"):
            backtest(ARMA(), long_frame((12, 11)), h=4, n_windows=3)

    def test_a_series_that_is_too_short_is_told_what_to_do(self):
        with pytest.raises(ValueError, match=r"need more than 12 rows; there are 11. Take fewer"):
            backtest(ARMA(), monthly(11, 0), h=4, n_windows=3)


def test_models_stay_as_they_are():
    model = ARMA(order=(1, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backtest([model], monthly(40, 0), h=2, n_windows=1, verbose=1)
    assert not hasattr(model, "state_")
