"""Count components of the prior: Poisson, negative binomial, intermittent demand."""

from __future__ import annotations

import numpy as np

from tsrnn.prior._distributions import loguniform, occurs
from tsrnn.prior._linear import random_walk, structural

# numpy's Poisson generator refuses means above 9.2e18.
_LARGEST_MEAN = 1e9


def counts(rng: np.random.Generator, n_series: int, n_rows: int, season_length: int) -> np.ndarray:
    r"""Counts around a moving mean, Poisson or negative binomial.

    .. math:: y_t \sim \mathrm{Poisson}(\lambda \mu_t u_t), \qquad
        u_t \sim \mathrm{Gamma}(\kappa, 1 / \kappa)

    :math:`\mu_t` is a `structural` series, :math:`\lambda` log-uniform on (0.3, 300). In half of
    the series :math:`u_t = 1`; in the others :math:`\kappa`, the size of the negative binomial, is
    log-uniform on (0.5, 30). Constant series are NaN, and `SeriesPrior` draws them again.

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
    >>> from tsrnn.prior import counts
    >>> values = counts(np.random.default_rng(0), 2, 24, 12)
    >>> values.shape, bool((values % 1 == 0).all())
    ((2, 24), True)
    """
    mean = structural(rng, n_series, n_rows, season_length)
    mean = mean * loguniform(rng, 0.3, 300, n_series)[:, None]
    dispersed = np.flatnonzero(occurs(rng, 0.5, n_series))
    size = loguniform(rng, 0.5, 30, len(dispersed))[:, None]
    mean[dispersed] *= rng.standard_gamma(np.repeat(size, n_rows, 1)) / size
    return _redraw_constant(_poisson(rng, mean), mean)


def intermittent(
    rng: np.random.Generator, n_series: int, n_rows: int, season_length: int
) -> np.ndarray:
    r"""Intermittent demand, the product of occurrences and sizes.

    .. math:: y_t = o_t z_t, \qquad o_t \sim \mathrm{Bernoulli}(p_t), \qquad
        z_t - 1 \sim \mathrm{Poisson}(\lambda u_t)

    :math:`p_t` is a log-uniform variable on (0.05, 0.9) times a `random_walk` series, at most 1, so
    that demand grows, fades and has seasons. :math:`\lambda` is log-uniform on (0.2, 50);
    :math:`u_t` is as in `counts`. Constant series are NaN, and `SeriesPrior` draws them again.

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
    >>> from tsrnn.prior import intermittent
    >>> values = intermittent(np.random.default_rng(0), 2, 24, 12)
    >>> values.shape, bool((values % 1 == 0).all())
    ((2, 24), True)
    """
    probability = random_walk(rng, n_series, n_rows, season_length)
    probability = probability * loguniform(rng, 0.05, 0.9, n_series)[:, None]
    size = loguniform(rng, 0.5, 30, n_series)[:, None]
    mean = rng.standard_gamma(np.repeat(size, n_rows, 1)) / size
    mean *= loguniform(rng, 0.2, 50, n_series)[:, None]
    occurrence = rng.random((n_series, n_rows)) < probability
    values = np.where(occurrence, 1 + _poisson(rng, mean), 0.0)
    return _redraw_constant(values, probability)


def _poisson(rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    """Poisson counts as floats; 0 where the mean is NaN."""
    return rng.poisson(np.clip(np.nan_to_num(mean), 0, _LARGEST_MEAN)).astype(float)


def _redraw_constant(values: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Set constant series and rows with a NaN mean to NaN, so that `SeriesPrior` draws again."""
    constant = np.ptp(values, axis=1, keepdims=True) == 0
    return np.where(constant | np.isnan(mean), np.nan, values)
