"""Order of series by their values, whatever their order in the frame."""

from __future__ import annotations

import numpy as np


def order_of_series(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return series sorted by their values, so that draws do not depend on the order of a frame.

    The key is the ratio of the mean to the largest absolute change from row to row, smallest first,
    which is invariant to names, units, level and sign; ties keep their order. Series i has the rows
    indptr[i] to indptr[i + 1] of `values`, shape (N, C), at least one; NaN where missing.
    """
    starts, lengths = indptr[:-1], np.diff(indptr)
    change = np.nan_to_num(np.abs(np.diff(values, axis=0, prepend=np.nan)))
    change[starts] = 0.0
    largest = np.maximum.reduceat(change, starts)
    mean = np.add.reduceat(change, starts) / lengths[:, None]
    share = np.divide(mean, largest, out=np.zeros_like(mean), where=largest > 0)
    return np.argsort(share.sum(1), kind="stable")
