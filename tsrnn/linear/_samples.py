"""Series of a panel in batches of about one length, scaled to a size or a spread of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.linear.arma._prepare import batches, unit_data

_ROUNDING = 1e-12  # range, relative to the size, of a series that rounding alone lets vary


@dataclass(frozen=True, eq=False)
class Scaled(SeriesArrays):
    """Series less a centre, over a scale.

    Attributes
    ----------
    values : ndarray of shape (N, T)
    scale, centre : ndarrays of shape (N,)
    """

    values: np.ndarray
    scale: np.ndarray
    centre: np.ndarray


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """Series of about one length.

    Attributes
    ----------
    units : integer ndarray of shape (N,)
    values : ndarray of shape (N, T)
        In the units of the data, NaN where missing and after the end.
    """

    units: np.ndarray
    values: np.ndarray

    @cached_property
    def sized(self) -> Scaled:
        """Series of a mean size of one, for models to which zero means something."""
        size = _mean(np.abs(self.values))
        size = np.where(size > 0, size, 1.0)  # of zeros alone
        return Scaled(self.values / size[:, None], size, np.zeros(len(size)))

    @cached_property
    def centred(self) -> Scaled:
        """Series less their mean, of a mean distance from it of one, for models of any level.

        Far from zero the variance of a series of size one would be lost in rounding.
        """
        # Rounding may take the mean of equal values from among them.
        mean = np.clip(_mean(self.values), np.nanmin(self.values, 1), np.nanmax(self.values, 1))
        away = self.values - mean[:, None]
        spread = _mean(np.abs(away))
        spread = np.where(spread > 0, spread, self.sized.scale)  # of a constant
        return Scaled(away / spread[:, None], spread, mean)


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean (N,) over the rows (N, T) that are there."""
    seen = np.isfinite(values)
    return np.where(seen, values, 0.0).sum(1) / seen.sum(1)


def scaled_samples(
    panel: Panel, refusals: Callable[[np.ndarray, np.ndarray], dict[int, str]]
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Samples of the units of a panel, and reasons not to fit some.

    ``refusals(values (n, T), count (n,))`` are reasons of a family, by the number of the row.
    """
    for units in batches(panel):
        values, _ = unit_data(panel, units)
        seen = np.isfinite(values)
        refused = refusals(values, seen.sum(1))
        reasons = {int(units[i]): reason for i, reason in refused.items()}
        fine = np.setdiff1d(np.arange(len(units)), list(refused))
        if not len(fine):
            yield None, reasons
            continue
        yield Sample(units[fine], without_rounding(values[fine])), reasons


def without_rounding(values: np.ndarray) -> np.ndarray:
    """Series (N, T), those that rounding alone lets vary replaced by their first value."""
    seen = np.isfinite(values)
    highest = np.where(seen, values, -np.inf).max(1)
    lowest = np.where(seen, values, np.inf).min(1)
    size = np.maximum(np.abs(highest), np.abs(lowest))
    still = np.flatnonzero(highest - lowest <= _ROUNDING * size)
    if not len(still):
        return values
    values, first = values.copy(), seen.argmax(1)
    values[still] = np.where(seen[still], values[still, first[still]][:, None], np.nan)
    return values
