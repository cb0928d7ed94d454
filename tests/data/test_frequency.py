"""Frequencies: aliases, inference, future timestamps; pandas' date ranges are the oracle."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.data import future_times, read_panel, steps_between

ALIASES = [
    *("MS", "ME", "BMS", "BME", "QS", "QE", "BQS", "BQE", "YS", "YE", "BYS", "BYE"),
    *("QS-FEB", "QE-JAN", "YS-APR", "YE-JUN", "2MS", "5ME", "2QS-OCT", "2YS"),
    *("W", "W-WED", "4W-FRI", "D", "3D", "B"),
    *("h", "2h", "15min", "36h", "s", "30s", "ms", "us", "ns"),
]
NAMES = {"QS": "QS-JAN", "QE": "QE-DEC", "BQS": "BQS-JAN", "BQE": "BQE-DEC", "YS": "YS-JAN"}
NAMES |= {"YE": "YE-DEC", "BYS": "BYS-JAN", "BYE": "BYE-DEC", "W": "W-SUN", "QE-JAN": "QE-OCT"}
NAMES |= {"2QS-OCT": "2QS-JAN", "2YS": "2YS-JAN"}


def series(index):
    return pd.Series(np.arange(len(index), dtype=float), index=index)


def bare(index):
    """Drop the frequency that an index carries."""
    return pd.DatetimeIndex(index.to_numpy() if index.tz is None else list(index))


def long(**indices):
    parts = [pd.DataFrame({"unique_id": key, "ds": i, "y": 1.0}) for key, i in indices.items()]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("start", ["2020-01-15", "1969-05-03 09:30", "1899-12-30"])
def test_inferred_and_continued_as_pandas_does(alias, start):
    index = pd.date_range(start, periods=30, freq=alias, unit="ns")
    panel = read_panel(series(bare(index[:20])))
    assert panel.freq == NAMES.get(alias, alias)
    np.testing.assert_array_equal(future_times(panel, 10)[0], index[20:].to_numpy())


@pytest.mark.parametrize("alias", ALIASES)
def test_given_and_carried_frequency_serve_a_single_row(alias):
    index = pd.date_range("2020-01-15", periods=4, freq=alias, unit="ns")
    for panel in (
        read_panel(series(bare(index[:1])), freq=alias),
        read_panel(series(bare(index[:1])), freq=pd.tseries.frequencies.to_offset(alias)),
        read_panel(series(index[:1])),
    ):
        assert panel.freq == NAMES.get(alias, alias)
        np.testing.assert_array_equal(future_times(panel, 3)[0], index[1:].to_numpy())


@settings(max_examples=60, deadline=None)
@given(
    alias=st.sampled_from(ALIASES),
    start=st.datetimes(pd.Timestamp("1700-01-01"), pd.Timestamp("2100-01-01")),
    n=st.integers(1, 40),
)
def test_steps_there_and_back(alias, start, n):
    times = pd.date_range(start, periods=n + 1, freq=alias, unit="ns").to_numpy()
    panel = read_panel(series(pd.DatetimeIndex(times)), freq=alias)  # without gaps
    np.testing.assert_array_equal(panel.times, times)
    np.testing.assert_array_equal(future_times((times[:1], alias), n)[0], times[1:])
    np.testing.assert_array_equal(steps_between(times[:1], times, alias), np.arange(n + 1))


def test_alias_with_the_same_grid_has_one_name():
    day = series(pd.DatetimeIndex(["2023-10-01"]))  # a Sunday
    names = {"QS-OCT": "QS-JAN", "QS-APR": "QS-JAN", "QS": "QS-JAN", "60min": "h"}
    for alias, name in (names | {"h": "h", "7D": "7D", "W": "W-SUN"}).items():
        assert read_panel(day, freq=alias).freq == name


@pytest.mark.parametrize(
    ("freq", "told"),
    [
        ("M", "'ME' (month end) or 'MS'"),
        ("H", "use 'h'"),
        ("T", "use 'min'"),
        ("fortnight", "is not understood"),
        ("1h30min", "is not understood"),
        ("0D", "is not understood"),
        ("MS-JAN", "is not understood"),
        ("QS-XXX", "is not understood"),
        ("W-ABC", "is not understood"),
        ("WOM-3FRI", "is not understood"),
        ("-1D", "is not understood"),
        ("9" * 30 + "D", "is not understood"),
        ("99999999h", "is not understood"),
        ("9" * 5000 + "s", "is not understood"),
        (1.5, "is not understood"),
        (True, "is not understood"),
        (0, "step of at least 1"),
    ],
)
def test_alias_not_understood(freq, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        read_panel(series(pd.date_range("2020", periods=2)), freq=freq)


def test_integer_step_and_period_frequency():
    assert read_panel(series(pd.Index([3, 5, 7]))).freq == 2
    assert read_panel(series(pd.RangeIndex(4, 5))).freq == 1
    ordinals = pd.period_range("2020Q1", periods=6, freq="Q")
    panel = read_panel(series(ordinals[:4]))
    assert panel.freq == "Q-DEC"
    np.testing.assert_array_equal(future_times(panel, 2)[0], ordinals[4:].asi8)
    double = pd.period_range("2020-01-01", periods=6, freq="2h")
    panel = read_panel(series(double[:4]))
    np.testing.assert_array_equal(future_times(panel, 2)[0], double[4:].asi8)


def test_future_times_from_last_times_alone():
    last = np.array(["2020-01-31", "2020-02-29"], "datetime64[s]")
    times = future_times((last, "ME"), 2)
    assert times.dtype == "datetime64[ns]"
    expected = [["2020-02-29", "2020-03-31"], ["2020-03-31", "2020-04-30"]]
    np.testing.assert_array_equal(times, np.array(expected, "datetime64[ns]"))
    np.testing.assert_array_equal(future_times((np.array([4]), 3), 2), [[7, 10]])
    np.testing.assert_array_equal(future_times((np.array([4]), "3M"), 2), [[7, 10]])


@pytest.mark.parametrize("h", [0, -1, 2.0, True, None])
def test_horizon_must_be_a_positive_integer(h):
    with pytest.raises(ValueError, match="h must be an integer of at least 1"):
        future_times((np.array([4]), 1), h)


@pytest.mark.parametrize("freq", ["YS", "8760h", "W"])
def test_horizon_beyond_the_range_of_timestamps(freq):
    with pytest.raises(ValueError, match="between the years 1678 and 2261"):
        future_times((np.array(["2023-01-01"], "datetime64[ns]"), freq), 30_000)


class TestZones:
    def test_hours_pass_the_change_of_clocks(self):
        index = pd.date_range("2023-03-20", periods=24 * 14, freq="h", tz="Europe/Berlin")
        panel = read_panel(series(bare(index[:200])))
        assert panel.freq == "h"
        expected = index[200:].tz_convert("UTC").tz_localize(None).as_unit("ns")
        np.testing.assert_array_equal(future_times(panel, len(expected))[0], expected)

    @pytest.mark.parametrize("alias", ["D", "B", "W-SUN", "MS", "ME", "QS-JAN", "YS-JAN"])
    def test_days_are_those_of_the_wall_clock(self, alias):
        index = pd.date_range("2023-01-01", periods=60, freq=alias, tz="Europe/Berlin")
        panel = read_panel(series(bare(index[:20])))
        assert panel.freq == alias
        expected = index[20:].tz_convert("UTC").tz_localize(None).as_unit("ns")
        np.testing.assert_array_equal(future_times(panel, 40)[0], expected)

    def test_daily_in_utc_is_a_fixed_step_in_another_zone(self):
        index = pd.date_range("2023-03-01", periods=60, freq="D", tz="UTC")
        panel = read_panel(series(bare(index.tz_convert("Europe/Berlin"))))
        assert panel.freq == "24h"

    def test_a_midnight_left_out_moves_forward(self):
        index = pd.date_range("2023-08-25", periods=5, freq="D", tz="America/Santiago")
        times = future_times(read_panel(series(index)), 6)[0]
        local = pd.DatetimeIndex(times).tz_localize("UTC").tz_convert("America/Santiago")
        assert [t.hour for t in local] == [0, 0, 0, 0, 1, 0]


def two_rows(*times):
    return series(pd.DatetimeIndex(times))


WILD = pd.DatetimeIndex(["2020-01-01", "2020-01-03 07:00", "2020-01-04"])
NINTHS = pd.DatetimeIndex(["2020-01-01 09:00", "2020-01-02 09:00", "2020-01-03 10:00"])
FIRSTS = series(pd.date_range("2020-01-01", periods=6, freq="MS"))
SECOND = pd.DatetimeIndex(np.array(["2020-01-01"], "datetime64[s]"))


def mixed(first, second):
    """Yield panels of two frequencies, and the parts that name both and a series of each."""
    often = pd.date_range("2020-01-01", periods=9, freq=first)
    once = pd.date_range("2020-01-01", periods=5, freq=second)
    for data in (long(a=often, b=often, c=once), long(c=once, a=often)):
        yield data, f"{first!r}", f"{second!r}", "series 'a'", "series 'c'"


@pytest.mark.parametrize(
    "case",
    [
        (two_rows("2020-01-01"), "no series has two rows", "freq='MS', freq='D' or freq='h'"),
        (pd.Series([1.0], pd.RangeIndex(3, 2, -1)), "no series has two rows"),
        (two_rows("2020-01-03", "2020-01-06"), "from two rows (2020-01-03 and 2020-01-06)",
         "freq='3D' or freq='B'"),
        (two_rows("2020-01-01", "2020-01-02", "2020-01-09", "2020-02-20"),
         "no regular frequency (1 days", "integer index"),
        (long(a=pd.date_range("2020-01-01", periods=9), b=WILD), "series 'b': the steps"),
        *mixed("MS", "D"), *mixed("MS", "QS-JAN"), *mixed("MS", "ME"), *mixed("h", "D"),
        *mixed("D", "2D"), *mixed("W-SUN", "W-MON"),
        (long(a=range(9), b=range(0, 9, 3)), "series 'a' has 1, series 'b' has 3"),
        (two_rows("2020-01-01", "2020-02-01", "2020-03-15"), "must follow freq='MS'",
         "2020-03-15", {"freq": "MS"}),
        (series(NINTHS), "time of day", "2020-01-03 10:00:00", {"freq": "D"}),
        *((FIRSTS, "of its 6 rows no two are (they are 29, 30, 31 steps apart)",
           {"freq": "D", "missing": missing}) for missing in ("error", "interpolate", "keep")),
        (series(pd.Index([0, 2, 3])), "not on it are 1 row at 3", {"freq": 2}),
        (series(pd.RangeIndex(3)), "does not fit integer timestamps", {"freq": "D"}),
        (series(pd.date_range("2020", periods=3)), "does not fit datetime", {"freq": 1}),
        (series(pd.period_range("2020-01", periods=3, freq="M")),
         "must be that of the periods, 'M'", {"freq": "MS"}),
        (series(SECOND), "finer than the timestamps", {"freq": "500ms"}),
    ],
    ids=lambda case: case[1],
)  # fmt: skip
def test_times_without_that_frequency(case):
    data, *parts = case
    options = parts.pop() if isinstance(parts[-1], dict) else {}
    with pytest.raises(ValueError, match=re.escape(parts[0])) as caught:
        read_panel(data, **options)
    assert all(part in str(caught.value) for part in parts)


def test_two_rows_an_hour_apart_are_enough():
    assert read_panel(two_rows("2020-01-03 00:00", "2020-01-03 01:00")).freq == "h"
