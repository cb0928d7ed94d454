"""Naive 2, the benchmark of the M4 competition."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tsrnn.baselines._memory import RowsMemory
from tsrnn.baselines._naive_base import NaiveMethod
from tsrnn.contract import with_shared_arguments

CRITICAL = 1.645  # of the normal distribution at 90 percent, as the organisers round it
SEASONS = 3  # that a series must have to be tested


@with_shared_arguments
class Naive2(NaiveMethod):
    r"""The naive method after seasonal adjustment, where a test finds a season.

    .. math:: \hat y_{T+h} = s_{T+h} \frac{y_T}{s_T}, \qquad
        \sigma_h = s_{T+h} \hat\sigma \sqrt{h}, \qquad
        \hat\sigma^2 = \frac{1}{T-1} \sum_{t=2}^T
        \Bigl(\frac{y_t}{s_t} - \frac{y_{t-1}}{s_{t-1}}\Bigr)^2

    with the indices s of the classical multiplicative decomposition. A series is adjusted if
    it has three seasons of m steps and its autocorrelations r satisfy

    .. math:: |r_m| > 1.645 \sqrt{\Bigl(1 + 2 \sum_{i=1}^{m-1} r_i^2\Bigr) / T}

    Parameters
    ----------
    season_length : int, optional
        Steps m of a season; by frequency where it is None.
    random_state, verbose
        As in all forecasters.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As in all forecasters.

    Notes
    -----
    The organisers' test looks at the first 10 log10(T) autocorrelations, as R's ``acf`` does: a
    longer season is not found. A series that is not positive has no multiplicative indices and
    is not adjusted.

    References
    ----------
    Makridakis, S., Spiliotis, E., Assimakopoulos, V. (2020). The M4 competition. International
    Journal of Forecasting 36, 54-74; "Benchmarks and Evaluation.R" of its repository.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.baselines import Naive2
    >>> days = pd.date_range("2024-01-01", periods=16)
    >>> series = pd.Series([1.0, 2.0, 1.0, 4.0] * 4, days)
    >>> Naive2(season_length=4).fit(series).predict(4).round(6).tolist()
    [1.0, 2.0, 1.0, 4.0]
    """

    column_name: ClassVar[str] = "Naive2"

    def __init__(self, season_length: int | None = None, **shared: Any) -> None:
        super().__init__(**shared)
        self.season_length = season_length

    def _ahead(self, memory: RowsMemory, h: int) -> tuple[np.ndarray, np.ndarray]:
        n_series, n_targets = len(memory.ids), memory.values.shape[1]
        mean, error = np.empty((2, n_series, h, n_targets))
        for i in range(n_series):
            series = memory.values[memory.rows(i)]
            for j in range(n_targets):
                mean[i, :, j], error[i, :, j] = adjusted_naive(series[:, j], self.season_, h)
        return mean, error


def adjusted_naive(y: np.ndarray, season: int, h: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and standard errors (h,) of one series (T,)."""
    seasonal = season > 1 and y.min() > 0 and is_seasonal(y, season)
    indices = seasonal_indices(y, season) if seasonal else np.ones(1)
    adjusted = y / np.resize(indices, len(y))
    ahead = indices[(len(y) + np.arange(h)) % len(indices)]
    sigma = np.sqrt((np.diff(adjusted) ** 2).sum() / (len(y) - 1))
    return ahead * adjusted[-1], ahead * sigma * np.sqrt(np.arange(1, h + 1))


def is_seasonal(y: np.ndarray, season: int) -> bool:
    """Whether the test of the competition finds a season in a series (T,)."""
    n = len(y)
    if n < SEASONS * season or season > 10 * np.log10(n):
        return False
    deviations = y - y.mean()
    products = [deviations[lag:] @ deviations[: n - lag] for lag in range(season + 1)]
    if products[0] == 0:
        return False
    r = np.array(products[1:]) / products[0]
    limit = CRITICAL * np.sqrt((1 + 2 * (r[:-1] ** 2).sum()) / n)
    return bool(abs(r[-1]) > limit)


def seasonal_indices(y: np.ndarray, season: int) -> np.ndarray:
    """Indices (m,) of the classical multiplicative decomposition, with mean 1.

    The first belongs to the first row.
    """
    even = season % 2 == 0
    weights = np.r_[0.5, np.ones(season - 1), 0.5] if even else np.ones(season)
    trend = np.convolve(y, weights / season, mode="valid")
    half = season // 2
    ratios = y[half : half + len(trend)] / trend
    phase = (np.arange(len(ratios)) + half) % season
    figure = np.bincount(phase, ratios, season) / np.bincount(phase, minlength=season)
    return figure / figure.mean()
