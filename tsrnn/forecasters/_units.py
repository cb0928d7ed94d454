"""Series as the network sees them: standardised rows with their local level and spread."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tsrnn.forecasters._moments import window_moments

SPREAD_FLOOR = 0.1  # in naive errors of the series: a flat stretch is not blown up


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
        moved = {
            name: getattr(self, name).to(device, dtype) for name in ("values", "level", "spread")
        }
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
    constant: np.ndarray,
    local_level: bool,
) -> Units:
    """Units from standardised rows.

    Parameters
    ----------
    values : ndarray of shape (N, C + E)
    indptr : ndarray of shape (U + 1,)
    window, n_targets : int
    constant : boolean ndarray of shape (U, C)
        Units without variation: they get no floor, so their forecast is their level.
    local_level : bool
        Without it the level is 0 and the spread 1, or 0 for units without variation.
    """
    rows = torch.as_tensor(values, dtype=torch.float64)
    bounds = torch.as_tensor(indptr, dtype=torch.int64)
    varies = torch.as_tensor(~constant).repeat_interleave(bounds.diff(), 0).to(rows.dtype)
    if local_level:
        moments = window_moments(rows.numpy(), bounds.numpy(), window)
        level, variance = (torch.from_numpy(part) for part in moments)
        spread = (variance[:, :n_targets] + (SPREAD_FLOOR * varies) ** 2).sqrt()
    else:
        level, spread = torch.zeros_like(rows), varies
    return Units(rows, level, spread, bounds, window, n_targets)
