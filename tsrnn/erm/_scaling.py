"""Standardising inputs and targets by means and standard deviations."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

LEAST = 1e-150  # squares of smaller numbers underflow


def fitted_scaler(name: str, values: np.ndarray, weights: np.ndarray | None) -> StandardScaler:
    """A scaler of the columns of `values` (rows, columns); constant ones are left as wide.

    Rows of weight 0 are left out.

    Raises
    ------
    ValueError
        If squares overflow, or are all lost in rounding to 0.
    """
    if weights is not None:
        values, weights = values[weights > 0], weights[weights > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(values, sample_weight=weights)
    if not (np.isfinite(scaler.mean_).all() and np.isfinite(scaler.var_).all()):
        raise ValueError(
            f"the standard deviation of {name} overflows: its largest absolute value is "
            f"{np.abs(values).max():.3g}. Change its unit"
        )
    largest = np.abs(values).max(0)
    lost = (scaler.var_ < np.finfo(float).tiny) & (largest > 0) & (largest < LEAST)
    if (lost & (values != values[0]).any(0)).any():
        raise ValueError(
            f"the variance of {name} underflows: the largest absolute value of a column is "
            f"{largest[lost].min():.3g}. Change its unit"
        )
    return scaler


def from_moments(mean: np.ndarray, scale: np.ndarray) -> StandardScaler:
    """A fitted scaler of known mean and scale."""
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = len(mean)
    return scaler
