"""Timestamps of pandas, and dates written as text or as whole numbers, as numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from tsrnn.data._digits import UNITS, are_weeks, form_of, from_digits, to_digits
from tsrnn.data._faults import listed, quote, quoted, warn_user

__all__ = [
    "Stamps",
    "are_dates",
    "calendar_or_steps",
    "digit_form",
    "is_text",
    "looks_like_dates",
    "period_freq",
    "period_step",
    "periods",
    "read_stamps",
]

ISO_WEEKS = """pd.to_datetime(times.astype(str) + "1", format="%G%V%u")"""
MOST = 2**61  # size of an integer timestamp, so that the difference of two fits 64 bits

_CLOCK = r"([T ]\d{1,2}:\d{2}(:\d{2}([.]\d{1,9})?)?\s?(Z|[+-]\d{2}(:?\d{2})?)?)?"
# The year comes first, so that nothing but month and day can follow.
FORMS = {
    "days": re.compile(rf"\d{{4}}([-/])\d{{1,2}}\1\d{{1,2}}{_CLOCK}"),
    "months": re.compile(r"\d{4}(-|M)(0[1-9]|1[0-2])"),
    "quarters": re.compile(r"\d{4}-?Q[1-4]"),
}
# Day and month could stand either way, and years of two digits in any century.
AMBIGUOUS = re.compile(rf"\d{{1,2}}([-/.])\d{{1,2}}\1(\d{{4}}|\d{{2}}){_CLOCK}")


@dataclass(frozen=True, eq=False)
class Stamps:
    """Timestamps as numbers; `dtype` as `Layout.time_dtype`, `freq` what they carry, if any.

    `values` (N,) are datetime64[ns], in UTC if there is a zone, or int64 (ordinals of periods,
    integers).
    """

    values: np.ndarray
    kind: Literal["datetime", "period", "integer"]
    dtype: str
    tz: str | None = None
    freq: str | int | None = None


def read_stamps(times: pd.Index, what: str, *, is_date: bool = False) -> Stamps:
    """Read an index of timestamps, which messages call `what`.

    `is_date` says that they were dates without a time of day (polars Date).
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
    times = read_dates(times, what)
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
    """Error for values that are none of those that time is counted in."""
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
        values = times.as_unit("ns").asi8.view("datetime64[ns]")  # of any zone they count in UTC
    except pd.errors.OutOfBoundsDatetime as error:
        raise ValueError(
            f"{what} must lie between the years 1678 and 2261; got {times.min()} to "
            f"{times.max()}. Use periods (to_period) or an integer index."
        ) from error
    dtype = "date" if is_date else f"datetime64[{times.unit}]"
    if times.tz is None:
        return Stamps(values, "datetime", dtype, None, times.freqstr)
    tz = str(times.tz)
    try:
        pd.Timestamp(0, tz=tz)
    except (KeyError, ValueError) as error:  # a zone of dateutil goes by the path of a file
        raise ValueError(
            f"{what} must be in a time zone with a name, such as 'Europe/Berlin'; got "
            f"{times.tz!r}. Use tz_convert with the name"
        ) from error
    return Stamps(values, "datetime", dtype, tz, times.freqstr)


def calendar_or_steps(stamps: Stamps, what: str, freq: Any = None, dtype: str = "") -> Stamps:
    """Read whole numbers as dates or as steps; other timestamps come back as they are.

    Parameters
    ----------
    stamps : Stamps
    what : str
        What messages call them.
    freq : str, int or pandas offset, optional
        Of integers it says that they are steps, an alias that they are dates.
    dtype : str
        Of the timestamps fitted to (`Layout.time_dtype`), if there are such.

    Raises
    ------
    TypeError, ValueError
        If they must be dates and are not, or could be either.
    """
    if stamps.kind != "integer":
        return stamps
    values, written = stamps.values, digit_form(dtype)
    form = form_of(values) if written is None else written
    counted = dtype != "" or isinstance(freq, int | np.integer)
    if form is None or (counted and written is None):
        return _steps(stamps, what)
    numbers = np.asarray(pd.unique(values))  # of a panel's many rows few are different
    dates = from_digits(numbers, form)
    wrong = np.isnat(dates)
    if written is not None or freq is not None:
        if wrong.any():
            raise _no_date(
                pd.Index(values), np.isin(values, numbers[wrong]), what, like=_example(form, dates)
            )
        return _dates(stamps, form)
    if form == "YYYY" and not stamps.dtype.startswith("float"):
        return stamps  # years and steps of them are followed by the same ones
    steps = np.unique(np.diff(np.sort(numbers)))
    step = int(steps[0]) if len(steps) == 1 else None  # of steps without gaps
    first, last = numbers.min(), numbers.max()
    if 2 * wrong.sum() >= len(numbers):  # as with text, a wrong date among right ones is one
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
    """Return True if whole numbers are dates of one form that says more than the year.

    Parameters
    ----------
    numbers : pandas.Index or pandas.Series

    Returns
    -------
    bool

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import are_dates
    >>> are_dates(pd.Index([202411, 202412])), are_dates(pd.Index([202412, 202413]))
    (True, False)
    """
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
    """Whole numbers as steps, which floats are not."""
    if stamps.dtype.startswith("float"):
        shown, advice = stamps.values[:2].astype(stamps.dtype), "Use astype('int64') if they count"
        raise _no_times(what, stamps.dtype, shown, f"{advice} steps.")
    return stamps


def _example(form: str, dates: np.ndarray) -> int:
    """A date of a form, one of some if there is one."""
    known = dates[~np.isnat(dates)]
    return int(to_digits(known[:1] if len(known) else np.array(["2024-01-31"], "M8[ns]"), form)[0])


def digit_form(dtype: str) -> str | None:
    """Return the form in "YYYYMMDD[int64]", None for other dtypes."""
    return dtype.partition("[")[0] if dtype.startswith("YYYY") else None


def periods(ordinals: np.ndarray, freq: str | None) -> pd.PeriodIndex:
    """Return the periods of some ordinals."""
    return pd.PeriodIndex.from_ordinals(ordinals, freq=freq)  # type: ignore[attr-defined]


def period_freq(dtype: str) -> str | None:
    """Return the frequency in "period[M]", None for other dtypes."""
    return dtype[len("period[") : -1] if dtype.startswith("period[") else None


def period_step(freq: str) -> int:
    """Return the multiple in front of a frequency of periods, the step of their ordinals."""
    digits = freq[: len(freq) - len(freq.lstrip("0123456789"))]
    return int(digits or 1)


def is_text(column: pd.Index | pd.Series) -> bool:
    """Whether all values that are not missing are text, and some are there."""
    if isinstance(column.dtype, pd.StringDtype):
        return bool(column.notna().any())
    if column.dtype != object:
        return False
    known = column.dropna()
    return len(known) > 0 and all(isinstance(value, str) for value in known)


def looks_like_dates(column: pd.Index | pd.Series, *, years: bool = True) -> bool:
    """Return True if the column is text and more than half of it is written like dates.

    Without `years` four digits are a number like any other.
    """
    texts, forms = _texts(column) if is_text(column) else [], (*FORMS.values(), AMBIGUOUS)
    marked = sum(any(form.fullmatch(text) for form in forms) for text in texts)
    in_digits, form = _in_digits(texts)
    if years or form != "YYYY":
        marked += int(np.sum(~np.isnat(in_digits)))
    # more than half: a wrong date among right ones is then refused, and not read as other text
    return 2 * marked > len(texts)


def _in_digits(texts: Sequence[str]) -> tuple[np.ndarray, str]:
    """Return dates written in digits, NaT for other text, and their form, the most common one."""
    digits = [text if text.isdecimal() and text.isascii() else "" for text in texts]
    lengths = Counter(map(len, digits))
    form = max(UNITS, key=lambda form: lengths[len(form)])
    numbers = [int(text) if len(text) == len(form) else 0 for text in digits]
    return from_digits(np.array(numbers, np.int64), form), form


def read_dates(column: pd.Index, what: str) -> pd.Index:
    """Read text as dates; what is not written like dates comes back as it is.

    Years first, as in ISO 8601: days ("2020-01-31", with or without a time of day and an offset
    from UTC), months ("2020-01", "2020M01": their first days), quarters ("2020Q1": periods) or one
    of the forms in digits alone ("20200131"), of one form throughout. Missing texts are missing
    dates.
    """
    if isinstance(column.dtype, np.dtype) and column.dtype.kind != "O":
        return column
    if not looks_like_dates(column):
        return column
    rows, different = pd.factorize(column)  # dates of a panel are many rows of few texts
    texts = pd.Index(different).str.strip()
    twofold = [text for text in texts if AMBIGUOUS.fullmatch(text)]
    if twofold:
        raise ValueError(
            f"{what} must hold dates of one meaning; {quote(twofold[0])} could begin with the day "
            "or with the month. Convert it before, saying which: pd.to_datetime(..., "
            f'format="{_guess(twofold, "%d", "%m")}") if the day is first, '
            f'format="{_guess(twofold, "%m", "%d")}" if the month is.'
        )
    in_digits, form = _in_digits(texts.tolist())
    counts = {name: [t for t in texts if pattern.fullmatch(t)] for name, pattern in FORMS.items()}
    counts["digits"] = texts[~np.isnat(in_digits)].tolist()
    name, members = max(counts.items(), key=lambda item: len(item[1]))
    if len(members) < len(texts):
        wrong = ~texts.isin(members)[rows] & (rows >= 0)
        raise _no_date(column, wrong, what, like=members[0])
    if name == "digits":
        dates: Any = pd.DatetimeIndex(in_digits)
        dates = dates.take(rows, fill_value=pd.NaT)
        return dates.to_period("Q") if form == "YYYYQ" else dates
    if name == "quarters":
        return pd.PeriodIndex(texts.str.replace("-", ""), freq="Q").take(rows, fill_value=pd.NaT)  # type: ignore[arg-type]
    try:
        times: Any = pd.to_datetime(texts.str.replace("M", "-"), format="ISO8601", errors="coerce")
    except ValueError:
        times = None  # offsets from UTC differ
    if not isinstance(times, pd.DatetimeIndex):
        raise ValueError(
            f"{what} must hold timestamps of one offset from UTC; it has several. Convert it "
            "before: pd.to_datetime(..., utc=True).dt.tz_convert(zone)."
        )
    wrong = np.asarray(times.isna())[rows] & (rows >= 0)
    if wrong.any():
        raise _no_date(column, wrong, what, like="2020-02-29")
    return times.take(rows, fill_value=pd.NaT)  # type: ignore[arg-type]


def _no_date(column: pd.Index, wrong: np.ndarray, what: str, *, like: str | int) -> ValueError:
    """Error that names the first rows that hold no date."""
    rows = np.flatnonzero(np.asarray(wrong))
    shown = listed([f"{quote(column[row])} in row {row}" for row in rows.tolist()], 3)
    return ValueError(
        f"{what} must hold dates in every row, written like {quote(like)}; no such date is "
        f"{shown}. Drop these rows, or correct them."
    )


def _texts(column: pd.Index | pd.Series) -> list[str]:
    """Different texts, blanks around them left out."""
    return [str(text).strip() for text in pd.unique(column.dropna())]


def _guess(texts: list[str], first: str, second: str) -> str:
    """The format of strptime with which texts of two meanings would be read."""
    match = AMBIGUOUS.fullmatch(texts[0])
    assert match is not None
    year = "%Y" if len(match[2]) == 4 else "%y"
    clock = "" if match[3] is None else " %H:%M:%S" if match[4] else " %H:%M"
    return f"{first}{match[1]}{second}{match[1]}{year}{clock}"
