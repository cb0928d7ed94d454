"""Dates written as text: recognised forms and their conversion."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Literal

import numpy as np
import pandas as pd

from tsrnn.data._digits import UNITS, from_digits
from tsrnn.data._faults import listed, quote, warn_user
from tsrnn.data._month_names import MONTH_NAMES

DateOrder = Literal["DMY", "MDY"]
Place = Callable[[int], str]  # position of a row -> its name in messages

_ZONE = r"\s?(?P<offset>Z|[+-]\d{2}(?::?\d{2})?)"
_CLOCK = (
    rf"(?:[T ](?P<hour>\d{{1,2}}):\d{{2}}(?::(?P<second>\d{{2}})(?:[.]\d{{1,9}})?)?(?:{_ZONE})?)?"
)
_NAME = rf"(?P<name>{'|'.join(sorted(MONTH_NAMES, key=len, reverse=True))})[.]?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[.]?,? +)?"
_YEAR, _SHORT = r"(?P<year>\d{4})", r"(?P<year>\d{4}|'?\d{2})"
_HOURS = (
    r"(?:(?:T|,? +)(?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?P<fraction>[.]\d{1,9})?)?"
    rf"(?: ?(?P<half>[ap])[.]?m[.]?)?(?:{_ZONE})?)?"
)
# Forms that are unambiguous in every country: year, month, day.
STRICT = {
    "days": rf"{_YEAR}(?P<mark>[-/])\d{{1,2}}(?P=mark)\d{{1,2}}{_CLOCK}",
    "months": rf"{_YEAR}(?:-|M)(?P<month>0[1-9]|1[0-2])",
    "quarters": rf"{_YEAR}-?Q(?P<quarter>[1-4])",
}
FORMS = STRICT | {
    "year first": rf"{_YEAR}(?P<mark>[-/. ])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)[.]?{_HOURS}",
    "three numbers": (
        rf"(?P<left>\d\d?)(?P<mark>[-/. ])(?P<middle>\d\d?)(?P=mark) ?{_SHORT}{_HOURS}"
    ),
    "day and name": (
        rf"{_WEEKDAY}(?P<day>\d\d?)(?:st|nd|rd|th|[.])?(?: de |[-/ ]*){_NAME}"
        rf"(?: de |[-/, ]*){_SHORT}{_HOURS}"
    ),
    "name and day": (
        rf"{_WEEKDAY}{_NAME}[- ]*(?P<day>\d\d?)(?:st|nd|rd|th)?(?:, *| +){_YEAR}{_HOURS}"
    ),
    # After a blank, two digits could be a day.
    "name and year": rf"{_NAME}(?: de |[-/, ]*)(?P<year>\d{{4}}|(?<=-)\d\d|'\d\d)",
    "year and name": rf"{_YEAR}[-/, ]*{_NAME}",
    "year and month": rf"{_YEAR}(?: ?M ?| ?[-/] ?)(?P<month>1[0-2]|0?[1-9])",
    "month and year": rf"(?P<month>1[0-2]|0?[1-9]) ?[-/] ?{_YEAR}",
    "year and quarter": rf"{_YEAR}[-/: ]*Q ?(?P<quarter>[1-4])",
    "quarter and year": rf"(?:Q(?P<quarter>[1-4])|(?P<fourth>[1-4])Q)[-/:, ]*{_SHORT}",
    "weeks": rf"{_YEAR}-?W(?P<week>\d\d)",
}
# Spreadsheets count days from the origin; smaller and larger numbers are taken as values.
SERIAL_ORIGIN = np.datetime64("1899-12-30")
SERIAL_DAYS = 20_000, 60_000  # 1954 to 2064
DAY_NAME = re.compile("date|datum|fecha|day|tag|week|woche", re.IGNORECASE)
TIME_NAME = re.compile(
    rf"{DAY_NAME.pattern}|month|monat|mois|quarter|quartal|period|year|jahr|jaar|ann[ée]e|"
    r"\ba[nñ]o\b|\banno\b|^time$|^t$|^ds$",
    re.IGNORECASE,
)
PAIR_OF_YEARS = re.compile(r"(\d{4}) ?[-/] ?(\d{2})")
CENTURY = 69  # two-digit years 69-99 are 19xx, others 20xx, as in POSIX
# Order -> groups with (year, month, day) in a date of three numbers.
PLACES = {
    "DMY": ("year", "middle", "left"),
    "MDY": ("year", "left", "middle"),
    "YMD": ("left", "middle", "year"),
}
NAMES = {"D": "day", "M": "month", "Y": "year"}
# Candidates for offsets from UTC, the first match wins; neighbours often share offsets.
ZONES = (
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "Europe/Athens",
    "Australia/Sydney",
    "Australia/Adelaide",
    "Pacific/Auckland",
    "America/Halifax",
    "America/St_Johns",
    "America/Anchorage",
    "America/Santiago",
    "Asia/Jerusalem",
)


@dataclass(frozen=True)
class Dates:
    """Times of a column: text as datetimes or periods, other `values` unchanged.

    `note` is a sentence on a form outside `STRICT`; `order` is the order of day and month, None if
    ambiguous.
    """

    values: pd.Index
    note: str = ""
    order: DateOrder | None = None


def is_text(column: pd.Index | pd.Series) -> bool:
    """Return True if the known values are all text, and at least one is known."""
    if isinstance(column.dtype, pd.StringDtype):
        return bool(column.notna().any())
    if column.dtype != object:
        return False
    known = column.dropna()
    return len(known) > 0 and all(isinstance(value, str) for value in known)


def looks_like_dates(column: pd.Index | pd.Series, *, years: bool = True) -> bool:
    """Return True if more than half of a column of text looks like dates.

    Four digits count as a date if `years`, otherwise as a number.
    """
    texts = [str(text).strip() for text in pd.unique(column.dropna())] if is_text(column) else []
    marked = sum(_form(text) is not None for text in texts)
    in_digits, form = _in_digits(texts)
    if years or form != "YYYY":
        marked += int(np.sum(~np.isnat(in_digits)))
    # A majority, so that one invalid date is refused and does not turn the column into labels.
    return 2 * marked > len(texts)


def read_dates(
    column: pd.Index,
    what: str,
    *,
    strict: bool = False,
    order: DateOrder | None = None,
    zone: str | None = None,
    place: Place = "row {}".format,
) -> Dates:
    """Convert text to dates; return columns of other text and other dtypes unchanged.

    All texts must have one of `FORMS`, or be dates in digits ("20200131"). Missing texts become
    missing dates. `strict` refuses forms outside `STRICT`, and several offsets from UTC. `order`,
    of day and month, decides ambiguous texts; `zone`, inferred by default, is that of times with an
    offset from UTC. `place` names the row at a position in messages.
    """
    if not is_text(column):
        return Dates(column)
    rows, different = pd.factorize(column)  # series of a panel share their dates
    texts = [str(text).strip() for text in different]
    _refuse_pairs_of_years(texts, what)
    if not looks_like_dates(different):
        return Dates(column)

    def refuse(wrong: np.ndarray, like: str) -> None:
        """Refuse texts that differ in form from the majority."""
        numbers = np.flatnonzero(wrong[rows] & (rows >= 0)).tolist()
        if numbers:
            shown = listed([f"{quote(column[i])} in {place(i)}" for i in numbers], 3)
            raise ValueError(
                f"{what} must hold dates in every row, written like {quote(like)}; no such date "
                f"is {shown}. Drop these rows, or correct them."
            )

    # All texts must have the most common form.
    forms, in_digits = _forms(texts)
    form = Counter(filter(None, forms)).most_common(1)[0][0]
    like = texts[forms.index(form)]
    refuse(np.array([each != form for each in forms]), like)
    if strict and form not in STRICT | UNITS:
        raise ValueError(
            f"{what} must hold dates with the year first, such as '2020-01-31', with strict=True; "
            f"got {quote(like)}. Leave strict out, or convert it before by pd.to_datetime(..., "
            "format=...)."
        )

    if form in UNITS:
        dates: Any = pd.DatetimeIndex(in_digits)
        dates = dates.take(rows, fill_value=pd.NaT)
        return Dates(dates.to_period("Q") if form == "YYYYQ" else dates)
    matches = [match for match in map(_pattern(form).fullmatch, texts) if match]
    if "quarter" in form:
        quarters: Any = pd.PeriodIndex([*map(_quarter, matches)], freq="Q")
        note = _note(what, form, texts[0], quarters[0])
        return Dates(quarters.take(rows, fill_value=pd.NaT), note)
    if form == "three numbers":
        times, order = _ordered(texts, matches, what, order)
    else:  # pandas parses ISO days without a match in Python, in a tenth of the time
        times = _datetimes(texts if form == "days" else [*map(_iso, matches)])
        order = None
    refuse(np.asarray(times.isna()), "2020-02-29" if form == "days" else like)
    # The note shows a date such as 31.12.2020, from which the order of day and month is seen.
    shown = next((i for i, m in enumerate(matches) if order and m["left"] != m["middle"]), 0)
    note = _note(what, form, texts[shown], times[shown])
    if "offset" in _pattern(form).groupindex:
        offsets = [match["offset"] for match in matches]
        times, of_zone = _in_zone(times, offsets, what, strict, zone)
        note = f"{note} {of_zone}".strip()
    values: Any = times  # its stub knows no NaT
    return Dates(values.take(rows, fill_value=pd.NaT), note, order)


def _refuse_pairs_of_years(texts: Sequence[str], what: str) -> None:
    """Refuse 2001/02, 2002/03, ...: financial years, or months 13 apart."""
    pairs = map(PAIR_OF_YEARS.fullmatch, texts)
    if len(texts) > 1 and all(m and (int(m[1]) + 1) % 100 == int(m[2]) for m in pairs):
        raise ValueError(
            f"{what} must hold dates of one meaning; {quote(texts[0])} could be a month or a year "
            f"that ends in the next one, as all rows have two years that follow each other. Write "
            f"the first year alone, such as {texts[0][:4]}."
        )


def names_time(name: object) -> bool:
    """Return True if a column has a name of time, such as "month"."""
    return isinstance(name, str) and TIME_NAME.search(name) is not None


def read_serial_days(numbers: pd.Series, what: str, *, fitted: bool = False) -> Dates | None:
    """Convert serial days of spreadsheets to dates; return None for other numbers.

    Whole numbers are serial days if they are first or last days of months with equal steps, or if
    the column has a name of dates and they are consecutive days, weekdays or weeks. If the data
    fitted to had dates in a column of this name (`fitted`), all are serial days.
    """
    if not pd.api.types.is_numeric_dtype(numbers.dtype) or not len(numbers) or numbers.hasnans:
        return None
    values = numbers.to_numpy(np.float64)
    if values.min() < SERIAL_DAYS[0] or values.max() > SERIAL_DAYS[1] or (values % 1).any():
        return None
    days = SERIAL_ORIGIN + values.astype("timedelta64[D]")
    distinct = np.unique(days)
    if not fitted:
        if not np.isnat(from_digits(values.astype(np.int64), "YYYYQ")).any():
            return None  # numbers such as 20241 may be quarters
        months, day = distinct.astype("datetime64[M]"), np.timedelta64(1, "D")
        firsts = ((distinct - day).astype("datetime64[M]") < months).all()
        lasts = ((distinct + day).astype("datetime64[M]") > months).all()
        calendar = (firsts or lasts) and len(distinct) > 2 and len({*np.diff(months)}) == 1
        steps = {*np.diff(distinct).astype(int).tolist()}
        regular = steps in ({1}, {7}) or (np.is_busday(distinct).all() and max(steps) < 10)
        if not (calendar or (regular and DAY_NAME.search(str(numbers.name)))):
            return None
    times = pd.DatetimeIndex(days.astype("datetime64[s]"))
    note = f"{values[0]:.0f} of {what} is read as a serial day of spreadsheets, {_show(times[0])}."
    return Dates(times, note)


@cache
def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(FORMS[form], 0 if form in STRICT else re.IGNORECASE)


def _form(text: str) -> str | None:
    """Return the first form that fits a text."""
    if not any(digit in text for digit in "0123456789"):
        return None
    return next((form for form in FORMS if _pattern(form).fullmatch(text)), None)


def _forms(texts: Sequence[str]) -> tuple[list[str | None], np.ndarray]:
    """Return the form of each text, and dates of texts in digits (NaT for others)."""
    in_digits, digits = _in_digits(texts)
    forms = [
        digits if is_date else _form(text)
        for text, is_date in zip(texts, ~np.isnat(in_digits), strict=True)
    ]
    if "year and month" in forms:  # 2020-10 is of another form than 2020-9, but of one column
        forms = ["year and month" if form == "months" else form for form in forms]
    return forms, in_digits


def _in_digits(texts: Sequence[str]) -> tuple[np.ndarray, str]:
    """Return dates of texts in digits, NaT for others, and their most common form."""
    digits = [text if text.isdecimal() and text.isascii() else "" for text in texts]
    lengths = Counter(map(len, digits))
    form = max(UNITS, key=lambda form: lengths[len(form)])
    numbers = [int(text) if len(text) == len(form) else 0 for text in digits]
    return from_digits(np.array(numbers, np.int64), form), form


def _year(text: str) -> str:
    """Expand a year to four digits."""
    short = text.lstrip("'")
    if len(short) == 4:
        return short
    return ("19" if int(short) >= CENTURY else "20") + short


def _iso(match: re.Match[str], order: str = "") -> str:
    """Return a date in ISO 8601, the first day for a month or week."""
    part = match.groupdict()
    if order:
        year, month, day = (part[name] for name in PLACES[order])
    else:
        year, day = part["year"], part.get("day") or "1"
        month = part.get("month") or str(
            MONTH_NAMES[part["name"].lower()] if part.get("name") else 1
        )
    if part.get("week"):
        try:
            return date.fromisocalendar(int(year), int(part["week"]), 1).isoformat()
        except ValueError:
            return "no week"
    text = f"{_year(year)}-{month:0>2}-{day:0>2}"
    if part.get("hour"):
        hour = int(part["hour"])
        if part["half"]:  # 12 a.m. is midnight, 12 p.m. noon
            hour = hour % 12 + 12 * (part["half"].lower() == "p") if 1 <= hour <= 12 else 99
        text += f"T{hour:02}:{part['minute']}:{part['second'] or '00'}{part['fraction'] or ''}"
        text += (part["offset"] or "").upper()
    return text


def _quarter(match: re.Match[str]) -> str:
    part = match.groupdict()
    return f"{_year(part['year'])}Q{part['quarter'] or part['fourth']}"


def _datetimes(texts: Sequence[str]) -> pd.DatetimeIndex:
    """Convert ISO 8601 to datetimes, NaT for invalid dates; in UTC if offsets differ."""
    index = pd.Index(np.array(texts, object))
    try:
        times = pd.to_datetime(index, format="ISO8601", errors="coerce")
    except ValueError:
        times = None
    if not isinstance(times, pd.DatetimeIndex):
        times = pd.to_datetime(index, format="ISO8601", errors="coerce", utc=True)
    return times


def _ordered(
    texts: Sequence[str], matches: Sequence[re.Match[str]], what: str, order: DateOrder | None
) -> tuple[pd.DatetimeIndex, DateOrder | None]:
    """Convert dates of three numbers, in the only order of day, month and year that fits."""
    short = any(len(match["year"]) < 4 for match in matches)
    orders = ["DMY", "MDY", *(["YMD"] if short else [])]
    readings = {each: _datetimes([_iso(match, each) for match in matches]) for each in orders}
    if order is not None:
        readings = {order: readings[order]}
    possible = {each: times for each, times in readings.items() if not times.isna().any()}
    if not possible:  # the order with the fewest invalid dates names the faulty rows
        best = max(readings, key=lambda each: -np.sum(np.asarray(readings[each].isna())))
        return readings[best], None

    # Prefer an order with sorted and then equally spaced dates, since others would be refused.
    def is_monotonic(times: pd.DatetimeIndex) -> bool:
        return times.is_monotonic_increasing or times.is_monotonic_decreasing

    for holds in (is_monotonic, _is_regular):
        if len(possible) > 1:
            kept = {each: times for each, times in possible.items() if holds(times)}
            possible = kept or possible
    # With points, the usual order is day.month.year.
    if "DMY" in possible and all(match["mark"] == "." for match in matches):
        possible = {"DMY": possible["DMY"]}
    distinct = {tuple(times.asi8) for times in possible.values()}
    if len(distinct) > 1:
        row = next(i for i in range(len(texts)) if len({t[i] for t in possible.values()}) > 1)
        shown = " or ".join(
            f"{_show(times[row])} ({', '.join(NAMES[letter] for letter in each)})"
            for each, times in possible.items()
        )
        formats = " or ".join(repr(_strptime(matches[row], each)) for each in possible)
        raise ValueError(
            f"{what} must hold dates of one meaning; {quote(texts[row])} is {shown}, and no row "
            f"says which. Convert it before: pd.to_datetime(..., format={formats})."
        )
    chosen, times = next(iter(possible.items()))
    return times, chosen if chosen != "YMD" and len(possible) == 1 else None  # type: ignore[return-value]


def _is_regular(times: pd.DatetimeIndex) -> bool:
    """Return True if the steps are equal, in time or in months at one day of the month."""
    months = 12 * times.year + times.month
    monthly = len(set(times.day)) == 1 and len(set(np.diff(months))) == 1
    return monthly or len(set(np.diff(times.asi8))) == 1


def _strptime(match: re.Match[str], order: str) -> str:
    """Return the strptime format of a date of three numbers."""
    years = "%Y" if len(match["year"]) == 4 else "%y"
    clock = "" if match["hour"] is None else " %H:%M:%S" if match["second"] else " %H:%M"
    marks = {"D": "%d", "M": "%m", "Y": years}
    return match["mark"].join(marks[letter] for letter in order) + clock


def _note(what: str, form: str, text: str, value: Any) -> str:
    """Return a sentence on dates of a form outside `STRICT`, else ""."""
    if form in STRICT:
        return ""
    return f"{quote(text)} of {what} is read as {_show(value)}."


def _show(time: object) -> str:
    return str(time).removesuffix(" 00:00:00")


def _in_zone(
    times: pd.DatetimeIndex,
    offsets: Sequence[str | None],
    what: str,
    strict: bool,
    zone: str | None,
) -> tuple[pd.DatetimeIndex, str]:
    """Convert times with offsets from UTC to a zone, and return a note if offsets differ.

    Local times of a zone with daylight saving have two offsets.
    """
    minutes = {None if text is None else _offset(text) for text in offsets}
    if len(minutes) == 1:
        return times if times.tz is None else times.tz_convert(zone or times.tz), ""
    if strict or None in minutes:
        came = "some have none" if None in minutes else "it has several"
        raise ValueError(
            f"{what} must hold timestamps of one offset from UTC; {came}. Convert it before: "
            "pd.to_datetime(..., utc=True).dt.tz_convert(zone)."
        )
    several = listed(sorted({*map(str, offsets)}), 3)
    shown = zone or _infer_zone(times, offsets)
    if shown is not None:
        note = f"are those of the zone {shown}, in which times are shown."
    else:
        note = "are those of no common zone: times are shown in UTC."
    note = f"The offsets from UTC of {what}, {several}, {note}"
    if shown is None:
        warn_user(note.removesuffix("."))
    return times.tz_convert(shown or "UTC"), note


def _infer_zone(times: pd.DatetimeIndex, offsets: Sequence[str | None]) -> str | None:
    """Return the first of `ZONES` with these offsets at these times, None without any."""
    local = pd.to_timedelta([_offset(text or "Z") for text in offsets], unit="min")
    utc = times.tz_convert("UTC").tz_localize(None)
    for zone in ZONES:
        if (times.tz_convert(zone).tz_localize(None) - utc == local).all():
            return zone
    return None


def _offset(text: str) -> int:
    """Return an offset from UTC in minutes."""
    digits = text[1:].replace(":", "").ljust(4, "0")
    if not digits.isdecimal():
        return 0
    return (60 * int(digits[:2]) + int(digits[2:])) * (-1 if text[0] == "-" else 1)
