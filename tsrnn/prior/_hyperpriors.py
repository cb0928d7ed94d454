"""Hyperpriors by season length: years grow, quarters are smooth, hours have seasons."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from tsrnn.prior._distributions import loguniform, occurs


class Hyperprior(NamedTuple):
    """Sizes of components for a frequency, relative to the level of a series.

    Attributes
    ----------
    rows : int
        Reference length. Levels of longer series move less in a row, so that they wander as far.
    growth, spread : float
        Median and scale of the growth in a row.
    step : tuple of float
        Bounds of the standard deviation of level changes in a row.
    noise : tuple of float
        Bounds of the standard deviation of the noise around the level.
    noisy, seasonal : float
        Probabilities of noise and of a season around a moving level.
    amplitude : float
        Median standard deviation of a season.

    Examples
    --------
    >>> from tsrnn.prior import Hyperprior, hyperprior
    >>> isinstance(hyperprior(4), Hyperprior)
    True
    """

    rows: int
    growth: float
    spread: float
    step: tuple[float, float]
    noise: tuple[float, float]
    noisy: float
    seasonal: float
    amplitude: float


# Smallest season length of a frequency -> sizes: years (and series without a season), quarters,
# days, months, hours, weeks, parts of hours. Chosen so that simulated series cover the training
# parts of the M1, M3 and M4 competitions.
HYPERPRIORS = {
    1: Hyperprior(50, 0.07, 0.05, (0.015, 0.12), (0.002, 0.05), 0.2, 0.0, 0.0),
    2: Hyperprior(80, 0.013, 0.01, (0.005, 0.08), (0.002, 0.08), 0.4, 0.55, 0.02),
    5: Hyperprior(200, 0.0002, 0.001, (0.002, 0.05), (0.01, 0.3), 0.7, 0.8, 0.1),
    12: Hyperprior(120, 0.003, 0.004, (0.003, 0.08), (0.02, 0.3), 0.8, 0.7, 0.07),
    24: Hyperprior(400, 0.0, 0.0001, (0.0005, 0.02), (0.001, 0.25), 0.4, 0.95, 0.25),
    52: Hyperprior(150, 0.0005, 0.0015, (0.002, 0.06), (0.01, 0.3), 0.7, 0.7, 0.12),
    53: Hyperprior(400, 0.0, 0.0001, (0.0005, 0.02), (0.001, 0.25), 0.4, 0.95, 0.25),
}
# Bounds for a quarter of the series of any frequency: a prior must be wider than the data seen.
_WIDE_STEP = (0.001, 0.15)
_WIDE_NOISE = (0.001, 0.3)
_WIDE_AMPLITUDE = (0.01, 0.8)
_WIDE = 0.25


def hyperprior(season_length: int) -> Hyperprior:
    r"""Sizes of growth, steps, noise and seasons for a season length.

    Growth is ``growth`` plus ``spread`` times Student's t with 3 degrees of freedom, clipped to
    plus and minus 0.2 in a row. Standard deviations of steps and noise are log-uniform on ``step``
    and ``noise``. Amplitudes of seasons are lognormal around ``amplitude`` with log standard
    deviation 1, at most 1. A prior must be wider than the data it was calibrated on: a quarter of
    the series draws steps from (0.001, 0.15), noise from (0.001, 0.3) and amplitudes from
    (0.01, 0.8) for any season. With R for ``rows``, growth is multiplied by
    :math:`\min(1, R / T)` and steps by the square root.

    Parameters
    ----------
    season_length : int
        1 row for years, 2 to 4 for quarters, 5 to 11 for days, 12 to 23 for months, 24 to 51 for
        hours, 52 for weeks, more for parts of hours.

    Returns
    -------
    Hyperprior

    Examples
    --------
    >>> from tsrnn.prior import hyperprior
    >>> hyperprior(1).growth, hyperprior(12).noise
    (0.07, (0.02, 0.3))
    """
    least = list(HYPERPRIORS)
    return HYPERPRIORS[least[bisect_right(least, season_length) - 1]]


def growth_rate(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Growth rates (n_series,) in a row, see `hyperprior`."""
    usual = hyperprior(season_length)
    rate = usual.growth + usual.spread * rng.standard_t(3, n_series)
    return np.clip(rate * min(1.0, usual.rows / n_rows), -0.2, 0.2)


def growth_lines(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Lines (n_rows, n_series) with a `growth_rate` in 60 percent of the series, else 0."""
    rate = growth_rate(rng, n_series, n_rows, season_length)
    return occurs(rng, 0.6, n_series) * rate * np.arange(n_rows)[:, None]


def step_size(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int, order: int = 1
) -> np.ndarray:
    """Standard deviations (n_series,) of the steps of a level, or of a slope if `order` is 2."""
    wide = occurs(rng, _WIDE, n_series)
    usual = hyperprior(season_length)
    size = np.where(
        wide, loguniform(rng, *_WIDE_STEP, n_series), loguniform(rng, *usual.step, n_series)
    )
    # Steps of a slope are a tenth. Sums of T steps grow with T^(1/2), double sums with T^(3/2).
    return size * 0.1 ** (order - 1) * min(1.0, usual.rows / n_rows) ** (order - 0.5)


def slow_walk(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Random walks (n_rows, n_series) with a fifth of the usual steps, for smooth levels."""
    steps = rng.standard_normal((n_rows, n_series))
    return 0.2 * step_size(rng, n_series, n_rows, season_length) * steps.cumsum(0)


def noise_size(rng: np.random.Generator, n_series: int, season_length: int) -> np.ndarray:
    """Standard deviations (n_series,) of noise, see `hyperprior`."""
    wide = occurs(rng, _WIDE, n_series)
    usual = loguniform(rng, *hyperprior(season_length).noise, n_series)
    return np.where(wide, loguniform(rng, *_WIDE_NOISE, n_series), usual)


def season_amplitude(rng: np.random.Generator, n_series: int, season_length: int) -> np.ndarray:
    """Standard deviations (n_series,) of seasons, see `hyperprior`."""
    wide = occurs(rng, _WIDE, n_series)
    usual = hyperprior(season_length).amplitude * np.exp(rng.standard_normal(n_series))
    return np.where(wide, loguniform(rng, *_WIDE_AMPLITUDE, n_series), np.minimum(usual, 1.0))


def season_noise(rng: np.random.Generator, amplitude: np.ndarray, season_length: int) -> np.ndarray:
    """Standard deviations of seasonal noise, proportional to the amplitude of the season."""
    # Independent noise would leave more large seasons without noise than real series have. Days of
    # 24 rows are more regular than years.
    least, most = (0.03, 1.0) if season_length < 24 else (0.01, 0.3)
    return amplitude * loguniform(rng, least, most, len(amplitude))
