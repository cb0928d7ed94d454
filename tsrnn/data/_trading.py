"""Trading days, sessions of an exchange and irregular rows: steps that are rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data._axis import Axis
from tsrnn.data._frequency import (
    IRREGULAR,
    MONDAY_TO_FRIDAY,
    WEEKDAYS,
    Business,
    Days,
    Grid,
    Irregular,
    TradingDays,
    split_days,
    weekday,
)
from tsrnn.data._panel import Layout, Panel

# Largest share of closed days in the weekmask, and largest number of consecutive closed days.
# Chinese exchanges close on 7 percent of these days, and for up to 8 in succession.
MOST_CLOSED, LONGEST_CLOSED = 0.08, 10
# Weeks without a row on a weekday that make it a day off: four rows missing in a month, all on one
# weekday, are no accident.
WEEKS_OFF = 4
LEAST_COMMON = 0.75  # least share of the timestamps of irregular rows that a series must have
YEARS_AHEAD = 10  # years of sessions stored with a model, which then needs no package


def load_exchange_calendars() -> Any:
    """Import exchange_calendars, which has the sessions of exchanges."""
    try:
        import exchange_calendars
    except ImportError as error:
        raise ImportError(
            "sessions of exchanges are those of the package exchange_calendars, which is not "
            "installed. Run pip install 'tsrnn[calendars]', or give the days as a "
            "pandas.offsets.CustomBusinessDay"
        ) from error
    return exchange_calendars


def as_trading_days(axis: Axis, grid: Grid, recognised: bool, fixed: bool = False) -> Grid:
    """Return the grid with the closed days or row times of the axis; other grids unchanged.

    With `recognised`, a daily grid with few gaps, such as holidays, becomes one of trading days.
    `fixed` keeps the weekmask and the calendar of data fitted to.
    """
    if isinstance(grid, Irregular):
        return _irregular_rows(axis)
    if isinstance(grid, TradingDays):
        if grid.exchange and grid.span is None:
            grid = exchange_days(grid.exchange, axis)
        if grid.span is not None:
            _check_sessions(axis, grid)
            return grid
        return _with_rows(axis, grid, fixed)
    by_day = isinstance(grid, Business | Days) and grid.step == 1
    return (observed_days(axis) or grid) if recognised and by_day else grid


def observed_days(axis: Axis) -> TradingDays | None:
    """Return the trading days of rows with few gaps; None for other rows."""
    if axis.times.dtype.kind != "M":
        return None
    days, phases = split_days(axis.distinct[0], axis.tz)
    if not axis.rises(phases, 0):
        return None
    days = np.unique(days)
    weekmask = _weekmask(days, WEEKS_OFF)
    if weekmask is None:
        return None
    trading = TradingDays.of(days, weekmask)
    regular = weekmask == MONDAY_TO_FRIDAY and not trading.closed  # plain freq="B"
    return trading if not regular and _few_closed(trading, len(days)) else None


def _weekmask(days: np.ndarray, weeks_off: int) -> str | None:
    """Return the weekmask of rows on increasing days; None if it has all days or is uncertain.

    Rows within Monday to Friday have that mask, unless a weekday is missing `WEEKS_OFF` times.
    """
    working = np.bincount(weekday(days), minlength=7) > 0
    passed = np.bincount(weekday(np.arange(days[0], days[-1] + 1)), minlength=7)
    at_weekends = bool(working[5:].any())
    sure = (passed[~working] >= (weeks_off if at_weekends else WEEKS_OFF)).all()
    if sure and 1 < working.sum() < 7:
        weekmask = "".join("01"[int(works)] for works in working)
        if at_weekends or _few_closed(TradingDays.of(days, weekmask), len(days)):
            return weekmask
    return None if at_weekends else MONDAY_TO_FRIDAY


def _few_closed(trading: TradingDays, n_days: int) -> bool:
    """Return True if closed days, in number and in succession, are as few as on exchanges."""
    closed = np.array(trading.closed, np.int64)
    if not len(closed):
        return True
    numbers = Business.number(trading, closed)
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) > 1)
    longest = np.diff(np.append(starts, len(numbers))).max()
    return bool(len(closed) <= MOST_CLOSED * (len(closed) + n_days) and longest <= LONGEST_CLOSED)


def _with_rows(axis: Axis, grid: TradingDays, fixed: bool) -> TradingDays:
    """Return trading days (freq="C") with days without rows as closed days."""
    days = np.unique(split_days(axis.distinct[0], axis.tz)[0])
    weekmask = grid.weekmask
    if not fixed:  # freq="C" is given: one week without a row makes a weekday a day off
        mask = _weekmask(days, 1)
        if mask is not None and _few_closed(TradingDays.of(days, mask), len(days)):
            weekmask = mask
    working = Business(1, grid.alias, weekmask)
    off = ~working.holds(split_days(axis.times, axis.tz)[0])
    if off.any():
        raise ValueError(
            f"trading days (freq='C') lie {in_words(weekmask)}; not so do "
            f"{axis.describe(np.flatnonzero(off))}. Leave these rows out, give other weekdays by "
            "freq=pd.offsets.CustomBusinessDay(weekmask=...), or number the rows by an integer "
            "index"
        )
    return TradingDays.of(days, weekmask)


def _irregular_rows(axis: Axis) -> Irregular:
    """Return the grid of irregular rows; refuse series that share too few timestamps."""
    times = np.unique(axis.times)
    places = np.searchsorted(times, axis.times)
    firsts, lasts = axis.indptr[:-1], axis.indptr[1:] - 1
    span = places[lasts] - places[firsts] + 1
    apart = np.flatnonzero(axis.lengths < LEAST_COMMON * span)
    if len(apart):
        i = apart[0]
        raise ValueError(
            f"{axis.where(i)}irregular rows (freq='irregular') of a panel must be at common times; "
            f"it has {axis.lengths[i]} rows at the {span[i]} times of all series between its first "
            "and its last. Fit one model each, or number the rows of each series by an integer "
            "column"
        )
    return Irregular(1, IRREGULAR, tuple(times.astype(np.int64).tolist()))


def _check_sessions(axis: Axis, grid: TradingDays) -> None:
    """Refuse rows on closed days or outside the calendar."""
    assert grid.span is not None
    days = split_days(axis.times, axis.tz)[0]
    name = f"sessions of freq={grid.alias!r}"
    unknown = (days < grid.span[0]) | (days > grid.span[1])
    if unknown.any():
        first, last = np.array(grid.span, "datetime64[D]")
        raise ValueError(
            f"{name} are known from {first} to {last}; other days have "
            f"{axis.describe(np.flatnonzero(unknown))}. Fit to data that begin there, or leave "
            "these rows out"
        )
    closed = ~grid.holds(days)
    if closed.any():
        raise ValueError(
            f"rows must lie on {name}; on closed days lie "
            f"{axis.describe(np.flatnonzero(closed))}. Leave these rows out, or give freq='C', "
            "which takes the days that have rows"
        )


def exchange_days(code: str, axis: Axis) -> TradingDays:
    """Return the sessions of an exchange from the first row to `YEARS_AHEAD` after the last."""
    library = load_exchange_calendars()
    days = split_days(axis.distinct[0], axis.tz)[0]
    first, last = (pd.Timestamp(np.datetime64(int(day), "D")) for day in (days.min(), days.max()))
    alias = f"C-{code}"
    try:
        alias = f"C-{library.resolve_alias(code)}"
        known = library.get_calendar(code, start=first, end=max(last, first + pd.Timedelta(days=7)))
        limit = known.bound_max()
        end = last + pd.DateOffset(years=YEARS_AHEAD)
        end = end if limit is None else min(end, limit)
        sessions = library.get_calendar(code, start=first, end=end).sessions
    except library.errors.InvalidCalendarName as error:
        raise ValueError(
            f"freq={alias!r} must name an exchange that exchange_calendars knows by its code, such "
            "as 'C-XNYS'; exchange_calendars.get_calendar_names() lists them"
        ) from error
    except ValueError as error:
        reason = str(error)
        raise ValueError(
            f"exchange_calendars has no sessions of freq={alias!r} from {first.date()} to "
            f"{last.date()}: {reason[:160]}{'...' * (len(reason) > 160)} Give the days as a "
            "pandas.offsets.CustomBusinessDay, or freq='C', which takes the days that have rows"
        ) from error
    opened = sessions.to_numpy().astype("datetime64[D]").astype(np.int64)
    working = np.bincount(weekday(opened), minlength=7) > 0
    weekmask = "".join("01"[int(works)] for works in working)
    span = int(days.min()), int(end.to_datetime64().astype("datetime64[D]").astype(np.int64))
    every = np.arange(span[0], span[1] + 1)
    every = every[working[weekday(every)]]
    return TradingDays(1, alias, weekmask, tuple(np.setdiff1d(every, opened).tolist()), span)


def closed_days(grid: Grid) -> tuple[str, ...]:
    """Return the closed days of a grid in the form of `Layout.closed`."""
    return _dates(grid.closed) if isinstance(grid, TradingDays) else ()


def calendar_fields(grid: Grid) -> dict[str, Any]:
    """Return the fields of a layout on trading days and irregular rows."""
    if isinstance(grid, Irregular):
        return {"row_times": grid.row_times}
    if not isinstance(grid, TradingDays):
        return {}
    span = () if grid.span is None else _dates(grid.span)
    return {"closed": closed_days(grid), "weekmask": grid.weekmask, "calendar_span": span}


def _dates(days: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(np.array(days, "datetime64[D]").astype(str).tolist())


def in_words(weekmask: str) -> str:
    """Return the weekdays of a mask as text."""
    if weekmask == MONDAY_TO_FRIDAY:
        return "from Monday to Friday"
    first = 6 if weekmask.endswith("01") else 0  # weeks from Sunday to Thursday start on Sunday
    order = [k % 7 for k in range(first, first + 7)]
    return f"on {', '.join(WEEKDAYS[k].capitalize() for k in order if weekmask[k] == '1')}"


def trading_note(grid: TradingDays) -> str:
    """Return a sentence on recognised trading days."""
    closed = closed_days(grid)
    many = f"{len(closed)} days, such as {closed[0]}, are" if len(closed) > 1 else ""
    taken = f"{many or f'{closed[0]} is'} taken as closed" if closed else "no day is closed"
    words, usual = in_words(grid.weekmask), grid.weekmask == MONDAY_TO_FRIDAY
    mask = "" if usual else f" {words} (weekmask {grid.weekmask!r})"
    return (
        f"Rows are trading days (freq='C'){mask}: {taken}. Forecasts are of the next days "
        f"{words}; freq={'B' if usual else 'D'!r} inserts missing rows."
    )


def with_later_rows(layout: Layout, last_times: np.ndarray, panel: Panel) -> Layout:
    """Return the layout extended by the closed days or row times of later rows.

    Its steps are rows (`Layout.observed`), and `last_times`, shape (S,), are the last of its data.
    """
    if layout.irregular:
        rows = {*layout.row_times, *panel.times.astype(np.int64).tolist()}
        return replace(layout, row_times=tuple(sorted(rows)))
    times = np.concatenate([[last_times.max()], panel.times])
    days = split_days(times[times >= last_times.max()], layout.tz)[0]
    later = TradingDays.of(days, layout.weekmask)
    return replace(layout, closed=tuple(sorted({*layout.closed, *closed_days(later)})))
