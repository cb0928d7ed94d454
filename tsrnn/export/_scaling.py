"""How the rows of a series are scaled, on tensors: `fit_scaling` and the map of Box and Cox."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.forecasters import SMALLEST_SCALE


class OwnScaling(NamedTuple):
    """Location, scale and whether the series varies (1 or 0), each (S, C)."""

    location: Tensor
    scale: Tensor
    varies: Tensor


def own_scaling(raw: Tensor, changed: Tensor, alive: Tensor, season: int) -> OwnScaling:
    """Scaling of series by their own rows.

    Parameters
    ----------
    raw, changed : Tensor of shape (S, T, C)
        Targets, and the same transformed.
    alive : boolean Tensor of shape (S, T, 1)
        Rows that are there, the first ones.
    season : int
    """
    count = alive.sum(1)
    low, high = _range(raw, alive)
    varies = (high > low).to(raw.dtype)
    location, deviation = _moments(changed, alive, count)
    errors = _naive_errors((changed - location[:, None]) / deviation[:, None], alive, count, season)
    relative = torch.where(varies > 0, errors.clamp(min=SMALLEST_SCALE), 1.0)
    scale = torch.where(count > 0, deviation * relative, 0.0)  # not known without rows
    return OwnScaling(location, scale, varies)


def _range(values: Tensor, alive: Tensor) -> tuple[Tensor, Tensor]:
    low = torch.where(alive, values, torch.inf).amin(1)
    return low, torch.where(alive, values, -torch.inf).amax(1)


def _moments(values: Tensor, alive: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation, the second 1 where nothing varies."""
    low, high = _range(values, alive)
    mean = torch.where(alive, values, 0.0).sum(1) / count
    mean = torch.minimum(torch.maximum(mean, low), high)  # rounding could leave a constant
    # Squares of very large or small values leave the range of floats.
    peak = torch.maximum(high - mean, mean - low)
    peak = torch.where(peak > 0, peak, 1.0)
    relative = torch.where(alive, (values - mean[:, None]) / peak[:, None], 0.0)
    deviation = peak * (relative.square().sum(1) / count).sqrt()
    return mean, torch.where((high > low) & (deviation > 0), deviation, 1.0)


def _naive_errors(values: Tensor, alive: Tensor, count: Tensor, season: int) -> Tensor:
    """Mean absolute difference of rows a season apart, of neighbours in less than two seasons."""
    seasonal = _mean_change(values, alive, count, season)
    return torch.where(count >= 2 * season, seasonal, _mean_change(values, alive, count, 1))


def _mean_change(values: Tensor, alive: Tensor, count: Tensor, lag: int) -> Tensor:
    # Led by `lag` rows, so that no shape depends on whether there are as many.
    n_series, steps, columns = values.shape
    before = torch.cat([values.new_zeros(n_series, lag, columns), values], 1)[:, :steps]
    there = alive & (torch.arange(steps) >= lag)[:, None]
    changes = torch.where(there, (values - before).abs(), 0.0)
    return changes.sum(1) / (count - lag).clamp(min=1)


def boxcox(values: Tensor, exponent: float | None) -> Tensor:
    """The transformation of positive values that `use_boxcox` asks for."""
    if exponent is None:
        return values
    return values.log() if exponent == 0 else torch.expm1(exponent * values.log()) / exponent


def inverse_boxcox(values: Tensor, exponent: float | None) -> Tensor:
    """Undo `boxcox`; what lies below the transform of zero becomes zero."""
    if exponent is None:
        return values
    return values.exp() if exponent == 0 else (exponent * values + 1).clamp(min=0) ** (1 / exponent)
