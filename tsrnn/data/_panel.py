"""The panel: what every model of the package is fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data._axis import Axis
from tsrnn.data._layout import Freq, Layout, Name
from tsrnn.data._stamps import period_freq
from tsrnn.data._text import quoted
from tsrnn.data._windows import windows

__all__ = ["Panel"]


@dataclass(frozen=True, eq=False)
class Panel:
    """Regular series of one frequency, one below the other.

    Every row is there. Values are finite; read with ``missing="keep"``, those of targets are NaN
    where they are missing.

    Parameters
    ----------
    values : ndarray of float64, shape (N, n_targets)
        Rows sorted by series, then time; NaN only if read with ``missing="keep"``.
    indptr : ndarray of int64, shape (S + 1,)
        Series i has the rows indptr[i] to indptr[i + 1].
    ids : pandas.Index, shape (S,)
        Ids in order of their first row; the id of a single series without one is 0.
    times : ndarray, shape (N,)
        datetime64[ns], in UTC if the layout has a zone; int64 ordinals of periods; int64 integers.
    exog : ndarray of float64, shape (N, n_exog)
    exog_names : tuple of str or int
    layout : Layout
        Names of the targets, the frequency, and how to give frames back.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import read_panel
    >>> ids, days = ["a", "a", "a", "b", "b"], pd.date_range("2024-01-01", periods=3)
    >>> df = pd.DataFrame({"unique_id": ids, "ds": days[[0, 1, 2, 0, 1]], "y": [1, 2, 3, 7, 8]})
    >>> panel = read_panel(df)
    >>> panel.n_series, panel.lengths, panel.series(1).ravel()
    (2, array([3, 2]), array([7., 8.]))
    """

    values: np.ndarray
    indptr: np.ndarray
    ids: pd.Index
    times: np.ndarray
    exog: np.ndarray
    exog_names: tuple[Name, ...]
    layout: Layout

    @property
    def target_names(self) -> tuple[Name, ...]:
        """Names of the targets."""
        return self.layout.target_names

    @property
    def freq(self) -> Freq:
        """Frequency: a pandas alias, or the step of an integer index."""
        return self.layout.freq

    @property
    def n_series(self) -> int:
        """Number of series S."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each series, shape (S,)."""
        return np.diff(self.indptr)

    @property
    def last_times(self) -> np.ndarray:
        """Last timestamp of each series, shape (S,)."""
        return self.times[self.indptr[1:] - 1]

    @property
    def axis(self) -> Axis:
        """The time side of the panel, for messages."""
        layout = self.layout
        named, period = layout.id_col is not None, period_freq(layout.time_dtype)
        return Axis(self.times, self.indptr, self.ids, named, layout.tz, period)

    def series(self, i: int) -> np.ndarray:
        """Return the values of series i, a view of shape (lengths[i], n_targets)."""
        return self.values[self.indptr[i] : self.indptr[i + 1]]

    def windows(self, length: int, step: int = 1) -> list[np.ndarray]:
        """Return the sliding windows of each series as views, none crossing into another.

        Parameters
        ----------
        length : int
            Rows of a window.
        step : int
            Rows between the starts of neighbouring windows.

        Returns
        -------
        list of ndarray, each of shape (n_windows, length, n_targets)

        Raises
        ------
        ValueError
            If a series is shorter than a window, or an argument is below 1.
        """
        short = np.flatnonzero(self.lengths < length)
        if len(short):
            whose = f" {quoted(self.ids[short])}" if self.layout.id_col else ""
            raise ValueError(
                f"windows of {length} rows need series at least as long; the series{whose} "
                f"has only {self.lengths[short[0]]}. Take a smaller length, or drop short series."
            )
        return [windows(self.series(i), length, step) for i in range(self.n_series)]

    def tail(self, n: int) -> Panel:
        """Return the last n rows of each series, all of a shorter one.

        Raises
        ------
        ValueError
            If n is below 1.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1; got {n}.")
        starts = np.maximum(self.indptr[1:] - n, self.indptr[:-1])
        return self._cut(np.arange(self.n_series), starts, self.indptr[1:])

    def between(self, starts: np.ndarray, ends: np.ndarray) -> Panel:
        """Return the rows from starts[i] up to ends[i] of each series, counted within it.

        Raises
        ------
        ValueError
            If a series would be left without rows, or rows are asked for that are not there.
        """
        wrong = np.flatnonzero((starts < 0) | (ends > self.lengths) | (starts >= ends))
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"rows must lie within the {self.lengths[i]} of the series; got {starts[i]} to "
                f"{ends[i]}."
            )
        first = self.indptr[:-1]
        return self._cut(np.arange(self.n_series), first + starts, first + ends)

    def select(self, which: Any) -> Panel:
        """Return some of the series.

        Parameters
        ----------
        which : array_like
            A boolean mask of shape (S,), or ids in the order wanted.

        Raises
        ------
        ValueError
            If the mask has another length, or an id is unknown or repeated, or none is left.
        """
        mask = np.asarray(which)
        chosen = self._masked(mask) if mask.dtype == bool else self._found(pd.Index(which))
        if len(chosen) == 0:
            raise ValueError("at least one series must be selected; got none.")
        return self._cut(chosen, self.indptr[chosen], self.indptr[chosen + 1])

    def _masked(self, mask: np.ndarray) -> np.ndarray:
        if mask.shape != (self.n_series,):
            raise ValueError(
                f"a mask must have one entry a series, {self.n_series}; got shape {mask.shape}."
            )
        return np.flatnonzero(mask)

    def _found(self, ids: pd.Index) -> np.ndarray:
        chosen = self.ids.get_indexer(ids)
        if np.any(chosen < 0) or ids.has_duplicates:
            wrong = ids[(chosen < 0) | ids.duplicated()]
            raise ValueError(
                f"ids must be known and named once; unknown or repeated are {quoted(wrong)}."
            )
        return chosen

    def _cut(self, chosen: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Panel:
        """Return the rows from starts to ends of the chosen series; views if they are one block."""
        lengths = ends - starts
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        rows: slice | np.ndarray = slice(int(starts[0]), int(ends[-1]))
        if np.any(starts[1:] != ends[:-1]):
            rows = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return replace(
            self,
            values=self.values[rows],
            indptr=indptr,
            ids=self.ids[chosen],
            times=self.times[rows],
            exog=self.exog[rows],
        )
