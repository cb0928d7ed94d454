"""Linear components of the prior: exponential smoothing, seasonal ARIMA, structural models."""

from __future__ import annotations

import numpy as np

from tsrnn.prior._distributions import innovations, occurs
from tsrnn.prior._hyperpriors import (
    growth_rate,
    hyperprior,
    noise_size,
    season_amplitude,
    step_size,
)
from tsrnn.prior._seasons import compose, positive, season_shapes

_ERRORS = (("add", 0.5), ("mul", 0.5))
_TRENDS = (
    ("none", False, 0.3), ("add", False, 0.25), ("add", True, 0.25), ("mul", False, 0.1),
    ("mul", True, 0.1),
)  # fmt: skip
_SEASONS = ("none", "add", "mul")


def ets(rng: np.random.Generator, n_series: int, n_rows: int, season_length: int) -> np.ndarray:
    r"""Exponential smoothing with additive or multiplicative errors, trends and seasons.

    .. math::
        \mu_t = (\ell_{t-1} \oplus \phi b_{t-1}) \otimes s_{t-m}, \qquad
        y_t = \mu_t + e_t, \qquad e_t = \sigma \varepsilon_t \text{ or } \mu_t \sigma \varepsilon_t

    with the states of Hyndman et al. (2008), Tables 2.2 and 2.3.

    Errors are additive or multiplicative with equal probabilities. Trends are none, additive,
    additive damped, multiplicative or multiplicative damped with probabilities 0.3, 0.25, 0.25,
    0.1, 0.1. Seasons have the probability of `hyperprior`, and are additive or multiplicative.

    The level starts at :math:`\ell_0 = 1`, the growth :math:`b_0` comes from `hyperprior`.
    :math:`\alpha` is Beta(3, 1) for years and quarters, else uniform on (0, 1). :math:`\beta =
    \alpha \beta^*` and :math:`\gamma = (1 - \alpha) \gamma^*` with :math:`\beta^*, \gamma^*` from
    Beta(0.5, 5), because trends and seasons of most real series hardly move. :math:`\phi` is
    uniform on (0.8, 0.98). :math:`\sigma` is a step of `hyperprior` if :math:`\alpha > 1/2`, else
    its noise. Seasons come from `season_shapes` with the amplitude of `hyperprior`. Paths that are
    not positive throughout are taken as logarithms.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_series, n_rows, season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import ets
    >>> ets(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    error, trend = (
        rng.choice(len(table), n_series, p=[row[-1] for row in table])
        for table in (_ERRORS, _TRENDS)
    )
    seasonal = hyperprior(season_length).seasonal
    season = rng.choice(3, n_series, p=[1 - seasonal, seasonal / 2, seasonal / 2])
    values = np.empty((n_series, n_rows))
    label = (error * len(_TRENDS) + trend) * len(_SEASONS) + season
    for code in np.unique(label):
        rows = np.flatnonzero(label == code)
        e, t, s = error[rows[0]], trend[rows[0]], season[rows[0]]
        kind, damped, _ = _TRENDS[t]
        path = _ets_class(
            rng, len(rows), n_rows, season_length, _ERRORS[e][0], kind, damped, _SEASONS[s]
        )
        values[rows] = positive(rng, path - 1)
    return values


def _ets_class(
    rng: np.random.Generator,
    n_series: int,
    n_rows: int,
    season_length: int,
    error: str,
    trend: str,
    damped: bool,
    season: str,
) -> np.ndarray:
    """Paths (n_rows, n_series) of one class of `ets`, around a level of one."""
    # Years are sums of days and depend more on their last value.
    alpha = rng.beta(3, 1, n_series) if season_length < 5 else rng.uniform(0, 1, n_series)
    beta = alpha * rng.beta(0.5, 5, n_series)
    gamma = (1 - alpha) * rng.beta(0.5, 5, n_series)
    phi = rng.uniform(0.8, 0.98, n_series) if damped else np.ones(n_series)
    # With a large alpha errors are steps of the level, with a small one noise around it.
    sigma = np.where(
        alpha > 0.5,
        step_size(rng, n_series, n_rows, season_length),
        noise_size(rng, n_series, season_length),
    )
    noise = innovations(rng, n_series, n_rows) * sigma
    growth = growth_rate(rng, n_series, n_rows, season_length) + (trend == "mul")
    pattern = np.zeros((season_length, n_series))
    if season != "none":
        pattern = season_shapes(rng, n_series, season_length)
        pattern *= season_amplitude(rng, n_series, season_length)
    if season == "mul":
        pattern = np.exp(pattern)
        pattern /= pattern.mean(0)
    states = np.vstack([np.ones(n_series), growth, pattern])
    return ets_paths(noise, states, np.stack([alpha, beta, gamma, phi]), error, trend, season)


def ets_paths(
    noise: np.ndarray,
    states: np.ndarray,
    parameters: np.ndarray,
    error: str = "add",
    trend: str = "none",
    season: str = "none",
) -> np.ndarray:
    r"""Simulate one class of exponential smoothing, shape (n_rows, n_series).

    Errors `noise` (n_rows, n_series) are relative where `error` is "mul". `states` (2 + m,
    n_series) are level and growth before the first row, and the season of the first m rows; the
    growth of a multiplicative trend is a factor. `parameters` (4, n_series) are :math:`\alpha,
    \beta, \gamma, \phi`; a trend is damped where :math:`\phi` is below 1. Error, trend and season
    are "add", "mul" or "none". In multiplicative classes, paths are NaN or infinite after a value
    that is not positive.
    """
    alpha, beta, gamma, phi = parameters
    level, growth, pattern = states[0], states[1], states[2:].copy()
    path = np.empty_like(noise)
    with np.errstate(all="ignore"):
        for t in range(len(noise)):
            row = t % len(pattern)
            damped = growth**phi if trend == "mul" else phi * growth
            ahead = {"none": level, "add": level + damped, "mul": level * damped}[trend]
            factor = pattern[row] if season == "mul" else 1.0
            mean = ahead * factor if season == "mul" else ahead + pattern[row] * (season == "add")
            shock = noise[t] * mean if error == "mul" else noise[t]
            path[t] = mean + shock
            # The error of the level is deseasonalised before the season is updated.
            relative = shock / factor
            if season != "none":
                pattern[row] += gamma * (shock / ahead if season == "mul" else shock)
            growth = damped + beta * (relative / level if trend == "mul" else relative)
            level = ahead + alpha * relative
    return path


def draw_poles(
    rng: np.random.Generator, n_series: int, largest: float | np.ndarray = 0.99
) -> np.ndarray:
    r"""Draw AR(4) coefficients (4, n_series) by poles inside the unit circle.

    .. math:: \phi(B) = (1 - r_1 B)(1 - r_2 B)(1 - 2 \rho \cos \omega B + \rho^2 B^2)

    The first real pole is present with probability 0.6, the second with 0.15, the complex pair with
    0.25. Moduli are `largest` times :math:`1 - u`, u log-uniform on (0.01, 1), which covers poles
    near the circle and far from it. A real pole is negative with probability 0.25;
    :math:`\omega` is uniform on :math:`(0, \pi)`.
    """
    modulus = largest * (1 - np.exp(rng.uniform(np.log(0.01), 0, (3, n_series))))
    present = rng.random((3, n_series)) < np.array([[0.6], [0.15], [0.25]])
    sign = np.where(rng.random((2, n_series)) < 0.25, -1.0, 1.0)
    first, second = modulus[:2] * present[:2] * sign
    rho = modulus[2] * present[2]
    cosine = 2 * rho * np.cos(rng.uniform(0, np.pi, n_series))
    a, b = first + second, -first * second  # (1 - a B - b B²)
    c, d = cosine, -(rho**2)
    return np.stack([a + c, b + d - a * c, -a * d - b * c, -b * d])


def arma_paths(ar: np.ndarray, ma: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Simulate ARMA processes that start from zeros.

    .. math:: x_t = \sum_k \phi_k x_{t-k} + \varepsilon_t + \sum_k \theta_k \varepsilon_{t-k}

    Parameters
    ----------
    ar : ndarray of shape (p, n_series)
        Coefficients :math:`\phi_k` of each series.
    ma : ndarray of shape (q, n_series)
        Coefficients :math:`\theta_k` of each series.
    noise : ndarray of shape (n_rows, n_series)

    Returns
    -------
    ndarray of shape (n_rows, n_series)
        Paths, whose first rows are a burn-in.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import arma_paths
    >>> impulse = np.eye(4)[:, :1]
    >>> arma_paths(np.array([[0.5]]), np.array([[1.0]]), impulse).ravel()
    array([1.   , 1.5  , 0.75 , 0.375])
    """
    path = noise.copy()
    for lag, coefficient in enumerate(ma, 1):
        path[lag:] += coefficient * noise[:-lag]
    for t in range(1, len(path)):
        for lag, coefficient in enumerate(ar[:t], 1):
            path[t] += coefficient * path[t - lag]
    return path


def sarima(rng: np.random.Generator, n_series: int, n_rows: int, season_length: int) -> np.ndarray:
    r"""Seasonal ARIMA, with poles and zeros near the unit circle and far from it.

    .. math:: \phi(B) (1 - \Phi B^m) (1 - B)^d (1 - B^m)^D (y_t - s_t - g t) =
        \theta(B) (1 - \Theta B^m) \sigma \varepsilon_t

    d is 0, 1, 2 with probabilities 0.35, 0.55, 0.1. With a season, D is 1 with probability 0.3.
    :math:`\phi` comes from `draw_poles` with moduli up to 0.99, 0.9, 0.6 for d = 0, 1, 2;
    :math:`\theta` with moduli up to 0.9, times -1, 0 or 1. :math:`\Phi` is uniform on (-0.3, 0.9)
    in half of the series with D = 0, else 0; :math:`\Theta` is uniform on (0.3, 1) if D is 1, else
    0. :math:`\sigma` is the noise of `hyperprior` times :math:`\phi(1)^{1/2}` if d + D = 0, its
    step if d + D = 1, a tenth of the step if d + D > 1. Season :math:`s_t` and growth g come from
    `hyperprior`. Series are made positive as in `compose`.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_series, n_rows, season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import sarima
    >>> sarima(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    d = rng.choice(3, n_series, p=[0.35, 0.55, 0.1])
    seasonal = occurs(rng, 0.3, n_series) & (season_length > 1)
    ar = draw_poles(rng, n_series, np.array([0.99, 0.9, 0.6])[d])
    ma = draw_poles(rng, n_series, 0.9) * rng.choice([-1.0, 0.0, 1.0], n_series)
    burn = 60 + 2 * season_length * (season_length <= 24)
    noise = innovations(rng, n_series, n_rows + burn)
    if season_length > 1:
        moving = seasonal * rng.uniform(0.3, 1, n_series)
        noise[season_length:] -= moving * noise[:-season_length].copy()
    path = arma_paths(ar, ma, noise)
    if season_length > 1:
        phi = occurs(rng, 0.5, n_series) * rng.uniform(-0.3, 0.9, n_series) * ~seasonal
        _seasonal_recursion(path, phi, season_length)
    path = path[burn:]
    _seasonal_recursion(path, seasonal.astype(float), season_length)
    for order in (1, 2):
        path[:, d >= order] = path[:, d >= order].cumsum(0)
    sizes = [
        # Near a unit root the standard deviation grows like phi(1)^(-1/2).
        noise_size(rng, n_series, season_length) * np.sqrt(np.clip(1 - ar.sum(0), 0.01, 1)),
        step_size(rng, n_series, n_rows, season_length),
        step_size(rng, n_series, n_rows, season_length, order=2),
    ]
    path *= np.choose(np.minimum(d + seasonal, 2), sizes)
    path += growth_rate(rng, n_series, n_rows, season_length) * np.arange(n_rows)[:, None]
    if season_length > 1:
        amplitude = season_amplitude(rng, n_series, season_length)
        amplitude *= occurs(rng, hyperprior(season_length).seasonal, n_series)
        shapes = season_shapes(rng, n_series, season_length)
        path += amplitude * shapes[np.arange(n_rows) % season_length]
    return positive(rng, path)


def _seasonal_recursion(path: np.ndarray, coefficient: np.ndarray, season_length: int) -> None:
    """Add the coefficient times the row a season before, in place and recursively."""
    if season_length == 1 or not coefficient.any():
        return
    for t in range(season_length, len(path)):
        path[t] += coefficient * path[t - season_length]


def structural(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Local linear trend with one or two seasons, and noise.

    .. math:: \mu_t = \mu_{t-1} + b_{t-1} + \sigma_\mu \eta_t, \qquad
        b_t = \phi b_{t-1} + \sigma_b \zeta_t, \qquad x_t = \mu_t + a S_t + \sigma \varepsilon_t

    with season and noise from `compose`.

    :math:`\sigma_\mu` is the step of `hyperprior`, :math:`\sigma_b` a tenth of another draw of it;
    :math:`\phi` is 1 in half of the series, else uniform on (0.8, 0.99); :math:`b_0` is the growth
    of `hyperprior`; :math:`\eta` comes from `innovations`.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_series, n_rows, season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import structural
    >>> structural(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    phi = np.where(occurs(rng, 0.5, n_series), 1.0, rng.uniform(0.8, 0.99, n_series))
    shock = rng.standard_normal((n_rows, n_series))
    shock *= step_size(rng, n_series, n_rows, season_length, order=2)
    slope = np.empty((n_rows, n_series))
    slope[0] = growth_rate(rng, n_series, n_rows, season_length)
    for t in range(1, n_rows):
        slope[t] = phi * slope[t - 1] + shock[t]
    level = innovations(rng, n_series, n_rows) * step_size(rng, n_series, n_rows, season_length)
    return compose(rng, (slope + level).cumsum(0), season_length)


def random_walk(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Random walk with drift, with or without season and noise.

    .. math:: \mu_t = \mu_{t-1} + g + u_t, \qquad u_t = \phi u_{t-1} + \sigma \varepsilon_t

    g and :math:`\sigma` are growth and step of `hyperprior`; :math:`\phi` is uniform on (-0.2, 0.8)
    in 70 percent of the series, else 0; :math:`\varepsilon` comes from `innovations`. The path
    passes through `compose`, with noise in 40 percent of the series.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_series, n_rows, season_length : int

    Returns
    -------
    ndarray of shape (n_series, n_rows)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import random_walk
    >>> random_walk(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    steps = innovations(rng, n_series, n_rows) * step_size(rng, n_series, n_rows, season_length)
    phi = occurs(rng, 0.7, n_series) * rng.uniform(-0.2, 0.8, n_series)
    for t in range(1, n_rows):
        steps[t] += phi * steps[t - 1]
    path = (steps + growth_rate(rng, n_series, n_rows, season_length)).cumsum(0)
    return compose(rng, path, season_length, noisy=0.4)
