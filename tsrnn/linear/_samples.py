"""Series of a panel in batches of about one length, scaled to a size of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.linear.arma._prepare import batches, unit_data

_ROUNDING = 1e-12  # range, relative to the size, of a series that does not vary
CONSTANT = "the series is constant: there is no variance to model. Drop it"


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """Series of about one length, scaled.

    Attributes
    ----------
    units : integer ndarray of shape (N,)
    values : ndarray of shape (N, T)
        Of mean size one, NaN where missing and after the end.
    scale : ndarray of shape (N,)
    """

    units: np.ndarray
    values: np.ndarray
    scale: np.ndarray


def scaled_samples(
    panel: Panel, refusals: Callable[[np.ndarray, np.ndarray], dict[int, str]]
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Samples of the units of a panel, and reasons not to fit some.

    ``refusals(values (n, T), count (n,))`` are reasons of a family, by the number of the row;
    series that do not vary are refused besides.
    """
    for units in batches(panel):
        values, _ = unit_data(panel, units)
        seen = np.isfinite(values)
        count = seen.sum(1)
        size = np.abs(np.where(seen, values, 0.0)).sum(1) / np.maximum(count, 1)
        highest = np.where(seen, values, -np.inf).max(1, initial=-np.inf)
        lowest = np.where(seen, values, np.inf).min(1, initial=np.inf)
        refused = refusals(values, count)
        for i in np.flatnonzero(highest - lowest <= _ROUNDING * size):
            refused.setdefault(int(i), CONSTANT)
        reasons = {int(units[i]): reason for i, reason in refused.items()}
        fine = np.setdiff1d(np.arange(len(units)), list(refused))
        if len(fine):
            yield Sample(units[fine], values[fine] / size[fine, None], size[fine]), reasons
        else:
            yield None, reasons
