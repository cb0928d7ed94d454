r"""Interval widths that adapt to the errors of rows after a fit.

A forecast of H steps is made every H rows after the fit. With each later value :math:`y_t`, the
logarithm of the width changes by

.. math:: \theta_{t+1} = \theta_t + \frac{\rho}{H} (1[y_t \text{ outside}] - 0.2),

so that in the long run an 80 percent interval misses a fifth of the rows, whatever the errors are,
as long as :math:`\theta` stays within its limits. Adaptive conformal inference (Gibbs and Candes,
2021) updates the level in this way; here it is the width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tsrnn.contract import Origins, SeriesArrays, refuse
from tsrnn.data import Panel

RATE = 0.1  # rho: a horizon whose values all lie outside widens the interval by about a tenth
MISSES = 0.2  # nominal share of misses of an 80 percent interval
FARTHEST = float(np.log(4.0))  # largest absolute log factor


@dataclass(frozen=True, eq=False)
class TrackedWidths(SeriesArrays):
    """Width factors of S series, and the forecast that the next rows are compared with.

    `log_factors` have shape (S, C); `age`, shape (S,), is the number of rows since the forecast,
    below H, and zero if the next row starts another one; `low` and `high`, shape (S, H, C), are the
    interval ends of the forecast, zeros without one.
    """

    log_factors: np.ndarray
    age: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def begin(cls, n_series: int, horizon: int, n_targets: int) -> Self:
        """Widths at the end of a fit, with factors of one."""
        ends = np.zeros((n_series, horizon, n_targets))
        return cls(np.zeros((n_series, n_targets)), np.zeros(n_series, np.int64), ends, ends)

    def check(self) -> None:
        """Raise `DamagedFileError` if no rows lead to such widths."""
        if not (np.abs(self.log_factors) <= FARTHEST).all():
            largest = float(np.abs(self.log_factors).max())
            raise refuse("logarithms of widths", f"at most {FARTHEST:.2f}", largest)
        horizon = self.low.shape[1]
        if not ((self.age >= 0) & (self.age < horizon)).all():
            raise refuse("rows since a forecast", f"below {horizon}", self.age[:8].tolist())
        if not (np.isfinite(self.low) & np.isfinite(self.high) & (self.low <= self.high)).all():
            raise refuse("ends of a tracked forecast", "finite and in order", "other numbers")

    @property
    def factors(self) -> np.ndarray:
        """Width factors, shape (S, C)."""
        return np.exp(self.log_factors)

    def origins(self, panel: Panel) -> Origins:
        """Origins of the forecasts that further rows of all series are compared with."""
        horizon, lengths = self.low.shape[1], panel.lengths
        skipped = -self.age % horizon
        counts = np.maximum(-((skipped - lengths) // horizon), 0)
        series = np.repeat(np.arange(len(counts)), counts)
        ordinal = np.arange(len(series)) - np.repeat(counts.cumsum() - counts, counts)
        return Origins.at(panel, series, skipped[series] + ordinal * horizon)

    def after(
        self, panel: Panel, point: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[Self, np.ndarray]:
        """Widths after further rows of all series, and factors before each row, shape (N, C).

        NaN in the panel changes no width. Forecasts from `origins` and their 80 percent intervals,
        with the widths of the fit, have shape (n, H, C).
        """
        horizon, lengths = self.low.shape[1], panel.lengths
        new = self.select(np.arange(panel.n_series))  # a copy, to be changed in place
        factors = np.empty_like(panel.values)
        first = self.origins(panel).first
        number = np.full(len(panel.values), -1)  # position of the forecast that starts at a row
        number[first] = np.arange(len(first))
        for row in range(lengths.max()):
            here = np.flatnonzero(lengths > row)
            at = panel.indptr[here] + row
            begins = number[at] >= 0
            if begins.any():
                forecast = number[at[begins]]
                new._store_forecast(here[begins], point[forecast], low[forecast], high[forecast])
            factors[at] = np.exp(new.log_factors[here])
            new._update_factors(here, (self.age[here] + row) % horizon, panel.values[at])
        age = (self.age + lengths) % horizon
        new.low[age == 0], new.high[age == 0] = 0.0, 0.0
        return type(self)(new.log_factors, age, new.low, new.high), factors

    def _store_forecast(
        self, series: np.ndarray, point: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> None:
        """Store forecasts of some series, shape (G, H, C), with the current widths."""
        factor = self.factors[series][:, None]
        self.low[series] = point + factor * (low - point)
        self.high[series] = point + factor * (high - point)

    def _update_factors(self, series: np.ndarray, step: np.ndarray, y: np.ndarray) -> None:
        """Update the factors of some series by values, (G, C), at steps, (G,), of the forecasts."""
        outside = (y < self.low[series, step]) | (y > self.high[series, step])
        change = np.where(np.isnan(y), 0.0, RATE / self.low.shape[1] * (outside - MISSES))
        moved = self.log_factors[series] + change
        self.log_factors[series] = np.clip(moved, -FARTHEST, FARTHEST)
