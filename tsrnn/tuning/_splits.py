"""Splits of a long frame by time, across all its series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.model_selection import BaseCrossValidator

from tsrnn.contract import positive_integer
from tsrnn.data import quote


class PanelTimeSeriesSplit(BaseCrossValidator):
    """Splits of a long frame by time, for the searches of scikit-learn.

    scikit-learn's `TimeSeriesSplit` cuts at row positions, which in a long frame lie within a
    series. Here a split is a cutoff: the training part is all rows up to it, the test part the
    rows of the next h times, of all series that have rows on both sides. The last test part ends
    with the last time, the one before it h times earlier.

    Parameters
    ----------
    n_splits : int, default 5
    h : int, default 1
        Times of a test part, where a time is one at which any series has a row.
    id_col, time_col : str
        Columns of the long frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.tuning import PanelTimeSeriesSplit
    >>> times = pd.date_range("2024-01-01", periods=4)
    >>> frame = pd.DataFrame({"unique_id": ["a"] * 4 + ["b"] * 4, "ds": [*times, *times]})
    >>> for train, test in PanelTimeSeriesSplit(2).split(frame):
    ...     print(train, test)
    [0 1 4 5] [2 6]
    [0 1 2 4 5 6] [3 7]
    """

    def __init__(
        self, n_splits: int = 5, *, h: int = 1, id_col: str = "unique_id", time_col: str = "ds"
    ) -> None:
        self.n_splits = positive_integer("n_splits", n_splits)
        self.h = positive_integer("h", h)
        self.id_col = id_col
        self.time_col = time_col

    def split(
        self, X: Any, y: None = None, groups: None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Positions of the training and of the test rows, the oldest split first.

        Parameters
        ----------
        X : pandas.DataFrame or polars.DataFrame
            Long.
        y, groups : None
            There for scikit-learn.

        Yields
        ------
        train, test : int ndarray

        Raises
        ------
        ValueError
            If a column or one of its values is missing, there are too few times, or no series
            has rows on both sides of a cutoff.
        """
        series, number, n_times = self._coordinates(X)
        fewest = self.n_splits * self.h + 1
        if n_times < fewest:
            raise ValueError(
                f"{self.n_splits} splits of h={self.h} need at least {fewest} times; there are "
                f"{n_times}. Take fewer splits, or a smaller h"
            )
        for later in range(self.n_splits, 0, -1):
            cutoff = n_times - later * self.h
            past, ahead = number < cutoff, (number >= cutoff) & (number < cutoff + self.h)
            tested = ahead & np.isin(series, series[past])
            if not tested.any():
                raise ValueError(
                    f"split {self.n_splits - later + 1} of {self.n_splits} has no rows to test "
                    f"on: no series with rows before it has one in its {self.h} times. Take fewer "
                    "splits, or another h"
                )
            yield np.flatnonzero(past), np.flatnonzero(tested)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits; the arguments are ignored."""
        return self.n_splits

    def _coordinates(self, X: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """Return the number of the series and of the time of each row, and the number of times."""
        frame = nw.from_native(X, eager_only=True)
        absent = [name for name in (self.id_col, self.time_col) if name not in frame.columns]
        if absent:
            raise ValueError(
                f"a long frame must have the columns {quote(self.id_col)} and "
                f"{quote(self.time_col)}; missing are {quote(absent)}. Name them by id_col and "
                "time_col; for a wide frame take sklearn.model_selection.TimeSeriesSplit"
            )
        ids, times = (_whole(name, frame[name].to_numpy()) for name in (self.id_col, self.time_col))
        distinct, number = np.unique(times, return_inverse=True)
        return np.unique(ids, return_inverse=True)[1], number, len(distinct)


def _whole(name: str, values: np.ndarray) -> np.ndarray:
    """Return the values of a column, none of which is missing."""
    lost = np.flatnonzero(pd.isna(values))
    if len(lost):
        raise ValueError(
            f"the column {quote(name)} must have no missing values; missing are {len(lost)}, the "
            f"first in row {lost[0]} (from 0). Drop these rows, or mend them"
        )
    return values
