"""Panels as units, series by series and target by target, in batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tsrnn.data import Panel

_NUMBERS = 2**22  # in the inputs of a batch: 32 MB


def batches(panel: Panel) -> Iterator[np.ndarray]:
    """Numbers of the units, short ones first, so many at a time that memory stays small."""
    lengths = np.repeat(panel.lengths, panel.values.shape[1])
    order = np.argsort(lengths, kind="stable")
    width = 1 + panel.exog.shape[1]
    start = 0
    while start < len(order):
        # The last of a batch is its longest: what fits by the first is shrunk to fit by it.
        most = max(_NUMBERS // (width * lengths[order[start]]), 1)
        longest = lengths[order[start : start + most]][-1]
        end = start + max(_NUMBERS // (width * longest), 1)
        yield order[start:end]
        start = end


def unit_values(panel: Panel, units: np.ndarray) -> np.ndarray:
    """Values of some units, (n, T), NaN after their ends."""
    series, target = np.divmod(units, panel.values.shape[1])
    return _rows(panel, panel.values, series, np.nan)[np.arange(len(units)), :, target]


def unit_exog(panel: Panel, units: np.ndarray) -> np.ndarray | None:
    """Exogenous columns of some units, (n, T, m), 0 after their ends; None if there are none."""
    if not panel.exog.shape[1]:
        return None
    return _rows(panel, panel.exog, units // panel.values.shape[1], 0.0)


def rows_of(panel: Panel, values: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Values (rows, C) of a panel from those of its batches: units and their (n, T)."""
    n_targets = panel.values.shape[1]
    result = np.full(panel.values.shape, np.nan)
    for units, part in values:
        series, target = np.divmod(units, n_targets)
        within = np.arange(part.shape[1]) < panel.lengths[series][:, None]
        rows = panel.indptr[series][:, None] + np.arange(part.shape[1])
        result[rows[within], np.broadcast_to(target[:, None], rows.shape)[within]] = part[within]
    return result


def _rows(panel: Panel, table: np.ndarray, series: np.ndarray, fill: float) -> np.ndarray:
    lengths = panel.lengths[series]
    longest = int(lengths.max())
    steps = np.arange(longest)
    if (lengths == longest).all():
        return table[panel.indptr[series][:, None] + steps]
    rows = np.minimum(panel.indptr[series][:, None] + steps, panel.indptr[series + 1][:, None] - 1)
    return np.where((steps < lengths[:, None])[:, :, None], table[rows], fill)
