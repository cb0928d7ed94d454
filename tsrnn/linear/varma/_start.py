"""Where the search begins: the regressions of Hannan and Rissanen (1982), all units at once."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._shape import Coefficients
from tsrnn.linear.varma._system import spectral_radius

_RIDGE = 1e-10  # relative; keeps a regression of too many columns solvable
_LARGEST_ROOT = 0.97  # of starting values


def start(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Starting values and covariances of long-regression residuals.

    Innovations are taken from a long vector autoregression and put into the regression of
    the series on its lags and theirs. Missing values are interpolated for it.

    Parameters
    ----------
    sample : Sample
        Standardised.

    Returns
    -------
    params : array of shape (U, k)
    spread : array of shape (U, n, n)
        Singular where one series is a combination of others and of the past.
    """
    shape = sample.shape
    n, p, q = shape.n, shape.p, shape.q
    y = interpolated(sample)
    skipped = long_order(sample) if q else p
    long_rows = _rows(sample, skipped)
    _, errors = _least_squares(
        y, np.concatenate([sample.design, _lagged(y, skipped)], 2), long_rows
    )
    regressors = [_lagged(y, p)] + ([_lagged(errors, q)] if q else [])
    rows = _rows(sample, skipped + q if q else p)
    coefficients, residuals = _least_squares(
        y, np.concatenate([sample.design, *regressors], 2), rows
    )
    sizes = np.cumsum([shape.n_design, n * p])
    design, ar, ma = np.split(coefficients, sizes, 1)
    blocks = [_stable(_blocks(a, n)) for a in (ar, -ma)]
    found = Coefficients(
        design.swapaxes(1, 2), blocks[0], -blocks[1], _factor(_mean_square(residuals, rows))
    )
    return shape.pack(found), _mean_square(errors, long_rows)


def long_order(sample: Sample) -> int:
    """Lags of the long vector autoregression: more for longer series, as rows allow."""
    shape, rows = sample.shape, int(sample.rows.min())
    wanted = shape.lags + int(np.ceil(rows ** (1 / 3)))
    return max(1, min(wanted, (rows // 2 - shape.n_design) // (shape.n + 1)))


def interpolated(sample: Sample) -> np.ndarray:
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


def _rows(sample: Sample, first: int) -> np.ndarray:
    """Rows used by a regression, (U, T)."""
    return sample.inside & (np.arange(sample.y.shape[1]) >= first)


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
    """Matrices with all roots drawn inside, in proportion, where one is too large."""
    if not lags.shape[1]:
        return lags
    shrink = np.minimum(1.0, _LARGEST_ROOT / np.maximum(spectral_radius(lags), 1e-300))
    powers = shrink[:, None] ** np.arange(1, lags.shape[1] + 1)
    return lags * powers[..., None, None]


def _factor(spread: np.ndarray) -> np.ndarray:
    """Cholesky factors; singular covariances are lifted, those units are refused elsewhere."""
    n = spread.shape[1]
    size = np.einsum("uii->u", spread)[:, None, None] / n
    return np.linalg.cholesky(spread + (1e-9 * size + 1e-12) * np.eye(n))


def _mean_square(errors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Covariances (U, n, n) of errors that are zero in rows not used."""
    return errors.swapaxes(1, 2) @ errors / np.maximum(rows.sum(1), 1)[:, None, None]
