"""Series of a panel in batches of about one length, scaled to a size of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.linear.arma._prepare import batches, unit_data

_ROUNDING = 1e-12  # range, relative to the size, of a series that does not vary
_FAR = 1e-6  # spread, relative to the size, whose squares come near rounding
CONSTANT = "the series is constant: there is no variance to model. Drop it"


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """Series of about one length, scaled.

    Attributes
    ----------
    units : integer ndarray of shape (N,)
    values : ndarray of shape (N, T)
        Less the centre, of mean size one, NaN where missing and after the end.
    scale, centre : ndarrays of shape (N,)
        The centre is zero but for series far from zero that are asked to be centred.
    """

    units: np.ndarray
    values: np.ndarray
    scale: np.ndarray
    centre: np.ndarray


def scaled_samples(
    panel: Panel,
    refusals: Callable[[np.ndarray, np.ndarray], dict[int, str]],
    centred: bool = False,
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Samples of the units of a panel, and reasons not to fit some.

    ``refusals(values (n, T), count (n,))`` are reasons of a family, by the number of the row;
    series that do not vary are refused besides. Models that move with their data may have series
    far from zero `centred`, whose variance is lost in rounding otherwise.
    """
    for units in batches(panel):
        values, _ = unit_data(panel, units)
        seen = np.isfinite(values)
        count = seen.sum(1)
        n = np.maximum(count, 1)
        size = np.abs(np.where(seen, values, 0.0)).sum(1) / n
        highest = np.where(seen, values, -np.inf).max(1, initial=-np.inf)
        lowest = np.where(seen, values, np.inf).min(1, initial=np.inf)
        refused = refusals(values, count)
        for i in np.flatnonzero(highest - lowest <= _ROUNDING * size):
            refused.setdefault(int(i), CONSTANT)
        reasons = {int(units[i]): reason for i, reason in refused.items()}
        fine = np.setdiff1d(np.arange(len(units)), list(refused))
        mean = np.where(seen, values, 0.0).sum(1) / n
        spread = np.abs(np.where(seen, values - mean[:, None], 0.0)).sum(1) / n
        far = centred & (spread < _FAR * size)
        centre, scale = np.where(far, mean, 0.0), np.where(far, spread, size)
        if len(fine):
            scaled = (values[fine] - centre[fine, None]) / scale[fine, None]
            yield Sample(units[fine], scaled, scale[fine], centre[fine]), reasons
        else:
            yield None, reasons
