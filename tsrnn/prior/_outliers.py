r"""Gross errors and level shifts of series, told apart from what structural models expect.

.. math:: y_t = n_t + \sum_i \delta_i f_i(t), \qquad \delta_i \mid \sigma^2 \sim N(0, \tau \sigma^2)

with :math:`n_t` one of the structural models and f a pulse, 1 in one row, or a step, 1 from a row
on. The filter turns y and f into innovations, so that the coefficient of each pulse and step, and
its marginal likelihood, are closed forms of products of innovations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from tsrnn.prior._structural import (
    DEGREES,
    FIRST_SCALE,
    ROUND,
    TEMPERED,
    TINY,
    StructuralFilter,
    structural_filter,
    structural_models,
)
from tsrnn.prior._trained import missing_at_end

SLAB = 100.0  # prior variance of a pulse over that of the noise
# Log prior odds against a pulse or step in a row.
PRIOR_ODDS = 10.0
MOST = 0.05  # of the rows may be outliers: where more stand out, the series is of that kind
FEWEST_SEEN = 12  # rows with which outliers are looked for
LONGEST = 400  # rows that are judged together
LARGEST = 1e12  # median changes from the median
LEAST_INFORMATION = 1e-8  # about a pulse of a row that has no others of its season
LEAST_LEFT = 1e-12  # share of the squares that is left by a perfect fit
# Probability that the last row, where it stands out, is an error and no shift of the level: among
# the outliers before the last rows of M1 and M3, 276 of 438 were errors.
ERROR_SHARE = 0.6


def check_outliers(value: object) -> None:
    """Refuse a value of the argument `outliers` that is neither "pulse" nor None.

    Parameters
    ----------
    value : object

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from tsrnn.prior import check_outliers
    >>> check_outliers("pulse")
    """
    if value is not None and not (isinstance(value, str) and value == "pulse"):
        raise ValueError(f'outliers must be "pulse" or None; got {value!r}')


class Outliers(NamedTuple):
    """Outliers of U series, one entry each.

    Attributes
    ----------
    series, row : integer ndarray of shape (n,)
        Number of the series, and the row from its first one on.
    shift : boolean ndarray of shape (n,)
        True for level shifts, False for gross errors, which are of single rows.
    size : ndarray of shape (n,)
        Value less the one that is expected from all other rows; of a shift the change of the level.
    probability : ndarray of shape (n,)
        Posterior probability that the row is one.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import find_outliers
    >>> rows = 10 + np.random.default_rng(0).normal(size=(1, 40))
    >>> rows[0, 20] = 100.0
    >>> outliers = find_outliers(rows, np.array([40]), season_length=1)
    >>> outliers.row.tolist(), outliers.shift.tolist(), outliers.size.round(-1).tolist()
    ([20], [False], [90.0])
    """

    series: np.ndarray
    row: np.ndarray
    shift: np.ndarray
    size: np.ndarray
    probability: np.ndarray

    @classmethod
    def none(cls) -> Outliers:
        """No outliers."""
        return cls.of([])

    @classmethod
    def of(cls, entries: Sequence[tuple[int, int, bool, float, float]]) -> Outliers:
        """Outliers from the fields of each."""
        columns = list(zip(*entries, strict=True)) if entries else [()] * len(cls._fields)
        kinds = (int, int, bool, float, float)
        return cls(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))

    @property
    def errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Series and rows of the gross errors."""
        return self.series[~self.shift], self.row[~self.shift]

    def errors_at_end(
        self, values: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Errors in the last observed rows of series, and the probabilities that they are errors.

        Parameters
        ----------
        values, lengths : ndarray
            As `find_outliers` was given them.

        Returns
        -------
        series, row : integer ndarray of shape (n,)
        probability : ndarray of shape (n,)
            That the row is an error, and no shift of the level.
        """
        series, row = self.errors
        last = lengths[series] - 1 - missing_at_end(values[series], lengths[series]) == row
        probability = ERROR_SHARE * self.probability[~self.shift]
        return series[last], row[last], probability[last]


class PulseFilter(NamedTuple):
    """Innovations of pulses under the structural models that outliers are judged by.

    Attributes
    ----------
    kalman : StructuralFilter
        Of J models.
    innovations : ndarray of shape (J, T, T)
        [j, k, t]: the innovation in row t of a pulse in row k.
    """

    kalman: StructuralFilter
    innovations: np.ndarray


def pulse_filter(season_length: int, rows: np.ndarray) -> PulseFilter:
    """Pulse filter of observed rows (T,), numbered from 0 on."""
    n_rows = len(rows)
    if n_rows == rows[-1] + 1:  # without gaps the table of a longer series serves
        rows = np.arange(-(-n_rows // ROUND) * ROUND)
    kalman, innovations = _kept_filter(season_length, rows.astype(np.int64).tobytes())
    return PulseFilter(kalman, innovations[:, :n_rows, :n_rows])


@lru_cache(maxsize=4)  # of hours 27 MB each
def _kept_filter(season_length: int, rows: bytes) -> PulseFilter:
    numbers = np.frombuffer(rows, np.int64)
    kalman = structural_filter(season_length, numbers).of(structural_models(season_length).seen)
    innovations, _ = kalman.innovations(np.eye(len(numbers)))
    return PulseFilter(kalman, np.ascontiguousarray(innovations.transpose(2, 0, 1)))


@lru_cache(maxsize=256)
def _kept_information(season_length: int, rows: bytes) -> np.ndarray:
    """Squared innovations (2, J, T), summed over rows, of a pulse and of a step in each row."""
    pulses = pulse_filter(season_length, np.frombuffer(rows, np.int64)).innovations
    return np.stack([(part**2).sum(-1) for part in (pulses, steps_of(pulses, 1))])


def steps_of(pulses: np.ndarray, axis: int) -> np.ndarray:
    """Steps in each row, on an axis: a step is the sum of the pulses from its row on."""
    return np.flip(np.flip(pulses, axis).cumsum(axis), axis)


def find_outliers(values: np.ndarray, lengths: np.ndarray, season_length: int) -> Outliers:
    """Rows that are gross errors, and rows at which the level shifts.

    Parameters
    ----------
    values : ndarray of shape (U, T)
        Rows of each series from the first column on; NaN where a row is missing.
    lengths : integer ndarray of shape (U,)
    season_length : int
        1 for none.

    Returns
    -------
    Outliers
        None of series with fewer than 12 observed rows, of those of which most rows repeat the
        one before, and of those in which more than one row in twenty stands out. In the last row
        a shift is not told from an error, and counts as one.

    Examples
    --------
    A level that stays is a shift:

    >>> import numpy as np
    >>> from tsrnn.prior import find_outliers
    >>> rows = np.random.default_rng(0).normal(size=(1, 40))
    >>> rows[0, 30:] += 20.0
    >>> outliers = find_outliers(rows, np.array([40]), season_length=1)
    >>> outliers.row.tolist(), outliers.shift.tolist(), outliers.size.round(-1).tolist()
    ([30], [True], [20.0])
    """
    parts: list[tuple[int, int, bool, float, float]] = []
    for number, (series, length) in enumerate(zip(values, lengths, strict=True)):
        rows = np.flatnonzero(np.isfinite(series[:length]))
        for judged, kept in stretches(len(rows)):
            places = rows[judged]
            outliers = _of_stretch(series[places], places, season_length)
            parts += [
                (number, int(places[place]), shift, size, probability)
                for place, shift, size, probability in outliers
                if kept[place]
            ]
    return Outliers.of(parts)


def stretches(n_rows: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Overlapping stretches of a long series, and the rows of each whose outliers are kept.

    A row is judged where there are rows on both sides of it.
    """
    last = max(n_rows - LONGEST, 0)
    starts = np.append(np.arange(0, last, LONGEST // 2), last)
    # Each row belongs to the stretch whose middle is nearest.
    between = np.append(0, (starts[1:] + starts[:-1] + LONGEST) // 2)
    for start, first, end in zip(starts, between, np.append(between[1:], n_rows), strict=True):
        stop = min(start + LONGEST, n_rows)
        rows = np.arange(start, stop)
        yield slice(start, stop), (rows >= first) & (rows < end)


def without_errors(values: np.ndarray, outliers: Outliers) -> np.ndarray:
    """Values (U, T) with NaN at gross errors.

    Parameters
    ----------
    values : ndarray of shape (U, T)
    outliers : Outliers

    Returns
    -------
    ndarray of shape (U, T)
        A copy.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import find_outliers, without_errors
    >>> rows = 10 + np.random.default_rng(0).normal(size=(1, 40))
    >>> rows[0, 20] = 100.0
    >>> outliers = find_outliers(rows, np.array([40]), season_length=1)
    >>> np.flatnonzero(np.isnan(without_errors(rows, outliers)))
    array([20])
    """
    cleaned = values.copy()
    cleaned[outliers.errors] = np.nan
    return cleaned


def skip_errors(
    values: np.ndarray, indptr: np.ndarray, season_length: int
) -> tuple[np.ndarray, Outliers]:
    """Values of a panel with NaN at gross errors, and the outliers.

    Parameters
    ----------
    values : ndarray of shape (N, C)
        Rows of the series, one series after another; NaN where a value is missing.
    indptr : integer ndarray of shape (S + 1,)
        Series s has the rows indptr[s] to indptr[s + 1].
    season_length : int

    Returns
    -------
    values : ndarray of shape (N, C)
    outliers : Outliers
        Of targets, which are numbered series by series, within a series in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import skip_errors
    >>> rows = np.random.default_rng(0).normal(size=(60, 1))
    >>> rows[45] = 100.0
    >>> cleaned, outliers = skip_errors(rows, np.array([0, 20, 60]), season_length=1)
    >>> np.flatnonzero(np.isnan(cleaned)), outliers.series, outliers.row
    (array([45]), array([1]), array([25]))
    """
    cleaned, parts = values.copy(), []
    n_targets = values.shape[1]
    for number, (begin, end) in enumerate(pairwise(indptr)):
        lengths = np.full(n_targets, end - begin)
        outliers = find_outliers(values[begin:end].T, lengths, season_length)
        target, row = outliers.errors
        cleaned[begin + row, target] = np.nan
        parts.append(outliers._replace(series=outliers.series + number * n_targets))
    return cleaned, Outliers(*map(np.concatenate, zip(*parts, strict=True)))


def _likelihood_gains(
    pulses: np.ndarray,
    errors: np.ndarray,
    information: np.ndarray,
    squares: np.ndarray,
    half: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Products of the errors (C, J, T) with a pulse, and a step, in each row, and what each gains.

    The gain is that of the log marginal likelihood, coefficient and noise integrated out. Both have
    the shape (2, C, J, T).
    """
    product = (pulses @ errors.transpose(1, 2, 0)).transpose(2, 0, 1)
    product = np.stack([product, steps_of(product, 2)])
    precision = information[:, None] + 1 / SLAB
    left = squares[..., None] - product**2 / precision
    left = np.maximum(left, LEAST_LEFT * squares[..., None])
    gain = half * np.log(squares[..., None] / left) - 0.5 * np.log(SLAB * precision)
    return product, gain


def _of_stretch(
    values: np.ndarray, rows: np.ndarray, season_length: int
) -> list[tuple[int, bool, float, float]]:
    """Place among the observed rows, kind, size and probability of the outliers of some rows."""
    n_rows = len(values)
    change = np.median(np.abs(np.diff(values))) if n_rows >= FEWEST_SEEN else 0.0
    if change == 0:  # where most rows repeat the one before, there is no scale to judge others by
        return []
    # From the median, which an error in the first row does not move. Beyond a trillion changes all
    # values are alike: squares of larger ones overflow.
    median = np.median(values)
    with np.errstate(over="ignore"):
        scaled = np.clip((values - median) / change, -LARGEST, LARGEST)
    lanes, jacobian = [scaled], [0.0]
    if (values > 0).all():
        lanes.append(np.log(values / median))
        # A density of logarithms, times the Jacobian, is one of the first lane.
        jacobian.append(np.log(change / values).sum())
    numbers = (rows - rows[0]).astype(np.int64)
    filtered = pulse_filter(season_length, numbers)
    errors = filtered.kalman.innovations(np.array(lanes))[0].swapaxes(1, 2)  # (C, J, T)
    changes = np.array([np.median(np.abs(np.diff(lane))) for lane in lanes])
    known = DEGREES * (FIRST_SCALE * changes[:, None]) ** 2
    constant = np.log(filtered.kalman.weight[:n_rows]).sum(0) + np.array(jacobian)[:, None]
    pulses = filtered.innovations
    information = _kept_information(season_length, numbers.tobytes())
    outliers: list[tuple[int, bool, float, float]] = []
    directions: list[np.ndarray] = []
    while True:
        squares = (errors**2).sum(-1) + known  # (C, J)
        half = 0.5 * (n_rows + DEGREES - len(outliers))
        likelihood = constant - half * np.log(squares)
        product, gain = _likelihood_gains(pulses, errors, information, squares, half)
        # Both sums over models: those with a season explain a lone error of a phase by the season,
        # and others explain the series much better once it is out.
        explained = TEMPERED * (likelihood[..., None] + gain)
        odds = (
            logsumexp(explained, (1, 2)) - logsumexp(TEMPERED * likelihood)
        ) / TEMPERED - PRIOR_ODDS
        odds[1, [0, -1]] = -np.inf  # a step is the level in the first row, a pulse in the last
        for row, shift, *_ in outliers:
            odds[int(shift), row] = -np.inf
        kind, row = np.unravel_index(odds.argmax(), odds.shape)
        if odds[kind, row] <= 0:
            return outliers
        if len(outliers) >= max(1.0, MOST * n_rows):
            return []
        share = softmax(explained[kind, ..., row])  # (C, J), of the models given the outlier
        coefficient = product[kind, ..., row] / np.maximum(
            information[kind, :, row], LEAST_INFORMATION
        )
        of_lane = np.maximum(share.sum(1), TINY)
        sizes = np.einsum("cj,cj->c", share, coefficient) / of_lane
        of_data = sizes[0] * change
        if kind == 0:  # also of a value that was cut
            of_data = values[row] - median - (scaled[row] - sizes[0]) * change
        in_units = [of_data, *(-values[row] * np.expm1(-size) for size in sizes[1:])]
        size = float(of_lane @ in_units)
        outliers.append((int(row), bool(kind), size, float(expit(odds[kind, row]))))
        # What is left is orthogonal to the outliers, as after a regression on them.
        direction = pulses[:, row:].sum(1) if kind else pulses[:, row]  # (J, T)
        for other in directions:
            direction = direction - (direction * other).sum(1, keepdims=True) * other
        direction = direction / np.sqrt(np.maximum((direction**2).sum(1, keepdims=True), TINY))
        directions.append(direction)
        errors = errors - (errors * direction).sum(2, keepdims=True) * direction
        shared = (pulses @ direction[..., None])[..., 0]
        shared = np.stack([shared, steps_of(shared, 1)])
        information = np.maximum(information - shared**2, 0.0)
