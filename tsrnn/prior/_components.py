"""Level, trend, cycle and season of the forecasts of the prior network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from tsrnn.prior._structural import (
    DEGREES,
    LARGEST_LOG,
    MOST_AWAY,
    Models,
    group_by_observed_rows,
    scale_rows,
    structural_filter,
    structural_models,
)
from tsrnn.prior._trained import TrainedPrior, missing_at_end

STATES = ("level", "trend", "cycle", "season")
AT_ONCE = 2**22  # numbers of an array in memory, 32 MB


@dataclass(frozen=True, eq=False)
class Components:
    """Filtered components of U units, and of the h rows after them.

    A unit of n rows has its rows at 0 to n - 1 and its steps ahead at n to n + h - 1; later entries
    are NaN.

    Attributes
    ----------
    states, errors : ndarray of shape (U, T + h, 4)
        Level, trend, cycle and season, and their standard errors. The trend is the growth of the
        level in a row; level, cycle and season are additive.
    parts : ndarray of shape (U, h, 4)
        Additive parts of the forecast: the level after the last row, the cumulated trend, the
        cycle and the season.
    network : ndarray of shape (U, h)
        Forecast less the sum of these parts.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import structural_components, trained_prior
    >>> rows = np.array([[112.0, 118.0, 132.0, 129.0, 121.0, 135.0]])
    >>> components = structural_components(trained_prior(), rows, np.array([6]), 1, h=3)
    >>> components.states.shape, components.parts.shape
    ((1, 9, 4), (1, 3, 4))
    """

    states: np.ndarray
    errors: np.ndarray
    parts: np.ndarray
    network: np.ndarray


def structural_components(
    prior: TrainedPrior,
    values: np.ndarray,
    lengths: np.ndarray,
    season_length: int,
    h: int,
    earlier: np.ndarray | None = None,
) -> Components:
    r"""Split the forecasts of a prior network into the components of its structural models.

    The median forecast is a weighted sum of the forecasts of structural models, plus corrections
    by the network and nonlinear autoregressions. A structural model forecasts

    .. math:: \hat y_{j, t+k} = \ell_{jt} + b_{jt} \sum_{i \le k} \phi_j^i + \rho_j^k c_{jt}
        + s_{j, t+k}

    for the data or their logarithms. Components are weighted sums over the models. Seasons are
    centred: over a season effects have mean zero, or factors mean one. A model of logarithms has
    the level :math:`L = e^{\ell}`; its cycle adds :math:`L (e^c - 1)`, and its season
    :math:`L e^c (e^s - 1)`.

    Standard errors combine the filtered variance of the states, given the noise variance and the
    weights, with the spread of the models around the weighted mean. For models of logarithms they
    are first-order approximations. The weights are those of the forecast from the last row; rows
    up to it have the weights of its first step.

    Rows (U, T) are left-aligned: NaN where a row is missing, at least three observed, finite
    padding after the end. `earlier` (U, B) has rows before the first column, as in
    `TrainedPrior.forecast`. The season length is 1 for none, at most 60.
    """
    n_units, longest = values.shape
    states, errors = np.full((2, n_units, longest + h, len(STATES)), np.nan)
    parts = np.empty((n_units, h, len(STATES)))
    late = missing_at_end(values, lengths)
    for units, part in prior._parts(values, lengths - late, season_length, h + late.max()):
        steps = h + int(late[units].max())
        forecasts = prior._predict(part, season_length, steps)
        weights = forecasts.weights[forecasts.final][..., :steps]
        size = weights[0].size // steps * (part.values.shape[1] + steps) * len(STATES)
        for series, rows in group_by_observed_rows(part.values, part.lengths):
            counts = np.minimum(part.lengths[series], len(rows))
            n_chunks = min(len(series), -(-len(series) * size // AT_ONCE))
            for chunk in np.array_split(np.arange(len(series)), n_chunks):
                chosen = series[chunk]
                observed = rows[: counts[chunk].max()]
                state, error, added = weighted_components(
                    part.values[chosen[:, None], observed], observed - rows[0], counts[chunk],
                    season_length, weights[chosen],
                )  # fmt: skip
                for number, unit in enumerate(chosen):
                    place, scale = units[unit], part.unit[unit]
                    end = lengths[place] + h
                    states[place, rows[0] : end] = scale * state[number, : end - rows[0]]
                    errors[place, rows[0] : end] = scale * error[number, : end - rows[0]]
                    ahead = slice(late[place], late[place] + h)
                    parts[place] = scale * added[number, ahead]
    median = prior.forecast(values, lengths, season_length, h, earlier=earlier).median
    return Components(states, errors, parts, median - parts.sum(-1))


def weighted_components(
    values: np.ndarray,
    observed: np.ndarray,
    counts: np.ndarray,
    season_length: int,
    weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Components of S units with the same observed rows.

    `values` has the K observed rows (S, K), `observed` their indices from 0, and `counts` how many
    of them each unit has. `weights` (S, 2 J, h) are the models' by step after the last observed
    row. Returns states and errors, shape (S, T + h, 4), and parts, shape (S, h, 4).
    """
    h, series = weights.shape[-1], np.arange(len(values))[:, None]
    ends = observed[counts - 1] + 1
    rows, ahead = np.arange(observed[-1] + 1 + h), ends[:, None] + np.arange(h)
    scaled = LastRows.of(values, observed, counts, season_length)
    (level, slope, cycle, season), noise = filtered_states(
        scaled, observed, counts, season_length, len(rows)
    )
    step = np.clip(rows - ends[:, None], 0, h - 1)  # observed rows have the first step's weights
    weight = weights[series, :, step].reshape(level.shape)

    # Cumulated components on the scale of the data, whose differences are additive. Ahead they are
    # clipped like forecasts: an exploding model has no weight, but its values would overflow.
    sums = [scaled.restored(total) for total in (level, level + cycle, level + cycle + season)]
    origin = scaled.cut(np.repeat(sums[0][series, ends[:, None] - 1], h, 1))
    for total in sums:
        total[series, ahead] = scaled.cut(total[series, ahead])
    base = sums[0]
    components = [base, slope.copy(), sums[1] - base, sums[2] - sums[1]]
    components[1][:, :, 1] = base[:, :, 1] * np.expm1(slope[:, :, 1].clip(-1.0, 1.0))
    variance = state_variances(season_length, observed, counts, len(rows), h)
    variance = variance[..., None, :] * noise[:, None]
    variance[..., 1, :] *= base[:, :, 1] ** 2  # of a logarithm, to first order

    # The parts of a forecast start from the last level.
    totals = [origin, *(total[series, ahead] for total in sums)]
    added = [origin, *(later - before for before, later in pairwise(totals))]
    parts = np.stack([(weight[series, ahead] * part).sum((2, 3)) for part in added], -1)

    means = [(weight * component).sum((2, 3)) for component in components]
    squares = [
        (weight * (variance[number] + (component - mean[..., None, None]) ** 2)).sum((2, 3))
        for number, (component, mean) in enumerate(zip(components, means, strict=True))
    ]
    return np.stack(means, -1), np.sqrt(np.stack(squares, -1)), parts


@dataclass(frozen=True, eq=False)
class LastRows:
    """Scaled rows (S, 2, K) of S units, with the scales at their last rows.

    `beginning` is the value of the first row, or 1 if that is not positive; `change` is the mean
    absolute change up to the last row.
    """

    rows: np.ndarray
    first: np.ndarray
    beginning: np.ndarray
    last: np.ndarray
    change: np.ndarray
    positive: np.ndarray  # units with positive values only, (S,)
    first_squares: np.ndarray  # sum of squares of the noise prior, (S, 2)

    @classmethod
    def of(
        cls, values: np.ndarray, observed: np.ndarray, counts: np.ndarray, season_length: int
    ) -> LastRows:
        """Scale values (S, K) at observed rows (K,); each unit has the first `counts` rows."""
        scaled = scale_rows(values, observed, counts, season_length)
        series, last = np.arange(len(values)), counts - 1
        return cls(
            scaled.rows,
            values[:, 0],
            scaled.beginning,
            values[series, last],
            scaled.changes[series, last],
            scaled.positive[series, last],
            scaled.first_squares[series, :, last],
        )

    def restored(self, scaled: np.ndarray) -> np.ndarray:
        """Values (S, R, 2, J) in the units of the data, the last value without logarithms."""
        values = self.first[:, None, None, None] + scaled
        growth = np.exp(np.clip(scaled[:, :, 1], -LARGEST_LOG, LARGEST_LOG))
        levels = self.beginning[:, None, None] * growth
        values[:, :, 1] = np.where(self.positive[:, None, None], levels, self.last[:, None, None])
        return values

    def cut(self, values: np.ndarray) -> np.ndarray:
        """Clip values (S, h, 2, J) ahead to the distance `MOST_AWAY` from the last row."""
        steps = np.arange(1, values.shape[1] + 1)
        farthest = self.change[:, None] * (MOST_AWAY[0] + MOST_AWAY[1] * steps)
        low, high = self.last[:, None] - farthest, self.last[:, None] + farthest
        return np.clip(values, low[..., None, None], high[..., None, None])


def filtered_states(
    scaled: LastRows, observed: np.ndarray, counts: np.ndarray, season_length: int, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Filtered states (4, S, n_rows, 2, J) of every model, and noise variances (S, 2, J).

    The states are level, slope, cycle and season. Seasonal effects are centred, seasonal factors
    have mean one; the level takes up the difference.
    """
    kalman = structural_filter(season_length, observed)
    # Gains (T, d, J) without the padding of the last tile.
    gain = kalman.gain.transpose(1, 2, 0, 3).reshape(*kalman.gain.shape[1:3], -1)
    shape = len(counts), 2, len(kalman.damping)
    gain = gain[..., : shape[2]]
    state, squares = np.zeros((3 + season_length, *shape)), np.zeros(shape)
    states = np.empty((4, len(counts), n_rows, *shape[1:]))
    places = {row: k for k, row in enumerate(observed.tolist())}
    for t in range(n_rows):
        if t:
            state[1] *= kalman.damping
            state[0] += state[1]
            state[2] *= kalman.memory
        slot, k = 3 + t % season_length, places.get(t)
        if k is not None:
            live = (k < counts)[:, None, None]
            error = scaled.rows[:, :, None, k] - (state[0] + state[2] + state[slot])
            error = np.where(live, error, 0.0)
            state += gain[k][:, None, None] * error
            if k:  # the first row sets the level and has no error
                squares += (error * kalman.weight[k]) ** 2
        effects = state[3:]
        middle = effects.mean(0)
        # Factors with mean one leave the level of a whole season unchanged.
        middle[:, 1] = np.log(np.exp(effects[:, :, 1].clip(-LARGEST_LOG, LARGEST_LOG)).mean(0))
        states[:, :, t] = state[0] + middle, state[1], state[2], state[slot] - middle
    degrees = DEGREES + counts[:, None, None] - 1
    return states, (squares + scaled.first_squares[..., None]) / degrees


def state_variances(
    season_length: int, observed: np.ndarray, counts: np.ndarray, n_rows: int, h: int
) -> np.ndarray:
    """Variances (4, S, n_rows, J) of the states by row, in units of the noise variance."""
    filtered = filtered_variances(season_length, observed.tobytes())
    variances = np.zeros((4, len(counts), n_rows, filtered.shape[-1]))
    for count in np.unique(counts).tolist():
        end = observed[count - 1] + 1
        here = counts == count
        variances[:, here, :end] = filtered[:, None, :end]
        later = variances_ahead(season_length, observed, count, h)
        variances[:, here, end : end + h] = later[:, None]
    return variances


@lru_cache(maxsize=4)
def filtered_variances(season_length: int, observed: bytes) -> np.ndarray:
    """Variances (4, T, J) of level, slope, cycle and season after each row up to the last."""
    models, places = structural_models(season_length), set(np.frombuffer(observed, int).tolist())
    covariance = models.first_covariance
    variances = np.empty((4, max(places) + 1, len(models.noise)))
    for t in range(variances.shape[1]):
        if t:
            covariance = carried(models, covariance)
        if t in places:
            models.gains(np.array([t]), t, covariance)  # updates the covariance in place
        variances[:, t] = centred_variances(covariance, 3 + t % season_length)
    return variances


def variances_ahead(season_length: int, observed: np.ndarray, count: int, h: int) -> np.ndarray:
    """Variances (4, h, J) of the states of the h rows after `count` observed rows."""
    models, last = structural_models(season_length), int(observed[count - 1])
    covariance = models.first_covariance
    models.gains(observed[:count].astype(np.int64), 0, covariance)
    variances = np.empty((4, h, len(models.noise)))
    for k in range(h):
        covariance = carried(models, covariance)
        variances[:, k] = centred_variances(covariance, 3 + (last + 1 + k) % season_length)
    return variances


def carried(models: Models, covariance: np.ndarray) -> np.ndarray:
    """Covariances A C A' + Q (d, d, J) of the next row; A is the identity on seasonal effects."""
    damping, memory = models.damping, models.memory
    after = covariance.copy()
    after[0] += damping * covariance[1]
    after[1] *= damping
    after[2] *= memory
    after[:, 0] += damping * after[:, 1]
    after[:, 1] *= damping
    after[:, 2] *= memory
    diagonal = np.arange(len(after))
    after[diagonal, diagonal] += models.innovation
    return after


def centred_variances(covariance: np.ndarray, slot: int) -> np.ndarray:
    """Variances (4, J) of level, slope, cycle and centred season.

    The level includes the mean of the seasonal effects; for logarithms to first order.
    """
    middle = covariance[3:, 3:].mean((0, 1))
    level = covariance[0, 0] + 2 * covariance[0, 3:].mean(0) + middle
    season = covariance[slot, slot] - 2 * covariance[slot, 3:].mean(0) + middle
    variances = np.stack([level, covariance[1, 1], covariance[2, 2], season])
    return np.maximum(variances, 0.0)  # rounding may make a zero variance negative
