"""Fill missing values with the value of a season before, for networks that cannot skip them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tsrnn.data import Panel


def repeated(panel: Panel, season: int, past: Sequence[np.ndarray] | None = None) -> Panel:
    """Panel whose missing targets are the values of a season before, known or repeated themselves.

    So that no row is read before it comes. Without rows a season before, they are the last value,
    and at the begin of a series the first.

    Parameters
    ----------
    panel : Panel
    season : int
        1 for none.
    past : sequence of ndarray of shape (T, C + E), optional
        Rows before those of each series, without missing values.

    Returns
    -------
    Panel
        The panel itself where nothing is missing.
    """
    if not np.isnan(panel.values).any():
        return panel
    values = panel.values.copy()
    for i, (first, end) in enumerate(zip(panel.indptr[:-1], panel.indptr[1:], strict=True)):
        known = None if past is None else past[i]
        for j in range(values.shape[1]):
            before = np.empty(0) if known is None else known[:, j]
            rows = repeat_season(np.concatenate([before, values[first:end, j]]), season)
            values[first:end, j] = rows[len(before) :]
    return replace(panel, values=values)


def repeat_season(rows: np.ndarray, season: int) -> np.ndarray:
    """Rows (T,) with the value of a season before, or the last one, in place of missing ones."""
    unknown = np.flatnonzero(np.isnan(rows))
    if len(unknown) in (0, len(rows)):
        return rows
    filled = rows.copy()
    first = int(np.isfinite(rows).argmax())
    filled[:first] = rows[first]
    for row in unknown[unknown > first].tolist():
        filled[row] = filled[row - season] if row >= season else filled[row - 1]
    return filled
