"""Checks of timestamps: increasing, on the grid, without gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsrnn.data._axis import Axis
from tsrnn.data._grid import Business, Grid
from tsrnn.data._text import listed

__all__ = [
    "check_few_missing",
    "check_gaps",
    "check_increasing",
    "check_steps",
    "positions",
    "strangers",
]

MOST_ROWS, MOST_MISSING = 1_000_000, 100  # rows with missing ones inserted; these a row that came


def check_increasing(axis: Axis) -> None:
    """Refuse timestamps that repeat or go back within a series.

    Raises
    ------
    ValueError
        Naming the series and the rows.
    """
    rows = axis.inner[axis.times[axis.inner] <= axis.times[axis.inner - 1]]
    if not len(rows):
        return
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


def positions(axis: Axis, grid: Grid) -> np.ndarray:
    """Return how many steps each row lies after the first of its series, int64 (N,).

    Raises
    ------
    ValueError
        If rows are not on the grid.
    """
    numbers = grid.numbers(axis.times, axis.tz)
    phases = grid.phases(axis.times, axis.tz)
    first = np.repeat(axis.indptr[:-1], axis.lengths)
    offsets, rest = np.divmod(numbers - numbers[first], grid.step)
    off = ~grid.contains(axis.times, axis.tz) | (rest != 0) | (phases != phases[first])
    if off.any():
        raise ValueError(
            f"timestamps must follow freq={grid.alias!r}; not on it are "
            f"{axis.describe(np.flatnonzero(off))}. Give another freq, or resample to regular "
            "timestamps (the time of day must not change either)."
        )
    return offsets


def strangers(axis: Axis, steps: np.ndarray) -> np.ndarray:
    """Return the series that have another frequency, not gaps.

    These are the series of three rows or more of which no two are neighbours on the grid, and
    which are equally spaced or lack more than half of the grid's timestamps.

    Parameters
    ----------
    axis : Axis
    steps : ndarray of int64
        Steps on the grid from the row before to each row of `axis.inner`.
    """
    codes, n_series = axis.codes[axis.inner], len(axis.ids)
    first = steps[axis.indptr[codes] - codes]
    hits = np.bincount(codes, weights=steps == 1, minlength=n_series)
    uneven = np.bincount(codes, weights=steps != first, minlength=n_series)
    span = np.bincount(codes, weights=steps, minlength=n_series) + 1
    sparse = 2 * axis.lengths < span
    return np.flatnonzero((axis.lengths > 2) & (hits == 0) & ((uneven == 0) | sparse))


def check_steps(axis: Axis, grid: Grid, offsets: np.ndarray) -> None:
    """Refuse series of another frequency: what lies between their rows is not missing.

    Raises
    ------
    ValueError
        Naming the series and its steps.
    """
    wrong = strangers(axis, axis.steps(offsets))
    if len(wrong):
        i = wrong[0]
        came = np.unique(np.diff(offsets[axis.indptr[i] : axis.indptr[i + 1]]))
        more = f" So it is in {len(wrong) - 1} more series." if len(wrong) > 1 else ""
        raise ValueError(
            f"{axis.where(i)}rows must be one step of freq={grid.alias!r} apart; of its "
            f"{axis.lengths[i]} rows no two are (they are {listed(came, 3)} steps apart). Give "
            f"another freq, or resample.{more}"
        )


def check_gaps(axis: Axis, grid: Grid, offsets: np.ndarray) -> None:
    """Refuse missing rows.

    Raises
    ------
    ValueError
        Naming the series and the rows after which rows are missing.
    """
    steps = axis.steps(offsets)
    before = axis.inner[steps > 1] - 1
    if not len(before):
        return
    missing = int((steps - 1).sum())
    advice = (
        'Reindex to business days, or read with missing="interpolate", which inserts them; '
        "or number the trading days by an integer index."
        if isinstance(grid, Business)
        else 'Insert them, or read with missing="interpolate", which fills them linearly.'
    )
    raise ValueError(
        f"timestamps must follow each other without gaps at freq={grid.alias!r}; {missing} missing "
        f"after {axis.describe(before)}. {advice}"
    )


def check_few_missing(axis: Axis, grid: Grid, lengths: np.ndarray) -> None:
    """Refuse to insert so many rows that a wrong timestamp is likelier, or memory would not do.

    Parameters
    ----------
    axis : Axis
    grid : Grid
    lengths : ndarray of int64, shape (S,)
        Rows of each series with the missing ones.

    Raises
    ------
    ValueError
        Naming the series that lacks most rows and where it begins and ends.
    """
    wanted, came = float(lengths.sum(dtype=float)), len(axis.times)
    if wanted <= MOST_ROWS or wanted <= MOST_MISSING * came:
        return
    i = int((lengths - axis.lengths).argmax())
    ends = axis.indptr[[i, i + 1]] - [0, 1]
    raise ValueError(
        f"missing rows to insert must be fewer than {MOST_MISSING} for each row that came, where "
        f"there would be more than {MOST_ROWS:,}; at freq={grid.alias!r} there would be "
        f"{wanted:,.0f} rows, of which {came:,} came. {axis.where(i)}{lengths[i]:,} rows lie from "
        f"{axis.show(ends[:1])} to {axis.show(ends[1:])}. Check its timestamps, give another freq, "
        "or split the series at the gap."
    )
