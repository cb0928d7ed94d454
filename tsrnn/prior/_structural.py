"""Structural models with fixed variances, filtered side by side: the recurrences of the prior."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from tsrnn.data import log_ratios

VAGUE = 1e4  # variance of the first level over that of the noise
DEGREES = 1.0  # of freedom of the variance before the first row: it hardly counts
FIRST_SCALE = 0.1  # of the noise before the first row, in mean absolute changes of the series
LEAST_CHANGE = 1e-13  # mean absolute change over the largest value: below it are rounding errors
AT_ONCE = 2**19  # numbers of the states of series filtered together: they stay in the cache
TEMPERED = 0.5  # power of the likelihoods in the weights that the network sees
MOST_AWAY = (10.0, 5.0)  # a forecast is cut so many mean changes away, and so many more a step
MOST_SCORE = 100.0  # standard errors the network sees: the first change of a constant is more
LARGEST_LOG = 60.0  # of the change of a logarithm that is forecast
# Mean over the mean absolute change, as the network sees it. Of the series of the training fewer
# than one in 200 has more: beyond, the network extrapolates, to widths that grow with the level.
LARGEST_LEVEL = 1000.0
TINY = 1e-100  # of which the square is far from zero


class Trend(NamedTuple):
    """Level, slope and stationary part of a structural model, variances over that of the noise.

    Attributes
    ----------
    name : str
    noise : float
        Variance of the observation, 1, or little where the level itself is observed.
    level, slope : float
        Variances of the changes of the level and of its slope in a row.
    damping : float
        Share of the slope that is left after a row.
    growth : float
        Variance of the first slope: 0 for no trend, little for one that is shrunk.
    memory, cycle : float
        Coefficient of an autoregression of order one around the level, and the variance of its
        innovations.

    Examples
    --------
    >>> from tsrnn.prior import TRENDS
    >>> walk = TRENDS[3]
    >>> walk.name, walk.noise, walk.level
    ('random walk', 0.01, 1.0)
    """

    name: str
    noise: float = 1.0
    level: float = 0.0
    slope: float = 0.0
    damping: float = 1.0
    growth: float = 0.0
    memory: float = 0.0
    cycle: float = 0.0


class Season(NamedTuple):
    """Season of a structural model, variances over that of the noise.

    Attributes
    ----------
    name : str
    size : float
        Variance of the first effects.
    change : float
        Variance by which the effects change in a season.

    Examples
    --------
    >>> from tsrnn.prior import SEASONS
    >>> SEASONS[1]
    Season(name='small season', size=3.0, change=0.0)
    """

    name: str
    size: float
    change: float


def smoothing(alpha: float) -> float:
    """Variance of the changes of a level that exponential smoothing with `alpha` is optimal for."""
    return alpha**2 / (1 - alpha)


EXACT = 0.01  # variance of the noise of models in which the level is what is observed

TRENDS = (
    Trend("mean"),
    Trend("level 0.1", level=smoothing(0.1)),
    Trend("level 0.3", level=smoothing(0.3)),
    Trend("random walk", EXACT, level=1.0),
    Trend("level 0.1, shrunk drift", level=smoothing(0.1), growth=0.05),
    Trend("level 0.6, shrunk drift", level=smoothing(0.6), growth=0.05),
    Trend("random walk, shrunk drift", EXACT, level=1.0, growth=0.05),
    Trend("level 0.1, drift", level=smoothing(0.1), growth=1.0),
    Trend("level 0.3, drift", level=smoothing(0.3), growth=1.0),
    Trend("level 0.6, drift", level=smoothing(0.6), growth=1.0),
    Trend("random walk, drift", EXACT, level=1.0, growth=1.0),
    Trend("line", growth=1.0),
    Trend("level 0.3, moving slope", level=smoothing(0.3), slope=0.01, growth=1.0),
    Trend("level 0.6, moving slope", level=smoothing(0.6), slope=0.05, growth=1.0),
    Trend("level 0.1, moving slope", level=smoothing(0.1), slope=0.001, growth=1.0),
    Trend("walking level and slope", EXACT, level=0.3, slope=0.05, growth=1.0),
    Trend("walking slope", EXACT, level=0.1, slope=1.0, growth=1.0),
    Trend("level 0.6, damped slope 0.9", level=smoothing(0.6), slope=0.1, damping=0.9, growth=1.0),
    Trend("level 0.6, damped slope 0.8", level=smoothing(0.6), slope=0.3, damping=0.8, growth=1.0),
    Trend("random walk, damped slope 0.6", EXACT, level=0.3, slope=0.3, damping=0.6, growth=1.0),
    Trend("AR(1) 0.5", 0.05, memory=0.5, cycle=1.0),
    Trend("AR(1) 0.8", 0.05, memory=0.8, cycle=1.0),
    Trend("AR(1) 0.95", 0.05, memory=0.95, cycle=1.0),
    Trend("AR(1) 0.8, shrunk drift", 0.05, growth=0.05, memory=0.8, cycle=1.0),
    Trend("AR(1) 0.3", 0.05, memory=0.3, cycle=1.0),
    Trend("AR(1) -0.3", 0.05, memory=-0.3, cycle=1.0),
    Trend("AR(1) 0.5, moving mean", 0.05, level=0.01, memory=0.5, cycle=1.0),
    Trend("AR(1) 0.8 and noise", memory=0.8, cycle=0.3),
    Trend("AR(1) 0.95 and noise", memory=0.95, cycle=0.1),
)
SEASONS = (
    Season("no season", 0.0, 0.0),
    Season("small season", 3.0, 0.0),
    Season("season", 30.0, 0.03),
    Season("moving season", 30.0, 0.3),
    Season("large season", 300.0, 0.03),
    Season("huge season", 3000.0, 0.3),
)
# Models whose prediction errors the network sees, of different speeds, and the seasons of them.
SEEN_TRENDS = tuple(
    [trend.name for trend in TRENDS].index(name)
    for name in (
        "level 0.1", "random walk", "level 0.3, drift", "level 0.6, drift", "random walk, drift",
        "walking slope", "level 0.6, damped slope 0.9", "AR(1) 0.95",
        "AR(1) 0.5",
    )
)  # fmt: skip
SEEN_SEASONS = (0, 4)
SCALES = ("data", "logarithms")
N_FEATURES = (
    len(SCALES) * len(SEEN_TRENDS) * len(SEEN_SEASONS)
    + len(SCALES) + len(TRENDS) + len(SEASONS) + 9
)  # fmt: skip


class Evidence(NamedTuple):
    """Forecasts and likelihoods of the structural models at O rows of S series of one season.

    J models are ordered by scale, trend and season. Forecasts are deviations from the row they
    are made at, over the mean absolute change up to it.

    Attributes
    ----------
    features : ndarray of shape (S, T, N_FEATURES)
        Inputs of the network at the observed rows of each series, from the first column on; of a
        row and those before it alone.
    forecasts, deviations : ndarray of shape (O, J, h)
        Means and standard deviations of the predictive distributions.
    log_likelihood : ndarray of shape (O, J)
        Less the largest of the row.
    last, scale : ndarray of shape (O,)
        Value of each row, and the mean absolute change up to it.
    season_scale : ndarray of shape (O,)
        Mean absolute change a season apart up to the row, as MASE has it.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import structural_evidence
    >>> rows = np.array([[3.0, 5.0, 4.0, 6.0]])
    >>> evidence = structural_evidence(rows, np.array([4]), rows == 6.0, season_length=1, h=2)
    >>> evidence.last.tolist(), evidence.scale.round(2).tolist()
    ([6.0], [1.67])
    """

    features: np.ndarray
    forecasts: np.ndarray
    deviations: np.ndarray
    log_likelihood: np.ndarray
    last: np.ndarray
    scale: np.ndarray
    season_scale: np.ndarray


class Models(NamedTuple):
    """State-space form of all models of one season length: arrays of shape (J,) or as said.

    Attributes
    ----------
    noise, damping, memory : ndarray of shape (J,)
    innovation : ndarray of shape (J, d)
        Variances of the changes of the state: level, slope, autoregression, effects of a season.
    first : ndarray of shape (J, d)
        Variances of the first state.
    n_seasons : int
        Seasons of each trend: one where there is no season.
    """

    noise: np.ndarray
    damping: np.ndarray
    memory: np.ndarray
    innovation: np.ndarray
    first: np.ndarray
    n_seasons: int


@lru_cache(maxsize=16)
def structural_models(season_length: int) -> Models:
    """Models of all trends with all seasons, by trend, then by season."""
    seasons = SEASONS if season_length > 1 else SEASONS[:1]
    pairs = [(trend, season) for trend in TRENDS for season in seasons]
    state = 3 + season_length
    innovation, first = np.zeros((len(pairs), state)), np.zeros((len(pairs), state))
    for row, (trend, season) in enumerate(pairs):
        innovation[row, :3] = trend.level, trend.slope, trend.cycle
        innovation[row, 3:] = season.change / season_length
        first[row, :3] = VAGUE, trend.growth, trend.cycle / (1 - trend.memory**2)
        first[row, 3:] = season.size
    noise, damping, memory = (
        np.array([getattr(trend, name) for trend, _ in pairs])
        for name in ("noise", "damping", "memory")
    )
    return Models(noise, damping, memory, innovation, first, len(seasons))


SNAPSHOT = 48  # observed rows between covariances that are kept


class StructuralFilter(NamedTuple):
    """Kalman filter of all structural models, as far as it does not depend on the values.

    A missing row moves the state and says nothing, so that tables have observed rows alone.

    Attributes
    ----------
    rows : integer ndarray of shape (T,)
        Numbers of the observed rows, from 0 on.
    gain : ndarray of shape (T, d, J)
        Changes of the state by a unit of the prediction error of each row.
    variance : ndarray of shape (T, J)
        Variances of the prediction errors, over that of the noise.
    damping, memory : ndarray of shape (J,)
    """

    rows: np.ndarray
    gain: np.ndarray
    variance: np.ndarray
    damping: np.ndarray
    memory: np.ndarray

    def of(self, models: np.ndarray) -> StructuralFilter:
        """Filter of some of the models."""
        return StructuralFilter(
            self.rows,
            np.ascontiguousarray(self.gain[..., models]),
            self.variance[:, models],
            self.damping[models],
            self.memory[models],
        )

    def carry(self, state: np.ndarray, k: int) -> None:
        """Move states (d, ..., J) from the observed row k - 1 to the next one, in place."""
        for _ in range(self.rows[k] - self.rows[k - 1] if k else 0):
            slope = self.damping * state[1]
            state[0] += slope
            state[1] = slope
            state[2] *= self.memory

    def effect(self, k: int) -> int:
        """Place in the state of the season's effect at the observed row k."""
        return int(3 + self.rows[k] % (self.gain.shape[1] - 3))

    def innovations(self, rows: np.ndarray) -> np.ndarray:
        """Prediction errors of L series under every model.

        Parameters
        ----------
        rows : ndarray of shape (L, T)
            Values at the observed rows less the first, which the first level is near.

        Returns
        -------
        ndarray of shape (T, L, J)
        """
        n_lanes, n_rows = rows.shape
        _, size, n_models = self.gain.shape
        state = np.zeros((size, n_lanes, n_models))
        innovations = np.empty((n_rows, n_lanes, n_models))
        step = np.empty_like(state)
        for k in range(n_rows):
            self.carry(state, k)
            error = rows[:, k, None] - (state[0] + state[2] + state[self.effect(k)])
            innovations[k] = error
            state += np.multiply(self.gain[k][:, None], error, out=step)
        return innovations


@lru_cache(maxsize=4)
def _kept_filter(season_length: int, rows: bytes) -> tuple[StructuralFilter, list[np.ndarray]]:
    """Filter of some observed rows, and covariances after every `SNAPSHOT`-th of them."""
    models, numbers = structural_models(season_length), np.frombuffer(rows, int)
    n_models, size = models.first.shape
    covariance = models.first[:, :, None] * np.eye(size)
    gain = np.empty((len(numbers), size, n_models))
    variance = np.empty((len(numbers), n_models))
    snapshots = []
    for k, row in enumerate(numbers.tolist()):
        row_gain, variance[k], covariance = _gain(
            models, _carry(models, covariance, numbers, k), 3 + row % season_length
        )
        gain[k] = row_gain.T
        if k % SNAPSHOT == 0:
            snapshots.append(covariance)
    return StructuralFilter(numbers, gain, variance, models.damping, models.memory), snapshots


def _rounded(rows: np.ndarray) -> bytes:
    """Numbers of observed rows as a key; without gaps, of a round number of rows."""
    n_rows = len(rows)
    if n_rows == rows[-1] + 1:  # tables of longer series serve shorter ones
        rows = np.arange(-(-n_rows // SNAPSHOT) * SNAPSHOT)
    return rows.astype(int).tobytes()


def structural_filter(season_length: int, rows: np.ndarray) -> StructuralFilter:
    """Filter of observed rows (T,), numbered from 0 on; without gaps, of at least these."""
    return _kept_filter(season_length, _rounded(rows))[0]


def covariances(season_length: int, rows: np.ndarray, wanted: np.ndarray) -> dict[int, np.ndarray]:
    """Covariances (J, d, d) of the states after some of the observed rows, by their place."""
    models = structural_models(season_length)
    kalman, snapshots = _kept_filter(season_length, _rounded(rows))
    result: dict[int, np.ndarray] = {}
    k, covariance = 0, snapshots[0]
    for place in np.unique(wanted).tolist():
        # From the last row computed, or from a covariance that was kept, whichever is nearer.
        if k < place // SNAPSHOT * SNAPSHOT:
            k, covariance = place // SNAPSHOT * SNAPSHOT, snapshots[place // SNAPSHOT]
        while k < place:
            k += 1
            carried = _carry(models, covariance, kalman.rows, k)
            _, _, covariance = _gain(models, carried, kalman.effect(k))
        result[place] = covariance
    return result


def structural_evidence(
    values: np.ndarray, lengths: np.ndarray, origins: np.ndarray, season_length: int, h: int
) -> Evidence:
    """Filter series by all models, on the scale of the data and on that of logarithms.

    Parameters
    ----------
    values : ndarray of shape (S, T)
        Rows of each series from the first column on; NaN where a row is missing, finite after
        their ends.
    lengths : integer ndarray of shape (S,)
    origins : boolean ndarray of shape (S, T)
        Observed rows to forecast from.
    season_length : int
        1 for none.
    h : int
        Steps ahead.

    Returns
    -------
    Evidence

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import structural_evidence
    >>> rows = np.array([[3.0, 5.0, 4.0, 6.0]])
    >>> evidence = structural_evidence(rows, np.array([4]), rows == 6.0, season_length=1, h=2)
    >>> evidence.forecasts.shape  # of 29 models on two scales
    (1, 58, 2)
    """
    models = structural_models(season_length)
    results: list[Evidence] = []
    order: list[np.ndarray] = []
    for series, rows in _rows_observed(values, lengths):
        counts = np.minimum(lengths[series], len(rows))
        n_parts = -(-len(series) * 2 * models.first.size // AT_ONCE)
        for part in np.array_split(np.arange(len(series)), n_parts):
            longest = rows[: counts[part].max()]
            place = series[part][:, None], longest
            numbers = longest - rows[0]
            results.append(
                _evidence(models, values[place], numbers, counts[part], origins[place], h)
            )
            order.append(series[part])
    # Padded as `values` are, so that features have the row numbers of all series.
    features = np.zeros((*values.shape, N_FEATURES), np.float32)
    for part, result in zip(order, results, strict=True):
        features[part, : result.features.shape[1]] = result.features
    owner = np.concatenate([np.repeat(part, origins[part].sum(1)) for part in order])
    sequence = np.argsort(owner, kind="stable")
    others = (np.concatenate([result[k] for result in results])[sequence] for k in range(1, 7))
    return Evidence(features, *others)


def _rows_observed(values: np.ndarray, lengths: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Series with the same observed rows, and these rows: they share one filter."""
    missing = np.isnan(values)
    complete = ~missing.any(1)
    groups = [(np.flatnonzero(complete), np.arange(values.shape[1]))] if complete.any() else []
    patterns: dict[bytes, list[int]] = {}
    for number in np.flatnonzero(~complete).tolist():
        rows = np.flatnonzero(~missing[number, : lengths[number]])
        patterns.setdefault(rows.tobytes(), []).append(number)
    return groups + [
        (np.array(series), np.frombuffer(rows, int)) for rows, series in patterns.items()
    ]


def _evidence(
    models: Models,
    values: np.ndarray,
    rows: np.ndarray,
    lengths: np.ndarray,
    origins: np.ndarray,
    h: int,
) -> Evidence:
    """Evidence of series whose states fit into the cache, of values at observed `rows` (T,)."""
    n_series, longest = values.shape
    n_models, season_length = len(models.noise), models.first.shape[1] - 3
    alive = np.arange(longest) < lengths[:, None]
    # Up to each row: after a value that is not positive the logarithms have no weight.
    positive = np.minimum.accumulate(np.where(alive, values, 1.0), 1) > 0
    # Both scales less their first row: a large level would cost the changes their digits.
    beginning = np.where(values[:, :1] > 0, values[:, :1], 1.0)
    centred = values - values[:, :1]
    logarithms = log_ratios(np.where(alive & positive, values, beginning), beginning)
    scaled = np.stack([centred, logarithms], 1)[..., None, :]  # (S, 2, 1, T)
    rounding = LEAST_CHANGE * np.maximum.accumulate(np.abs(values), 1) + TINY
    changes, season_changes = running_changes(centred, rows, season_length, rounding)
    # Prior of the noise: a small part of the mean absolute change so far, of each scale.
    of_logarithms = running_changes(logarithms, rows, 1, np.full_like(values, LEAST_CHANGE))[0]
    first_squares = DEGREES * (FIRST_SCALE * np.stack([changes, of_logarithms], 1)) ** 2

    kalman = structural_filter(season_length, rows)
    at_origins = covariances(season_length, rows, np.flatnonzero(origins.any(0)))
    state = np.zeros((3 + season_length, n_series, 2, n_models))
    state[0] = scaled[..., 0]  # as if the level were known to be near the first row
    step = np.empty_like(state)
    likelihood, squares = np.zeros((2, n_series, 2, n_models))
    features = np.zeros((n_series, longest, N_FEATURES), np.float32)
    collected: list[tuple[np.ndarray, ...]] = []
    for k in range(longest):
        kalman.carry(state, k)
        variance, live = kalman.variance[k], alive[:, k, None, None]
        error = scaled[..., k] - (state[0] + state[2] + state[kalman.effect(k)])
        error = np.where(live, error, 0.0)
        state += np.multiply(kalman.gain[k][:, None, None], error, out=step)
        if k > 1:  # the first two rows set level and noise
            square = variance * (squares + first_squares[..., k - 1, None])
            relative, degrees = error**2 / square, DEGREES + k - 1
            density = _log_density(relative, square, degrees)
            # A density of logarithms, times the Jacobian 1 / y, is one of the data.
            density[:, 1] -= scaled[:, 1, :, k] + np.log(beginning)
            likelihood += np.where(live, density, 0.0)
            score = np.minimum(np.sqrt(relative * degrees), MOST_SCORE) * np.sign(error)
            features[:, k, :_N_ERRORS] = _seen(score, models)
        if k:
            squares += error**2 / variance
        of_data_alone = np.where(positive[:, k, None, None], 0.0, [[[0.0], [-np.inf]]])
        ranked = likelihood + of_data_alone
        ranked = ranked - ranked.max((1, 2), keepdims=True)
        features[:, k, _N_ERRORS : _N_ERRORS + _N_SHARES] = _shares(ranked, models)
        here = np.flatnonzero(origins[:, k])
        if len(here):
            t = int(rows[k])
            forecast = _forecasts(models, state[:, here], t, h) - scaled[here, :, :, k, None]
            noise = (squares[here] + first_squares[here, :, k, None])[..., None] / (DEGREES + k)
            spread = np.sqrt(noise * _variances(models, at_origins[k], t, h))
            last, change = values[here, k], changes[here, k]
            forecast, spread = _on_one_scale(forecast, spread, positive[here, k], last, change)
            collected.append(
                (here, np.full(len(here), k), forecast, spread,
                 ranked[here].reshape(len(here), -1), last, change, season_changes[here, k])
            )  # fmt: skip
    features[..., _N_ERRORS + _N_SHARES :] = _circumstances(
        values, season_length, positive, changes, season_changes
    )
    joined = [np.concatenate(part) for part in zip(*collected, strict=True)]
    order = np.lexsort((joined[1], joined[0]))  # by series, then by row
    return Evidence(features, *(part[order] for part in joined[2:]))


_N_ERRORS = len(SCALES) * len(SEEN_TRENDS) * len(SEEN_SEASONS)
_N_SHARES = len(SCALES) + len(TRENDS) + len(SEASONS)


def running_changes(
    values: np.ndarray, rows: np.ndarray, season_length: int, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean absolute changes (S, T) up to each observed row, of neighbours and a season apart.

    Neighbours are observed rows that follow each other, missing ones between them or not. Where
    less than two changes a season apart are known, both are the changes of neighbours. At least
    `floor` (S, T), the rounding errors.
    """
    n_series, n_rows = values.shape

    def mean_change(before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means over the rows that have a row `before` (T,), and how many these are."""
        has = before >= 0
        changes = np.zeros((n_series, n_rows))
        changes[:, has] = np.abs(values[:, has] - values[:, before[has]])
        return changes.cumsum(1) / np.maximum(has.cumsum(), 1), has.cumsum()

    neighbours = np.maximum(mean_change(np.arange(n_rows) - 1)[0], floor)
    if season_length == 1 or rows[-1] < season_length:
        return neighbours, neighbours
    before = np.searchsorted(rows, rows - season_length)
    before = np.where(rows[before] == rows - season_length, before, -1)
    seasonal, count = mean_change(before)
    enough = (count > 2) & (seasonal > floor)
    return neighbours, np.where(enough, seasonal, neighbours)


def _carry(models: Models, covariance: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """Covariances A C A' + Q of the prediction x_t = A x_{t-1} + innovations.

    From the observed row k - 1 to the next; A changes level, slope and autoregression alone.
    """
    damping, memory = models.damping[:, None], models.memory[:, None]
    diagonal = np.arange(covariance.shape[-1])
    for _ in range(rows[k] - rows[k - 1] if k else 0):
        carried = covariance.copy()
        carried[:, 0] += damping * covariance[:, 1]
        carried[:, 1] *= damping
        carried[:, 2] *= memory
        carried[:, :, 0] += damping * carried[:, :, 1]
        carried[:, :, 1] *= damping
        carried[:, :, 2] *= memory
        carried[:, diagonal, diagonal] += models.innovation
        covariance = carried
    return covariance


def _gain(
    models: Models, covariance: np.ndarray, effect: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gain C z / f (J, d), f = z' C z + noise (J,), and the covariances after the row is known.

    z picks the level, the autoregression and one effect of the season.
    """
    loading = covariance[:, 0] + covariance[:, 2] + covariance[:, effect]
    variance = loading[:, 0] + loading[:, 2] + loading[:, effect] + models.noise
    gain = loading / variance[:, None]
    return gain, variance, covariance - gain[:, :, None] * loading[:, None]


def _log_density(relative: np.ndarray, square: np.ndarray, degrees: float) -> np.ndarray:
    """Log density of Student's t, where `relative` is the squared error over `square`.

    `square` is the squared scale times the degrees of freedom.
    """
    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2)
    return constant - 0.5 * np.log(np.pi * square) - 0.5 * (degrees + 1) * np.log1p(relative)


def _loadings(models: Models, h: int) -> tuple[np.ndarray, np.ndarray]:
    """Loadings (J, h) of slope and autoregression on the next h rows."""
    steps = np.arange(1, h + 1)
    slope = np.cumsum(models.damping[:, None] ** steps, 1)
    return slope, models.memory[:, None] ** steps


def _forecasts(models: Models, state: np.ndarray, t: int, h: int) -> np.ndarray:
    """Means (O, 2, J, h) of the rows after t."""
    slope, memory = _loadings(models, h)
    effects = 3 + (t + np.arange(1, h + 1)) % (len(state) - 3)
    season = np.moveaxis(state[effects], 0, -1)
    level, change, cycle = state[:3, ..., None]
    return level + slope * change + memory * cycle + season


def _variances(models: Models, covariance: np.ndarray, t: int, h: int) -> np.ndarray:
    """Variances (J, h) of the errors of `_forecasts`, over that of the noise."""
    slope, memory = _loadings(models, h)
    season_length = covariance.shape[-1] - 3
    loading = np.zeros((len(models.noise), h, covariance.shape[-1]))
    loading[..., 0], loading[..., 1], loading[..., 2] = 1.0, slope, memory
    steps = np.arange(h)
    loading[:, steps, 3 + (t + 1 + steps) % season_length] = 1.0
    of_state = ((loading @ covariance) * loading).sum(-1)
    # An innovation n rows before the forecast has passed n transitions.
    passed = np.concatenate([np.zeros((len(slope), 1)), slope[:, :-1]], 1)
    level, change, cycle = models.innovation[:, :3].T[..., None]
    season = models.innovation[:, 3:4]
    arriving = level + change * passed**2 + cycle * (models.memory[:, None] ** steps) ** 2 + season
    return of_state + arriving.cumsum(1) + models.noise[:, None]


def _on_one_scale(
    forecast: np.ndarray, spread: np.ndarray, positive: np.ndarray, last: np.ndarray,
    change: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Forecasts and deviations (O, 2 J, h) of both scales on that of `Evidence`.

    `forecast` is the change from the last row, of the data and of their logarithms.
    """
    h = forecast.shape[-1]
    # The median of a lognormal distribution, and its deviation to first order.
    growth = np.expm1(np.clip(forecast[:, 1], -LARGEST_LOG, LARGEST_LOG))
    known, level = positive[:, None, None], last[:, None, None]
    wide = level * (1 + growth) * np.minimum(spread[:, 1], 2.0)
    changes = np.stack([forecast[:, 0], np.where(known, level * growth, 0.0)], 1)
    deviations = np.stack([spread[:, 0], np.where(known, wide, 0.0)], 1)
    shape = len(last), -1, h
    unit = change[:, None, None]
    farthest = MOST_AWAY[0] + MOST_AWAY[1] * np.arange(1, h + 1)
    return (
        np.clip(changes.reshape(shape) / unit, -farthest, farthest),
        np.clip(deviations.reshape(shape) / unit, 1e-3, 200.0),
    )


def _seen(score: np.ndarray, models: Models) -> np.ndarray:
    """Prediction errors (S, _N_ERRORS) of some models, their logarithm where large."""
    n_seasons = models.n_seasons
    by_model = score.reshape(*score.shape[:2], len(TRENDS), n_seasons)
    seasons = [season if n_seasons > 1 else 0 for season in SEEN_SEASONS]
    chosen = by_model[:, :, SEEN_TRENDS][..., seasons].reshape(len(score), -1)
    return np.sign(chosen) * np.log1p(np.abs(chosen))


def _shares(ranked: np.ndarray, models: Models) -> np.ndarray:
    """Posterior weights (S, _N_SHARES) of scales, of trends and of seasons."""
    weights = np.exp(TEMPERED * ranked)
    weights /= weights.sum((1, 2), keepdims=True)
    by_model = weights.reshape(*weights.shape[:2], len(TRENDS), models.n_seasons)
    shares = np.zeros((len(ranked), _N_SHARES))
    seasons = len(SCALES) + len(TRENDS)
    shares[:, : len(SCALES)] = by_model.sum((2, 3))
    shares[:, len(SCALES) : seasons] = by_model.sum((1, 3))
    shares[:, seasons : seasons + models.n_seasons] = by_model.sum((1, 2))
    return shares


def _circumstances(
    values: np.ndarray, season_length: int, positive: np.ndarray, changes: np.ndarray,
    season_changes: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Features (S, T, 9) of what surrounds the series: rows, season, sign, zeros, level."""
    count = np.arange(1.0, values.shape[1] + 1)
    level = np.minimum(np.abs(values.cumsum(1) / count) / changes, LARGEST_LEVEL)
    columns = [
        np.log(count) / 3,
        np.minimum(count / season_length / 10, 3.0),
        np.full_like(count, np.log(season_length) / 3),
        np.full_like(count, float(season_length == 1)),
        positive.astype(float),
        np.clip(np.log(season_changes / changes), -5.0, 5.0) / 2,
        (values == 0).cumsum(1) / count,
        np.log1p(level) / 3,
        ((season_length > 1) & (count < 2 * season_length)).astype(float),
    ]
    return np.stack([np.broadcast_to(column, values.shape) for column in columns], -1)
