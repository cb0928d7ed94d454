"""Positions on a grid, some series at a time: memory for a part of the rows only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tsrnn.data._axis import Axis
from tsrnn.data._grid import Grid
from tsrnn.data._regular import check_steps, positions

__all__ = ["checked_positions"]

ROWS_AT_ONCE = 2**20


def checked_positions(axis: Axis, grid: Grid) -> np.ndarray:
    """Return `positions`, of series that have the frequency of the grid.

    Raises
    ------
    ValueError
        If rows are not on the grid, or series have another frequency, naming all of them.
    """
    try:
        return np.concatenate([_checked(block, grid) for block in _blocks(axis)])
    except ValueError:
        return _checked(axis, grid)  # raises, with all series in the message


def _checked(axis: Axis, grid: Grid) -> np.ndarray:
    offsets = positions(axis, grid)
    check_steps(axis, grid, offsets)
    return offsets


def _blocks(axis: Axis) -> Iterator[Axis]:
    """Neighbouring series, together about `ROWS_AT_ONCE` rows or a single one."""
    wanted = np.arange(0, len(axis.times), ROWS_AT_ONCE)
    cuts = np.unique(np.append(np.searchsorted(axis.indptr, wanted), len(axis.ids)))
    for low, high in pairwise(cuts):
        bounds = axis.indptr[low : high + 1]
        yield Axis(
            axis.times[bounds[0] : bounds[-1]], bounds - bounds[0], axis.ids[low:high],
            axis.named, axis.tz, axis.period,
        )  # fmt: skip
