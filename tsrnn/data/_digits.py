"""Conversion of dates in digits, such as 20240131, 202401 or 20241, to timestamps and back."""

from __future__ import annotations

import numpy as np

from tsrnn.data._frequency import NS_PER_DAY, first_day

# Form -> alias of its step. The number of digits identifies the form.
UNITS = {
    "YYYY": "YS",
    "YYYYQ": "QS",
    "YYYYMM": "MS",
    "YYYYDDD": "D",
    "YYYYMMDD": "D",
    "YYYYMMDDHH": "h",
    "YYYYMMDDHHMM": "min",
    "YYYYMMDDHHMMSS": "s",
}
EXAMPLES = "20240131 (YYYYMMDD), 202401 (YYYYMM) or 20241 (YYYYQ)"
PATTERNS = {  # formats of strptime, for days and parts of days
    "YYYYDDD": "%Y%j",
    "YYYYMMDD": "%Y%m%d",
    "YYYYMMDDHH": "%Y%m%d%H",
    "YYYYMMDDHHMM": "%Y%m%d%H%M",
    "YYYYMMDDHHMMSS": "%Y%m%d%H%M%S",
}
YEARS = 1678, 2261  # range of nanoseconds in 64 bits
WEEK_YEARS = 1900, 2100  # a narrower range, since half of all numbers of six digits end in 01-53
CLOCK = {10: (24,), 12: (24, 60), 14: (24, 60, 60)}  # digits -> hours, minutes, seconds


def form_of(numbers: np.ndarray) -> str | None:
    """Return the form with as many digits as all numbers, None if there is none."""
    low, high = str(numbers.min()), str(numbers.max())
    if len(low) != len(high) or low.startswith("-"):
        return None
    return next((form for form in UNITS if len(form) == len(low)), None)


def from_digits(numbers: np.ndarray, form: str) -> np.ndarray:
    """Return whole numbers as datetime64[ns], NaT where a number is no date of the form."""
    clock = np.zeros(numbers.shape, np.int64)
    is_date = np.ones(numbers.shape, bool)
    dates, length = numbers, 1
    for size in CLOCK.get(len(form), ())[::-1]:  # from the seconds up
        dates, part = np.divmod(dates, 100)
        is_date &= part < size
        clock, length = clock + part * length, length * size
    clock *= NS_PER_DAY // length
    years, rest = np.divmod(dates, 10 ** (len(form[:8]) - 4))
    is_date &= (years >= YEARS[0]) & (years <= YEARS[1])
    january = 12 * (np.where(is_date, years, YEARS[0]) - 1970)
    if form == "YYYYDDD":
        days = first_day(january) + rest - 1
        is_date &= (rest >= 1) & (days < first_day(january + 12))
    else:
        day = np.ones_like(rest)
        if form == "YYYY":
            month = day
        elif form == "YYYYQ":
            month = 3 * rest - 2
        elif form == "YYYYMM":
            month = rest
        else:
            month, day = np.divmod(rest, 100)
        is_date &= (month >= 1) & (month <= 12) & (day >= 1)
        months = january + np.where(is_date, month, 1) - 1
        days = first_day(months) + day - 1
        is_date &= days < first_day(months + 1)
    stamps = (np.where(is_date, days, 0) * NS_PER_DAY + clock).astype("datetime64[ns]")
    stamps[~is_date] = np.datetime64("NaT")
    return stamps


def to_digits(times: np.ndarray, form: str) -> np.ndarray:
    """Return timestamps as whole numbers, the inverse of `from_digits`."""
    days, clock = np.divmod(times.astype("datetime64[ns]").astype(np.int64), NS_PER_DAY)
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    years, month = np.divmod(months, 12)
    numbers = years + 1970
    if form == "YYYYQ":
        numbers = 10 * numbers + month // 3 + 1
    elif form == "YYYYDDD":
        numbers = 1000 * numbers + days - first_day(12 * years) + 1
    elif form != "YYYY":
        numbers = 100 * numbers + month + 1
    if len(form) >= 8:
        numbers = 100 * numbers + days - first_day(months) + 1
    length = NS_PER_DAY
    for size in CLOCK.get(len(form), ()):  # from the hours down
        length //= size
        part, clock = np.divmod(clock, length)
        numbers = 100 * numbers + part
    return numbers


def are_weeks(numbers: np.ndarray) -> bool:
    """Return True if all numbers can be a year and a week, such as 202452."""
    years, weeks = np.divmod(numbers, 100)
    in_years = (years >= WEEK_YEARS[0]) & (years <= WEEK_YEARS[1])
    return bool((in_years & (weeks >= 1) & (weeks <= 53)).all())
