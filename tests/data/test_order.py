"""Order of series: by their values alone."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.data import order_of_series


def joined(series):
    return np.concatenate(series), np.cumsum([0, *map(len, series)])


@given(st.lists(st.integers(1, 30), min_size=1, max_size=9), st.integers(0, 99), st.data())
@settings(max_examples=60, deadline=None)
def test_is_that_of_the_values_however_they_come(lengths, seed, data):
    draw = np.random.default_rng(seed)
    series = [draw.normal(size=(length, 2)) for length in lengths]
    for rows in series:
        rows[draw.uniform(size=rows.shape) < 0.1] = np.nan
    order = order_of_series(*joined(series))
    assert sorted(order) == list(range(len(series)))
    mixed = data.draw(st.permutations(range(len(series))))
    again = order_of_series(*joined([series[i] for i in mixed]))
    for first, second in zip(order, again, strict=True):
        same = np.array_equal(series[first], series[mixed[second]], equal_nan=True)
        assert same or min(len(series[first]), len(series[mixed[second]])) < 4  # ties of few rows


@pytest.mark.parametrize(("factor", "level"), [(-1, 0), (1024, 0), (2.0**-30, 0), (1, 64)])
def test_does_not_depend_on_the_unit_of_measure(factor, level):
    draw = np.random.default_rng(0)
    series = [draw.integers(0, 2**20, size=(20, 1)).astype(float) for _ in range(30)]
    changed = [rows * factor + level if i % 2 else rows for i, rows in enumerate(series)]
    expected = order_of_series(*joined(series))
    np.testing.assert_array_equal(order_of_series(*joined(changed)), expected)


def test_of_an_obvious_loop():
    draw = np.random.default_rng(1)
    series = [draw.normal(size=(n, 1)) for n in (5, 9, 30, 4)] + [np.ones((6, 1))]
    shares = []
    for rows in series:
        changes = [abs(after - before) for before, after in pairwise(rows.ravel().tolist())]
        shares.append(sum(changes) / max(changes) / len(rows) if max(changes) else 0.0)
    assert order_of_series(*joined(series)).tolist() == np.argsort(shares).tolist()
