"""Timestamps of pandas, and dates written as text or as whole numbers, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tsrnn.data._digits import UNITS, are_weeks, form_of, from_digits, to_digits
from tsrnn.data._faults import listed, quote, quoted, warn_user
from tsrnn.data._written_dates import read_dates

ISO_WEEKS = """pd.to_datetime(times.astype(str) + "1", format="%G%V%u")"""
MOST = 2**61  # bound of integer timestamps: the difference of two fits 64 bits


@dataclass(frozen=True, eq=False)
class Stamps:
    """Timestamps as numbers.

    `values` (N,) are datetime64[ns], in UTC if there is a zone, or int64 (ordinals of periods,
    integers). `dtype` is `Layout.time_dtype`, `freq` the frequency that the index carries.
    """

    values: np.ndarray
    kind: Literal["datetime", "period", "integer"]
    dtype: str
    tz: str | None = None
    freq: str | int | pd.offsets.BaseOffset | None = None


def read_stamps(times: pd.Index, what: str, *, is_date: bool = False) -> Stamps:
    """Read an index of timestamps; `what` is its name in messages.

    `is_date` marks polars Date: no time of day.
    """
    if isinstance(times, pd.MultiIndex):
        raise TypeError(
            f"{what} must have one level; got a MultiIndex of {times.nlevels}. Use reset_index() "
            "and name the columns by id_col and time_col."
        )
    if times.hasnans:
        rows = np.flatnonzero(np.asarray(times.isna()))
        raise ValueError(
            f"{what} must have no missing timestamps; {len(rows)} are missing (NaT) at row "
            f"{listed(rows, 3)}. Drop these rows or fill in their timestamps."
        )
    times = read_dates(times, what, strict=True).values
    if isinstance(times, pd.PeriodIndex):
        return Stamps(times.asi8, "period", str(times.dtype), freq=times.freqstr)
    if isinstance(times, pd.DatetimeIndex):
        return _read_datetimes(times, what, is_date)
    if pd.api.types.is_integer_dtype(times.dtype):
        if len(times) and (times.max() > MOST or times.min() < -MOST):
            raise ValueError(
                f"{what} must hold integers up to 2**61 in size, so that steps can be counted in "
                f"64 bits; got {times.min()} to {times.max()}. Subtract a constant."
            )
        values = times.to_numpy(dtype=np.int64)
        step = times.step if isinstance(times, pd.RangeIndex) and times.step > 0 else None
        return Stamps(values, "integer", str(times.dtype).lower(), freq=step)
    if pd.api.types.is_float_dtype(times.dtype):
        return _read_floats(times, what)
    advice = "Convert them by pd.to_datetime, with the format they are written in."
    if pd.api.types.is_numeric_dtype(times.dtype):
        advice = "Use astype('int64') if they are whole numbers."
    raise _no_times(what, str(times.dtype), times[:2], advice)


def _no_times(what: str, dtype: str, shown: Any, advice: str) -> TypeError:
    """Return an error for a dtype that cannot hold timestamps."""
    return TypeError(
        f"{what} must hold datetimes, periods or integers; got dtype {dtype} "
        f"({quoted(shown)}). {advice}"
    )


def _read_floats(times: pd.Index, what: str) -> Stamps:
    """Read floats that are whole numbers as integers of a float dtype."""
    values = times.to_numpy(dtype=np.float64)
    exact = 2 ** np.finfo(str(times.dtype).lower()).nmant
    if (np.abs(values) > exact).any():
        raise ValueError(
            f"{what} must hold times that {times.dtype} holds exactly, up to {exact}; got "
            f"{values.min():.0f} to {values.max():.0f}. Read them anew as whole numbers, such as "
            "int64."
        )
    if (values % 1).any():
        advice = "Give datetimes, or number the rows by an integer index."
        raise _no_times(what, str(times.dtype), times[:2], advice)
    return Stamps(values.astype(np.int64), "integer", str(times.dtype).lower())


def _read_datetimes(times: pd.DatetimeIndex, what: str, is_date: bool) -> Stamps:
    try:
        values = times.as_unit("ns").asi8.view("datetime64[ns]")  # asi8 is UTC in every zone
    except pd.errors.OutOfBoundsDatetime as error:
        raise ValueError(
            f"{what} must lie between the years 1678 and 2261; got {times.min()} to "
            f"{times.max()}. Use periods (to_period) or an integer index."
        ) from error
    dtype = "date" if is_date else f"datetime64[{times.unit}]"
    custom = isinstance(times.freq, pd.offsets.CustomBusinessDay)  # its alias drops the holidays
    freq = times.freq if custom else times.freqstr
    if times.tz is None:
        return Stamps(values, "datetime", dtype, None, freq)
    tz = str(times.tz)
    try:
        pd.Timestamp(0, tz=tz)
    except (KeyError, ValueError) as error:  # the name of a dateutil zone is the path of a file
        raise ValueError(
            f"{what} must be in a time zone with a name, such as 'Europe/Berlin'; got "
            f"{times.tz!r}. Use tz_convert with the name"
        ) from error
    return Stamps(values, "datetime", dtype, tz, freq)


def calendar_or_steps(stamps: Stamps, what: str, freq: Any = None, dtype: str = "") -> Stamps:
    """Read whole numbers as dates or as steps; return other timestamps unchanged.

    An integer `freq` makes whole numbers steps, an alias makes them dates. `dtype` is
    `Layout.time_dtype` of the data fitted to, empty at the first fit. Numbers that could be either
    are refused.
    """
    if stamps.kind != "integer":
        return stamps
    values, written = stamps.values, digit_form(dtype)
    form = form_of(values) if written is None else written
    counted = dtype != "" or isinstance(freq, int | np.integer)
    if form is None or (counted and written is None):
        return _steps(stamps, what)
    numbers = np.asarray(pd.unique(values))  # series of a panel share their timestamps
    dates = from_digits(numbers, form)
    wrong = np.isnat(dates)
    if written is not None or freq is not None:
        if wrong.any():
            raise _no_date(
                pd.Index(values), np.isin(values, numbers[wrong]), what, like=_example(form, dates)
            )
        return _dates(stamps, form)
    if form == "YYYY" and not stamps.dtype.startswith("float"):
        return stamps  # as years or as steps, forecasts have the same timestamps
    steps = np.unique(np.diff(np.sort(numbers)))
    step = int(steps[0]) if len(steps) == 1 else None  # None where there are gaps
    first, last = numbers.min(), numbers.max()
    # The majority decides, as for dates written as text: a few invalid dates are faults.
    if 2 * wrong.sum() >= len(numbers):
        if are_weeks(numbers) and (first % 100 == 1 or not step):
            raise ValueError(
                f"{what}, {first} to {last}, could count steps or weeks of years, which are "
                f"numbered in several ways. Convert weeks, those of ISO 8601 by {ISO_WEEKS}; or "
                f"give freq={step or 1} to count steps."
            )
        return _steps(stamps, what)
    if wrong.any():
        shown = numbers[wrong]
        raise ValueError(
            f"{what} could hold dates ({form}) or count steps: {len(numbers) - len(shown)} of "
            f"{len(numbers)} times are dates, such as {_example(form, dates)}, and no date is "
            f"{listed(shown, 3)}. Give freq={step or 1} to count steps; for dates correct or drop "
            f"these rows."
        )
    if step and len(form) < 8 and step % 10 ** (len(form) - 4):
        unit = UNITS[form] if step == 1 else f"{step}{UNITS[form]}"
        warn_user(
            f"{what}, {first} to {last}, is read as dates ({form}). Give freq={step} if it counts "
            f"steps, freq={unit!r} if these are dates"
        )
    return _dates(stamps, form)


def are_dates(numbers: pd.Index | pd.Series) -> bool:
    """Return True if whole numbers are dates of one form other than years."""
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    if not len(values) or not np.isfinite(values).all() or (values % 1).any():
        return False
    whole = values.astype(np.int64)
    form = form_of(whole)
    return form not in (None, "YYYY") and not np.isnat(from_digits(whole, str(form))).any()


def _dates(stamps: Stamps, form: str) -> Stamps:
    dtype = f"{form}[{stamps.dtype.partition('[')[0]}]"
    return Stamps(from_digits(stamps.values, form), "datetime", dtype)


def _steps(stamps: Stamps, what: str) -> Stamps:
    """Return whole numbers as steps; refuse floats."""
    if stamps.dtype.startswith("float"):
        shown, advice = stamps.values[:2].astype(stamps.dtype), "Use astype('int64') if they count"
        raise _no_times(what, stamps.dtype, shown, f"{advice} steps.")
    return stamps


def _example(form: str, dates: np.ndarray) -> int:
    """Return the first of `dates` in digits, or an invented one if all are missing."""
    known = dates[~np.isnat(dates)]
    return int(to_digits(known[:1] if len(known) else np.array(["2024-01-31"], "M8[ns]"), form)[0])


def digit_form(dtype: str) -> str | None:
    """Return "YYYYMMDD" of "YYYYMMDD[int64]", None for other dtypes."""
    return dtype.partition("[")[0] if dtype.startswith("YYYY") else None


def periods(ordinals: np.ndarray, freq: str | None) -> pd.PeriodIndex:
    """Return the periods of ordinals."""
    return pd.PeriodIndex.from_ordinals(ordinals, freq=freq)  # type: ignore[attr-defined]


def period_freq(dtype: str) -> str | None:
    """Return "M" of "period[M]", None for other dtypes."""
    return dtype[len("period[") : -1] if dtype.startswith("period[") else None


def period_step(freq: str) -> int:
    """Return the multiple of a frequency of periods, which is the step of their ordinals."""
    digits = freq[: len(freq) - len(freq.lstrip("0123456789"))]
    return int(digits or 1)


def _no_date(column: pd.Index, wrong: np.ndarray, what: str, *, like: str | int) -> ValueError:
    """Return an error that names the first rows without a date."""
    rows = np.flatnonzero(np.asarray(wrong))
    shown = listed([f"{quote(column[row])} in row {row}" for row in rows.tolist()], 3)
    return ValueError(
        f"{what} must hold dates in every row, written like {quote(like)}; no such date is "
        f"{shown}. Drop these rows, or correct them."
    )
