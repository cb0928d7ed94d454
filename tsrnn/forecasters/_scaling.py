"""Scaling of series: Box-Cox transformation, then standardisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tsrnn.contract import number
from tsrnn.data import Panel, Scaler, quote

if TYPE_CHECKING:
    from torch import Tensor

Values = TypeVar("Values", np.ndarray, "Tensor")

FARTHEST = 1e30  # largest standardised value: float32 ends at 3e38
SMALLEST_SCALE = 0.02  # in standard deviations: the noise of a nearly exact season is not blown up


@dataclass(frozen=True, eq=False)
class Scaling:
    """Standardisation of series: targets by series, exogenous columns over all series.

    Attributes
    ----------
    target : Scaler
        Mean of the transformed targets, and mean absolute error of their (seasonal) naive forecast
        one season ahead, as in the MASE of Hyndman and Koehler (2006): a loss compares the errors
        of each series with it.
    constant : boolean ndarray of shape (S, C)
        True if the target is constant.
    deviation : ndarray of shape (S, C)
        Standard deviation of the targets, on the original scale.
    boxcox : float, optional
        Exponent of the transformation of the targets.
    """

    target: Scaler
    exog: Scaler
    constant: np.ndarray
    deviation: np.ndarray
    boxcox: float | None = None

    def transform(self, values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
        """Standardise rows of all series, shape (N, C + E)."""
        location, scale = self.target.location, self.target.scale
        exog, lengths = np.concatenate([self.exog.location, self.exog.scale]), np.diff(indptr)
        location, scale = np.repeat(location, lengths, 0), np.repeat(scale, lengths, 0)
        return standardised(values, location, scale, exog, self.boxcox)

    def back(self, values: np.ndarray) -> np.ndarray:
        """Transform targets back to the original scale."""
        return inverse_boxcox(values, self.boxcox)

    def replaced(self, series: np.ndarray, new: Scaling) -> Scaling:
        """Replace the series at some positions, or at a mask, by the series of `new`."""
        target = Scaler(self.target.location.copy(), self.target.scale.copy())
        copied = replace(
            self, target=target, constant=self.constant.copy(), deviation=self.deviation.copy()
        )
        target.location[series], target.scale[series] = new.target.location, new.target.scale
        copied.constant[series], copied.deviation[series] = new.constant, new.deviation
        return copied

    def select(self, series: np.ndarray) -> Scaling:
        """Select series by position."""
        target = Scaler(self.target.location[series], self.target.scale[series])
        parts = {"constant": self.constant[series], "deviation": self.deviation[series]}
        return replace(self, target=target, **parts)


@dataclass(frozen=True, eq=False)
class Standardised:
    """Standardised rows of a fit, shape (N, C + E); series i has indptr[i] to indptr[i + 1]."""

    values: np.ndarray
    indptr: np.ndarray
    scaling: Scaling

    @property
    def lengths(self) -> np.ndarray:
        """Number of rows of each series."""
        return np.diff(self.indptr)

    def select(self, series: np.ndarray) -> Standardised:
        """Select series by position, in ascending order."""
        chosen = np.isin(np.arange(len(self.lengths)), series)
        indptr = np.concatenate([[0], np.cumsum(self.lengths[chosen])])
        values = self.values[np.repeat(chosen, self.lengths)]
        return Standardised(values, indptr, self.scaling.select(series))


def fit_scaling(
    panel: Panel,
    rows: np.ndarray,
    season: int,
    exponent: float | None = None,
    exog: Scaler | None = None,
) -> Scaling:
    """Estimate the scaling from the first rows of each series, their number of shape (S,).

    `season` is the season length of the naive forecast, `exponent` that of the transformation of
    the targets. The scaling of the exogenous columns is estimated from the same rows if not given.
    """
    position = np.arange(len(panel.values)) - np.repeat(panel.indptr[:-1], panel.lengths)
    mask = position < np.repeat(rows, panel.lengths)
    indptr = np.concatenate([[0], np.cumsum(rows)])
    values = panel.values[mask]
    raw, changed = Scaler.fit(values, indptr), boxcox(values, exponent)
    target = raw if exponent is None else Scaler.fit(changed, indptr)
    # Compare extremes: by rounding, the standard deviation of equal values may be positive.
    low = np.minimum.reduceat(values, indptr[:-1])
    constant = low == np.maximum.reduceat(values, indptr[:-1])
    # Standardised values, so that squares and sums neither overflow nor underflow.
    relative = _naive_error(target.transform(changed, indptr), indptr, season)
    relative = np.where(constant, 1.0, np.maximum(relative, SMALLEST_SCALE))
    return Scaling(
        Scaler(target.location, target.scale * relative),
        exog or Scaler.fit(panel.exog[mask], indptr, pooled=True),
        constant,
        raw.scale,
        exponent,
    )


def _naive_error(values: np.ndarray, indptr: np.ndarray, season: int) -> np.ndarray:
    """Mean absolute difference of rows one season apart in each series, shape (S, C).

    Adjacent rows are compared if a series has less than two seasons.
    """
    lengths = np.diff(indptr)
    lag = np.where(lengths >= 2 * season, season, 1)
    offset = np.arange(len(values)) - np.repeat(indptr[:-1], lengths)
    lags = np.repeat(lag, lengths)
    before = np.where(offset >= lags, np.arange(len(values)) - lags, np.arange(len(values)))
    sums = np.add.reduceat(np.abs(values - values[before]), indptr[:-1])
    return sums / np.maximum(lengths - lag, 1)[:, None]


# Separate from `fit_scaling`, which sums ragged rows; an exported program needs padded tensors.
def scale_padded(
    targets: Tensor, alive: Tensor, season: int, exponent: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Scale padded series, shape (S, T, C), on tensors as `fit_scaling` does.

    `alive`, shape (S, T), is True in the first rows of each series; the padding may hold any
    positive number. Returns location, scale and `varies`, 1 or 0, of the transformed targets, each
    of shape (S, C); the scale is 0 without rows.
    """
    import torch  # only exported programs call this function

    alive = alive[..., None]
    count, values = alive.sum(1), boxcox(targets, exponent)

    def extremes(of: Tensor) -> tuple[Tensor, Tensor]:
        low = torch.where(alive, of, torch.inf).amin(1)
        return low, torch.where(alive, of, -torch.inf).amax(1)

    def mean_change(of: Tensor, lag: int) -> Tensor:
        # Padded by `lag` rows in front, so that no shape depends on the length of the series.
        n_series, steps, columns = of.shape
        before = torch.cat([of.new_zeros(n_series, lag, columns), of], 1)[:, :steps]
        there = alive & (torch.arange(steps) >= lag)[:, None]
        changes = torch.where(there, (of - before).abs(), 0.0)
        return changes.sum(1) / (count - lag).clamp(min=1)

    lowest, highest = extremes(targets)
    varies = (highest > lowest).to(targets.dtype)
    low, high = extremes(values)
    mean = torch.where(alive, values, 0.0).sum(1) / count
    mean = torch.minimum(torch.maximum(mean, low), high)  # exact for constants despite rounding
    # Divided by the peak, as squares of very large or small values over- or underflow.
    peak = torch.maximum(high - mean, mean - low)
    peak = torch.where(peak > 0, peak, 1.0)
    relative = torch.where(alive, (values - mean[:, None]) / peak[:, None], 0.0)
    deviation = peak * (relative.square().sum(1) / count).sqrt()
    deviation = torch.where((high > low) & (deviation > 0), deviation, 1.0)
    scaled = (values - mean[:, None]) / deviation[:, None]
    seasonal = count >= 2 * season
    errors = torch.where(seasonal, mean_change(scaled, season), mean_change(scaled, 1))
    errors = torch.where(varies > 0, errors.clamp(min=SMALLEST_SCALE), 1.0)
    return mean, torch.where(count > 0, deviation * errors, 0.0), varies


def standardise(panel: Panel, scaling: Scaling) -> np.ndarray:
    """Standardise the rows of a panel, shape (N, C + E); raises if they exceed float32."""
    with np.errstate(over="ignore"):
        rows = scaling.transform(np.hstack([panel.values, panel.exog]), panel.indptr)
    for j, name in enumerate((*panel.target_names, *panel.exog_names)):
        far = np.flatnonzero(np.abs(rows[:, j]) > FARTHEST)
        if len(far):
            raise ValueError(
                f"values of the column {quote(name)} must lie within {FARTHEST:g} times the scale "
                f"of the data fitted to; farther are {panel.axis.describe(far)}. Replace these "
                "values, or fit to data with values of their size"
            )
    return rows


def boxcox_lambda(use_boxcox: Any) -> float | None:
    """Exponent of the argument `use_boxcox`; None for False."""
    if use_boxcox is False or use_boxcox is None:
        return None
    if isinstance(use_boxcox, str) and use_boxcox == "log":
        return 0.0
    if isinstance(use_boxcox, str | bool | np.bool_):
        raise ValueError(
            f"use_boxcox must be False, 'log' or a number from 0 (log) to 1; got "
            f"{quote(use_boxcox)}"
        )
    exponent = number("use_boxcox", use_boxcox, lowest=0.0, open_=False)
    if exponent > 1:
        raise ValueError(f"use_boxcox must be at most 1; got {exponent:g}")
    return exponent


def standardised(
    rows: Values, location: Values, scale: Values, exog: Values | None, exponent: float | None
) -> Values:
    """Standardise rows in an array or a tensor.

    Parameters
    ----------
    rows : ndarray or Tensor of shape (..., C + E)
        Rows on the original scale.
    location, scale : ndarray or Tensor that broadcasts to (..., C)
        Location and scale of the transformed targets.
    exog : ndarray or Tensor of shape (2, E), or None
        Location and scale of the exogenous columns; None without any.
    exponent : float or None
        Exponent of the Box-Cox transformation; None for no transformation.

    Returns
    -------
    ndarray or Tensor of shape (..., C + E)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.forecasters import standardised
    >>> rows, of_exog = np.array([[100.0, 7.0]]), np.array([[5.0], [2.0]])
    >>> standardised(rows, np.array([90.0]), np.array([20.0]), of_exog, None).tolist()
    [[0.5, 1.0]]
    """
    n_targets = location.shape[-1]
    targets = (boxcox(rows[..., :n_targets], exponent) - location) / scale
    if exog is None:
        return targets
    others = (rows[..., n_targets:] - exog[0]) / exog[1]
    return _library(rows).concatenate([targets, others], -1)


def boxcox(values: Values, exponent: float | None) -> Values:
    r"""Transform positive values of an array or a tensor.

    .. math:: x = (y^\lambda - 1) / \lambda, \qquad x = \log y \text{ for } \lambda = 0

    Parameters
    ----------
    values : ndarray or Tensor
    exponent : float or None
        Exponent :math:`\lambda` from 0 to 1; None for no transformation.

    Returns
    -------
    ndarray or Tensor

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.forecasters import boxcox
    >>> boxcox(np.array([1.0, 4.0]), 0.5).round(6).tolist()
    [0.0, 2.0]
    """
    if exponent is None:
        return values
    of = _library(values)
    if exponent == 0:
        return of.log(values)
    # expm1, as the difference y ** exponent - 1 loses all digits if the exponent is small.
    return of.expm1(exponent * of.log(values)) / exponent


def inverse_boxcox(values: Values, exponent: float | None) -> Values:
    """Undo `boxcox`; values below the transform of zero become zero."""
    if exponent is None:
        return values
    of = _library(values)
    if exponent == 0:
        return of.exp(values)
    return of.clip(exponent * values + 1, 0, None) ** (1 / exponent)


def _library(values: np.ndarray | Tensor) -> Any:
    """Return `numpy` for an array, `torch` for a tensor; the functions used have equal names."""
    if isinstance(values, np.ndarray | np.generic):
        return np
    import torch

    return torch


def check_positive(panel: Panel) -> None:
    """Raise ValueError with the name of the series if a target is not positive."""
    rows = np.flatnonzero((panel.values <= 0).any(1))
    if len(rows):
        series = np.searchsorted(panel.indptr, rows[0], side="right") - 1
        of = "" if panel.layout.id_col is None else f" of series {quote(panel.ids[series])}"
        raise ValueError(
            f"use_boxcox needs positive targets; {len(rows)} rows are not, the first{of} with "
            f"{panel.values[rows[0]].min():g}. Leave use_boxcox out, or add a constant to the data"
        )
