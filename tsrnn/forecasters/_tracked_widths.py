r"""Widths of intervals that follow the errors of rows that come after a fit.

A forecast of H steps is made every H rows after the fit. When the value :math:`y_t` that it is of
comes, the logarithm of the width moves by

.. math:: \theta_{t+1} = \theta_t + \frac{\rho}{H} (1[y_t \text{ outside}] - 0.2),

so that over many rows an interval of 80 percent misses a fifth of them, whatever the errors are, as
long as :math:`\theta` stays within its limits. This is the update of adaptive conformal inference
(Gibbs and Candes, 2021), of a width in place of a level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from tsrnn.contract import SeriesArrays, refuse
from tsrnn.data import Panel

RATE = 0.1  # of a horizon whose values all lie outside, nearly: a tenth wider
MISSES = 0.2  # share that an interval of 80 percent leaves
FARTHEST = float(np.log(4.0))  # a width is never moved by more than this factor

# Forecasts from rows k, k + H, k + 2 H, ... of some series: from the positions of the series and k,
# the point forecasts and ends of 80 percent, each of shape (n, H, C), with the widths of the fit.
EndsOf = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


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

    def after(self, panel: Panel, ends_of: EndsOf) -> tuple[Self, np.ndarray]:
        """Widths after further rows of all series, and their factors before each row, (N, C).

        Missing values move nothing.
        """
        horizon, lengths = self.low.shape[1], panel.lengths
        new = self.select(np.arange(panel.n_series))  # copies, which alone are changed
        factors = np.empty_like(panel.values)
        for age in np.unique(self.age):  # series of one age have their forecasts at the same rows
            group, skipped = np.flatnonzero(self.age == age), -age % horizon
            forecast = group[lengths[group] > skipped]
            forecasts = ends_of(forecast, skipped) if len(forecast) else None
            counts = np.zeros_like(lengths)
            counts[forecast] = -((skipped - lengths[forecast]) // horizon)
            first = counts.cumsum() - counts
            for row in range(lengths[group].max()):
                here, step = group[lengths[group] > row], (age + row) % horizon
                if step == 0 and forecasts is not None:
                    new._hold(
                        here, *(e[first[here] + (row - skipped) // horizon] for e in forecasts)
                    )
                at = panel.indptr[here] + row
                factors[at] = new.factors[here]
                new._move(here, step, panel.values[at])
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

    def _move(self, series: np.ndarray, step: int, y: np.ndarray) -> None:
        """Move the widths of some series by values (G, C) of a step of the forecast."""
        outside = (y < self.low[series, step]) | (y > self.high[series, step])
        change = np.where(np.isnan(y), 0.0, RATE / self.low.shape[1] * (outside - MISSES))
        moved = self.log_factors[series] + change
        self.log_factors[series] = np.clip(moved, -FARTHEST, FARTHEST)
