"""Power of the Box-Cox transformation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from tsrnn.contract import choice, number
from tsrnn.data import log_ratios, quote
from tsrnn.preprocessing._series import Series


def boxcox_lambda(
    df: Any,
    period: int | None = None,
    method: str = "guerrero",
    bounds: tuple[float, float] = (-1.0, 2.0),
    **frame: Any,
) -> pd.Series:
    r"""Power of the Box-Cox transformation that evens out the spread of a series.

    .. math:: w_t = (y_t^\lambda - 1) / \lambda, \qquad \log y_t \text{ with } \lambda = 0

    Parameters
    ----------
    df : frame
        One series or many, in any shape that a forecaster takes.
    period : int, optional
        Rows of the groups of "guerrero", at least two; a season by frequency if None.
    method : {"guerrero", "loglik"}
        Least coefficient of variation of :math:`s_i / m_i^{1 - \lambda}` over groups of rows with
        mean m and standard deviation s; or highest likelihood of independent normal values.
    bounds : tuple of float, default (-1, 2)
        Lowest and highest power.

    Returns
    -------
    Series
        Power of each series; NaN if constant, or with "guerrero" if shorter than two groups.

    Other Parameters
    ----------------
    **frame
        Keywords of `tsrnn.data.read_panel`: `target`, `id_col`, `time_col`, `freq`, `missing`.
        Missing values are left out by default.

    Raises
    ------
    TypeError, ValueError
        If data or an argument cannot be used, or a value is not positive.

    References
    ----------
    Guerrero, V. M. (1993). Time-series analysis supported by power transformations. Journal of
    Forecasting.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.preprocessing import boxcox_lambda
    >>> y = pd.Series(np.exp(np.random.default_rng(0).normal(size=400)))
    >>> bool(abs(boxcox_lambda(y, method="loglik").item()) < 0.1)
    True
    """
    method = choice("method", method, ("guerrero", "loglik"))
    low, high = (number("bounds", bound, lowest=-np.inf, open_=True) for bound in bounds)
    if low >= high:
        raise ValueError(f"bounds must be (low, high) with low < high; got {bounds!r}")
    series = Series.of(df, frame)
    lowest = np.nanmin(series.values, 1, initial=np.inf)
    if lowest.min() <= 0:
        bad = int(lowest.argmin())
        raise ValueError(
            f"a Box-Cox transformation needs positive values; the lowest of "
            f"{quote(series.labels[bad])} is {lowest[bad]:g}. Add a constant, or leave the series "
            f"out"
        )
    rows = max(2, series.period(period))
    powers = [_power(y[np.isfinite(y)], rows, method, (low, high)) for y in series.values]
    return pd.Series(powers, series.labels, name="lambda")


def _power(y: np.ndarray, period: int, method: str, bounds: tuple[float, float]) -> float:
    """Estimate the power of one series."""
    if len(y) < 2 * period or np.ptp(y) == 0:
        return np.nan
    if method == "loglik":
        logs = _centred_logs(y)

        def log_variance(power: float) -> float:
            # With a geometric mean of one, the likelihood depends on the variance alone.
            with np.errstate(over="ignore", invalid="ignore"):
                variance = np.var(np.expm1(power * logs) / power if power else logs)
            return float(np.log(variance)) if np.isfinite(variance) else np.inf

        return float(minimize_scalar(log_variance, bounds=bounds, method="bounded").x)
    groups = y[len(y) % period :].reshape(-1, period)  # drop the first rows, keep the latest
    log_mean, spread = _centred_logs(groups.mean(1)), groups.std(1, ddof=1)

    def variation(power: float) -> float:
        ratio = spread * np.exp((power - 1) * log_mean)
        return float(ratio.std(ddof=1) / ratio.mean())

    return float(minimize_scalar(variation, bounds=bounds, method="bounded").x)


def _centred_logs(values: np.ndarray) -> np.ndarray:
    """Take logarithms of positive values, less their mean."""
    logs = log_ratios(values, np.median(values))
    centred: np.ndarray = logs - logs.mean()
    return centred
