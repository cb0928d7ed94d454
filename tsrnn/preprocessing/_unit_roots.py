"""Unit-root tests, and numbers of differences by them."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.contract import choice, number, positive_integer
from tsrnn.preprocessing._decomposition import STRONG, measure_strength
from tsrnn.preprocessing._series import Series, in_range, packed

# Kwiatkowski et al. (1992), table 1: significance levels and critical values.
_LEVELS = np.array([0.1, 0.05, 0.025, 0.01])
_CRITICAL = {
    "c": np.array([0.347, 0.463, 0.574, 0.739]),
    "ct": np.array([0.119, 0.146, 0.176, 0.216]),
}
_ROUNDING = 1e-13  # spread relative to the size, below which variation is rounding alone
_NO_NOISE = 1e-10  # regression errors relative to the spread, below which they are rounding
_TREND_TERMS = {"n": 0, "c": 1, "ct": 2, "ctt": 3}
_UNTESTED, _EXACT = "constant or too short", "without noise"
_FEWEST = 5  # observations for a test


def kpss(
    df: Any, regression: str = "c", lags: int | None = None, alpha: float = 0.05, **frame: Any
) -> pd.DataFrame:
    r"""Test of Kwiatkowski, Phillips, Schmidt and Shin that a series is stationary.

    .. math::

        \eta = \frac{1}{T^2 s^2} \sum_t \Big( \sum_{i \le t} e_i \Big)^2, \qquad
        s^2 = \frac{1}{T} \sum_t e_t^2
              + \frac{2}{T} \sum_{l=1}^L \Big( 1 - \frac{l}{L + 1} \Big) \sum_t e_t e_{t-l}

    Parameters
    ----------
    df : frame
        One series or many, in any shape that a forecaster takes.
    regression : {"c", "ct"}
        Stationary around a constant, or around a line.
    lags : int, optional
        L; by default :math:`\lfloor 3 \sqrt T / 13 \rfloor`, as in R's ``forecast::ndiffs``.
    alpha : float, default 0.05
        Level of the conclusion.

    Returns
    -------
    DataFrame
        One row per series: ``statistic``, ``p_value``, ``lags``, ``n`` and ``conclusion``.
        P-values are clipped to the tabulated range, 0.01 to 0.1. NaN for series that are constant
        or shorter than five observations, and for exact lines, with the conclusion "without
        noise".

    Other Parameters
    ----------------
    **frame
        Keywords of `tsrnn.data.read_panel`: `target`, `id_col`, `time_col`, `freq`, `missing`.
        Missing values are left out by default.

    Raises
    ------
    TypeError, ValueError
        If data or an argument cannot be used.

    References
    ----------
    Kwiatkowski, D., Phillips, P. C. B., Schmidt, P., Shin, Y. (1992). Testing the null hypothesis
    of stationarity against the alternative of a unit root. Journal of Econometrics.

    Examples
    --------
    >>> from tsrnn.datasets import load_nile
    >>> from tsrnn.preprocessing import kpss
    >>> kpss(load_nile()).conclusion.tolist()
    ['unit root']
    """
    regression = choice("regression", regression, tuple(_CRITICAL))
    alpha, lags = _level(alpha), _lags(lags)
    series = Series.of(df, frame)
    values, counts = packed(in_range(series.values))
    statistic, used = _kpss_statistic(values, counts, regression, lags, _rounding(values))
    p_value = _p_values(statistic, regression)
    moves = (counts >= _FEWEST) & (np.ptp(_centred(values, counts), axis=1) > _rounding(values))
    reasons = np.where(moves, _EXACT, _UNTESTED)
    return _table(series, statistic, p_value, used, counts, alpha, reasons)


def adf(
    df: Any, regression: str = "c", lags: int | None = None, alpha: float = 0.05, **frame: Any
) -> pd.DataFrame:
    r"""Augmented test of Dickey and Fuller that a series has a unit root, by statsmodels.

    .. math:: \Delta y_t = \mu + \rho y_{t-1} + \sum_{l=1}^L \gamma_l \Delta y_{t-l} + e_t,
              \qquad \rho = 0

    Parameters
    ----------
    df : frame
        One series or many, in any shape that a forecaster takes.
    regression : {"c", "ct", "ctt", "n"}
        Terms of the trend: constant, line, parabola, none.
    lags : int, optional
        L; by default chosen by AIC.
    alpha : float, default 0.05
        Level of the conclusion.

    Returns
    -------
    DataFrame
        As in `kpss`, with p-values from MacKinnon's response surfaces. NaN also for a series that
        follows exactly from its past, such as a line, with the conclusion "without noise".

    Other Parameters
    ----------------
    **frame
        Keywords of `tsrnn.data.read_panel`: `target`, `id_col`, `time_col`, `freq`, `missing`.
        Missing values are left out by default.

    Raises
    ------
    TypeError, ValueError
        If data or an argument cannot be used.

    References
    ----------
    MacKinnon, J. G. (1994). Approximate asymptotic distribution functions for unit-root and
    cointegration tests. Journal of Business and Economic Statistics.

    Examples
    --------
    >>> from tsrnn.datasets import load_nile
    >>> from tsrnn.preprocessing import adf
    >>> adf(load_nile(), lags=1).conclusion.tolist()
    ['stationary']
    """
    regression = choice("regression", regression, ("c", "ct", "ctt", "n"))
    alpha, lags = _level(alpha), _lags(lags)
    series = Series.of(df, frame)
    values, counts = packed(in_range(series.values))
    tests = [
        _adf_test(row[:count], regression, lags, rounding)
        for row, count, rounding in zip(values, counts, _rounding(values), strict=True)
    ]
    statistic, p_value, used = np.array([test[:3] for test in tests]).T
    reasons = np.array([test.reason for test in tests])
    return _table(series, statistic, p_value, used, counts, alpha, reasons, unit_root_is_null=True)


def ndiffs(
    df: Any, test: str = "kpss", alpha: float = 0.05, max_d: int = 2, **frame: Any
) -> pd.Series:
    """Number of differences after which a unit-root test takes a series for stationary.

    Parameters
    ----------
    df : frame
        One series or many, in any shape that a forecaster takes.
    test : {"kpss", "adf"}
        Differences are taken while `kpss` rejects, or while `adf` does not.
    alpha : float, default 0.05
        Level of the test, from 0.01 to 0.1.
    max_d : int, default 2
        Differences at most.

    Returns
    -------
    Series
        Number of differences of each series; 0 for a constant one.

    Other Parameters
    ----------------
    **frame
        Keywords of `tsrnn.data.read_panel`: `target`, `id_col`, `time_col`, `freq`, `missing`.

    Raises
    ------
    TypeError, ValueError
        If data or an argument cannot be used.

    References
    ----------
    Hyndman, R. J., Khandakar, Y. (2008). Automatic time series forecasting: the forecast package
    for R. Journal of Statistical Software.

    Examples
    --------
    >>> from tsrnn.datasets import load_nile
    >>> from tsrnn.preprocessing import ndiffs
    >>> ndiffs(load_nile()).tolist()
    [1]
    """
    test, alpha = choice("test", test, ("kpss", "adf")), _level(alpha)
    max_d = positive_integer("max_d", max_d)
    series = Series.of(df, frame)
    if test == "kpss":
        return pd.Series(count_differences(series.values, alpha, max_d), series.labels, name="d")
    values, counts = packed(in_range(series.values))
    d = [_adf_differences(row[:n], alpha, max_d) for row, n in zip(values, counts, strict=True)]
    return pd.Series(d, series.labels, name="d")


def nsdiffs(
    df: Any, period: int | None = None, threshold: float = STRONG, **frame: Any
) -> pd.Series:
    """Number of seasonal differences, 0 or 1, by the strength of the season.

    Parameters
    ----------
    df : frame
        One series or many, in any shape that a forecaster takes.
    period : int, optional
        Rows of a season; by frequency if None.
    threshold : float, default 0.64
        Value of `seasonal_strength` above which to difference; the default is that of R's
        ``forecast::nsdiffs``, best for forecasts of the M3 data.

    Returns
    -------
    Series
        0 or 1 for each series; 0 for up to two seasons.

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
    >>> from tsrnn.preprocessing import nsdiffs
    >>> months = pd.date_range("2015-01", periods=60, freq="MS")
    >>> noise = np.random.default_rng(0).normal(size=60)
    >>> y = pd.DataFrame({"wave": np.sin(np.pi * np.arange(60) / 6) + noise / 9, "noise": noise})
    >>> nsdiffs(y.set_index(months)).tolist()
    [1, 0]
    """
    threshold = number("threshold", threshold, lowest=0.0, open_=False, highest=1.0)
    series = Series.of(df, frame)
    strength = measure_strength(series.values, series.season(period))
    return pd.Series((strength > threshold).astype(np.int64), series.labels, name="D")


def count_differences(values: np.ndarray, alpha: float = 0.05, max_d: int = 2) -> np.ndarray:
    """Number of differences by the KPSS test, for all rows of an array at once.

    Parameters
    ----------
    values : ndarray of shape (N, T)
        A series a row; NaN where missing and after its end.
    alpha : float, default 0.05
        Level of the test, from 0.01 to 0.1.
    max_d : int, default 2
        Differences at most.

    Returns
    -------
    integer ndarray of shape (N,)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.preprocessing import count_differences
    >>> noise = np.random.default_rng(0).normal(size=(3, 200))
    >>> noise[1] = noise[1].cumsum()
    >>> noise[2] = noise[2].cumsum().cumsum()
    >>> count_differences(noise).tolist()
    [0, 1, 2]
    """
    (rows, counts), d = packed(in_range(values)), np.zeros(len(values), np.int64)
    left, rounding = np.arange(len(values)), _rounding(rows)
    for _ in range(max_d):
        # Differences keep the rounding errors of their levels.
        statistic, _ = _kpss_statistic(rows, counts, "c", None, rounding)
        go_on = _p_values(statistic, "c") < alpha  # not of a constant series, whose p-value is NaN
        left, rows, counts, rounding = (part[go_on] for part in (left, rows, counts, rounding))
        if not len(left):
            break
        d[left] += 1
        rows, counts = np.diff(rows, axis=1), counts - 1
        rows = np.where(np.arange(rows.shape[1]) < counts[:, None], rows, 0.0)
    return d


def _rounding(values: np.ndarray) -> np.ndarray:
    """Estimate rounding errors (N,) of rows (N, T)."""
    rounding: np.ndarray = _ROUNDING * np.abs(values).max(1, initial=0.0)
    return rounding


def _centred(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Subtract the mean of rows (N, T), zeros behind their observations."""
    within = np.arange(values.shape[1]) < counts[:, None]
    # Subtract the first value before summing: sums of a large level would keep few digits.
    e = np.where(within, values - values[:, :1], 0.0)
    return np.where(within, e - (e.sum(1) / np.maximum(counts, 1))[:, None], 0.0)


def _kpss_statistic(
    values: np.ndarray, counts: np.ndarray, regression: str, lags: int | None, rounding: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return statistics and lags (N,) of rows (N, T) with zeros behind their observations.

    NaN where a row varies about its regression by `rounding` (N,) alone.
    """
    within = np.arange(values.shape[1]) < counts[:, None]
    n, e = np.maximum(counts, 1), _centred(values, counts)
    if regression == "ct":
        time = np.where(within, np.arange(values.shape[1]) - (n[:, None] - 1) / 2, 0.0)
        e = e - ((e * time).sum(1) / np.maximum((time**2).sum(1), 1))[:, None] * time
    used = np.floor(3 * np.sqrt(n) / 13) if lags is None else np.minimum(lags, n - 1.0)
    spread = (e**2).sum(1)
    constant = spread <= n * rounding**2
    long_run = spread.copy()
    for lag in range(1, int(used.max(initial=0)) + 1):
        weight = np.maximum(1 - lag / (used + 1), 0.0)
        long_run += 2 * weight * (e[:, lag:] * e[:, :-lag]).sum(1)
    sums = np.where(within, e.cumsum(1), 0.0)
    fine = ~constant & (counts >= _FEWEST) & (long_run > 0)
    statistic = (sums**2).sum(1) / (n * np.where(fine, long_run, 1.0))
    return np.where(fine, statistic, np.nan), used


def _p_values(statistic: np.ndarray, regression: str) -> np.ndarray:
    """Interpolate significance in the table, clipped to its ends."""
    return np.interp(statistic, _CRITICAL[regression], _LEVELS)


class _AdfTest(NamedTuple):
    """Statistic, p-value and lags of one series, or NaN with a reason."""

    statistic: float = math.nan
    p_value: float = math.nan
    lags: float = math.nan
    reason: str = ""


def _adf_test(y: np.ndarray, regression: str, lags: int | None, rounding: float) -> _AdfTest:
    """Test one series (n,) with errors of `rounding`, by statsmodels."""
    from statsmodels.tools.sm_exceptions import SingularMatrixWarning
    from statsmodels.tsa.stattools import adfuller

    n, terms = len(y), _TREND_TERMS[regression]
    fewest = _FEWEST + 3 + (0 if lags is None else 2 * lags)
    if n < fewest or np.ptp(y) <= rounding:
        return _AdfTest(reason=_UNTESTED)
    # Neither the trend terms nor the unit change the statistic. Remove them, as a large level
    # makes the regression nearly singular.
    if terms:
        y = y - y[0]
        powers = np.vander(np.linspace(-1, 1, n), terms)
        y = y - powers @ np.linalg.lstsq(powers, y, rcond=None)[0]
    size = np.abs(y).max()
    if size <= rounding:
        return _AdfTest(reason=_EXACT)
    y = y / size
    # Schwert's rule, as in statsmodels, with at least one observation more than coefficients.
    most = min(math.ceil(12 * (n / 100) ** 0.25), n // 2 - terms - 1, (n - 3 - terms) // 2)
    most = most if lags is None else lags
    if _regression_error(y, terms, most) <= _NO_NOISE + rounding / size:
        return _AdfTest(reason=_EXACT)
    autolag = "AIC" if lags is None else None
    with warnings.catch_warnings():
        # Lags are collinear in a series with a single jump; any solution will do.
        warnings.simplefilter("ignore", SingularMatrixWarning)
        result = adfuller(y, most, regression, autolag, result_object=True)
    return _AdfTest(float(result.statistic), float(result.pvalue), float(result.lags))


def _regression_error(y: np.ndarray, terms: int, lags: int) -> float:
    """Return the root mean squared error of the regression of the test with all lags."""
    change = np.diff(y)
    past = [change[lags - lag : len(change) - lag] for lag in range(1, lags + 1)]
    trend = np.vander(np.linspace(-1, 1, len(change) - lags), terms)
    columns = np.column_stack([y[lags:-1], trend, *past])
    left = change[lags:] - columns @ np.linalg.lstsq(columns, change[lags:], rcond=None)[0]
    return float(np.sqrt(np.mean(left**2)))


def _adf_differences(y: np.ndarray, alpha: float, max_d: int) -> int:
    """Count differences until the test rejects, or by KPSS for a series without noise."""
    rounding = float(_rounding(y[None])[0])
    for d in range(max_d):
        test = _adf_test(np.diff(y, d), "c", None, rounding)
        if test.reason == _EXACT:
            return int(count_differences(y[None], alpha, max_d)[0])
        if not test.p_value > alpha:  # nor where it is NaN
            return d
    return max_d


def _table(
    series: Series,
    statistic: np.ndarray,
    p_value: np.ndarray,
    lags: np.ndarray,
    counts: np.ndarray,
    alpha: float,
    reasons: np.ndarray,
    unit_root_is_null: bool = False,
) -> pd.DataFrame:
    """Tabulate results by series, with the conclusion at a level or the reason for NaN."""
    stationary = (p_value < alpha) == unit_root_is_null
    tested = np.where(stationary, "stationary", "unit root")
    conclusion = np.where(np.isfinite(p_value), tested, reasons).astype(object)
    columns = {
        "statistic": statistic,
        "p_value": p_value,
        "lags": pd.array(np.where(np.isfinite(lags), lags, 0).astype(np.int64)),
        "n": counts,
        "conclusion": conclusion,
    }
    return pd.DataFrame(columns, series.labels)


def _level(alpha: Any) -> float:
    """Check the level of a test, whose distribution is tabulated from 0.01 to 0.1."""
    return number("alpha", alpha, lowest=0.01, open_=False, highest=0.1)


def _lags(lags: Any) -> int | None:
    """Check a number of lags, which may be zero or None."""
    return lags if lags is None or lags == 0 else positive_integer("lags", lags)
