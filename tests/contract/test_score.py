"""The score against its definition, with missing values and without."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrnn.contract._rolling import r_squared
from tsrnn.data import read_panel


def panel_of(values):
    """Return the panel of a list of arrays of shape (n, 2)."""
    parts = [
        pd.DataFrame({"unique_id": i, "ds": np.arange(len(v)), "y": v[:, 0], "z": v[:, 1]})
        for i, v in enumerate(values)
    ]
    return read_panel(pd.concat(parts), target=["y", "z"], missing="keep", freq=1)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.floats(0.0, 0.6), st.integers(0, 99))
def test_is_its_definition_on_what_is_there(lengths, share, seed):
    draw = np.random.default_rng(seed)
    values = [draw.normal(size=(n, 2)) for n in lengths]
    for v in values:
        v[1:][draw.random((len(v) - 1, 2)) < share] = np.nan
    forecast = draw.normal(size=(len(values), max(lengths), 2))
    scale = draw.uniform(0.5, 2, size=(len(values), 2))
    expected = [
        1 - np.nanmean((v[:, j] - forecast[i, : len(v), j]) ** 2) / scale[i, j] ** 2
        for i, v in enumerate(values)
        for j in range(2)
    ]
    assert r_squared(panel_of(values), forecast, scale) == pytest.approx(np.mean(expected))


def test_a_target_without_values_does_not_count():
    values = np.column_stack([np.full(3, np.nan), [1.0, 2.0, 4.0]])
    forecast = np.array([[[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]]])
    assert r_squared(panel_of([values]), forecast, np.full((1, 2), 2.0)) == 1 - 3.0 / 4.0


def test_a_forecast_that_is_not_there_counts_as_none():
    forecast = np.array([[[np.nan, 1.0]]])
    assert np.isnan(r_squared(panel_of([np.ones((1, 2))]), forecast, np.ones((1, 2))))


def test_nothing_to_compare_with():
    with pytest.raises(ValueError, match="all values of df are missing"):
        r_squared(panel_of([np.full((2, 2), np.nan)]), np.zeros((1, 2, 2)), np.ones((1, 2)))
