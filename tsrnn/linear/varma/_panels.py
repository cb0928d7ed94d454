"""Panels as samples of the likelihood, and back."""

from __future__ import annotations

import numpy as np

from tsrnn.data import Panel
from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._shape import Shape


def sample_of(
    shape: Shape, panel: Panel, seen: np.ndarray | None = None, presample: np.ndarray | None = None
) -> Sample:
    """Series of a panel side by side.

    Parameters
    ----------
    shape : Shape
    panel : Panel
    seen : integer array of shape (S,), optional
        Rows before these, which the trend counts.
    presample : array of shape (S, n), optional
        By default `presample_of` the panel.
    """
    rows, longest = panel.lengths, int(panel.lengths.max())
    inside = np.arange(longest) < rows[:, None]
    y = np.full((panel.n_series, longest, shape.n), np.nan)
    y[inside] = panel.values
    exog = np.zeros((panel.n_series, longest, shape.n_exog))
    exog[inside] = panel.exog
    before = np.zeros(panel.n_series, int) if seen is None else seen
    design = np.concatenate([trend_of(shape, before, longest), exog], 2)
    if presample is None:
        presample = presample_of(shape, y)
    return Sample(shape, y, design, presample, rows)


def trend_of(shape: Shape, seen: np.ndarray, steps: int) -> np.ndarray:
    """Trend columns (S, steps, n_trend) of rows after those seen: 1 and t = 1, 2, ..."""
    t = seen[:, None] + np.arange(1.0, steps + 1)
    return np.stack([np.ones_like(t), t], 2)[..., : shape.n_trend]


def presample_of(shape: Shape, y: np.ndarray) -> np.ndarray:
    """What the trend by itself says of the row before the first, (S, n), by least squares."""
    units, steps, n = y.shape
    result = np.zeros((units, n))
    if shape.exact or not shape.n_trend:
        return result
    X = trend_of(shape, np.zeros(1, int), steps)[0]
    for unit, i in np.ndindex(units, n):
        seen = np.isfinite(y[unit, :, i])
        result[unit, i] = np.linalg.lstsq(X[seen], y[unit, seen, i], rcond=None)[0][0]
    return result


def rows_of(panel: Panel, values: np.ndarray) -> np.ndarray:
    """Values (rows, ...) of a panel from those of its series (S, T, ...)."""
    return values[np.arange(values.shape[1]) < panel.lengths[:, None]]
