"""Fill missing targets and columns with the value one season earlier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tsrnn.data import Panel


def repeated(panel: Panel, season: int, past: Sequence[np.ndarray] | None = None) -> Panel:
    """Fill missing values with the value one season earlier, itself observed or filled.

    No later row is used, except that leading gaps take the first value. Gaps in the first season
    take the last value. `past` holds rows of each series before the panel, shape (T, C + E),
    without gaps.
    """
    rows = np.hstack([panel.values, panel.exog])
    gaps = np.flatnonzero(np.isnan(rows).any(0))
    if not len(gaps):
        return panel
    for i, (first, end) in enumerate(zip(panel.indptr[:-1], panel.indptr[1:], strict=True)):
        for j in gaps:
            before = np.empty(0) if past is None else past[i][:, j]
            column = repeat_season(np.concatenate([before, rows[first:end, j]]), season)
            rows[first:end, j] = column[len(before) :]
    values, exog = np.hsplit(rows, [panel.values.shape[1]])
    return replace(panel, values=values, exog=exog)


def repeat_season(rows: np.ndarray, season: int) -> np.ndarray:
    """Fill NaN in rows, shape (T,), with the value one season earlier, or the last value."""
    unknown = np.flatnonzero(np.isnan(rows))
    if len(unknown) in (0, len(rows)):
        return rows
    filled = rows.copy()
    first = int(np.isfinite(rows).argmax())
    filled[:first] = rows[first]
    for row in unknown[unknown > first].tolist():
        filled[row] = filled[row - season] if row >= season else filled[row - 1]
    return filled
