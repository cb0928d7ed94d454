"""Series of a frame as rows of an array, with their labels and the rows of a season."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.contract import frequency_defaults, positive_integer, unit_index
from tsrnn.data import Panel, read_panel


class Series(NamedTuple):
    """Series of a frame, one per target."""

    panel: Panel
    labels: pd.Index  # (N,)
    values: np.ndarray  # (N, T), NaN where missing and after the end

    @classmethod
    def of(cls, df: Any, frame: dict[str, Any]) -> Series:
        """Read a frame with keywords of `tsrnn.data.read_panel`."""
        panel = read_panel(df, **{"missing": "keep", **frame})
        within = np.arange(panel.lengths.max()) < panel.lengths[:, None]
        values = np.full((*within.shape, panel.values.shape[1]), np.nan)
        values[within] = panel.values
        labels = unit_index(panel.layout, panel.ids, multivariate=False)
        return cls(panel, labels, values.swapaxes(1, 2).reshape(len(labels), -1))

    def period(self, period: int | None) -> int:
        """Return the rows of a season, by frequency if None."""
        if period is None:
            return frequency_defaults(self.panel.layout).season
        return positive_integer("period", period)

    def season(self, period: int | None) -> int:
        """Return the rows of a season, at least two."""
        rows = self.period(period)
        if rows < 2:
            raise ValueError(
                f"a season has at least two rows; got period={period!r} and the frequency "
                f"{self.panel.freq!r}. Give period"
            )
        return rows


def packed(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Move observations to the front of their rows (N, T), zeros behind them, and count them."""
    seen = np.isfinite(values)
    counts = seen.sum(1)
    if (seen[:, 1:] & ~seen[:, :-1]).any():
        order = np.argsort(~seen, axis=1, kind="stable")
        values, seen = np.take_along_axis(values, order, 1), np.take_along_axis(seen, order, 1)
    return np.where(seen, values, 0.0), counts


def in_range(values: np.ndarray) -> np.ndarray:
    """Divide rows (..., T) by a power of two near their size, so that no square overflows."""
    size = np.where(np.isfinite(values), np.abs(values), 0.0).max(axis=-1, keepdims=True, initial=0)
    return values / np.exp2(np.floor(np.log2(np.where(size > 0, size, 1.0))))


def interpolated(values: np.ndarray) -> np.ndarray:
    """Fill gaps of values (T,) linearly, and the ends with the nearest observation."""
    seen = np.isfinite(values)
    if seen.all() or not seen.any():
        return values
    rows = np.arange(len(values))
    return np.interp(rows, rows[seen], values[seen])
