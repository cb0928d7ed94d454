"""What a fitted forecaster remembers of the series: enough to go on, not their whole past."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.data import Panel, Scaler
from tsrnn.forecasters._boxcox import boxcox, inverse_boxcox

FARTHEST = 1e30  # from the mean in units of the scale: float32 ends at 3e38
SMALLEST_SCALE = 0.02  # in standard deviations: a season that repeats exactly is not blown up


@dataclass(frozen=True)
class Scaling:
    """Standardisation of series: targets series by series, exogenous columns together.

    Attributes
    ----------
    target : Scaler
        Mean, and the mean absolute error of the (seasonal) naive forecast one season ahead, as
        in the MASE of Hyndman and Koehler (2006): series count in a loss by how their errors
        compare with it. Of transformed targets.
    exog : Scaler
    constant : boolean ndarray of shape (S, C)
        Whether the target does not vary.
    deviation : ndarray of shape (S, C)
        Standard deviation of the targets, in the units of the data.
    boxcox : float, optional
        Exponent of the transformation of the targets.
    """

    target: Scaler
    exog: Scaler
    constant: np.ndarray
    deviation: np.ndarray
    boxcox: float | None = None

    def transform(self, values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
        """Standardise rows (N, C + E) of all series."""
        n_targets = self.constant.shape[1]
        return np.hstack(
            [
                self.target.transform(boxcox(values[:, :n_targets], self.boxcox), indptr),
                self.exog.transform(values[:, n_targets:]),
            ]
        )

    def back(self, values: np.ndarray) -> np.ndarray:
        """From transformed targets to the units of the data."""
        return inverse_boxcox(values, self.boxcox)

    def select(self, series: np.ndarray) -> Scaling:
        """Those of some series."""
        target = Scaler(self.target.location[series], self.target.scale[series])
        deviation = self.deviation[series]
        return Scaling(target, self.exog, self.constant[series], deviation, self.boxcox)


def fit_scaling(
    panel: Panel,
    rows: np.ndarray,
    season: int,
    exponent: float | None = None,
    exog: Scaler | None = None,
) -> Scaling:
    """Scaling from the first `rows` rows of each series, shape (S,); `exog` if it is given."""
    keep = np.arange(len(panel.values)) - np.repeat(panel.indptr[:-1], panel.lengths)
    mask = keep < np.repeat(rows, panel.lengths)
    indptr = np.concatenate([[0], np.cumsum(rows)])
    values = panel.values[mask]
    raw, changed = Scaler.fit(values, indptr), boxcox(values, exponent)
    target = raw if exponent is None else Scaler.fit(changed, indptr)
    low = np.minimum.reduceat(values, indptr[:-1])
    constant = low == np.maximum.reduceat(values, indptr[:-1])
    relative = _naive_error(target.transform(changed, indptr), indptr, season)
    relative = np.where(constant, 1.0, np.maximum(relative, SMALLEST_SCALE))
    return Scaling(
        Scaler(target.location, target.scale * relative),
        exog or Scaler.fit(panel.exog[mask], indptr, pooled=True),
        constant,
        raw.scale,
        exponent,
    )


def _naive_error(values: np.ndarray, indptr: np.ndarray, season: int) -> np.ndarray:
    """Mean absolute difference of rows a season apart, series by series: (S, C).

    Of neighbouring rows where a series has less than two seasons.
    """
    lengths = np.diff(indptr)
    lag = np.where(lengths >= 2 * season, season, 1)
    offset = np.arange(len(values)) - np.repeat(indptr[:-1], lengths)
    lags = np.repeat(lag, lengths)
    before = np.where(offset >= lags, np.arange(len(values)) - lags, np.arange(len(values)))
    sums = np.add.reduceat(np.abs(values - values[before]), indptr[:-1])
    return sums / np.maximum(lengths - lag, 1)[:, None]


@dataclass(frozen=True)
class Memory:
    """State of every series after its last row.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    fitted : integer ndarray of shape (S,)
        Numbers among the series fitted to; -1 for others.
    last_times : ndarray of shape (S,)
    n_rows : integer ndarray of shape (S,)
        Rows seen so far.
    scaling : Scaling
    tail : list of S ndarrays of shape (<= W, C + E)
        Last rows, in the units of the data.
    state : Tensor of shape (layers, U, state_size)
        Of each unit: series by series, target by target.
    """

    ids: pd.Index
    fitted: np.ndarray
    last_times: np.ndarray
    n_rows: np.ndarray
    scaling: Scaling
    tail: list[np.ndarray]
    state: Tensor

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviation of each target in the training part, (S, C)."""
        return self.scaling.deviation

    @property
    def units_per_series(self) -> int:
        """Units of forecasting of a series: 1, or one a target."""
        return self.state.shape[1] // len(self.ids)

    def replaced(self, which: np.ndarray, new: Memory) -> Memory:
        """With the series numbered `which` as they stand in `new`."""
        last_times, n_rows, tail = self.last_times.copy(), self.n_rows.copy(), list(self.tail)
        last_times[which], n_rows[which] = new.last_times, new.n_rows
        for i, rows in zip(which, new.tail, strict=True):
            tail[i] = rows
        state = self.state.clone()
        state[:, self._units(which)] = new.state
        return replace(self, last_times=last_times, n_rows=n_rows, tail=tail, state=state)

    def select(self, which: np.ndarray) -> Memory:
        """Of some series."""
        return Memory(
            self.ids[which],
            self.fitted[which],
            self.last_times[which],
            self.n_rows[which],
            self.scaling.select(which),
            [self.tail[i] for i in which],
            self.state[:, self._units(which)],
        )

    def _units(self, which: np.ndarray) -> Tensor:
        """Numbers of the units of some series."""
        per_series = self.units_per_series
        return torch.as_tensor((which[:, None] * per_series + np.arange(per_series)).ravel())


def standardise(panel: Panel, scaling: Scaling) -> np.ndarray:
    """Rows (N, C + E) of a panel on the scale of the network.

    Raises
    ------
    ValueError
        If some are so far from the data fitted to that float32 cannot hold them.
    """
    with np.errstate(over="ignore"):
        rows = scaling.transform(np.hstack([panel.values, panel.exog]), panel.indptr)
    for j, name in enumerate((*panel.target_names, *panel.exog_names)):
        far = np.flatnonzero(np.abs(rows[:, j]) > FARTHEST)
        if len(far):
            raise ValueError(
                f"values of the column {name!r} must lie within {FARTHEST:g} times the scale of "
                f"the data fitted to; farther are {panel.axis.describe(far)}. Replace these "
                "values, or fit to data with values of their size"
            )
    return rows


def tails(panel: Panel, rows: int) -> list[np.ndarray]:
    """Copies of the last rows of each series, (<= rows, C + E)."""
    end = panel.tail(rows)
    values = np.hstack([end.values, end.exog])
    return [values[lo:hi].copy() for lo, hi in zip(end.indptr[:-1], end.indptr[1:], strict=True)]


def joined_tails(memory: Memory, panel: Panel) -> list[np.ndarray]:
    """Remembered rows of each series and those of `panel` after them."""
    rows = np.hstack([panel.values, panel.exog])
    return [
        np.vstack([old, rows[lo:hi]])
        for old, lo, hi in zip(memory.tail, panel.indptr[:-1], panel.indptr[1:], strict=True)
    ]
