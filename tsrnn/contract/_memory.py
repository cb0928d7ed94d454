"""What a fitted forecaster remembers of the series, as far as the contract looks at it."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
import pandas as pd


class Memory(Protocol):
    """State of S series after their last rows, enough to go on from there.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    last_times : ndarray of shape (S,)
    target_scale : ndarray of shape (S, C)
        Standard deviation of each target in the data fitted to; not zero.

    Examples
    --------
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.datasets import load_macrodata
    >>> memory = Naive(target="realgdp").fit(load_macrodata()[["realgdp"]]).memory_
    >>> len(memory.ids), memory.last_times.shape, memory.target_scale.shape
    (1, (1,), (1, 1))
    """

    @property
    def ids(self) -> pd.Index: ...

    @property
    def last_times(self) -> np.ndarray: ...

    @property
    def target_scale(self) -> np.ndarray: ...

    def select(self, which: np.ndarray) -> Self:
        """Of the series numbered `which`, in that order."""

    def replaced(self, which: np.ndarray, new: Self) -> Self:
        """With the series numbered `which` as they stand in `new`; `self` stays as it is."""
