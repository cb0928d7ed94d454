"""Inputs that recurrent blocks are judged by."""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.forecasters._subset import subset
from tsrnn.forecasters._units import Units

SHARE_UNITS = 16
SHARE_ROWS = 512


def sample_inputs(units: Units) -> Tensor:
    """Network inputs of the last rows of some units, for judging blocks: (B, T, C + E).

    Of units that are at least as long as half of them are.
    """
    length = min(int(units.lengths.median()), SHARE_ROWS)
    ends = units.indptr[1:][units.lengths >= length]
    rows = ends[subset(len(ends), SHARE_UNITS), None] + torch.arange(-length, 0)
    return units.inputs(rows).to(torch.float32)
