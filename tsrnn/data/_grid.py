"""Regular time grids: where a timestamp stands, and which one comes k steps later.

Each grid numbers its timestamps by integers, so that regular data are those whose numbers rise by
`step`, and a future timestamp is a number turned back into a time. All arithmetic is vectorised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from tsrnn.data._layout import Freq

__all__ = ["Business", "Count", "Days", "Grid", "Months", "Tick", "to_local"]

NS_PER_DAY = 86_400_000_000_000
_MONDAY = 4  # 1970-01-05, the first Monday after the epoch, in days
_FARTHEST = 2.0**62  # from an integer timestamp, so that the sum fits 64 bits
_LAST_DAY = np.iinfo(np.int64).max // NS_PER_DAY - 1


class Grid(ABC):
    """A regular grid of timestamps.

    Attributes
    ----------
    alias : str or int
        Name of the frequency.
    step : int
        Difference of the numbers of neighbouring timestamps.
    """

    alias: Freq
    step: int

    @abstractmethod
    def numbers(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the int64 number of each timestamp, neighbours `step` apart."""

    @abstractmethod
    def phases(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return what must be the same at all timestamps of a series, int64."""

    @abstractmethod
    def contains(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return where a timestamp can lie on the grid at all, bool."""

    @abstractmethod
    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the timestamps `steps` steps later; the two arguments broadcast."""


@dataclass(frozen=True)
class Count(Grid):
    """Integers and period ordinals: neighbours differ by `step`."""

    step: int
    alias: Freq

    def numbers(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the timestamps themselves as int64."""
        return times.astype(np.int64, copy=False)

    def phases(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return zeros: nothing but the number matters."""
        return np.zeros(times.shape, np.int64)

    def contains(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return True throughout."""
        return np.ones(times.shape, bool)

    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return times + steps * step."""
        if np.any(np.abs(steps * float(self.step)) > _FARTHEST):
            raise ValueError(
                f"timestamps must stay within 64 bits; {np.abs(steps).max()} steps of {self.step} "
                "go beyond. Take a smaller h, or divide the timestamps by their step."
            )
        return self.numbers(times, tz) + steps * self.step


@dataclass(frozen=True)
class Tick(Count):
    """Datetimes a fixed number of nanoseconds apart, counted in UTC."""

    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return times + steps * step nanoseconds."""
        last_day = self.numbers(times, tz) / NS_PER_DAY + steps * (self.step / NS_PER_DAY)
        _check_range(last_day)
        return super().advance(times, steps, tz).astype("datetime64[ns]")


class _Calendar(Grid):
    """A grid of days on the wall clock; the time of day is constant within a series."""

    @abstractmethod
    def number(self, days: np.ndarray) -> np.ndarray:
        """Return the number of each day (days since 1970)."""

    @abstractmethod
    def day(self, numbers: np.ndarray) -> np.ndarray:
        """Return the day of each number, the inverse of `number`."""

    @abstractmethod
    def holds(self, days: np.ndarray) -> np.ndarray:
        """Return where a day lies on the grid."""

    def numbers(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the number of the day on the wall clock."""
        return self.number(_split(times, tz)[0])

    def phases(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the time of day on the wall clock in nanoseconds."""
        return _split(times, tz)[1]

    def contains(self, times: np.ndarray, tz: str | None) -> np.ndarray:
        """Return where the day on the wall clock lies on the grid."""
        return self.holds(_split(times, tz)[0])

    def advance(self, times: np.ndarray, steps: np.ndarray, tz: str | None) -> np.ndarray:
        """Return the timestamps at the same time of day, `steps` steps later."""
        days, phases = _split(times, tz)
        days, phases = np.broadcast_arrays(self.day(self.number(days) + steps * self.step), phases)
        _check_range(days)
        return _to_utc((days * NS_PER_DAY + phases).astype("datetime64[ns]"), tz)


@dataclass(frozen=True)
class Days(_Calendar):
    """Every `step`-th day, or every `step // 7`-th week on `weekday` (0 is Monday)."""

    step: int
    alias: Freq
    weekday: int | None = None

    def number(self, days: np.ndarray) -> np.ndarray:
        """Return the days since 1970."""
        return days

    def day(self, numbers: np.ndarray) -> np.ndarray:
        """Return the days since 1970."""
        return numbers

    def holds(self, days: np.ndarray) -> np.ndarray:
        """Return where the weekday is the one of the grid."""
        if self.weekday is None:
            return np.ones(days.shape, bool)
        return weekday(days) == self.weekday


@dataclass(frozen=True)
class Business(_Calendar):
    """Every `step`-th day from Monday to Friday, holidays not known."""

    step: int
    alias: Freq

    def number(self, days: np.ndarray) -> np.ndarray:
        """Return 5 * week + weekday."""
        weeks, rest = np.divmod(days - _MONDAY, 7)
        return 5 * weeks + np.minimum(rest, 5)

    def day(self, numbers: np.ndarray) -> np.ndarray:
        """Return the day of a business day's number."""
        weeks, rest = np.divmod(numbers, 5)
        return 7 * weeks + rest + _MONDAY

    def holds(self, days: np.ndarray) -> np.ndarray:
        """Return where the day is no Saturday or Sunday."""
        return weekday(days) < 5


@dataclass(frozen=True)
class Months(_Calendar):
    """The first or last (business) day of every `step`-th month.

    Parameters
    ----------
    step : int
        Months between neighbours.
    alias : str
        Name of the frequency.
    rule : {"start", "end", "business start", "business end"}
        Which day of the month.
    modulus, residue : int
        Months m (January = 0) with m % modulus == residue are on the grid.
    """

    RULES: ClassVar[tuple[str, ...]] = ("start", "end", "business start", "business end")

    step: int
    alias: Freq
    rule: str
    modulus: int = 1
    residue: int = 0

    def number(self, days: np.ndarray) -> np.ndarray:
        """Return the months since January 1970."""
        return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)

    def day(self, numbers: np.ndarray) -> np.ndarray:
        """Return the day of the month that the rule names."""
        if self.rule.endswith("start"):
            days = _first_day(numbers)
            shift = np.array([0, 0, 0, 0, 0, 2, 1])
        else:
            days = _first_day(numbers + 1) - 1
            shift = np.array([0, 0, 0, 0, 0, -1, -2])
        return days + shift[weekday(days)] if self.rule.startswith("business") else days

    def holds(self, days: np.ndarray) -> np.ndarray:
        """Return where the day is the one that the rule names, in a month of the grid."""
        months = self.number(days)
        return (days == self.day(months)) & (months % self.modulus == self.residue)


def weekday(days: np.ndarray) -> np.ndarray:
    """Return the weekday of days since 1970, 0 for Monday."""
    return (days - _MONDAY) % 7


def to_local(times: np.ndarray, tz: str | None) -> np.ndarray:
    """Turn UTC timestamps (datetime64[ns]) into the wall clock of a zone."""
    if tz is None:
        return times
    index = pd.DatetimeIndex(times.ravel()).tz_localize("UTC").tz_convert(tz)
    return index.tz_localize(None).to_numpy().reshape(times.shape)


def _to_utc(times: np.ndarray, tz: str | None) -> np.ndarray:
    """Turn the wall clock of a zone into UTC.

    Where clocks are set forward, a time left out becomes the next one that exists; where they
    are set back, a time that comes twice is the first.
    """
    if tz is None:
        return times
    index = pd.DatetimeIndex(times.ravel()).tz_localize(
        tz, ambiguous=np.ones(times.size, bool), nonexistent="shift_forward"
    )
    return index.tz_convert("UTC").tz_localize(None).to_numpy().reshape(times.shape)


def _split(times: np.ndarray, tz: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Days since 1970 and nanoseconds of the day, on the wall clock."""
    days, phases = np.divmod(to_local(times, tz).astype(np.int64), NS_PER_DAY)
    return days, phases


def _first_day(months: np.ndarray) -> np.ndarray:
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _check_range(days: np.ndarray) -> None:
    if np.any(np.abs(days) > _LAST_DAY):
        raise ValueError(
            "timestamps must lie between the years 1678 and 2261 (nanoseconds in 64 bits); the "
            "horizon goes beyond. Take a smaller h, or a PeriodIndex or an integer index."
        )
