"""Models of counts, filtered in closed form and averaged by their evidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import betainc, gammaln, logsumexp

AT_ONCE = 2**16  # numbers of the covariances filtered together: they stay in the cache
MOST_HARMONICS = 6  # of a season: a few years do not identify more
LEAST_MEAN = 1e-2  # of a panel, so that the first level is positive without any count
USUAL_SPREAD = 1.5  # prior guess of the squared coefficient of variation of the series' means
USUAL_CORRELATION = 1 / 3  # the same of the correlation of occurrences in a series
USUAL_SERIES = 3.0  # number of series that these guesses count as
LEAST_SPREAD, MOST_SPREAD = 0.02, 20.0
LEAST_CORRELATION = 0.05
FARTHEST = 2.0  # largest distance of the first mean from a series' own, in standard errors
PRIOR_SERIES = 8.0  # number of series that the prior probabilities of models count as
EM_STEPS = 20
TABLES = (32, 128, 512)  # lengths of tables of probabilities; larger quantiles are bisected
LARGEST_COUNT = 1e12  # beyond, updates of the variance are lost in rounding
NEGLIGIBLE = 1e-9  # weight of a component that cannot change a quantile of large counts


class CountModel(NamedTuple):
    """Model of counts with dispersion, and a moving level and season of the log mean.

    Parameters
    ----------
    name : str
    dispersion : float
        One over the size r of the negative binomial, 0 for Poisson.
    change : float
        Variance of the changes of the level in a row.
    season : float
        Variance of the seasonal effects, 0 for none.
    decay : float
        Power with which the size of harmonic k falls.
    hurdle : bool
        True for a model of demand sizes less one, in rows with demand.

    Examples
    --------
    >>> from tsrnn.prior import count_models
    >>> count_models(season_length=1)[0]
    CountModel(name='Poisson', dispersion=0.0, change=0.0, season=0.0, decay=0.0, hurdle=False)
    """

    name: str
    dispersion: float
    change: float
    season: float = 0.0
    decay: float = 0.0
    hurdle: bool = False


# Grids, dense enough that averages of neighbours are close to all values between.
DISPERSIONS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.5)
CHANGES = (0.0, 0.002, 0.01, 0.04, 0.15)
SEASON_DISPERSIONS = (0.0, 0.25, 1.0)
SEASON_CHANGES = (0.0, 0.01)
SEASONS = {  # variance and decay
    "small smooth season": (0.05, 1.0),
    "smooth season": (0.4, 1.0),
    "small season": (0.1, 0.0),
    "season": (1.0, 0.0),
}
HURDLE_DISPERSIONS = (0.0, 0.3, 1.0)
HURDLE_CHANGES = (0.0, 0.01, 0.06)
OCCURRENCE_CHANGES = np.array([0.0, 0.01, 0.05, 0.2])  # of log odds
OCCURRENCE_WEIGHTS = np.array([12, 6, 4, 3]) / 25  # before any data
# Prior probabilities of the groups.
NO_SEASON, WITH_SEASON, HURDLE = 0.5, 0.2, 0.3


@lru_cache(maxsize=16)
def count_models(season_length: int) -> tuple[CountModel, ...]:
    """Models of counts for a season length, 1 for none, in the order of their weights."""
    models = [
        CountModel(_name(dispersion, change), dispersion, change)
        for dispersion in DISPERSIONS
        for change in CHANGES
    ]
    models += [
        CountModel(f"{_name(dispersion, change)}, {name}", dispersion, change, size, decay)
        for name, (size, decay) in SEASONS.items() if season_length > 1
        for dispersion in SEASON_DISPERSIONS
        for change in SEASON_CHANGES
    ]  # fmt: skip
    models += [
        CountModel(f"hurdle, {_name(dispersion, change)}", dispersion, change, hurdle=True)
        for dispersion in HURDLE_DISPERSIONS
        for change in HURDLE_CHANGES
    ]
    return tuple(models)


def _name(dispersion: float, change: float) -> str:
    law = f"negative binomial {1 / dispersion:.2g}" if dispersion else "Poisson"
    return f"{law}, moving {change:g}" if change else law


def _prior_weights(models: tuple[CountModel, ...]) -> np.ndarray:
    """Prior probabilities of the models, smaller for more complex ones.

    A short series of few counts cannot rule out movement or dispersion, so that equal
    probabilities would widen all its forecasts.
    """
    groups = [
        (NO_SEASON, DISPERSIONS, CHANGES, [not (m.season or m.hurdle) for m in models]),
        (WITH_SEASON, SEASON_DISPERSIONS, SEASON_CHANGES, [m.season > 0 for m in models]),
        (HURDLE, HURDLE_DISPERSIONS, HURDLE_CHANGES, [m.hurdle for m in models]),
    ]
    weights = np.zeros(len(models))
    for share, dispersions, changes, mask in groups:
        for j in np.flatnonzero(mask):
            places = dispersions.index(models[j].dispersion), changes.index(models[j].change)
            weights[j] = 1 / ((1 + places[0]) * (1 + places[1]))
        weights[mask] *= share / max(weights[mask].sum(), share)  # the mask may be empty
    return weights / weights.sum()


class CountHyper(NamedTuple):
    """Hyperprior of a panel: first states and prior probabilities of the models.

    Attributes
    ----------
    level : ndarray of shape (2,)
        Mean and shape of the gamma distribution of the first level.
    demand : ndarray of shape (2,)
        Mean and shape for demand sizes less one.
    occurrence : ndarray of shape (2,)
        Parameters of the beta distribution of the first probability of demand.
    weights : ndarray of shape (J,)
        Prior probabilities of `count_models`.
    occurrence_weights : ndarray of shape (4,)
        Prior probabilities of `OCCURRENCE_CHANGES`.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import count_hyper
    >>> rows = np.array([[0, 2, 1, 0, 3.0], [1, 0, 0, 1, 0]])
    >>> count_hyper(rows, np.array([5, 5]), season_length=1).level.round(2).tolist()
    [0.8, 1.11]
    """

    level: np.ndarray
    demand: np.ndarray
    occurrence: np.ndarray
    weights: np.ndarray
    occurrence_weights: np.ndarray


@dataclass(frozen=True)
class CountForecasts:
    r"""Predictive distributions of counts of U series at h steps, mixtures over C models.

    .. math::

        p(y) = \sum_{c} w_c \, \mathrm{NB}(y; m_c, s_c)
        + \sum_{c'} w_{c'} \bigl\{ (1 - d) \, 1[y = 0] + d \, \mathrm{NB}(y - 1; m_{c'}, s_{c'})
        \bigr\}

    with plain models c, hurdle models c', means m, sizes s and the probability of demand d.

    Attributes
    ----------
    models : tuple of CountModel
    component_weights : ndarray of shape (U, C)
        Posterior probabilities w of the models.
    component_mean, component_size : ndarray of shape (U, C, h)
        Means m and sizes s of the negative binomials.
    component_shape : ndarray of shape (U, C, h)
        Shapes of the gamma distributions of the levels.
    occurrence_weights : ndarray of shape (U, K)
        Posterior probabilities of `OCCURRENCE_CHANGES`.
    occurrence_shape : ndarray of shape (2, U, K, h)
        Parameters of the beta distributions of the probability of demand.
    log_evidence : ndarray of shape (U,)
        Log probability of the observed rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import count_forecasts
    >>> rows = np.array([[0, 2, 1, 0, 3, 1, 0, 1, 2, 0.0]])
    >>> forecasts = count_forecasts(rows, np.array([10]), season_length=1, h=2)
    >>> forecasts.mean.round(2).tolist()
    [[0.99, 0.99]]
    >>> forecasts.quantile([0.1, 0.5, 0.9])[0, :, 0].tolist()
    [0.0, 1.0, 2.0]
    """

    models: tuple[CountModel, ...]
    component_weights: np.ndarray
    component_mean: np.ndarray
    component_size: np.ndarray
    component_shape: np.ndarray
    occurrence_weights: np.ndarray
    occurrence_shape: np.ndarray
    log_evidence: np.ndarray

    @property
    def hurdle(self) -> np.ndarray:
        """Mask (C,) of the hurdle models."""
        return np.array([model.hurdle for model in self.models])

    @property
    def demand(self) -> np.ndarray:
        """Probabilities (U, h) of demand under the hurdle models."""
        first, second = self.occurrence_shape
        return np.einsum("uk,ukh->uh", self.occurrence_weights, first / (first + second))

    @property
    def mean(self) -> np.ndarray:
        """Means (U, h) of the predictive distributions."""
        hurdle = self.hurdle
        counts = np.einsum(
            "uc,uch->uh", self.component_weights[:, ~hurdle], self.component_mean[:, ~hurdle]
        )
        sizes = np.einsum(
            "uc,uch->uh", self.component_weights[:, hurdle], 1 + self.component_mean[:, hurdle]
        )
        return counts + self.demand * sizes

    @property
    def probability_of_zero(self) -> np.ndarray:
        """Probabilities (U, h) of a zero."""
        return np.exp(self.log_probability(np.zeros(self.component_mean.shape[::2])))

    @property
    def weights(self) -> pd.Series:
        """Posterior probabilities of the models, averaged over series, in decreasing order."""
        names = [model.name for model in self.models]
        mean = pd.Series(self.component_weights.mean(0), names, name="weight")
        return mean.sort_values(ascending=False, kind="stable")

    def pmf(self, n: int) -> np.ndarray:
        """Return the probabilities of 0 to n - 1.

        Parameters
        ----------
        n : int

        Returns
        -------
        ndarray of shape (U, h, n)
        """
        n_series, _, h = self.component_mean.shape
        return self._table(np.arange(n_series * h), n).reshape(n_series, h, n)

    def log_probability(self, values: np.ndarray) -> np.ndarray:
        """Return the log probabilities (U, h) of counts `values` (U, h), NaN for NaN."""
        hurdle, y = self.hurdle, np.asarray(values, float)[:, None]
        demand = self.demand[:, None]
        missing = np.isnan(y)
        y = np.where(missing, 0.0, y)
        counted = np.maximum(y - hurdle[:, None], 0.0)
        logs = _log_pmf(counted, self.component_mean, self.component_size)
        with np.errstate(divide="ignore"):  # probabilities may be 0 or 1
            occurrence = np.where(y > 0, np.log(demand) + logs, np.log1p(-demand))
            logs = np.where(hurdle[:, None], occurrence, logs)
            total = logsumexp(logs + np.log(self.component_weights)[..., None], axis=1)
        return np.where(missing[:, 0], np.nan, total)

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """Return the distribution function (U, h) at `values` (U, h)."""
        n_series, _, h = self.component_mean.shape
        values = np.broadcast_to(np.floor(values), (n_series, h))
        return np.array(
            [[self._row_cdf(u, k, values[u, k, None])[0] for k in range(h)]
             for u in range(n_series)]
        )  # fmt: skip

    def quantile(self, probabilities: np.ndarray | list[float]) -> np.ndarray:
        """Return quantiles, the smallest counts whose distribution function is large enough.

        Parameters
        ----------
        probabilities : array_like of shape (n,)
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (U, n, h)
            Whole numbers.

        Raises
        ------
        ValueError
            If a probability is not between 0 and 1.
        """
        levels = np.asarray(probabilities, float)
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(
                f"probabilities must be a sequence of numbers between 0 and 1; got {probabilities}"
            )
        n_series, _, h = self.component_mean.shape
        quantiles = np.zeros((n_series * h, len(levels)))
        rows = np.arange(n_series * h)
        # Most quantiles are small; the others need a longer table.
        for width in TABLES:
            near = self.mean.ravel()[rows] < width
            table = self._table(rows[near], width).cumsum(1)
            ends = table[:, -1] >= levels.max(initial=0.0)
            for column, level in enumerate(levels):
                quantiles[rows[near][ends], column] = (table[ends] < level).sum(1)
            rows = np.r_[rows[near][~ends], rows[~near]]
        for row in rows:
            quantiles[row] = self._bisect(row // h, row % h, levels)
        return quantiles.reshape(n_series, h, -1).swapaxes(1, 2)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw paths: a model for each path, then its moving level, then counts.

        Each step has exactly the distribution of `pmf`.

        Parameters
        ----------
        n : int
            Paths of each series.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of shape (n, U, h)
        """
        series = np.arange(len(self.component_weights))
        component = _draw(rng, self.component_weights, n)  # (n, U)
        mean, size, shape = (
            part[series, component]
            for part in (self.component_mean, self.component_size, self.component_shape)
        )
        level = _gamma_path(rng, shape)
        # Beta thinning of a gamma variable gives a gamma variable with a smaller shape.
        counts = rng.poisson(_thin(rng, level, shape, size) * mean / size).astype(float)
        pace = _draw(rng, self.occurrence_weights, n)
        yes, no = (_gamma_path(rng, part[series, pace]) for part in self.occurrence_shape)
        occurs = rng.random(yes.shape) * (yes + no) < yes
        return np.where(self.hurdle[component][..., None], occurs * (1 + counts), counts)

    def _table(self, rows: np.ndarray, n: int) -> np.ndarray:
        """Probabilities (R, n) of 0 to n - 1 at `rows` (R,) of all U * h steps, by recursion."""
        h, hurdle = self.component_mean.shape[2], self.hurdle
        series, step = rows // h, rows % h
        mean = self.component_mean[series, :, step]
        size = self.component_size[series, :, step]
        demand = self.demand[series, step]
        weights = self.component_weights[series]
        # Weighted probabilities of k, in hurdle models of demand k + 1.
        terms = weights * np.exp(-size * np.log1p(mean / size))
        ratio = mean / (size + mean)
        table = np.zeros((len(rows), n))
        table[:, 0] = (1 - demand) * weights[:, hurdle].sum(1)
        for k in range(n):
            table[:, k] += terms[:, ~hurdle].sum(1)
            if k + 1 < n:
                table[:, k + 1] += demand * terms[:, hurdle].sum(1)
            terms *= ratio * ((k + size) / (k + 1))
        return table

    def _row_cdf(self, series: int, step: int, k: np.ndarray) -> np.ndarray:
        """Distribution function (n,) of a step of a series at integers k (n,)."""
        weights, hurdle = self.component_weights[series], self.hurdle
        kept = weights > NEGLIGIBLE
        weights, hurdle = weights[kept] / weights[kept].sum(), hurdle[kept]
        mean, size = (
            part[series, kept, step] for part in (self.component_mean, self.component_size)
        )
        counted = k[:, None] - hurdle
        below = betainc(size, np.maximum(counted, 0) + 1, size / (size + mean)) * (counted >= 0)
        demand = self.demand[series, step]
        below = np.where(hurdle, (1 - demand) * (k[:, None] >= 0) + demand * below, below)
        return below @ weights

    def _bisect(self, series: int, step: int, levels: np.ndarray) -> np.ndarray:
        """Quantiles of a step of a series by bisection."""
        low, high = np.full(len(levels), -1.0), np.ones(len(levels))
        while (short := self._row_cdf(series, step, high) < levels).any():
            low, high = np.where(short, high, low), np.where(short, 2 * high, high)
        # Beyond 2^53 not every integer is a float: stop at neighbouring floats.
        while (((middle := np.floor((low + high) / 2)) > low) & (middle < high)).any():
            short = self._row_cdf(series, step, middle) < levels
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high


def count_hyper(values: np.ndarray, lengths: np.ndarray, season_length: int) -> CountHyper:
    """Estimate the hyperprior of a panel.

    First states come from moments of the series. Prior probabilities of the models are estimated
    by EM, with a Dirichlet prior that counts as eight series.

    Parameters
    ----------
    values : ndarray of shape (U, T)
        Counts, NaN if missing.
    lengths : integer ndarray of shape (U,)
        Rows of each series.
    season_length : int

    Returns
    -------
    CountHyper

    Raises
    ------
    ValueError
        If a value is no count.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import count_hyper
    >>> rows = np.random.default_rng(0).poisson(2.0, (40, 50)).astype(float)
    >>> hyper = count_hyper(rows, np.full(40, 50), season_length=1)
    >>> hyper.level.round(1).tolist()
    [2.0, 9.6]
    """
    values = _counts(values, lengths)
    models = count_models(season_length)
    demand = np.where(values > 0, values - 1, np.nan)
    hyper = CountHyper(
        _gamma_moments(values),
        _gamma_moments(demand),
        _beta_moments(np.where(np.isnan(values), np.nan, values > 0)),
        _prior_weights(models),
        OCCURRENCE_WEIGHTS,
    )
    filtered = _filter_all(values, lengths, season_length, 0, hyper)
    weights, paces = hyper.weights, hyper.occurrence_weights
    for _ in range(EM_STEPS):
        posterior, pace, _ = _posterior(filtered, models, weights, paces)
        of_hurdle = posterior[:, [m.hurdle for m in models]].sum(1)
        weights = PRIOR_SERIES * hyper.weights + posterior.sum(0)
        paces = PRIOR_SERIES * hyper.occurrence_weights + of_hurdle @ pace
        weights, paces = weights / weights.sum(), paces / paces.sum()
    return hyper._replace(weights=weights, occurrence_weights=paces)


def count_forecasts(
    values: np.ndarray,
    lengths: np.ndarray,
    season_length: int,
    h: int,
    hyper: CountHyper | None = None,
) -> CountForecasts:
    r"""Forecast counts by models that are averaged by their evidence.

    .. math::

        y_t \mid \mu_t \sim \mathrm{NB}(\mu_t, r), \qquad
        \log \mu_t = \ell_t + x_t' \beta, \qquad
        \ell_t = \ell_{t-1} + \eta_t, \quad \operatorname{var}(\eta_t) = W

    with Poisson counts for infinite r and seasonal harmonics :math:`x_t`. Given earlier rows,
    :math:`\mu_t` is gamma with mean m and shape 1 / q, where q is the variance of its logarithm.
    The count is negative binomial, and the update is

    .. math::

        q^+ = \frac{q}{1 + \kappa q y}, \qquad
        m^+ = m \frac{1 + \kappa q y}{1 + \kappa q m}, \qquad \kappa = \frac{1}{1 + m / r}

    Level and season are updated by linear Bayes estimation. Without a season, with W = 0 and
    infinite r, the update is the exact gamma posterior.

    A negative binomial of size r with a gamma mean is approximated by the negative binomial with
    the same mean and variance, of size s with :math:`1 + 1/s = (1 + 1/r)(1 + q)`. Hurdle models
    combine a beta filter of the occurrence of demand with the same models of sizes less one.
    Missing rows propagate the level without an update. The first level has the mean of the panel,
    moved to within two standard errors of the series.

    Parameters
    ----------
    values : ndarray of shape (U, T)
        Counts of each series, left-aligned, NaN if missing.
    lengths : integer ndarray of shape (U,)
        Rows of each series.
    season_length : int
        Season length in rows, 1 for none.
    h : int
        Horizon.
    hyper : CountHyper, optional
        Hyperprior; by default `count_hyper` of these series. With a given hyperprior the forecast
        of a series does not depend on other series.

    Returns
    -------
    CountForecasts

    Raises
    ------
    ValueError
        If a value is no count, or if the hyperprior is of another season.

    References
    ----------
    West, M., Harrison, P. J., Migon, H. S. (1985). Dynamic generalized linear models and Bayesian
    forecasting. Journal of the American Statistical Association.
    Harvey, A. C., Fernandes, C. (1989). Time series models for count or qualitative observations.
    Journal of Business & Economic Statistics.
    Efron, B., Morris, C. (1971). Limiting the risk of Bayes and empirical Bayes estimators. Journal
    of the American Statistical Association.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import count_forecasts
    >>> rows = np.random.default_rng(0).poisson(0.5, (1, 60)).astype(float)
    >>> forecasts = count_forecasts(rows, np.array([60]), season_length=1, h=1)
    >>> forecasts.pmf(3).round(2).tolist()
    [[[0.41, 0.33, 0.16]]]
    """
    values = _counts(values, lengths)
    models = count_models(season_length)
    if hyper is None:
        hyper = count_hyper(values, lengths, season_length)
    if len(hyper.weights) != len(models):
        raise ValueError(
            f"hyper must have a weight for each of the {len(models)} models of season length "
            f"{season_length}; got {len(hyper.weights)}: learn it by count_hyper with this season"
        )
    filtered = _filter_all(values, lengths, season_length, h, hyper)
    posterior, pace, evidence = _posterior(
        filtered, models, hyper.weights, hyper.occurrence_weights
    )
    dispersion = np.array([model.dispersion for model in models])[:, None]
    size = _mixed_size(dispersion, filtered.variance)
    return CountForecasts(
        models,
        posterior,
        np.exp(filtered.log_mean),
        size,
        1 / filtered.variance,
        pace,
        filtered.occurrence_shape,
        evidence,
    )


def are_counts(values: np.ndarray) -> np.ndarray:
    """Mask of the values that are NaN or integers from 0 to 1e12."""
    whole = (values >= 0) & (values <= LARGEST_COUNT) & (values == np.floor(values))
    return whole | np.isnan(values)


def _counts(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Set values after the end of each series to NaN; raise ValueError if one is no count."""
    values = np.asarray(values, float)
    values = np.where(np.arange(values.shape[1]) < np.asarray(lengths)[:, None], values, np.nan)
    legal = are_counts(values)
    if not legal.all():
        series, row = np.argwhere(~legal)[0]
        raise ValueError(
            f"values must be whole numbers from 0 to {LARGEST_COUNT:g}, or NaN; got "
            f"{values[series, row]:g} in row {row} of series {series}: forecast "
            "values that are no counts by another model"
        )
    return values


def _gamma_moments(values: np.ndarray) -> np.ndarray:
    """Moment estimates (2,) of mean and shape of the gamma distribution of the series' means."""
    count = (~np.isnan(values)).sum(1)
    values, count = values[count > 0], count[count > 0]
    if not len(values):
        return np.array([1.0, 1 / USUAL_SPREAD])
    means = np.nanmean(values, 1)
    mean = max(means.mean(), LEAST_MEAN)
    between = means.var() - (np.nanvar(values, 1) / count).mean()
    n = len(values)
    spread = (max(between, 0.0) / mean**2 * n + USUAL_SPREAD * USUAL_SERIES) / (n + USUAL_SERIES)
    return np.array([mean, 1 / np.clip(spread, LEAST_SPREAD, MOST_SPREAD)])


def _beta_moments(occurs: np.ndarray) -> np.ndarray:
    """Moment estimates (2,) of the beta distribution of the shares of rows with demand."""
    count = (~np.isnan(occurs)).sum(1)
    occurs, count = occurs[count > 0], count[count > 0]
    # One more row with and without demand keeps both parameters positive.
    share = (np.nansum(occurs) + 1) / (count.sum() + 2)
    correlation, n = 0.0, len(occurs)
    if n:
        shares = np.nanmean(occurs, 1)
        within = (shares * (1 - shares) / count).mean()
        correlation = max(shares.var() - within, 0.0) / (share * (1 - share))
    correlation = (correlation * n + USUAL_CORRELATION * USUAL_SERIES) / (n + USUAL_SERIES)
    size = 1 / np.clip(correlation, LEAST_CORRELATION, 0.9) - 1
    return size * np.array([share, 1 - share])


class _Filtered(NamedTuple):
    """Evidence of all models, and their states in the h rows after each series."""

    log_evidence: np.ndarray  # (U, J), in hurdle models of the sizes only
    log_mean: np.ndarray  # (U, J, h)
    variance: np.ndarray  # (U, J, h), of the log mean
    occurrence_evidence: np.ndarray  # (U, K)
    occurrence_shape: np.ndarray  # (2, U, K, h)


def _filter_all(
    values: np.ndarray, lengths: np.ndarray, season_length: int, h: int, hyper: CountHyper
) -> _Filtered:
    """Filter all models, in batches of models with the same state."""
    models = count_models(season_length)
    demand = np.where(values > 0, values - 1, np.nan)
    shape = len(values), len(models)
    evidence, mean, variance = np.empty(shape), np.empty((*shape, h)), np.empty((*shape, h))
    levels, sizes = _log_means(values, hyper.level), _log_means(demand, hyper.demand)
    states = dict.fromkeys((model.season > 0, model.decay, model.hurdle) for model in models)
    for state in states:
        places = [j for j, m in enumerate(models) if (m.season > 0, m.decay, m.hurdle) == state]
        seasonal, decay, hurdle = state
        waves = _waves(season_length, seasonal, decay)
        size = max(1, AT_ONCE // (len(places) * waves.shape[1] ** 2))
        for start in range(0, len(values), size):
            block = slice(start, start + size)
            evidence[block, places], mean[block, places], variance[block, places] = _filter(
                (demand if hurdle else values)[block],
                lengths[block],
                waves,
                [models[j] for j in places],
                (sizes if hurdle else levels)[block],
                (hyper.demand if hurdle else hyper.level)[1],
                h,
            )
    occurs = np.where(np.isnan(values), np.nan, values > 0)
    return _Filtered(
        evidence, mean, variance, *_filter_occurrence(occurs, lengths, hyper.occurrence, h)
    )


def _log_means(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Log means (U,) of the first level: the panel's, limited to `FARTHEST` from each series.

    This is the limited translation of Efron and Morris. Otherwise a series unlike its panel would
    need many rows to adapt, and its first rows would favour dispersed models.
    """
    count, total = (~np.isnan(values)).sum(1), np.nansum(values, 1)
    mean = (total + 0.5) / (count + 0.5)
    square = np.nansum((values - mean[:, None]) ** 2, 1)
    # Half a count more, so that series of zeros have a standard error.
    error = (square + total + 0.5) / (total + 0.5) ** 2
    distance = FARTHEST * np.sqrt(1 / first[1] + error)
    return np.clip(np.log(first[0]), np.log(mean) - distance, np.log(mean) + distance)


def _waves(season_length: int, seasonal: bool, decay: float) -> np.ndarray:
    """Level and harmonics (season_length, d) of a season, with total variance one."""
    places = 2 * np.pi * np.arange(season_length) / season_length
    harmonics = min(season_length // 2, MOST_HARMONICS) if seasonal else 0
    frequencies = np.arange(1.0, harmonics + 1)
    scale = frequencies**-decay
    scale /= np.sqrt((scale**2).sum() or 1.0)
    columns = [np.ones(season_length)]
    for size, wave in zip(scale, frequencies, strict=True):
        columns.append(size * np.cos(wave * places))
        if 2 * wave < season_length:  # the sine at the Nyquist frequency is zero
            columns.append(size * np.sin(wave * places))
    return np.stack(columns, 1)


def _filter(
    values: np.ndarray,
    lengths: np.ndarray,
    waves: np.ndarray,
    models: list[CountModel],
    log_mean: np.ndarray,
    shape: float,
    h: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log evidence (U, J), and log means and variances (U, J, h), of models with the same state."""
    n_series, n_rows = values.shape
    season_length, d = waves.shape
    dispersion, change, season = (
        np.array([getattr(model, name) for model in models])
        for name in ("dispersion", "change", "season")
    )
    state = np.zeros((n_series, len(models), d))
    state[..., 0] = log_mean[:, None]
    covariance = np.zeros((n_series, len(models), d, d))
    covariance[..., 0, 0] = 1 / shape
    for wave in range(1, d):
        covariance[..., wave, wave] = season
    update = np.empty_like(covariance)
    evidence = np.zeros((n_series, len(models)))
    for t in range(n_rows):
        if t:
            # The level of a series does not move after its end.
            covariance[..., 0, 0] += np.where(t < lengths[:, None], change, 0.0)
        x = waves[t % season_length]
        gain = covariance @ x  # covariance of the state and the logarithm of the mean
        q, mean = gain @ x, np.exp(state @ x)
        y = values[:, t, None]
        seen = ~np.isnan(y)
        y = np.where(seen, y, 0.0)
        evidence += seen * _log_pmf(y, mean, _mixed_size(dispersion, q))
        # Information of a count relative to a Poisson count.
        kappa = seen / (1 + dispersion * mean)
        counted = kappa * q * y
        gain /= q[..., None]
        state += gain * (np.log1p(counted) - np.log1p(kappa * q * mean))[..., None]
        lost = q * counted / (1 + counted)
        np.multiply(gain[..., None], (gain * lost[..., None])[..., None, :], out=update)
        covariance -= update
    ahead = waves[(lengths[:, None] + np.arange(h)) % season_length]  # (U, h, d)
    log_mean = np.einsum("ujd,uhd->ujh", state, ahead)
    variance = np.einsum("ujde,uhd,uhe->ujh", covariance, ahead, ahead)
    return evidence, log_mean, variance + change[:, None] * np.arange(1, h + 1)


def _filter_occurrence(
    occurs: np.ndarray, lengths: np.ndarray, first: np.ndarray, h: int
) -> tuple[np.ndarray, np.ndarray]:
    """Log evidence (U, K) and parameters (2, U, K, h) of beta filters of the occurrence."""
    n_series, n_rows = occurs.shape
    shape = np.broadcast_to(first[:, None, None], (2, n_series, len(OCCURRENCE_CHANGES))).copy()
    evidence = np.zeros(shape.shape[1:])
    for t in range(n_rows):
        if t:
            shape = np.where(t < lengths[:, None], _move_beta(shape), shape)
        y = occurs[:, t, None]
        seen = ~np.isnan(y)
        hit = np.stack([y == 1, seen & (y == 0)])
        chance = np.where(hit[0], shape[0], shape[1]) / shape.sum(0)
        evidence += np.where(seen, np.log(chance), 0.0)
        shape = shape + hit
    ahead = np.empty((*shape.shape, h))
    for k in range(h):
        shape = _move_beta(shape)
        ahead[..., k] = shape
    return evidence, ahead


def _move_beta(shape: np.ndarray) -> np.ndarray:
    """Beta parameters after a random walk step of the log odds, with the same mean."""
    # Log odds have variance 1 / (n p (1 - p)) given n observations.
    information = shape[0] * shape[1] / shape.sum(0)
    return shape / (1 + OCCURRENCE_CHANGES * information)


def _posterior(
    filtered: _Filtered, models: tuple[CountModel, ...], weights: np.ndarray, paces: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Posterior probabilities of models (U, J) and occurrence changes (U, K), log evidence (U,)."""
    pace = filtered.occurrence_evidence + np.log(paces)
    occurrence = logsumexp(pace, axis=1, keepdims=True)
    hurdle = np.array([model.hurdle for model in models])
    # Occurrence and size are independent, so all hurdle models share the occurrence filter.
    joint = filtered.log_evidence + np.log(weights) + hurdle * occurrence
    evidence = logsumexp(joint, axis=1, keepdims=True)
    return np.exp(joint - evidence), np.exp(pace - occurrence), evidence[:, 0]


def _mixed_size(dispersion: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Size of the negative binomial that matches a gamma mixture of negative binomials."""
    return 1 / (dispersion + variance + dispersion * variance)


def _log_pmf(y: np.ndarray, mean: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Log probability of the negative binomial, by mean and size."""
    y = y if y.ndim == mean.ndim else y[..., None]
    spread = np.log1p(mean / size)
    return (
        gammaln(y + size) - gammaln(size) - gammaln(y + 1)
        - size * spread + y * (np.log(mean / size) - spread)
    )  # fmt: skip


def _draw(rng: np.random.Generator, weights: np.ndarray, n: int) -> np.ndarray:
    """Draw component indices (n, U) with probabilities (U, C)."""
    below = rng.random((n, len(weights), 1)) > weights.cumsum(1)
    return np.minimum(below.sum(-1), weights.shape[1] - 1)


def _gamma_path(rng: np.random.Generator, shape: np.ndarray) -> np.ndarray:
    """Markov chain of gamma variables with shapes (..., h)."""
    path = np.empty(shape.shape)
    path[..., 0] = rng.standard_gamma(shape[..., 0])
    for k in range(1, shape.shape[-1]):
        before, after = shape[..., k - 1], shape[..., k]
        more = rng.standard_gamma(np.maximum(after - before, 0.0))
        path[..., k] = _thin(rng, path[..., k - 1], before, np.minimum(before, after)) + more
    return path


def _thin(
    rng: np.random.Generator, gamma: np.ndarray, shape: np.ndarray, smaller: np.ndarray
) -> np.ndarray:
    """Multiply gamma variables by beta variables, which gives gamma variables of smaller shape."""
    kept = rng.standard_gamma(smaller)
    lost = rng.standard_gamma(np.maximum(shape - smaller, 0.0))
    total = kept + lost
    # With tiny shapes both may underflow to zero.
    return gamma * np.where(total > 0, kept / np.where(total > 0, total, 1.0), 1.0)
