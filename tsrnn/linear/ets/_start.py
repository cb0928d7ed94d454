"""Starts of the search for an optimum: smoothing parameters, and states by decomposition."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._regressors import first_slopes
from tsrnn.linear.ets._specification import Components

# Bounds of Hyndman et al. (2008) for alpha, beta / alpha and gamma / (1 - alpha).
SMALLEST, LARGEST = 1e-4, 0.9999
DAMPING = (0.8, 0.98)
# Largest beta / alpha. The likelihood of short series often prefers a trend that follows the last
# few rows and forecasts badly. Chosen on the training rows of M1, M3 and Tourism.
SLOW = 0.1
REGIONS = ("slow", "usual", "admissible")
# alpha, beta / alpha, gamma / (1 - alpha) and phi. Of 24 starts, for seven models of 150 series of
# each frequency of M3, the first six miss the highest likelihood least often: 0.4 percent with slow
# trends, 1.1 with others. The last is for trends that follow closely.
STARTS = (
    (0.5, 0.3, 0.2, 0.85),
    (0.02, 0.02, 0.02, 0.97),
    (0.9, 0.9, 0.5, 0.9),
    (0.1, 0.3, 0.5, 0.9),
    (0.9, 0.9, 0.1, 0.9),
    (0.1, 0.02, 0.02, 0.95),
    (0.35, 0.99, 0.2, 0.97),
)
WHOLE = (1, 2, 3, 5)  # STARTS with states from all rows, not the first: slow models need them
# Starts in a choice among models with slow trends: a third start improves the choice for only
# 0.3 percent of the series of M1 and M3.
FEW_STARTS = 2
FIRST_ROWS = 10  # that give the first level and trend
LEAST_FACTOR = 1e-2  # of a multiplicative season, which divides


def bounds(model: Components, region: str) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (k,) of the parameters of the search; equal for parameters that the model lacks.

    The region "slow" bounds beta by a tenth of alpha.
    """
    lower, upper = np.full((2, len(model.free)), np.inf)
    lower *= -1
    lower[:3], upper[:3], (lower[3], upper[3]) = SMALLEST, LARGEST, DAMPING
    upper[1] = SLOW if region == "slow" else LARGEST
    neutral = model.recursion.neutral
    return np.where(model.free, lower, neutral), np.where(model.free, upper, neutral)


def starting_points(model: Components, rows: np.ndarray, n_starts: int = len(STARTS)) -> np.ndarray:
    """Starting parameters (starts, N, k) of the search.

    Rows are (N, T), NaN if missing, or (N, T, 1 + k) with exogenous columns behind. Coefficients of
    columns alternate between regressions in differences, for series that wander, and in levels.
    """
    if rows.ndim == 2:
        return _points(model, rows, n_starts)
    values, columns = rows[:, :, 0], rows[:, :, 1:]
    points = []
    for lag in (model.period, 0):
        slopes = first_slopes(values, columns, lag)
        rest = values - np.einsum("ntm,nm->nt", columns, slopes)
        of_lag = _points(model, rest, n_starts)
        of_lag[:, :, model.recursion.slopes] = slopes
        points.append(of_lag)
    return np.stack([points[number % 2][number] for number in range(n_starts)])


def _points(model: Components, values: np.ndarray, n_starts: int) -> np.ndarray:
    """Starting parameters for values (N, T) less the effects of exogenous columns."""
    n, length = values.shape
    season, adjusted = np.empty((n, 0)), values
    if model.seasonal != "none":
        product = model.seasonal == "mul"
        season = seasonal_pattern(values, model.period, product)
        of_rows = season[:, np.arange(length) % model.period]
        adjusted = values / of_rows if product else values - of_rows
    points = []
    for number, start in enumerate(STARTS[:n_starts]):
        n_rows = length if number in WHOLE else max(FIRST_ROWS, 2 * model.period)
        states = _level_and_trend(model.trend, adjusted[:, :n_rows])
        slopes = np.zeros((n, len(model.columns)))
        point = np.column_stack([np.broadcast_to(start, (n, 4)), states, season[:, :-1], slopes])
        points.append(np.where(model.free, point, model.recursion.neutral))
    return np.stack(points)


def starting_states(model: Components, values: np.ndarray) -> np.ndarray:
    """States (N, q) before the first row of values (N, T) less the effects of columns."""
    return model.recursion.split(_points(model, values, 1)[0])[1]


def _level_and_trend(trend: str, values: np.ndarray) -> np.ndarray:
    """Level and trend (N, 2) before the first row, from a line through adjusted values."""
    seen = np.isfinite(values)
    count, t = np.maximum(seen.sum(1), 1), np.arange(1.0, values.shape[1] + 1)
    kept = np.where(seen, values, 0.0)
    middle = kept.sum(1) / count
    if trend == "none":
        return np.column_stack([middle, np.zeros(len(values))])
    centre = (seen * t).sum(1) / count
    away = np.where(seen, t - centre[:, None], 0.0)
    square = (away**2).sum(1)
    slope = (away * kept).sum(1) / np.where(square > 0, square, 1.0)
    level = middle - slope * centre
    if trend == "add":
        return np.column_stack([level, slope])
    # The growth factor at the middle of the line, and the level that leads there.
    growth = np.clip(1 + slope / np.where(middle > 0, middle, 1.0), 0.5, 2.0)
    return np.column_stack([np.maximum(middle, 1e-6) * growth**-centre, growth])


def seasonal_pattern(values: np.ndarray, period: int, product: bool) -> np.ndarray:
    """Seasonal effects (N, period), beginning at the first row, by classical decomposition.

    Deviations of values (N, T) from a moving average over a season are averaged over the seasons.
    NaN are left out; an effect without any value is neutral. Additive effects sum to zero,
    multiplicative ones have mean one.
    """
    n, length = values.shape
    weights = np.full(period + 1 - period % 2, 1.0 / period)
    if period % 2 == 0:
        weights[[0, -1]] /= 2
    trend = np.full(values.shape, np.nan)
    if length >= len(weights):
        windows = np.lib.stride_tricks.sliding_window_view(values, len(weights), axis=1)
        half = len(weights) // 2
        trend[:, half : half + windows.shape[1]] = windows @ weights
    steps = -(-length // period)
    rest = np.full((n, steps * period), np.nan)
    rest[:, :length] = values / trend if product else values - trend
    rest = rest.reshape(n, steps, period)
    seen = np.isfinite(rest)
    count, total = seen.sum(1), np.where(seen, rest, 0.0).sum(1)
    season = np.where(count > 0, total / np.maximum(count, 1), float(product))
    if product:
        season = np.maximum(season, LEAST_FACTOR)
        return season / season.mean(1, keepdims=True)
    return season - season.mean(1, keepdims=True)
