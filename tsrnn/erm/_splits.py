"""Cross-validation of samples in time order: contiguous blocks, with gaps around them."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from tsrnn.erm._samples import count

__all__ = ["BlockedKFold"]


class BlockedKFold(BaseCrossValidator):
    r"""Folds that are blocks of neighbours, without the samples close to them in training.

    Samples 0 to N - 1 in time order are cut into contiguous blocks, of sizes that differ by 1 at
    most, the longer ones first. For the test block :math:`\{a, \dots, b - 1\}` the training part
    is

    .. math:: \{i : i < a - h\} \cup \{i : i \geq b + h\},

    so that training and test samples are more than h apart. Training samples lie on both sides of
    the block: this is for stationary series whose dependence dies out, not an imitation of
    forecasting, which scikit-learn's `TimeSeriesSplit` is.

    Parameters
    ----------
    n_splits : int, default 5
        Number of blocks, at least 2. With as many as samples and h > 0 this is h-block
        cross-validation, and leave-one-out with h = 0.
    h : int, default 0
        Samples left out on either side of a block, at least 0: beyond the lag at which samples
        depend on each other. Windows of T steps that start at every step overlap up to lag
        T - 1; where the target is the step after a window, take T.

    Raises
    ------
    TypeError, ValueError
        If an argument is no whole number of the range above; in `split`, if there are fewer
        samples than blocks, or h leaves no training sample for some block.

    Notes
    -----
    The models are fitted to fewer samples than there are, the fewer the larger h; the term by
    which Burman, Chow and Nolan correct the risk for that is not added. The hv-block
    cross-validation of Racine has a block of 2v + 1 samples around every single sample, so that
    blocks overlap; here they do not.

    References
    ----------
    Burman, P., Chow, E. and Nolan, D. (1994). A cross-validatory method for dependent data.
    Biometrika 81(2), 351-358.

    Racine, J. (2000). Consistent cross-validatory model-selection for dependent data: hv-block
    cross-validation. Journal of Econometrics 99(1), 39-61.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.erm import BlockedKFold
    >>> for train, test in BlockedKFold(3, h=1).split(np.zeros((9, 2))):
    ...     print(train, test)
    [4 5 6 7 8] [0 1 2]
    [0 1 7 8] [3 4 5]
    [0 1 2 3 4] [6 7 8]
    """

    def __init__(self, n_splits: int = 5, *, h: int = 0) -> None:
        self.n_splits = _whole("n_splits", n_splits, 2)
        self.h = _whole("h", h, 0)

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Positions of the training and of the test samples, block by block.

        Parameters
        ----------
        X : array of shape (N, ...), or list of N sequences
            In time order.
        y : array or list of N targets, optional
            Only counted.
        groups : object, optional
            Ignored.

        Yields
        ------
        train, test : int ndarray
        """
        n = count(X)
        if y is not None and count(y) != n:
            raise ValueError(f"X and y must have as many samples; got {n} and {count(y)}")
        edges = self._edges(n)
        positions = np.arange(n)
        for start, stop in pairwise(edges):
            near = (positions >= start - self.h) & (positions < stop + self.h)
            yield positions[~near], positions[start:stop]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of blocks; the arguments are ignored."""
        return self.n_splits

    def _edges(self, n: int) -> np.ndarray:
        """Where blocks start, and n; an error if some block would leave nothing to train on."""
        if n < self.n_splits:
            raise ValueError(
                f"n_splits must be at most the number of samples, {n}; got {self.n_splits}"
            )
        sizes = np.full(self.n_splits, n // self.n_splits)
        sizes[: n % self.n_splits] += 1
        edges = np.concatenate([[0], np.cumsum(sizes)])
        largest = int(np.maximum(edges[:-1], n - edges[1:]).min()) - 1
        if self.h > largest:
            raise ValueError(
                f"h must be at most {largest} for {n} samples in {self.n_splits} blocks, or a "
                f"block has no training samples left; got {self.h}"
            )
        return edges


def _whole(name: str, value: Any, least: int) -> int:
    message = f"{name} must be an integer of at least {least}; got {value!r}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(message)
    if value < least:
        raise ValueError(message)
    return int(value)
