"""Timestamps as they come: regular ones of every kind, at the edges of their range, and none."""

import datetime
import decimal

import numpy as np
import pandas as pd
from hypothesis import strategies as st

FREQS = (
    *("D", "h", "15min", "s", "ms", "us", "ns", "2D", "7h", "B", "2B", "W-WED", "W-SUN", "2W-MON"),
    *("MS", "ME", "3MS", "BMS", "BME", "QS", "QE-NOV", "YS", "YE-JUN", "2YS"),
)
STARTS = (
    *("2024-01-01", "2021-03-26", "2021-10-29 23:30", "1969-12-30", "1677-09-22", "2018-11-02"),
    *("2262-04-01", "2262-04-09", "1900-01-31", "2024-02-27 23:00:00.000001"),
)
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"),
    *("Asia/Beirut", "+05:30", "Africa/Casablanca"),
)
UNITS = ("s", "ms", "us", "ns")
PERIODS = ("M", "Q-NOV", "Y", "Y-JUN", "W-THU", "D", "h", "min", "s", "ms", "2M", "3D", "15min")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "Int64")
FIRSTS = (0, 1, -3, 100, 2**15, 2**31 - 4, 2**53 - 1, 2**63 - 30, 2**63 - 6, -(2**63), 2**64 - 40)
DIGITS = (
    *(("%Y%m%d", freq) for freq in ("D", "W-MON", "B", "MS", "QE")),
    *(("%Y%m", "MS"), ("%Y%m", "3MS"), ("%Y%q", "QS"), ("%Y", "YS"), ("%Y%j", "D")),
    ("%Y%m%d%H", "h"),
)
DIGIT_STARTS = ("2023-11-29", "2024-01-01", "1999-10-01")
FAR = ("0001-01-01", "3000-01-01", "9999-01-01")


@st.composite
def stamps(draw, n):
    """An index of n timestamps, most often such as the package takes."""
    kinds = ("datetime",) * 6 + ("zoned",) * 4 + ("period",) * 3 + ("integer",) * 3
    kinds += ("range", "digits", "digits")
    kind = draw(st.sampled_from((*kinds, "far", "wrong")))
    return {
        "datetime": datetimes, "zoned": zoned, "period": periods, "integer": integers,
        "range": ranges, "digits": digits, "far": far, "wrong": wrong,
    }[kind](draw, n)  # fmt: skip


def datetimes(draw, n):
    freq, start = draw(st.sampled_from(FREQS)), draw(st.sampled_from(STARTS))
    try:
        index = pd.date_range(start, periods=n, freq=freq, unit="ns")
    except (pd.errors.OutOfBoundsDatetime, OverflowError):
        index = pd.date_range("2001-01-01", periods=n, freq=freq, unit="ns")
    unit = draw(st.sampled_from(UNITS))
    index = index.as_unit(unit) if freq not in UNITS[1:] else index
    return index if draw(st.booleans()) else pd.DatetimeIndex(index, freq=None)


def zoned(draw, n):
    zone = draw(st.sampled_from(ZONES))
    index = datetimes(draw, n)
    if draw(st.booleans()):
        return index.tz_localize("UTC").tz_convert(zone)
    return index.tz_localize(zone, ambiguous=np.ones(n, bool), nonexistent="shift_forward")


def periods(draw, n):
    freq = draw(st.sampled_from(PERIODS))
    start = draw(st.sampled_from(("2024-01-01", "1850-05-05", "2999-12-30", "0001-01-01")))
    return pd.period_range(pd.Period(start, freq), periods=n)


def integers(draw, n):
    dtype, first = draw(st.sampled_from(INTEGERS)), draw(st.sampled_from(FIRSTS))
    step = draw(st.sampled_from((1, 1, 1, 2, 7, 2**40)))
    bounds = np.iinfo(dtype.lower())
    values = [first + step * i for i in range(n)]
    if not all(bounds.min <= value <= bounds.max for value in values):
        values = [min(int(bounds.max), 100) - n + i for i in range(n)]
    return pd.Index(pd.array(values, dtype=dtype))


def ranges(draw, n):
    start, step = draw(st.integers(-5, 5)), draw(st.sampled_from((1, 2, -1, 3)))
    return pd.RangeIndex(start, start + step * n, step)


def digits(draw, n):
    """Dates in digits alone, now and then one that is none, and counters that look like them."""
    form, freq = draw(st.sampled_from(DIGITS))
    times = pd.date_range(draw(st.sampled_from(DIGIT_STARTS)), periods=n, freq=freq)
    written = 10 * times.year + times.quarter if form == "%Y%q" else times.strftime(form)
    numbers = np.array(written, np.int64)
    kind = draw(st.sampled_from(("dates", "dates", "dates", "one wrong", "counter")))
    if kind == "one wrong" and n:
        numbers[draw(st.integers(0, n - 1))] += 99
    if kind == "counter" and n:
        numbers = numbers[0] + np.arange(n)
    return pd.Index(numbers).astype(draw(st.sampled_from(("int64", "int64", "float64", "str"))))


def far(draw, n):
    """Years that 64 bits of nanoseconds do not reach."""
    start, unit = draw(st.sampled_from(FAR)), draw(st.sampled_from(UNITS[:2]))
    first = np.datetime64(start, "D")
    return pd.DatetimeIndex((first + np.arange(n)).astype(f"datetime64[{unit}]"))


def wrong(draw, n):
    """What are no timestamps, though some look alike."""
    days = pd.date_range("2024-01-01", periods=n)
    made = {
        "float": lambda: pd.Index(np.arange(n) + 0.5),
        "whole float": lambda: pd.Index(np.arange(n, dtype=float)),
        "text": lambda: pd.Index(days.strftime("%Y-%m-%d")),
        "words": lambda: pd.Index([f"day {i}" for i in range(n)]),
        "date": lambda: pd.Index([day.date() for day in days], dtype=object),
        "object": lambda: pd.Index(list(days), dtype=object),
        "mixed": lambda: pd.Index([days[0], *range(1, n)], dtype=object),
        "timedelta": lambda: pd.timedelta_range("1h", periods=n),
        "boolean": lambda: pd.Index(np.arange(n) % 2 == 0),
        "category": lambda: pd.CategoricalIndex(days),
        "interval": lambda: pd.interval_range(0, n),
        "levels": lambda: pd.MultiIndex.from_product([["a"], range(n)]),
        "decimal": lambda: pd.Index([decimal.Decimal(i) for i in range(n)], dtype=object),
        "big": lambda: pd.Index([2**70 + i for i in range(n)], dtype=object),
        "zones": lambda: pd.Index(
            [day.tz_localize("UTC" if i % 2 else "Asia/Tokyo") for i, day in enumerate(days)],
            dtype=object,
        ),
        "offset": lambda: days.tz_localize(datetime.timezone(datetime.timedelta(hours=-3))),
        "none": lambda: pd.Index([None] * n, dtype=object),
        "missing": lambda: days.where(np.arange(n) != n // 2),
    }
    return made[draw(st.sampled_from(sorted(made)))]()
