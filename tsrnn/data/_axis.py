"""The time axis of a panel: rows in order, on one grid, and the frequency of that grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

from tsrnn.data._digits import PATTERNS, UNITS, to_digits
from tsrnn.data._faults import listed, quote, quoted
from tsrnn.data._frequency import (
    NS_PER_DAY,
    Business,
    Count,
    Freq,
    Grid,
    Months,
    day_grid,
    first_day,
    month_grid,
    parse_freq,
    split_days,
    steps_of,
    tick_grid,
    week_grid,
    weekday,
)
from tsrnn.data._timestamps import digit_form, period_freq, periods

CACHED_ROWS = 2**16  # int64 of a block that stay in the processor's cache
ROWS_AT_ONCE = 2**20  # rows of a block; bounds the memory of positions on a grid
MOST_ROWS, MOST_MISSING = 1_000_000, 100  # rows after insertion: in all, and per row given
FEW = 1000  # rows that rule out months for most other frequencies
RESAMPLE = "Resample, or number the rows by an integer index"
AS_THEY_COME = "freq='irregular', which takes rows as they come, a step each"
ONE_MODEL_EACH = "Fit one model per frequency, or resample"
MONTHLY = "YYYY", "YYYYQ", "YYYYMM"  # forms of dates in digits without a day


@dataclass(frozen=True, eq=False)
class Axis:
    """Rows sorted by series: series i has the rows indptr[i] to indptr[i + 1].

    `times` (N,) are datetime64[ns], in UTC or naive, or int64 (ordinals of periods, integers).
    `dtype` is `Layout.time_dtype`. `named` is False for a frame without ids, and messages then
    name no series.
    """

    times: np.ndarray
    indptr: np.ndarray
    ids: pd.Index
    named: bool
    dtype: str
    tz: str | None = None

    @cached_property
    def lengths(self) -> np.ndarray:
        """Rows of each series, shape (S,)."""
        return np.diff(self.indptr)

    @cached_property
    def codes(self) -> np.ndarray:
        """Series of each row, shape (N,)."""
        return np.repeat(np.arange(len(self.ids)), self.lengths)

    @cached_property
    def inner(self) -> np.ndarray:
        """Rows other than the first of their series, ascending."""
        mask = np.ones(len(self.times), bool)
        mask[self.indptr[:-1]] = False
        return np.flatnonzero(mask)

    @cached_property
    def alike(self) -> bool:
        """True if all series have the same, increasing timestamps."""
        length = self.lengths[0]
        if not length or (self.lengths != length).any():
            return False
        first = self.times[:length]
        return bool(
            (first[1:] > first[:-1]).all() and (self.times.reshape(-1, length) == first).all()
        )

    @cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray | slice]:
        """Distinct timestamps in order of appearance, and the position among them of each row."""
        # Calendars are slow: they see each timestamp once, not once a series. With a long series,
        # hardly any timestamp repeats and a hash table would not pay.
        if 4 * self.lengths.max() > len(self.times):
            return self.times, slice(None)
        if self.alike:
            length = int(self.lengths[0])
            return self.times[:length], np.tile(np.arange(length), len(self.lengths))
        rows, times = pd.factorize(self.times)
        return np.asarray(times), rows

    def steps(self, numbers: np.ndarray) -> np.ndarray:
        """Return the first differences of `numbers` (N,) within series, at the rows `inner`."""
        return np.delete(np.diff(numbers), self.indptr[1:-1] - 1)

    def rises(self, numbers: np.ndarray, step: int) -> bool:
        """Return True if `numbers`, one a distinct timestamp, rise by `step` within series."""
        rows, n = self.distinct[1], len(self.times)
        if not isinstance(rows, slice) and self.alike:
            return bool((np.diff(numbers) == step).all())
        rising = np.ones(max(n - 1, 0), bool)
        for low in range(0, n - 1, CACHED_ROWS):
            part = slice(low, low + CACHED_ROWS + 1)
            block = numbers[part if isinstance(rows, slice) else rows[part]]
            np.equal(block[1:], block[:-1] + step, out=rising[low : low + CACHED_ROWS])
        rising[self.indptr[1:-1] - 1] = True  # differences across series do not count
        return bool(rising.all())

    def series(self, i: int) -> Axis:
        """Return the axis of one series."""
        return self.block(i, i + 1)

    def block(self, low: int, high: int) -> Axis:
        """Return the axis of neighbouring series."""
        bounds = self.indptr[low : high + 1]
        times, ids = self.times[bounds[0] : bounds[-1]], self.ids[low:high]
        return replace(self, times=times, indptr=bounds - bounds[0], ids=ids)

    def where(self, i: int) -> str:
        """Return "series 'a': ", or nothing if the frame has no ids."""
        return f"series {quote(self.ids[i])}: " if self.named else ""

    def show(self, rows: np.ndarray) -> str:
        """Return the first few timestamps of some rows."""
        shown = [show_time(time, self.dtype, self.tz) for time in self.times[rows[:3]]]
        return listed([*shown, *rows[3:]], 3)

    def describe(self, rows: np.ndarray) -> str:
        """Return counts, series and timestamps of rows, at most three of each."""
        codes, starts = np.unique(self.codes[rows], return_index=True)
        texts = [
            f"{self.where(code)}{len(part)} row{'s'[: len(part) > 1]} at {self.show(part)}"
            for code, part in zip(codes[:3], np.split(rows, starts[1:])[:3], strict=True)
        ]
        more = len(codes) - 3
        return "; ".join(texts) + (f"; and {more} more series" if more > 0 else "")


def show_time(time: object, dtype: str, tz: str | None) -> str:
    """Return a timestamp of an axis as the user wrote it."""
    form, period = digit_form(dtype), period_freq(dtype)
    if form is not None:
        return str(to_digits(np.array([time], "datetime64[ns]"), form)[0])
    if isinstance(time, np.datetime64) and (step := steps_of(np.array([time]))) is not None:
        return f"step {step[0]}"
    if isinstance(time, np.datetime64):
        stamp = pd.Timestamp(time)
        text = str(stamp.tz_localize("UTC").tz_convert(tz) if tz else stamp)
        return text.removesuffix(" 00:00:00")
    if period is not None:
        return str(periods(np.array([time], np.int64), period)[0])
    return str(time)


def is_increasing(axis: Axis) -> bool:
    """Return True if timestamps increase within each series."""
    return bool(_comes_later(axis).all())


def _comes_later(axis: Axis) -> np.ndarray:
    """Return the mask (N - 1,) of rows later than the row before; True where a series begins."""
    later = axis.times[1:] > axis.times[:-1]
    later[axis.indptr[1:-1] - 1] = True
    return later


def check_increasing(axis: Axis) -> None:
    """Refuse timestamps that repeat or go back within a series."""
    later = _comes_later(axis)
    if later.all():
        return
    rows = np.flatnonzero(~later) + 1
    keys = pd.DataFrame({"code": axis.codes, "time": axis.times})
    repeated = np.flatnonzero(keys.duplicated().to_numpy())
    other = "" if axis.named else " If the frame holds several series, name their column by id_col."
    if len(repeated):
        raise ValueError(
            f"timestamps must be unique within a series; duplicated are {axis.describe(repeated)}. "
            f"Drop the duplicates or aggregate them.{other}"
        )
    by = "[id_col, time_col]" if axis.named else "time"
    raise ValueError(
        f"timestamps must increase within a series; they go back in {axis.describe(rows)}. "
        f"Sort by {by} (sort_values or sort_index).{other}"
    )


def rows_in_time(axis: Axis) -> tuple[np.ndarray, str]:
    """Return row numbers (N,) that reverse series with decreasing timestamps, and a note.

    The note is empty where no series is reversed.
    """
    inner, rows = axis.inner, np.arange(len(axis.times))
    earlier = axis.times[inner] < axis.times[inner - 1]
    falls = np.bincount(axis.codes[inner[earlier]], minlength=len(axis.ids))
    backwards = (falls == axis.lengths - 1) & (falls > 0)
    if not backwards.any():
        return rows, ""
    ends = axis.indptr[axis.codes] + axis.indptr[axis.codes + 1] - 1  # first plus last row
    whose = "" if backwards.all() else f" of series {quoted(axis.ids[backwards])}"
    note = f"Rows{whose} go from the newest to the oldest; they are read in the order of time."
    return np.where(backwards[axis.codes], ends - rows, rows), note


def infer_grid(axis: Axis) -> Grid:
    """Return the common grid of all series, for datetimes or integers.

    The step is the most common difference, which missing rows do not change.
    """
    n = len(axis.inner)
    if n == 0:
        raise ValueError(
            "the frequency cannot be inferred: no series has two rows. Give it, such as "
            f"{_or(_aliases_of_one(axis))}."
        )
    aliases = _aliases_of_two(axis) if n == 1 else []
    if aliases:
        raise ValueError(
            f"the frequency cannot be inferred from two rows ({axis.show(axis.inner - 1)} and "
            f"{axis.show(axis.inner)}): days, business days, weeks and months could all be meant. "
            f"Give it, such as {_or(aliases)}."
        )
    grid = _candidate(axis)
    if not _fits(axis, grid):
        raise _no_single_frequency(axis)
    return grid


def _or(aliases: Sequence[Freq]) -> str:
    """Return frequencies as arguments, joined by "or"."""
    *others, last = (f"freq={alias!r}" for alias in aliases)
    return f"{', '.join(others)} or {last}" if others else last


def _aliases_of_one(axis: Axis) -> list[Freq]:
    """Return frequencies that series of one row each may have, the likeliest first."""
    form = digit_form(axis.dtype)
    if not _is_datetime(axis):
        return [1]
    if form in MONTHLY:
        return [UNITS[form], 1]
    aliases: list[Freq] = ["MS", "ME", "D"]
    aliases = [alias for alias in aliases if parse_freq(alias).contains(axis.times, axis.tz).all()]
    if form is not None:
        return [*aliases, 1]
    return aliases if axis.dtype == "date" else [*aliases, "h"]


def _aliases_of_two(axis: Axis) -> list[Freq]:
    """Return frequencies at which the only two rows of a series are neighbours."""
    if not _is_datetime(axis) or digit_form(axis.dtype) in MONTHLY:
        return []
    days, phases = split_days(axis.times, axis.tz)
    rows = np.array([axis.inner[0] - 1, axis.inner[0]])
    step = int(np.diff(days[rows])[0])
    if np.diff(phases[rows])[0] or step < 1:
        return []
    grids: list[Grid] = []
    months = Months(1, "", "start").number(days[rows])
    if months[1] > months[0]:
        apart = int(months[1] - months[0])
        grids += [month_grid(apart, rule, int(months[1])) for rule in Months.RULES]
    if step % 7 == 0:
        grids.append(week_grid(step // 7, int(weekday(days[rows[1]]))))
    grids += [day_grid(step), parse_freq("B")]
    return [grid.alias for grid in grids if is_regular(axis, grid)]


def _candidate(axis: Axis) -> Grid:
    """Return the grid with the most common difference as its step."""
    times, rows = axis.distinct
    if not _is_datetime(axis):
        step = _mode(axis, times)
        return Count(step, step)
    days, phases = split_days(times, axis.tz)
    if not axis.rises(phases, 0):  # the time of day changes: steps of hours and below
        return tick_grid(_mode(axis, times.astype(np.int64)))
    for rule in Months.RULES:  # days of a month before days: all months are days as well
        grid = Months(1, "", rule)
        # A few rows first: long daily series are ruled out without a look at all their months.
        if grid.holds(days[:FEW]).all() and grid.holds(days).all():
            months = grid.number(days)
            return month_grid(_mode(axis, months), rule, int(months[0]))
    step, weekdays = _mode(axis, days), weekday(days)
    if step % 7 == 0:
        return week_grid(step // 7, int(weekdays[0]))
    if step == 1 and weekdays.max() < 5 and axis.steps(days[rows]).max() > 1:
        return parse_freq("B")
    return day_grid(step)


def _mode(axis: Axis, numbers: np.ndarray) -> int:
    """Return the most common step of `numbers`, one a distinct timestamp; the smallest if tied."""
    rows = axis.distinct[1]
    if axis.lengths[0] > 1:
        first, second = numbers[rows][:2] if isinstance(rows, slice) else numbers[rows[:2]]
        if axis.rises(numbers, int(second - first)):
            return int(second - first)
    codes, values = pd.factorize(axis.steps(numbers[rows]))
    counts = np.bincount(codes)
    return int(values[counts == counts.max()].min())


def is_regular(axis: Axis, grid: Grid) -> bool:
    """Return True if neighbouring rows are one step of the grid apart."""
    times = axis.distinct[0]
    if not grid.contains(times, axis.tz).all():
        return False
    if len(axis.times) == len(axis.ids):  # a row each
        return True
    numbers, phases = grid.numbers(times, axis.tz), grid.phases(times, axis.tz)
    return axis.rises(numbers, grid.step) and axis.rises(phases, 0)


def _fits(axis: Axis, grid: Grid) -> bool:
    """Return True if most neighbours are one step apart and no series has another frequency."""
    if is_regular(axis, grid):
        return True
    times, rows = axis.distinct
    if not grid.contains(times, axis.tz).all():
        return False
    steps, rest = np.divmod(axis.steps(grid.numbers(times, axis.tz)[rows]), grid.step)
    if np.any(rest) or 2 * np.sum(steps == 1) <= len(steps):
        return False
    return len(series_of_other_frequency(axis, steps)) == 0


def _no_single_frequency(axis: Axis) -> ValueError:
    """Return an error that names two series of different frequency, or one without any."""
    frequencies: dict[object, int] = {}  # with a series of each
    irregular = None
    for i in _representatives(axis):
        alone = axis.series(i)
        grid = _candidate(alone)
        if _fits(alone, grid):
            frequencies.setdefault(grid.alias, i)
        elif irregular is None:
            irregular = alone
        if len(frequencies) == 2:
            first, second = (
                f"series {quote(axis.ids[i])} has {freq!r}" for freq, i in frequencies.items()
            )
            return ValueError(
                f"all series of a panel must have the same frequency; {first}, {second}. "
                f"{ONE_MODEL_EACH}."
            )
    where = "" if irregular is None else irregular.where(0)
    axis = axis if irregular is None else irregular
    steps = np.unique(axis.steps(axis.times.astype(np.int64)))
    shown = [str(pd.Timedelta(int(s), "ns")) if _is_datetime(axis) else str(s) for s in steps[:3]]
    return ValueError(
        f"the frequency cannot be inferred: {where}the steps between timestamps follow no "
        f"regular frequency ({listed([*shown, *steps[3:]], 3)}). {_periods(axis) or RESAMPLE}"
        f"{', or give ' * _is_datetime(axis)}{AS_THEY_COME * _is_datetime(axis)}."
    )


def _periods(axis: Axis) -> str:
    """Return advice for rows equally many months apart, such as every 15th; else ""."""
    if _is_datetime(axis):
        days, rows = split_days(axis.distinct[0], axis.tz)[0], axis.distinct[1]
        steps = np.unique(axis.steps(Months(1, "", "start").number(days)[rows]))
        if len(steps) == 1 and steps[0] > 0:
            step = int(steps[0])
            freq = {1: "M", 3: "Q", 12: "Y"}.get(step, f"{step}M")
            form, times = digit_form(axis.dtype), "the times"
            if form is not None:
                whole = "times.astype('int64').astype(str)"
                times = f"pd.to_datetime({whole}, format={PATTERNS[form]!r})"
            return f"Make periods of {times} by to_period({freq!r})"
    return ""


def followed(axis: Axis) -> str:
    """Return advice that names the frequency which the rows do follow; "" if there is none."""
    try:
        alias = infer_grid(axis).alias
    except (ValueError, OverflowError):
        return ""
    return f"Give freq={alias!r}, which they follow, or leave freq out"


def _representatives(axis: Axis, limit: int = 1000) -> np.ndarray:
    """Return series of three rows or more, one per pattern of steps, weekday and day of month."""
    numbers = axis.times.astype(np.int64)
    steps = np.zeros(len(numbers), np.int64)
    steps[axis.inner] = axis.steps(numbers)
    long = np.flatnonzero(axis.lengths > 2)
    seconds, lasts = axis.indptr[long] + 1, axis.indptr[long + 1] - 1
    pattern = [steps[seconds], steps[lasts], np.sign(numbers[lasts])]
    if _is_datetime(axis):
        days = numbers[lasts] // NS_PER_DAY
        months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        pattern += [weekday(days), days - first_day(months)]
    return long[np.sort(np.unique(np.stack(pattern), axis=1, return_index=True)[1])][:limit]


def _is_datetime(axis: Axis) -> bool:
    return axis.times.dtype.kind == "M"


def positions(axis: Axis, grid: Grid, fixed: bool = False) -> np.ndarray:
    """Return steps from the first row of its series to each row, int64 of shape (N,).

    Rows off the grid and series of another frequency are refused. With `fixed`, messages do not
    advise another frequency.
    """
    if len(axis.times) <= ROWS_AT_ONCE:
        return _block_positions(axis, grid, fixed)
    wanted = np.arange(0, len(axis.times), ROWS_AT_ONCE)
    cuts = np.unique(np.append(np.searchsorted(axis.indptr, wanted), len(axis.ids)))
    try:
        blocks = (axis.block(low, high) for low, high in pairwise(cuts))
        return np.concatenate([_block_positions(block, grid, fixed) for block in blocks])
    except ValueError:
        return _block_positions(axis, grid, fixed)  # raises with all series in the message


def _block_positions(axis: Axis, grid: Grid, fixed: bool) -> np.ndarray:
    """Return `positions` of the series of one block."""
    if not len(axis.inner) and grid.contains(axis.times, axis.tz).all():
        return np.zeros(len(axis.times), np.int64)  # series of one row each
    times, rows = axis.distinct
    numbers, phases = grid.numbers(times, axis.tz)[rows], grid.phases(times, axis.tz)[rows]
    first = np.repeat(axis.indptr[:-1], axis.lengths)
    offsets, rest = np.divmod(numbers - numbers[first], grid.step)
    off = ~grid.contains(times, axis.tz)[rows] | (rest != 0) | (phases != phases[first])
    if off.any():
        advice = "" if fixed else followed(axis) or _periods(axis) or RESAMPLE
        raise ValueError(
            f"timestamps must follow freq={grid.alias!r}; not on it are "
            f"{axis.describe(np.flatnonzero(off))}, and the time of day must not change. "
            f"{advice or 'Correct them, or resample'}."
        )
    # Twice the step everywhere is another frequency, not a gap after every row.
    wrong = series_of_other_frequency(axis, axis.steps(offsets))
    if len(wrong):
        i = wrong[0]
        came = np.unique(np.diff(offsets[axis.indptr[i] : axis.indptr[i + 1]]))
        more = f" So it is in {len(wrong) - 1} more series." if len(wrong) > 1 else ""
        advice = "" if fixed else followed(axis) or _periods(axis) or ONE_MODEL_EACH
        raise ValueError(
            f"{axis.where(i)}rows must be one step of freq={grid.alias!r} apart; of its "
            f"{axis.lengths[i]} rows no two are (they are {listed(came, 3)} steps apart). "
            f"{advice or 'Correct them, or resample'}.{more}"
        )
    return offsets


def series_of_other_frequency(axis: Axis, steps: np.ndarray) -> np.ndarray:
    """Return positions of series that have another frequency than the grid, not gaps.

    Such a series has three rows or more and no two neighbours on the grid. It is equally spaced,
    or lacks more than half of the grid's timestamps. `steps` are at the rows `inner`.
    """
    codes, n_series = axis.codes[axis.inner], len(axis.ids)
    hits = np.bincount(codes[steps == 1], minlength=n_series)
    if not np.any((axis.lengths > 2) & (hits == 0)):
        return np.empty(0, np.int64)
    first = steps[axis.indptr[codes] - codes]
    uneven = np.bincount(codes, weights=steps != first, minlength=n_series)
    span = np.bincount(codes, weights=steps, minlength=n_series) + 1
    sparse = 2 * axis.lengths < span
    return np.flatnonzero((axis.lengths > 2) & (hits == 0) & ((uneven == 0) | sparse))


def check_gaps(axis: Axis, grid: Grid, offsets: np.ndarray) -> None:
    """Refuse missing rows."""
    steps = axis.steps(offsets)
    before = axis.inner[steps > 1] - 1
    if not len(before):
        return
    missing = int((steps - 1).sum())
    advice = 'Insert them, or read with missing="interpolate", which fills them linearly.'
    if isinstance(grid, Business):
        advice = (
            'Reindex to business days, or read with missing="interpolate", which inserts them; '
            "or number the trading days by an integer index."
        )
    if _are_many(len(axis.times) + missing, len(axis.times)):
        advice = "Check the timestamps around them, or split the series there."
    raise ValueError(
        f"timestamps must follow each other without gaps at freq={grid.alias!r}; {missing} missing "
        f"after {axis.describe(before)}. {advice}"
    )


def _are_many(wanted: float, came: int) -> bool:
    """Return True if a wrong timestamp is likelier than missing rows."""
    return wanted > MOST_ROWS and wanted > MOST_MISSING * came


def check_few_missing(axis: Axis, grid: Grid, lengths: np.ndarray) -> None:
    """Refuse to insert rows if there are too many for gaps: a wrong timestamp is likelier.

    `lengths` (S,) are the rows of each series after insertion.
    """
    wanted, came = float(lengths.sum(dtype=float)), len(axis.times)
    if not _are_many(wanted, came):
        return
    i = int((lengths - axis.lengths).argmax())
    ends = axis.indptr[[i, i + 1]] - [0, 1]
    raise ValueError(
        f"missing rows to insert must be fewer than {MOST_MISSING} for each row that came, where "
        f"there would be more than {MOST_ROWS:,}; at freq={grid.alias!r} there would be "
        f"{wanted:,.0f} rows, of which {came:,} came. {axis.where(i)}{lengths[i]:,} rows lie from "
        f"{axis.show(ends[:1])} to {axis.show(ends[1:])}. Check its timestamps, or split the "
        "series at the gap."
    )
