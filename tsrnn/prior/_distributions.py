"""Random draws shared by components of the prior."""

from __future__ import annotations

import numpy as np


def occurs(rng: np.random.Generator, probability: float, n_series: int) -> np.ndarray:
    """Mask (n_series,) of independent events with the given probability."""
    return rng.random(n_series) < probability


def loguniform(rng: np.random.Generator, low: float, high: float, size: int) -> np.ndarray:
    """Draw variables whose logarithm is uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def innovations(rng: np.random.Generator, n_series: int, n_rows: int) -> np.ndarray:
    r"""White noise with variance one, heavy-tailed or heteroscedastic in some series.

    70 percent of the series are Gaussian; 20 percent are Student's t with degrees of freedom
    uniform on (3, 10); 10 percent are GARCH(1, 1):

    .. math:: \varepsilon_t = \sqrt{h_t} z_t, \qquad h_t = (1 - \alpha - \beta) +
        \alpha \varepsilon_{t-1}^2 + \beta h_{t-1}

    with :math:`\alpha` uniform on (0.02, 0.3) and :math:`\alpha + \beta` on (0.7, 0.99).

    Parameters
    ----------
    rng : numpy.random.Generator
    n_series, n_rows : int

    Returns
    -------
    ndarray of shape (n_rows, n_series)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import innovations
    >>> noise = innovations(np.random.default_rng(0), 1000, 100)
    >>> noise.shape, bool(0.9 < noise.var() < 1.1)
    ((100, 1000), True)
    """
    noise = rng.standard_normal((n_rows, n_series))
    kind = rng.random(n_series)
    heavy = np.flatnonzero(kind < 0.2)
    freedom = rng.uniform(3, 10, len(heavy))
    # Student's t is a Gaussian over the root of a chi-square; scaled to unit variance.
    noise[:, heavy] *= np.sqrt(
        (freedom - 2) / (2 * rng.standard_gamma(freedom / 2, (n_rows, len(heavy))))
    )
    clusters = np.flatnonzero(kind > 0.9)
    noise[:, clusters] = garch_noise(rng, noise[:, clusters])
    return noise


def garch_noise(rng: np.random.Generator, noise: np.ndarray) -> np.ndarray:
    """Turn white noise (n_rows, n_series) into GARCH(1, 1) of unit variance, see `innovations`."""
    n = noise.shape[1]
    alpha = rng.uniform(0.02, 0.3, n)
    beta = rng.uniform(0.7, 0.99, n) - alpha
    variance = np.ones(n)
    result = np.empty_like(noise)
    for t, shock in enumerate(noise):
        result[t] = np.sqrt(variance) * shock
        variance = 1 - alpha - beta + alpha * result[t] ** 2 + beta * variance
    return result
