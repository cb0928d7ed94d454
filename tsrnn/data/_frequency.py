"""Frequencies: pandas aliases and the regular grids of timestamps that they name."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

Freq: TypeAlias = str | int

NS_PER_DAY = 86_400_000_000_000
TICKS = {
    "h": 3_600_000_000_000,
    "min": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
LONGEST = 2**61  # bound of steps in integers or nanoseconds: the sum of two fits 64 bits
_MONDAY = 4  # 1970-01-05, the first Monday after the epoch, in days
_FARTHEST = 2.0**62  # bound of a horizon in integers: timestamp plus horizon fits 64 bits
_LAST_DAY = np.iinfo(np.int64).max // NS_PER_DAY - 1  # one day less, for the time of day

TRADING = "C"  # pandas' alias of custom business days
IRREGULAR = "irregular"  # a row is a step, whatever the time between rows
# Future irregular rows have no time: datetimes of the last 2**41 ns (37 minutes) of 64 bits count
# steps after the last row instead. Timestamps of data end earlier, on `_LAST_DAY`.
_STEPS, _MOST_STEPS = np.iinfo(np.int64).max - 2**41, 2**39
MONDAY_TO_FRIDAY = "1111100"  # weekmask of numpy, Monday first
_CALENDAR_DAYS = -106_650, 106_650  # 1678-01-01 to 2261-12-30: days of nanoseconds in 64 bits

WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_RULES = {"S": "start", "E": "end", "BS": "business start", "BE": "business end"}
_MODULI = {"M": 1, "Q": 3, "Y": 12}
_OLD = {
    "M": "'ME' (month end) or 'MS' (month start)",
    "Q": "'QE' (quarter end) or 'QS' (quarter start)",
    "A": "'YE' (year end) or 'YS' (year start)",
    "Y": "'YE' (year end) or 'YS' (year start)",
    "BM": "'BME'",
    "H": "'h'",
    "T": "'min'",
    "S": "'s'",
    "L": "'ms'",
    "U": "'us'",
    "N": "'ns'",
    "d": "'D'",
}
_ALIAS = re.compile(r"(?P<n>\d{0,9})(?P<base>[A-Za-z]+)(?:-(?P<anchor>[A-Z0-9]{3,4}))?")
_EXCHANGE = re.compile(r"[A-Z0-9]{4}")  # market identifier codes of ISO 10383
_MONTHLY = re.compile(r"(?P<business>B?)(?P<unit>[MQY])(?P<side>[SE])")


def parse_freq(freq: object) -> Grid:
    """Return the grid that a frequency names: an alias, an offset, or the step of integers.

    Aliases: D, W-SUN, B, C (trading days), C-XNYS (sessions of an exchange), h, min, s, ms, us, ns,
    MS, ME, QS-JAN, QE-DEC, YS-JAN, YE-DEC and the business variants BMS, BME, BQS-JAN, ..., each
    but the trading days with a multiple in front. Anchors that mean the same grid (QS-JAN, QS-APR)
    get the same name (QS-JAN). A `CustomBusinessDay` of pandas keeps its holidays and weekmask.
    """
    if isinstance(freq, pd.offsets.CustomBusinessDay):
        return _custom_days(freq)
    if isinstance(freq, str) and freq == IRREGULAR:
        return Irregular(1, IRREGULAR)
    if isinstance(freq, int | np.integer) and not isinstance(freq, bool):
        if not 1 <= freq <= LONGEST:
            raise ValueError(
                "freq of an integer index must be a step of at least 1 and at most 2**61; got "
                f"{freq}. Give the difference of neighbouring timestamps, sorted in rising order."
            )
        return Count(int(freq), int(freq))
    text = freq if isinstance(freq, str) else getattr(freq, "freqstr", None)
    grid = _parsed(text) if isinstance(text, str) else None
    if grid is None:
        match = _ALIAS.fullmatch(text) if isinstance(text, str) else None
        base = match["base"] if match else ""
        hint = f" Instead of {base!r} use {_OLD[base]}." if base in _OLD else ""
        if isinstance(text, str) and _EXCHANGE.fullmatch(text):
            hint = f" Sessions of the exchange {text} are freq='{TRADING}-{text}'."
        raise ValueError(
            f"freq={freq!r} is not understood.{hint} Give a pandas alias such as 'MS', 'ME', 'QS', "
            "'YS', 'W-SUN', 'D', 'B', 'h' or '15min', the integer step of an integer index, or "
            "'irregular' for rows with any time between them."
        )
    return grid


@lru_cache(maxsize=256)
def _parsed(alias: str) -> Grid | None:
    """Return the grid of an alias, None if unknown; cached for the rows of a stream."""
    match = _ALIAS.fullmatch(alias)
    n = int(match["n"] or 1) if match else 0
    return _named_grid(n, match["base"], match["anchor"]) if match and n > 0 else None


def _named_grid(n: int, base: str, anchor: str | None) -> Grid | None:
    if base == "W" and (anchor is None or anchor in WEEKDAYS):
        return week_grid(n, WEEKDAYS.index(anchor or "SUN"))
    if monthly := _MONTHLY.fullmatch(base):
        modulus, rule = _MODULI[monthly["unit"]], _RULES[monthly["business"] + monthly["side"]]
        if anchor is not None and (modulus == 1 or anchor not in MONTHS):
            return None
        month = MONTHS.index(anchor) if anchor else (0 if monthly["side"] == "S" else 11)
        alias = str(month_grid(modulus, rule, month).alias)
        return Months(n * modulus, _multiple(n, alias), rule, modulus, month % modulus)
    if base == TRADING and n == 1 and (anchor is None or _EXCHANGE.fullmatch(anchor)):
        return TradingDays(1, TRADING if anchor is None else f"{TRADING}-{anchor}")
    if anchor is not None:
        return None
    if base == "D":
        return day_grid(n)
    if base == "B":
        return Business(n, _multiple(n, "B"))
    return tick_grid(n * TICKS[base]) if base in TICKS and n * TICKS[base] <= LONGEST else None


def _custom_days(offset: pd.offsets.CustomBusinessDay) -> TradingDays:
    """Return the trading days of a pandas offset, whose holidays have no end."""
    shift = offset.offset  # type: ignore[attr-defined]
    if offset.n != 1 or shift:
        raise ValueError(
            f"freq must be a CustomBusinessDay of n=1 without an offset; got n={offset.n} and "
            f"offset={shift}. Make one with weekmask and holidays alone"
        )
    weekmask = "".join("01"[int(is_open)] for is_open in offset.calendar.weekmask)
    holidays = offset.calendar.holidays.astype(np.int64)
    closed = holidays[(holidays >= _CALENDAR_DAYS[0]) & (holidays <= _CALENDAR_DAYS[1])]
    return TradingDays(1, TRADING, weekmask, tuple(np.unique(closed).tolist()), _CALENDAR_DAYS)


def is_trading(freq: Freq) -> bool:
    """Return True for an alias of trading days, with or without an exchange."""
    return isinstance(freq, str) and freq.partition("-")[0] == TRADING


def tick_grid(nanoseconds: int) -> Grid:
    """Return the grid of a fixed step, named by the largest unit from hours down."""
    for unit, size in TICKS.items():
        if nanoseconds % size == 0:
            return Tick(nanoseconds, _multiple(nanoseconds // size, unit))
    raise AssertionError("every integer is a multiple of a nanosecond")


def day_grid(n: int) -> Grid:
    """Return the grid of every n-th day."""
    return Days(n, _multiple(n, "D"))


def week_grid(n: int, weekday: int) -> Grid:
    """Return the grid of every n-th week on a weekday, 0 for Monday."""
    return Days(7 * n, _multiple(n, f"W-{WEEKDAYS[weekday]}"), weekday)


def month_grid(step: int, rule: str, residue: int) -> Grid:
    """Return the grid of a day in every `step`-th month, in the largest unit that divides it."""
    unit = next(unit for unit in ("Y", "Q", "M") if step % _MODULI[unit] == 0)
    modulus = _MODULI[unit]
    residue %= modulus
    code = next(code for code, name in _RULES.items() if name == rule)
    base = f"{code[:-1]}{unit}{code[-1]}"
    if modulus > 1:
        base += f"-{MONTHS[residue if rule.endswith('start') else residue + 12 - modulus]}"
    return Months(step, _multiple(step // modulus, base), rule, modulus, residue)


def _multiple(n: int, base: str) -> str:
    return base if n == 1 else f"{n}{base}"


class Grid(ABC):
    """Regular grid of timestamps with the name `alias`.

    Each timestamp has an integer; regular data rise by `step`. A forecast adds steps to the
    integer and converts it back to a timestamp. Methods are vectorised.
    """

    alias: Freq
    step: int

    @abstractmethod
    def numbers(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the integer of each timestamp, int64; neighbours differ by `step`."""

    @abstractmethod
    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the timestamps `steps` steps later; `times` and `steps` broadcast."""

    def phases(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the part of each timestamp that must be constant in a series, int64."""
        return np.zeros(times.shape, np.int64)

    def contains(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the mask of timestamps that can lie on the grid."""
        return np.ones(times.shape, bool)


@dataclass(frozen=True)
class Count(Grid):
    """Grid of integers and period ordinals: neighbours differ by `step`."""

    step: int
    alias: Freq

    def numbers(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the timestamps themselves as int64."""
        return times.astype(np.int64, copy=False)

    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return times + steps * step."""
        # the product is bounded in floats, where it cannot wrap around
        if np.any(np.abs(steps * float(self.step)) > _FARTHEST):
            raise ValueError(
                f"timestamps must stay within 64 bits; {np.abs(steps).max()} steps of {self.step} "
                "go beyond. Take a smaller h, or divide the timestamps by their step."
            )
        return self.numbers(times, tz) + steps * self.step


@dataclass(frozen=True)
class Tick(Count):
    """Grid of datetimes a fixed number of nanoseconds apart, in UTC."""

    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return times + steps * step nanoseconds."""
        last_day = self.numbers(times, tz) / NS_PER_DAY + steps * (self.step / NS_PER_DAY)
        _check_range(last_day)
        return super().advance(times, steps, tz).astype("datetime64[ns]")


class _Calendar(Grid):
    """Grid of days on the wall clock; the time of day is constant within a series.

    A subclass maps days since 1970 to integers and back, and defines the days on the grid.
    """

    @abstractmethod
    def number(self, days: np.ndarray) -> np.ndarray:
        """Return the number of each day."""

    @abstractmethod
    def day(self, numbers: np.ndarray) -> np.ndarray:
        """Return the day of each number, the inverse of `number`."""

    @abstractmethod
    def holds(self, days: np.ndarray) -> np.ndarray:
        """Return the mask of days on the grid."""

    def numbers(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the number of the day on the wall clock."""
        return self.number(split_days(times, tz)[0])

    def phases(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the time of day on the wall clock in nanoseconds."""
        return split_days(times, tz)[1]

    def contains(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the mask of timestamps whose day on the wall clock lies on the grid."""
        return self.holds(split_days(times, tz)[0])

    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the timestamps at the same time of day, `steps` steps later."""
        days, phases = split_days(times, tz)
        days, phases = np.broadcast_arrays(self.day(self.number(days) + steps * self.step), phases)
        _check_range(days)
        return _to_utc((days * NS_PER_DAY + phases).astype("datetime64[ns]"), tz)


@dataclass(frozen=True)
class Days(_Calendar):
    """Grid of every `step`-th day, or every `step // 7`-th week on `weekday` (0 is Monday)."""

    step: int
    alias: Freq
    weekday: int | None = None

    def number(self, days: np.ndarray) -> np.ndarray:
        return days

    def day(self, numbers: np.ndarray) -> np.ndarray:
        return numbers

    def holds(self, days: np.ndarray) -> np.ndarray:
        if self.weekday is None:
            return np.ones(days.shape, bool)
        return weekday(days) == self.weekday


@dataclass(frozen=True)
class Business(_Calendar):
    """Grid of every `step`-th day in the weekmask, by default Monday to Friday; no holidays."""

    step: int
    alias: Freq
    weekmask: str = MONDAY_TO_FRIDAY

    def number(self, days: np.ndarray) -> np.ndarray:
        """Return the number of each day; a day off has the number of the next working day."""
        weeks, rest = np.divmod(days - _MONDAY, 7)
        earlier = np.cumsum(self._working) - self._working  # working days earlier in the week
        return len(self.weekdays) * weeks + earlier[rest]

    def day(self, numbers: np.ndarray) -> np.ndarray:
        weeks, rest = np.divmod(numbers, len(self.weekdays))
        return 7 * weeks + self.weekdays[rest] + _MONDAY

    def holds(self, days: np.ndarray) -> np.ndarray:
        return self._working[weekday(days)] > 0

    @property
    def weekdays(self) -> np.ndarray:
        """Working days of a week, 0 for Monday."""
        return np.flatnonzero(self._working)

    @property
    def _working(self) -> np.ndarray:
        return np.array([int(digit) for digit in self.weekmask])


@dataclass(frozen=True)
class TradingDays(Business):
    """Grid of the days in the weekmask except `closed`, increasing days since 1970.

    `span` holds the first and last day of a calendar of closed days. It is None if days without
    rows are the closed days; closed days of the future are then unknown.
    """

    closed: tuple[int, ...] = ()
    span: tuple[int, int] | None = None

    def number(self, days: np.ndarray) -> np.ndarray:
        """Return the number of each trading day; a closed day has the number of the next one."""
        numbers = super().number(days)
        return numbers - np.searchsorted(self._closed_numbers, numbers)

    def day(self, numbers: np.ndarray) -> np.ndarray:
        # Trading days before the i-th closed day: its number on the weekmask less i.
        closed = self._closed_numbers
        before = np.searchsorted(closed - np.arange(len(closed)), numbers, side="right")
        days = super().day(numbers + before)
        if self.span is not None and np.any(days > self.span[1]):
            raise ValueError(
                f"sessions of freq={self.alias!r} are known until "
                f"{np.datetime64(self.span[1], 'D')}; the horizon goes beyond. Take a smaller h, "
                "or freq='C', whose forecasts are dated as if no later day were closed"
            )
        return days

    def holds(self, days: np.ndarray) -> np.ndarray:
        return super().holds(days) & ~np.isin(days, np.array(self.closed, np.int64))

    @property
    def _closed_numbers(self) -> np.ndarray:
        return super().number(np.array(self.closed, np.int64))

    @cached_property
    def offset(self) -> pd.offsets.CustomBusinessDay:
        """Pandas offset with the same days."""
        closed: Any = np.array(self.closed, "datetime64[D]")
        return pd.offsets.CustomBusinessDay(weekmask=self.weekmask, holidays=closed)

    @property
    def exchange(self) -> str:
        """Code of the exchange, "" for other trading days."""
        return str(self.alias).partition("-")[2]

    @classmethod
    def of(cls, days: np.ndarray, weekmask: str = MONDAY_TO_FRIDAY) -> TradingDays:
        """Return the grid on which `days` (n,), all in the weekmask, are the open days."""
        days = np.unique(days)
        business = Business(1, TRADING, weekmask)
        numbers = business.number(days[[0, -1]])
        every = business.day(np.arange(numbers[0], numbers[1] + 1))
        return cls(1, TRADING, weekmask, tuple(np.setdiff1d(every, days).tolist()))


@dataclass(frozen=True)
class Months(_Calendar):
    """Grid of the first or last (business) day, by `rule`, of every `step`-th month.

    Months m (January = 0) on the grid have m % modulus == residue.
    """

    RULES: ClassVar[tuple[str, ...]] = ("start", "end", "business start", "business end")

    step: int
    alias: Freq
    rule: str
    modulus: int = 1
    residue: int = 0

    def number(self, days: np.ndarray) -> np.ndarray:
        return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)

    def day(self, numbers: np.ndarray) -> np.ndarray:
        if self.rule.endswith("start"):
            days = first_day(numbers)
            shift = np.array([0, 0, 0, 0, 0, 2, 1])  # Saturday and Sunday to Monday
        else:
            days = first_day(numbers + 1) - 1
            shift = np.array([0, 0, 0, 0, 0, -1, -2])  # Saturday and Sunday to Friday
        return days + shift[weekday(days)] if self.rule.startswith("business") else days

    def holds(self, days: np.ndarray) -> np.ndarray:
        months = self.number(days)
        return (days == self.day(months)) & (months % self.modulus == self.residue)


@dataclass(frozen=True)
class Irregular(Grid):
    """Grid on which a row is a step, whatever the time since the row before.

    `row_times` are the increasing timestamps of all rows in nanoseconds. Future rows have none.
    """

    step: int
    alias: Freq
    row_times: tuple[int, ...] = ()

    def numbers(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the row of each timestamp."""
        stamps, known = times.astype(np.int64), self._times
        places = np.minimum(np.searchsorted(known, stamps), len(known) - 1)
        unknown = stamps[known[places] != stamps]
        if len(unknown):
            raise ValueError(
                "irregular rows (freq='irregular') are counted among those known; unknown is the "
                f"row at {pd.Timestamp(unknown[0])}. Take later rows in by update, or fit to them"
            )
        return places

    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the timestamps of later rows, `steps_ahead` after the last row."""
        places = self.numbers(times, tz) + steps
        last = len(self.row_times) - 1
        known = self._times[np.clip(places, 0, last)]
        return np.where(places > last, steps_ahead(places - last).astype(np.int64), known).astype(
            "datetime64[ns]"
        )

    def contains(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the mask of timestamps that have a row."""
        return np.isin(times.astype(np.int64), self._times)

    @cached_property
    def _times(self) -> np.ndarray:
        return np.array(self.row_times, np.int64)


def steps_ahead(steps: np.ndarray) -> np.ndarray:
    """Return datetimes that stand for steps after the last row, for rows without future times.

    Steps are zero or negative up to the last row. The datetimes lie beyond all data; `write_stamps`
    converts them to steps.
    """
    return (steps + _STEPS).astype("datetime64[ns]")


def steps_of(times: np.ndarray) -> np.ndarray | None:
    """Return the steps of `steps_ahead`; None for other datetimes."""
    stamps = times.astype(np.int64)  # negative before 1970: subtract only after the comparison
    return stamps - _STEPS if len(stamps) and stamps.min() > _STEPS - _MOST_STEPS else None


class Stretch:
    """Cache of consecutive timestamps of one frequency.

    A stream forecasts after every row, at nearly the same timestamps. The calendar is evaluated,
    and an index checked by pandas, once per stretch of `ROWS`. Only for naive timestamps: in a
    zone, a time that a change of clocks leaves out would shift all later ones.
    """

    ROWS: ClassVar[int] = 256

    def __init__(self, alias: str) -> None:
        self._alias, self._grid = alias, parse_freq(alias)
        self._times = np.empty(0, "datetime64[ns]")
        self._index = self._times, pd.DatetimeIndex(self._times)  # one assignment: thread-safe

    def after(self, last: np.ndarray, h: int) -> np.ndarray:
        """Return the h timestamps after `last` (1,)."""
        times = self._times
        start = int(times.searchsorted(last)[0]) + 1
        if start + h > len(times) or times[start - 1] != last[0]:
            steps, start = np.arange(1, max(h, self.ROWS) + 2), 1
            try:  # a step beyond the stretch, since pandas may compute it to check an index
                ahead = self._grid.advance(last, steps, None)[:-1]
            except ValueError:  # close to the end of the calendar
                return self._grid.advance(last, steps[:h], None)
            self._times = times = np.concatenate([last, ahead])
        return times[start : start + h].copy()

    def index(self, rows: np.ndarray) -> pd.DatetimeIndex | None:
        """Return timestamps as an index with the frequency; None if they are not from `after`."""
        times, index = self._index
        start = int(times.searchsorted(rows[0]))
        if not np.array_equal(times[start : start + len(rows)], rows):
            times = self._times[1:].copy()
            start = int(times.searchsorted(rows[0]))
            if not np.array_equal(times[start : start + len(rows)], rows):
                return None
            times.flags.writeable = False  # indexes share this memory
            index = pd.DatetimeIndex(times, freq=self._alias, copy=False)
            self._index = times, index
        return index[start : start + len(rows)]


@lru_cache(maxsize=64)
def stretch(alias: str) -> Stretch:
    """Return the cached stretch of a frequency."""
    return Stretch(alias)


def weekday(days: np.ndarray) -> np.ndarray:
    """Return the weekday of days since 1970, 0 for Monday."""
    return (days - _MONDAY) % 7


def split_days(times: np.ndarray, tz: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the days since 1970 and the nanoseconds of the day, on the wall clock."""
    days, phases = np.divmod(to_local(times, tz).astype(np.int64), NS_PER_DAY)
    return days, phases


def first_day(months: np.ndarray) -> np.ndarray:
    """Return the first day of months since January 1970."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def to_local(times: np.ndarray, tz: str | None) -> np.ndarray:
    """Convert UTC timestamps (datetime64[ns]) to the wall clock of a zone."""
    if tz is None:
        return times
    index = pd.DatetimeIndex(times.ravel()).tz_localize("UTC").tz_convert(tz)
    return index.tz_localize(None).to_numpy().reshape(times.shape)


def _to_utc(times: np.ndarray, tz: str | None) -> np.ndarray:
    """Convert the wall clock of a zone to UTC.

    A time skipped when clocks go forward becomes the next that exists; a time repeated when they
    go back is the first.
    """
    if tz is None:
        return times
    index = pd.DatetimeIndex(times.ravel()).tz_localize(
        tz, ambiguous=np.ones(times.size, bool), nonexistent="shift_forward"
    )
    return index.tz_convert("UTC").tz_localize(None).to_numpy().reshape(times.shape)


def _check_range(days: np.ndarray) -> None:
    if np.any(np.abs(days) > _LAST_DAY):
        raise ValueError(
            "timestamps must lie between the years 1678 and 2261 (nanoseconds in 64 bits); the "
            "horizon goes beyond. Take a smaller h, or a PeriodIndex or an integer index."
        )
