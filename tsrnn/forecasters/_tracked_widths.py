r"""Widths of intervals that follow the errors of rows that come after a fit.

A forecast of H steps is made every H rows after the fit. When the value :math:`y_t` that it is of
comes, the logarithm of the width moves by

.. math:: \theta_{t+1} = \theta_t + \frac{\rho}{H} (1[y_t \text{ outside}] - 0.2),

so that over many rows an interval of 80 percent misses a fifth of them, whatever the errors are, as
long as :math:`\theta` stays within its limits. This is the update of adaptive conformal inference
(Gibbs and Candes, 2021), of a width in place of a level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tsrnn.contract import Origins, SeriesArrays, refuse
from tsrnn.data import Panel

RATE = 0.1  # of a horizon whose values all lie outside, nearly: a tenth wider
MISSES = 0.2  # share that an interval of 80 percent leaves
FARTHEST = float(np.log(4.0))  # a width is never moved by more than this factor


@dataclass(frozen=True, eq=False)
class TrackedWidths(SeriesArrays):
    """Widths of S series, and the forecast that the next rows are held against.

    Attributes
    ----------
    log_factors : ndarray of shape (S, C)
        Logarithms of the factors of the widths.
    age : integer ndarray of shape (S,)
        Rows since the forecast, below H; zero where the next row begins another one.
    low, high : ndarray of shape (S, H, C)
        Ends of the forecast; zeros where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tsrnn import LRUForecaster
    >>> wave = pd.Series(np.sin(np.arange(900)) + np.arange(900) / 300)
    >>> LRUForecaster(4).fit(wave).state_.widths.factors
    array([[1.]])
    """

    log_factors: np.ndarray
    age: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def begin(cls, n_series: int, horizon: int, n_targets: int) -> Self:
        """Widths as they are at the end of a fit."""
        ends = np.zeros((n_series, horizon, n_targets))
        return cls(np.zeros((n_series, n_targets)), np.zeros(n_series, np.int64), ends, ends)

    def check(self) -> None:
        """Refuse widths of a file that no rows lead to.

        Raises
        ------
        DamagedFileError
        """
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
        """Factors of the widths, shape (S, C)."""
        return np.exp(self.log_factors)

    def origins(self, panel: Panel) -> Origins:
        """Origins of the forecasts that further rows of all series are held against."""
        horizon, lengths = self.low.shape[1], panel.lengths
        skipped = -self.age % horizon
        counts = np.maximum(-((skipped - lengths) // horizon), 0)
        series = np.repeat(np.arange(len(counts)), counts)
        ordinal = np.arange(len(series)) - np.repeat(counts.cumsum() - counts, counts)
        return Origins.at(panel, series, skipped[series] + ordinal * horizon)

    def after(
        self, panel: Panel, point: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[Self, np.ndarray]:
        """Widths after further rows of all series, and their factors before each row, (N, C).

        Missing values move nothing.

        Parameters
        ----------
        panel : Panel
        point, low, high : ndarray of shape (n, H, C)
            Forecasts from `origins` and their ends of 80 percent, with the widths of the fit.
        """
        horizon, lengths = self.low.shape[1], panel.lengths
        new = self.select(np.arange(panel.n_series))  # copies, which alone are changed
        factors = np.empty_like(panel.values)
        first = self.origins(panel).first
        number = np.full(len(panel.values), -1)  # of the forecast that begins at a row
        number[first] = np.arange(len(first))
        for row in range(lengths.max()):
            here = np.flatnonzero(lengths > row)
            at = panel.indptr[here] + row
            begins = number[at] >= 0
            if begins.any():
                forecast = number[at[begins]]
                new._hold(here[begins], point[forecast], low[forecast], high[forecast])
            factors[at] = np.exp(new.log_factors[here])
            new._move(here, (self.age[here] + row) % horizon, panel.values[at])
        age = (self.age + lengths) % horizon
        new.low[age == 0], new.high[age == 0] = 0.0, 0.0
        return type(self)(new.log_factors, age, new.low, new.high), factors

    def _hold(
        self, series: np.ndarray, point: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> None:
        """Keep a forecast (G, H, C) of some series, its widths moved."""
        factor = self.factors[series][:, None]
        self.low[series] = point + factor * (low - point)
        self.high[series] = point + factor * (high - point)

    def _move(self, series: np.ndarray, step: np.ndarray, y: np.ndarray) -> None:
        """Move the widths of some series by values (G, C) of steps (G,) of the forecasts."""
        outside = (y < self.low[series, step]) | (y > self.high[series, step])
        change = np.where(np.isnan(y), 0.0, RATE / self.low.shape[1] * (outside - MISSES))
        moved = self.log_factors[series] + change
        self.log_factors[series] = np.clip(moved, -FARTHEST, FARTHEST)
