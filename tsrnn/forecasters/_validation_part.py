"""Size of the validation part, and the number of independent errors in it."""

from __future__ import annotations

import math

import numpy as np

from tsrnn.contract import effective_number, frequency_defaults
from tsrnn.data import Panel

FEWEST_ROWS = 8  # least length of a series
MANY_SERIES = 30  # number of series from which on a fifth of each is not needed


def usual_horizon(panel: Panel) -> int:
    """Default horizon of the frequency, at most a third of the shortest series."""
    return max(1, min(frequency_defaults(panel.layout).horizon, int(panel.lengths.min()) // 3))


def validation_size(lengths: np.ndarray, horizon: int) -> int:
    """Number of validation rows: twenty errors of each step, and a fifth of the rows if few series.

    At most a third of the shortest series that has three horizons.
    """
    long = lengths[lengths >= three_horizons(horizon)]
    shortest = int(long.min())
    few = len(long) < MANY_SERIES
    enough = max(math.ceil(0.2 * shortest) if few else 0, horizon + 20)
    return min(enough, max(shortest // 3, 1))


def three_horizons(horizon: int) -> int:
    """Least length of a series that trains and validates: three horizons."""
    return max(FEWEST_ROWS, 3 * horizon)


def least_rows(horizon: int, val_size: int) -> int:
    """Least length of a series that trains and validates, given the validation size."""
    return val_size + horizon + 2  # two rows to train from, with all their targets


def independent_horizons(lengths: np.ndarray, horizon: int) -> float:
    """Effective number of independent forecasts in the validation part of a series."""
    if (lengths < three_horizons(horizon)).all():
        return 0.0
    rows = validation_size(lengths, horizon) - horizon + 1
    return float(effective_number(np.array(float(max(rows, 0))), np.array(float(horizon))))
