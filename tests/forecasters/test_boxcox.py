"""Transformed targets: forecasts, intervals and state go through the transformation and back."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import tsrnn
from tsrnn.forecasters import boxcox, inverse_boxcox


@pytest.fixture(scope="module")
def growing():
    """Three series that grow and swing in proportion to their level."""
    draw, t = np.random.default_rng(0), np.arange(140)
    swing = 0.3 * np.sin(2 * np.pi * t / 12)[:, None] + 0.01 * t[:, None] * [1, 2, 0.5]
    noise = 0.05 * draw.normal(size=(140, 3))
    values = np.exp(swing + noise) * [1.0, 1e4, 1e-3]
    months = pd.date_range("2010-01", periods=140, freq="MS")
    return pd.DataFrame(values, index=months, columns=list("abc"))


EXPONENTS = st.floats(0.01, 1) | st.just(0.0)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5), EXPONENTS)
def test_the_transformation_is_scipys_and_can_be_undone(values, exponent):
    values = np.array(values)
    changed = boxcox(values, exponent)
    np.testing.assert_allclose(changed, special.boxcox(values, exponent), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(inverse_boxcox(changed, exponent), values, rtol=1e-9)


def test_below_the_transform_of_zero_there_is_zero():
    assert inverse_boxcox(np.array([-2.0, -3.0]), 0.5).tolist() == [0, 0]


@pytest.mark.parametrize("level", [None, [80]])
def test_log_is_the_same_as_a_log_beforehand(small, growing, level):
    ours = small(use_boxcox="log").fit(growing)
    before = small().fit(np.log(growing))
    expected = np.exp(before.predict(4, level=level))
    pd.testing.assert_frame_equal(ours.predict(4, level=level), expected, rtol=1e-6)
    # Beyond the horizon, forecasts are carried on as rows of the data.
    pd.testing.assert_frame_equal(ours.predict(15), np.exp(before.predict(15)), rtol=1e-5)


def test_rolling_paths_updates_and_new_series_are_transformed(small, growing):
    ours, before = small(use_boxcox="log"), small()
    known, later = growing.iloc[:130], growing.iloc[130:]
    ours.fit(known), before.fit(np.log(known))
    pd.testing.assert_frame_equal(
        ours.predict_rolling(later, h=3, level=80).drop(columns="cutoff"),
        np.exp(before.predict_rolling(np.log(later), h=3, level=80).drop(columns="cutoff")),
        rtol=1e-5,
    )
    paths = [model.sample_paths(5).drop(columns="path") for model in (ours, before)]
    pd.testing.assert_frame_equal(paths[0], np.exp(paths[1]), rtol=1e-5)
    pd.testing.assert_frame_equal(ours.predict(known), ours.predict(), rtol=1e-5)
    parts = ours.contributions().sum(axis=1)
    log_forecast = np.log(ours.predict()).T.stack()
    np.testing.assert_allclose(parts.to_numpy(), log_forecast.to_numpy(), rtol=1e-5)
    ours.update(later), before.update(np.log(later))
    pd.testing.assert_frame_equal(ours.predict(), np.exp(before.predict()), rtol=1e-5)


def test_the_score_is_of_the_data_and_not_of_their_logs(small, growing):
    known, later = growing.iloc[:-6], growing.iloc[-6:]
    model = small(use_boxcox=0.5).fit(known)
    error = ((model.predict(6) - later) ** 2).mean()
    train = known.iloc[: -model.settings_.val_size]
    expected = (1 - error / train.var(ddof=0)).mean()
    assert model.score(later) == pytest.approx(expected, rel=1e-6)


def test_a_file_keeps_it(small, growing, tmp_path):
    model = small(use_boxcox=0.25).fit(growing)
    model.save(tmp_path / "model.tsrnn")
    loaded = tsrnn.load(tmp_path / "model.tsrnn")
    pd.testing.assert_frame_equal(loaded.predict(9, level=80), model.predict(9, level=80))


@pytest.mark.few("log-log")
@pytest.mark.parametrize(("asked", "shown"), [("log", "log"), (0.5, "0.5")])
def test_the_summary_says_so(small, growing, asked, shown):
    assert small(use_boxcox=asked).fit(growing).summary().facts["Box-Cox"] == shown
    assert "Box-Cox" not in small().fit(growing).summary().facts


class TestRefusals:
    def test_targets_that_are_not_positive(self, small, growing):
        bad = growing - 0.5
        with pytest.raises(ValueError, match=r"positive targets; \d+ rows are not, the first"):
            small(use_boxcox="log").fit(bad)
        model = small(use_boxcox="log").fit(growing)
        with pytest.raises(ValueError, match="needs positive targets"):
            model.predict(bad)

    def test_the_series_is_named(self, small):
        frame = pd.DataFrame({"unique_id": ["A"] * 60 + ["B"] * 60, "ds": [*range(60)] * 2,
                              "y": 5 + np.sin(np.arange(120))})  # fmt: skip
        frame.loc[100, "y"] = 0
        with pytest.raises(ValueError, match="the first of series 'B' with 0"):
            small(use_boxcox=1.0).fit(frame)

    @pytest.mark.parametrize("bad", [True, "sqrt", -0.5, 1.5, [0.5], float("nan")])
    def test_exponents(self, small, growing, bad):
        with pytest.raises((ValueError, TypeError), match="use_boxcox"):
            small(use_boxcox=bad).fit(growing)
