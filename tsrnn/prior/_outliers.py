r"""Detection of gross errors and level shifts by structural models.

.. math:: y_t = n_t + \sum_i \delta_i f_i(t), \qquad \delta_i \mid \sigma^2 \sim N(0, \tau \sigma^2)

Here :math:`n_t` follows one of the structural models, and f is a pulse in one row or a step from a
row on. The filter turns y and f into innovations. The coefficient of each pulse and step and its
marginal likelihood are closed forms in products of innovations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logsumexp, softmax

from tsrnn.data import Layout, row_keys
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

SLAB = 100.0  # prior variance of a pulse over the noise variance
PRIOR_ODDS = 10.0  # log prior odds against a pulse or step in a row
MOST = 0.05  # largest share of outliers: a series with more is heavy-tailed by nature
FEWEST_SEEN = 12  # observed rows needed for the detection
LONGEST = 400  # rows of a stretch
LARGEST = 1e12  # bound of scaled values in median changes
LEAST_INFORMATION = 1e-8  # of a pulse, in a row without others of its season
AT_ONCE = 2**15  # innovations processed together: they stay in the cache
LEAST_LEFT = 1e-12  # smallest residual share of the squares
SHOWN = 10  # outliers in a summary
# Probability that an outlying last row is an error and not a shift: of 438 outliers before the last
# rows of M1 and M3 series, 276 were errors.
ERROR_SHARE = 0.6


def check_outliers(value: object) -> None:
    """Refuse a value of the argument `outliers` that is neither "pulse" nor None."""
    if value is not None and not (isinstance(value, str) and value == "pulse"):
        raise ValueError(f'outliers must be "pulse" or None; got {value!r}')


class Outliers(NamedTuple):
    """Outliers of U series, one entry each.

    Attributes
    ----------
    series, row : integer ndarray of shape (n,)
        Index of the series, and of the row in it.
    shift : boolean ndarray of shape (n,)
        True for level shifts, False for gross errors in single rows.
    size : ndarray of shape (n,)
        Error: value less its expectation given all other rows. Shift: change of the level.
    probability : ndarray of shape (n,)
        Posterior probability of the outlier.

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
        """Empty outliers."""
        return cls.of([])

    @classmethod
    def of(cls, entries: Sequence[tuple[int, int, bool, float, float]]) -> Outliers:
        """Outliers from a list of their fields."""
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
        """Errors in last observed rows: series (n,), rows (n,), probabilities (n,) of an error.

        A level shift is the alternative to an error. `values` and `lengths` are the arguments of
        `find_outliers`.
        """
        series, row = self.errors
        last = lengths[series] - 1 - missing_at_end(values[series], lengths[series]) == row
        probability = ERROR_SHARE * self.probability[~self.shift]
        return series[last], row[last], probability[last]


class PulseFilter(NamedTuple):
    """Innovations of pulses under J structural models."""

    kalman: StructuralFilter
    innovations: np.ndarray  # (J, T, T), [j, k, t] is the innovation in row t of a pulse in row k


def pulse_filter(season_length: int, rows: np.ndarray) -> PulseFilter:
    """Cached pulse filter of observed rows (T,), counted from 0."""
    n_rows = len(rows)
    if n_rows == rows[-1] + 1:  # without gaps the filter of a longer series begins with this one
        rows = np.arange(-(-n_rows // ROUND) * ROUND)
    kalman, innovations = _cached_filter(season_length, rows.astype(np.int64).tobytes())
    return PulseFilter(kalman, innovations[:, :n_rows, :n_rows])


@lru_cache(maxsize=4)  # 27 MB each for hours
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
    """Find gross errors and level shifts.

    Parameters
    ----------
    values : ndarray of shape (U, T)
        Rows of each series, left-aligned; NaN where a row is missing.
    lengths : integer ndarray of shape (U,)
    season_length : int
        1 for none.

    Returns
    -------
    Outliers
        Series have no outliers if they have fewer than 12 observed rows, repeat the previous row
        in most rows, or have more than one outlier in twenty rows. A shift in the last row cannot
        be distinguished from an error and counts as an error.

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
    # Stretches with the same observed rows share a filter and form a batch.
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
    """Overlapping stretches of a long series, with masks of the rows whose outliers are kept.

    Overlaps give each kept row neighbours on both sides.
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
    """Replace gross errors by NaN.

    Parameters
    ----------
    values : ndarray of shape (U, T)
    outliers : Outliers

    Returns
    -------
    ndarray of shape (U, T)
        Copy of the values.

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
    """Replace gross errors of a panel by NaN, and return the outliers.

    Rows (N, C), NaN if missing, are concatenated: series s has the rows indptr[s] to indptr[s + 1].
    Outliers are numbered by series, then by target.
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


def outlier_table(
    outliers: Outliers, layout: Layout, ids: pd.Index, times: np.ndarray
) -> pd.DataFrame:
    """Table of outliers with the keys of the data, ordered by series, target and row.

    Outliers are numbered by series, then by target; `ids` and `times` have an entry for each.
    Columns are id and time as in the data, ``target`` if there are several, ``kind`` ("error" or
    "shift"), ``size`` and ``probability``.
    """
    order = np.lexsort((outliers.row, outliers.series))
    frame = row_keys(layout, ids[order], times[order]).reset_index(drop=True)
    targets = np.array(layout.target_names, object)
    if len(targets) > 1:
        frame["target"] = targets[outliers.series[order] % len(targets)]
    frame["kind"] = np.where(outliers.shift[order], "shift", "error")
    frame["size"], frame["probability"] = outliers.size[order], outliers.probability[order]
    return frame


def outlier_lines(table: pd.DataFrame) -> list[str]:
    """Text lines of the ten likeliest outliers of an `outlier_table`, for a summary."""
    shown = table.sort_values("probability", ascending=False, kind="stable").head(SHOWN)
    shown = shown.sort_index()
    text = shown.to_string(index=False, float_format=lambda value: f"{value:.4g}")
    more = [f"and {len(table) - SHOWN} more in outliers_"] * (len(table) > SHOWN)
    return [*text.splitlines(), *more]


class _Lanes(NamedTuple):
    """Series on two scales, of the data and of logarithms, which are 0 if a value is not positive.

    `jacobian` is the log density of the first scale over each scale; minus infinity without
    logarithms. `change` is the median absolute change on each scale.
    """

    rows: np.ndarray  # scaled values, (S, 2, T)
    jacobian: np.ndarray  # (S, 2)
    change: np.ndarray  # (S, 2)
    values: np.ndarray  # (S, T)
    median: np.ndarray  # of the values, (S, 1)
    unit: np.ndarray  # of the first scale, (S, 1)

    @classmethod
    def of(cls, values: np.ndarray, unit: np.ndarray) -> _Lanes:
        """Scale values (S, T), on the first scale by their median absolute change `unit` (S, 1)."""
        # The median is robust against an error in the first row; squares of values beyond LARGEST
        # overflow.
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
        """Sizes (S, 2) in the units of the data, of the outlier of each series in its `row`."""
        each = np.arange(len(row))
        value, expected = self.values[each, row], self.rows[each, 0, row] - sizes[:, 0]
        # From the value before it was clipped.
        of_data = value - self.median[:, 0] - expected * self.unit[:, 0]
        return np.stack([of_data, -value * np.expm1(-sizes[:, 1])], 1)


def _stretch_outliers(
    values: np.ndarray, numbers: np.ndarray, season_length: int
) -> list[list[tuple[int, bool, float, float]]]:
    """Row, kind, size and probability of the outliers of each series in `values` (S, T).

    The likeliest outlier of each series is removed, until none is likely. `numbers` (T,) are the
    indices of the observed rows.
    """
    outliers: list[list[tuple[int, bool, float, float]]] = [[] for _ in values]
    n_rows = len(numbers)
    with np.errstate(over="ignore"):
        unit = np.median(np.abs(np.diff(values)), 1, keepdims=True)
    # Without a median change there is no scale.
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
    # A step in the first row is the level, a step in the last row is a pulse.
    taken[1, :, [0, -1]] = True
    directions: list[np.ndarray] = []  # (J, S, T) each, orthonormal innovations of the outliers
    while len(series):
        squares = (errors**2).sum(-1) + known  # (J, S, 2)
        half = 0.5 * (n_rows + DEGREES - len(directions))
        likelihood = constant - half * np.log(squares)
        product, precision = _products(errors, pulses), information + 1 / SLAB
        # A pulse or step explains `share` of the squares and gains at most -half log(1 - share) of
        # log likelihood. Only the few rows for which this exceeds the prior odds are evaluated.
        share = product**2
        share *= (1 / precision)[..., None, :]
        share *= (1 / squares)[..., None]
        likely = share.max(1).max(2) > -np.expm1(-PRIOR_ODDS / half)  # (2, S, T)
        kind, each, row = np.nonzero(likely & ~taken)
        if not len(each):
            return outliers
        gain = -half * np.log(np.maximum(1 - share[kind, :, each, :, row], LEAST_LEFT))
        gain -= 0.5 * np.log(SLAB * precision[kind, :, each, row])[..., None]  # (n, J, 2)
        # Average over models with and without the outlier: a seasonal model explains a single error
        # by its season, while other models fit much better once it is removed.
        without = TEMPERED * likelihood.swapaxes(0, 1)[each]
        explained = without + TEMPERED * gain
        odds = (logsumexp(explained, (1, 2)) - logsumexp(without, (1, 2))) / TEMPERED - PRIOR_ODDS
        best = _largest_odds(each, odds)
        kind, each, row, odds = kind[best], each[best], row[best], odds[best]
        if len(directions) >= max(1.0, MOST * n_rows):
            for number in series[each]:
                outliers[number].clear()
            return outliers
        weight = softmax(explained[best], (1, 2))  # of the models, given the outlier
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
        # Residuals are orthogonal to the outliers, as in a regression on them.
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
    """Products (2, J, S, C, T) of errors (J, S, C, T) with a pulse and a step in each row."""
    products = np.empty((2, *errors.shape))
    lanes = errors.reshape(len(pulses), -1, errors.shape[-1])
    np.matmul(lanes, pulses.swapaxes(1, 2), out=products[0].reshape(lanes.shape))
    np.cumsum(products[0, ..., ::-1], -1, out=products[1, ..., ::-1])
    return products


def _largest_odds(series: np.ndarray, odds: np.ndarray) -> np.ndarray:
    """Indices of the largest odds of each series, if positive."""
    order = np.lexsort([-odds, series])
    first = np.append(True, np.diff(series[order]) > 0)[: len(order)]
    best = order[first]
    return best[odds[best] > 0]
