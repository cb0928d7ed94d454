"""Starting values: the regressions of Hannan and Rissanen (1982), all units at once."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.varma._prepare import Sample
from tsrnn.linear.varma._specification import Coefficients
from tsrnn.linear.varma._system import spectral_radius

_RIDGE = 1e-10  # relative; keeps a regression of too many columns solvable
_LARGEST_ROOT = 0.97  # of starting values


def starting_values(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
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
    shape, steps = sample.shape, np.arange(sample.y.shape[1])
    n, p, q = shape.n, shape.p, shape.q
    y = _interpolated(sample)
    skipped = _long_order(sample) if q else p
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


def _long_order(sample: Sample) -> int:
    """Lags of the long vector autoregression: more for longer series, as rows allow."""
    shape, rows = sample.shape, int(sample.rows.min())
    wanted = shape.lags + int(np.ceil(rows ** (1 / 3)))
    return max(1, min(wanted, (rows // 2 - shape.n_design) // (shape.n + 1)))


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
