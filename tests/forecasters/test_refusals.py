"""Every refusal says what was required, what came and what to do."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import LEMForecaster
from tsrnn.contract import IntervalWarning


@pytest.fixture(scope="module")
def after(small, wave):
    """Return a forecaster that has not seen the last ten rows of `wave`."""
    return small(missing="error").fit(wave.iloc[:-10])


@pytest.fixture(scope="module")
def with_exog(small, exog, cut):
    return small(known_ahead="x").fit(cut(exog, 6)[0])


def told(error, call, *parts):
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


DAYS = pd.DataFrame({"unique_id": "d", "ds": pd.date_range("2020", periods=50), "y": 1.0})
# Frame made of `panel`, arguments, error, parts of its message.
PANELS = {
    "empty": (lambda df: df.iloc[:0], {}, ValueError, ["must have rows; it is empty"]),
    "one row": (
        lambda df: df.iloc[:1],
        {},
        ValueError,
        ["frequency cannot be inferred", "freq='MS'"],
    ),
    "all missing": (
        lambda df: df.assign(y=np.nan),
        {},
        ValueError,
        ["of series 'a' (and of 2 more", "or drop"],
    ),
    "words": (lambda df: df.assign(y="four"), {}, TypeError, ["'y' must be numeric", "'four'"]),
    "digits": (
        lambda df: df.assign(y="4"),
        {"strict": True},
        TypeError,
        ["'y' must be numeric", "'4'"],
    ),
    "duplicated": (
        lambda df: pd.concat([df, df.iloc[[3]]]),
        {},
        ValueError,
        ["duplicated are series 'a': 1 row at 2015-04-01", "aggregate"],
    ),
    "unsorted": (
        lambda df: df.iloc[[1, 0, *range(2, len(df))]],
        {},
        ValueError,
        ["must increase within a series", "Sort by"],
    ),
    "gap": (
        lambda df: df.drop(index=5),
        {"missing": "error"},
        ValueError,
        ["1 missing after series 'a'", "2015-05-01"],
    ),
    "mixed frequencies": (
        lambda df: pd.concat([df, DAYS]),
        {},
        ValueError,
        ["series 'a' has 'MS', series 'd' has 'D'", "per frequency"],
    ),
    "no target": (
        lambda df: df,
        {"target": "q"},
        ValueError,
        ["the target 'q' is not a column", "'y'"],
    ),
}


class TestData:
    """What the gate of the data refuses reaches who calls fit."""

    @pytest.mark.parametrize("case", PANELS)
    def test_panel(self, make, panel, case):
        change, arguments, error, parts = PANELS[case]
        told(error, lambda: make(**arguments).fit(change(panel)), *parts)

    @pytest.mark.few
    def test_missing(self, make, wave):
        gappy = wave.where(np.arange(len(wave)) % 50 != 5)
        parts = "missing are 2 rows at 2015-06-01, 2019-08-01", "interpolate"
        told(ValueError, lambda: make(missing="error").fit(gappy), *parts)
        filled = make(missing="interpolate").fit(gappy)
        expected = make().fit(gappy.interpolate())
        np.testing.assert_array_equal(filled.predict(), expected.predict())

    def test_frames_of_other_kinds(self, make, wave, wide):
        infinite, array = wave.replace(wave.iloc[3], np.inf), wave.to_numpy()
        told(ValueError, lambda: make().fit(infinite), "must be finite", "2015-04-01")
        parts = "'q' is not a column", "'u', 'v', 'w'"
        told(ValueError, lambda: make(target=["u", "q"]).fit(wide), *parts)
        told(TypeError, lambda: make(strict=True).fit(array), "pandas Series or DataFrame")
        told(ValueError, lambda: make().fit(wave, wave), "named by the argument target", "leave y")

    def test_too_short(self, small, panel, wave):
        def fit(frame, **changes):
            return lambda: small(**changes).fit(frame)

        told(ValueError, fit(wave.iloc[:1]), "needs at least 18 rows for horizon=6", "has 1")
        head = panel.groupby("unique_id").head(17)
        parts = "at least 18 rows for horizon=6", "longest, 'a', has 17", "take a smaller horizon"
        told(ValueError, fit(head), *parts)
        told(ValueError, fit(head.iloc[:7], horizon=None), "at least 8 rows for horizon=2")
        rows = {"a": 70, "b": 7, "c": 5}
        few = pd.concat([part.head(rows[name]) for name, part in panel.groupby("unique_id")])
        told(ValueError, fit(few), "2 of 3 have fewer", "series 'c' has 5", "drop these series")


class TestConstant:
    def test_is_forecast_as_its_constant(self, small, wave, panel):
        alone = small().fit(wave * 0 + 3.1).predict(6, level=[80])
        assert (alone == 3.1).all(axis=None)
        panel = pd.concat([panel, panel[panel["unique_id"] == "a"].assign(unique_id="k", y=-7.0)])
        forecast = small().fit(panel).predict(6, level=[95]).set_index("unique_id")
        assert (forecast.loc["k", "ParaRNN":] == -7.0).all(axis=None)
        assert (forecast.loc["a", "ParaRNN-lo-95"] < forecast.loc["a", "ParaRNN"]).all()


COUNT, RATE = "a positive integer", "a number greater than 0"
SEED = "an integer, a numpy random generator or None"
VERBOSE = "True, False or an integer of at least 0"
DEVICE = "'cpu', 'cuda' or 'mps'"
# Argument, value, error, what the message says that it must be.
ARGUMENTS = [
    *((name, 0, ValueError, COUNT) for name in (
        "horizon", "input_size", "hidden_size", "block_size", "n_layers", "batch_size",
        "max_epochs", "patience", "val_size",
    )),
    *((name, 2.5, TypeError, COUNT) for name in ("horizon", "val_size", "max_epochs")),
    ("horizon", -1, ValueError, COUNT),
    ("horizon", "3", TypeError, COUNT),
    ("horizon", True, TypeError, COUNT),
    ("batch_size", None, TypeError, COUNT),
    ("preset", "fast", ValueError, "one of ('default', 'paper')"),
    ("preset", None, ValueError, "one of ('default', 'paper')"),
    ("nonlinearity", "sin", ValueError, "one of ('tanh', 'relu', 'identity')"),
    ("aggregation", "mean", ValueError, "one of ('linear', 'fc', 'ffn')"),
    ("multivariate", "both", ValueError, "one of ('auto', 'independent', 'joint', 'factor')"),
    (
        "intervals", "bootstrap", ValueError,
        "one of ('conformal', 'gaussian', 'quantile', 'student-t')",
    ),
    ("loss", "huber", ValueError, "one of ('mse', 'mae')"),
    ("missing", "drop", ValueError, "one of ('auto', 'error', 'interpolate', 'keep')"),
    ("local_level", "yes", TypeError, 'True, False or "auto"'),
    ("network", "yes", TypeError, 'True, False or "auto"'),
    ("linear_path", "yes", TypeError, "True or False"),
    ("learning_rate", 0, ValueError, RATE),
    ("learning_rate", np.inf, ValueError, RATE),
    ("learning_rate", "fast", ValueError, RATE),
    ("learning_rate", 1e38, ValueError, "a number of at most 1e+37"),
    ("weight_decay", -0.1, ValueError, "a number of at least 0"),
    ("device", "tpu", ValueError, DEVICE),
    ("device", "meta", ValueError, DEVICE),
    ("device", 3, TypeError, "a name such as 'cpu' or 'cuda'"),
    ("random_state", "a", TypeError, SEED),
    ("random_state", 1.5, TypeError, SEED),
    ("random_state", True, TypeError, SEED),
    ("random_state", -1, ValueError, "between 0 and 2**63 - 1"),
    ("verbose", "loud", TypeError, VERBOSE),
    ("verbose", None, TypeError, VERBOSE),
    ("verbose", 1.0, TypeError, VERBOSE),
    ("verbose", -1, ValueError, VERBOSE),
]  # fmt: skip


class TestConstructor:
    @pytest.mark.parametrize(("name", "value", "error", "legal"), ARGUMENTS)
    def test_value(self, small, wave, name, value, error, legal):
        model = small(**{name: value})
        told(error, lambda: model.fit(wave), f"{name} must", f"{legal}; got {value!r}")

    def test_networks_of_ones_own_skip_nothing(self, small, wave):
        told(ValueError, lambda: small(missing="keep").fit(wave), "is for the prior network")
        lem = LEMForecaster(missing="keep", prior=None)
        told(ValueError, lambda: lem.fit(wave), "is for the prior network")

    def test_the_largest_rate_is_one_that_training_takes(self, small, wave):
        model = small(learning_rate=1e37, linear_path=False, local_level=False)
        told(FloatingPointError, lambda: model.fit(wave), "training diverged")

    def test_device_that_is_not_there(self, small, wave, monkeypatch):
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        told(ValueError, lambda: small(device="cuda").fit(wave), "device='cuda'", "it finds 0")
        told(ValueError, lambda: small(device="cpu:1").fit(wave), "finds 1", "device='cpu'")
        told(ValueError, lambda: small(device="cpu:999").fit(wave), "finds 1", "device='cpu'")

    @pytest.mark.parametrize("value", [np.array(["tanh", "relu"]), ["tanh"], 1], ids=repr)
    def test_choices_of_another_type(self, small, wave, value):
        expected = "('tanh', 'relu', 'identity')", f"got {value!r}"
        told(ValueError, lambda: small(nonlinearity=value).fit(wave), *expected)
        told(ValueError, lambda: small(preset=value).fit(wave), "('default', 'paper')")

    @pytest.mark.parametrize("value", ["early", [1], 3])
    def test_callbacks(self, small, wave, value):
        told(TypeError, lambda: small(callbacks=value).fit(wave), "lightning.pytorch.Callback")

    def test_blocks_fill_the_state(self, small, wave):
        expected = "multiple of block_size; got hidden_size=9, block_size=2"
        told(ValueError, lambda: small(hidden_size=9).fit(wave), expected)

    def test_size_of_the_validation_part(self, small, panel):
        parts = "val_size=75 leaves 7 of the 82 rows of the longest, 'c'", "at least 8", "smaller"
        told(ValueError, lambda: small(val_size=75).fit(panel), *parts)
        parts = ("val_size=1000 leaves none of the 82 rows of the longest, 'c', to train on",)
        told(ValueError, lambda: small(val_size=1000).fit(panel), *parts)
        parts = "val_size must be at least the horizon, 6", "got 5"
        told(ValueError, lambda: small(val_size=5).fit(panel), *parts)

    def test_horizon_and_length(self, small, panel):
        told(ValueError, lambda: small(horizon=28).fit(panel), "84 rows", "'c', has 82")

    def test_known_ahead(self, small, panel, exog):
        def fit(frame, known):
            return lambda: small(known_ahead=known).fit(frame)

        told(ValueError, fit(exog, "w"), "which are 'x', 'z'; got 'w'")
        told(ValueError, fit(exog, ["x", "y"]), "got 'y'", "besides the targets")
        told(ValueError, fit(panel, "x"), "which has none; got 'x'")
        told(TypeError, fit(exog, 3.5), "a column name or a list of them; got 3.5")


class TestHorizon:
    @pytest.mark.parametrize("h", [0, -1])
    def test_not_positive(self, after, h):
        told(ValueError, lambda: after.predict(h), f"h must be a positive integer; got {h}")

    @pytest.mark.parametrize(
        ("h", "shown"),
        [(2.5, "2.5"), ("3", "'3'"), (True, "True"), (np.float64(3), "3.0"), ([3], "[3]")],
    )
    def test_no_integer(self, after, h, shown):
        told(TypeError, lambda: after.predict(h=h), f"h must be a positive integer; got {shown}")

    def test_twice(self, after):
        told(ValueError, lambda: after.predict(3, h=4), "once; got 3 and h=4")

    def test_by_position_it_is_a_number(self, after):
        told(FileNotFoundError, lambda: after.predict("3"), "no parquet or CSV file is at '3'")
        told(TypeError, lambda: after.predict(2.5), "positive integer; got 2.5")
        told(TypeError, lambda: after.predict(True), "positive integer; got True")


class TestLevel:
    @pytest.mark.parametrize("level", ["80", [80, "x"], True, [[80]], {80: 1}])
    def test_no_number(self, after, level):
        expected = f"percentages such as level=[80, 95]; got {level!r}"
        told(TypeError, lambda: after.predict(2, level=level), expected)

    @pytest.mark.parametrize("level", [0, 100, -5, 101, float("nan")])
    def test_no_percentage(self, after, level):
        expected = f"strictly between 0 and 100 percent; got {level!r}"
        told(ValueError, lambda: after.predict(2, level=[80, level]), expected)

    def test_a_share(self, after):
        told(ValueError, lambda: after.predict(2, level=0.8), "is in percent", "write 80")

    def test_too_high_for_the_errors(self, after):
        with pytest.warns(IntervalWarning, match="level 99.5 are guaranteed for 0 of 2 steps"):
            wide = after.predict(2, level=99.5)
        assert wide.notna().all(axis=None)


class TestFuture:
    @pytest.fixture
    def ahead(self, exog, cut):
        return cut(exog, 6)[1][["unique_id", "ds", "x"]]

    def test_columns(self, with_exog, ahead, exog, cut):
        def predict(future):
            return lambda: with_exog.predict(X_future=future)

        further = cut(exog, 6)[1]
        with pytest.warns(UserWarning, match=r"not known ahead, \['y', 'z'\]"):
            forecast = predict(further)()
        pd.testing.assert_frame_equal(forecast, predict(ahead)())
        told(ValueError, predict(ahead.assign(new=1.0)), "must be 'x'; not needed 'new'. Drop")
        told(ValueError, predict(ahead.drop(columns="x")), "missing 'x'. Add")

    def test_rows(self, with_exog, ahead):
        parts = "missing are series 'c': 2 at", "2021-09-01, 2021-10-01", "take a smaller h"
        told(ValueError, lambda: with_exog.predict(X_future=ahead.iloc[:-2]), *parts)

    def test_not_given(self, with_exog):
        told(ValueError, lambda: with_exog.predict(4), "'x' of the 4 steps ahead", "X_future")
        told(ValueError, with_exog.contributions, "of the 6 steps ahead")

    def test_not_declared(self, small, exog, cut, ahead):
        model = small().fit(cut(exog, 6)[0])
        told(ValueError, lambda: model.predict(X_future=ahead), "known_ahead=[...]", "leave")


class TestNewRows:
    @pytest.mark.parametrize("method", ["update", "score", "predict_rolling"])
    def test_gap_or_overlap(self, after, wave, method):
        for n, came in ((9, "2022-04-01"), (12, "2022-01-01")):
            parts = "must begin at 2022-03-01", f"they begin at {came}", "Pass the rows from"
            told(ValueError, lambda n=n: getattr(after, method)(wave.iloc[-n:]), *parts)

    @pytest.mark.few
    def test_unknown_series(self, make, panel, cut):
        past, future = cut(panel, 6)
        model = make().fit(past)
        strange = future.replace({"unique_id": {"b": "other"}})
        told(ValueError, lambda: model.update(strange), "unknown are 'other'", "fit again")

    def test_columns(self, with_exog, exog, panel, cut):
        rows = cut(exog, 6)[1].drop(columns="z")
        told(ValueError, lambda: with_exog.update(rows), "'x', 'z'; missing 'z'. Add")
        told(ValueError, lambda: with_exog.predict(panel), "missing 'x', 'z'")

    def test_shape(self, with_exog, wave):
        told(ValueError, lambda: with_exog.update(wave), "must be long", "got series")

    def test_frequency(self, after, wave):
        days = wave.set_axis(pd.date_range("2020", periods=len(wave)))
        told(ValueError, lambda: after.predict(days), "freq='MS'", "resample")

    def test_missing(self, after, wave):
        rows = wave.iloc[-10:].copy()
        rows.iloc[[2, 4]] = np.nan
        told(ValueError, lambda: after.update(rows), "missing are 2 rows at 2022-05-01")


class TestRolling:
    def test_too_few_rows(self, after, small, wave, panel, cut):
        rows = wave.iloc[-10:-6]
        told(ValueError, lambda: after.predict_rolling(rows), "at least 6 new rows; there are 4")
        past, future = cut(panel, 6)
        model = small().fit(past)
        parts = "series 'c': ", "there are 4", "take a smaller h"
        told(ValueError, lambda: model.predict_rolling(future.iloc[:-2]), *parts)

    def test_step(self, after, wave):
        rows = wave.iloc[-10:]
        told(ValueError, lambda: after.predict_rolling(rows, step_size=0), "step_size must")
