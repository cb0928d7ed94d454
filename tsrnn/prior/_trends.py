"""Smooth components of the prior: broken trends, growth curves, cycles, Gaussian processes."""

from __future__ import annotations

import numpy as np

from tsrnn.prior._distributions import loguniform, occurs
from tsrnn.prior._hyperpriors import growth_lines, growth_rate, season_amplitude, slow_walk
from tsrnn.prior._seasons import compose

_BREAKS = 6
_CURVES = ("exponential", "logistic", "gompertz")
# Series with the same hyperparameters share a factorisation, which is cubic in the rows.
_SHARING = 8
# Relative to the variance: with less, rounding makes smooth kernels indefinite.
_JITTER = 1e-8


def broken_trend(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Piecewise linear trends, with slopes that may fade after a break.

    .. math:: \mu_t = \sum_{u \le t} \phi^{u - \tau(u)} b_{\tau(u)}

    where :math:`\tau(u)` is the last break up to row u, and :math:`b_{\tau(u)}` the slope since
    then.

    The number of breaks is Poisson with mean 0.5 + T / 60, at most 6; their rows are uniform.
    Slopes are growth rates of `hyperprior`; :math:`\phi` is 1 in 60 percent of the series, else
    uniform on (0.8, 0.99). A random walk with a fifth of the step of `hyperprior` is added before
    `compose`.

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
    >>> from tsrnn.prior import broken_trend
    >>> broken_trend(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    count = np.minimum(rng.poisson(0.5 + n_rows / 60, n_series), _BREAKS)
    phi = np.where(occurs(rng, 0.6, n_series), 1.0, rng.uniform(0.8, 0.99, n_series))
    slope = np.repeat(growth_rate(rng, n_series, n_rows, season_length)[None], n_rows, 0)
    age = np.repeat(np.arange(n_rows, dtype=float)[:, None], n_series, 1)
    places = np.sort(rng.integers(1, max(n_rows, 2), (_BREAKS, n_series)), axis=0)
    row = np.arange(n_rows)[:, None]
    for k in range(_BREAKS):
        after = (row >= places[k]) & (k < count)
        slope = np.where(after, growth_rate(rng, n_series, n_rows, season_length), slope)
        age = np.where(after, row - places[k], age)
    path = (slope * phi**age).cumsum(0) + slow_walk(rng, n_series, n_rows, season_length)
    return compose(rng, path, season_length)


def growth_curve(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Exponential, logistic or Gompertz growth or decline.

    .. math:: \mu_t = g t, \qquad \mu_t = \frac{H}{1 + e^{-(t - c) / w}}, \qquad
        \mu_t = H \exp(-e^{-(t - c) / w})

    Each curve has probability one third. g is the growth of `hyperprior`: a line in the logarithm
    of the level. The height H is Laplace around 0.3 with scale 0.6, the centre c uniform on
    (-0.2 T, 1.2 T), the width w is T times a log-uniform variable on (0.03, 0.5). A random walk
    with a fifth of the step of `hyperprior` is added before `compose`.

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
    >>> from tsrnn.prior import growth_curve
    >>> growth_curve(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    row = np.arange(n_rows)[:, None]
    height = rng.laplace(0.3, 0.6, n_series)
    width = n_rows * loguniform(rng, 0.03, 0.5, n_series)
    distance = (row - rng.uniform(-0.2, 1.2, n_series) * n_rows) / width
    curves = {
        "exponential": growth_rate(rng, n_series, n_rows, season_length) * row,
        "logistic": height / (1 + np.exp(-np.clip(distance, -30, 30))),
        "gompertz": height * np.exp(-np.exp(-np.clip(distance, -5, 30))),
    }
    path = np.choose(rng.integers(len(_CURVES), size=n_series), [curves[c] for c in _CURVES])
    path = path - path[0]
    path += slow_walk(rng, n_series, n_rows, season_length)
    return compose(rng, path, season_length)


def cycles(rng: np.random.Generator, n_series: int, n_rows: int, season_length: int) -> np.ndarray:
    r"""Stochastic cycle with a random period around a random walk.

    .. math:: \begin{pmatrix} c_t \\ c^*_t \end{pmatrix} = \rho \begin{pmatrix} \cos \omega &
        \sin \omega \\ -\sin \omega & \cos \omega \end{pmatrix}
        \begin{pmatrix} c_{t-1} \\ c^*_{t-1} \end{pmatrix} + \kappa_t

    The period :math:`2 \pi / \omega` is log-uniform on (3, max(12, T)) rows, :math:`1 - \rho`
    log-uniform on (0.001, 0.2). The cycle starts in its stationary distribution, whose standard
    deviation is log-uniform on (0.02, 0.3). The random walk has a fifth of the step of
    `hyperprior`, and a drift in 60 percent of the series. The sum passes through `compose`.

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
    >>> from tsrnn.prior import cycles
    >>> cycles(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    omega = 2 * np.pi / loguniform(rng, 3, max(12, n_rows), n_series)
    rho = 1 - loguniform(rng, 1e-3, 0.2, n_series)
    turn = rho * np.exp(1j * omega)
    shocks = rng.standard_normal((n_rows, n_series)) + 1j * rng.standard_normal((n_rows, n_series))
    shocks[1:] *= np.sqrt(1 - rho**2)
    cycle = shocks
    for t in range(1, n_rows):
        cycle[t] += turn * cycle[t - 1]
    path = cycle.real * loguniform(rng, 0.02, 0.3, n_series)
    path += growth_lines(rng, n_series, n_rows, season_length)
    path += slow_walk(rng, n_series, n_rows, season_length)
    return compose(rng, path, season_length)


def gaussian_process(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Gaussian processes whose kernels are sums and products of simple ones.

    .. math:: k(t, u) = a_1 e^{-(t-u)^2 / 2 \ell^2} + a_2 e^{-|t-u| / \ell'} + a_3 t u / T^2 +
        a_4 e^{-2 \sin^2(\pi (t-u) / m) / h^2} e^{-(t-u)^2 / 2 L^2} (1 + a_5 t u / T^2)

    Scales :math:`\ell, \ell'` are log-uniform on (0.05 T, T), h on (0.3, 2), L on (T / 2, 10 T).
    The smooth, rough, linear and periodic term are included with probabilities 0.6, 0.4, 0.4 and
    0.6. Standard deviations are log-uniform on (0.03, 0.3); the periodic term has the amplitude of
    `hyperprior`, and with probability 0.4 a growth :math:`a_5` uniform on (0, 4). Without a season
    its period is log-uniform on (4, max(8, T / 2)) rows. Eight series share hyperparameters, and so
    one Cholesky factor. In 60 percent of the series growth is added; the sum passes through
    `compose` without a further season.

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
    >>> from tsrnn.prior import gaussian_process
    >>> gaussian_process(np.random.default_rng(0), 2, 24, 12).shape
    (2, 24)
    """
    n_kernels = -(-n_series // _SHARING)
    present = rng.random((n_kernels, 4)) < np.array([0.6, 0.4, 0.4, 0.6])
    scale = loguniform(rng, 0.03, 0.3, 4 * n_kernels).reshape(n_kernels, 4)
    length = n_rows * loguniform(rng, 0.05, 1.0, 2 * n_kernels).reshape(n_kernels, 2)
    roughness = loguniform(rng, 0.3, 2, n_kernels)
    memory = n_rows * loguniform(rng, 0.5, 10, n_kernels)
    growing = occurs(rng, 0.4, n_kernels) * rng.uniform(0, 4, n_kernels)
    period = np.full(n_kernels, float(season_length))
    if season_length == 1:
        period = loguniform(rng, 4, max(8, n_rows / 2), n_kernels)
    else:
        scale[:, 3] = season_amplitude(rng, n_kernels, season_length)
    variance = present * scale**2
    row = np.arange(n_rows, dtype=float)
    lag = row[:, None] - row
    product = np.outer(row, row) / n_rows**2
    normal = rng.standard_normal((n_kernels, n_rows, _SHARING))
    path = np.empty((n_kernels, n_rows, _SHARING))
    for k in range(n_kernels):
        a = variance[k]
        kernel = a[0] * np.exp(-0.5 * (lag / length[k, 0]) ** 2) + a[2] * product
        kernel += a[1] * np.exp(-np.abs(lag) / length[k, 1])
        repeated = np.exp(-2 * (np.sin(np.pi * lag / period[k]) / roughness[k]) ** 2)
        repeated *= np.exp(-0.5 * (lag / memory[k]) ** 2)
        kernel += a[3] * repeated * (1 + growing[k] * product)
        kernel.flat[:: n_rows + 1] += _JITTER * (1 + a.sum() * (1 + growing[k]))
        path[k] = np.linalg.cholesky(kernel) @ normal[k]
    paths = path.transpose(1, 0, 2).reshape(n_rows, -1)[:, :n_series]
    paths = paths - paths[0] + growth_lines(rng, n_series, n_rows, season_length)
    return compose(rng, paths, season_length, seasonal=0.0)
