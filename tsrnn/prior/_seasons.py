"""Seasonal patterns, their changes, and the composition of a path with season and noise."""

from __future__ import annotations

import numpy as np

from tsrnn.prior._distributions import innovations, loguniform, occurs
from tsrnn.prior._hyperpriors import hyperprior, noise_size, season_amplitude, season_noise

# Season length -> length of the outer season: the week around the day, the year around the week.
OUTER_SEASON = {5: 260, 7: 365, 24: 168, 48: 336, 96: 672}
_LARGEST_RANGE = 5.0  # exp(5) = 150: few real series grow or fall by more in a few hundred rows
_LOWEST = 0.05  # smallest value of an additive series, in units of its level
_SHAPES = ("harmonics", "peak", "dip", "free", "block")


def season_shapes(
    rng: np.random.Generator, n_series: int, season_length: int, kinds: tuple[str, ...] = _SHAPES
) -> np.ndarray:
    r"""Seasonal patterns with mean zero and variance one.

    .. math:: s_j = \sum_{k=1}^{K} k^{-a} z_k \cos(2 \pi k j / m + \varphi_k), \qquad
        s_j = e^{\kappa (\cos(2 \pi j / m - \varphi) - 1)}, \qquad s_j = z_j

    or a block of low rows, standardised over the season.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_series : int
    season_length : int
        Rows of a season, m.
    kinds : tuple of str
        Shapes, drawn with equal probabilities; seasons of 24 rows and more are mostly "harmonics".
        "harmonics": K is uniform up to 6 and a uniform on (0.5, 2). "peak", as in tourism:
        :math:`\kappa` is log-uniform on (1, 50). "dip", as in a month of holidays: a negative
        peak. "free": independent Gaussian rows. "block", as at weekends and nights: a low stretch
        of an eighth to half of the season.

    Returns
    -------
    ndarray of shape (season_length, n_series)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import season_shapes
    >>> shapes = season_shapes(np.random.default_rng(0), 3, 12)
    >>> shapes.shape, bool(np.allclose(shapes.mean(0), 0) and np.allclose(shapes.var(0), 1))
    ((12, 3), True)
    """
    # Seasons of a day or a year are mostly smooth.
    smooth = ("harmonics",) * 10 if "harmonics" in kinds and season_length >= 24 else ()
    kind = rng.choice(np.array([*kinds, *smooth]), n_series)
    shapes = np.empty((season_length, n_series))
    angle = 2 * np.pi * np.arange(season_length)[:, None] / season_length
    for name in kinds:
        columns = np.flatnonzero(kind == name)
        n = len(columns)
        phase = rng.uniform(0, 2 * np.pi, n)
        if name == "harmonics":
            most = max(1, min(6, season_length // 2))
            count = rng.integers(1, most + 1, n)
            decay = rng.uniform(0.5, 2, n)
            shape = np.zeros((season_length, n))
            for k in range(1, most + 1):
                weight = (k <= count) * k**-decay * rng.standard_normal(n)
                shape += weight * np.cos(k * angle + rng.uniform(0, 2 * np.pi, n))
        elif name in ("peak", "dip"):
            shape = np.exp(loguniform(rng, 1, 50, n) * (np.cos(angle - phase) - 1))
            shape *= 1.0 if name == "peak" else -1.0
        elif name == "free":
            shape = rng.standard_normal((season_length, n))
        else:
            low = (angle - phase) % (2 * np.pi) < 2 * np.pi * rng.uniform(0.125, 0.5, n)
            shape = rng.normal(0, 0.1, (season_length, n)) - low
        shapes[:, columns] = shape
    shapes -= shapes.mean(0)
    spread = shapes.std(0)
    # A block may cover no row of a short season, and harmonics may be zero at all rows.
    return np.where(spread > 1e-6, shapes / np.maximum(spread, 1e-6), 0.0)


def seasons(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int, change: float = 0.1
) -> np.ndarray:
    r"""Seasonal patterns over time (n_rows, n_series), which change slowly in half of the series.

    .. math:: S_t = s_{t \bmod m, \lfloor t / m \rfloor}, \qquad s_{j,c} = s_{j,c-1} + \omega
        \eta_{j,c}

    :math:`\omega` is log-uniform on (`change` / 100, `change`) in half of the series, else 0.
    Without a season the patterns are 0.
    """
    if season_length == 1:
        return np.zeros((n_rows, n_series))
    shapes = season_shapes(rng, n_series, season_length)
    start = rng.integers(season_length)  # all series of a draw share the calendar
    row = np.arange(start, start + n_rows)
    path = shapes[row % season_length]
    changing = np.flatnonzero(occurs(rng, 0.5, n_series))
    steps = rng.standard_normal((n_rows, len(changing))) * loguniform(
        rng, change / 100, change, len(changing)
    )
    for first in range(season_length, n_rows, season_length):
        block = slice(first, first + season_length)
        rows = len(steps[block])
        steps[block] += steps[first - season_length : first - season_length + rows]
    path[:, changing] += steps
    return path


def two_seasons(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    """Seasons (n_rows, n_series) with an outer season from `OUTER_SEASON`, if there is one.

    The outer season is a step function of inner seasons (days of a week) if its length is a
    multiple of theirs, else it is smooth. Its size is uniform on (0, 1) relative to the inner
    season. In half of the series with step functions, it also multiplies the inner season by its
    exponential, with a coefficient of standard deviation 0.4.
    """
    path = seasons(rng, n_series, n_rows, season_length)
    outer = OUTER_SEASON.get(season_length)
    if outer is None:
        return path
    row = rng.integers(outer) + np.arange(n_rows)
    if outer % season_length == 0:
        shapes = season_shapes(rng, n_series, outer // season_length, ("block", "free", "dip"))
        slow = shapes[row // season_length % (outer // season_length)]
        # Daily profiles of weekends are flatter or steeper than those of working days.
        path *= np.exp(occurs(rng, 0.5, n_series) * rng.normal(0, 0.4, n_series) * slow)
    else:
        slow = season_shapes(rng, n_series, outer, ("harmonics", "peak"))[row % outer]
    return path + rng.uniform(0, 1, n_series) * slow


def compose(
    rng: np.random.Generator,
    path: np.ndarray,
    season_length: int,
    seasonal: float | None = None,
    noisy: float | None = None,
) -> np.ndarray:
    r"""Compose positive series from a level path, a season and noise, as sums or products.

    .. math:: y_t = 1 + x_t, \qquad \text{or} \qquad y_t = e^{x_t}, \qquad
        x_t = \mu_t + a (S_t + \omega \eta_t) + \sigma \varepsilon_t

    Parameters
    ----------
    rng : numpy.random.Generator
    path : ndarray of shape (n_rows, n_series)
        Path :math:`\mu_t` of the level relative to one, or of its logarithm.
    season_length : int
    seasonal : float, optional
        Probability of a season if `season_length` is above 1; by default from `hyperprior`, like
        the amplitude a. Half of the seasons change slowly. Seasons of 24, 48 and 96 rows have an
        outer season of a week, those of 5 and 7 rows of a year. Seasonal noise :math:`\omega` is
        log-uniform on (0.03, 1), for 24 rows and more on (0.01, 0.3).
    noisy : float, optional
        Probability of further noise; by default from `hyperprior`, like :math:`\sigma`.
        :math:`\varepsilon` comes from `innovations`.

    Returns
    -------
    ndarray of shape (n_series, n_rows)
        65 percent of the series are products, as are series whose sum would fall below a twentieth
        of the level. Series that grow or fall by more than a factor of about 150 are NaN:
        `SeriesPrior` draws them again.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import compose
    >>> rng = np.random.default_rng(0)
    >>> line = np.linspace(0, 0.5, 24)[:, None] * np.ones(3)
    >>> series = compose(rng, line, season_length=12)
    >>> series.shape, bool((series > 0).all())
    ((3, 24), True)
    """
    n_rows, n_series = path.shape
    usual = hyperprior(season_length)
    if season_length > 1:
        probability = usual.seasonal if seasonal is None else seasonal
        columns = np.flatnonzero(occurs(rng, probability, n_series))
        season = two_seasons(rng, len(columns), n_rows, season_length)
        path = path.copy()
        amplitude = season_amplitude(rng, len(columns), season_length)
        noise = innovations(rng, len(columns), n_rows) * season_noise(rng, amplitude, season_length)
        path[:, columns] += amplitude * season + noise
    columns = np.flatnonzero(occurs(rng, usual.noisy if noisy is None else noisy, n_series))
    noise = innovations(rng, len(columns), n_rows)
    noise *= noise_size(rng, len(columns), season_length)
    path[:, columns] += noise
    return positive(rng, path)


def positive(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    """Positive series (n_series, n_rows) from a path (n_rows, n_series), see `compose`."""
    exploding = ~(np.ptp(path, axis=0) <= _LARGEST_RANGE)
    path = np.where(exploding, np.nan, path)
    with np.errstate(invalid="ignore"):
        products = occurs(rng, 0.65, path.shape[1]) | ~(path.min(0) > _LOWEST - 1)
    return np.ascontiguousarray(np.where(products, np.exp(path), 1 + path).T)
