"""Rows that have everything after them that a forecast is to meet."""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.forecasters._subset import subset


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
