"""Rows of a validation part: how many, and how many independent errors they give."""

from __future__ import annotations

import math

import numpy as np

from tsrnn.contract import effective_number, frequency_defaults
from tsrnn.data import Panel

FEWEST_ROWS = 8  # of any series
MANY_SERIES = 30  # together they give enough errors, so that less of each validates


def usual_horizon(panel: Panel) -> int:
    """Horizon by frequency, at most a third of the shortest series."""
    return max(1, min(frequency_defaults(panel.layout).horizon, int(panel.lengths.min()) // 3))


def validation_size(lengths: np.ndarray, horizon: int) -> int:
    """Enough for twenty forecast errors of every step, and a fifth of the data if series are few.

    At most a third of the shortest series of three horizons.
    """
    long = lengths[lengths >= three_horizons(horizon)]
    shortest = int(long.min())
    few = len(long) < MANY_SERIES
    enough = max(math.ceil(0.2 * shortest) if few else 0, horizon + 20)
    return min(enough, max(shortest // 3, 1))


def three_horizons(horizon: int) -> int:
    """Rows of a series that can train and validate: three horizons."""
    return max(FEWEST_ROWS, 3 * horizon)


def least_rows(horizon: int, val_size: int) -> int:
    """Least rows of a series that trains and validates."""
    return val_size + horizon + 2  # two rows to train from, with all their targets


def independent_horizons(lengths: np.ndarray, horizon: int) -> float:
    """Independent forecasts of a horizon that those of all validation rows of a series count as."""
    if (lengths < three_horizons(horizon)).all():
        return 0.0
    rows = validation_size(lengths, horizon) - horizon + 1
    return float(effective_number(np.array(float(max(rows, 0))), np.array(float(horizon))))
