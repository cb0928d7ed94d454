"""Trend, season and remainder of series, and how strong the season is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from tsrnn.contract import choice
from tsrnn.data import quote, write_frame
from tsrnn.preprocessing._series import Series, in_range, interpolated

STRONG = 0.64  # above it, seasonal differences improve forecasts of the M3 data
_WINDOW = 11  # seasons over which STL smooths, as in R's forecast
_ITERATIONS = 5  # of trend and season, without weights for outliers
PARTS = ("trend", "season", "remainder")


def decompose(
    df: Any, period: int | None = None, method: str = "stl", model: str = "add", **frame: Any
) -> Any:
    r"""Trend, season and remainder of one series or many.

    .. math:: y_t = T_t + S_t + R_t \qquad \text{or} \qquad y_t = T_t S_t R_t

    Parameters
    ----------
    df : frame
        One series or many, in any shape that a forecaster takes.
    period : int, optional
        Rows of a season; by frequency if None.
    method : {"stl", "classical"}
        Local regressions (`stl`), or moving averages and means by season, whose trend is NaN
        within half a season of the ends.
    model : {"add", "mul"}
        Sum or product of the parts. A product needs positive data; "stl" then decomposes the
        logarithm.

    Returns
    -------
    DataFrame
        Rows as in the data, with columns ``trend``, ``season`` and ``remainder``, prefixed by the
        target if there are several: ``sales-trend``.

    Other Parameters
    ----------------
    **frame
        Keywords of `tsrnn.data.read_panel`: `target`, `id_col`, `time_col`, `freq`, `missing`.
        Missing values are interpolated for trend and season; the remainder is NaN there.

    Raises
    ------
    TypeError, ValueError
        If data or an argument cannot be used, or a series has less than two seasons.

    References
    ----------
    Cleveland, R. B., Cleveland, W. S., McRae, J. E., Terpenning, I. (1990). STL: a
    seasonal-trend decomposition procedure based on loess. Journal of Official Statistics.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.preprocessing import decompose
    >>> months = pd.date_range("2015-01", periods=60, freq="MS")
    >>> y = pd.Series(np.arange(60.0) + np.tile([3.0, -3.0], 30), months)
    >>> decompose(y, period=2).round(3).iloc[:2]["season"].tolist()
    [3.0, -3.0]
    """
    method = choice("method", method, ("stl", "classical"))
    model = choice("model", model, ("add", "mul"))
    series = Series.of(df, frame)
    rows = series.season(period)
    _check_rows(series, rows, positive=model == "mul")
    parts = np.full((3, *series.values.shape), np.nan)
    # Local regressions decompose a sum; logarithms turn the product into one.
    logs = model == "mul" and method == "stl"
    for length, places, filled in _by_length(series.values):
        data = np.log(filled) if logs else filled
        if method == "stl":
            trend, season = stl(data, rows)
        else:
            trend, season = _classical(data, rows, model == "mul")
        if logs:
            trend, season = np.exp(trend), np.exp(season)
        y = series.values[places, :length]
        remainder = y / (trend * season) if model == "mul" else y - trend - season
        parts[:, places, :length] = trend, season, remainder
    return _written(series, parts)


def seasonal_strength(df: Any, period: int | None = None, **frame: Any) -> pd.Series:
    r"""Strength of the season of Wang, Smith and Hyndman, from 0 to 1.

    .. math:: F_S = \max\Big( 0, 1 - \frac{\mathrm{Var}(R_t)}{\mathrm{Var}(S_t + R_t)} \Big)

    with season S and remainder R from `stl`.

    Parameters
    ----------
    df : frame
        One series or many, in any shape that a forecaster takes.
    period : int, optional
        Rows of a season; by frequency if None.

    Returns
    -------
    Series
        Strength of each series; 0 for up to two seasons, too few to estimate it.

    Other Parameters
    ----------------
    **frame
        Keywords of `tsrnn.data.read_panel`: `target`, `id_col`, `time_col`, `freq`, `missing`.

    Raises
    ------
    TypeError, ValueError
        If data or an argument cannot be used, or there is no season.

    References
    ----------
    Wang, X., Smith, K. A., Hyndman, R. J. (2006). Characteristic-based clustering for time series
    data. Data Mining and Knowledge Discovery.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.preprocessing import seasonal_strength
    >>> y = pd.Series(np.random.default_rng(0).normal(size=60) + np.tile([9.0, 0, 0, 0], 15))
    >>> bool(seasonal_strength(y, period=4).item() > 0.9)
    True
    """
    series = Series.of(df, frame)
    strength = measure_strength(series.values, series.season(period))
    return pd.Series(strength, series.labels, name="strength")


def measure_strength(values: np.ndarray, period: int) -> np.ndarray:
    """Strength of the season of each row of an array, as in `seasonal_strength`.

    Parameters
    ----------
    values : ndarray of shape (N, T)
        A series a row; NaN where missing and after its end.
    period : int
        Rows of a season.

    Returns
    -------
    ndarray of shape (N,)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.preprocessing import measure_strength
    >>> wave = np.tile([1.0, 0.0, -1.0, 0.0], 10)
    >>> measure_strength(np.stack([wave, np.arange(40.0)]), 4).round(3).tolist()
    [1.0, 0.0]
    """
    strength = np.zeros(len(values))
    for length, places, data in _by_length(values):
        if length <= 2 * period:
            continue
        data = in_range(data)
        trend, season = stl(data, period)
        rest = data - trend
        total, left = rest.var(1), (rest - season).var(1)
        # Rounding errors are not variance.
        size = (1e-13 * np.abs(data).max(1)) ** 2
        known = total > size
        strength[places] = np.where(known, 1 - left / np.where(known, total, 1.0), 0.0)
    return np.clip(strength, 0.0, 1.0)


def stl(values: np.ndarray, period: int, seasonal: int = _WINDOW) -> tuple[np.ndarray, np.ndarray]:
    """Trend and season by local regressions (STL), for series of one length at once.

    Parameters
    ----------
    values : ndarray of shape (N, T)
        A series a row, at least two seasons long, without missing values.
    period : int
        Rows of a season.
    seasonal : int, default 11
        Seasons over which the season is smoothed, an odd number.

    Returns
    -------
    trend, season : ndarray of shape (N, T)

    Notes
    -----
    Results equal statsmodels' ``STL`` with ``seasonal_deg=0``: local means along the season,
    local lines along the trend, windows by Cleveland et al. (1990), five iterations without
    robustness weights. Each step is linear in the series, so that one sparse matrix serves all
    series of a length.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.preprocessing import stl
    >>> trend, season = stl(np.arange(40.0)[None] + np.tile([1.0, -1.0], 20), 2)
    >>> season[0, :2].round(3).tolist()
    [1.0, -1.0]
    """
    n = values.shape[1]
    to_season, to_trend = _operators(n, period, seasonal)
    # Local regressions keep a constant; without it, sums of large levels do not lose digits.
    middle = values.min(1, keepdims=True) / 2 + values.max(1, keepdims=True) / 2
    y = np.ascontiguousarray((values - middle).T)
    trend = np.zeros_like(y)
    for _ in range(_ITERATIONS):
        season = to_season(y - trend)
        trend = to_trend @ (y - season)
    return trend.T + middle, season.T


class _Season(NamedTuple):
    """Smoother along the season that leaves out the trend."""

    cycle: csr_array
    low_pass: csr_array
    period: int

    def __call__(self, y: np.ndarray) -> np.ndarray:
        smooth, p = self.cycle @ y, self.period
        low = _moving_average(_moving_average(_moving_average(smooth, p), p), 3)
        return smooth[p:-p] - self.low_pass @ low


@lru_cache(maxsize=64)
def _operators(n: int, period: int, seasonal: int) -> tuple[_Season, csr_array]:
    """Return operators: detrended series to season, series without season to trend."""
    rows, columns, weights = [], [], []
    for phase in range(period):  # one season more at either end, for the low pass
        length = (n - phase - 1) // period + 1
        at = np.arange(length + 2)
        places, part = _loess(at, length, seasonal, degree=0)
        rows.append(np.repeat(phase + period * at, places.shape[1]))
        columns.append(phase + period * places.ravel())
        weights.append(part.ravel())
    entries = tuple(np.concatenate(part) for part in (weights, rows, columns))
    cycle = csr_array((entries[0], entries[1:]), shape=(n + 2 * period, n))
    window = int(np.ceil(1.5 * period / (1 - 1.5 / seasonal)))
    return _Season(cycle, _local_lines(n, period + 1), period), _local_lines(n, window)


def _local_lines(n: int, window: int) -> csr_array:
    """Build the matrix of local regressions on a line, in windows of an odd number of rows."""
    at = np.arange(1, n + 1)
    places, weights = _loess(at, n, window + (window % 2 == 0), degree=1)
    rows = np.repeat(at - 1, places.shape[1])
    return csr_array((weights.ravel(), (rows, places.ravel())), shape=(n, n))


def _loess(at: np.ndarray, n: int, window: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (M, w) and their weights in the local regressions at places (M,), 1 to n."""
    width = min(window, n)
    left = np.clip(at - (window + 1) // 2 + 1, 1, n - width + 1)
    x = left[:, None] + np.arange(width)
    reach = np.maximum(at - left, left + width - 1 - at) + max(window - n, 0) // 2
    ratio = np.abs(x - at[:, None]) / np.maximum(reach, 1)[:, None]
    # Rounded at both ends of the tricube, as in Cleveland's program.
    weights = np.where(ratio <= 0.999, (1 - np.minimum(ratio, 1.0) ** 3) ** 3, 0.0)
    weights[ratio <= 0.001] = 1.0
    weights /= weights.sum(1, keepdims=True)
    if degree:
        centre = (weights * x).sum(1, keepdims=True)
        spread = (weights * (x - centre) ** 2).sum(1, keepdims=True)
        sloped = np.sqrt(spread) > 0.001 * (n - 1)
        slope = (at[:, None] - centre) / np.where(sloped, spread, 1.0) * sloped
        weights = weights * (slope * (x - centre) + 1)
    return x - 1, weights


def _moving_average(y: np.ndarray, width: int) -> np.ndarray:
    """Average neighbouring rows (T, N) to (T - width + 1, N)."""
    sums = np.cumsum(np.concatenate([np.zeros_like(y[:1]), y]), 0)
    return (sums[width:] - sums[:-width]) / width


def _classical(y: np.ndarray, period: int, multiply: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the trend by a centred moving average, and the means by season of the rest."""
    n, half = y.shape[1], period // 2
    weights = np.ones(period) if period % 2 else np.r_[0.5, np.ones(period - 1), 0.5]
    windows = np.lib.stride_tricks.sliding_window_view(y, len(weights), axis=1)
    trend = np.full(y.shape, np.nan)
    trend[:, half : n - half] = windows @ (weights / period)
    rest = y / trend if multiply else y - trend
    means = np.stack([np.nanmean(rest[:, phase::period], 1) for phase in range(period)], 1)
    centre = means.mean(1, keepdims=True)
    means = means / centre if multiply else means - centre
    return trend, means[:, np.arange(n) % period]


def _by_length(values: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield each length, the series of that length, and their values without gaps."""
    seen = np.isfinite(values)
    lengths = np.where(seen.any(1), values.shape[1] - seen[:, ::-1].argmax(1), 0)
    for length in np.unique(lengths[lengths > 0]):
        places = np.flatnonzero(lengths == length)
        data = values[places, :length]
        if not seen[places, :length].all():
            data = np.stack([interpolated(row) for row in data])
        yield int(length), places, data


def _check_rows(series: Series, period: int, positive: bool) -> None:
    """Refuse series that cannot be decomposed, naming one of them."""
    lengths = [length for length, _, _ in _by_length(series.values)]
    if not lengths or min(lengths) < 2 * period or not np.isfinite(series.values).any(1).all():
        counts = np.isfinite(series.values).sum(1)
        bad = int(counts.argmin())
        raise ValueError(
            f"a season of {period} rows needs at least {2 * period} rows; "
            f"{quote(series.labels[bad])} has {counts[bad]}. Give more rows, or a shorter period"
        )
    low = np.nanmin(series.values, 1)
    if positive and low.min() <= 0:
        bad = int(low.argmin())
        raise ValueError(
            f"model='mul' needs positive values; the lowest of {quote(series.labels[bad])} is "
            f"{low[bad]:g}. Take model='add'"
        )


def _written(series: Series, parts: np.ndarray) -> Any:
    """Write parts (3, N, T) of all series in the shape of the frame."""
    panel, layout = series.panel, series.panel.layout
    C = len(layout.target_names)
    alone = layout.kind == "series" or (layout.kind == "long" and C == 1)
    within = np.arange(parts.shape[2]) < panel.lengths[:, None]
    by_row = parts.reshape(3, panel.n_series, C, -1).swapaxes(2, 3)[:, within]  # (3, rows, C)
    if layout.kind == "long":  # each row is a series of one step, as lengths may differ
        ids, times = panel.ids.repeat(panel.lengths), panel.times[:, None]
        by_row = by_row[:, :, None]
    else:
        ids, times, by_row = panel.ids, panel.times[None], by_row[:, None]
    names = [part if alone else f"-{part}" for part in PARTS]
    if layout.kind == "series":
        layout = replace(layout, series_name=None)
    return write_frame(layout, ids, times, dict(zip(names, by_row, strict=True)), model="")
