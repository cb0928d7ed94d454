"""The last rows of the series, kept to be drawn before a forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd

from tsrnn.contract._schema import refuse
from tsrnn.data import Panel, panel_frame

if TYPE_CHECKING:
    from tsrnn.data import Layout

LONGEST = 500  # rows of a series
MOST = 200_000  # values of all series: 3 MB with their times, however many series there are
FEWEST = 10  # rows that are worth a picture


@dataclass(frozen=True)
class History:
    """Last rows of the targets of S series; of very many series none.

    Attributes
    ----------
    most : int
        Rows of a series that are kept; 0 if none are.
    values : list of S ndarrays of shape (<= most, C)
    times : list of S ndarrays of shape (<= most,)
    """

    most: int
    values: list[np.ndarray]
    times: list[np.ndarray]

    @classmethod
    def of(cls, panel: Panel) -> Self:
        """The last rows of a panel."""
        most = min(LONGEST, MOST // max(panel.values.shape[1] * panel.n_series, 1))
        if most < FEWEST:
            return cls(0, [], [])
        tail = panel.tail(most)
        cuts = tail.indptr[1:-1]
        return cls(most, np.split(tail.values.copy(), cuts), np.split(tail.times.copy(), cuts))

    def followed_by(self, which: np.ndarray, panel: Panel) -> History:
        """With further rows of the series numbered `which`."""
        if not self.most:
            return self
        values, times = list(self.values), list(self.times)
        for i, low, high in zip(which, panel.indptr[:-1], panel.indptr[1:], strict=True):
            values[i] = np.concatenate([values[i], panel.values[low:high]])[-self.most :]
            times[i] = np.concatenate([times[i], panel.times[low:high]])[-self.most :]
        return History(self.most, values, times)

    def frame(self, which: np.ndarray, ids: pd.Index, layout: Layout) -> pd.DataFrame | pd.Series:
        """Rows of the series numbered `which`, of ids `ids`, in the shape of the data."""
        lengths = [len(self.times[i]) for i in which]
        values = np.concatenate([self.values[i] for i in which])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        times = np.concatenate([self.times[i] for i in which])
        return panel_frame(Panel(values, indptr, ids, times, values[:, :0], (), layout))

    def arrays(self, n_targets: int) -> dict[str, np.ndarray]:
        """All of it as arrays of a file."""
        times = [own.astype("int64") for own in self.times]
        return {
            "history.values": np.concatenate([np.zeros((0, n_targets)), *self.values]),
            "history.times": np.concatenate([np.zeros(0, "int64"), *times]),
            "history.lengths": np.array([self.most, *map(len, self.times)]),
        }

    @staticmethod
    def shapes(n_targets: int) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Dtype and shape of the arrays of a file."""
        return {
            "history.values": ("float64", (-1, n_targets)),
            "history.times": ("int64", (-1,)),
            "history.lengths": ("int64", (-1,)),
        }

    @classmethod
    def revived(cls, arrays: dict[str, np.ndarray], times_dtype: str, n_series: int) -> Self:
        """The history of which `arrays` holds the parts.

        Raises
        ------
        DamagedFileError
            If these are not the last rows of so many series.
        """
        rows = [len(arrays["history.values"]), len(arrays["history.times"])]
        most, *lengths = arrays["history.lengths"].tolist() or [-1]
        if not (
            0 <= most <= LONGEST
            and len(lengths) == (n_series if most else 0)
            and all(0 <= length <= most for length in lengths)
            and rows == [sum(lengths)] * 2
        ):
            required = f"rows to keep and those of each of {n_series} series, {rows} in all"
            raise refuse("the array 'history.lengths'", required, [most, *lengths[:8]])
        if not most:
            return cls(0, [], [])
        cuts = np.cumsum(lengths)[:-1]
        times = arrays["history.times"].astype(times_dtype)
        return cls(most, np.split(arrays["history.values"], cuts), np.split(times, cuts))
