"""Calibration of the learned interval widths by forecast errors of a series and of its panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from tsrnn.prior._forward import PROBABILITIES

PAST_ROWS, EVERY = 12, 2  # last rows that are forecast, and the distance of their origins
OWN_PRIOR = 10.0  # weight of the learned quantiles, in errors of a series
PANEL_PRIOR = 30.0  # the same in errors of a step of a panel
REFERENCE = 199  # quantiles that represent the learned distribution, at i / 200
CALIBRATED = 0.8  # probability of the interval whose width is calibrated
LOW, HIGH = (
    int(np.abs(PROBABILITIES - (0.5 + side * CALIBRATED / 2)).argmin()) for side in (-1, 1)
)
# Factor of the widths after fine-tuning to one series, whose errors are in-sample. With it 80
# percent intervals covered 73 to 84 percent in windows of monthly and hourly series.
IN_SAMPLE_WIDTH = 1.1
TINY = 1e-9  # tolerance for rounding in cumulated probabilities


@dataclass(frozen=True, eq=False)
class OriginForecasts:
    """Forecasts of h rows from O origins: the last row of each unit and some earlier rows.

    `log_evidence` is the largest log likelihood of a structural model up to each observed row.
    """

    units: np.ndarray  # (O,)
    rows: np.ndarray  # (O,)
    final: np.ndarray  # mask of the last rows of the units, (O,)
    median: np.ndarray  # (O, h)
    offsets: np.ndarray  # learned quantiles less the median, (O, 15, h)
    weights: np.ndarray  # (O, J, h)
    state: np.ndarray  # (O, D)
    log_evidence: list[np.ndarray]  # by unit


class Scores(NamedTuple):
    """Absolute errors of past forecasts, over half the width of the 80 percent intervals.

    Scores are by unit, origin and step, 0 where the row is not observed. A weight is the number of
    independent errors that a score counts as: errors of step k overlap, because origins are only
    `EVERY` rows apart.
    """

    values: np.ndarray  # (U, P, PAST_ROWS)
    weights: np.ndarray  # (U, P, PAST_ROWS)


def past_origins(values: np.ndarray, lengths: np.ndarray, fewest: int) -> np.ndarray:
    """Mask (U, T) of the origins: the last row of each unit, and every second one before it."""
    observed = np.isfinite(values)
    before = lengths[:, None] - 1 - np.arange(values.shape[1])  # distance to the last row
    origins = (before >= 0) & (before <= PAST_ROWS) & (before % EVERY == 0)
    return origins & observed & ((observed.cumsum(1) > fewest) | (before == 0))


def past_scores(values: np.ndarray, lengths: np.ndarray, forecasts: OriginForecasts) -> Scores:
    """Scores of forecasts against the rows that followed, of `values` (U, T)."""
    units, rows = forecasts.units, forecasts.rows
    steps = np.arange(1, PAST_ROWS + 1)
    ahead = rows[:, None] + steps
    actual = values[units[:, None], np.minimum(ahead, values.shape[1] - 1)]
    error = actual - forecasts.median[:, :PAST_ROWS]
    offsets = forecasts.offsets[..., :PAST_ROWS]
    half = np.where(error > 0, offsets[:, HIGH], -offsets[:, LOW])
    # The intervals of a unit have no width before its first change.
    highest, lowest = (side.accumulate(values, 1) for side in (np.fmax, np.fmin))
    moved = (highest > lowest)[units, rows]
    known = (ahead < lengths[units][:, None]) & (half > 0) & moved[:, None] & np.isfinite(actual)
    score = np.where(known, np.abs(error) / np.where(half > 0, half, 1.0), 0.0)
    weight = np.where(known, np.minimum(EVERY / steps, 1.0), 0.0)
    # Origins are ordered by their distance from the last row.
    place = (lengths[units] - 1 - rows) // EVERY
    shape = len(lengths), PAST_ROWS // EVERY + 1, PAST_ROWS
    result = Scores(np.zeros(shape), np.zeros(shape))
    result.values[units, place], result.weights[units, place] = score, weight
    return result


def own_factors(scores: Scores) -> np.ndarray:
    """Width factor (U,) of each unit, from its errors at all steps."""
    shape = len(scores.values), -1
    # Errors of all steps from one origin belong to one path and count as one error.
    return width_factors(
        scores.values.reshape(shape), scores.weights.reshape(shape) / PAST_ROWS, OWN_PRIOR
    )


def panel_factors(scores: Scores) -> np.ndarray:
    """Width factor (PAST_ROWS,) of each step, from the errors of all units."""
    n_units, _, steps = scores.values.shape
    values, weights = (part.transpose(2, 0, 1).reshape(steps, -1) for part in scores)
    # n units count as n - 1, because `own_factors` uses the errors of each unit again.
    weights = weights * (n_units - 1) / n_units
    # The prior grows with the panel: units share the shocks of their time.
    return width_factors(values, weights, PANEL_PRIOR + weights.sum(1, keepdims=True))


def width_factors(scores: np.ndarray, weights: np.ndarray, prior: float | np.ndarray) -> np.ndarray:
    """80 percent quantiles (N,) of weighted scores (N, M) and `prior` learned ones.

    The quantile is 1 if scores are distributed as learned.
    """
    probabilities = np.arange(1, REFERENCE + 1) / (REFERENCE + 1)
    learned = ndtri(0.5 + probabilities / 2) / ndtri(0.5 + CALIBRATED / 2)
    n = len(scores)
    scores = np.concatenate([scores, np.broadcast_to(learned, (n, REFERENCE))], 1)
    weights = np.concatenate([weights, prior / REFERENCE * np.ones((n, REFERENCE))], 1)
    order = np.argsort(scores, 1)
    share = np.take_along_axis(weights, order, 1).cumsum(1)
    reached = (share >= CALIBRATED * share[:, -1:] * (1 - TINY)).argmax(1)
    return np.take_along_axis(scores, order, 1)[np.arange(n), reached]


def step_factors(scores: np.ndarray, worth: float = 1.0, prior: float = OWN_PRIOR) -> np.ndarray:
    """Width factors (h,) by step, from errors at rolling origins.

    Step k is calibrated on the steps k - k/4 to k + k/4. `scores` (n, h) are absolute errors from n
    origins over half the width of the 80 percent intervals; NaN if missing. The errors of an origin
    count as `worth` independent errors, the given widths as `prior` errors.
    """
    steps = scores.shape[1]
    factors = np.ones(steps)
    for step in range(steps):
        reach = max(1, step // 4)
        near = scores[:, max(0, step - reach) : step + reach + 1]
        weights = worth * np.isfinite(near) / near.shape[1]
        of_step = np.nan_to_num(near).reshape(1, -1), weights.reshape(1, -1)
        factors[step] = width_factors(*of_step, prior)[0]
    return factors


def by_step(factors: np.ndarray, h: int) -> np.ndarray:
    """Width factors for h steps; steps beyond the last known one reuse it.

    Parameters
    ----------
    factors : ndarray of shape (n,)
    h : int

    Returns
    -------
    ndarray of shape (h,)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import by_step
    >>> by_step(np.array([1.0, 1.5]), 3).tolist()
    [1.0, 1.5, 1.5]
    """
    return factors[np.minimum(np.arange(h), len(factors) - 1)]
