"""Structural models with fixed variances, filtered in one batch: inputs of the prior network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from tsrnn.data import log_ratios
from tsrnn.kernels import kalman_errors, kalman_gains

VAGUE = 1e4  # variance of the first level over the noise variance: nearly diffuse
DEGREES = 1.0  # degrees of freedom of the noise prior: it hardly counts
FIRST_SCALE = 0.1  # scale of the noise prior, in mean absolute changes of the series
LEAST_CHANGE = (
    1e-13  # mean absolute change over the largest value: smaller ones are rounding errors
)
AT_ONCE = 2**19  # errors and states of series filtered together: they stay in the cache
TEMPERED = 0.5  # power of the likelihoods in weights: misspecified models are overconfident
MOST_AWAY = (10.0, 5.0)  # bound of a forecast in mean changes: intercept and slope in the step
MOST_SCORE = 100.0  # bound of standardised errors: the first change of a constant is infinite
LARGEST_LOG = 60.0  # bound of a forecast change of the logarithm
# Bound of mean over mean absolute change. Fewer than one in 200 training series has more; beyond,
# the network would extrapolate to widths that grow with the level.
LARGEST_LEVEL = 1000.0
TINY = 1e-100  # its square does not underflow


class Trend(NamedTuple):
    """Level, slope and cycle of a structural model, with variances relative to the noise.

    Attributes
    ----------
    name : str
    noise : float
        Variance of the observation noise: 1, or small if the level is observed nearly exactly.
    level, slope : float
        Variances of the changes of the level and of its slope in a row.
    damping : float
        Share of the slope that remains after a row.
    growth : float
        Variance of the first slope: 0 for no trend, small for a shrunk one.
    memory, cycle : float
        Coefficient of an AR(1) process around the level, and the variance of its innovations.

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
    """Season of a structural model, with variances relative to the noise.

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
    """Variance of the level changes for which exponential smoothing with `alpha` is optimal."""
    return alpha**2 / (1 - alpha)


EXACT = 0.01  # noise variance of models that observe the level nearly exactly

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
# Trends and seasons of the models whose prediction errors are inputs: slow and fast ones.
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
    """Forecasts and likelihoods of J structural models at O origins in S series.

    Models are ordered by scale, trend and season. Forecasts are deviations from the origin, over
    the mean absolute change up to it.

    Attributes
    ----------
    features : ndarray of shape (S, T, N_FEATURES)
        Inputs of the network at the observed rows of each series, left-aligned. They depend on
        the rows up to each one only.
    forecasts, deviations : ndarray of shape (O, J, h)
        Means and standard deviations of the predictive distributions.
    log_likelihood : ndarray of shape (O, J)
        Log likelihood up to the origin, less the largest over models.
    last, scale : ndarray of shape (O,)
        Value at each origin, and the mean absolute change up to it.
    season_scale : ndarray of shape (O,)
        Mean absolute seasonal change up to each origin, the scale of MASE.
    log_evidence : ndarray of shape (S, T)
        Largest log likelihood of a model up to each observed row; 0 for the first two rows, which
        set level and scale.

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
    log_evidence: np.ndarray


class Models(NamedTuple):
    """State-space form of all J models of one season length.

    States are level, slope, AR(1) process and seasonal effects; `noise`, `damping` and `memory`
    have shape (J,). Prediction errors of the models `seen` are inputs of the network.
    """

    noise: np.ndarray
    damping: np.ndarray
    memory: np.ndarray
    innovation: np.ndarray  # variances of the state innovations, (d, J)
    first: np.ndarray  # variances of the first state, (d, J)
    n_seasons: int  # seasons that each trend is combined with
    seen: np.ndarray

    @property
    def first_covariance(self) -> np.ndarray:
        """Covariances (d, d, J) of the first state."""
        return np.eye(len(self.first))[..., None] * self.first

    def gains(
        self,
        rows: np.ndarray,
        before: int,
        covariance: np.ndarray,
        stops: Mapping[int, Callable[[], None]] = MappingProxyType({}),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gains and variances at observed rows, see `kalman_gains`.

        `covariance` holds the covariance at row `before` and is updated in place.
        """
        moves, effects = _moves(rows, before, len(self.first) - 3)
        return kalman_gains(
            self.noise, self.damping, self.memory, self.innovation, moves, effects, covariance,
            stops,
        )  # fmt: skip


@lru_cache(maxsize=16)
def structural_models(season_length: int) -> Models:
    """Models of all trends with all seasons, by trend, then by season."""
    seasons = SEASONS if season_length > 1 else SEASONS[:1]
    pairs = [(trend, season) for trend in TRENDS for season in seasons]
    state = 3 + season_length
    innovation, first = np.zeros((2, state, len(pairs)))
    for number, (trend, season) in enumerate(pairs):
        innovation[:3, number] = trend.level, trend.slope, trend.cycle
        innovation[3:, number] = season.change / season_length
        first[:3, number] = VAGUE, trend.growth, trend.cycle / (1 - trend.memory**2)
        first[3:, number] = season.size
    noise, damping, memory = (
        np.array([getattr(trend, name) for trend, _ in pairs])
        for name in ("noise", "damping", "memory")
    )
    of_seasons = np.minimum(SEEN_SEASONS, len(seasons) - 1)
    seen = (np.array(SEEN_TRENDS)[:, None] * len(seasons) + of_seasons).ravel()
    return Models(noise, damping, memory, innovation, first, len(seasons), seen)


ROUND = 48  # filters without gaps are cached for multiples of these rows


class StructuralFilter(NamedTuple):
    """Gains and variances of the Kalman filter of all structural models, which need no values.

    A missing row propagates the state without an update, so tables hold observed rows only.
    `weight` is the inverse standard deviation of the prediction errors, in units of the noise.
    """

    rows: np.ndarray  # indices of the observed rows from 0, (T,)
    gain: np.ndarray  # as `kalman_gains`, (tiles, T, d, 8)
    weight: np.ndarray  # (T, J)
    damping: np.ndarray
    memory: np.ndarray

    def of(self, models: np.ndarray) -> StructuralFilter:
        """Filter of the selected models."""
        tile = self.gain.shape[3]
        # The first model pads the last tile.
        filled = np.append(models, np.repeat(models[:1], -len(models) % tile))
        gain = self.gain[filled // tile, :, :, filled % tile]  # (models, T, d)
        gain = gain.reshape(-1, tile, *gain.shape[1:]).transpose(0, 2, 3, 1)
        return StructuralFilter(
            self.rows,
            np.ascontiguousarray(gain),
            np.ascontiguousarray(self.weight[:, models]),
            self.damping[models],
            self.memory[models],
        )

    def innovations(
        self, values: np.ndarray, kept: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Standardised prediction errors (L, T, J) of L series under every model, and kept states.

        Values (L, T) are the observed rows less the first, because the first level has mean 0; NaN
        after the end of a series, where errors are 0. `kept` (L, T) is the index in the states (n,
        d, J) of the state after each row, -1 for states that are not returned.
        """
        rows = self.rows[: values.shape[1]]
        before = rows[0] if len(rows) else 0  # a regression may have no complete row
        moves, effects = _moves(rows, before, self.gain.shape[2] - 3)
        kept = np.full(values.shape, -1) if kept is None else kept
        return kalman_errors(
            values, self.damping, self.memory, moves, effects, self.gain, self.weight, kept
        )


def _moves(rows: np.ndarray, before: int, season_length: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of transitions before each observed row, and the index of its seasonal effect."""
    return np.diff(rows, prepend=before), rows % season_length


@lru_cache(maxsize=4)
def _cached_filter(season_length: int, rows: bytes) -> StructuralFilter:
    models, numbers = structural_models(season_length), np.frombuffer(rows, np.int64)
    gain, variance = models.gains(numbers, 0, models.first_covariance)
    return StructuralFilter(numbers, gain, variance**-0.5, models.damping, models.memory)


def structural_filter(season_length: int, rows: np.ndarray) -> StructuralFilter:
    """Cached filter of observed rows (T,), counted from 0; without gaps it may have more rows."""
    n_rows = len(rows)
    if n_rows == rows[-1] + 1:  # the filter of a longer series begins with this one
        rows = np.arange(-(-n_rows // ROUND) * ROUND)
    return _cached_filter(season_length, rows.astype(np.int64).tobytes())


def filter_and_variances(
    season_length: int, rows: np.ndarray, places: np.ndarray, h: int
) -> tuple[StructuralFilter, np.ndarray]:
    """Filter of observed rows (T,), and forecast variances (O, h, J) from `places` (O,) in them."""
    places, numbers = np.unique(places, return_inverse=True)
    if len(rows) == rows[-1] + 1:  # filters without gaps are shared by other origins
        kalman, end = structural_filter(season_length, rows), places[-1] + 1
        variances = _cached_variances(season_length, int(end), places.tobytes(), h)
    else:
        kalman, variances = _cached_pass(
            season_length, rows.astype(np.int64).tobytes(), places.tobytes(), h
        )
    return kalman, variances[numbers]


@lru_cache(maxsize=8)
def _cached_variances(season_length: int, n_rows: int, places: bytes, h: int) -> np.ndarray:
    return _filter_pass(season_length, np.arange(n_rows), np.frombuffer(places, np.int64), h)[1]


@lru_cache(maxsize=4)
def _cached_pass(
    season_length: int, rows: bytes, places: bytes, h: int
) -> tuple[StructuralFilter, np.ndarray]:
    numbers = np.frombuffer(rows, np.int64)
    return _filter_pass(season_length, numbers, np.frombuffer(places, np.int64), h)


def _filter_pass(
    season_length: int, rows: np.ndarray, places: np.ndarray, h: int
) -> tuple[StructuralFilter, np.ndarray]:
    """`filter_and_variances` by one recursion of the covariances, the most expensive part."""
    models = structural_models(season_length)
    covariance, variances = models.first_covariance, []

    def ahead(row: int) -> None:
        variances.append(_variances(models, covariance, row, h))

    stops = {place: partial(ahead, int(rows[place])) for place in places.tolist()}
    gain, variance = models.gains(rows, 0, covariance, stops)
    kalman = StructuralFilter(rows, gain, variance**-0.5, models.damping, models.memory)
    return kalman, np.stack(variances)


def structural_evidence(
    values: np.ndarray, lengths: np.ndarray, origins: np.ndarray, season_length: int, h: int
) -> Evidence:
    """Filter series by all models, on the scale of the data and of logarithms.

    Values (S, T) are left-aligned; NaN where a row is missing, finite padding after the end.
    `origins` (S, T) masks the observed rows to forecast from, h steps ahead. The season length is 1
    for none.
    """
    models = structural_models(season_length)
    owner, features = np.nonzero(origins)[0], np.zeros((*values.shape, N_FEATURES), np.float32)
    log_evidence = np.zeros(values.shape)
    others: list[np.ndarray] = []
    for series, rows in group_by_observed_rows(values, lengths):
        counts = np.minimum(lengths[series], len(rows))
        # Memory of a series: errors at all rows, and states at its origins.
        size = len(rows) * len(models.noise) + int(origins[series].sum(1).max()) * models.first.size
        n_parts = -(-len(series) // max(1, AT_ONCE // (2 * size)))
        for part in np.array_split(np.arange(len(series)), n_parts):
            longest = rows[: counts[part].max()]
            place = series[part][:, None], longest
            numbers = longest - rows[0]
            evidence = _evidence(models, values[place], numbers, counts[part], origins[place], h)
            # Left-aligned like `values`.
            features[series[part], : len(longest)] = evidence.features
            log_evidence[series[part], : len(longest)] = evidence.log_evidence
            here = np.isin(owner, series[part])
            others = others or [np.empty((len(owner), *x.shape[1:])) for x in evidence[1:-1]]
            for array, of_part in zip(others, evidence[1:-1], strict=True):
                array[here] = of_part
    return Evidence(*[features, *others, log_evidence])


def group_by_observed_rows(
    values: np.ndarray, lengths: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Groups of series with the same observed rows, which share a filter, and these rows."""
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
    """Evidence of a batch of series with the observed `rows` (T,)."""
    (n_series, longest), season_length = values.shape, len(models.first) - 3
    alive = np.arange(longest) < lengths[:, None]
    scaled, beginning, positive, changes, season_changes, first_squares = scale_rows(
        values, rows, lengths, season_length
    )
    owner, place = np.nonzero(origins)
    kalman, ahead = filter_and_variances(season_length, rows, place, h)
    lanes, numbers = np.where(alive[:, None], scaled, np.nan), np.full(scaled.shape, -1)
    numbers[owner, :, place] = np.arange(2 * len(owner)).reshape(-1, 2)
    error, state = kalman.innovations(lanes.reshape(-1, longest), numbers.reshape(-1, longest))
    error = error.reshape(*scaled.shape, -1)  # (S, 2, T, J)
    seen = error[:, :, 2:, models.seen]
    # Running sums of squares estimate the noise. The first row sets the level and has no error.
    known = np.square(error, out=error)
    known[:, :, 0] = 0.0
    add_up_rows(known)

    # Scores start at the third row: the first two set level and noise.
    prior, degrees = first_squares[:, :, 1:-1, None], DEGREES + np.arange(1.0, longest - 1)
    before, after = known[:, :, 1:-1] + prior, known[:, :, 2:] + prior
    score = np.sqrt(degrees[:, None] / before[..., models.seen]) * np.abs(seen)
    # Logarithms, because prediction errors have heavy tails.
    score = np.sign(seen) * np.log1p(np.minimum(score, MOST_SCORE))
    features = np.zeros((n_series, longest, N_FEATURES), np.float32)
    features[:, 2:, :_N_ERRORS] = score.swapaxes(1, 2).reshape(n_series, -1, _N_ERRORS)
    density = _log_density(before, after, kalman.weight[2:longest], degrees)
    # The Jacobian 1 / y turns a density of logarithms into a density of the data.
    density[:, 1] -= (scaled[:, 1, 2:] + np.log(beginning)[:, None])[..., None]
    density.swapaxes(1, 2)[~alive[:, 2:]] = 0.0
    ranked = np.zeros_like(known)
    add_up_rows(density)
    ranked[:, :, 2:] = density
    ranked[:, 1][~positive] = -np.inf
    largest = ranked.max((1, 3))
    ranked -= largest[:, None, :, None]
    features[..., _N_ERRORS : _N_ERRORS + _N_SHARES] = _shares(ranked, models)
    features[..., _N_ERRORS + _N_SHARES :] = _context_features(
        values, season_length, positive, changes, season_changes
    )

    square = known[owner, :, place] + first_squares[owner, :, place][..., None]  # (O, 2, J)
    noise = square / (DEGREES + place)[:, None, None]
    spread = np.sqrt(noise[:, None] * ahead[:, :, None])
    forecast = _forecasts(state.reshape(len(owner), 2, *state.shape[1:]), rows[place], h)
    forecast -= scaled[owner, :, place][:, None, :, None]
    last, change = values[owner, place], changes[owner, place]
    forecast, spread = _in_mean_changes(forecast, spread, positive[owner, place], last, change)
    likelihood = ranked[owner, :, place].reshape(len(owner), -1)
    of_season = season_changes[owner, place]
    return Evidence(features, forecast, spread, likelihood, last, change, of_season, largest)


def add_up_rows(values: np.ndarray) -> None:
    """Cumulate `values` (S, 2, T, J) over the rows T in place."""
    # Row by row, with contiguous operands: numpy.cumsum takes five times as long.
    for row in range(1, values.shape[2]):
        values[:, :, row] += values[:, :, row - 1]


class ScaledRows(NamedTuple):
    """Series and their logarithms, less the first row; see `running_changes` for the mean changes.

    `beginning` is the first value, or 1 if it is not positive.
    """

    rows: np.ndarray  # (S, 2, T)
    beginning: np.ndarray
    positive: np.ndarray  # all values up to the row are positive; else logarithms have no weight
    changes: np.ndarray  # (S, T)
    season_changes: np.ndarray  # (S, T)
    first_squares: np.ndarray  # of the noise prior, (S, 2, T)


def scale_rows(
    values: np.ndarray, rows: np.ndarray, lengths: np.ndarray, season_length: int
) -> ScaledRows:
    """Scale values (S, T) at observed `rows` (T,); series i has the first `lengths[i]`."""
    alive = np.arange(values.shape[1]) < lengths[:, None]
    positive = np.minimum.accumulate(np.where(alive, values, 1.0), 1) > 0
    # Less the first row, because a large level would cost the changes their digits.
    beginning = np.where(values[:, :1] > 0, values[:, :1], 1.0)
    centred = values - values[:, :1]
    logarithms = log_ratios(np.where(alive & positive, values, beginning), beginning)
    rounding = LEAST_CHANGE * np.maximum.accumulate(np.abs(values), 1) + TINY
    changes, season_changes = running_changes(centred, rows, season_length, rounding)
    # The noise prior is a small share of the mean absolute change up to each row.
    of_logarithms = running_changes(logarithms, rows, 1, np.full(values.shape, LEAST_CHANGE))[0]
    first_squares = DEGREES * (FIRST_SCALE * np.stack([changes, of_logarithms], 1)) ** 2
    return ScaledRows(
        np.stack([centred, logarithms], 1),
        beginning[:, 0],
        positive,
        changes,
        season_changes,
        first_squares,
    )


_N_ERRORS = len(SCALES) * len(SEEN_TRENDS) * len(SEEN_SEASONS)
_N_SHARES = len(SCALES) + len(TRENDS) + len(SEASONS)


def evenly(n: int, most: int) -> np.ndarray:
    """Up to `most` evenly spaced integers from 0 to n - 1.

    Parameters
    ----------
    n, most : int

    Returns
    -------
    integer ndarray

    Examples
    --------
    >>> from tsrnn.prior import evenly
    >>> evenly(9, 3).tolist()
    [0, 4, 8]
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def mean_change(rows: np.ndarray) -> np.ndarray:
    """Mean absolute change of each column (T, C) between successive observed rows, NaN if missing.

    0 if fewer than two rows are observed.
    """
    changes = (np.abs(np.diff(column[np.isfinite(column)])) for column in rows.T)
    return np.array([change.mean() if len(change) else 0.0 for change in changes])


def running_changes(
    values: np.ndarray, rows: np.ndarray, season_length: int, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean absolute changes (S, T) up to each row, between successive rows and over a season.

    Missing rows between two observed ones are skipped. With at most two seasonal changes both
    results are the changes between successive rows. `floor` (S, T) is a lower bound against
    rounding errors.
    """
    n_series, n_rows = values.shape

    def changes_since(before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean absolute changes since the rows `before` (T,), -1 for none, and their counts."""
        has = before >= 0
        changes = np.zeros((n_series, n_rows))
        changes[:, has] = np.abs(values[:, has] - values[:, before[has]])
        return changes.cumsum(1) / np.maximum(has.cumsum(), 1), has.cumsum()

    neighbours = np.maximum(changes_since(np.arange(n_rows) - 1)[0], floor)
    if season_length == 1 or rows[-1] < season_length:
        return neighbours, neighbours
    before = np.searchsorted(rows, rows - season_length)
    before = np.where(rows[before] == rows - season_length, before, -1)
    seasonal, count = changes_since(before)
    enough = (count > 2) & (seasonal > floor)
    return neighbours, np.where(enough, seasonal, neighbours)


def _log_density(
    before: np.ndarray, after: np.ndarray, weight: np.ndarray, degrees: np.ndarray
) -> np.ndarray:
    """Log densities (..., T, J) of prediction errors under Student's t, written into `before`.

    `before` is the squared scale times the `degrees` (T,) of freedom; `after` is `before` plus the
    squared standardised error.
    """
    half = 0.5 * degrees[:, None]
    np.log(before, out=before)
    np.log(after, out=after)
    before *= half
    after *= half + 0.5
    before -= after
    before += gammaln(half + 0.5) - gammaln(half) - 0.5 * np.log(np.pi) + np.log(weight)
    return before


@lru_cache(maxsize=16)
def _loadings(season_length: int, h: int) -> tuple[np.ndarray, np.ndarray]:
    """Loadings (h, J) of slope and AR(1) process in the next h rows."""
    models, steps = structural_models(season_length), np.arange(1, h + 1)[:, None]
    return np.cumsum(models.damping**steps, 0), models.memory**steps


def _forecasts(state: np.ndarray, rows: np.ndarray, h: int) -> np.ndarray:
    """Forecast means (O, h, 2, J) after each of `rows` (O,), from states (O, 2, d, J)."""
    season_length = state.shape[2] - 3
    slope, memory = _loadings(season_length, h)
    effects = 3 + (rows[:, None] + np.arange(1, h + 1)) % season_length
    season = state.swapaxes(1, 2)[np.arange(len(rows))[:, None], effects]
    level, change, cycle = np.moveaxis(state[:, None, :, :3], 3, 0)
    return season + level + slope[:, None] * change + memory[:, None] * cycle


def _variances(models: Models, covariance: np.ndarray, row: int, h: int) -> np.ndarray:
    """Variances (h, J) of the forecast errors, in units of the noise variance."""
    season_length = len(covariance) - 3
    slope, memory = _loadings(season_length, h)
    effects = 3 + (row + np.arange(1, h + 1)) % season_length
    loading = np.stack([np.ones_like(slope), slope, memory])
    of_trend = np.einsum("ahj,abj,bhj->hj", loading, covariance[:3, :3], loading)
    crossed = np.einsum("ahj,ahj->hj", loading, covariance[:3, effects])
    of_state = of_trend + 2 * crossed + covariance[effects, effects]
    # An innovation n rows before the forecast passes n transitions.
    passed, faded = (np.concatenate([first, of[:-1]]) for first, of in (
        (np.zeros_like(slope[:1]), slope), (np.ones_like(memory[:1]), memory)
    ))  # fmt: skip
    level, change, cycle, season = models.innovation[:4]
    arriving = level + change * passed**2 + cycle * faded**2 + season
    return of_state + arriving.cumsum(0) + models.noise


def _in_mean_changes(
    forecast: np.ndarray, spread: np.ndarray, positive: np.ndarray, last: np.ndarray,
    change: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Scale forecasts and deviations (O, h, 2, J) as in `Evidence`, shape (O, 2 J, h).

    `forecast` holds changes from the last row, of the data and of their logarithms.
    """
    n_origins, h = forecast.shape[:2]
    known, level = positive[:, None, None], last[:, None, None]
    # Median of the lognormal distribution, and its standard deviation to first order.
    growth = np.expm1(np.clip(forecast[:, :, 1], -LARGEST_LOG, LARGEST_LOG))
    wide = level * (1 + growth) * np.minimum(spread[:, :, 1], 2.0)
    forecast[:, :, 1] = np.where(known, level * growth, 0.0)
    spread[:, :, 1] = np.where(known, wide, 0.0)
    unit = change[:, None, None]
    farthest = MOST_AWAY[0] + MOST_AWAY[1] * np.arange(1, h + 1)[:, None]
    changes, deviations = (x.reshape(n_origins, h, -1) / unit for x in (forecast, spread))
    changes, deviations = np.clip(changes, -farthest, farthest), np.clip(deviations, 1e-3, 200.0)
    return changes.swapaxes(1, 2), deviations.swapaxes(1, 2)


def _shares(ranked: np.ndarray, models: Models) -> np.ndarray:
    """Posterior weights (S, T, _N_SHARES) of scales, trends and seasons."""
    n_series, _, n_rows, _ = ranked.shape
    weights = TEMPERED * ranked
    np.exp(weights, out=weights)
    of_scales = weights.sum(3)
    either = weights.sum(1).reshape(n_series, n_rows, len(TRENDS), models.n_seasons)
    shares = np.zeros((n_series, n_rows, _N_SHARES))
    seasons = len(SCALES) + len(TRENDS)
    shares[..., : len(SCALES)] = of_scales.swapaxes(1, 2)
    # einsum, because numpy.sum over short axes is several times slower.
    shares[..., len(SCALES) : seasons] = np.einsum("stjk->stj", either)
    shares[..., seasons : seasons + models.n_seasons] = np.einsum("stjk->stk", either)
    return shares / of_scales.sum(1)[..., None]


def _context_features(
    values: np.ndarray, season_length: int, positive: np.ndarray, changes: np.ndarray,
    season_changes: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Features (S, T, 9) of the whole series: length, season length, sign, zeros, level."""
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
