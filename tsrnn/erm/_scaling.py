"""Standardising inputs and targets by means and standard deviations."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler


def fitted_scaler(name: str, values: np.ndarray, weights: np.ndarray | None) -> StandardScaler:
    """A scaler of the columns of `values` (rows, columns); constant ones are left as wide.

    Raises
    ------
    ValueError
        If squares overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(values, sample_weight=weights)
    if not (np.isfinite(scaler.mean_).all() and np.isfinite(scaler.scale_).all()):
        raise ValueError(
            f"the standard deviation of {name} overflows: its largest absolute value is "
            f"{np.abs(values).max():.3g}. Change its unit"
        )
    return scaler


def from_moments(mean: np.ndarray, scale: np.ndarray) -> StandardScaler:
    """A fitted scaler of known mean and scale."""
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = len(mean)
    return scaler
