"""Origins and score of rolling forecasts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.data import Panel


class Origins(NamedTuple):
    """Origins of rolling forecasts: the last known row, then every step-th new row.

    Attributes
    ----------
    counts : integer ndarray of shape (S,)
        Number of origins of each series.
    series : integer ndarray of shape (n,)
        Series of each origin.
    ordinal : integer ndarray of shape (n,)
        Position of the origin within its series, from 0.
    first : integer ndarray of shape (n,)
        Row of the panel at the first forecast step.
    offset : integer ndarray of shape (n,)
        Position of that row within its series.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.contract import Origins
    >>> from tsrnn.data import read_panel
    >>> panel = read_panel(pd.Series(range(6), pd.date_range("2024-01-01", periods=6)))
    >>> Origins.of(panel, h=2, step=2).first
    array([0, 2, 4])
    """

    counts: np.ndarray
    series: np.ndarray
    ordinal: np.ndarray
    first: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, panel: Panel, h: int, step: int) -> Origins:
        """Return the origins in a panel, every step-th row with h rows to forecast.

        Raises
        ------
        ValueError
            If a series has fewer than h rows.
        """
        shortest = int(np.argmin(panel.lengths))
        if panel.lengths[shortest] < h:
            raise ValueError(
                f"{panel.axis.where(shortest)}rolling forecasts of h={h} steps need at least {h} "
                f"new rows; there are {panel.lengths[shortest]}. Give more rows, or take a "
                "smaller h"
            )
        step = min(step, int(panel.lengths.max()))  # larger steps give the same origins
        counts = (panel.lengths - h) // step + 1
        series = np.repeat(np.arange(len(counts)), counts)
        ordinal = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)
        return cls.at(panel, series, ordinal * step)

    @classmethod
    def at(cls, panel: Panel, series: np.ndarray, offset: np.ndarray) -> Origins:
        """Return the origins (n,) after `offset` rows of each series, sorted by series."""
        counts = np.bincount(series, minlength=panel.n_series)
        ordinal = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)
        return cls(counts, series, ordinal, panel.indptr[series] + offset, offset)

    def union(self, others: Origins, panel: Panel) -> tuple[Origins, np.ndarray, np.ndarray]:
        """Return the union with other origins, and the positions of both in it."""
        rows = np.concatenate([self.first, others.first])
        first, places = np.unique(rows, return_inverse=True)
        series = np.searchsorted(panel.indptr, first, "right") - 1
        every = Origins.at(panel, series, first - panel.indptr[series])
        return every, places[: len(self.first)], places[len(self.first) :]

    def of_series(self, number: int) -> Origins:
        """Return the origins of one series, for a panel of that series alone."""
        offset = self.offset[self.series == number]
        ordinal, counts = np.arange(len(offset)), self.counts[[number]]
        return Origins(counts, np.zeros_like(ordinal), ordinal, offset, offset)

    def cutoffs(self, panel: Panel, last_times: np.ndarray) -> np.ndarray:
        """Return the last known timestamp at each origin, (n,)."""
        return np.where(self.ordinal == 0, last_times[self.series], panel.times[self.first - 1])

    def times(self, panel: Panel, h: int) -> np.ndarray:
        """Return the forecast timestamps, (n, h)."""
        return panel.times[self.first[:, None] + np.arange(h)]


def r_squared(panel: Panel, forecast: np.ndarray, scale: np.ndarray) -> float:
    """Return 1 - MSE / s^2, averaged over series and targets.

    Missing values, and targets without any value, are ignored. Forecasts have shape (S, h, C),
    where h is at least the length of the longest series; `scale` has the standard deviations s,
    shape (S, C).
    """
    starts, lengths = panel.indptr[:-1], panel.lengths
    series = np.repeat(np.arange(panel.n_series), lengths)
    steps = np.arange(len(series)) - np.repeat(starts, lengths)
    with np.errstate(over="ignore"):
        squares = ((panel.values - forecast[series, steps]) / scale[series]) ** 2
        seen = ~np.isnan(panel.values)
        counts = np.add.reduceat(seen, starts, dtype=float)
        sums = np.add.reduceat(np.where(seen, squares, 0.0), starts)
    if not counts.any():
        raise ValueError("a score needs values to compare with; all values of df are missing")
    score = float(np.mean(1 - sums[counts > 0] / counts[counts > 0]))
    if np.isinf(score):
        raise ValueError(
            "a score needs squared errors in units of the training data's variance that are "
            "numbers; they overflow. Replace the values of df that lie so far from the data"
        )
    return score
