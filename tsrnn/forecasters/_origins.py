"""Rows that have everything after them that a forecast is to meet."""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.forecasters._subset import subset
from tsrnn.forecasters._units import Units


def full_origins(
    begin: Tensor, ends: Tensor, horizon: int, starts: Tensor | None = None, most: int = 200_000
) -> tuple[Tensor, Tensor]:
    """Rows from `begin` on with all targets before `ends`, and the start of the unit of each.

    A `subset` of them where there are more than `most`.
    """
    counts = (ends - horizon - begin).clamp(min=0)
    before = counts.cumsum(0)
    chosen = subset(int(before[-1]), most)
    unit = torch.searchsorted(before, chosen, right=True)
    rows = begin[unit] + chosen - (before - counts)[unit]
    return rows, (begin if starts is None else starts)[unit]


def regression_origins(units: Units, ends: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    """Rows for the linear path: those with a whole window, as forecasts have it, if they do.

    All rows where those are fewer than the coefficients of a step.
    """
    whole = full_origins(units.starts + units.window - 1, ends, horizon, units.starts)
    if len(whole[0]) >= units.values.shape[1] * units.window:
        return whole
    return full_origins(units.starts, ends, horizon)


def validation_origins(units: Units, split: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    """Rows whose targets all lie in the validation part, which begins at `split`."""
    return full_origins(split - 1, units.indptr[1:], horizon, units.starts)


def some_units(split: Tensor, ends: Tensor, most: int) -> Tensor:
    """Mask (U,) of units with rows from `split` to `ends`, of which there are about `most`.

    All of them where there are fewer rows.
    """
    rows = ends - split
    validated = torch.nonzero(rows > 0).flatten()
    count = max(1, len(validated) * most // int(rows.sum()))
    chosen = torch.zeros(len(ends), dtype=torch.bool)
    chosen[validated[subset(len(validated), count)]] = True
    return chosen
