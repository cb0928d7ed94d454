"""Standardisation of series by location and scale, and its inverse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Scaler:
    """Standardisation by the mean and standard deviation of each series and column.

    .. math:: z_{it} = (y_{it} - m_i) / s_i

    with :math:`m_i` the mean and :math:`s_i` the standard deviation (divisor: the number of rows)
    of series i, one pair a column, shape (S, n). A constant series gets :math:`s_i = 1`. A pooled
    scaler has a single row, shape (1, n), that all series share.
    """

    location: np.ndarray
    scale: np.ndarray
    pooled: bool = False

    @classmethod
    def fit(cls, values: np.ndarray, indptr: np.ndarray, *, pooled: bool = False) -> Scaler:
        """Return the scaler of finite rows, shape (N, n), sorted by series.

        Series i has the rows indptr[i] to indptr[i + 1], at least one. All rows are pooled into one
        location and scale for exogenous columns whose level means the same in every series.
        """
        lengths = np.diff(indptr)
        if len(lengths) == 0 or lengths.min() < 1 or indptr[0] != 0 or indptr[-1] != len(values):
            raise ValueError(
                f"indptr must rise from 0 to the number of rows, {len(values)}, by at least 1 a "
                f"series; got {np.array2string(np.asarray(indptr), threshold=8)}."
            )
        starts = np.array([0]) if pooled else np.asarray(indptr[:-1])
        return cls(*_moments(values, starts), pooled=pooled)

    def transform(
        self,
        values: np.ndarray,
        indptr: np.ndarray | None = None,
        *,
        series: ArrayLike | None = None,
    ) -> np.ndarray:
        """Standardise rows or windows, shape (N, n), (S, n) or (B, ..., n).

        Rows sorted by series have the bounds `indptr`, shape (S + 1,). `series`, shape (B,), has
        the series of each entry of the first axis; without both, entry i is series i.
        """
        location, scale = self._aligned(values, indptr, series)
        return (values - location) / scale

    def inverse(
        self,
        values: np.ndarray,
        indptr: np.ndarray | None = None,
        *,
        series: ArrayLike | None = None,
    ) -> np.ndarray:
        """Invert `transform`, with the same arguments."""
        location, scale = self._aligned(values, indptr, series)
        return values * scale + location

    def to_dict(self) -> dict[str, np.ndarray]:
        """Return the state as arrays."""
        return {"location": self.location, "scale": self.scale, "pooled": np.array(self.pooled)}

    @classmethod
    def from_dict(cls, state: Mapping[str, ArrayLike]) -> Scaler:
        """Rebuild a scaler from `to_dict`, also with lists for arrays."""
        location, scale = (np.asarray(state[key], np.float64) for key in ("location", "scale"))
        return cls(location, scale, bool(np.asarray(state["pooled"])))

    def _aligned(
        self, values: np.ndarray, indptr: np.ndarray | None, series: ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return location and scale in shapes that broadcast against the values."""
        n_series, n = self.location.shape
        if values.ndim < 2 or values.shape[-1] != n:
            raise ValueError(
                f"values must have {n} columns in their last axis; got {values.shape}."
            )
        if self.pooled:
            return self.location[0], self.scale[0]
        rows = _series_of_rows(n_series, len(values), indptr, series)
        shape = (len(values), *(1,) * (values.ndim - 2), n)
        return self.location[rows].reshape(shape), self.scale[rows].reshape(shape)


def _series_of_rows(
    n_series: int, n_rows: int, indptr: np.ndarray | None, series: ArrayLike | None
) -> np.ndarray:
    if indptr is not None and series is not None:
        raise ValueError("give either indptr or series; got both.")
    rows = np.arange(n_series)
    if series is not None:
        rows = np.asarray(series)
    elif indptr is not None and len(indptr) == n_series + 1:
        rows = np.repeat(rows, np.diff(indptr))
    if len(rows) != n_rows:
        raise ValueError(
            f"values have {n_rows} entries in their first axis, but {len(rows)} are expected for "
            f"{n_series} series. Give indptr of length {n_series + 1}, or the series of each entry."
        )
    return rows


def _moments(values: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of the groups of rows that begin at `starts`."""
    lengths = np.diff(np.append(starts, len(values)))
    counts = lengths[:, None]
    location = np.add.reduceat(values, starts, axis=0) / counts
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    location = np.clip(location, low, high)  # the rounded mean of a constant may differ from it
    centred = values - np.repeat(location, lengths, axis=0)
    # Divide by the peak before squaring: squares of extreme values overflow or underflow.
    peak = np.maximum(high - location, location - low)
    peak = np.where(peak > 0, peak, 1.0)
    relative = centred / np.repeat(peak, lengths, axis=0)
    scale = peak * np.sqrt(np.add.reduceat(relative**2, starts, axis=0) / counts)
    return location, np.where((high > low) & (scale > 0), scale, 1.0)


def log_ratios(values: np.ndarray, reference: np.ndarray | np.floating) -> np.ndarray:
    """Return logarithms of positive values over a positive reference, to full precision.

    The reference broadcasts against the values.
    """
    change = values - reference
    near = np.abs(change) < reference / 2
    # A ratio near 1 rounds the change away, so use log1p there; a far ratio may overflow.
    small = np.log1p(np.where(near, change, 0.0) / reference)
    return np.where(near, small, np.log(values) - np.log(reference))
