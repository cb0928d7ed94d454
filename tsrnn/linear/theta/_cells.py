"""Recurrences of the theta model as cells.

The model smooths the level of the seasonally adjusted series, and adds a share of the forecast of
the smoothed series by a line A + B t (Fiorucci et al., 2016), by the equations of `Theta`. The line
is fitted by least squares to all rows or, in the dynamic model, to earlier rows. A missing row
enters the level as its mean, and does not enter the line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor

from tsrnn.kernels import Cell, Fields

# Rows so far, the level, (1 - alpha)^rows; then for the line: number of rows in it, their mean time
# and mean value, the sum of squared deviations of their times, and the slope.
STATE = ("rows", "level", "weight", "count", "time", "mean", "square", "slope")
PARAMS = ("start", "alpha", "theta")  # the first is the level before the first row
GIVEN = 3  # first rows that the likelihood takes as known, as a line needs some
Value = Callable[[Tensor], Tensor]  # maps the mean of a row to its value


def advance(
    dynamic: bool, state: Fields, params: Fields, value: Value, seen: Tensor | float
) -> tuple[Fields, Tensor]:
    """State after a row, and the mean of the row; the line takes in the value if it is `seen`.

    Given the rows, means are linear in the level, and in mean and slope of the line jointly.
    """
    rows, level, weight, count, time, mean, square, slope = state
    alpha, theta = params
    left = weight * (1 - alpha)
    ahead = weight * (mean - slope * time) + (1 - left) / alpha * slope
    mu = level + (1 - 1 / theta) * ahead
    y = value(mu)
    level = level + alpha * (y - level)
    rows = rows + 1
    if dynamic:
        more = count + seen
        away, share = rows - time, seen / torch.where(more > 0, more, 1.0)
        cross = share * count * away
        wider = square + cross * away
        # A single row has no slope.
        slope = (slope * square + cross * (y - mean)) / torch.where(wider > 0, wider, 1.0)
        mean, time = mean + share * (y - mean), time + share * away
        count, square = more, wider
    return (rows, level, left, count, time, mean, square, slope), mu


@cache
def row_cell(dynamic: bool) -> Cell:
    """Cell of a row, which keeps its state if the second input is 0.

    Memory: the state, the mean mu, and the error with its second and fourth power, zero where a
    value is missing and in the first rows.
    """
    names = (*STATE, "mu", "error", "square_error", "fourth_power"), ("y", "inside"), PARAMS
    label = f"theta_row{'_dynamic' * dynamic}"
    return Cell(label, len(names[0]), 2, 3, partial(_row, dynamic), names=names)


def _row(dynamic: bool, state: Fields, inputs: Fields, params: Fields) -> Fields:
    (y, inside), before = inputs, state[: len(STATE)]
    observed = y == y

    def value(mu: Tensor) -> Tensor:
        return torch.where(observed, y, mu)

    seen = torch.where(observed, torch.ones_like(y), 0.0)
    after, mu = advance(dynamic, before, params[1:], value, seen)
    after = tuple(torch.where(inside > 0, a, b) for a, b in zip(after, before, strict=True))
    error = torch.where(before[0] >= GIVEN, torch.where(observed, y - mu, 0.0), 0.0)
    square = error * error
    return (*after, mu, error, square, square * square)


PRODUCTS = ("yy", "ly", "gy", "ll", "lg", "gg")


@cache
def product_cell() -> Cell:
    r"""Cell that sums the products in the sum of squared errors at a given alpha.

    Errors are :math:`y_t - s_{t-1} - \ell_0 l_t - (1 - 1 / \theta) g_t`: linear in the level
    before the first row and in the share of the line. Inputs are the row, NaN without a value, A
    and B before it, and a weight.
    """
    memory = ("smooth", "decay", "drift", "weight")
    names = (*memory, *PRODUCTS), ("y", "A", "B", "w"), ("alpha",)
    return Cell("theta_products", len(names[0]), 4, 1, _products, names=names)


def _products(state: Fields, inputs: Fields, params: Fields) -> Fields:
    (smooth, decay, drift, weight), (y, A, B, w), (alpha,) = state[:4], inputs, params
    left = weight * (1 - alpha)
    ahead = weight * A + (1 - left) / alpha * B
    observed = y == y
    rest = torch.where(observed, y - smooth, 0.0)
    line = drift + ahead
    new = (
        smooth + alpha * rest,
        torch.where(observed, decay - alpha * decay, decay),
        drift + alpha * torch.where(observed, -drift, ahead),
        left,
    )
    wy, wl = w * rest, w * decay
    return (*new, wy * rest, wl * rest, wy * line, wl * decay, wl * line, w * line * line)
