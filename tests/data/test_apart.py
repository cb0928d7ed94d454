"""Series at fault are told apart from the others."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrnn.data import read_panel, read_series, split_by_series


@given(st.sets(st.integers(0, 40)), st.integers(1, 40))
def test_exactly_the_bad_ones_are_at_fault(bad, n):
    def attempt(part):
        if bad & set(part):
            raise ValueError(sorted(bad & set(part)))
        return part

    results, faults = split_by_series(range(n), attempt)
    assert [i for part in results for i in part] == [i for i in range(n) if i not in bad]
    assert {i: error.args for i, error in faults.items()} == {
        i: ([i],) for i in range(n) if i in bad
    }


def test_one_bad_series_costs_a_logarithm():
    parts = []

    def attempt(part):
        parts.append(part)
        if 700 in part:
            raise ValueError

    split_by_series(range(1024), attempt)
    assert len(parts) == 21


def test_what_all_fail_with_is_raised_as_it_came():
    def attempt(part):
        raise ValueError(len(part))

    with pytest.raises(ValueError, match="^1000$"):
        split_by_series(range(1000), attempt, hopeless=3)
    with pytest.raises(ValueError, match="^2$"):
        split_by_series(range(2), attempt, hopeless=3)
    assert len(split_by_series(range(4), attempt)[1]) == 4


def test_a_missing_package_is_no_fault_of_a_series():
    def attempt(part):
        raise ImportError("no polars")

    with pytest.raises(ImportError, match="no polars"):
        split_by_series(range(4), attempt)


def daily(lengths):
    parts = [
        pd.DataFrame(
            {"unique_id": name, "ds": pd.date_range("2024-01-01", periods=n), "y": np.arange(n) / 3}
        )
        for name, n in lengths.items()
    ]
    return pd.concat(parts, ignore_index=True)


def test_series_that_are_read_are_those_of_a_frame_without_the_others():
    frame = daily({"a": 9, "b": 9, "one": 1, "two": 2, "c": 9})
    frame.loc[frame["unique_id"] == "b", "y"] = np.inf
    panel, faults = read_series(frame)
    assert list(faults) == ["b"]
    assert "infinite are series 'b': 9 rows" in faults["b"]
    expected = read_panel(frame[frame["unique_id"] != "b"])
    assert list(panel.ids) == ["a", "one", "two", "c"]
    np.testing.assert_array_equal(panel.values, expected.values)
    np.testing.assert_array_equal(panel.times, expected.times)
    assert panel.layout == expected.layout


def test_the_frequency_is_that_of_most_series():
    frame = daily({"a": 9, "b": 9})
    weeks = pd.date_range("2024-01-01", periods=5, freq="W")
    frame = pd.concat([frame, pd.DataFrame({"unique_id": "c", "ds": weeks, "y": 1.0})])
    panel, faults = read_series(frame)
    assert panel.freq == "D"
    assert list(faults) == ["c"]


def test_a_frame_without_ids_is_refused_as_it_is():
    with pytest.raises(ValueError, match="must be finite"):
        read_series(pd.Series([1.0, np.inf, 2.0], pd.date_range("2024-01-01", periods=3)))
