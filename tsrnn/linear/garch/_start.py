"""Starting values: least squares for the mean, a grid for the variance."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.linear._multivariate import spectral_radius
from tsrnn.linear.garch._likelihood import Likelihood
from tsrnn.linear.garch._prepare import N_BACKCAST, Sample, mean_moments, products_of
from tsrnn.linear.garch._specification import Model

_NU = 8.0  # tails of daily returns


class Grid(NamedTuple):
    """Candidates for the parameters of the variance."""

    levels: tuple[float, ...]  # of the persistence
    alphas: tuple[float, ...]
    gammas: tuple[float, ...]
    log_gammas: tuple[float, ...]  # of an EGARCH
    log_levels: tuple[float, ...] = ()  # further levels of an EGARCH, whose beta may be negative


# Grids around values of daily returns: a persistence near one, and small effects of shocks.
_COARSE = Grid((0.98, 0.9, 0.6), (0.05, 0.15), (0.05,), (-0.05,))
_FINE = Grid(
    (0.995, 0.98, 0.9, 0.7, 0.5), (0.004, 0.02, 0.05, 0.1, 0.2), (0.0, 0.1), (-0.1, 0.0, 0.1),
    (-0.7, -0.9, -0.98),
)  # fmt: skip
# Grid of the first AR coefficient of an ARMA mean, and of its sum with the first MA coefficient:
# where the two nearly cancel, maxima lie side by side.
_PHI = (-0.99, -0.97, -0.9, -0.75, -0.5, -0.2, 0.0, 0.2, 0.5, 0.75, 0.9, 0.97, 0.99)
_LEFT = (-0.5, -0.2, -0.08, -0.03, -0.01, 0.01, 0.03, 0.08, 0.2, 0.5)


@dataclass(frozen=True, eq=False)
class MeanStart(SeriesArrays):
    """Starting values of the mean."""

    params: np.ndarray  # (N, k_mean)
    first: np.ndarray  # (N, at most 75) first residuals, for the backcast
    variance: np.ndarray  # (N,) mean squared residual


def mean_start(model: Model, sample: Sample) -> MeanStart:
    """Estimate regressions by least squares, ARMA means by the method of Hannan and Rissanen."""
    if model.mean.n_ma:
        return _hannan_rissanen(model, sample)
    moments = mean_moments(model, sample)
    params = _coefficients(moments)
    weights = np.concatenate([np.ones((len(params), 1)), -params], 1)
    variance = np.einsum("ni,nij,nj->n", weights, moments, weights)
    inputs = sample.inputs[:, :N_BACKCAST]
    e = inputs[..., 0].copy()
    if model.mean.constant:
        e -= params[:, :1]
    for i in range(len(model.mean.lags)):
        e -= params[:, model.mean.constant + i, None] * inputs[..., 1 + i]
    return MeanStart(params, e, variance)


def _hannan_rissanen(model: Model, sample: Sample) -> MeanStart:
    """Regress on lags of y and on lagged residuals of a long autoregression."""
    n_ma, steps, observed = model.mean.n_ma, sample.inputs.shape[1], sample.observed
    y = np.where(observed, sample.inputs[..., 0], 0.0)
    ones = observed.astype(float)
    # Enough lags to approximate an inverted moving average, and rows left to estimate them.
    longest = max(1, min(10 + 2 * n_ma, steps // 4))
    past = [_lagged(y, lag) * ones for lag in range(1, longest + 1)]
    guess = _regress(y, [ones, *past])[1]
    known = [ones] * model.mean.constant
    known += [sample.inputs[..., 1 + i] * ones for i in range(len(model.mean.lags))]
    known += [_lagged(guess, j) * ones for j in range(1, n_ma + 1)]
    params, e = _regress(y, known)
    part = slice(params.shape[1] - n_ma, None)
    # Shrink roots to at most 0.9: near the unit circle the likelihood has maxima of its own.
    radius = np.maximum(spectral_radius(-params[:, part, None, None]) / 0.9, 1.0)
    params[:, part] /= radius[:, None] ** np.arange(1, n_ma + 1)
    return MeanStart(params, e[:, :N_BACKCAST], (e**2).sum(1) / sample.n_obs)


def _lagged(y: np.ndarray, lag: int) -> np.ndarray:
    result = np.zeros_like(y)
    result[:, lag:] = y[:, :-lag]
    return result


def _regress(y: np.ndarray, known: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (N, m) of a regression and its residuals (N, T)."""
    params = _coefficients(products_of([y, *known]))
    return params, y - sum(params[:, i, None] * x for i, x in enumerate(known))


def _coefficients(moments: np.ndarray) -> np.ndarray:
    """Regress the first variable on the others, by their moments (N, m, m)."""
    inverse = np.linalg.pinv(moments[:, 1:, 1:], hermitian=True)  # regressors may be collinear
    return (inverse @ moments[:, 1:, :1])[..., 0]


def grid_starts(model: Model, likelihood: Likelihood, mean: MeanStart, whole: bool) -> np.ndarray:
    """Best candidate of each kind, shape (kinds, N, k), on the fine or the coarse grid."""
    kinds, grid = _candidates(model, whole)
    n = len(mean.params)
    params = _with_mean(model, mean, grid)
    # Few units: all candidates run in the lanes of one pass. Many units: one pass per candidate.
    count, k, units = params.shape[1], params.shape[2], np.arange(n)
    if n < count:
        value = likelihood.values(params.reshape(-1, k), np.repeat(units, count))
        value = value.reshape(n, count)
    else:
        value = np.stack([likelihood.values(params[:, j], units) for j in range(count)], 1)
    value = np.where(np.isfinite(value), value, -np.inf).reshape(n, kinds, -1)
    # Take the best candidate of each level of persistence: neighbours climb to the same maximum.
    best = value.argmax(2)
    order = np.argsort(-np.take_along_axis(value, best[..., None], 2)[..., 0], axis=1)
    chosen = order * value.shape[2] + np.take_along_axis(best, order, 1)
    return np.take_along_axis(params, chosen[..., None], 1).swapaxes(0, 1)


def _candidates(model: Model, whole: bool) -> tuple[int, np.ndarray]:
    """Number of kinds, and candidates (c, parameters from omega on) sorted by kind.

    A kind is a level of the persistence. With several lags of the variance it is also a shape of
    beta, equal over the lags or all at the last, as each shape leads to another maximum. Omega
    is that of a transformed variance of one.
    """
    p, q, vol = model.p, model.q, model.vol
    expected = _expected_shocks(model)
    grid = _FINE if whole else _COARSE
    levels = (*grid.levels, *(grid.log_levels if vol.log and q else ()))
    leverages = [grid.log_gammas if vol.log else grid.gammas] * (len(vol.coefficients) - 1)
    shapes = [np.full(q, 1 / q)] if q else [np.empty(0)]
    if q > 1 and whole:
        shapes.append(np.arange(q) == q - 1)
    rows = []
    for shape, level, alpha, *leverage in itertools.product(
        shapes, levels, grid.alphas, *leverages
    ):
        shocks = [alpha, *leverage]
        share_of_shocks = float(np.dot(expected, shocks))
        beta = level - share_of_shocks if q else 0.0
        if not q and not vol.log:
            shocks = [level * shock / share_of_shocks for shock in shocks]
            share_of_shocks = level
        row = [1 - beta - share_of_shocks]
        row += [shock / p for shock in shocks for _ in range(p)]
        row += list(beta * shape)
        rows.append(row + [_NU] * len(model.density.names))
    return len(shapes) * len(levels), np.array(rows)


def mean_grid_starts(
    model: Model, likelihood: Likelihood, params: np.ndarray, count: int
) -> np.ndarray:
    """Highest local maxima (count, N, k) of the likelihood on a grid of an ARMA mean.

    The grid is over the first AR and MA coefficients; the others are zero, and the parameters of
    the variance those of `params` (N, k). With fewer maxima the highest is repeated.
    """
    n, mean = len(params), model.mean
    first, theta = int(mean.constant), len(mean.names) - mean.n_ma
    values = np.full((n, len(_PHI), len(_LEFT)), -np.inf)
    points = np.tile(params[:, None, None], (1, len(_PHI), len(_LEFT), 1))
    points[..., model.mean_part] = 0.0
    for i, j in np.ndindex(len(_PHI), len(_LEFT)):
        row, rest = points[:, i, j], _LEFT[j] - _PHI[i]
        if abs(rest) > 1:  # not invertible; maxima may lie at one, which is a bound
            continue
        if mean.lags:
            row[:, first] = _PHI[i]
        row[:, theta] = rest
        values[:, i, j] = likelihood.values(row, np.arange(n))
    values = np.where(np.isfinite(values), values, -np.inf)
    best = values.argmax(2)
    along = np.take_along_axis(values, best[..., None], 2)[..., 0]
    padded = np.pad(along, ((0, 0), (1, 1)), constant_values=-np.inf)
    peak = (along >= padded[:, :-2]) & (along >= padded[:, 2:])
    order = np.argsort(-np.where(peak, along, -np.inf), axis=1, kind="stable")[:, :count]
    order = np.where(np.take_along_axis(peak, order, 1), order, order[:, :1])
    units = np.arange(n)[:, None]
    return points[units, order, best[units, order]].swapaxes(0, 1)


def drawn_starts(model: Model, mean: MeanStart, count: int) -> np.ndarray:
    """Random starts (count, N, k); every unit and every fit has the same ones."""
    rng, (p, q, vol) = np.random.default_rng(0), (model.p, model.q, model.vol)
    rows, expected = [], _expected_shocks(model)
    for _ in range(count):
        # A wider range than the grid's, within the stationary region.
        level, alpha = rng.uniform(0.3, 0.99), rng.uniform(0.01, 0.3)
        sizes = [alpha, *rng.uniform(-0.1 if vol.log else 0.0, 0.1, len(vol.coefficients) - 1)]
        share_of_shocks = float(np.dot(expected, sizes))
        shares = [rng.dirichlet(np.ones(p)) for _ in sizes]
        share = rng.dirichlet(np.ones(q)) if q else np.empty(0)
        beta = max(level - share_of_shocks, 0.0) * share
        row = [1 - sum(beta) - share_of_shocks]
        row += [size * part for size, share in zip(sizes, shares, strict=True) for part in share]
        rows.append([*row, *beta, *[_NU] * len(model.density.names)])
    return _with_mean(model, mean, np.array(rows)).swapaxes(0, 1)


def _expected_shocks(model: Model) -> np.ndarray:
    """Expectation of the shocks, in units of the transformed variance."""
    size = model.density.mean_size(np.full((1, len(model.density.names)), _NU)).value[0]
    return np.array(model.vol.expected) * (size if model.vol.root else 1.0)


def _with_mean(model: Model, mean: MeanStart, rows: np.ndarray) -> np.ndarray:
    """Join parameters of the mean with c candidates for a variance of one, shape (N, c, k)."""
    params = np.empty((len(mean.params), len(rows), len(model.names)))
    params[:, :, model.mean_part] = mean.params[:, None]
    params[:, :, model.omega :] = rows
    variance = mean.variance[:, None]
    params[:, :, model.omega] *= model.vol.transformed(variance)
    return params
