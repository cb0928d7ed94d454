"""Seasonal adjustment: a test by the autocorrelation of a season, and classical decomposition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from tsrnn.linear._samples import rows_to_last_value

LIMIT = float(ndtri(0.95))  # critical value of the statistic at 10 percent
LEAST_FACTOR = 1e-2  # of a multiplicative season, which divides the rows
NONE, ADDED, MULTIPLIED = 0, 1, 2


class Season(NamedTuple):
    """Season of each of N series."""

    kind: np.ndarray  # (N,), NONE, ADDED or MULTIPLIED
    indices: np.ndarray  # (N, m), from the first row on; 0 without a season
    statistic: np.ndarray  # (N,), of the test; NaN without a test

    def components(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Terms and factors (N, T) of rows (T,) or (N, T), numbered from the first row fitted."""
        places = np.broadcast_to(rows, (len(self.kind), rows.shape[-1])) % self.indices.shape[1]
        values, kind = np.take_along_axis(self.indices, places, 1), self.kind[:, None]
        return np.where(kind == ADDED, values, 0.0), np.where(kind == MULTIPLIED, values, 1.0)


def season_of(values: np.ndarray, period: int, seasonal: str) -> Season:
    """Season of series (N, T), NaN where missing and after the end.

    seasonal="auto" takes a season if the test is significant, and a multiplicative one if all
    values are positive and no index is very small.
    """
    n, span = len(values), rows_to_last_value(values)
    season = Season(np.zeros(n, np.int64), np.zeros((n, period)), np.full(n, np.nan))
    if period == 1 or seasonal == "none":
        return season
    long = np.flatnonzero(span >= 2 * period)
    if seasonal == "auto" and len(long):
        season.statistic[long] = seasonality(values[long], period)
        long = long[season.statistic[long] > LIMIT]
    if not len(long):
        return season
    product = np.full(len(long), seasonal == "mul")
    if seasonal == "auto":
        product = np.nanmin(values[long], 1) > 0
    indices = seasonal_indices(values[long], period, product)
    small = product & (indices.min(1) < LEAST_FACTOR) & (seasonal == "auto")
    if small.any():
        product &= ~small
        indices[small] = seasonal_indices(values[long[small]], period, product[small])
    season.kind[long], season.indices[long] = np.where(product, MULTIPLIED, ADDED), indices
    return season


def seasonality(values: np.ndarray, period: int) -> np.ndarray:
    r"""Autocorrelation (N,) at the seasonal lag over Bartlett's standard error.

    .. math:: |r_m| \Big/ \sqrt{\big(1 + 2 \textstyle\sum_{i<m} r_i^2\big) / n}
    """
    seen = np.isfinite(values)
    count = seen.sum(1)
    centred = np.where(seen, values, 0.0)
    centred = np.where(seen, centred - (centred.sum(1) / count)[:, None], 0.0)
    size = np.einsum("nt,nt->n", centred, centred)
    lags = np.arange(1, period + 1)
    products = [np.einsum("nt,nt->n", centred[:, k:], centred[:, :-k]) for k in lags]
    r = np.stack(products) / np.where(size > 0, size, 1.0)
    return np.abs(r[-1]) / np.sqrt((1 + 2 * (r[:-1] ** 2).sum(0)) / count)


def seasonal_indices(values: np.ndarray, period: int, product: np.ndarray) -> np.ndarray:
    """Indices (N, period) of series (N, T); `product` (N,) marks multiplicative seasons.

    Deviations from a moving average over a season are averaged over the seasons. Additive ones sum
    to zero, multiplicative ones have mean one. Lines bridge gaps in the moving average only.
    """
    n, length = values.shape
    bridged = without_gaps(values)
    half, width = period // 2, length - 2 * (period // 2)
    trend = np.full(values.shape, np.nan)
    inner = np.zeros((n, width))
    for k in range(2 * half + 1):
        weight = 0.5 if period % 2 == 0 and k in (0, 2 * half) else 1.0
        inner += weight / period * bridged[:, k : k + width]
    trend[:, half : half + width] = inner
    seasons = -(-length // period)
    rest = np.full((n, seasons * period), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # quotients of additive seasons, unused
        rest[:, :length] = np.where(product[:, None], values / trend, values - trend)
    rest = rest.reshape(n, seasons, period)
    seen = np.isfinite(rest)
    count, total = seen.sum(1), np.where(seen, rest, 0.0).sum(1)
    neutral = np.where(product, 1.0, 0.0)[:, None]
    # A step of the season that falls into gaps every time gets the neutral index.
    indices = np.where(count > 0, total / np.maximum(count, 1), neutral)
    mean = indices.mean(1, keepdims=True)
    return np.where(product[:, None], indices / np.where(product[:, None], mean, 1), indices - mean)


def without_gaps(values: np.ndarray) -> np.ndarray:
    """Interpolate missing values (N, T) linearly; NaN before the first and after the last."""
    missing = np.isnan(values)
    gappy = np.flatnonzero(missing.any(1))
    if not len(gappy):
        return values
    bridged, steps = values.copy(), np.arange(values.shape[1])
    lacking = missing[gappy]
    before = np.maximum.accumulate(np.where(lacking, -1, steps), 1)
    after = np.minimum.accumulate(np.where(lacking, len(steps), steps)[:, ::-1], 1)[:, ::-1]
    inside = lacking & (before >= 0) & (after < len(steps))
    row, column = np.nonzero(inside)
    left, right, series = before[row, column], after[row, column], gappy[row]
    share = (column - left) / (right - left)
    bridged[series, column] = (1 - share) * values[series, left] + share * values[series, right]
    return bridged
