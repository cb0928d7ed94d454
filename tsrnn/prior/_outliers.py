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
AT_ONCE = 2**15  # numbers of innovations judged together: they stay in the cache
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
    kalman, innovations = _cached_filter(season_length, rows.astype(np.int64).tobytes())
    return PulseFilter(kalman, innovations[:, :n_rows, :n_rows])


@lru_cache(maxsize=4)  # of hours 27 MB each
def _cached_filter(season_length: int, rows: bytes) -> PulseFilter:
    numbers = np.frombuffer(rows, np.int64)
    kalman = structural_filter(season_length, numbers).of(structural_models(season_length).seen)
    innovations, _ = kalman.innovations(np.eye(len(numbers)))
    return PulseFilter(kalman, np.ascontiguousarray(innovations.transpose(2, 0, 1)))


@lru_cache(maxsize=256)
def _cached_information(season_length: int, rows: bytes) -> np.ndarray:
    """Squared innovations (2, J, T), summed over rows, of a pulse and of a step in each row."""
    pulses = pulse_filter(season_length, np.frombuffer(rows, np.int64)).innovations
    # A step is the sum of the pulses from its row on.
    steps = pulses[:, ::-1].cumsum(1)[:, ::-1]
    return np.stack([(part**2).sum(-1) for part in (pulses, steps)])


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
    # Stretches of the same rows, counted from their first one, share filters: judged at once.
    alike: dict[bytes, list[tuple[int, np.ndarray, np.ndarray]]] = {}
    for number, (series, length) in enumerate(zip(values, lengths, strict=True)):
        rows = np.flatnonzero(np.isfinite(series[:length]))
        for judged, kept in stretches(len(rows)) if len(rows) >= FEWEST_SEEN else ():
            places = rows[judged]
            numbers = (places - places[:1]).astype(np.int64)
            alike.setdefault(numbers.tobytes(), []).append((number, places, kept))
    for numbers_of, members in alike.items():
        numbers = np.frombuffer(numbers_of, np.int64)
        most = max(1, AT_ONCE // (len(numbers) * len(structural_models(season_length).seen)))
        for begin in range(0, len(members), most):
            batch = members[begin : begin + most]
            rows = np.stack([values[number, places] for number, places, _ in batch])
            of_each = _stretch_outliers(rows, numbers, season_length)
            for (number, places, kept), outliers in zip(batch, of_each, strict=True):
                parts += [
                    (number, int(places[place]), shift, size, probability)
                    for place, shift, size, probability in outliers
                    if kept[place]
                ]
    return Outliers.of(sorted(parts, key=lambda part: part[0]))


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


class _Lanes(NamedTuple):
    """Series (S,) on the scales (S, 2) that they are judged on: of the data, and of logarithms.

    Attributes
    ----------
    rows : ndarray of shape (S, 2, T)
        Of values that are not all positive, the logarithms are zeros.
    jacobian : ndarray of shape (S, 2)
        Logarithm of the density of the first scale over that of each; minus infinity where there
        are no logarithms.
    change : ndarray of shape (S, 2)
        Median absolute change on each scale.
    values, median, unit : ndarray of shape (S, T), (S, 1) and (S, 1)
        Those of the data, their median, and the unit of the first scale.
    """

    rows: np.ndarray
    jacobian: np.ndarray
    change: np.ndarray
    values: np.ndarray
    median: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, unit: np.ndarray) -> _Lanes:
        """Scales of values (S, T), the first in units of their median absolute change (S, 1)."""
        # From the median, which an error in the first row does not move. Beyond a trillion changes
        # all values are alike: squares of larger ones overflow.
        median = np.median(values, 1, keepdims=True)
        with np.errstate(over="ignore"):
            scaled = np.clip((values - median) / unit, -LARGEST, LARGEST)
        positive = (values > 0).all(1)
        logarithms, jacobian = np.zeros_like(values), np.full(len(values), -np.inf)
        logarithms[positive] = np.log(values[positive] / median[positive])
        jacobian[positive] = np.log(unit[positive] / values[positive]).sum(1)
        rows = np.stack([scaled, logarithms], 1)
        change = np.median(np.abs(np.diff(rows)), 2)
        change[~positive, 1] = 1.0
        jacobian = np.stack([np.zeros(len(values)), jacobian], 1)
        return cls(rows, jacobian, change, values, median, unit)

    def in_units(self, row: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Sizes (S, 2) of an outlier of each series, in these rows, in the units of the data."""
        each = np.arange(len(row))
        value, expected = self.values[each, row], self.rows[each, 0, row] - sizes[:, 0]
        # Of the value as it is, also where it was cut.
        of_data = value - self.median[:, 0] - expected * self.unit[:, 0]
        return np.stack([of_data, -value * np.expm1(-sizes[:, 1])], 1)


def _stretch_outliers(
    values: np.ndarray, numbers: np.ndarray, season_length: int
) -> list[list[tuple[int, bool, float, float]]]:
    """Place, kind, size and probability of the outliers of each of S series (S, T).

    The likeliest outlier of each is taken out, until none is likely: the series that still have
    one go through a round together. `numbers` (T,) are those of the rows.
    """
    outliers: list[list[tuple[int, bool, float, float]]] = [[] for _ in values]
    n_rows = len(numbers)
    with np.errstate(over="ignore"):
        unit = np.median(np.abs(np.diff(values)), 1, keepdims=True)
    # Where most rows repeat the one before, there is no scale to judge others by.
    series = np.flatnonzero(unit)
    lanes = _Lanes.of(values[series], unit[series])
    pulses, kalman = pulse_filter(season_length, numbers)[::-1]
    errors = kalman.innovations(lanes.rows.reshape(-1, n_rows))[0].transpose(2, 0, 1)
    errors = errors.reshape(len(pulses), *lanes.rows.shape)  # (J, S, 2, T)
    known = DEGREES * (FIRST_SCALE * lanes.change) ** 2
    constant = np.log(kalman.weight[:n_rows]).sum(0)[:, None, None] + lanes.jacobian
    information = _cached_information(season_length, numbers.tobytes())[:, :, None]  # (2, J, 1, T)
    information = np.broadcast_to(information, (*information.shape[:2], len(series), n_rows))
    taken = np.zeros((2, len(series), n_rows), bool)
    taken[1, :, [0, -1]] = True  # a step is the level in the first row, a pulse in the last
    directions: list[np.ndarray] = []  # (J, S, T) each, of what was taken out
    while len(series):
        squares = (errors**2).sum(-1) + known  # (J, S, 2)
        half = 0.5 * (n_rows + DEGREES - len(directions))
        likelihood = constant - half * np.log(squares)
        product, precision = _products(errors, pulses), information + 1 / SLAB
        # Share of the squares that a pulse, or a step, takes out: no model gains more by it than
        # -half log(1 - share). Few rows may be outliers by that, and only they are judged.
        share = product**2
        share *= (1 / precision)[..., None, :]
        share *= (1 / squares)[..., None]
        likely = share.max(1).max(2) > -np.expm1(-PRIOR_ODDS / half)  # (2, S, T)
        kind, each, row = np.nonzero(likely & ~taken)
        if not len(each):
            return outliers
        gain = -half * np.log(np.maximum(1 - share[kind, :, each, :, row], LEAST_LEFT))
        gain -= 0.5 * np.log(SLAB * precision[kind, :, each, row])[..., None]  # (n, J, 2)
        # Both sums over models: those with a season explain a lone error of a phase by the season,
        # and others explain the series much better once it is out.
        without = TEMPERED * likelihood.swapaxes(0, 1)[each]
        explained = without + TEMPERED * gain
        odds = (logsumexp(explained, (1, 2)) - logsumexp(without, (1, 2))) / TEMPERED - PRIOR_ODDS
        best = _largest_odds(each, odds)
        kind, each, row, odds = kind[best], each[best], row[best], odds[best]
        if len(directions) >= max(1.0, MOST * n_rows):
            for number in series[each]:
                outliers[number].clear()
            return outliers
        weight = softmax(explained[best], (1, 2))  # of models, given the outlier
        of_row = np.maximum(information[kind, :, each, row], LEAST_INFORMATION)
        coefficient = product[kind, :, each, :, row] / of_row[..., None]
        of_lane = np.maximum(weight.sum(1), TINY)
        sizes = (weight * coefficient).sum(1) / of_lane
        lanes, series = _Lanes(*(part[each] for part in lanes)), series[each]
        size = (of_lane * lanes.in_units(row, sizes)).sum(1)
        columns = series, row, kind == 1, size, expit(odds)
        for number, *outlier in zip(*(column.tolist() for column in columns), strict=True):
            outliers[number].append(tuple(outlier))
        known, constant, taken = known[each], constant[:, each], taken[:, each]
        taken[kind, np.arange(len(each)), row] = True
        # What is left is orthogonal to the outliers, as after a regression on them.
        directions = [other[:, each] for other in directions]
        direction = pulses[:, row]  # (J, S, T)
        for number in np.flatnonzero(kind):
            direction[:, number] = pulses[:, row[number] :].sum(1)
        for other in directions:
            direction = direction - (direction * other).sum(-1, keepdims=True) * other
        length = (direction**2).sum(-1, keepdims=True)
        directions.append(direction / np.sqrt(np.maximum(length, TINY)))
        direction, errors = directions[-1][:, :, None], errors[:, each]
        errors = errors - (errors * direction).sum(-1, keepdims=True) * direction
        shared = _products(direction, pulses)[:, :, :, 0]
        information = np.maximum(information[:, :, each] - shared**2, 0.0)
    return outliers


def _products(errors: np.ndarray, pulses: np.ndarray) -> np.ndarray:
    """Products (2, J, S, C, T) of errors (J, S, C, T) with a pulse, and a step, in each row."""
    products = np.empty((2, *errors.shape))
    lanes = errors.reshape(len(pulses), -1, errors.shape[-1])
    np.matmul(lanes, pulses.swapaxes(1, 2), out=products[0].reshape(lanes.shape))
    np.cumsum(products[0, ..., ::-1], -1, out=products[1, ..., ::-1])
    return products


def _largest_odds(series: np.ndarray, odds: np.ndarray) -> np.ndarray:
    """Places of the largest odds of each series, where they are above 0."""
    order = np.lexsort([-odds, series])
    first = np.append(True, np.diff(series[order]) > 0)[: len(order)]
    best = order[first]
    return best[odds[best] > 0]
