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
    rows, within = _rows(panel, series)
    values = panel.values[rows, target[:, None]]
    return values if within is None else np.where(within, values, np.nan)


def unit_exog(panel: Panel, units: np.ndarray) -> np.ndarray | None:
    """Exogenous columns of some units, (n, T, m), 0 after their ends; None if there are none."""
    if not panel.exog.shape[1]:
        return None
    rows, within = _rows(panel, units // panel.values.shape[1])
    return panel.exog[rows] if within is None else np.where(within[..., None], panel.exog[rows], 0)


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


def _rows(panel: Panel, series: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers of the rows of some series, (n, T), and which are theirs; None if all are."""
    lengths, steps = panel.lengths[series], np.arange(int(panel.lengths[series].max()))
    rows = panel.indptr[series][:, None] + steps
    if (lengths == len(steps)).all():
        return rows, None
    return np.minimum(rows, panel.indptr[series + 1][:, None] - 1), steps < lengths[:, None]
