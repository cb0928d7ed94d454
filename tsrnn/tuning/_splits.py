"""Splits of a long frame by time, across all series."""

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
    """Splits of a long frame by time, for scikit-learn's searches.

    scikit-learn's `TimeSeriesSplit` cuts at row positions, which lie within a series of a long
    frame. Here a split is a cutoff in time. The training part has all rows up to the cutoff, the
    test part the rows of the next h times of all series with rows on both sides. The last test
    part ends with the last time, the previous one h times earlier.

    Parameters
    ----------
    n_splits : int, default 5
    h : int, default 1
        Number of times of a test part; any row of any series counts as a time.
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
        """Positions of the training and test rows, from the oldest split.

        Parameters
        ----------
        X : pandas.DataFrame or polars.DataFrame
            Long frame.
        y, groups : None
            Ignored.

        Yields
        ------
        train, test : int ndarray

        Raises
        ------
        ValueError
            If a column or a value is missing, there are too few times, or no series has rows on
            both sides of a cutoff.
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
        """Number of splits."""
        return self.n_splits

    def _coordinates(self, X: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """Indices of the series and of the time of each row, and the number of times."""
        frame = nw.from_native(X, eager_only=True)
        absent = [name for name in (self.id_col, self.time_col) if name not in frame.columns]
        if absent:
            raise ValueError(
                f"a long frame must have the columns {quote(self.id_col)} and "
                f"{quote(self.time_col)}; missing are {quote(absent)}. Name them by id_col and "
                "time_col; for a wide frame take sklearn.model_selection.TimeSeriesSplit"
            )
        for name in (self.id_col, self.time_col):
            lost = np.flatnonzero(pd.isna(frame[name].to_numpy()))
            if len(lost):
                raise ValueError(
                    f"the column {quote(name)} must have no missing values; missing are "
                    f"{len(lost)}, the first in row {lost[0]} (from 0). Drop these rows, or "
                    "mend them"
                )
        series = np.unique(frame[self.id_col].to_numpy(), return_inverse=True)[1]
        distinct, number = np.unique(frame[self.time_col].to_numpy(), return_inverse=True)
        return series, number, len(distinct)
