"""Sliding windows without copies."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

__all__ = ["windows"]


def windows(array: np.ndarray, length: int, step: int = 1) -> np.ndarray:
    """Return all windows of consecutive rows as a read-only view.

    Parameters
    ----------
    array : ndarray, shape (N, ...)
    length : int
        Rows of a window.
    step : int
        Rows between the starts of neighbouring windows.

    Returns
    -------
    ndarray, shape ((N - length) // step + 1, length, ...)
        Window i is array[i * step : i * step + length]; it shares the memory of `array`.

    Raises
    ------
    ValueError
        If `length` is not between 1 and N or `step` is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.data import windows
    >>> windows(np.arange(5), length=3)
    array([[0, 1, 2],
           [1, 2, 3],
           [2, 3, 4]])
    """
    if not 1 <= length <= len(array):
        raise ValueError(
            f"length must lie between 1 and the number of rows, {len(array)}; got {length}."
        )
    if step < 1:
        raise ValueError(f"step must be at least 1; got {step}.")
    return np.moveaxis(sliding_window_view(array, length, axis=0), -1, 1)[::step]
