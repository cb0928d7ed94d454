"""Layers of the prior: calendar effects, level shifts, outliers, zeros, scale and rounding."""

from __future__ import annotations

import numpy as np

from tsrnn.prior._distributions import loguniform, occurs

_MONTHS_OF_ROW = {12: 1, 4: 3}
_DAYS_OF_MONTH = 30.4375


def calendar(rng: np.random.Generator, values: np.ndarray, season_length: int) -> np.ndarray:
    r"""Add trading days and month lengths to 15 percent of monthly and quarterly series.

    .. math:: y_t \leftarrow y_t \sum_d w_d N_{d,t} \Big/ \sum_d w_d \bar N_d

    Here :math:`N_{d,t}` is the number of Mondays to Sundays in the month or quarter t; the first
    month is drawn from 1950 to 2020. In half of these series all weights are 1: month lengths
    only. In the others weights are uniform on (0.7, 1.3) on working days, and on (0, 1.5) on
    Saturdays and Sundays.

    Parameters
    ----------
    rng : numpy.random.Generator
    values : ndarray of shape (n_series, n_rows)
    season_length : int
        12 for months, 4 for quarters; other series are unchanged.

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import calendar
    >>> calendar(np.random.default_rng(0), np.ones((100, 24)), 12).shape
    (100, 24)
    """
    step = _MONTHS_OF_ROW.get(season_length)
    rows = np.flatnonzero(occurs(rng, 0.15, len(values)))
    if step is None or not len(rows):
        return values
    n_rows = values.shape[1]
    first = np.datetime64("1950-01", "M") + rng.integers(0, 70 * 12)
    days = (first + step * np.arange(n_rows + 1)).astype("datetime64[D]").astype(int)
    # Days of each weekday before a day, counted from the epoch, a Thursday.
    before = (days[:, None] - np.arange(7)) // 7
    weekdays = np.diff(before, axis=0)
    weight = rng.uniform(0.7, 1.3, (len(rows), 7))
    weight[:, 2:4] = rng.uniform(0, 1.5, (len(rows), 2))
    weight[occurs(rng, 0.5, len(rows))] = 1.0
    mean = weight.mean(1) * step * _DAYS_OF_MONTH
    result = values.copy()
    result[rows] *= weight @ weekdays.T / mean[:, None]
    return result


def level_shifts(rng: np.random.Generator, values: np.ndarray, season_length: int) -> np.ndarray:
    r"""Shift the level of 8 percent of the series.

    .. math:: y_t \leftarrow y_t e^{\delta [t \ge \tau]}

    with :math:`\delta` from a Laplace distribution of scale 0.2 and :math:`\tau` uniform.

    Parameters
    ----------
    rng : numpy.random.Generator
    values : ndarray of shape (n_series, n_rows)
    season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import level_shifts
    >>> level_shifts(np.random.default_rng(0), np.ones((100, 24)), 12).shape
    (100, 24)
    """
    rows = np.flatnonzero(occurs(rng, 0.08, len(values)))
    n_rows = values.shape[1]
    place = rng.integers(0, n_rows, (len(rows), 1))
    factor = np.exp(rng.laplace(0, 0.2, (len(rows), 1)))
    result = values.copy()
    result[rows] *= np.where(np.arange(n_rows) >= place, factor, 1.0)
    return result


def outliers(rng: np.random.Generator, values: np.ndarray, season_length: int) -> np.ndarray:
    r"""Add outliers, and patches of outliers, to 12 percent of the series.

    .. math:: y_t \leftarrow y_t + z\, \mathrm{median}_u |y_u - y_{u-1}|

    The number of outliers is 1 plus a Poisson variable with mean T / 60; sizes z are uniform on
    (3, 12) with random sign. In a quarter of these series an outlier lasts 2 to 6 rows. Positive
    values are not reduced below a tenth of themselves.

    Parameters
    ----------
    rng : numpy.random.Generator
    values : ndarray of shape (n_series, n_rows)
    season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import outliers
    >>> outliers(np.random.default_rng(0), np.ones((100, 24)), 12).shape
    (100, 24)
    """
    rows = np.flatnonzero(occurs(rng, 0.12, len(values)))
    n_rows = values.shape[1]
    if not len(rows) or n_rows < 2:
        return values
    result = values.copy()
    count = 1 + rng.poisson(n_rows / 60, len(rows))
    length = np.where(occurs(rng, 0.25, len(rows)), rng.integers(2, 7, len(rows)), 1)
    series = np.repeat(np.arange(len(rows)), count)
    place = rng.integers(0, n_rows, len(series))
    size = rng.uniform(3, 12, len(series)) * rng.choice([-1.0, 1.0], len(series))
    change = np.zeros((len(rows), n_rows))
    for lag in range(6):
        reached = (lag < length[series]) & (place + lag < n_rows)
        np.add.at(change, (series[reached], place[reached] + lag), size[reached])
    clean = values[rows]
    dirty = clean + change * np.median(np.abs(np.diff(clean)), axis=1, keepdims=True)
    result[rows] = np.where(clean > 0, np.maximum(dirty, 0.1 * clean), dirty)
    return result


def zeros(rng: np.random.Generator, values: np.ndarray, season_length: int) -> np.ndarray:
    """Set rows of 2 percent of the series to zero.

    In half of these series each row is zero with a probability uniform on (0, 0.2); in the others
    one stretch of up to a tenth of the rows.

    Parameters
    ----------
    rng : numpy.random.Generator
    values : ndarray of shape (n_series, n_rows)
    season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import zeros
    >>> zeros(np.random.default_rng(0), np.ones((100, 24)), 12).shape
    (100, 24)
    """
    rows = np.flatnonzero(occurs(rng, 0.02, len(values)))
    n_rows = values.shape[1]
    single = rng.random((len(rows), n_rows)) < rng.uniform(0, 0.2, (len(rows), 1))
    first = rng.integers(0, n_rows, (len(rows), 1))
    last = first + rng.integers(1, 2 + n_rows // 10, (len(rows), 1))
    row = np.arange(n_rows)
    stretch = (row >= first) & (row < last)
    result = values.copy()
    result[rows] *= ~np.where(occurs(rng, 0.5, len(rows))[:, None], single, stretch)
    return result


def scale(rng: np.random.Generator, values: np.ndarray, season_length: int) -> np.ndarray:
    """Multiply series by levels that are log-uniform on (10, 100,000).

    Parameters
    ----------
    rng : numpy.random.Generator
    values : ndarray of shape (n_series, n_rows)
    season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)
        3 percent of the series start at zero, like temperatures and balances.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import scale
    >>> scale(np.random.default_rng(0), np.ones((100, 24)), 12).shape
    (100, 24)
    """
    about_zero = occurs(rng, 0.03, len(values))[:, None]
    return (values - about_zero * values[:, :1]) * loguniform(rng, 10, 1e5, len(values))[:, None]


def rounding(rng: np.random.Generator, values: np.ndarray, season_length: int) -> np.ndarray:
    """Round half of the series to integers, and 20 percent to hundredths.

    Series whose median change is at most ten rounding units are unchanged.

    Parameters
    ----------
    rng : numpy.random.Generator
    values : ndarray of shape (n_series, n_rows)
    season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import rounding
    >>> rounding(np.random.default_rng(0), np.ones((100, 24)), 12).shape
    (100, 24)
    """
    if values.shape[1] < 2:
        return values
    change = np.median(np.abs(np.diff(values)), axis=1)
    kind = rng.choice(3, len(values), p=[0.5, 0.2, 0.3])
    result = values.copy()
    for code, parts in enumerate((1, 100)):
        rows = (kind == code) & (change * parts > 10)  # rounding must not hide the changes
        result[rows] = np.round(values[rows] * parts) / parts
    return result
