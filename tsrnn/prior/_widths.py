"""Widths of learned intervals, by the errors of a series and by those of its panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from tsrnn.prior._forward import PROBABILITIES

PAST_ROWS, EVERY = 12, 2  # rows before the last one that are forecast, from every second of them
OWN_PRIOR = 10.0  # errors that the learned quantiles count for beside those of a series
PANEL_PRIOR = 30.0  # the same beside those of a step of a panel
REFERENCE = 199  # quantiles that stand for the learned distribution, at i / 200
CALIBRATED = 0.8  # probability of the interval whose width the errors correct
LOW, HIGH = (
    int(np.abs(PROBABILITIES - (0.5 + side * CALIBRATED / 2)).argmin()) for side in (-1, 1)
)
# Factor of the widths of one series that the network was adapted to: its errors are of rows that
# are known. So intervals of 80 percent covered 73 to 84 in windows of months and hours.
IN_SAMPLE_WIDTH = 1.1
TINY = 1e-9  # of rounding in probabilities


@dataclass(frozen=True, eq=False)
class OriginForecasts:
    """Forecasts of h rows from O origins, the last row of each unit and some before it.

    Attributes
    ----------
    units, rows : integer ndarray of shape (O,)
    final : boolean ndarray of shape (O,)
        Origins that are the last row of their unit.
    median : ndarray of shape (O, h)
    offsets : ndarray of shape (O, 15, h)
        Learned quantiles less the median.
    weights : ndarray of shape (O, J, h)
    state : ndarray of shape (O, D)
    log_evidence : list of ndarray
        Of each unit, the largest log likelihood of a structural model up to each observed row.
    """

    units: np.ndarray
    rows: np.ndarray
    final: np.ndarray
    median: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray
    state: np.ndarray
    log_evidence: list[np.ndarray]


class Scores(NamedTuple):
    """Errors of past forecasts over half the width of their intervals of 80 percent.

    Attributes
    ----------
    values : ndarray of shape (U, P, PAST_ROWS)
        Of P origins of U units, by step; zero where the row has not come.
    weights : ndarray of shape (U, P, PAST_ROWS)
        Independent errors that each counts for: those of step k from origins `EVERY` rows apart
        share innovations.
    """

    values: np.ndarray
    weights: np.ndarray


def past_origins(values: np.ndarray, lengths: np.ndarray, fewest: int) -> np.ndarray:
    """Observed rows (U, T) to forecast from: the last of each unit, every second before."""
    observed = np.isfinite(values)
    before = lengths[:, None] - 1 - np.arange(values.shape[1])  # rows from each to the last one
    origins = (before >= 0) & (before <= PAST_ROWS) & (before % EVERY == 0)
    return origins & observed & ((observed.cumsum(1) > fewest) | (before == 0))


def past_scores(values: np.ndarray, lengths: np.ndarray, forecasts: OriginForecasts) -> Scores:
    """Scores of the forecasts of rows that came, of units `values` (U, T)."""
    units, rows = forecasts.units, forecasts.rows
    steps = np.arange(1, PAST_ROWS + 1)
    ahead = rows[:, None] + steps
    actual = values[units[:, None], np.minimum(ahead, values.shape[1] - 1)]
    error = actual - forecasts.median[:, :PAST_ROWS]
    offsets = forecasts.offsets[..., :PAST_ROWS]
    half = np.where(error > 0, offsets[:, HIGH], -offsets[:, LOW])
    # Before a unit has moved its intervals have no width to judge.
    highest, lowest = (side.accumulate(values, 1) for side in (np.fmax, np.fmin))
    moved = (highest > lowest)[units, rows]
    known = (ahead < lengths[units][:, None]) & (half > 0) & moved[:, None] & np.isfinite(actual)
    score = np.where(known, np.abs(error) / np.where(half > 0, half, 1.0), 0.0)
    weight = np.where(known, np.minimum(EVERY / steps, 1.0), 0.0)
    # An origin has the place in its unit that its distance from the last row gives.
    place = (lengths[units] - 1 - rows) // EVERY
    shape = len(lengths), PAST_ROWS // EVERY + 1, PAST_ROWS
    result = Scores(np.zeros(shape), np.zeros(shape))
    result.values[units, place], result.weights[units, place] = score, weight
    return result


def own_factors(scores: Scores) -> np.ndarray:
    """Factors (U,) of all widths of each unit, by its errors, those of all steps together."""
    shape = len(scores.values), -1
    # An origin with errors of all steps is worth one path, not PAST_ROWS errors.
    return width_factors(
        scores.values.reshape(shape), scores.weights.reshape(shape) / PAST_ROWS, OWN_PRIOR
    )


def panel_factors(scores: Scores) -> np.ndarray:
    """Factors (PAST_ROWS,) of the widths of each step, by the errors of all units together.

    A unit is not to be judged twice by its own errors: of n units they count for those of n - 1.
    However many they are, the learned quantiles count for as much: units share the shocks of
    their time.
    """
    n_units, _, steps = scores.values.shape
    values, weights = (part.transpose(2, 0, 1).reshape(steps, -1) for part in scores)
    weights = weights * (n_units - 1) / n_units
    return width_factors(values, weights, PANEL_PRIOR + weights.sum(1, keepdims=True))


def width_factors(scores: np.ndarray, weights: np.ndarray, prior: float | np.ndarray) -> np.ndarray:
    """80 percent quantiles (N,) of weighted scores (N, M), and of the learned ones as `prior` more.

    1 where the scores are distributed as learned.
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
    """Factors of the widths by step, by errors at rolling origins.

    A step is judged by its neighbours, too, a quarter of it on either side.

    Parameters
    ----------
    scores : ndarray of shape (n, h)
        Errors from n origins over half the width of their intervals of 80 percent; NaN where
        there is none.
    worth : float, default 1
        Independent errors that the errors of an origin count as.
    prior : float, default 10
        Errors that the widths as they are count for.

    Returns
    -------
    ndarray of shape (h,)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import step_factors
    >>> errors = np.abs(np.random.default_rng(0).standard_normal((4000, 2)))
    >>> step_factors(1.5 * errors / 1.2816).round(1).tolist()
    [1.5, 1.5]
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
