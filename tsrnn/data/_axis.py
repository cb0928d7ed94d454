"""The time side of a panel: whose row is when, and how to say so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tsrnn.data._stamps import periods
from tsrnn.data._text import listed, quote

__all__ = ["Axis", "show_time"]


@dataclass(frozen=True, eq=False)
class Axis:
    """Rows sorted by series.

    Parameters
    ----------
    times : ndarray, shape (N,)
        datetime64[ns] in UTC or naive, or int64 (period ordinals, integers).
    indptr : ndarray of int64, shape (S + 1,)
        Series i has the rows indptr[i] to indptr[i + 1].
    ids : pandas.Index, shape (S,)
    named : bool
        Whether the frame has ids; if not, messages name no series.
    tz : str or None
    period : str or None
        Frequency of periods.
    """

    times: np.ndarray
    indptr: np.ndarray
    ids: pd.Index
    named: bool
    tz: str | None = None
    period: str | None = None

    @cached_property
    def lengths(self) -> np.ndarray:
        """Rows of each series, (S,)."""
        return np.diff(self.indptr)

    @cached_property
    def codes(self) -> np.ndarray:
        """Number of the series of each row, (N,)."""
        return np.repeat(np.arange(len(self.ids)), self.lengths)

    @cached_property
    def inner(self) -> np.ndarray:
        """Rows that have a row before them in their series, ascending."""
        mask = np.ones(len(self.times), bool)
        mask[self.indptr[:-1]] = False
        return np.flatnonzero(mask)

    def steps(self, numbers: np.ndarray) -> np.ndarray:
        """Differences of per-row numbers to the row before, at the rows `inner`."""
        return numbers[self.inner] - numbers[self.inner - 1]

    def series(self, i: int) -> Axis:
        """Return the axis of one series."""
        rows = slice(self.indptr[i], self.indptr[i + 1])
        indptr = np.array([0, self.lengths[i]])
        ids = self.ids[i : i + 1]
        return Axis(self.times[rows], indptr, ids, self.named, self.tz, self.period)

    def where(self, i: int) -> str:
        """Return "series 'a': ", or nothing if the frame has no ids."""
        return f"series {quote(self.ids[i])}: " if self.named else ""

    def show(self, rows: np.ndarray) -> str:
        """Return the first few timestamps of some rows."""
        shown = [show_time(time, self.tz, self.period) for time in self.times[rows[:3]]]
        return listed([*shown, *rows[3:]], 3)

    def describe(self, rows: np.ndarray) -> str:
        """Say how many rows these are, in which series and when, at most three of each."""
        codes, starts = np.unique(self.codes[rows], return_index=True)
        texts = [
            f"{self.where(code)}{_rows(len(part))} at {self.show(part)}"
            for code, part in zip(codes[:3], np.split(rows, starts[1:])[:3], strict=True)
        ]
        more = len(codes) - 3
        return "; ".join(texts) + (f"; and {more} more series" if more > 0 else "")


def show_time(time: object, tz: str | None, period: str | None) -> str:
    """Return a timestamp of an axis as the user wrote it."""
    if isinstance(time, np.datetime64):
        stamp = pd.Timestamp(time)
        text = str(stamp.tz_localize("UTC").tz_convert(tz) if tz else stamp)
        return text.removesuffix(" 00:00:00")
    if period is not None:
        return str(periods(np.array([time], np.int64), period)[0])
    return str(time)


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n} rows"
