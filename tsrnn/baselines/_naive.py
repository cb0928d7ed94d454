"""Naive, seasonal naive, drift and mean methods."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tsrnn.baselines._memory import RowsMemory
from tsrnn.baselines._naive_base import NaiveMethod, root_mean_square, seasonal_differences
from tsrnn.contract import with_shared_arguments


class Naive(NaiveMethod):
    r"""The last value, for every step ahead.

    .. math:: \hat y_{T+h} = y_T, \qquad \sigma_h = \hat\sigma \sqrt{h}, \qquad
        \hat\sigma^2 = \frac{1}{T-1} \sum_{t=2}^T (y_t - y_{t-1})^2

    Parameters
    ----------
    random_state, verbose
        As in all forecasters.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As in all forecasters.

    References
    ----------
    Hyndman, R. J., Athanasopoulos, G. (2021). Forecasting: Principles and Practice, 3rd ed.,
    sections 5.2 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import Naive
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> Naive().fit(pd.Series([3.0, 5.0, 4.0, 6.0], days)).predict(2).tolist()
    [6.0, 6.0]
    """

    column_name: ClassVar[str] = "Naive"

    def _ahead(self, memory: RowsMemory, h: int) -> tuple[np.ndarray, np.ndarray]:
        mean = np.repeat(memory.values[memory.indptr[1:] - 1][:, None], h, 1)
        errors = seasonal_differences(memory.values, memory.indptr, 1)
        sigma = root_mean_square(errors, memory.indptr, 1)
        return mean, sigma * np.sqrt(np.arange(1, h + 1))[:, None]


@with_shared_arguments
class SeasonalNaive(NaiveMethod):
    r"""The value of the last season's same step.

    .. math:: \hat y_{T+h} = y_{T+h-m(k+1)}, \qquad \sigma_h = \hat\sigma \sqrt{k+1}, \qquad
        \hat\sigma^2 = \frac{1}{T-m} \sum_{t=m+1}^T (y_t - y_{t-m})^2

    with the season m and k = floor((h-1) / m).

    Parameters
    ----------
    season_length : int, optional
        Steps m of a season; by frequency where it is None. 1 is the naive method.
    random_state, verbose
        As in all forecasters.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As in all forecasters.

    References
    ----------
    Hyndman, R. J., Athanasopoulos, G. (2021). Forecasting: Principles and Practice, 3rd ed.,
    sections 5.2 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import SeasonalNaive
    >>> days = pd.date_range("2024-01-01", periods=5)
    >>> series = pd.Series([3.0, 5.0, 4.0, 6.0, 5.0], days)
    >>> SeasonalNaive(season_length=2).fit(series).predict(3).tolist()
    [6.0, 5.0, 6.0]
    """

    column_name: ClassVar[str] = "SeasonalNaive"

    def __init__(self, season_length: int | None = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.season_length = season_length

    @property
    def _fewest(self) -> int:
        return self.season_ + 1

    @property
    def _degrees_lost(self) -> int:
        return self.season_

    def _ahead(self, memory: RowsMemory, h: int) -> tuple[np.ndarray, np.ndarray]:
        m, steps = self.season_, np.arange(h)
        mean = memory.values[memory.indptr[1:, None] - m + steps % m]
        errors = seasonal_differences(memory.values, memory.indptr, m)
        sigma = root_mean_square(errors, memory.indptr, m)
        return mean, sigma * np.sqrt(steps // m + 1)[:, None]

    def _factor(self, length: int, h: int) -> np.ndarray:
        apart = np.subtract.outer(np.arange(h), np.arange(h))
        return ((apart >= 0) & (apart % self.season_ == 0)).astype(float)


class Drift(NaiveMethod):
    r"""The line through the first and the last value.

    .. math:: \hat y_{T+h} = y_T + h \hat c, \qquad \hat c = \frac{y_T - y_1}{T-1}, \qquad
        \sigma_h = \hat\sigma \sqrt{h \Bigl(1 + \frac{h}{T-1}\Bigr)}, \qquad
        \hat\sigma^2 = \frac{1}{T-2} \sum_{t=2}^T (y_t - y_{t-1} - \hat c)^2

    Parameters
    ----------
    random_state, verbose
        As in all forecasters.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As in all forecasters.

    References
    ----------
    Hyndman, R. J., Athanasopoulos, G. (2021). Forecasting: Principles and Practice, 3rd ed.,
    sections 5.2 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import Drift
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> Drift().fit(pd.Series([3.0, 5.0, 4.0, 6.0], days)).predict(2).tolist()
    [7.0, 8.0]
    """

    column_name: ClassVar[str] = "Drift"

    @property
    def _degrees_lost(self) -> int:
        return 2

    @property
    def _fewest(self) -> int:
        return 3

    def _ahead(self, memory: RowsMemory, h: int) -> tuple[np.ndarray, np.ndarray]:
        first, last = memory.values[memory.indptr[:-1]], memory.values[memory.indptr[1:] - 1]
        slope = (last - first) / (memory.lengths - 1)[:, None]
        errors = seasonal_differences(memory.values, memory.indptr, 1)
        errors -= np.repeat(slope, memory.lengths, 0)
        errors[memory.indptr[:-1]] = 0.0
        sigma = root_mean_square(errors, memory.indptr, 2)
        steps = np.arange(1, h + 1)[:, None]
        mean = last[:, None] + steps * slope[:, None]
        return mean, sigma * np.sqrt(steps * (1 + steps / (memory.lengths - 1)[:, None, None]))

    def _factor(self, length: int, h: int) -> np.ndarray:
        of_slope = np.arange(1, h + 1) / np.sqrt(length - 1)
        return np.column_stack([np.tri(h), of_slope])


class Mean(NaiveMethod):
    r"""The mean of all values, for every step ahead.

    .. math:: \hat y_{T+h} = \bar y, \qquad \sigma_h = \hat\sigma \sqrt{1 + 1/T}, \qquad
        \hat\sigma^2 = \frac{1}{T-1} \sum_{t=1}^T (y_t - \bar y)^2

    Parameters
    ----------
    random_state, verbose
        As in all forecasters.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As in all forecasters.

    References
    ----------
    Hyndman, R. J., Athanasopoulos, G. (2021). Forecasting: Principles and Practice, 3rd ed.,
    sections 5.2 and 5.5.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import Mean
    >>> days = pd.date_range("2024-01-01", periods=4)
    >>> Mean().fit(pd.Series([3.0, 5.0, 4.0, 6.0], days)).predict(2).tolist()
    [4.5, 4.5]
    """

    column_name: ClassVar[str] = "Mean"

    def _ahead(self, memory: RowsMemory, h: int) -> tuple[np.ndarray, np.ndarray]:
        counts = memory.lengths[:, None]
        means = np.add.reduceat(memory.values, memory.indptr[:-1]) / counts
        errors = memory.values - np.repeat(means, memory.lengths, 0)
        sigma = root_mean_square(errors, memory.indptr, 1)
        one = sigma * np.sqrt(1 + 1 / counts)[:, None]
        return np.repeat(means[:, None], h, 1), np.repeat(one, h, 1)

    def _factor(self, length: int, h: int) -> np.ndarray:
        return np.column_stack([np.eye(h), np.full(h, 1 / np.sqrt(length))])
