"""Panels, correlations and draws of models of several variables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tsrnn.data import Panel, quote

_COLLINEAR = 1e-10  # eigenvalue of a correlation matrix that counts as zero
_TAKES_PART = 1e-2  # weight in its eigenvector, over the largest, from which a variable is named


def series_of(panel: Panel) -> list[np.ndarray]:
    """Values (T_i, n) series by series."""
    return [panel.series(i) for i in range(panel.n_series)]


def check_long_enough(panel: Panel, series: np.ndarray, least: int) -> None:
    """Refuse series, by number, that are shorter than the lags of the mean."""
    short = series[panel.lengths[series] < least]
    if len(short):
        raise ValueError(
            f"lags of the mean need at least {least} rows of each series; series "
            f"{quote(panel.ids.tolist()[short[0]])} has {panel.lengths[short[0]]}"
        )


def too_few(rows: int, n: int, n_params: int) -> str:
    """Reason why the rows of n variables are too few to estimate; empty if they suffice."""
    if rows * n >= 2 * n_params:
        return ""
    return (
        f"{n_params} parameters need at least {2 * n_params} values; there are {rows} rows of "
        f"{n}. Take fewer variables, fewer lags or a longer series"
    )


def collinear(correlations: np.ndarray, targets: Sequence[object]) -> list[object]:
    """Variables in a linear relation, by a correlation matrix (n, n); empty without one."""
    roots, vectors = np.linalg.eigh(correlations)
    if roots[0] > _COLLINEAR:
        return []
    weights = np.abs(vectors[:, 0])
    return [targets[int(i)] for i in np.flatnonzero(weights > _TAKES_PART * weights.max())]


def scaled_to_unit_diagonal(matrices: np.ndarray) -> np.ndarray:
    """Correlation matrices of covariance matrices (..., n, n)."""
    scale = 1 / np.sqrt(np.diagonal(matrices, axis1=-2, axis2=-1))
    return scale[..., :, None] * matrices * scale[..., None, :]


def draws_frame(y: np.ndarray, units: pd.Index, targets: Sequence[object]) -> pd.DataFrame:
    """Frame of draws (rows, S, n): columns are targets, or pairs of series and target."""
    if y.shape[1] == 1:
        return pd.DataFrame(y[:, 0], columns=list(targets))
    columns = pd.MultiIndex.from_product([units, targets])
    return pd.DataFrame(y.reshape(len(y), -1), columns=columns)


def draw_normal(cov: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Normal draws (..., d, paths) from independent ones, of covariances (..., d, d)."""
    values, vectors = np.linalg.eigh(cov)  # not by Cholesky: covariances may be singular
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ z


def companion(lags: np.ndarray) -> np.ndarray:
    """Companion matrices (U, lags n, lags n) of coefficient matrices (U, lags, n, n)."""
    units, count, n, _ = lags.shape
    result = np.tile(np.eye(count * n, k=-n), (units, 1, 1))
    result[:, :n] = lags.swapaxes(1, 2).reshape(units, n, count * n)
    return result


def inverse_roots(lags: np.ndarray) -> np.ndarray:
    """Inverse roots (U, lags n) of I - A_1 z - A_2 z^2 ..., with A of shape (U, lags, n, n)."""
    return np.linalg.eigvals(companion(lags)) if lags.shape[1] else np.zeros((len(lags), 0))


def spectral_radius(lags: np.ndarray) -> np.ndarray:
    """Largest modulus (U,) of the `inverse_roots`, zero if there are none."""
    return np.abs(inverse_roots(lags)).max(1, initial=0.0)
