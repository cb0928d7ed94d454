"""Numbers of differences of an automatic ARIMA: given, or chosen by tests."""

from __future__ import annotations

import numpy as np

from tsrnn.preprocessing import STRONG, count_differences, measure_strength


def choose_differences(
    values: np.ndarray,
    exog: np.ndarray | None,
    period: int,
    given: tuple[int | None, int | None],
    highest: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers d of differences and D of seasonal differences, each (N,), of series (N, T).

    As in Hyndman and Khandakar (2008): D by the strength of the season, then d by KPSS tests of the
    series differenced D times, both up to their `highest`, unless `given`. With regressors
    (N, T, m) both use the residuals of least squares. Values are NaN where missing and after the
    end; `period` is 1 without a season.
    """
    (d, D), (max_d, max_D), n = given, highest, len(values)
    rest = values if exog is None or None not in given else without_regressors(values, exog)
    seasonal = np.zeros(n, np.int64) if D is None else np.full(n, D)
    if D is None and period > 1 and max_D:
        seasonal = (measure_strength(rest, period) > STRONG).astype(np.int64)
    if d is not None:
        return np.full(n, d), seasonal
    for times in range(1, int(seasonal.max(initial=0)) + 1):
        chosen = seasonal >= times
        rest = np.where(chosen[:, None], lagged_difference(rest, period), rest)
    return count_differences(rest, max_d=max_d) if max_d else np.zeros(n, np.int64), seasonal


def lagged_difference(values: np.ndarray, lag: int) -> np.ndarray:
    """Differences over `lag` rows, (N, T, ...), NaN in the first rows."""
    result = np.full(values.shape, np.nan)
    result[:, lag:] = values[:, lag:] - values[:, :-lag]
    return result


def without_regressors(values: np.ndarray, exog: np.ndarray) -> np.ndarray:
    """Least-squares residuals given a constant and the regressors, series by series."""
    rest = np.full(values.shape, np.nan)
    for y, X, e in zip(values, exog, rest, strict=True):
        seen = np.isfinite(y)
        if seen.any():
            columns = X[seen] - X[seen].mean(0)
            centred = y[seen] - y[seen].mean()
            e[seen] = centred - columns @ np.linalg.lstsq(columns, centred, rcond=None)[0]
    return rest
