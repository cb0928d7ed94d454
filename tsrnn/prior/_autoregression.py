r"""Nonlinear autoregressions by Gaussian processes, estimated in closed form.

The row k steps ahead is an unknown function of the last rows, drawn from a Gaussian process:

.. math:: y_{t+k} = f_k(x_t) + e_{t+k}, \qquad x_t = (y_{t+1-l})_{l \in \text{lags}}, \qquad
    \operatorname{cov}(f_k(x), f_k(x')) = \sigma^2 \Bigl(1 + x'x +
    \exp\bigl(-\tfrac{\lVert x - x' \rVert^2}{2 p \ell^2}\bigr)\Bigr), \qquad
    e \sim N(0, \sigma^2 \tau)

for standardised rows and p lags: a linear autoregression plus a smooth departure with length scale
:math:`\ell`. The scale :math:`\sigma^2` is integrated out. One Cholesky factor of the covariance
of all rows yields the forecasts of every step and the likelihood of each row given earlier rows,
which weighs lags, length scales and noises. With little noise the one-step function is iterated as
well, and each step has the forecast with the smaller standard deviation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.special import gammaln, logsumexp

from tsrnn.contract import positive_integer

FIRST_ROW = 8  # first row with a forecast, the same for all choices of lags
FEWEST_ROWS = 20
AUTOREGRESSION_ROWS = 256  # last rows that are used: time is cubic in them
LEAST_REGRESSED = 0.5  # share of the rows that must have all lags
MOST_DIRECT, MOST_STEPS = 96, 1000  # horizons of direct and of iterated forecasts
DEGREES = 4.0  # degrees of freedom of the prior of the scale
LENGTH_SCALES = (None, 0.5, 1.0, 2.0, 4.0)  # None for a linear function
NOISES = (1e-5, 1e-3, 3e-2, 0.3)
START = 1.0  # length scale at the start of the search
LITTLE_NOISE = 0.3  # one-step standard deviation below which forecasts are iterated, too
LEAST_SHARE = 0.05  # posterior probability of the autoregressions that are iterated
FARTHEST = 10.0  # bound of an iterated path, in standard deviations
ROUNDS = 2  # of the search: a third hardly ever changes anything
HOPELESS = -15.0  # log Bayes factor of the first choices below which the search ends


class Autoregression(NamedTuple):
    """Gaussian process of a row given earlier rows."""

    lags: tuple[int, ...]
    length_scale: float | None  # in standard deviations of the series; None: linear
    noise: float  # variance over the squared scale of the function

    @property
    def name(self) -> str:
        """Name in a summary."""
        kind = "linear" if self.length_scale is None else "nonlinear"
        return f"{kind} autoregression of lags {', '.join(map(str, self.lags))}"


@dataclass(frozen=True, eq=False)
class AutoregressionForecasts:
    """Forecasts of h rows by a mixture of autoregressions; `best` is the most probable.

    `log_density`, shape (n,), is the log predictive density of each observed row given the rows
    before it; NaN of the first rows and those after a gap. `drift` is the difference of the means
    of both halves of the rows, over their deviation: autoregressions return to the mean of all.
    """

    mean: np.ndarray  # of the predictive distributions, (h,)
    deviation: np.ndarray  # (h,)
    log_density: np.ndarray
    best: Autoregression
    drift: float


class _Fit(NamedTuple):
    """Posterior of one autoregression."""

    log_evidence: np.ndarray  # (h,), by step
    mean: np.ndarray  # (h,)
    deviation: np.ndarray  # (h,)
    by_row: np.ndarray  # (n,), one-step log evidence of the first 1, ..., n rows
    factor: np.ndarray  # (n, n), Cholesky factor of the covariance of the rows
    errors: np.ndarray  # (n,), standardised one-step errors
    scale: float  # squared scale one step ahead


def autoregress(
    values: np.ndarray, season_length: int, h: int, log_evidence: np.ndarray | None = None
) -> AutoregressionForecasts | None:
    """Forecast a series (T,), NaN if missing, by nonlinear autoregressions of its last 256 rows.

    A coordinate search runs over lags, length scale and noise. All models tried are averaged by
    posterior probabilities, at each step from the likelihood of forecasts with this horizon, whose
    errors are treated as independent although they overlap. `log_evidence` is the log likelihood of
    competing models up to each of the last n observed rows: it ends the search early if the first
    choices are hopeless. Forecasts have up to 1,000 steps. None for fewer than 20 rows, a constant
    series, gaps that leave fewer than half of the rows with all lags, or far better competing
    models.
    """
    values = np.asarray(values, float)
    if values.ndim != 1:
        raise ValueError(f"values must have one dimension, rows; got shape {values.shape}")
    season_length = positive_integer("season_length", season_length)
    series = _Series.of(values, season_length, positive_integer("h", h))
    if series is None:
        return None
    choices, scales, noises = series.choices, LENGTH_SCALES, NOISES
    best = Autoregression(choices[0], START, noises[-1])
    for noise in noises[-2::-1]:  # reduce the noise while that raises the evidence
        less = best._replace(noise=noise)
        if series.best([best, less]) is best:
            break
        best = less
    if log_evidence is not None:
        factor, _ = log_bayes_factor(series.log_density(), log_evidence)
        if factor < HOPELESS:
            return None
    for _ in range(ROUNDS):
        before = best
        best = series.best(best._replace(length_scale=scale) for scale in scales)
        best = series.best(best._replace(lags=lags) for lags in choices)
        place = noises.index(best.noise)
        near = noises[max(0, place - 1) : place + 2]
        best = series.best(best._replace(noise=noise) for noise in near)
        if best == before:
            break
    mean, deviation = series.average(min(h, MOST_STEPS))
    return AutoregressionForecasts(
        series.mean + series.deviation * mean,
        series.deviation * deviation,
        series.log_density(),
        best,
        series.drift,
    )


@dataclass(frozen=True, eq=False)
class _Series:
    """Standardised rows of a series with cached fits of autoregressions."""

    mean: float
    deviation: float
    rows: np.ndarray  # (T,), interpolated over gaps
    observed: np.ndarray  # (T,), mask of the rows that are not interpolated
    choices: list[tuple[int, ...]]
    origins: np.ndarray  # (n,), forecast origins up to the last row
    targets: np.ndarray  # (n, k), rows after each origin, 0 if unknown
    known: np.ndarray  # (n, k)
    fits: dict[Autoregression, _Fit] = field(default_factory=dict)
    covariances: dict[tuple[Any, Any], np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, values: np.ndarray, season_length: int, h: int) -> _Series | None:
        """Standardise the last rows; None if no autoregression can be fitted."""
        values = values[-AUTOREGRESSION_ROWS:]
        observed = np.isfinite(values)
        if not observed.any():
            return None
        values, observed = (part[observed.argmax() :] for part in (values, observed))
        n_rows = len(values)
        if n_rows < FEWEST_ROWS:
            return None
        numbers = np.arange(n_rows)
        filled = np.interp(numbers, numbers[observed], values[observed])
        with np.errstate(over="ignore", invalid="ignore"):  # huge values are refused below
            mean, deviation = values[observed].mean(), values[observed].std()
        if not 0 < deviation < np.inf:
            return None
        rows = (filled - mean) / deviation
        choices = lag_choices(season_length, n_rows)
        # All choices forecast the same rows: observed ones with all lags observed. The last row is
        # always an origin, with interpolated lags if necessary.
        lags = np.unique(np.concatenate(choices))
        origins = np.arange(max(FIRST_ROW, lags[-1]) - 1, n_rows - 1)
        regressed = observed[origins + 1] & observed[origins[:, None] + 1 - lags].all(1)
        if regressed.sum() < max(LEAST_REGRESSED * len(origins), 2):
            return None
        origins = np.append(origins[regressed], n_rows - 1)
        # Rows k ahead are known for the first origins. Beyond one step they may be interpolated.
        ahead = origins[:, None] + np.arange(1, min(h, MOST_DIRECT, len(origins) // 2) + 1)
        known = ahead < n_rows
        targets = np.where(known, rows[np.minimum(ahead, n_rows - 1)], 0.0)
        return cls(mean, deviation, rows, observed, choices, origins, targets, known)

    def best(self, models: Iterable[Autoregression]) -> Autoregression:
        """Fit models and return the one with the largest one-step evidence."""
        return max(models, key=lambda model: self.fit(model).log_evidence[0])

    def fit(self, model: Autoregression) -> _Fit:
        """Cached posterior of a model."""
        if model not in self.fits:
            if model[:2] not in self.covariances:
                inputs = self.rows[self.origins[:, None] + 1 - np.array(model.lags)]
                self.covariances[model[:2]] = covariance(inputs, model.length_scale)
            covariances = self.covariances[model[:2]]
            self.fits[model] = _fit(covariances, model.noise, self.targets, self.known)
        return self.fits[model]

    @property
    def drift(self) -> float:
        """Absolute difference of the means of both halves of the rows."""
        earlier, later = np.array_split(self.rows, 2)
        return float(np.abs(later.mean() - earlier.mean()))

    def log_density(self) -> np.ndarray:
        """Log density of each observed row under the mixture of the fitted models."""
        by_row = np.stack([fit.by_row for fit in self.fits.values()])
        # The uniform prior includes first choices that the search skipped as unlikely.
        first = Autoregression(self.choices[0], START, 0.0)
        tried = {*self.fits, *(first._replace(noise=noise) for noise in NOISES)}
        total = np.logaddexp.reduce(by_row) - np.log(len(tried))
        result = np.full(len(self.rows), np.nan)
        result[self.origins[:-1] + 1] = np.diff(total, prepend=0.0) - np.log(self.deviation)
        return result[self.observed]

    def average(self, h: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (h,) of the mixture of the fitted models."""
        log_evidence, means, deviations = (
            np.stack([getattr(fit, name) for fit in self.fits.values()])
            for name in ("log_evidence", "mean", "deviation")
        )
        weights = np.exp(log_evidence - logsumexp(log_evidence, 0))
        mean, deviation = mixture_moments(weights, means, deviations)
        n_direct, little_noise = len(mean), deviation[0] < LITTLE_NOISE
        if h == n_direct and not little_noise:
            return mean, deviation
        likely = weights[:, 0] >= LEAST_SHARE
        paths = [
            iterate(fit, model, self.rows, self.origins[:-1], h)
            for (model, fit), chosen in zip(self.fits.items(), likely, strict=True)
            if chosen
        ]
        shares = weights[likely, :1] / weights[likely, :1].sum()
        iterated = mixture_moments(shares, *map(np.array, zip(*paths, strict=True)))
        # The forecast with the smaller deviation; beyond MOST_DIRECT the iterated one.
        direct = np.arange(h) < n_direct
        mean, deviation = (np.pad(part, (0, h - n_direct), "edge") for part in (mean, deviation))
        direct &= ~little_noise | (deviation <= iterated[1])
        return np.where(direct, mean, iterated[0]), np.where(direct, deviation, iterated[1])


def mixture_moments(
    weights: np.ndarray, means: np.ndarray, deviations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (h,) of mixtures of m components, arguments of shape (m, h)."""
    mean = (weights * means).sum(0)
    return mean, np.sqrt((weights * (deviations**2 + (means - mean) ** 2)).sum(0))


def iterate(
    fit: _Fit, model: Autoregression, rows: np.ndarray, origins: np.ndarray, h: int
) -> tuple[np.ndarray, np.ndarray]:
    """Iterated forecasts of h rows and their standard deviations, by linear error propagation.

    Errors arriving at different steps are treated as independent.
    """
    lags = np.array(model.lags)
    inputs = rows[origins[:, None] + 1 - lags]
    solved = dtrtrs(fit.factor, fit.errors, lower=1, trans=1)[0]
    path = np.concatenate([rows, np.zeros(h)])
    covariances = np.zeros((h, h))  # of the errors
    for step in range(h):
        x = path[len(rows) + step - lags]
        between, slope = 1.0 + inputs @ x, inputs.T @ solved
        prior = 1.0 + x @ x
        if model.length_scale is not None:
            width = model.length_scale**2 * len(lags)
            departure = np.exp(-0.5 * ((inputs - x) ** 2).sum(1) / width)
            between, prior = between + departure, prior + 1.0
            slope = slope + (inputs - x).T @ (departure * solved) / width
        path[len(rows) + step] = np.clip(between @ solved, -FARTHEST, FARTHEST)
        known = dtrtrs(fit.factor, between, lower=1)[0]
        arriving = fit.scale * (prior + model.noise - known @ known)
        ahead = step >= lags  # lags that are forecasts; observed ones have no error
        moved = slope[ahead] @ covariances[step - lags[ahead]]
        covariances[step], covariances[:, step] = moved, moved
        covariances[step, step] = slope[ahead] @ moved[step - lags[ahead]] + arriving
    return path[len(rows) :], np.sqrt(np.diag(covariances))


def log_bayes_factor(log_density: np.ndarray, log_evidence: np.ndarray) -> tuple[float, int]:
    """Log Bayes factor of autoregressions against other models, and the number of compared rows.

    `log_evidence` of the other models is cumulative over the last observed rows. The first
    `FIRST_ROW` rows are skipped, in which these models find their level. The factor is at most
    twice the one of the later half, so that a series that changed is judged as it is now.
    """
    count = max(0, min(len(log_density), len(log_evidence) - FIRST_ROW))
    of_others = np.diff(log_evidence)[len(log_evidence) - 1 - count :]
    gains = log_density[len(log_density) - count :] - of_others
    gains = gains[np.isfinite(gains)]
    return float(min(gains.sum(), 2 * gains[len(gains) // 2 :].sum())), len(gains)


def lag_choices(season_length: int, n_rows: int) -> list[tuple[int, ...]]:
    """Choices of lags, from the start of the search."""
    plain = [(1, 2, 3, 4), (1, 2)]
    if season_length < 4:  # the plain lags contain those around the season
        return [*plain, (1,), tuple(range(1, 9))]
    if 3 * (season_length + 1) >= n_rows:
        return plain
    around = {season_length - 1, season_length, season_length + 1}
    near = (1, 2, season_length, season_length + 1)
    return [near, plain[0], tuple(sorted({1, 2, 3} | around)), plain[1]]


def covariance(inputs: np.ndarray, length_scale: float | None) -> np.ndarray:
    """Prior covariances (n, n) of the function at inputs (n, p)."""
    products = inputs @ inputs.T
    result = 1.0 + products
    if length_scale is not None:
        squares = np.diag(products)
        distances = 2 * products - squares[:, None] - squares
        distances /= 2 * length_scale**2 * inputs.shape[1]
        result += np.exp(np.minimum(distances, 0.0))
    return result


@lru_cache(maxsize=64)
def _student_constants(n: int) -> np.ndarray:
    """Constants of the log densities of 1, ..., n rows under Student's t."""
    rows = np.arange(1, n + 1)
    gammas = gammaln(0.5 * (DEGREES + rows)) - gammaln(0.5 * DEGREES)
    return gammas - 0.5 * rows * np.log(np.pi * DEGREES)


def _fit(covariances: np.ndarray, noise: float, targets: np.ndarray, known: np.ndarray) -> _Fit:
    """Posterior of one autoregression for all steps.

    L is the Cholesky factor of the covariance of n origins, and E solves L E = `targets`. Row i of
    E is the standardised prediction error of origin i given earlier origins. Step k is known for
    the first n - k origins, and so needs the first n - k rows of E.
    """
    n = len(targets)
    matrix = covariances.copy()
    matrix[np.diag_indices(n)] += noise
    factor, _ = dpotrf(matrix, lower=1, overwrite_a=1)
    errors = dtrtrs(factor, targets, lower=1)[0] * known
    squares = DEGREES + (errors**2).cumsum(0)
    log_scale, constants = np.log(np.diag(factor)).cumsum(), _student_constants(n)

    def log_student(rows: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Joint log density of the first rows, with the scale integrated out."""
        power = 0.5 * (DEGREES + rows)
        return constants[rows - 1] - log_scale[rows - 1] - power * np.log(squares / DEGREES)

    counts = known.sum(0)
    # The last row of L belongs to the final origin.
    loading = factor[-1, :-1, None] * known[:-1]
    variance = covariances[-1, -1] + noise - (loading**2).sum(0)
    scale = squares[-1] / (DEGREES + counts)
    # One-step evidence by row; the final origin has no known target.
    by_row = log_student(np.arange(1, n), squares[:-1, 0])
    return _Fit(
        log_student(counts, squares[-1]),
        (loading * errors[:-1]).sum(0),
        np.sqrt(scale * variance),
        by_row,
        factor[:-1, :-1],
        errors[:-1, 0],
        scale[0],
    )
