"""Values that a target can have: recognised, given, kept by every forecast."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tsrnn import ARMA, ParaRNNForecaster, hierarchy
from tsrnn.baselines import Drift, Mean, Naive
from tsrnn.contract import DamagedFileError, IntervalWarning, Support, within_supports
from tsrnn.evaluation import Combination, backtest

RNG = np.random.default_rng(3)
MONTHS = pd.period_range("2015-01", periods=60, freq="M")


def monthly(values, name="y"):
    values = np.asarray(values)
    return pd.Series(values, MONTHS[: len(values)], name=name)


def counts(mean=0.3, n=60):
    return monthly(np.random.default_rng(5).poisson(mean, n))


def ends_of(frame, level, column="y"):
    return frame[f"{column}-lo-{level}"].to_numpy(), frame[f"{column}-hi-{level}"].to_numpy()


class TestRecognition:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([0, 1, 1, 0], "binary"),
            ([0, 0, 0], "count"),
            ([3, 3, 3], "count"),
            ([0, 1, 2], "count"),
            ([0, 0, 700, 0], "count"),
            ([20, 20, 30], "count"),
            ([112, 118, 622], "nonnegative"),
            ([0.0, 1.5, 2.0], "nonnegative"),
            ([-1, 0, 1], "real"),
            ([-0.5, 2.0, 3.0], "real"),
            ([0, 0.2, 1, 0, 1, 0, 1], (0.0, 1.0)),
            ([0, 20.5, 100, 0, 100, 0, 100], (0.0, 100.0)),
            ([0, 0.2, 1, 0, 1, 0], "nonnegative"),  # 1 is there twice
            ([0, 100, 0, 100, 0, 100], "nonnegative"),  # lots of a hundred
        ],
    )
    def test_by_the_values(self, values, expected):
        model = Naive().fit(monthly(values))
        assert model.support_ == {"y": expected}

    def test_target_by_target(self):
        frame = pd.DataFrame({"sold": [0, 2, 1, 0], "gain": [0.5, -1, 2, 0], "open": [0, 1, 1, 1]})
        model = Naive().fit(frame.set_index(MONTHS[:4]))
        assert model.support_ == {"sold": "count", "gain": "real", "open": "binary"}

    def test_a_column_is_of_all_series_of_a_panel(self):
        days = pd.date_range("2024-01-01", periods=3)
        frame = pd.DataFrame({"unique_id": list("aaabbb"), "ds": [*days, *days], "y": range(-1, 5)})
        assert Naive().fit(frame).support_ == {"y": "real"}

    @pytest.mark.parametrize("missing", ["auto", "interpolate", "keep"])
    def test_interpolated_counts_are_counts(self, missing):
        y = monthly([1, np.nan, 2, 5, np.nan, np.nan, 1, 0, 1], "y").astype(float)
        cls = ARMA if missing == "keep" else Naive
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = cls(missing=missing).fit(y)
            assert model.support_ == {"y": "count"}
            assert cls(missing=missing, support="count").fit(y).support_ == {"y": "count"}

    def test_a_share_of_whole_values_makes_no_count(self):
        assert Naive().fit(monthly([1, 2.5, 2, 5, 7, 1])).support_ == {"y": "nonnegative"}


class TestArgument:
    @pytest.mark.parametrize(
        "value",
        ["counts", None, 3, (1, 0), (0, 0), (None, None), (0,), (0, 1, 2), ("a", 1), (0, np.inf),
         (0, np.nan), (True, 2), ["count"]],
    )  # fmt: skip
    def test_others_are_refused(self, value):
        with pytest.raises(ValueError, match="support must be one of .*'auto', 'real'"):
            Naive(support=value).fit(counts())

    @pytest.mark.parametrize(
        ("support", "bad", "message"),
        [
            ("nonnegative", -1.0, "must be not negative"),
            ("count", 1.5, "must be a whole number and not negative"),
            ("binary", 2.0, "must be 0 or 1"),
            ((0, 100), 101.0, "must be between 0 and 100"),
            ((0, None), -2.0, "must be at least 0"),
            ((None, 4), 5.0, "must be at most 4"),
        ],
    )
    def test_values_outside_are_refused(self, support, bad, message):
        y = monthly([0.0, 1, 1, bad, 0])
        with pytest.raises(ValueError, match=rf"'y' {message}.* it is {bad:g} at .*2015-04"):
            Naive(support=support).fit(y)

    @pytest.mark.parametrize("support", ["nonnegative", "count", "binary", (0, 9), [0, None]])
    def test_later_values_outside_are_refused(self, support):
        y = monthly([0, 1, 1, 0, 1, 0, -3])
        model = Naive(support=support).fit(y[:-1])
        for ask in (model.update, model.score, lambda df: model.predict_rolling(df, h=1)):
            with pytest.raises(ValueError, match=r"it is -3 at .*2015-07.*support='real'"):
                ask(y[-1:])
        with pytest.raises(ValueError, match="it is -3 at"):
            model.predict(y)

    def test_real_forecasts_are_those_of_the_model(self):
        y = counts()
        free = Mean(support="real").fit(y).predict(2, level=80)
        assert (free["y-lo-80"] < 0).all()
        cut = Mean(support="nonnegative").fit(y).predict(2, level=80)
        assert (cut["y-lo-80"] == 0).all()
        assert cut["y-hi-80"].equals(free["y-hi-80"])

    def test_what_forecasts_is_the_same(self):
        """Support and strict reading ask for no training, which other arguments do."""
        positive = monthly(np.random.default_rng(5).gamma(3, 1, 60))
        values = (
            ParaRNNForecaster(horizon=3, **arguments).fit(positive).predict()
            for arguments in ({}, {"support": "real"}, {"support": "nonnegative", "strict": True})
        )
        first, *others = values
        for other in others:
            pd.testing.assert_series_equal(other, first)


class TestLater:
    def test_a_recognised_support_is_widened_with_a_warning(self):
        y = counts()
        new = pd.Series([-2.0], pd.period_range("2020-01", periods=1, freq="M"), name="y")
        model = Mean().fit(y)
        with pytest.warns(UserWarning, match="was a whole number and not negative") as caught:
            model.update(new)
        assert len(caught) == 1
        assert model.support_ == {"y": "real"}
        assert (model.predict(1, level=95)["y-lo-95"] < 0).all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.update(new.set_axis(new.index + 1))

    @pytest.mark.parametrize(
        ("before", "value", "after"),
        [
            ([0, 1, 1], 2, "count"),
            ([0, 1, 1], 0.5, "nonnegative"),
            ([0, 2, 1], 0.5, "nonnegative"),
            ([0, 2, 1], -1, "real"),
            ([0, 0.2, 1, 0, 1, 0, 1], 1.2, "nonnegative"),
        ],
    )
    def test_to_the_next_support_that_holds_the_values(self, before, value, after):
        model = Naive().fit(monthly(before))
        following = monthly([*before, value])[-1:]
        with pytest.warns(UserWarning, match="Construct with that argument"):
            assert model.update(following).support_ == {"y": after}

    def test_other_series_have_their_values(self):
        model = Mean().fit(counts())
        with pytest.warns(UserWarning, match="support='real' from here on"):
            ahead = model.predict(counts() - 3.0, h=1, level=80)
        assert (ahead < 0).all(axis=None)
        assert model.support_ == {"y": "count"}

    def test_rolling_forecasts_do_not_look_ahead(self):
        y = counts()
        model = Mean().fit(y[:50])
        later = y[50:].astype(float)
        later.iloc[-1] = -9
        with pytest.warns(UserWarning, match="forecasts stay as the model knew it"):
            rolled = model.predict_rolling(later, h=1, level=95)
        assert (rolled["y-lo-95"] >= 0).all()

    def test_a_score_is_of_forecasts_inside(self):
        y = monthly(np.arange(30.0, 0, -1))
        model = Drift().fit(y[:28])
        later = pd.Series(np.zeros(9), pd.period_range(y.index[28], periods=9, freq="M"), name="y")
        ahead = model.predict(h=9).to_numpy()
        assert ahead.min() == 0
        scale = y[:28].std(ddof=0)
        assert model.score(later) == pytest.approx(1 - np.mean(ahead**2) / scale**2)


class TestFile:
    def test_is_kept(self, contract):
        model = ARMA(order=(1, 0), support=(0, 100)).fit(counts())
        back = contract.loaded(model)
        assert back.support_ == {"y": (0.0, 100.0)}
        assert back.get_params()["support"] == (0, 100)
        pd.testing.assert_frame_equal(back.predict(2, level=80), model.predict(2, level=80))

    def test_files_without_it_are_of_real_values(self, contract):
        def older(header, arrays):
            del header["supports"], header["params"]["support"]
            header["format"] = 8

        assert contract.rewritten(Naive().fit(counts()), older).support_ == {"y": "real"}

    @pytest.mark.parametrize("supports", [["counts"], [[1, 0]], [], ["real", "real"], [None]])
    def test_forged(self, contract, supports):
        with pytest.raises(DamagedFileError, match="supports"):
            contract.rewritten(
                Naive().fit(counts()), lambda header, arrays: header.update(supports=supports)
            )


def in_counts(frame):
    """Return the frame of the contract's examples with counts for targets."""
    columns = {
        "y": 1 + np.floor(np.abs(frame["y"] - 20)),
        "z": 1 + np.floor(np.abs(frame["z"] - 5)),
        "demand": np.floor(2 * frame["demand"]),
    }
    return frame.assign(**columns)


@pytest.mark.where.with_args(lambda example: example.is_forecaster)
@pytest.mark.few
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_forecasters_forecast_counts(contract, example):
    past, later = (in_counts(frame) for frame in (contract.past, contract.later))
    model = example.make().fit(example.rows(past))
    targets = [name for name in example.columns if name != "x"]
    assert model.support_ == dict.fromkeys(targets, "count")
    ahead = {} if "x" not in example.columns else example.ahead(2)
    names = [model.column_name] if len(targets) == 1 else targets
    for frame in (
        model.predict(h=2, level=[80, 95], **ahead),
        model.predict_rolling(example.rows(later), h=2, level=[80, 95]),
        contract.loaded(model).predict(h=2, level=[80, 95], **ahead),
    ):
        for name in names:
            point = frame[name]
            low, high = frame[f"{name}-lo-80"], frame[f"{name}-hi-80"]
            wide_low, wide_high = frame[f"{name}-lo-95"], frame[f"{name}-hi-95"]
            for end in (low, high, wide_low, wide_high):
                assert (end == end.round()).all()
            assert (wide_low >= 0).all()
            assert (wide_low <= low).all()
            assert (high <= wide_high).all()
            assert (low - 0.5 <= point).all()
            assert (point <= high + 0.5).all()
            assert (point >= 0).all()
    if hasattr(model, "sample_paths"):
        paths = model.sample_paths(5, h=2, random_state=0, **ahead)[names]
        assert ((paths == paths.round()) & (paths >= 0)).all(axis=None)
    zero = model.predict_zero(h=2, **ahead)
    columns = ["zero"] if len(targets) == 1 else targets
    assert zero[columns].ge(0).all(axis=None)
    assert zero[columns].le(1).all(axis=None)
    assert "whole number" in " ".join(str(model.summary()).split())
    assert "support='count'" in str(model.data_summary_)


class TestCounts:
    @settings(max_examples=200)
    @given(
        st.floats(-30, 30), st.floats(0, 30), st.floats(0, 1), st.floats(0.05, 20),
        st.booleans(),
    )  # fmt: skip
    def test_no_coverage_is_lost(self, low, width, share, mean, overdispersed):
        """Rounded ends have the probability of the real interval at least."""
        ends = {
            "": np.array([low + share * width]),
            "-lo-80": np.array([low]),
            "-hi-80": np.array([low + width]),
        }
        inside = within_supports(ends, [Support.of("count")])
        law = stats.nbinom(2, 2 / (2 + mean)) if overdispersed else stats.poisson(mean)

        def covered(part):
            lower, upper = np.ceil(part["-lo-80"][0]), np.floor(part["-hi-80"][0])
            return law.cdf(upper) - law.cdf(lower - 1) if lower <= upper else 0.0

        assert covered(inside) >= covered(ends) - 1e-12

    @pytest.mark.parametrize("mean", [0.1, 0.3, 1.0, 3.0])
    @pytest.mark.parametrize("dispersion", [None, 2.0])
    def test_intervals_cover_simulated_counts(self, mean, dispersion):
        """Poisson counts to a half percent; of overdispersed ones the upper tail is long: 3.5."""
        law = stats.poisson(mean)
        if dispersion is not None:
            law = stats.nbinom(dispersion, dispersion / (dispersion + mean))
        rows, n = 60, 200
        frame = pd.DataFrame(
            {
                "unique_id": np.repeat(np.arange(n), rows),
                "ds": np.tile(np.arange(rows), n),
                "y": law.rvs(n * rows, random_state=1).astype(float),
            }
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IntervalWarning)
            ahead = Mean(support="count").fit(frame).predict(1, level=[80, 95])
        for level in (80, 95):
            low, high = ends_of(ahead, level, "Mean")
            coverage = law.cdf(high) - law.cdf(low - 1)
            assert coverage.mean() > level / 100 - 0.005 - 0.03 * (dispersion is not None)

    def test_poisson_quantiles(self):
        """Of mean 0.3 the quantiles of 10 and 90 percent are 0 and 1."""
        law = stats.poisson(0.3)
        low, high = ends_of(Mean().fit(counts()).predict(3, level=80), 80)
        np.testing.assert_array_equal(low, law.ppf(0.1))
        np.testing.assert_array_equal(high, law.ppf(0.9))

    def test_an_interval_of_zero_alone_is_right_without_a_warning(self):
        y = monthly(np.eye(1, 60, 20).ravel() * 2)  # zeros but for a 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ahead = Mean().fit(y).predict(1, level=80)
        assert ahead.filter(like="80").to_numpy().tolist() == [[0.0, 0.0]]
        with pytest.warns(IntervalWarning, match="have no width"):
            Mean().fit(0 * y).predict(1, level=80)

    @pytest.mark.parametrize("targets", [["a"], ["a", "b"]])
    def test_rolling_intervals_without_width_are_said_of_their_column(self, targets):
        flat = pd.DataFrame({"a": 5.5, "b": np.arange(60.0) % 4}, MONTHS)[targets]
        model = Mean().fit(flat[:50])
        with pytest.warns(IntervalWarning, match="^intervals of 'a' have no width"):
            rolling = model.predict_rolling(flat[50:], h=3, level=80)
        assert rolling["cutoff"].nunique() == 8

    def test_the_point_forecast_is_a_real_number(self):
        model = Mean().fit(counts())
        assert model.predict(1).iloc[0] == pytest.approx(counts().mean())
        assert "point forecasts, of the mean, are not rounded" in " ".join(
            str(model.summary()).split()
        )

    @pytest.mark.parametrize(
        ("arguments", "point"),
        [({"prior": "only"}, "mean"), ({"loss": "mae", "max_epochs": 1}, "median")],
    )
    def test_the_statistic_of_networks_is_named(self, arguments, point):
        page = str(ParaRNNForecaster(horizon=2, **arguments).fit(counts()).summary())
        assert f"point forecasts, of the {point}, are not rounded" in " ".join(page.split())

    def test_zero_is_contained_where_zeros_are_many(self):
        """Rounding gives no zero that more than a fifth of the rows are."""
        y = monthly([0, 6, 6, 6] * 15)
        with pytest.warns(IntervalWarning, match="widened to contain 0"):
            ahead = Mean().fit(y).predict(1, level=[78, 20])
        assert (ahead["y-lo-78"] == 0).all()
        assert (ahead["y-lo-20"] > 0).all()


@st.composite
def nested(draw):
    """Point forecast and three nested intervals around it, of two targets."""
    numbers = st.floats(-150, 150)
    point = np.array(draw(st.tuples(numbers, numbers)))
    forecasts = {"": point}
    low = high = point
    for level in (50, 80, 95):
        below, above = (np.array(draw(st.tuples(*[st.floats(0, 50)] * 2))) for _ in range(2))
        low, high = low - below, high + above
        forecasts |= {f"-lo-{level}": low, f"-hi-{level}": high}
    return forecasts


SUPPORTS = ["real", "nonnegative", "count", "binary", (0, 1), (0, 100), (None, 3), (-5, None)]


@given(nested(), st.tuples(st.sampled_from(SUPPORTS), st.sampled_from(SUPPORTS)))
def test_order_and_nesting_are_kept(forecasts, values):
    supports = [Support.of(value) for value in values]
    inside = within_supports(forecasts, supports)
    room = np.array([0.5 * support.whole for support in supports])
    for level in (50, 80, 95):
        low, high = inside[f"-lo-{level}"], inside[f"-hi-{level}"]
        assert (low <= high).all()
        assert (low - room <= inside[""]).all()
        assert (inside[""] <= high + room).all()
    for narrow, wide in ((50, 80), (80, 95)):
        assert (inside[f"-lo-{wide}"] <= inside[f"-lo-{narrow}"]).all()
        assert (inside[f"-hi-{narrow}"] <= inside[f"-hi-{wide}"]).all()
    for suffix, values_inside in inside.items():
        for j, support in enumerate(supports):
            low, high = support.lower, support.upper
            assert low <= values_inside[j] <= high
            if suffix:
                assert support.contains(values_inside)[j]
            if low <= forecasts[suffix][j] <= high and not (support.whole and suffix):
                assert values_inside[j] == forecasts[suffix][j]
    again = within_supports(inside, supports)
    assert all((again[suffix] == inside[suffix]).all() for suffix in inside)
    assert not any(np.signbit(part[part == 0]).any() for part in inside.values() if part is not None
                   and values != ("real", "real"))  # fmt: skip


class TestZero:
    @pytest.mark.parametrize(("mean", "scale"), [(0.3, 0.5), (2.0, 1.0), (0.0, 0.2), (50.0, 3.0)])
    def test_is_the_distribution_at_a_half(self, mean, scale):
        y = monthly(np.r_[np.arange(20), np.zeros(20)])
        model = Mean(support="count").fit(y)

        def normal(state, h, levels, future):
            widths = {level: stats.norm.ppf(0.5 + level / 200) * scale for level in levels}
            parts = {"": mean}
            for level, width in widths.items():
                parts |= {f"-lo-{level}": mean - width, f"-hi-{level}": mean + width}
            return {suffix: np.full((1, h, 1), value) for suffix, value in parts.items()}

        object.__setattr__(model.fitted_, "forecast", normal)
        expected = stats.norm.cdf((0.5 - mean) / scale)
        np.testing.assert_allclose(model.predict_zero(h=2), expected, atol=0.008)

    @pytest.mark.parametrize("mean", [0.2, 0.5, 1.0, 3.0])
    def test_of_poisson_counts(self, mean):
        y = pd.Series(np.random.default_rng(0).poisson(mean, 4000), name="y")
        assert Mean().fit(y).predict_zero(h=1).iloc[0] == pytest.approx(np.exp(-mean), abs=0.12)

    def test_of_0_and_1_is_what_the_mean_leaves(self):
        y = monthly(RNG.random(60) < 0.3).astype(int)
        model = Mean().fit(y)
        np.testing.assert_allclose(model.predict_zero(h=2), 1 - y.mean())

    def test_is_of_the_targets_that_are_whole(self):
        frame = pd.DataFrame({"sold": counts(), "gain": RNG.normal(size=60)})
        assert Mean().fit(frame).predict_zero(h=2).columns.tolist() == ["sold"]
        with pytest.raises(ValueError, match="needs a target whose values are whole"):
            Mean().fit(frame[["gain"]]).predict_zero(h=2)

    def test_series_of_a_long_frame(self):
        frame = pd.DataFrame({"unique_id": list("ab") * 30, "ds": np.arange(60) // 2})
        frame["y"] = RNG.poisson([0.1, 4] * 30)
        zero = Mean().fit(frame).predict_zero(h=1, ids=["b", "a"])
        assert zero["unique_id"].tolist() == ["b", "a"]
        assert zero["zero"].is_monotonic_increasing


def test_forecasts_wholly_outside_are_warned_of():
    y = monthly(30 - np.arange(30) + 0.1 * RNG.random(30))
    with pytest.warns(IntervalWarning, match="lie wholly outside"):
        ahead = Drift().fit(y).predict(40, level=80)
    assert (ahead >= 0).all(axis=None)


def test_a_combination_forecasts_within_and_widens_its_members():
    model = Combination([Mean(), ARMA(order=(1, 0))], weights=[0.5, 0.5]).fit(counts())
    low, high = ends_of(model.predict(2, level=80), 80)
    assert (low == 0).all()
    assert (high == np.round(high)).all()
    following = pd.Series([-1.0], pd.period_range("2020-01", periods=1, freq="M"), name="y")
    with pytest.warns(UserWarning, match="was a whole number"):
        model.update(following)
    assert {member.support_["y"] for member in model.forecasters_.values()} == {"real"}


def test_backtests_forecast_within():
    frame = pd.DataFrame({"unique_id": "a", "ds": MONTHS.to_timestamp(), "y": counts().array})
    forecasts = backtest({"mean": Mean()}, frame, h=2, n_windows=3, level=[80])
    assert (forecasts["mean-lo-80"] >= 0).all()


class TestHierarchies:
    SPEC = (["all"], ["all", "part"])

    def frame(self, values):
        rows = len(values)
        frame = pd.DataFrame({"all": "all", "part": np.tile(list("ab"), rows)})
        return frame.assign(ds=np.repeat(np.arange(rows), 2), y=np.ravel(values))

    @pytest.mark.parametrize("method", ["mint_shrink", "ols", "bottom_up", "wls_var"])
    @pytest.mark.parametrize("intervals", ["normality", "bootstrap"])
    def test_parts_are_not_negative_and_add_up(self, method, intervals):
        falling = np.maximum(30 - np.arange(40), 0.0)
        values = np.column_stack([falling + RNG.random(40), 5 + RNG.random(40)])
        ahead = hierarchy.reconcile(
            ARMA(order=(0, 1), trend="c"), self.frame(values), self.SPEC, h=3, level=[80],
            method=method, intervals=intervals,
        )  # fmt: skip
        assert (ahead.select_dtypes("float") >= 0).all(axis=None)
        by_series = ahead.set_index(["unique_id", "ds"])["ARMA"].unstack(0)
        np.testing.assert_allclose(by_series["all"], by_series["all/a"] + by_series["all/b"])

    def test_cut_forecasts_add_up(self):
        values = np.column_stack([40 - np.arange(40.0), 5 + RNG.random(40)])
        ahead = hierarchy.reconcile(Drift(), self.frame(values), self.SPEC, h=3, method="ols")
        by_series = ahead.set_index(["unique_id", "ds"])["Drift"].unstack(0)
        assert by_series["all/a"].min() == 0
        np.testing.assert_allclose(by_series["all"], by_series["all/a"] + by_series["all/b"])

    def test_counts_have_whole_ends(self):
        frame = self.frame(RNG.poisson(2, (40, 2)))
        ahead = hierarchy.reconcile(ARMA(order=(1, 0)), frame, self.SPEC, h=2, level=[80])
        ends = ahead[["ARMA-lo-80", "ARMA-hi-80"]]
        assert (ends == ends.round()).all(axis=None)

    def test_widths_are_of_the_errors(self):
        frame = self.frame(RNG.poisson(1, (40, 2)).astype(float))
        ahead, free = (
            hierarchy.reconcile(ARMA(order=(1, 0), support=s), frame, self.SPEC, h=2, level=[80])
            for s in ("nonnegative", "real")
        )
        np.testing.assert_allclose(ahead["ARMA-hi-80"], free["ARMA-hi-80"])
        assert (free["ARMA-lo-80"] < 0).any()

    def test_sums_have_no_upper_bound(self):
        with pytest.raises(ValueError, match="sums have no upper bound"):
            hierarchy.reconcile(
                Naive(support=(0, 9)), self.frame(np.ones((5, 2))), self.SPEC, h=1, method="ols"
            )
