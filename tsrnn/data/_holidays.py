"""Columns of public holidays and working days of a country, from the package holidays."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tsrnn.data._calendar import step_days
from tsrnn.data._faults import warn_user
from tsrnn.data._frequency import (
    NS_PER_DAY,
    Business,
    Days,
    Months,
    Tick,
    first_day,
    parse_freq,
    split_days,
    weekday,
)
from tsrnn.data._panel import Layout, Panel
from tsrnn.data._timestamps import period_freq, period_step, periods

OF_DAYS = ("holiday", "holiday_eve", "holiday_after")
OF_PERIODS = ("workdays",)
NAMED = "holiday: "  # prefix of the column of a single holiday
LONGEST_DAY = 1.5  # mean days of a step: working days are 1.4 apart, longer steps are periods
LISTS = "https://holidays.readthedocs.io lists them"


def load_holidays() -> Any:
    """Import the package holidays, which has the public holidays of countries."""
    try:
        import holidays
    except ImportError as error:
        raise ImportError(
            "public holidays are those of the package holidays, which is not installed. Run pip "
            "install 'tsrnn[holidays]', or give a column of holidays and name it in known_ahead"
        ) from error
    return holidays


@dataclass(frozen=True)
class Holidays:
    """Columns of public holidays and working days.

    Attributes
    ----------
    places : tuple of str
        Countries, with or without a subdivision: "DE", "US-CA". Columns are means over places.
    columns : tuple of str
        For days and shorter steps "holiday", 1 on public holidays; "holiday_eve" and
        "holiday_after", 1 on working days before and after one; and "holiday: " with a name, 1
        on that holiday. A holiday at a weekend only counts for its neighbouring days. For longer
        steps "workdays", the number of working days.
    version : str
        Version of the package holidays.

    Examples
    --------
    >>> from tsrnn.data import Holidays, read_panel
    >>> from tsrnn.datasets import load_elec_equip
    >>> panel = read_panel(load_elec_equip())
    >>> workdays = Holidays.of("FR", panel)
    >>> workdays.columns, workdays.values(panel.times[:3], panel.layout).ravel().tolist()
    (('workdays',), [22.0, 20.0, 23.0])
    """

    places: tuple[str, ...]
    columns: tuple[str, ...]
    version: str

    @classmethod
    def of(cls, holidays: Any, panel: Panel, by_name: bool = False) -> Holidays | None:
        """Return the columns of the argument `holidays` for a panel, None if it names no place.

        Parameters
        ----------
        holidays : str or sequence of str, optional
            Codes of countries, with or without a subdivision.
        panel : Panel
        by_name : bool
            Add a column for each holiday within the rows.

        Returns
        -------
        Holidays or None

        Raises
        ------
        ImportError
            If the package holidays is not installed.
        TypeError, ValueError
            If a place is unknown, or the timestamps are integers.
        """
        if holidays is None or (isinstance(holidays, Sequence) and not len(holidays)):
            return None
        if panel.layout.irregular:
            raise ValueError(
                "holidays need steps of one length; rows are irregular (freq='irregular'). Leave "
                "holidays out, or resample"
            )
        if panel.layout.time_kind == "integer":
            raise ValueError(
                "holidays need dates; the timestamps are integers. Give dates, such as "
                "pd.period_range(start, periods=len(df), freq=...) as the index, or leave holidays "
                "out"
            )
        places = (holidays,) if isinstance(holidays, str) else holidays
        if not isinstance(places, Sequence) or not all(isinstance(place, str) for place in places):
            raise TypeError(
                "holidays must be the code of a country, such as 'DE', with a subdivision, such as "
                f"'US-CA', or a list of these; got {holidays!r}"
            )
        if len({*places}) < len(places):
            raise ValueError(f"holidays must name each place once; got {holidays!r}")
        for place in places:
            check_place(place)
        version = load_holidays().__version__
        begin, end = days_of(panel.times, panel.layout)
        if step_days(panel.layout) > LONGEST_DAY:
            return cls(tuple(places), OF_PERIODS, version)
        names = names_between(places, int(begin.min()), int(end.max())) if by_name else []
        return cls(tuple(places), (*OF_DAYS, *names), version)

    @classmethod
    def already_in(cls, holidays: Any, panel: Panel) -> Holidays | None:
        """Return the columns that `of` has added to a panel, None without any.

        Parameters
        ----------
        holidays : str or sequence of str, optional
        panel : Panel

        Returns
        -------
        Holidays or None
        """
        if not holidays:
            return None
        names, long = panel.exog_names, step_days(panel.layout) > LONGEST_DAY
        # The data may themselves have a column "workdays" or "holiday" at the other steps.
        first = (OF_PERIODS if long else OF_DAYS)[0]
        if first not in names:
            return None
        places = (holidays,) if isinstance(holidays, str) else tuple(holidays)
        columns = names[names.index(first) :]  # they come after the columns of the frame
        return cls(places, tuple(map(str, columns)), load_holidays().__version__)

    @property
    def common(self) -> list[str]:
        """Columns that are not of a single holiday."""
        return [name for name in self.columns if not name.startswith(NAMED)]

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Holidays:
        """Rebuild the columns from `dataclasses.asdict`.

        Parameters
        ----------
        fields : dict

        Returns
        -------
        Holidays
        """
        return cls(tuple(fields["places"]), tuple(fields["columns"]), fields["version"])

    def values(self, times: np.ndarray, layout: Layout) -> np.ndarray:
        """Return the columns at timestamps, averaged over places.

        A warning names places without known holidays in some of the years.

        Parameters
        ----------
        times : ndarray of any shape
            Timestamps of the dtype of `Panel.times`; dates are taken on the wall clock.
        layout : Layout
            Layout of the data.

        Returns
        -------
        ndarray of float64, shape (..., columns)
        """
        begin, end = days_of(times, layout)
        if not times.size:
            return np.zeros((*times.shape, len(self.columns)))
        years = year_of(int(begin.min())), year_of(int(end.max()) - 1)
        total = np.zeros((*times.shape, len(self.columns)))
        for place in self.places:
            warn_of_unknown_years(place, *years)
            days = holiday_calendar(place, *years)
            for j, column in enumerate(self.columns):
                if column in OF_PERIODS:
                    total[..., j] += days.worked[end - days.first] - days.worked[begin - days.first]
                else:
                    total[..., j] += days.column(column)[begin - days.first]
        return total / len(self.places)


@dataclass(frozen=True, eq=False)
class HolidayCalendar:
    """Consecutive days at a place; `first` is the first one, in days since 1970.

    `weekend`, `holiday` and `work` are masks of shape (days,), `names` has such a mask of each
    holiday, and `worked`, shape (days + 1,), counts the working days before each day.
    """

    first: int
    weekend: np.ndarray
    holiday: np.ndarray
    work: np.ndarray
    worked: np.ndarray
    names: dict[str, np.ndarray]

    def column(self, name: str) -> np.ndarray:
        """Return the values of a column, shape (days,)."""
        if name == "holiday":
            return self.holiday & ~self.weekend
        if name == "holiday_eve":
            return self.work & np.append(self.holiday[1:], False)
        if name == "holiday_after":
            return self.work & np.append(False, self.holiday[:-1])
        days = self.names.get(name.removeprefix(NAMED))
        return np.zeros_like(self.holiday) if days is None else days & ~self.weekend


@lru_cache(maxsize=256)
def holiday_calendar(place: str, first_year: int, last_year: int) -> HolidayCalendar:
    """Return the calendar of a place, with a year more at both ends."""
    country, _, subdivision = place.partition("-")
    # The further years cover eves, weeks across the turn of the year, and shifted holidays.
    years = range(first_year - 1, last_year + 2)
    known = load_holidays().country_holidays(
        country, subdiv=subdivision or None, years=years, language="en_US"
    )
    begin, end = (np.datetime64(f"{year:04d}-01-01", "D") for year in (years[0], years[-1] + 1))
    first, n_days = int(begin.astype(np.int64)), int((end - begin).astype(np.int64))
    dates = [datetime.date(years[0], 1, 1) + datetime.timedelta(days) for days in range(n_days)]
    weekend = np.array([known.is_weekend(date) for date in dates])
    work = np.array([known.is_working_day(date) for date in dates])
    holiday = np.zeros(n_days, bool)
    names: dict[str, np.ndarray] = {}
    for date in known:
        day = (date - dates[0]).days
        if not 0 <= day < n_days:
            continue
        holiday[day] = True
        for name in known.get_list(date):
            # "(observed)" and "(estimated)" are the holiday itself.
            title = re.sub(r"( \([^()]*\))+$", "", name)
            names.setdefault(title, np.zeros(n_days, bool))[day] = True
    worked = np.append(0, work.cumsum())
    return HolidayCalendar(first, weekend, holiday, work, worked, names)


def names_between(places: Sequence[str], first: int, last: int) -> list[str]:
    """Return the columns of holidays on weekdays from `first` to `last`, days since 1970."""
    names = set()
    for place in places:
        days = holiday_calendar(place, year_of(first), year_of(last))
        within = slice(first - days.first, last - days.first)
        names |= {name for name in days.names if days.column(NAMED + name)[within].any()}
    return [NAMED + name for name in sorted(names)]


def days_of(times: np.ndarray, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Return the first day of each step, and the day after its last, in days since 1970.

    A month or quarter contains its timestamp, its first or last day. A week with a timestamp on a
    Monday begins there; with another weekday it ends there, as in pandas and databases.
    """
    if layout.time_kind == "period":
        freq = period_freq(layout.time_dtype)
        assert freq is not None
        ends = (
            periods(ordinals.ravel(), freq).to_timestamp().to_numpy().astype("datetime64[D]")
            for ordinals in (times, times + period_step(freq))
        )
        begin, end = (days.astype(np.int64).reshape(times.shape) for days in ends)
        return begin, np.maximum(end, begin + 1)
    day = split_days(times.astype("datetime64[ns]"), layout.tz)[0]
    grid = parse_freq(layout.freq)
    if isinstance(grid, Months):
        month = grid.number(day) + (0 if grid.rule.endswith("start") else 1 - grid.step)
        return first_day(month), first_day(month + grid.step)
    if isinstance(grid, Business):
        working = Business(grid.step, grid.alias, layout.weekmask)  # a day that is closed counts
        return day, working.day(working.number(day) + grid.step)
    assert isinstance(grid, Tick | Days)
    days = max(grid.step // NS_PER_DAY, 1) if isinstance(grid, Tick) else grid.step
    late = np.where((weekday(day) > 0) & (days % 7 == 0), days - 1, 0)
    return day - late, day - late + days


def year_of(day: int) -> int:
    """Return the year of a day, given in days since 1970."""
    return int(np.datetime64(day, "D").astype("datetime64[Y]").astype(np.int64)) + 1970


def check_place(place: str) -> None:
    """Refuse a place that the package holidays does not know, with close matches in the message."""
    library = load_holidays()
    known = library.list_supported_countries(include_aliases=True)
    country, dash, subdivision = place.partition("-")
    if country not in known:
        codes = {name: entry[1] for name, entry in library.registry.COUNTRIES.items()}
        title = place.lower().replace(" ", "_")
        near = [country.upper()] if country.upper() in known else []
        near += [codes[name] for name in difflib.get_close_matches(title, codes, n=1)]
        raise ValueError(
            "holidays must name a country by its ISO code, such as 'DE', with a subdivision, such "
            f"as 'US-CA'; got {place!r}. {did_you_mean(near)}{LISTS}"
        )
    aliases = getattr(library.country_holidays(country), "subdivisions_aliases", {})
    legal = [*map(str, known[country]), *aliases]
    if dash and subdivision not in legal:
        near = [f"{country}-{name}" for name in difflib.get_close_matches(subdivision, legal)]
        there = ", ".join(map(str, known[country])) or "none"
        raise ValueError(
            f"holidays must name a subdivision of {country} that is known, of {there}; got "
            f"{place!r}. {did_you_mean(near)}{country!r} alone has the holidays of the whole "
            "country"
        )


def did_you_mean(near: Sequence[str]) -> str:
    """Return a question that lists close matches, "" without any."""
    return f"Did you mean {' or '.join(map(repr, near))}? " if near else ""


@lru_cache(maxsize=256)
def known_years(place: str) -> tuple[int, int]:
    """Return the first and last year of known holidays at a place."""
    country, _, subdivision = place.partition("-")
    library = load_holidays().country_holidays(country, subdiv=subdivision or None)
    return library.start_year, library.end_year


def warn_of_unknown_years(place: str, first: int, last: int) -> None:
    """Warn if holidays of a place are unknown in some years from `first` to `last`."""
    begin, end = known_years(place)
    if first < begin or last > end:
        # The text has no years of the rows: a repeated text is shown once in a backtest.
        warn_user(
            f"the package holidays {load_holidays().__version__} knows those of {place} from "
            f"{begin} to {end}; days of other years count as days without any. Leave holidays out, "
            "give a column of holidays instead, or take a later version of the package"
        )
