"""Arrays and lists: rows counted from 0, answered in the shape that came."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrnn import ARMA, ETS, VARMA, ParaRNNForecaster
from tsrnn.data import array_frame, read_panel

RNG = np.random.default_rng(0)
Y = 3 + RNG.normal(size=60).cumsum() / 4
PAIR = np.stack([Y, RNG.normal(size=60)], 1)


@pytest.mark.parametrize("make", [list, tuple, np.asarray])
def test_forecasts_of_rows_are_an_array(make):
    model = ARMA((1, 0)).fit(make(Y))
    expected = ARMA((1, 0)).fit(pd.Series(Y))
    forecasts = model.predict(4)
    assert type(forecasts) is np.ndarray
    np.testing.assert_array_equal(forecasts, expected.predict(4).to_numpy())
    np.testing.assert_array_equal(
        model.predict(make(Y[:30]), 4), expected.predict(pd.Series(Y[:30]), 4).to_numpy()
    )
    with_ends = model.predict(4, level=80)
    assert with_ends.index.tolist() == [60, 61, 62, 63]
    np.testing.assert_array_equal(with_ends, expected.predict(4, level=80))


@pytest.mark.parametrize("columns", [1, 2])
def test_forecasts_of_variables_have_a_column_each(columns):
    model = VARMA() if columns == 2 else ETS()
    forecasts = model.fit(PAIR[:, :columns].tolist()).predict(3)
    assert forecasts.shape == (3, columns)
    frame = model.fit(pd.DataFrame(PAIR[:, :columns])).predict(3)
    np.testing.assert_array_equal(forecasts, frame.to_numpy())


def test_new_rows_follow_those_known():
    model = ARMA((1, 0)).fit(Y[:50]).update(Y[50:55].tolist()).update(Y[55:])
    frames = ARMA((1, 0)).fit(pd.Series(Y[:50])).update(pd.Series(Y[50:], range(50, 60)))
    np.testing.assert_array_equal(model.predict(3), frames.predict(3).to_numpy())
    assert model.score(Y[:3]) == frames.score(pd.Series(Y[:3], range(60, 63)))


def test_columns_ahead_are_an_array_too():
    model = ARMA((1, 0), target=0, known_ahead=[1]).fit(PAIR)
    ahead = pd.DataFrame({1: [1.0, 2.0]}, index=[60, 61])
    expected = (
        ARMA((1, 0), target=0, known_ahead=[1]).fit(pd.DataFrame(PAIR)).predict(2, X_future=ahead)
    )
    for rows in ([1.0, 2.0], np.array([[1.0], [2.0]])):
        np.testing.assert_array_equal(model.predict(2, X_future=rows), expected[[0]])


def test_a_file_remembers_that_rows_are_counted(reloaded):
    model = ParaRNNForecaster(2).fit(Y)
    np.testing.assert_array_equal(reloaded(model).predict(2), model.predict(2))


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=20), st.integers(-5, 5))
def test_rows_keep_their_values(values, start):
    panel = read_panel(array_frame(values, start))
    np.testing.assert_array_equal(panel.values.ravel(), values)
    np.testing.assert_array_equal(panel.times, range(start, start + len(values)))


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([[1.0], [1.0, 2.0]], "rows of different lengths"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\). Give a long frame"),
        (np.array(1.0), r"got shape \(\)"),
        ([True, "a"], "must be numeric"),
    ],
)
def test_no_rows_of_numbers(values, match):
    with pytest.raises(TypeError, match=match):
        ARMA((1, 0)).fit(values)
