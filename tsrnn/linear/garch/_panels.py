"""Panels as series side by side, and back."""

from __future__ import annotations

import numpy as np

from tsrnn.data import Panel


def units_of(
    panel: Panel, rows: np.ndarray | None = None, fill: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Units (S C, T), series by series and target by target, and their lengths (S C,).

    They hold the values of the panel, or others (rows, C) in their places; beyond their lengths,
    `fill`.
    """
    values = panel.values if rows is None else rows
    lengths, n_targets = panel.lengths, values.shape[1]
    longest = int(lengths.max())
    if (lengths == longest).all():
        whole = values.reshape(-1, longest, n_targets)
    else:
        whole = np.full((panel.n_series, longest, n_targets), fill)
        whole[np.arange(longest) < lengths[:, None]] = values
    return whole.swapaxes(1, 2).reshape(-1, longest), np.repeat(lengths, n_targets)


def rows_of(panel: Panel, units: np.ndarray) -> np.ndarray:
    """Values (rows, C) of a panel from those of its units (S C, T)."""
    longest = units.shape[1]
    whole = units.reshape(panel.n_series, -1, longest).swapaxes(1, 2)
    return whole[np.arange(longest) < panel.lengths[:, None]]
