"""Nonlinear components of the prior: volatility, regimes, thresholds, bilinear models."""

from __future__ import annotations

import numpy as np

from tsrnn.prior._distributions import garch_noise, innovations, loguniform, occurs
from tsrnn.prior._hyperpriors import growth_lines, growth_rate, step_size
from tsrnn.prior._seasons import compose

_BURN_IN = 50  # rows in which nonlinear autoregressions forget their start value


def volatility(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Random walk of the logarithm with GARCH(1, 1) steps, as in prices.

    .. math:: \log y_t = \log y_{t-1} + g + \sigma \varepsilon_t, \qquad
        \varepsilon_t = \sqrt{h_t} z_t, \qquad h_t = (1 - \alpha - \beta) +
        \alpha \varepsilon_{t-1}^2 + \beta h_{t-1}

    :math:`\alpha, \beta` and z are as in `innovations`; :math:`\sigma` and g are step and growth of
    `hyperprior`. The path passes through `compose` without noise.

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
    >>> from tsrnn.prior import volatility
    >>> volatility(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    steps = garch_noise(rng, innovations(rng, n_series, n_rows))
    steps *= step_size(rng, n_series, n_rows, season_length)
    path = (steps + growth_rate(rng, n_series, n_rows, season_length)).cumsum(0)
    return compose(rng, path, season_length, noisy=0.0)


def regimes(
    rng: np.random.Generator, n_series: int, n_rows: int, stay: tuple[float, float]
) -> np.ndarray:
    """Two-state Markov chains (n_rows, n_series) whose stay probabilities are uniform on `stay`."""
    remain = rng.uniform(*stay, (2, n_series))
    draws = rng.random((n_rows, n_series))
    state = np.empty((n_rows, n_series), dtype=int)
    state[0] = draws[0] < 0.5
    for t in range(1, n_rows):
        leaves = draws[t] > np.where(state[t - 1], remain[1], remain[0])
        state[t] = state[t - 1] ^ leaves
    return state


def markov_switching(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Markov switching of growth, persistence and volatility between two regimes.

    .. math:: \Delta x_t = g_{r_t} + \phi_{r_t} (\Delta x_{t-1} - g_{r_{t-1}}) +
        \sigma_{r_t} \varepsilon_t, \qquad
        x_t = c_{r_t} + \phi_{r_t} (x_{t-1} - c_{r_{t-1}}) + \sigma_{r_t} \varepsilon_t

    Half of the series have the first form (business cycles), half the second. A regime stays with
    a probability uniform on (0.85, 0.99). :math:`\phi_r` is uniform on (-0.2, 0.6) in the first
    form, on (-0.2, 0.9) in the second; :math:`\sigma_r` is log-uniform on (0.005, 0.1);
    :math:`g_r` is the growth of `hyperprior`; :math:`c_r` is Gaussian with standard deviation 0.15.
    In 60 percent of the series growth is added. The path passes through `compose`, with noise in
    30 percent of the series.

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
    >>> from tsrnn.prior import markov_switching
    >>> markov_switching(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    state = regimes(rng, n_series, n_rows, (0.85, 0.99))
    growing = occurs(rng, 0.5, n_series)
    rate = np.stack([growth_rate(rng, n_series, n_rows, season_length) for _ in range(2)])
    mean = np.where(growing, rate, rng.normal(0, 0.15, (2, n_series)))
    phi = rng.uniform(-0.2, np.where(growing, 0.6, 0.9), (2, n_series))
    sigma = loguniform(rng, 5e-3, 0.1, 2 * n_series).reshape(2, n_series)
    columns = np.arange(n_series)
    noise = innovations(rng, n_series, n_rows)
    path = np.empty((n_rows, n_series))
    deviation = np.zeros(n_series)
    for t, regime in enumerate(state):
        deviation = phi[regime, columns] * deviation + sigma[regime, columns] * noise[t]
        path[t] = mean[regime, columns] + deviation
    path[:, growing] = path[:, growing].cumsum(0)
    path += growth_lines(rng, n_series, n_rows, season_length)
    return compose(rng, path, season_length, noisy=0.3)


def ornstein_uhlenbeck(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Ornstein-Uhlenbeck process whose centre, speed and volatility switch.

    .. math:: x_t = c_r + e^{-\theta_r} (x_{t-1} - c_r) +
        \sigma_r \sqrt{1 - e^{-2 \theta_r}} \varepsilon_t, \qquad r = r_t

    The discretisation is exact. Regimes stay with a probability uniform on (0.9, 0.995); half-lives
    :math:`\log 2 / \theta_r` are log-uniform on (1, 30) rows, :math:`\sigma_r` on (0.02, 0.3);
    :math:`c_r` is Gaussian with standard deviation 0.2. In 60 percent of the series growth is
    added. The path passes through `compose`, with noise in 30 percent of the series.

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
    >>> from tsrnn.prior import ornstein_uhlenbeck
    >>> ornstein_uhlenbeck(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    state = regimes(rng, n_series, n_rows, (0.9, 0.995))
    decay = 0.5 ** (1 / loguniform(rng, 1, 30, 2 * n_series).reshape(2, n_series))
    sigma = loguniform(rng, 0.02, 0.3, 2 * n_series).reshape(2, n_series)
    centre = rng.normal(0, 0.2, (2, n_series))
    columns = np.arange(n_series)
    noise = innovations(rng, n_series, n_rows)
    path = np.empty((n_rows, n_series))
    x = (centre + sigma * noise[0])[state[0], columns]
    for t, regime in enumerate(state):
        c, a = centre[regime, columns], decay[regime, columns]
        if t:
            x = c + a * (x - c) + sigma[regime, columns] * np.sqrt(1 - a**2) * noise[t]
        path[t] = x
    path += growth_lines(rng, n_series, n_rows, season_length)
    return compose(rng, path, season_length, noisy=0.3)


def threshold_ar(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Self-exciting threshold autoregression of two regimes.

    .. math:: x_t = c_r + \phi_r x_{t-1} + \psi_r x_{t-2} + \varepsilon_t, \qquad
        r = [x_{t-k} > 0]

    k is 1 or 2; :math:`c_r` is Gaussian with standard deviation 0.7; :math:`\psi_r` is uniform on
    (-0.4, 0.1); :math:`\phi_r` is uniform on (-0.5, 1) times :math:`0.99 - |\psi_r|`, which makes
    the process ergodic. The path is multiplied by a log-uniform variable on (0.01, 0.15). In 60
    percent of the series growth is added. The path passes through `compose`, with noise in 30
    percent of the series.

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
    >>> from tsrnn.prior import threshold_ar
    >>> threshold_ar(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    rows = n_rows + _BURN_IN
    constant = rng.normal(0, 0.7, (2, n_series))
    psi = rng.uniform(-0.4, 0.1, (2, n_series))
    phi = (0.99 - np.abs(psi)) * rng.uniform(-0.5, 1, (2, n_series))
    delay = rng.integers(1, 3, n_series)
    noise = innovations(rng, n_series, rows)
    columns = np.arange(n_series)
    path = np.zeros((rows, n_series))
    for t in range(2, rows):
        regime = (np.where(delay == 1, path[t - 1], path[t - 2]) > 0).astype(int)
        path[t] = constant[regime, columns] + phi[regime, columns] * path[t - 1]
        path[t] += psi[regime, columns] * path[t - 2] + noise[t]
    path = path[_BURN_IN:] * loguniform(rng, 0.01, 0.15, n_series)
    path += growth_lines(rng, n_series, n_rows, season_length)
    return compose(rng, path, season_length, noisy=0.3)


def bilinear(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Bilinear model, with bursts that linear models do not have.

    .. math:: x_t = \phi x_{t-1} + b x_{t-1} \varepsilon_{t-1} + \varepsilon_t

    :math:`\phi` is uniform on (0, 0.9), b on :math:`\pm 0.9 \sqrt{1 - \phi^2}`, which keeps the
    variance finite; innovations are Gaussian. The path is multiplied by a log-uniform variable on
    (0.01, 0.1). In 60 percent of the series growth is added. The path passes through `compose`,
    with noise in 30 percent of the series.

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
    >>> from tsrnn.prior import bilinear
    >>> bilinear(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    rows = n_rows + _BURN_IN
    phi = rng.uniform(0, 0.9, n_series)
    b = 0.9 * np.sqrt(1 - phi**2) * rng.uniform(-1, 1, n_series)
    noise = rng.standard_normal((rows, n_series))
    path = noise.copy()
    for t in range(1, rows):
        path[t] += (phi + b * noise[t - 1]) * path[t - 1]
    path = path[_BURN_IN:] * loguniform(rng, 0.01, 0.1, n_series)
    path += growth_lines(rng, n_series, n_rows, season_length)
    return compose(rng, path, season_length, noisy=0.3)
