"""Missing rows of networks that skip none: values of a season before."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrnn import ParaRNNForecaster
from tsrnn.data import read_panel
from tsrnn.forecasters import FittedStacked
from tsrnn.forecasters._repeated import repeat_season, repeated

X = np.nan


@pytest.mark.parametrize(
    ("rows", "season", "expected"),
    [
        ([1, 2, 3, X, X, X, X], 3, [1, 2, 3, 1, 2, 3, 1]),
        ([1, X, 3], 1, [1, 1, 3]),
        ([X, X, 3, X], 2, [3, 3, 3, 3]),
        ([X, X], 1, [X, X]),
        ([5, X, 6, X], 3, [5, 5, 6, 5]),
    ],
)
def test_missing_values_are_those_of_a_season_before(rows, season, expected):
    np.testing.assert_array_equal(repeat_season(np.array(rows, float), season), expected)


@given(
    st.lists(st.one_of(st.just(X), st.floats(-9, 9)), min_size=1, max_size=30),
    st.integers(1, 7),
    st.integers(0, 30),
)
def test_rows_after_a_cut_do_not_change_those_before(rows, season, cut):
    rows = np.array(rows)
    before = rows[: cut + 1]
    if np.isfinite(before).any():
        whole = repeat_season(rows, season)[: cut + 1]
        np.testing.assert_array_equal(whole, repeat_season(before, season))


def test_rows_go_on_from_those_before():
    panel = read_panel(pd.Series([X, 4.0, X]), missing="keep")
    past = [np.array([[1.0], [2.0]])]
    assert repeated(panel, 2, past).values.ravel().tolist() == [1, 4, 1]


@pytest.mark.slow
def test_a_long_series_with_gaps_has_a_trained_network_among_its_parts():
    rng = np.random.default_rng(0)
    rows = np.sin(np.arange(900) * 2 * np.pi / 7) * 5 + 20 + rng.standard_normal(900)
    series = pd.Series(rows, pd.date_range("2020-01-01", periods=900), name="y")
    series.iloc[[40, 300, 301, 302]] = X
    model = ParaRNNForecaster(14).fit(series.iloc[:-40])
    assert isinstance(model.fitted_, FittedStacked)
    assert "trained network" in model.fitted_.candidates.index
    later = series.iloc[-40:].copy()
    later.iloc[[3, -1]] = X
    assert np.isfinite(model.update(later).predict(3, level=80)).all(None)
