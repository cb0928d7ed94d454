"""The score against its definition, with missing values and without."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn import ARMA
from tsrnn.baselines import SeasonalNaive

ROWS, TARGETS = 25, ["y", "z"]


def frame_of(values, first=0):
    """Return the frame of a list of arrays of shape (n, 2), rows numbered from `first`."""
    parts = [
        pd.DataFrame({"unique_id": i, "ds": first + np.arange(len(v)), "y": v[:, 0], "z": v[:, 1]})
        for i, v in enumerate(values)
    ]
    return pd.concat(parts)


PAST = [np.random.default_rng(i).normal(size=(ROWS, 2)) for i in range(4)]


@pytest.fixture(scope="module")
def model():
    return ARMA(order=(1, 0), target=TARGETS, missing="keep", freq=1).fit(frame_of(PAST))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.floats(0.0, 0.6), st.integers(0, 99))
@settings(deadline=None, max_examples=50)
def test_is_its_definition_on_what_is_there(model, lengths, share, seed):
    draw = np.random.default_rng(seed)
    values = [draw.normal(size=(n, 2)) for n in lengths]
    for v in values:
        v[1:][draw.random((len(v) - 1, 2)) < share] = np.nan
    forecast = model.predict(max(lengths))[TARGETS].to_numpy().reshape(4, -1, 2)
    expected = [
        1 - np.nanmean((v[:, j] - forecast[i, : len(v), j]) ** 2) / PAST[i][:, j].var()
        for i, v in enumerate(values)
        for j in range(2)
    ]
    assert model.score(frame_of(values, ROWS)) == pytest.approx(np.mean(expected))


def test_a_target_without_values_does_not_count(model):
    later = np.column_stack([np.full(3, np.nan), [1.0, 2.0, 4.0]])
    errors = later[:, 1] - model.predict(3)["z"].to_numpy()[:3]
    expected = 1 - (errors**2).mean() / PAST[0][:, 1].var()
    assert model.score(frame_of([later], ROWS)) == pytest.approx(expected)


def test_a_forecast_that_is_not_there_counts_as_none():
    with pytest.warns(UserWarning, match="needs at least 7 rows of a series; series 1 has 5"):
        model = SeasonalNaive(6, target=TARGETS, freq=1).fit(frame_of([PAST[0], PAST[1][:5]]))
    assert np.isfinite(model.score(frame_of([np.ones((1, 2))], ROWS)))
    assert np.isnan(model.score(frame_of([PAST[0][:0], np.ones((1, 2))], 5)))


def test_nothing_to_compare_with(model):
    with pytest.raises(ValueError, match="all values of df are missing"):
        model.score(frame_of([np.full((2, 2), np.nan)], ROWS))
