"""State of the series of a linear model, without their past."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class LinearState:
    """State of every series after its last row.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    last_times : ndarray of shape (S,)
    target_scale : ndarray of shape (S, C)
        Standard deviation of each target in the data fitted to.
    arrays : dict of ndarray
        By name, each with S as its first axis.
    """

    ids: pd.Index
    last_times: np.ndarray
    target_scale: np.ndarray
    arrays: dict[str, np.ndarray]

    def select(self, series: np.ndarray) -> LinearState:
        """State of the series numbered `series`, in that order."""
        return LinearState(
            self.ids[series],
            self.last_times[series],
            self.target_scale[series],
            {name: array[series] for name, array in self.arrays.items()},
        )

    def replaced(self, series: np.ndarray, new: LinearState) -> LinearState:
        """State with the series numbered `series` from `new`; `self` stays as it is."""
        last_times = self.last_times.copy()
        last_times[series] = new.last_times
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        for name, array in arrays.items():
            array[series] = new.arrays[name]
        return replace(self, last_times=last_times, arrays=arrays)
