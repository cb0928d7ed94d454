"""Between series and the units of forecasting: a series, or one target of a series."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tsrnn.data import Panel
from tsrnn.forecasters._memory import Memory, Scaling, joined_tails, standardise
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import Units, make_units


def units_of(values: np.ndarray, indptr: np.ndarray, scaling: Scaling, settings: Settings) -> Units:
    """Units from standardised rows.

    Parameters
    ----------
    values : ndarray of shape (N, C + E)
    indptr : ndarray of shape (S + 1,)
    scaling : Scaling
    settings : Settings
        Jointly, a series is a unit; otherwise each of its targets is, with the
        exogenous columns, series by series.
    """
    n_targets = scaling.constant.shape[1]
    constant = scaling.constant
    if not settings.joint and n_targets > 1:
        values, indptr = _single_targets(values, indptr, n_targets)
        constant = constant.reshape(-1, 1)
    return make_units(
        values,
        indptr,
        window=settings.input_size,
        n_targets=n_targets if settings.joint else 1,
        constant=constant,
        local_level=settings.local_level,
    )


def _single_targets(
    values: np.ndarray, indptr: np.ndarray, n_targets: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N C, 1 + E) of every target by itself, and where each begins."""
    lengths = np.repeat(np.diff(indptr), n_targets)
    begin = np.repeat(indptr[:-1], n_targets)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], lengths)
    target = np.repeat(np.arange(len(lengths)) % n_targets, lengths)
    return np.column_stack([values[rows, target], values[rows, n_targets:]]), indptr


def continued_units(
    memory: Memory, panel: Panel | None, settings: Settings
) -> tuple[Units, Tensor]:
    """Units of remembered rows and those of `panel` after them, and the first new row of each."""
    if panel is not None:
        standardise(panel, memory.scaling)  # refuses, by name, rows that are too far
    tail = memory.tail if panel is None else joined_tails(memory, panel)
    indptr = np.concatenate([[0], np.cumsum([len(part) for part in tail])])
    values = memory.scaling.transform(np.vstack(tail), indptr)
    units = units_of(values, indptr, memory.scaling, settings)
    past = torch.as_tensor([len(part) for part in memory.tail])
    return units, units.starts + past.repeat_interleave(memory.units_per_series)


def by_series(values: np.ndarray, n_series: int) -> np.ndarray:
    """From units (U, h, C') to series (S, h, C)."""
    if len(values) == n_series:
        return values
    return np.moveaxis(values[..., 0].reshape(n_series, -1, values.shape[1]), 1, 2)


def fitted_units(memory: Memory) -> np.ndarray:
    """Numbers of a memory's units among those fitted to, shape (U,); -1 for new series."""
    series, per_series = memory.fitted, memory.units_per_series
    numbers = series[:, None] * per_series + np.arange(per_series)
    return np.where(series[:, None] < 0, -1, numbers).ravel()


def known_series(memory: Memory, panel: Panel) -> np.ndarray:
    """Numbers of a panel's series among those of a memory, shape (S,); -1 for new series.

    Series without ids are the known one if they hold its last row.
    """
    series = memory.ids.get_indexer(panel.ids)
    if panel.layout.id_col is not None:
        return series
    last = memory.tail[0][-1, : panel.values.shape[1]]
    shared = panel.values[panel.times == memory.last_times[0]]
    return series if len(shared) and np.array_equal(shared[0], last) else np.full_like(series, -1)
