"""Nonlinearity that a comparison sees in the rows before the first cutoff."""

import numpy as np
import pandas as pd
import pytest

from tsrnn.datasets import bilinear
from tsrnn.evaluation import compare


def frames(y, label="a", n_test=40):
    """Return one-step forecasts of the last rows by two models, and the rows before."""
    t = np.arange(len(y))
    long = pd.DataFrame({"unique_id": label, "ds": t, "y": y})
    test = long[-n_test:].assign(cutoff=t[-n_test:] - 1, Zero=0.0, Last=y[-n_test - 1 : -1])
    return test, long[:-n_test]


def test_a_bilinear_series_is_seen_and_a_linear_one_is_not():
    rng = np.random.default_rng(0)
    linear = rng.normal(size=500)
    for t in range(1, 500):
        linear[t] += 0.6 * linear[t - 1]
    for y, seen in ((bilinear(500, 1, cross=0.5)[0], True), (linear, False)):
        result = compare(*frames(y)[:1], train=frames(y)[1], season_length=1)
        assert (result.linearity["p_holm"].item() < 0.05) == seen
        words = "Nonlinearity is left in the series" if seen else "No nonlinearity is seen"
        assert any(sentence.startswith(words) for sentence in result.words())


def test_without_rows_before_nothing_is_said():
    result = compare(frames(np.random.default_rng(0).normal(size=200))[0])
    assert result.linearity.empty
    assert not any("onlinearity" in sentence for sentence in result.words())


@pytest.mark.parametrize(
    "y",
    [
        np.sin(2 * np.pi * np.arange(300) / 12),
        np.eye(300)[50],
        1e12 + np.random.default_rng(0).random(300) * 1e-3,
    ],
    ids=["sine", "one value", "rounding"],
)
def test_series_that_cannot_be_tested_are_left_out(y):
    test, train = frames(y)
    test["Zero"] = np.random.default_rng(1).normal(size=len(test))
    result = compare(test, train=train, season_length=1)
    assert isinstance(result.linearity, pd.DataFrame)


def test_of_a_panel_a_few_are_tested():
    parts = [frames(np.random.default_rng(i).normal(size=200), f"s{i}") for i in range(25)]
    frame, train = (pd.concat(part) for part in zip(*parts, strict=True))
    result = compare(frame, train=train, season_length=1)
    assert len(result.linearity) == 20
    assert any(sentence.startswith("Of 20 series tested") for sentence in result.words())
