"""Recurrences of intermittent demand as cells: the level of sizes, and how often demand occurs.

The equations are those of `Croston` and `TSB`. The rows since the last demand include the current
row. A missing row changes nothing and does not count in an interval.
"""

from __future__ import annotations

from functools import cache, partial

import torch
from torch import Tensor

from tsrnn.kernels import Cell, Fields

# Bound on probabilities in the likelihood only: a first interval of one row gives probability one,
# and a zero after it would have likelihood zero at all parameters.
CERTAIN = 1e-6
PARAMS = ("alpha", "beta", "first_size", "first_pace")


def occurrence_probability(method: str, pace: Tensor, beta: Tensor) -> Tensor:
    """Probability of demand in the next row, with the bias correction of the method."""
    if method == "tsb":
        return pace
    if method == "sba":  # Syntetos and Boylan (2005)
        return (1 - beta / 2) / pace
    if method == "sbj":  # Shale, Boylan and Johnston (2006)
        return (1 - beta / (2 - beta)) / pace
    return 1 / pace


def advance(method: str, states: Fields, y: Tensor, alpha: Tensor, beta: Tensor) -> Fields:
    """States after a row: size, interval and rows waited, or size and probability."""
    size, pace, *wait = states
    seen, demand = y == y, y > 0
    size = torch.where(demand, size + alpha * (y - size), size)
    if method == "tsb":
        occurs = torch.where(demand, 1.0 - pace, -pace)
        return size, torch.where(seen, pace + beta * occurs, pace)
    rows = torch.where(seen, wait[0] + 1, wait[0])
    pace = torch.where(demand, pace + beta * (rows - pace), pace)
    return size, pace, torch.where(demand, 0.0, rows)


@cache
def demand_cell(method: str) -> Cell:
    """Cell of one row: its states, then its expectation and likelihood.

    `occurrence` is the log-probability of demand or no demand. `misfit`, log z + y / z, is minus
    the gamma log-density of a size over its shape, up to terms without the level. The last
    parameters are the states before the first row, for their derivatives.
    """
    memory = ("size", "pace") if method == "tsb" else ("size", "pace", "wait")
    fields = (*memory, "level", "probability", "occurrence", "misfit")
    return Cell(
        f"demand_{method}", len(fields), 1, len(PARAMS), partial(_row, method),
        names=(fields, ("y",), PARAMS),
    )  # fmt: skip


def _row(method: str, state: Fields, inputs: Fields, params: Fields) -> Fields:
    states, y = state[: 2 if method == "tsb" else 3], inputs[0]
    alpha, beta = params[:2]
    size = states[0]
    probability = occurrence_probability(method, states[1], beta)
    seen, demand = y == y, y > 0
    inside = torch.where(probability > CERTAIN, probability, CERTAIN)
    inside = torch.where(inside < 1 - CERTAIN, inside, 1 - CERTAIN)
    occurrence = torch.where(demand, torch.log(inside), torch.log(1 - inside))
    misfit = torch.where(demand, torch.log(size) + y / size, 0.0)
    after = advance(method, states, y, alpha, beta)
    return (*after, size, probability, torch.where(seen, occurrence, 0.0), misfit)
