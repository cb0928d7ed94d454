"""Observations of many units, standardised, and the way back to the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tsrnn.linear.garch._model import Model

_CACHED = 2**17  # numbers of a block
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Sample:
    r"""N series that a model can be fitted to.

    Kept is :math:`(y - m) / s` with the mean m (0 for a model without a constant) and the
    standard deviation s of the series.

    Parameters
    ----------
    inputs : ndarray of shape (N, T, m)
        y, its lags and, for a padded model, where there is an observation.
    n_obs : integer ndarray of shape (N,)
        Observations in the likelihood.
    centre, scale : ndarray of shape (N,)
    """

    inputs: np.ndarray
    n_obs: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    @property
    def observed(self) -> np.ndarray:
        """Where there is an observation, shape (N, T)."""
        return np.arange(self.inputs.shape[1]) < self.n_obs[:, None]

    def first_autocorrelation(self) -> np.ndarray:
        """Autocorrelation of each series at lag one, (N,); 0 for one that does not vary."""
        y, n = self.inputs[:, :, 0], self.n_obs
        if (n < y.shape[1]).any():
            y = np.where(self.observed, y, 0.0)
        # From sums of products: the centred series would be an array as large as the data.
        mean = y.sum(1) / n
        ends = y[:, 0] + np.take_along_axis(y, n[:, None] - 1, 1)[:, 0]
        products = np.einsum("nt,nt->n", y[:, 1:], y[:, :-1])
        covariance = products - mean * (2 * n * mean - ends) + (n - 1) * mean**2
        variance = np.einsum("nt,nt->n", y, y) - n * mean**2
        return np.divide(covariance, variance, out=np.zeros(len(y)), where=variance > 0)

    def select(self, units: np.ndarray) -> Sample:
        """Some of the series, by number."""
        return Sample(self.inputs[units], self.n_obs[units], self.centre[units], self.scale[units])


class Spread(NamedTuple):
    """Mean and standard deviation of each series, and whether all of it is finite, (N,)."""

    mean: np.ndarray
    deviation: np.ndarray
    finite: np.ndarray


def spread_of(y: np.ndarray, lengths: np.ndarray) -> Spread:
    """Describe series (N, T) up to their lengths; NaN for one that is not finite."""
    n, steps = y.shape
    found = Spread(np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, dtype=bool))
    for part in _blocks(n, steps):
        inside = np.arange(steps) < lengths[part, None]
        found.finite[part] = (np.isfinite(y[part]) | ~inside).all(1)
        kept = np.where(inside & found.finite[part, None], y[part], 0.0)
        largest = np.abs(kept).max(1)
        unit = np.where(largest > 0, largest, 1.0)  # squares of huge or tiny numbers are neither
        kept /= unit[:, None]
        count = np.maximum(lengths[part], 1)
        mean = kept.sum(1) / count
        kept = np.where(inside, kept - mean[:, None], 0.0)
        deviation = np.sqrt(np.einsum("nt,nt->n", kept, kept) / count)
        found.mean[part], found.deviation[part] = unit * mean, unit * deviation
    found.mean[~found.finite] = found.deviation[~found.finite] = np.nan
    return found


def _blocks(n: int, steps: int) -> list[slice]:
    """Parts of n series that fit into the cache."""
    size = max(1, _CACHED // steps)
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def sample_of(model: Model, y: np.ndarray, lengths: np.ndarray, spread: Spread) -> Sample:
    """Standardise series y of shape (N, T), what lies beyond their lengths not being read."""
    (n, steps), scale = y.shape, spread.deviation
    centre = spread.mean if model.mean.constant else np.zeros(n)
    kept = np.zeros((n, steps))
    for part in _blocks(n, steps):
        standard = (y[part] - centre[part, None]) / scale[part, None]
        kept[part] = np.where(np.arange(steps) < lengths[part, None], standard, 0.0)
    return Sample(design(model, kept, lengths), lengths - model.mean.n_dropped, centre, scale)


def design(model: Model, y: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Inputs of the cell, (N, T - dropped, m), of series (N, T)."""
    first, steps = model.mean.n_dropped, y.shape[1]
    columns = [y[:, first - lag : steps - lag] for lag in (0, *model.mean.lags)]
    if model.padded:
        columns.append((np.arange(first, steps) < lengths[:, None]).astype(float))
    return np.stack(columns, -1) if len(columns) > 1 else columns[0][..., None]


def refusals(model: Model, lengths: np.ndarray, spread: Spread) -> list[str]:
    """Why each series cannot be fitted to; empty where it can."""
    k, dropped = len(model.names), model.mean.n_dropped
    constant = spread.deviation <= _ROUNDING * np.abs(spread.mean)
    reasons = [""] * len(lengths)
    for i in np.flatnonzero(constant | (spread.deviation == 0)):
        reasons[i] = "the series must vary; it is constant. Drop it"
    for i in np.flatnonzero(~spread.finite):
        reasons[i] = "the series must be finite; it has NaN or infinite values"
    for i in np.flatnonzero(lengths - dropped <= k):
        reasons[i] = (
            f"{k} parameters need more than {k + dropped} observations; the series has "
            f"{lengths[i]}. Take lower orders, or give more rows"
        )
    return reasons


def to_user(model: Model, centre: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Map parameters of standardised series to those of the user's: :math:`A \theta + b`.

    Returns
    -------
    matrix : ndarray of shape (N, k, k)
        A.
    offset : ndarray of shape (N, k)
        b.
    """
    n, k = len(scale), len(model.names)
    matrix, offset = np.tile(np.eye(k), (n, 1, 1)), np.zeros((n, k))
    if model.mean.constant:
        matrix[:, 0, 0] = scale
        matrix[:, 0, 1 : 1 + len(model.mean.lags)] = -centre[:, None]
        offset[:, 0] = centre
    log_variance = 2 * np.log(scale)
    if model.vol.log:
        matrix[:, model.omega, model.beta] = -log_variance[:, None]
        offset[:, model.omega] = log_variance
    else:
        matrix[:, model.omega, model.omega] = scale**2
    return matrix, offset
