"""Which rows are known in which window of a backtest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from tsrnn.data import Panel, panel_frame


class Plan(NamedTuple):
    """Windows of a backtest.

    Attributes
    ----------
    panel : Panel
        All rows, NaN where targets are missing.
    known : integer ndarray of shape (n_windows, S)
        Rows of each series that are known in each window, the oldest window first.
    h, step_size : int
    refit_every : int
        Windows from one fit to the next.
    levels : list of float
    kind : {"mean", "variance"}
    """

    panel: Panel
    known: np.ndarray
    h: int
    step_size: int
    refit_every: int
    levels: list[float]
    kind: str

    @property
    def n_windows(self) -> int:
        """Number of windows."""
        return len(self.known)

    def past(self, window: int) -> pd.DataFrame | pd.Series:
        """Rows known in a window, and no others."""
        return self.rows(np.zeros_like(self.known[window]), self.known[window])

    def new_rows(self, before: int, window: int) -> pd.DataFrame | pd.Series:
        """Rows known in a window that were not in an earlier one."""
        return self.rows(self.known[before], self.known[window])

    def future(self, window: int, columns: list) -> pd.DataFrame | pd.Series:
        """Columns that are known ahead, of the rows that a window forecasts."""
        known = self.known[window]
        return panel_frame(self.panel.between(known, known + self.h), columns)

    def rows(self, starts: np.ndarray, ends: np.ndarray) -> pd.DataFrame | pd.Series:
        """Rows of every series, as a frame."""
        return panel_frame(self.panel.between(starts, ends))

    def times(self, window: int) -> np.ndarray:
        """Times forecast, (S, h)."""
        return self.panel.times[self._ahead(window)]

    def cutoffs(self, window: int) -> np.ndarray:
        """Last times known, (S,)."""
        return self.panel.times[self.panel.indptr[:-1] + self.known[window] - 1]

    def actual(self, window: int) -> np.ndarray:
        """What the forecasts are of, (S, h, C).

        Of variances, squared deviations from the mean of what was known in the first window.
        """
        y = self.panel.values[self._ahead(window)]
        return y if self.kind == "mean" else (y - self._first_means()[:, None]) ** 2

    def first_past(self) -> Panel:
        """Rows known in the first window."""
        return self.panel.between(np.zeros_like(self.known[0]), self.known[0])

    def _first_means(self) -> np.ndarray:
        past = self.first_past()
        seen = np.isfinite(past.values)
        sums, counts = (
            np.add.reduceat(part, past.indptr[:-1], dtype=float)
            for part in (np.where(seen, past.values, 0.0), seen)
        )
        return sums / np.where(counts > 0, counts, np.nan)

    def _ahead(self, window: int) -> np.ndarray:
        """Rows of the panel that are forecast, (S, h)."""
        first = self.panel.indptr[:-1] + self.known[window]
        return first[:, None] + np.arange(self.h)


def make_plan(
    panel: Panel, h: int, n_windows: int, step_size: int, refit_every: int, levels: list[float],
    kind: str,
) -> Plan:  # fmt: skip
    """Windows that end with the last row of every series.

    Raises
    ------
    ValueError
        If a series has no row before the first window.
    """
    ahead = h + step_size * np.arange(n_windows)[::-1]
    shortest = int(np.argmin(panel.lengths))
    if panel.lengths[shortest] <= ahead[0]:
        raise ValueError(
            f"{panel.axis.where(shortest)}{n_windows} windows of h={h}, {step_size} rows apart, "
            f"need more than {ahead[0]} rows; there are {panel.lengths[shortest]}. Take fewer "
            "windows, or a smaller h or step_size"
        )
    return Plan(panel, panel.lengths - ahead[:, None], h, step_size, refit_every, levels, kind)


def units(panel: Panel) -> pd.Index:
    """Names of the series of a tidy frame, series by series, target by target."""
    targets = [str(name) for name in panel.target_names]
    if panel.layout.id_col is None:
        return pd.Index(targets)
    if len(targets) == 1:
        return panel.ids
    return pd.Index([f"{label}/{target}" for label in panel.ids for target in targets])
