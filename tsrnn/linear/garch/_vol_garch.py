"""GARCH of Bollerslev (1986)."""

from __future__ import annotations

from torch import Tensor

from tsrnn.linear.garch._volatility import Volatility


def _shocks(e: Tensor, h: Tensor) -> tuple[Tensor, ...]:
    return (e * e,)


GARCH = Volatility("garch", ("alpha",), _shocks, expected=(1.0,), even=True)
r""":math:`h_t = \omega + \sum_i \alpha_i e_{t-i}^2 + \sum_j \beta_j h_{t-j}`."""
