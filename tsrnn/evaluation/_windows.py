"""Windows of a backtest: the rows of each series that are known in each of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from tsrnn.data import Panel, panel_frame, quote
from tsrnn.evaluation._losses import ENOUGH


class Plan(NamedTuple):
    """Windows of a backtest.

    `panel` has all rows, NaN where targets are missing. `known` (n_windows, S) counts the rows of
    each series known in each window, oldest first. Models are refitted every `refit_every` windows.
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

    def past(self, window: int, series: np.ndarray | None = None) -> pd.DataFrame | pd.Series:
        """Frame of the rows known in a window, of given series or of all."""
        return self.rows(np.zeros_like(self.known[window]), self.known[window], series)

    def rows(
        self,
        starts: np.ndarray,
        ends: np.ndarray,
        series: np.ndarray | None = None,
        columns: list | None = None,
    ) -> pd.DataFrame | pd.Series:
        """Frame of rows `starts` to `ends`, shape (S,), of given series or of all."""
        panel = self.panel
        if series is not None and len(series) < panel.n_series:
            mask = np.isin(np.arange(panel.n_series), series)  # ids may be True and False as well
            panel, starts, ends = panel.select(mask), starts[mask], ends[mask]
        return panel_frame(panel.between(starts, ends), columns)

    def times(self, known: np.ndarray) -> np.ndarray:
        """Times of the h rows after the first `known` (S,) of each series, (S, h)."""
        return self.panel.times[self._ahead(known)]

    def cutoffs(self, window: int) -> np.ndarray:
        """Last times known, (S,)."""
        return self.panel.times[self.panel.indptr[:-1] + self.known[window] - 1]

    def first_past(self) -> Panel:
        """Rows known in the first window."""
        return self.panel.between(np.zeros_like(self.known[0]), self.known[0])

    def actual(self, window: int) -> np.ndarray:
        """Actual values of the forecasts, (S, h, C).

        For variances, squared deviations from the mean of the rows known in the first window.
        """
        y = self.panel.values[self._ahead(self.known[window])]
        if self.kind == "mean":
            return y
        past = self.first_past()
        seen = np.isfinite(past.values)
        sums, counts = (
            np.add.reduceat(part, past.indptr[:-1], dtype=float)
            for part in (np.where(seen, past.values, 0.0), seen)
        )
        means = sums / np.where(counts > 0, counts, np.nan)
        return (y - means[:, None]) ** 2

    def _ahead(self, known: np.ndarray) -> np.ndarray:
        """Row numbers (S, h) of the panel after the first `known` (S,) of each series."""
        first = self.panel.indptr[:-1] + known
        return first[:, None] + np.arange(self.h)


def choose_windows(lengths: np.ndarray, h: int, step_size: int | None) -> tuple[int, int, str]:
    """Choose the number of windows and the steps between them, and remark on the choice.

    Windows lie in the second half of the shortest series, so that the first fit has the other half.
    Their number is `ENOUGH` for tests, or as many as fit; without `step_size` they overlap where
    that gives more of them. Series below half the median length do not count as the shortest: they
    would leave no windows to the others.
    """
    shortest = int(lengths[2 * lengths >= np.median(lengths)].min())
    room = max(shortest - shortest // 2 - h, 0)  # rows between the first and the last cutoff
    step = min(h, max(room // (ENOUGH - 1), 1)) if step_size is None else step_size
    n_windows = min(ENOUGH, 1 + room // step)
    shortest_series = "series" if len(lengths) == 1 else "shortest series"
    half = f"the second half of the {shortest_series}, of {shortest} rows"
    remark = ""
    if n_windows < ENOUGH:
        remark = (
            f"These are as many windows as fit into {half}; with more of them, by n_windows=, the "
            "first fit has fewer rows."
        )
    elif step_size is None and step < h:
        apart = "1 row" if step == 1 else f"{step} rows"
        remark = f"The windows are {apart} apart and overlap, so that {ENOUGH} fit into {half}."
    return n_windows, step, remark


def too_short(panel: Panel, h: int, n_windows: int, step_size: int) -> dict[int, str]:
    """Reasons, by series number, of series without a row before the first window."""
    needed = h + step_size * (n_windows - 1)
    return {
        int(i): f"{f'{n_windows} windows' if n_windows > 1 else 'a window'} of h={h}"
        + (f", {step_size} rows apart, need" if n_windows > 1 else " needs")
        + f" more than {needed} rows; there are {panel.lengths[i]}"
        for i in np.flatnonzero(panel.lengths <= needed)
    }


def make_plan(
    panel: Panel, h: int, n_windows: int, step_size: int, refit_every: int, levels: list[float],
    kind: str,
) -> Plan:  # fmt: skip
    """Windows that end with the last row of every series."""
    short = too_short(panel, h, n_windows, step_size)
    if short:
        worst = min(short, key=lambda i: int(panel.lengths[i]))
        raise ValueError(
            f"{panel.axis.where(worst)}{short[worst]}. Take fewer windows, or a smaller h or "
            "step_size"
        )
    ahead = h + step_size * np.arange(n_windows)[::-1]
    return Plan(panel, panel.lengths - ahead[:, None], h, step_size, refit_every, levels, kind)


def series_names(panel: Panel) -> pd.Index:
    """Names of the series of a tidy frame, series by series, target by target."""
    targets = [str(name) for name in panel.target_names]
    if panel.layout.id_col is None:
        names = pd.Index(targets)
    elif len(targets) == 1:
        return panel.ids
    else:
        names = pd.Index([f"{label}/{target}" for label in panel.ids for target in targets])
    if not names.is_unique:
        raise ValueError(
            f"series and targets must have different names as text; several are "
            f"{quote(names[names.duplicated()][0])}. Rename columns or ids"
        )
    return names
