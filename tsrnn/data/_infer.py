"""The frequency of a panel, from its timestamps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsrnn.data._alias import day_grid, month_grid, parse_freq, tick_grid, week_grid
from tsrnn.data._axis import Axis
from tsrnn.data._grid import NS_PER_DAY, Count, Grid, Months, to_local, weekday
from tsrnn.data._regular import strangers
from tsrnn.data._text import listed, quote

__all__ = ["infer_grid"]

FEW = 1000  # rows that show most frequencies not to be monthly
_GIVE = 'Give it, such as freq="MS" (month start), freq="D" or freq="h"'


def infer_grid(axis: Axis) -> Grid:
    """Return the one grid on which all series of an axis of datetimes or integers lie.

    The step is the most common difference, so that missing rows do not hide it.

    Parameters
    ----------
    axis : Axis
        Timestamps increase within each series.

    Raises
    ------
    ValueError
        If there are too few rows, no regular frequency or several frequencies.
    """
    _check_enough(axis)
    grid = _candidate(axis)
    if not _fits(axis, grid):
        raise _no_single_frequency(axis)
    return grid


def _check_enough(axis: Axis) -> None:
    n = len(axis.inner)
    if n == 0:
        raise ValueError(
            "the frequency cannot be inferred: no series has two rows. "
            f"{_GIVE}, or freq=1 for an integer index."
        )
    if n == 1 and _is_datetime(axis) and axis.steps(axis.times.astype(np.int64))[0] >= NS_PER_DAY:
        raise ValueError(
            f"the frequency cannot be inferred from two rows ({axis.show(axis.inner - 1)} and "
            f"{axis.show(axis.inner)}): days, business days, weeks and months could all be meant. "
            f"{_GIVE}."
        )


def _candidate(axis: Axis) -> Grid:
    """Return the grid that the most common differences speak for."""
    numbers = axis.times.astype(np.int64)
    if not _is_datetime(axis):
        step = _mode(axis.steps(numbers))
        return Count(step, step)
    days, phases = np.divmod(to_local(axis.times, axis.tz).astype(np.int64), NS_PER_DAY)
    if np.any(axis.steps(phases)):
        return tick_grid(_mode(axis.steps(numbers)))
    return _month_candidate(axis, days) or _day_candidate(axis, days)


def _month_candidate(axis: Axis, days: np.ndarray) -> Grid | None:
    for rule in Months.RULES:
        grid = Months(1, "", rule)
        if grid.holds(days[:FEW]).all() and grid.holds(days).all():
            months = grid.number(days)
            return month_grid(_mode(axis.steps(months)), rule, int(months[0]))
    return None


def _day_candidate(axis: Axis, days: np.ndarray) -> Grid:
    step = _mode(axis.steps(days))
    weekdays = weekday(days)
    if step % 7 == 0:
        return week_grid(step // 7, int(weekdays[0]))
    if step == 1 and weekdays.max() < 5 and axis.steps(days).max() > 1:
        return parse_freq("B")
    return day_grid(step)


def _fits(axis: Axis, grid: Grid) -> bool:
    """Whether most rows follow each other on the grid, and no series has another frequency."""
    if not grid.contains(axis.times, axis.tz).all():
        return False
    steps, rest = np.divmod(axis.steps(grid.numbers(axis.times, axis.tz)), grid.step)
    if np.any(rest) or 2 * np.sum(steps == 1) <= len(steps):
        return False
    return len(strangers(axis, steps)) == 0


def _no_single_frequency(axis: Axis) -> ValueError:
    """Say which two series differ in frequency, or else which has none."""
    found: dict[object, int] = {}
    irregular = None
    for i in _representatives(axis):
        alone = axis.series(i)
        grid = _candidate(alone)
        if _fits(alone, grid):
            found.setdefault(grid.alias, i)
        elif irregular is None:
            irregular = alone
        if len(found) == 2:
            return _mixed(axis, found)
    return _irregular(axis, "") if irregular is None else _irregular(irregular, irregular.where(0))


def _representatives(axis: Axis, limit: int = 1000) -> np.ndarray:
    """Series of more than two rows, one of each pattern of steps, weekday and day of month."""
    numbers = axis.times.astype(np.int64)
    steps = np.zeros(len(numbers), np.int64)
    steps[axis.inner] = axis.steps(numbers)
    long = np.flatnonzero(axis.lengths > 2)
    seconds, lasts = axis.indptr[long] + 1, axis.indptr[long + 1] - 1
    pattern = [steps[seconds], steps[lasts], np.sign(numbers[lasts])]
    if _is_datetime(axis):
        days = numbers[lasts] // NS_PER_DAY
        pattern += [weekday(days), _day_of_month(days)]
    return long[np.sort(np.unique(np.stack(pattern), axis=1, return_index=True)[1])][:limit]


def _day_of_month(days: np.ndarray) -> np.ndarray:
    return days - days.astype("datetime64[D]").astype("datetime64[M]").astype(
        "datetime64[D]"
    ).astype(np.int64)


def _mixed(axis: Axis, found: dict[object, int]) -> ValueError:
    first, second = (f"series {quote(axis.ids[i])} has {freq!r}" for freq, i in found.items())
    return ValueError(
        f"all series of a panel must have the same frequency; {first}, {second}. "
        "Fit one model per frequency, or resample."
    )


def _irregular(axis: Axis, where: str) -> ValueError:
    steps = np.unique(axis.steps(axis.times.astype(np.int64)))
    shown = [str(pd.Timedelta(int(s), "ns")) if _is_datetime(axis) else str(s) for s in steps[:3]]
    return ValueError(
        f"the frequency cannot be inferred: {where}the steps between timestamps follow no "
        f"regular frequency ({listed([*shown, *steps[3:]], 3)}). {_GIVE}, resample or convert to "
        "periods (to_period), or number the rows by an integer index."
    )


def _mode(steps: np.ndarray) -> int:
    values, counts = np.unique(steps, return_counts=True)
    return int(values[counts.argmax()])


def _is_datetime(axis: Axis) -> bool:
    return axis.times.dtype.kind == "M"
