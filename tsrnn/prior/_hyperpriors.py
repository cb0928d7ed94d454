"""Hyperpriors by the rows of a season: years grow, quarters are smooth, hours have seasons."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from tsrnn.prior._distributions import loguniform, occurs


class Hyperprior(NamedTuple):
    """Usual sizes of a frequency, all relative to the level of a series.

    Attributes
    ----------
    growth, spread : float
        Median and scale of the growth in a row.
    step : tuple of float
        Least and largest standard deviation of what a level moves by in a row.
    noise : tuple of float
        Least and largest standard deviation of the noise around the level.
    noisy, seasonal : float
        Probabilities of noise and of a season around a moving level.
    amplitude : float
        Median standard deviation of a season.
    """

    growth: float
    spread: float
    step: tuple[float, float]
    noise: tuple[float, float]
    noisy: float
    seasonal: float
    amplitude: float


# Least season length of a frequency -> its sizes: years (and series without a season), quarters,
# days, months, hours, weeks, parts of hours. Chosen so that simulated series cover those of the
# M1, M3 and M4 competitions before their test parts.
HYPERPRIORS = {
    1: Hyperprior(0.04, 0.035, (0.01, 0.15), (0.002, 0.06), 0.2, 0.0, 0.0),
    2: Hyperprior(0.01, 0.01, (0.005, 0.08), (0.002, 0.08), 0.4, 0.6, 0.03),
    5: Hyperprior(0.0002, 0.001, (0.002, 0.05), (0.01, 0.3), 0.7, 0.8, 0.1),
    12: Hyperprior(0.003, 0.004, (0.003, 0.08), (0.01, 0.3), 0.8, 0.7, 0.07),
    24: Hyperprior(0.0, 0.0003, (0.001, 0.03), (0.002, 0.3), 0.5, 0.95, 0.2),
    52: Hyperprior(0.0005, 0.0015, (0.002, 0.06), (0.01, 0.3), 0.7, 0.7, 0.12),
    53: Hyperprior(0.0, 0.0003, (0.001, 0.03), (0.002, 0.3), 0.5, 0.95, 0.2),
}
# Of any frequency, in a quarter of the series: the prior is wider than what was seen.
_WIDE_STEP = (0.001, 0.15)
_WIDE_NOISE = (0.001, 0.3)
_WIDE = 0.25
# Rows from which on steps become smaller, so that long series wander as far as short ones.
_ROWS = 100


def hyperprior(season_length: int) -> Hyperprior:
    """Usual sizes for a season length."""
    least = list(HYPERPRIORS)
    return HYPERPRIORS[least[bisect_right(least, season_length) - 1]]


def growth_rate(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Relative growth in a row: Student's t with 3 degrees of freedom, by `Hyperprior`."""
    usual = hyperprior(season_length)
    rate = usual.growth + usual.spread * rng.standard_t(3, n_series)
    return np.clip(rate * min(1.0, _ROWS / n_rows), -0.2, 0.2)


def step_size(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Standard deviations of the steps of a level, log-uniform by `Hyperprior`."""
    wide = occurs(rng, _WIDE, n_series)
    usual = loguniform(rng, *hyperprior(season_length).step, n_series)
    size = np.where(wide, loguniform(rng, *_WIDE_STEP, n_series), usual)
    return size * min(1.0, (_ROWS / n_rows) ** 0.5)


def noise_size(rng: np.random.Generator, n_series: int, season_length: int) -> np.ndarray:
    """Standard deviations of noise, log-uniform by `Hyperprior`."""
    wide = occurs(rng, _WIDE, n_series)
    usual = loguniform(rng, *hyperprior(season_length).noise, n_series)
    return np.where(wide, loguniform(rng, *_WIDE_NOISE, n_series), usual)


def season_amplitude(rng: np.random.Generator, n_series: int, season_length: int) -> np.ndarray:
    """Standard deviations of seasons, log-normal by `Hyperprior` with 1 of the log, at most 1."""
    median = hyperprior(season_length).amplitude
    return np.minimum(median * np.exp(rng.standard_normal(n_series)), 1.0)
