"""What a fitted linear model remembers of the series: enough to go on, not their past."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class LinearMemory:
    """State of every series after its last row.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    last_times : ndarray of shape (S,)
    target_scale : ndarray of shape (S, C)
        Standard deviation of each target in the data fitted to.
    arrays : dict of ndarray
        What the model needs to go on, each with S as its first axis.
    """

    ids: pd.Index
    last_times: np.ndarray
    target_scale: np.ndarray
    arrays: dict[str, np.ndarray]

    def select(self, which: np.ndarray) -> LinearMemory:
        """Of the series numbered `which`, in that order."""
        return LinearMemory(
            self.ids[which],
            self.last_times[which],
            self.target_scale[which],
            {name: array[which] for name, array in self.arrays.items()},
        )

    def replaced(self, which: np.ndarray, new: LinearMemory) -> LinearMemory:
        """With the series numbered `which` as they stand in `new`; `self` stays as it is."""
        last_times = self.last_times.copy()
        last_times[which] = new.last_times
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        for name, array in arrays.items():
            array[which] = new.arrays[name]
        return replace(self, last_times=last_times, arrays=arrays)
