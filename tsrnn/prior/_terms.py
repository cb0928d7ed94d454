"""Terms of a regression on columns: lags, moving averages, splines, calendar functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays

LONGEST_LAG = 6  # rows; moving averages stand for later and lasting effects
PHASES = ("hour", "dayofweek", "dayofyear")  # phases of the calendar, the inputs of terms
HOURS_IN_WEEK = 168


class Cycle(NamedTuple):
    """Set of calendar functions that multiply a column."""

    name: str
    day: int = 0  # harmonics of the day
    year: int = 0  # harmonics of the year
    cells: int = 0  # indicators of parts of the week
    constant: bool = False  # True to include the constant function, the main effect


CYCLES = {
    cycle.name: cycle
    for cycle in (
        Cycle("always", constant=True),
        Cycle("hour", day=4),
        Cycle("by hour", day=4, constant=True),
        Cycle("weekday", cells=7),
        Cycle("hour of week", cells=HOURS_IN_WEEK),
        Cycle("year", year=3),
        Cycle("year by hour", day=4, year=2),
        Cycle("by time of year", year=1),
    )
}


@dataclass(frozen=True)
class Term:
    """Product of a function of one column and calendar functions.

    Without knots the function is the column itself; with one it is the squared distance from the
    knot, with more the curved parts of a natural cubic spline.
    """

    column: int  # -1 for calendar functions without a column
    lag: int = 0  # in rows, 0 to 6
    decay: float = 0.0  # of an exponentially weighted average of past rows; 0 for no average
    knots: tuple[float, ...] = ()
    cycle: str = "always"  # name of the calendar functions in `CYCLES`

    @property
    def is_plain(self) -> bool:
        """True if the term is the column itself."""
        return self == Term(self.column) and self.column >= 0

    def label(self, names: Sequence[object]) -> str:
        """Label of the term, given the names of the columns."""
        parts = [] if self.column < 0 else [str(names[self.column])]
        if self.decay:
            parts.append(f"average of past rows, decay {self.decay:g}")
        elif self.lag:
            parts.append(f"lag {self.lag}")
        if self.knots:
            parts.append("squared" if len(self.knots) == 1 else "curve")
        if self.cycle != "always":
            parts.append(self.cycle)
        return ", ".join(parts)

    def basis(self, values: np.ndarray) -> np.ndarray:
        """Basis functions (T, n) of the column at `values` (T,)."""
        if not self.knots:
            return values[:, None]
        if len(self.knots) == 1:
            return (values[:, None] - self.knots[0]) ** 2
        return natural_spline(values, np.array(self.knots))


def natural_spline(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Nonlinear basis (T, n_knots - 2) of a natural cubic spline at `values` (T,).

    Together with a constant and `values` it spans the cubic splines that are linear beyond the
    outer knots.
    """
    # On [0, 1], because cubes of large values lose the digits of their differences.
    width = knots[-1] - knots[0]
    values, knots = (values - knots[0]) / width, (knots - knots[0]) / width

    def cube(knot: float) -> np.ndarray:
        return np.maximum(values - knot, 0.0) ** 3

    last, before = knots[-1], knots[-2]
    ends = cube(before), cube(last)
    return np.stack(
        [
            cube(knot) - (ends[0] * (last - knot) - ends[1] * (before - knot)) / (last - before)
            for knot in knots[:-2]
        ],
        -1,
    )


def calendar_functions(cycle: Cycle, phases: np.ndarray) -> np.ndarray:
    """Functions (T, n) of a cycle at the elapsed shares (T, 3) of the day, week and year."""
    n_rows = len(phases)
    parts = [np.ones((n_rows, 1))] if cycle.constant else []
    day, year = waves(phases[:, 0], cycle.day), waves(phases[:, 2], cycle.year)
    if cycle.day and cycle.year:
        parts.append((day[:, :, None] * year[:, None]).reshape(n_rows, -1))
    else:
        parts += [day, year]
    if cycle.cells:
        hours = cycle.cells // 7
        # Rounding: the phase 5 / 24 times 24 can be below 5.
        weekday, hour = (np.floor(phases[:, i] * n + 1e-9) for i, n in ((1, 7), (0, hours)))
        cell = (weekday * hours + hour).astype(int)
        parts.append(np.eye(cycle.cells)[cell])
    return np.concatenate(parts, 1)


def waves(phase: np.ndarray, n: int) -> np.ndarray:
    """Sines and cosines (T, 2 n) of a phase (T,)."""
    angle = 2 * np.pi * phase[:, None] * np.arange(1, n + 1)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(len(phase), 2 * n)


@dataclass(frozen=True, eq=False)
class ColumnMemory(SeriesArrays):
    """Past of the columns of S series, for the terms of later rows.

    `recent` has the last rows, NaN where a value is missing; `averages` has the exponentially
    weighted averages of the observed rows for each of D decays.
    """

    recent: np.ndarray  # (S, LONGEST_LAG, k)
    averages: np.ndarray  # (S, D, k)

    @classmethod
    def before(cls, first: np.ndarray, n_decays: int) -> ColumnMemory:
        """Memory before the first row, as if columns had always had the values `first` (S, k)."""
        return cls(
            np.repeat(first[:, None], LONGEST_LAG, 1), np.repeat(first[:, None], n_decays, 1)
        )


def first_values(columns: np.ndarray) -> np.ndarray:
    """First observed value of each column (T, k), NaN if missing; 0 if none is observed."""
    observed = np.isfinite(columns)
    values = columns[observed.argmax(0), np.arange(columns.shape[1])]
    return np.where(observed.any(0), values, 0.0)


def moving_averages(rows: np.ndarray, decay: float, initial: np.ndarray) -> np.ndarray:
    """Exponentially weighted averages a_t = d a_{t-1} + (1 - d) x_t, constant over missing rows.

    Rows have shape (T, k), NaN if missing. `initial` (k,) are the averages before the first row,
    NaN for the first observed value.
    """
    from scipy.signal import lfilter  # slow to import, and needed for columns only

    initial = np.where(np.isnan(initial), first_values(rows), initial)
    observed = np.isfinite(rows)
    if observed.all():
        return lfilter([1 - decay], [1, -decay], rows, axis=0, zi=decay * initial[None])[0]
    averages = np.empty_like(rows)
    for column, begin in enumerate(initial):
        known = rows[observed[:, column], column]
        of_known = lfilter([1 - decay], [1, -decay], known, zi=[decay * begin])[0]
        averages[:, column] = np.append(begin, of_known)[observed[:, column].cumsum()]
    return averages


def decays_of(terms: Sequence[Term]) -> list[float]:
    """Distinct decays of the moving averages, in increasing order."""
    return sorted({term.decay for term in terms if term.decay})


def design(
    terms: Sequence[Term],
    columns: np.ndarray,
    phases: np.ndarray,
    recent: np.ndarray,
    averages: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Design matrix (T, p) of one series; NaN where a term needs a missing value.

    Columns are (T, k), phases (T, 3) as `PHASES`. `recent` and `averages` are the memory of the
    series before these rows, see `ColumnMemory`; the memory after them is returned.
    """
    n_rows, decays = len(columns), decays_of(terms)
    extended = np.concatenate([recent, columns])
    running = np.empty((len(decays), n_rows, columns.shape[1]))
    for number, decay in enumerate(decays):
        running[number] = moving_averages(columns, decay, averages[number])
    parts = []
    for term in terms:
        cycle = CYCLES[term.cycle]
        factor = calendar_functions(cycle, phases)
        if term.column < 0:
            parts.append(factor)
            continue
        if term.decay:  # the average up to the previous row
            place = decays.index(term.decay)
            past = np.concatenate([averages[place, None], running[place, :-1]])
            values = past[:, term.column]
        else:
            start = LONGEST_LAG - term.lag
            values = extended[start : start + n_rows, term.column]
        basis = term.basis(values)
        parts.append((basis[:, :, None] * factor[:, None]).reshape(n_rows, -1))
    matrix = np.concatenate(parts, 1) if parts else np.empty((n_rows, 0))
    return matrix, extended[-LONGEST_LAG:], running[:, -1]


def widths_of(terms: Sequence[Term]) -> np.ndarray:
    """Number of columns of the design matrix for each term."""
    one_row: np.ndarray = np.zeros((1, len(PHASES)))
    widths = [
        calendar_functions(CYCLES[term.cycle], one_row).shape[1] * term.basis(np.zeros(1)).shape[1]
        for term in terms
    ]
    return np.array(widths, int)
