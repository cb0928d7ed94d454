"""Series as the network sees them: standardised rows with their local level and spread."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tsrnn.forecasters._moments import window_moments

FLOOR = 0.1  # in naive errors of the series: a flat stretch is not blown up


@dataclass(frozen=True)
class Units:
    """Units of forecasting, one below the other: a series, or one target of a series.

    Attributes
    ----------
    values : Tensor of shape (N, C + E)
        Standardised targets, then exogenous columns.
    level, spread : Tensor of shape (N, C + E) and (N, C)
        Mean and standard deviation of the last W rows up to each row, fewer at a
        unit's start; the spread of a unit that varies has a floor.
    error_scale : Tensor of shape (N, C)
        Mean size of the differences a season apart in the last W rows, which the sizes of
        forecast errors follow: what a naive forecast would have missed by. Zero for a unit
        without variation.
    indptr : Tensor of shape (U + 1,)
        Unit u has the rows indptr[u] to indptr[u + 1].
    window : int
        W.
    n_targets : int
        C.
    """

    values: Tensor
    level: Tensor
    spread: Tensor
    error_scale: Tensor
    indptr: Tensor
    window: int
    n_targets: int

    @property
    def starts(self) -> Tensor:
        """First row of each unit."""
        return self.indptr[:-1]

    @property
    def lengths(self) -> Tensor:
        """Rows of each unit."""
        return self.indptr.diff()

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> Units:
        """The same units in another precision or on another device."""
        names = "values", "level", "spread", "error_scale"
        moved = {name: getattr(self, name).to(device, dtype) for name in names}
        return replace(self, **moved, indptr=self.indptr.to(device))

    def inputs(self, rows: Tensor) -> Tensor:
        """What enters the network at some rows: (..., C + E)."""
        c = self.n_targets
        spread = self.spread[rows]
        deviation = self.values[rows][..., :c] - self.level[rows][..., :c]
        # A spread of zero belongs to a constant stretch, whose deviation is zero as well.
        return torch.cat(
            [deviation / torch.where(spread > 0, spread, torch.ones_like(spread)),
             self.values[rows][..., c:]], -1,
        )  # fmt: skip

    def lags(self, rows: Tensor, starts: Tensor) -> Tensor:
        """Deviations from the level over the window that ends at each row.

        Parameters
        ----------
        rows, starts : integer Tensor of one shape
            Rows, and the first row of the unit that each belongs to.

        Returns
        -------
        Tensor of shape (..., (C + E) * W)
            Oldest lag first within a column; zero where the unit had not begun.
        """
        w = self.window
        lag_rows = rows[..., None] + torch.arange(1 - w, 1, device=rows.device)
        known = lag_rows >= starts[..., None]
        if bool(known.all()):  # whole windows are rows of a view
            lagged = self.values.unfold(0, w, 1)[rows - w + 1]
            return (lagged - self.level[rows][..., None]).flatten(-2)
        lagged = self.values[lag_rows.clamp(min=0)].movedim(-1, -2)
        deviation = lagged - self.level[rows][..., None]
        return torch.where(known[..., None, :], deviation, torch.zeros_like(deviation)).flatten(-2)


def make_units(
    values: np.ndarray,
    indptr: np.ndarray,
    *,
    window: int,
    n_targets: int,
    season: int,
    constant: np.ndarray,
    local_level: bool,
) -> Units:
    """Units from standardised rows.

    Parameters
    ----------
    values : ndarray of shape (N, C + E)
    indptr : ndarray of shape (U + 1,)
    window, n_targets, season : int
    constant : boolean ndarray of shape (U, C)
        Units without variation: they get no floor, so their forecast is their level.
    local_level : bool
        Without it the level is 0 and the spread 1, or 0 for units without variation.
    """
    rows = torch.as_tensor(values, dtype=torch.float64)
    bounds = torch.as_tensor(indptr, dtype=torch.int64)
    varies = torch.as_tensor(~constant).repeat_interleave(bounds.diff(), 0)
    if not local_level:
        level, spread = torch.zeros_like(rows), varies.to(rows.dtype)
        return Units(rows, level, spread, spread, bounds, window, n_targets)
    moments = window_moments(rows.numpy(), bounds.numpy(), window)
    level, variance = (torch.from_numpy(part) for part in moments)
    floor = FLOOR * varies.to(rows.dtype)
    spread = (variance[:, :n_targets] + floor**2).sqrt()
    naive = _naive_errors(rows[:, :n_targets].numpy(), bounds.numpy(), window, season)
    error_scale = varies * torch.from_numpy(naive).clamp(min=FLOOR)
    return Units(rows, level, spread, error_scale, bounds, window, n_targets)


def _naive_errors(values: np.ndarray, indptr: np.ndarray, window: int, season: int) -> np.ndarray:
    """Mean size of the differences a season apart, both rows in the last `window`: (N, C).

    One row apart where the window has no two seasons. A difference of 1, the naive error of the
    whole series, counts as one more, so that the first rows of a unit have a scale.
    """
    lag = season if 2 * season <= window else 1
    offset = np.arange(len(values)) - np.repeat(indptr[:-1], np.diff(indptr))
    later = np.flatnonzero(offset >= lag)
    found = np.ones_like(values)
    if window > lag and len(later):
        sizes = np.abs(values[later] - values[later - lag])
        pairs = np.concatenate([[0], np.cumsum(np.maximum(np.diff(indptr) - lag, 0))])
        mean, _ = window_moments(sizes, pairs, window - lag)
        count = np.minimum(offset[later] - lag + 1, window - lag)[:, None]
        found[later] = (count * mean + 1) / (count + 1)
    return found
