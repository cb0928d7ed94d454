"""Calendar columns of timestamps: sines and cosines over the hour, day, week and year."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.data._frequency import (
    NS_PER_DAY,
    Business,
    Days,
    Grid,
    Months,
    Tick,
    parse_freq,
    to_local,
)
from tsrnn.data._panel import Layout
from tsrnn.data._timestamps import period_freq, period_step, periods

YEAR = 365.25
MOST_WAVES = 3  # smooth; saturates up to seven weekdays or four quarters


class Cycle(NamedTuple):
    """Cycle of the calendar: length in days, distinct positions, and elapsed share of the cycle."""

    days: float
    positions: int
    place: Callable[[Any], Any]


CYCLES = {
    "minute": Cycle(1 / 24, 60, lambda t: (t.minute + t.second / 60) / 60),
    "hour": Cycle(1.0, 24 * 60, lambda t: (t.hour + t.minute / 60 + t.second / 3600) / 24),
    "dayofweek": Cycle(7.0, 7, lambda t: t.day_of_week / 7),
    "day": Cycle(YEAR / 12, 31, lambda t: (t.day - 1) / t.days_in_month),
    "dayofyear": Cycle(YEAR, 366, lambda t: (t.day_of_year - 1) / (365 + t.is_leap_year)),
    "month": Cycle(YEAR, 12, lambda t: (t.month - 1) / 12),
    "quarter": Cycle(YEAR, 4, lambda t: (t.quarter - 1) / 4),
}


def calendar_features(calendar: Any, layout: Layout) -> tuple[str, ...]:
    """Return the cycles of the argument `calendar` for data of a layout.

    Names are among "minute", "hour", "dayofweek", "day" (of the month), "dayofyear", "month" and
    "quarter"; a cycle no longer than a step is refused. True means hour and weekday for steps below
    a day, weekday and day of the year for days, day of the year for weeks, month for months and
    quarters.
    """
    if calendar is None or calendar is False:
        return ()
    if layout.time_kind == "integer":
        raise ValueError(
            "calendar needs dates; the timestamps are integers. Give dates, such as "
            "pd.period_range(start, periods=len(df), freq=...) as the index, or leave calendar out"
        )
    step = step_days(layout)
    if calendar is True:
        cycles = _default_cycles(step)
        if not cycles:
            raise ValueError(
                f"calendar=True knows no cycle for steps of freq={layout.freq!r}. Leave it out"
            )
        return cycles
    names = (calendar,) if isinstance(calendar, str) else calendar
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"calendar must be True or names among {', '.join(CYCLES)}; got {calendar!r}"
        )
    for name in names:
        if name not in CYCLES:
            near = difflib.get_close_matches(name, CYCLES, n=1)
            advice = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"calendar must name some of {', '.join(CYCLES)}; got {name!r}{advice}"
            )
        if _steps(name, step) < 2:
            raise ValueError(
                f"calendar={name!r} does not vary from step to step of freq={layout.freq!r}. Name "
                "a longer cycle, or leave it out"
            )
    if len(set(names)) < len(names):
        raise ValueError(f"calendar must name each cycle once; got {calendar!r}. Drop the repeated")
    return tuple(names)


def calendar_names(features: Sequence[str], layout: Layout) -> list[str]:
    """Return the names of the columns of cycles, such as "month_sin1"."""
    return [f"{name}_{wave}{k}" for name in features for wave, k in _waves(name, layout)]


def calendar_columns(times: np.ndarray, features: Sequence[str], layout: Layout) -> np.ndarray:
    r"""Return sines and cosines of the position of timestamps in cycles of the calendar.

    .. math:: \sin 2 \pi k \tau, \quad \cos 2 \pi k \tau, \qquad k = 1, \dots, K

    :math:`\tau` is the elapsed share of the cycle, on the wall clock of the zone, at the start of a
    period. K is 3, or half the steps of a cycle of fewer than 6, whose last sine is zero and
    dropped. The result has shape (..., columns) for times of any shape, in the order of
    `calendar_names`.
    """
    phases = calendar_phases(times, features, layout)
    parts = []
    for j, name in enumerate(features):
        angle = 2 * np.pi * phases[..., j]
        parts += [getattr(np, wave)(k * angle) for wave, k in _waves(name, layout)]
    return np.stack(parts, -1)


def calendar_phases(times: np.ndarray, features: Sequence[str], layout: Layout) -> np.ndarray:
    """Return the elapsed share in [0, 1) of each cycle of the calendar at the timestamps.

    Times of any shape are taken on the wall clock of the zone, and at the start of a period; the
    result has shape (..., len(features)).
    """
    if layout.time_kind == "period":
        index = periods(times.ravel(), period_freq(layout.time_dtype)).to_timestamp()
    else:
        index = pd.DatetimeIndex(to_local(times.ravel().astype("datetime64[ns]"), layout.tz))
    # Fields of the array are numpy arrays; the index would return indexes.
    phases = [np.asarray(CYCLES[name].place(index.array), float) for name in features]
    return np.stack(phases, -1).reshape(*times.shape, len(features))


def cycle_steps(feature: str, layout: Layout) -> float:
    """Return the number of steps in a cycle of the calendar."""
    return CYCLES[feature].days / step_days(layout)


def _waves(name: str, layout: Layout) -> list[tuple[str, int]]:
    """Return the waves of a cycle that are linearly independent at the steps of the data."""
    n = _steps(name, step_days(layout))
    waves = [(wave, k) for k in range(1, min(MOST_WAVES, n // 2) + 1) for wave in ("sin", "cos")]
    return [(wave, k) for wave, k in waves if not (wave == "sin" and 2 * k == n)]


def _steps(name: str, step: float) -> int:
    """Return the number of distinct positions in a cycle for steps of `step` days."""
    cycle = CYCLES[name]
    return min(cycle.positions, int(cycle.days / step + 0.01))  # 365.25 / 7 days are 52


def _default_cycles(step: float) -> tuple[str, ...]:
    if step < 1:
        return "hour", "dayofweek"
    if step < 2:
        return "dayofweek", "dayofyear"
    if step < 28:
        return ("dayofyear",)
    return ("month",) if _steps("month", step) >= 2 else ()


@lru_cache(maxsize=64)
def step_days(layout: Layout) -> float:
    """Return the mean length of a step in days; refuse irregular rows."""
    if layout.irregular:
        raise ValueError(
            "calendar needs steps of one length; rows are irregular (freq='irregular'). Leave "
            "calendar out, or resample"
        )
    if layout.time_kind == "period":
        freq = period_freq(layout.time_dtype)
        assert freq is not None
        # 240 is a multiple of 12 months and 4 quarters: whole years, whatever the month lengths.
        first, last = periods(np.array([0, 240]), freq).to_timestamp()
        return (last - first) / pd.Timedelta(days=1) / 240 * period_step(freq)
    grid = layout.grid if isinstance(layout.grid, Grid) else parse_freq(layout.freq)
    if isinstance(grid, Tick):
        return grid.step / NS_PER_DAY
    if isinstance(grid, Months):
        return grid.step * YEAR / 12
    assert isinstance(grid, Business | Days)
    return grid.step * (7 / len(grid.weekdays) if isinstance(grid, Business) else 1.0)
