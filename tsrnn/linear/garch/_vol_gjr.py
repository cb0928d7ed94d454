"""GARCH with leverage, of Glosten, Jagannathan and Runkle (1993)."""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.linear.garch._vol_garch import GARCH
from tsrnn.linear.garch._volatility import Volatility


def _shocks(e: Tensor, h: Tensor) -> tuple[Tensor, ...]:
    return e * e, torch.where(e < 0, e * e, 0.0)


GJR = Volatility("gjr", ("alpha", "gamma"), _shocks, expected=(1.0, 0.5), without_leverage=GARCH)
r""":math:`h_t = \omega + \sum_i (\alpha_i + \gamma_i 1[e_{t-i} < 0]) e_{t-i}^2
+ \sum_j \beta_j h_{t-j}`."""
