r"""Recurrences of exponential smoothing as cells, a season a step.

With :math:`q_t` the level and trend ahead and the residual :math:`r_t = y_t - \mu_t`, models of
additive and of multiplicative errors have one recursion (Hyndman et al., 2008, chapter 2):

.. math::
    \mu_t &= q_t + s_{t-m} \text{ or } q_t s_{t-m}, \qquad
        q_t = l_{t-1} + \phi b_{t-1} \text{ or } l_{t-1} b_{t-1}^\phi \\
    l_t &= q_t + \alpha r_t / c_t, \qquad
        b_t = \phi b_{t-1} + \beta r_t / c_t \text{ or } b_{t-1}^\phi + \beta r_t / (c_t l_{t-1}) \\
    s_t &= s_{t-m} + \gamma r_t \text{ or } s_{t-m} + \gamma r_t / q_t

where :math:`c_t` is 1, or the season if it multiplies. A missing observation has residual zero.
With exogenous columns :math:`x_t'\beta` is added to the mean, not to :math:`q_t`: the recursion is
of :math:`y_t - x_t'\beta`, with errors relative to the whole mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from tsrnn.kernels import Cell, Fields
from tsrnn.linear.ets._specification import SMOOTHING, Recursion

Observe = Callable[[Tensor], Tensor]  # maps the mean of a row to its residual


def advance(
    recursion: Recursion, states: Fields, params: Fields, observe: Observe
) -> tuple[Fields, Tensor]:
    """States after a row, the season of the next row first, and the mean of the row."""
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
        # A division costs about ten products: one gives both shares.
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

    Memory: the states, the sum of log scales of relative errors, the means mu0, mu1, ... of the
    rows, and their errors e0, e1, ..., zero where missing. Inputs: the rows, NaN where missing,
    then the exogenous columns, row by row. Parameters: smoothing parameters, a switch that is 1 if
    errors are relative to the means, else 0, and the coefficients of the columns.
    """
    product, seasonal, period, columns = recursion
    states = (*(f"h{i}" for i in range(recursion.n_states)), "log_scale")
    of_rows = (f"{name}{i}" for name in ("mu", "e") for i in range(period))
    inputs = [f"y{i}" for i in range(period)]
    inputs += [f"x{i}_{j}" for i in range(period) for j in range(len(columns))]
    params = (*SMOOTHING, "relative", *(f"b{j}" for j in range(len(columns))))
    names = (*states, *of_rows), tuple(inputs), params
    label = f"ets_{'mul' if product else 'add'}_{seasonal}_{period}" + f"_{len(columns)}" * (
        len(columns) > 0
    )
    return Cell(
        label, len(names[0]), len(inputs), len(params), partial(_season, recursion), names=names
    )


def _season(recursion: Recursion, state: Fields, inputs: Fields, params: Fields) -> Fields:
    states, log_scale = state[: recursion.n_states], state[recursion.n_states]
    smoothing, relative, slopes = params[:4], params[4], params[5:]
    means, errors, product = [], [], torch.ones_like(log_scale)
    for i, y in enumerate(inputs[: recursion.period]):
        seen = y == y
        effect = _effect(inputs[recursion.period + i * len(slopes) :], slopes)
        residual = partial(_residual, seen, y if effect is None else y - effect)
        states, expected = advance(recursion, states, tuple(smoothing), residual)
        mean = expected if effect is None else expected + effect
        scale = 1 + relative * (mean - 1)
        # One logarithm a season; a mean below zero is refused by an infinite logarithm.
        product = product * torch.where(seen, torch.where(scale > 0, scale, 0.0), 1.0)
        means.append(mean)
        errors.append(residual(expected) * (1 / scale))
    return (*states, log_scale + torch.log(product), *means, *errors)


def _effect(inputs: Fields, slopes: Fields) -> Tensor | None:
    """Effect of the exogenous columns in a row; None without columns."""
    effect = None
    for x, slope in zip(inputs, slopes, strict=False):
        effect = slope * x if effect is None else effect + slope * x
    return effect


def _residual(seen: Tensor, y: Tensor, mean: Tensor) -> Tensor:
    return torch.where(seen, y - mean, 0.0)
