r"""Recurrences of exponential smoothing as cells, a season a step.

With :math:`q_t` the level and trend ahead and the residual :math:`r_t = y_t - \mu_t`, models of
additive and of multiplicative errors have one recursion (Hyndman et al., 2008, chapter 2):

.. math::
    \mu_t &= q_t + s_{t-m} \text{ or } q_t s_{t-m}, \qquad
        q_t = l_{t-1} + \phi b_{t-1} \text{ or } l_{t-1} b_{t-1}^\phi \\
    l_t &= q_t + \alpha r_t / c_t, \qquad
        b_t = \phi b_{t-1} + \beta r_t / c_t \text{ or } b_{t-1}^\phi + \beta r_t / (c_t l_{t-1}) \\
    s_t &= s_{t-m} + \gamma r_t \text{ or } s_{t-m} + \gamma r_t / q_t

where :math:`c_t` is 1, or the season where that multiplies. A missing observation has a residual
of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from tsrnn.kernels import Cell, Fields
from tsrnn.linear.ets._specification import SMOOTHING, Recursion

Observe = Callable[[Tensor], Tensor]  # a mean to the residual of its row


def advance(
    recursion: Recursion, states: Fields, params: Fields, observe: Observe
) -> tuple[Fields, Tensor]:
    """States after a row, that of the next row's season first, and the mean of the row."""
    level, trend, *season = states
    alpha, beta, gamma, phi = params
    if recursion.product:
        grown = torch.exp(phi * torch.log(trend))
        ahead = level * grown
    else:
        grown = phi * trend
        ahead = level + grown
    share_of_level: Tensor | float = 1.0
    share_of_season: Tensor | float = 1.0
    if recursion.seasonal == "none":
        mean = ahead
    elif recursion.seasonal == "add":
        mean = ahead + season[0]
    else:
        mean = ahead * season[0]
        # A division takes as long as some ten products: one gives both.
        inverse = 1 / mean
        share_of_level, share_of_season = ahead * inverse, season[0] * inverse
    residual = observe(mean)
    share = residual * share_of_level
    trend = grown + beta * (share / level if recursion.product else share)
    if season:
        season = [*season[1:], season[0] + gamma * residual * share_of_season]
    return (ahead + alpha * share, trend, *season), mean


@cache
def season_cell(recursion: Recursion) -> Cell:
    """Cell that moves on by a season of rows, or by one row without a season.

    Its memory is the states and the sum of the logarithms of what errors are relative to; then
    follow the means of the rows, mu0 and so on, and their errors, e0 and so on, which are zero
    where nothing is observed. Its inputs are the rows, NaN there. Its last parameter is 1 where
    errors are relative to the means, else 0.
    """
    product, seasonal, period = recursion
    states = (*(f"h{i}" for i in range(recursion.n_states)), "log_scale")
    of_rows = (f"{name}{i}" for name in ("mu", "e") for i in range(period))
    names = (*states, *of_rows), tuple(f"y{i}" for i in range(period)), (*SMOOTHING, "relative")
    label = f"ets_{'mul' if product else 'add'}_{seasonal}_{period}"
    return Cell(label, len(names[0]), period, 5, partial(_season, recursion), names=names)


def _season(recursion: Recursion, state: Fields, inputs: Fields, params: Fields) -> Fields:
    states, log_scale = state[: recursion.n_states], state[recursion.n_states]
    *smoothing, relative = params
    means, errors, product = [], [], torch.ones_like(log_scale)
    for y in inputs:
        seen = y == y
        residual = partial(_residual, seen, y)
        states, mean = advance(recursion, states, tuple(smoothing), residual)
        scale = 1 + relative * (mean - 1)
        # One logarithm a season. A mean below zero is none: the logarithm becomes infinite.
        product = product * torch.where(seen, torch.where(scale > 0, scale, 0.0), 1.0)
        means.append(mean)
        errors.append(residual(mean) * (1 / scale))
    return (*states, log_scale + torch.log(product), *means, *errors)


def _residual(seen: Tensor, y: Tensor, mean: Tensor) -> Tensor:
    return torch.where(seen, y - mean, 0.0)
