"""Series of a panel in batches of similar length, scaled to a size or a spread of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.linear._regressors import (
    Columns,
    by_kept,
    columns_of,
    crowded,
    independent_columns,
    known_part,
)
from tsrnn.linear.arma._prepare import batches, first_rows, from_row, unit_data

_ROUNDING = 1e-12  # range over size, below which a series varies by rounding only


@dataclass(frozen=True, eq=False)
class Scaled(SeriesArrays):
    """Series less a centre, over a scale."""

    values: np.ndarray  # (N, T)
    scale: np.ndarray  # (N,)
    centre: np.ndarray  # (N,)
    columns: np.ndarray | None = None  # (N, T, k), exogenous

    @property
    def rows(self) -> np.ndarray:
        """Values (N, T) or, with columns, (N, T, 1 + k): values, then columns."""
        if self.columns is None:
            return self.values
        return np.concatenate([self.values[:, :, None], self.columns], 2)


@dataclass(frozen=True, eq=False)
class Sample(SeriesArrays):
    """Series of similar length."""

    units: np.ndarray  # (N,)
    values: np.ndarray  # (N, T), in the units of the data, NaN where missing and after the end
    columns: Columns | None = None  # exogenous columns

    @property
    def kept(self) -> tuple[int, ...]:
        """Positions of the exogenous columns with a coefficient."""
        return () if self.columns is None else self.columns.kept

    @cached_property
    def sized(self) -> Scaled:
        """Series of mean size one, for models in which zero has a meaning."""
        size = _mean(np.abs(self.values))
        size = np.where(size > 0, size, 1.0)  # of zeros alone
        return Scaled(self.values / size[:, None], size, np.zeros(len(size)), self._columns)

    @cached_property
    def centred(self) -> Scaled:
        """Series centred and scaled to mean absolute deviation one, for models of any level.

        Scaled by size, a series far from zero would lose its variance to rounding.
        """
        # The mean of equal values may differ from them by rounding.
        mean = np.clip(_mean(self.values), np.nanmin(self.values, 1), np.nanmax(self.values, 1))
        away = self.values - mean[:, None]
        spread = _mean(np.abs(away))
        spread = np.where(spread > 0, spread, self.sized.scale)  # of a constant
        return Scaled(away / spread[:, None], spread, mean, self._columns)

    @property
    def _columns(self) -> np.ndarray | None:
        return self.columns.values if self.kept and self.columns is not None else None


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean (N,) over the observed rows of values (N, T)."""
    seen = np.isfinite(values)
    return np.where(seen, values, 0.0).sum(1) / seen.sum(1)


Refusals = Callable[[np.ndarray, np.ndarray, tuple[int, ...]], dict[int, str]]


def scaled_samples(
    panel: Panel,
    refusals: Refusals,
    *,
    trend: bool = False,
    season: tuple[int, int] = (1, 0),
    known: bool = False,
) -> Iterator[tuple[Sample | None, dict[int, str]]]:
    """Yield samples of the units of a panel, with the reasons of refused units.

    ``refusals(values (n, T), count (n,), kept)`` returns the reasons of a family, by row, for
    series that keep these exogenous columns. Columns spanned by the constant, by a linear `trend`
    or by the `season` (its rows, and observations from which it may be chosen) have no coefficient;
    with `known` coefficients all columns have one.
    """
    for units in batches(panel):
        values, exog = unit_data(panel, units)
        # States run from the first value on: earlier rows change nothing.
        first = first_rows(values)
        values = from_row(values, first)
        if exog is not None and first.any():
            moved = [from_row(column, first) for column in np.moveaxis(exog, 2, 0)]
            exog = np.nan_to_num(np.stack(moved, 2))  # 0 after the end, as `unit_data` has it
        seen = np.isfinite(values)
        count = seen.sum(1)
        for kept, group in _groups(exog, seen, trend, season, known):
            n_columns = 0 if exog is None else exog.shape[2]
            refused = refusals(values[group], count[group], kept)
            refused |= crowded(count[group], n_columns)
            reasons = {int(units[group[i]]): reason for i, reason in refused.items()}
            fine = np.delete(group, list(refused))
            if not len(fine):
                yield None, reasons
                continue
            columns = None
            if exog is not None:
                columns = columns_of(exog[fine], seen[fine], kept, known)
            yield Sample(units[fine], without_rounding(values[fine]), columns), reasons


def _groups(
    exog: np.ndarray | None, seen: np.ndarray, trend: bool, season: tuple[int, int], known: bool
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield each set of kept columns with its series (n,)."""
    if exog is None:
        return iter([((), np.arange(len(seen)))])
    if known:
        return iter([(tuple(range(exog.shape[2])), np.arange(len(seen)))])
    long = (seen.sum(1) >= season[1])[:, None]
    without, within = (
        independent_columns(exog, seen, known_part(seen.shape[1], trend=trend, period=period))
        for period in (1, season[0])
    )
    return by_kept(np.where(long, within, without))


def rows_to_last_value(values: np.ndarray) -> np.ndarray:
    """Number (N,) of rows of series (N, T) up to the last observation."""
    seen = np.isfinite(values)
    return np.where(seen.any(1), values.shape[1] - seen[:, ::-1].argmax(1), 0)


def without_rounding(values: np.ndarray) -> np.ndarray:
    """Replace series (N, T) that vary by rounding only by their first value."""
    seen = np.isfinite(values)
    highest = np.where(seen, values, -np.inf).max(1)
    lowest = np.where(seen, values, np.inf).min(1)
    size = np.maximum(np.abs(highest), np.abs(lowest))
    still = np.flatnonzero(highest - lowest <= _ROUNDING * size)
    if not len(still):
        return values
    values, first = values.copy(), seen.argmax(1)
    values[still] = np.where(seen[still], values[still, first[still]][:, None], np.nan)
    return values
