"""Means and variances of sliding windows, at a cost that does not grow with the window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

ROWS_AT_ONCE = 2**20


def window_moments(
    values: np.ndarray, indptr: np.ndarray, window: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the last `window` rows up to each row, within its unit.

    A window is the end of one block of rows and the beginning of the next, each summed by
    itself: what lies before a window does not enter its moments.

    Parameters
    ----------
    values : ndarray of shape (N, C)
    indptr : ndarray of shape (U + 1,)
        Unit u has the rows indptr[u] to indptr[u + 1].
    window : int

    Returns
    -------
    mean, variance : ndarray of shape (N, C)
        Of fewer rows at a unit's start. Where a window is constant, the mean is its value and
        the variance zero, exactly.
    """
    mean, variance = np.empty_like(values), np.empty_like(values)
    for bounds in _parts(indptr):
        rows = slice(bounds[0], bounds[-1])
        mean[rows], variance[rows] = _moments(values[rows], bounds - bounds[0], window)
    return mean, variance


def _parts(indptr: np.ndarray) -> Iterator[np.ndarray]:
    """Bounds of neighbouring units, together about `ROWS_AT_ONCE` rows or a single one."""
    low = 0
    while low < len(indptr) - 1:
        high = int(np.searchsorted(indptr, indptr[low] + ROWS_AT_ONCE, side="right")) - 1
        high = max(high, low + 1)
        yield indptr[low : high + 1]
        low = high


def _moments(values: np.ndarray, indptr: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.diff(indptr)
    offset = np.arange(len(values)) - np.repeat(indptr[:-1], lengths)
    first = np.flatnonzero(offset % window == 0)  # of every block of a window's length
    size = np.diff(np.append(first, len(values)))
    mean, squares = _running(values, first, size, 1)
    own = offset % window + 1  # rows of a window in the block of its last row
    late = np.flatnonzero((offset >= window) & (own < window))
    if len(late):
        before_mean, before_squares = _running(values, first + size - 1, size, -1)
        start, share = late - window + 1, (own[late] / window)[:, None]
        away = mean[late] - before_mean[start]
        mean[late] = before_mean[start] + share * away
        squares[late] += before_squares[start] + away**2 * share * (1 - share) * window
    return mean, squares / np.minimum(offset + 1, window)[:, None]


def _running(
    values: np.ndarray, first: np.ndarray, size: np.ndarray, step: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sum of squares about it from the `first` row of a block on, up to each row.

    By the recurrence of Welford, which keeps all digits, for all blocks at once.
    """
    mean, squares = values.copy(), np.zeros_like(values)
    rows = first
    for count in range(2, int(size.max()) + 1):
        inside = size >= count
        rows, size = rows[inside] + step, size[inside]
        before = mean[rows - step]
        away = values[rows] - before
        mean[rows] = before + away / count
        squares[rows] = squares[rows - step] + away * (values[rows] - mean[rows])
    return mean, squares
