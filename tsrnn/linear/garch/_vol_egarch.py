"""Exponential GARCH of Nelson (1991)."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from tsrnn.linear.garch._volatility import Volatility

MEAN_SIZE = math.sqrt(2 / math.pi)  # of a standard normal number


def _shocks(e: Tensor, h: Tensor) -> tuple[Tensor, ...]:
    z = e / torch.sqrt(h)
    return torch.abs(z) - MEAN_SIZE, z


EGARCH = Volatility("egarch", ("alpha", "gamma"), _shocks, expected=(0.0, 0.0), log=True)
r""":math:`\log h_t = \omega + \sum_i \alpha_i (|z_{t-i}| - \sqrt{2/\pi}) + \gamma_i z_{t-i}
+ \sum_j \beta_j \log h_{t-j}` with :math:`z_t = e_t / \sqrt{h_t}`."""

EGARCH_TSP = replace(EGARCH, before=(-MEAN_SIZE, 0.0))
"""The same after residuals of zero, as TSP has it."""
