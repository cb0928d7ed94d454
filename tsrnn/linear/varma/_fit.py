"""Maximum likelihood of VARMA models for many units: standardise, start, search, report."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._optimise import Evaluation, Optimum, maximise
from tsrnn.linear.varma._inference import EDGE, OuterProducts, identification, judge, outer_products
from tsrnn.linear.varma._likelihood import evaluate, evaluate_portion, linearised, portions
from tsrnn.linear.varma._prepare import Sample, Scaling, collinear_targets, fit_scaling, unusable
from tsrnn.linear.varma._specification import Coefficients
from tsrnn.linear.varma._system import spectral_radius

# Further starts: factors of the autoregressive and of the moving average coefficients.
_FURTHER = ((0.5, 0.5), (0.2, 1.0), (0.5, -0.5), (1.0, 0.2))
_SLOW = 8  # iterations of a search that meets nothing but one maximum
_SAME = 1e-4  # log-likelihoods that count as one
# Squared distance in standard errors from which the last step of Newton's method is taken.
_TOLERANCE = 1e-9
_RIDGE = 1e-10  # relative; keeps a regression of too many columns solvable
_LARGEST_ROOT = 0.97  # of starting values


class Standardised(NamedTuple):
    """Units that are fitted together.

    Attributes
    ----------
    units : integer array of shape (U,)
        Their numbers.
    sample : Sample
        In the units of the data.
    scaling : Scaling
    start : array of shape (U, k)
        Starting values in standard units; empty where parameters are given.
    """

    units: np.ndarray
    sample: Sample
    scaling: Scaling
    start: np.ndarray = np.empty(0)

    @property
    def standard(self) -> Sample:
        """Sample in standard units."""
        return self.scaling.standardised(self.sample)


def standardised(sample: Sample, targets: list[str]) -> tuple[Standardised | None, dict[int, str]]:
    """Units that can be fitted, with starting values, and the reason for each that cannot."""
    reasons = unusable(sample, targets)
    units = np.array([i for i in range(len(sample.y)) if i not in reasons], int)
    if not len(units):
        return None, reasons
    usable = sample.select(units)
    scaling = fit_scaling(usable)
    first, spread = starting_values(scaling.standardised(usable))
    # Targets that determine each other are seen in the residuals of the long regression.
    refused = collinear_targets(spread, targets)
    reasons |= {int(units[i]): reason for i, reason in refused.items()}
    kept = np.array([i for i in range(len(units)) if i not in refused], int)
    if not len(kept):
        return None, reasons
    chosen = usable.select(kept), scaling.select(kept), first[kept]
    return Standardised(units[kept], *chosen), reasons


def estimates_of(
    sample: Sample, scaling: Scaling, names: tuple[str, ...], ends: Search
) -> Estimates:
    """Estimates in the units of the data from the ends of searches in standard units."""
    shape, params = sample.shape, ends.params
    standard = scaling.standardised(sample)
    n_units, k = params.shape
    last = Evaluation(np.empty(n_units), np.empty((n_units, k)), np.empty((n_units, k, k)))
    products = OuterProducts(*(np.empty((n_units, k, k)) for _ in range(2)))
    for units in portions(standard, np.arange(n_units), by_row=True):
        at = linearised(params[units], standard.select(units))
        parts = *evaluate_portion(at, exact=True), *outer_products(at)
        for whole, part in zip((*last, *products), parts, strict=True):
            whole[units] = part
    back = np.linalg.inv(scaling.jacobian(shape))
    turned = back.swapaxes(1, 2)
    natural = scaling.natural(shape, params)
    fixed, messages = judge(shape, natural, sample.n_obs)
    for i in np.flatnonzero(ends.agreement < ends.starts):
        messages[i].append(
            f"The likelihood has several maxima: {ends.agreement[i]} of {ends.starts[i]} "
            "searches ended at the highest."
        )
    for i in np.flatnonzero(~ends.converged):
        messages[i].append("The likelihood was not maximised to tolerance.")
    return Estimates(
        names=names,
        params=natural,
        loglik=last.value - scaling.log_scale(sample),
        n_obs=sample.n_obs,
        gradient=(turned @ last.gradient[..., None])[..., 0],
        hessian=-(turned @ last.curvature @ back),
        opg=turned @ products.opg @ back,
        information=turned @ products.information @ back,
        iterations=ends.iterations,
        converged=ends.converged,
        fixed=fixed,
        messages=tuple(tuple(lines) for lines in messages),
        starts=ends.starts,
        agreement=ends.agreement,
    )


class Search(NamedTuple):
    """Ends of the searches for U units.

    Attributes
    ----------
    params : array of shape (U, k)
    iterations : integer array of shape (U,)
        Of the search that won.
    converged : boolean array of shape (U,)
    starts, agreement : integer arrays of shape (U,)
        Searches, and how many of them ended at the maximum.
    """

    params: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    starts: np.ndarray
    agreement: np.ndarray


def search(sample: Sample, first: np.ndarray, searches: int, progress: str = "") -> Search:
    """Maximise from starting values (U, k); `progress` labels the bar, if there is to be one.

    Likelihoods with a moving average have several maxima. A search that is slow, does not
    converge, or ends at the edge of invertibility or where factors cancel is doubted: others
    begin elsewhere, `searches` in all, and the highest end counts.
    """
    shape = sample.shape
    best = _maximise(sample, first, progress)
    starts, agreement = np.ones((2, len(first)), int)
    doubtful = np.empty(0, int)
    if shape.q:  # it is moving averages that bring further maxima
        coefficients = shape.unpack(best.params)
        doubts = ~best.converged | (best.iterations > _SLOW)
        doubts |= spectral_radius(coefficients.ma) > 1 - EDGE
        if shape.p:
            doubts |= ~identification(shape, coefficients, sample.rows).identified
        doubtful = np.flatnonzero(doubts)
    factors = _FURTHER[: searches - 1]
    if len(doubtful) and factors:
        further = np.tile(first[doubtful], (len(factors), 1, 1))
        for begun, (ar, ma) in zip(further, factors, strict=True):
            begun[:, shape.at_ar] *= ar
            begun[:, shape.at_ma] *= ma
        repeated = sample.select(np.tile(doubtful, len(factors)))
        label = f"{progress}, further starts" if progress else ""
        others = _maximise(repeated, np.concatenate(further), label)
        values = np.vstack([best.value[doubtful], others.value.reshape(len(factors), -1)])
        starts[doubtful] = len(values)
        agreement[doubtful] = (values > values.max(0) - _SAME).sum(0)
        winner = values.argmax(0), np.arange(len(doubtful))
        for whole, part in zip(best, others, strict=True):
            ends = part.reshape(len(factors), -1, *whole.shape[1:])
            whole[doubtful] = np.concatenate([whole[doubtful][None], ends])[winner]
    # An end beyond the unit circle is no estimate, though the search may cross it.
    invertible = spectral_radius(shape.unpack(best.params).ma) < 1 + EDGE
    return Search(best.params, best.iterations, best.converged & invertible, starts, agreement)


def _maximise(sample: Sample, first: np.ndarray, progress: str) -> Optimum:
    def objective(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        return evaluate(params, sample.select(units), exact)

    return maximise(objective, first, tol=_TOLERANCE, progress=progress)


def starting_values(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Starting values (U, k) and covariances (U, n, n) of long-regression residuals.

    The regressions of Hannan and Rissanen (1982): innovations are taken from a long vector
    autoregression and put into the regression of the series on its lags and theirs. Missing values
    are interpolated for it. A covariance is singular where one series is a combination of others
    and of the past.
    """
    shape, steps = sample.shape, np.arange(sample.y.shape[1])
    n, p, q = shape.n, shape.p, shape.q
    y = _interpolated(sample)
    skipped = p
    if q:  # a long autoregression: more lags for longer series, as rows allow
        shortest = int(sample.rows.min())
        wanted = shape.lags + int(np.ceil(shortest ** (1 / 3)))
        skipped = max(1, min(wanted, (shortest // 2 - shape.n_design) // (n + 1)))
    long_rows = sample.inside & (steps >= skipped)  # those with all lags
    long = np.concatenate([sample.design, _lagged(y, skipped)], 2)
    _, errors = _least_squares(y, long, long_rows)
    rows = sample.inside & (steps >= (skipped + q if q else p))
    lags = [_lagged(y, p)] + ([_lagged(errors, q)] if q else [])
    coefficients, residuals = _least_squares(y, np.concatenate([sample.design, *lags], 2), rows)
    design, ar, ma = np.split(coefficients, np.cumsum([shape.n_design, n * p]), 1)
    ar, ma = (_stable(_blocks(stacked, n)) for stacked in (ar, -ma))
    spread = _mean_square(residuals, rows)
    # Singular covariances are lifted a little, for a factor of units that are refused later.
    size = np.einsum("uii->u", spread)[:, None, None] / n
    factor = np.linalg.cholesky(spread + (1e-9 * size + 1e-12) * np.eye(n))
    first = Coefficients(design.swapaxes(1, 2), ar, -ma, factor)
    return shape.pack(first), _mean_square(errors, long_rows)


def _interpolated(sample: Sample) -> np.ndarray:
    """Series with missing values interpolated in the row number; zero after the end."""
    y = sample.filled.copy()
    rows = np.arange(y.shape[1])
    for unit in np.flatnonzero(sample.n_missing):
        for i in range(y.shape[2]):
            known = sample.seen[unit, :, i]
            if known.any():
                filled = np.interp(rows, rows[known], sample.y[unit, known, i])
                y[unit, :, i] = np.where(sample.inside[unit], filled, 0.0)
    return y


def _lagged(series: np.ndarray, lags: int) -> np.ndarray:
    """Lags 1 to `lags` side by side, (U, T, lags * n), zero before the first row."""
    units, steps, n = series.shape
    result = np.zeros((units, steps, lags, n))
    for i in range(1, lags + 1):
        result[:, i:, i - 1] = series[:, : steps - i]
    return result.reshape(units, steps, lags * n)


def _least_squares(y: np.ndarray, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (U, columns, n) and residuals (U, T, n), zero in rows not used."""
    X, y = (np.where(rows[..., None], a, 0.0) for a in (X, y))
    moments = X.swapaxes(1, 2) @ X
    diagonal = np.einsum("uii->ui", moments)
    diagonal += _RIDGE * diagonal.max(1, keepdims=True, initial=1.0)
    coefficients = np.linalg.solve(moments, X.swapaxes(1, 2) @ y)
    return coefficients, y - X @ coefficients


def _blocks(stacked: np.ndarray, n: int) -> np.ndarray:
    """Coefficient matrices (U, lags, n, n) of a regression on stacked lags."""
    units, rows, _ = stacked.shape
    return stacked.reshape(units, rows // n, n, n).swapaxes(2, 3)


def _stable(lags: np.ndarray) -> np.ndarray:
    """Matrices with all roots shrunk in proportion where the largest is too large."""
    if not lags.shape[1]:
        return lags
    shrink = np.minimum(1.0, _LARGEST_ROOT / np.maximum(spectral_radius(lags), 1e-300))
    powers = shrink[:, None] ** np.arange(1, lags.shape[1] + 1)
    return lags * powers[..., None, None]


def _mean_square(errors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Covariances (U, n, n) of errors that are zero in rows not used."""
    return errors.swapaxes(1, 2) @ errors / np.maximum(rows.sum(1), 1)[:, None, None]
