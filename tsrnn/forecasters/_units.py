"""Standardised rows of all units with their local level and spread, and selections of rows.

A *unit* is what one run of the network forecasts: a series if its targets are forecast jointly, one
target of a series otherwise. Units are ordered by series, and within a series by target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.forecasters._scaling import Scaling, Standardised
from tsrnn.forecasters._settings import Settings

SPREAD_FLOOR = 0.1  # in naive errors of the series: noise of a flat stretch is not blown up
VALUES_AT_ONCE = 2**20  # in windows of one call of `autocorrelation`, which fit in the caches
ROWS_AT_ONCE = 2**20  # in one call of `_moments`, of some tens of megabytes
MOST_ROWS = 200_000  # in a regression: more add time but hardly accuracy
SAMPLE_UNITS, SAMPLE_ROWS = 16, 512  # sample kept for features of blocks and of whole forecasts


@dataclass(frozen=True, eq=False)
class Units:
    """Rows of all units, concatenated, with the local level and spread at each row.

    A unit is a series, or one target of a series if targets are forecast one by one.

    Attributes
    ----------
    values : Tensor of shape (N, C + E)
        Standardised targets, then exogenous columns.
    level, spread : Tensor of shape (N, C + E) and (N, C)
        Mean and standard deviation of the window of the last W rows, which is shorter at the start
        of a unit. The spread has a floor unless the unit is constant.
    indptr : Tensor of shape (U + 1,)
        Unit u has the rows indptr[u] to indptr[u + 1].
    window : int
        Window length W.
    n_targets : int
        Number of targets C.
    strength : Tensor of shape (N, J) or (N, C, J), optional
        Autocorrelations of each row's window at the seasons, see `with_strength`.
    path : Tensor of shape (N, h, C), optional
        Forecasts of an untrained linear path, relative to the level.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.data import read_panel
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> fitted = model.fit(load_elec_equip()[:-1]).fitted_
    >>> units, begin = fitted.units(model.state_, read_panel(load_elec_equip()[-1:], freq="MS"))
    >>> len(units), begin.tolist() == [units.window]
    (1, True)
    """

    values: Tensor
    level: Tensor
    spread: Tensor
    indptr: Tensor
    window: int
    n_targets: int
    strength: Tensor | None = None
    path: Tensor | None = None

    @property
    def starts(self) -> Tensor:
        """First row of each unit."""
        return self.indptr[:-1]

    @property
    def lengths(self) -> Tensor:
        """Rows of each unit."""
        return self.indptr.diff()

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> Units:
        """Copy in another precision or on another device."""
        moved = {name: part.to(device, dtype) for name, part in self._row_tensors().items()}
        return replace(self, **moved, indptr=self.indptr.to(device))

    def _row_tensors(self) -> dict[str, Any]:
        """Tensors whose first axis is the row."""
        parts: dict[str, Any] = {"values": self.values, "level": self.level, "spread": self.spread}
        optional = {"strength": self.strength, "path": self.path}
        return parts | {name: part for name, part in optional.items() if part is not None}

    def with_strength(self, seasons: Sequence[int], *, by_target: bool = False) -> Units:
        """Precompute the autocorrelations of every row's window at the lags `seasons`.

        Training reads each row many times. The mean over targets is kept unless `by_target`.
        """
        if not seasons:
            return self
        starts = torch.repeat_interleave(self.starts, self.lengths)
        rows = torch.arange(len(self.values))
        count = max(1, VALUES_AT_ONCE // self.window)
        parts = []
        for chunk in zip(rows.split(count), starts.split(count), strict=True):
            windows = self.lags(*chunk, range(self.n_targets)).unflatten(-1, (-1, self.window))
            windows = windows[..., None, :] if by_target else windows
            parts.append(autocorrelation(windows, seasons))
        return replace(self, strength=torch.cat(parts))

    def by_target(self) -> Units:
        """Split every unit into units of one target each, with the exogenous columns."""
        c, lengths = self.n_targets, self.lengths.repeat_interleave(self.n_targets)
        indptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        unit = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        rows = torch.arange(len(unit)) - indptr[unit] + self.starts.repeat_interleave(c)[unit]
        target = unit % c

        parts: dict[str, Any] = {}
        for name in ("values", "level", "spread"):
            columns = getattr(self, name)
            parts[name] = torch.cat([columns[rows, target][:, None], columns[rows, c:]], 1)
        return replace(self, **parts, indptr=indptr, n_targets=1, strength=None, path=None)

    def bounds_by_target(self, bounds: Tensor) -> Tensor:
        """Convert a row of each unit, (U,), to the corresponding rows of `by_target`, (U C,)."""
        lengths = self.lengths.repeat_interleave(self.n_targets)
        starts = lengths.cumsum(0) - lengths
        return starts + (bounds - self.starts).repeat_interleave(self.n_targets)

    @classmethod
    def concatenate(cls, parts: Sequence[Units]) -> Units:
        """Concatenate the units of several fits with the same window and columns."""
        if len(parts) == 1:
            return parts[0]
        tensors: dict[str, Any] = {
            name: torch.cat([getattr(part, name) for part in parts])
            for name in parts[0]._row_tensors()
        }
        lengths = torch.cat([part.lengths for part in parts])
        indptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        return replace(parts[0], **tensors, indptr=indptr)

    def split(self, counts: Sequence[int]) -> list[Units]:
        """Split into views of `counts` units each."""
        if len(counts) == 1:
            return [self]
        ends = np.cumsum(counts)
        bounds = self.indptr[torch.from_numpy(np.concatenate([[0], ends]))].tolist()
        return [
            replace(
                self,
                **{name: part[low:high] for name, part in self._row_tensors().items()},
                indptr=self.indptr[end - count : end + 1] - low,
            )
            for count, end, low, high in zip(counts, ends, bounds, bounds[1:], strict=False)
        ]

    def inputs(self, rows: Tensor) -> Tensor:
        """Inputs of the network at `rows`, shape (..., C + E)."""
        return network_inputs(self.values[rows], self.level[rows], self.spread[rows])

    def at(self, rows: Tensor, starts: Tensor) -> Windows:
        """Windows that end at `rows`; `starts` are the first rows of their units."""
        return Windows(
            self.level[rows],
            self.spread[rows],
            lambda columns: self.lags(rows, starts, columns),
            None if self.strength is None else self.strength[rows],
            None if self.path is None else self.path[rows],
        )

    def lags(self, rows: Tensor, starts: Tensor, columns: Sequence[int]) -> Tensor:
        """Deviations of columns from the level over the window that ends at each row.

        Parameters
        ----------
        rows, starts : integer Tensor of equal shape
            Rows, and the first row of the unit of each.
        columns : sequence of int

        Returns
        -------
        Tensor of shape (..., len(columns) * W)
            Oldest lag first within a column; zero before the start of the unit.
        """
        w, chosen = self.window, list(columns)
        values, level = self.values[:, chosen], self.level[rows][..., chosen, None]
        # Whole windows are rows of a strided view, and need no mask.
        if bool((rows - w + 1 >= starts).all()):
            lagged = values.unfold(0, w, 1).index_select(0, (rows - w + 1).flatten())
            return (lagged.unflatten(0, rows.shape) - level).flatten(-2)
        lag_rows = rows[..., None] + torch.arange(1 - w, 1, device=rows.device)
        known = lag_rows >= starts[..., None]
        deviation = values[lag_rows.clamp(min=0)].movedim(-1, -2) - level
        return torch.where(known[..., None, :], deviation, torch.zeros_like(deviation)).flatten(-2)


class Windows(NamedTuple):
    """Windows of the last W rows before and at each forecast origin.

    Attributes
    ----------
    level, spread : Tensor of shape (..., C + E) and (..., C)
        Local level and spread at the last row of each window, as in `Units`.
    lags : callable
        Maps positions of columns to their deviations from the level, as `Units.lags`.
    strength : Tensor of shape (..., J) or (..., C, J), optional
        Autocorrelations of the windows at the seasons, if precomputed.
    path : Tensor of shape (..., h, C), optional
        Forecasts of the linear path relative to the level, if precomputed.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.forecasters import Windows
    >>> rows = torch.tensor([[[0.0], [1.0], [3.0]]])
    >>> known, varies = torch.tensor([[2]]), torch.tensor([[1.0]])
    >>> windows = Windows.of(rows, known, varies, local_level=True)
    >>> windows.level.tolist(), windows.lags([0]).tolist()
    ([[2.0]], [[0.0, -1.0, 1.0]])
    """

    level: Tensor
    spread: Tensor
    lags: Callable[[Sequence[int]], Tensor]
    strength: Tensor | None = None
    path: Tensor | None = None

    @classmethod
    def of(cls, rows: Tensor, count: Tensor, varies: Tensor, *, local_level: bool) -> Windows:
        """Windows of the last W rows of each unit.

        Parameters
        ----------
        rows : Tensor of shape (U, W, C + E)
            Standardised rows, preceded by padding.
        count : Tensor of shape (U, 1)
            Number of rows after the padding.
        varies : Tensor of shape (U, C)
            1, or 0 for constant units.
        local_level : bool
            As in `make_units`.
        """
        known = torch.arange(rows.shape[1]) >= rows.shape[1] - count
        level, spread = torch.zeros_like(rows[:, -1]), varies
        if local_level:
            # Two passes are exact, and cheap for one window; `window_moments` serves whole panels.
            # Differences from the last row make the spread of a constant window exactly zero.
            away = torch.where(known[..., None], rows - rows[:, -1:], 0.0)
            mean = away.sum(1) / count
            centred = torch.where(known[..., None], away - mean[:, None], 0.0)
            level = rows[:, -1] + mean
            spread = floored_spread(centred.square().sum(1) / count, varies)

        def lags(columns: Sequence[int]) -> Tensor:
            deviations = (rows - level[:, None])[..., list(columns)]
            return torch.where(known[..., None], deviations, 0.0).mT.flatten(1)

        return cls(level, spread, lags)


def autocorrelation(windows: Tensor, lags: Sequence[int]) -> Tensor:
    r"""Autocorrelations of windows, shape (..., len(lags)), for lags less than W.

    .. math:: \rho_k = \sum_{t > k} d_t d_{t-k}
        \Big/ \sqrt{\textstyle\sum_{t > k} d_t^2 \sum_{t > k} d_{t-k}^2}

    `windows`, shape (..., C, W), are deviations from the mean of the window, zero before the start
    of the series. The mean over the C columns is taken, with zero for a constant column.
    """
    correlations = []
    for lag in lags:
        late, early = windows[..., lag:], windows[..., :-lag]
        squares = late.square().sum(-1) * early.square().sum(-1)
        varies = squares > 0
        # 1 for a constant window: the derivative of the root of zero would be NaN.
        size = torch.where(varies, squares, 1.0).sqrt()
        product = (late * early).sum(-1)
        correlations.append(torch.where(varies, product / size, 0.0).mean(-1))
    return torch.stack(correlations, -1)


def floored_spread(variance: Tensor, varies: Tensor) -> Tensor:
    """Local spread, shape (..., C), from variances; with a floor where the series `varies`."""
    return (variance[..., : varies.shape[-1]] + (SPREAD_FLOOR * varies) ** 2).sqrt()


def network_inputs(rows: Tensor, level: Tensor, spread: Tensor) -> Tensor:
    """Inputs of the network, shape (..., C + E).

    Targets are deviations from the level over the spread. `rows` are standardised; `level`, shape
    (..., C + E), and `spread`, shape (..., C), are local. Exogenous columns are unchanged.
    """
    c = spread.shape[-1]
    # A spread of zero means a constant window, whose deviation is zero as well.
    scale = torch.where(spread > 0, spread, torch.ones_like(spread))
    return torch.cat([(rows[..., :c] - level[..., :c]) / scale, rows[..., c:]], -1)


def units_of(values: np.ndarray, indptr: np.ndarray, scaling: Scaling, settings: Settings) -> Units:
    """Build the units of series from standardised rows, shape (N, C + E).

    Series i has the rows indptr[i] to indptr[i + 1]. A series is a unit if ``settings.joint``;
    otherwise each of its targets is a unit, with all exogenous columns.
    """
    return _units_of(values, indptr, scaling.constant, settings)


def units_of_each(rows: Sequence[Standardised], settings: Sequence[Settings]) -> list[Units]:
    """Build the units of several fits whose settings differ in input size and local level only."""
    by_window: dict[tuple[int, bool], list[int]] = {}
    for i, of_fit in enumerate(settings):
        by_window.setdefault((of_fit.input_size, of_fit.local_level), []).append(i)
    units: dict[int, Units] = {}
    for alike in by_window.values():
        # Together, as the moments of windows loop over steps and are vectorised over units.
        lengths = np.concatenate([rows[i].lengths for i in alike])
        together = _units_of(
            np.concatenate([rows[i].values for i in alike]),
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([rows[i].scaling.constant for i in alike]),
            settings[alike[0]],
        )
        counts = [rows[i].scaling.constant.size // together.n_targets for i in alike]
        units |= zip(alike, together.split(counts), strict=True)
    return [units[i] for i in range(len(rows))]


def _units_of(
    values: np.ndarray, indptr: np.ndarray, constant: np.ndarray, settings: Settings
) -> Units:
    n_targets = constant.shape[1]
    if not settings.joint and n_targets > 1:
        # Repeat the rows of each series for each target, shape (N C, 1 + E).
        lengths = np.repeat(np.diff(indptr), n_targets)
        begin = np.repeat(indptr[:-1], n_targets)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(indptr[-1]) + np.repeat(begin - indptr[:-1], lengths)
        target = np.repeat(np.arange(len(lengths)) % n_targets, lengths)
        values = np.column_stack([values[rows, target], values[rows, n_targets:]])
        constant = constant.reshape(-1, 1)
    return make_units(
        values,
        indptr,
        window=settings.input_size,
        n_targets=n_targets if settings.joint else 1,
        constant=constant,
        local_level=settings.local_level,
    )


def make_units(
    values: np.ndarray,
    indptr: np.ndarray,
    *,
    window: int,
    n_targets: int,
    constant: np.ndarray,
    local_level: bool,
) -> Units:
    """Build units from their standardised rows, shape (N, C + E).

    `constant`, shape (U, C), is True for constant units. Their spread has no floor, so their
    forecast is their level. Without `local_level` the level is 0 and the spread 1, or 0 for
    constant units.
    """
    rows = torch.as_tensor(values, dtype=torch.float64)
    bounds = torch.as_tensor(indptr, dtype=torch.int64)
    varies = torch.as_tensor(~constant).repeat_interleave(bounds.diff(), 0).to(rows.dtype)
    if local_level:
        moments = window_moments(rows.numpy(), bounds.numpy(), window)
        level, variance = (torch.from_numpy(part) for part in moments)
        spread = floored_spread(variance, varies)
    else:
        level, spread = torch.zeros_like(rows), varies
    return Units(rows, level, spread, bounds, window, n_targets)


def by_series(values: Any, per_series: int) -> Any:
    """Arrange values of units by series.

    Parameters
    ----------
    values : ndarray or Tensor of shape (S * G, h, c, ...)
    per_series : int
        Number of units G of a series: 1, or the number of targets.

    Returns
    -------
    ndarray or Tensor of shape (S, h, C, ...)
        Values by series, with C = G c targets.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.forecasters import by_series
    >>> by_series(np.array([[[1], [2]], [[3], [4]]]), 2).tolist()
    [[[1, 3], [2, 4]]]
    """
    h, c, *rest = values.shape[1:]
    grouped = values.reshape(-1, per_series, h, c, *rest).swapaxes(1, 2)
    return grouped.reshape(-1, h, per_series * c, *rest)


def window_moments(
    values: np.ndarray, indptr: np.ndarray, window: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance, shape (N, C), of the last `window` rows up to each row, within its unit.

    They are of fewer rows at the start of a unit. Every window is the end of one block of rows and
    the beginning of the next. Blocks are summed separately, so that rows before a window do not
    affect its moments, not even by rounding; a constant window has exactly its value as mean, and
    variance zero.
    """
    mean, variance = np.empty_like(values), np.empty_like(values)
    padded = indptr + window * np.arange(len(indptr))  # the last block of a unit need not be whole
    low = 0
    while low < len(indptr) - 1:  # neighbouring units of about ROWS_AT_ONCE rows, or a single one
        high = int(np.searchsorted(padded, padded[low] + ROWS_AT_ONCE, side="right")) - 1
        high = max(high, low + 1)
        rows, bounds = slice(indptr[low], indptr[high]), indptr[low : high + 1] - indptr[low]
        mean[rows], variance[rows] = _moments(values[rows], bounds, window)
        low = high
    return mean, variance


def _moments(values: np.ndarray, indptr: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Moments of windows, combined from two neighbouring blocks of the length of a window."""
    lengths = np.diff(indptr)
    offset = np.arange(len(values)) - np.repeat(indptr[:-1], lengths)
    first = np.flatnonzero(offset % window == 0)  # first row of each block
    size = np.diff(np.append(first, len(values)))
    mean, squares = _running(values, first, size, 1)
    in_last = offset % window + 1  # rows of a window in the block of its last row
    late = np.flatnonzero((offset >= window) & (in_last < window))
    if len(late):
        before_mean, before_squares = _running(values, first + size - 1, size, -1)
        start, share = late - window + 1, (in_last[late] / window)[:, None]
        # Pool two samples (Chan et al.): squares within each, and between their means.
        away = mean[late] - before_mean[start]
        mean[late] = before_mean[start] + share * away
        squares[late] += before_squares[start] + away**2 * share * (1 - share) * window
    return mean, squares / np.minimum(offset + 1, window)[:, None]


def _running(
    values: np.ndarray, first: np.ndarray, size: np.ndarray, step: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean, and sum of squares about it, of the rows from the `first` of a block to each row."""
    place = np.arange(size.max())
    rows = first[:, None] + step * np.minimum(place, size[:, None] - 1)
    # Deviations from the first value, which is in every sample: the difference of squares below
    # loses no more digits than the number of rows has, and is exactly zero in a constant block.
    origin = values[first][:, None]
    away = values[rows] - origin
    total, count = away.cumsum(1), (place + 1)[:, None]
    squares = np.maximum((away**2).cumsum(1) - total**2 / count, 0.0)
    mean = origin + total / count
    inside = place < size[:, None]
    moments = np.empty_like(values), np.empty_like(values)
    for flat, of_blocks in zip(moments, (mean, squares), strict=True):
        flat[rows[inside]] = of_blocks[inside]
    return moments


def full_origins(
    begin: Tensor, ends: Tensor, horizon: int, starts: Tensor | None = None, most: int = MOST_ROWS
) -> tuple[Tensor, Tensor]:
    """Rows from `begin` on whose targets all lie before `ends`, and the starts of their units.

    At most `most` rows, drawn by `subset`.
    """
    counts = (ends - horizon - begin).clamp(min=0)
    before = counts.cumsum(0)
    chosen = subset(int(before[-1]), most)
    unit = torch.searchsorted(before, chosen, right=True)
    rows = begin[unit] + chosen - (before - counts)[unit]
    return rows, (begin if starts is None else starts)[unit]


def regression_origins(units: Units, ends: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    """Rows to estimate the linear path from: rows with a whole window, as at the forecast origin.

    All rows if there are fewer than the coefficients of a step.
    """
    whole = full_origins(units.starts + units.window - 1, ends, horizon, units.starts)
    if len(whole[0]) >= units.n_targets * units.window:
        return whole
    return full_origins(units.starts, ends, horizon)


def validation_origins(units: Units, split: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    """Rows whose targets all lie in the validation part, from `split` on."""
    return full_origins(split - 1, units.indptr[1:], horizon, units.starts)


def validation_starts(units: Units, settings: Settings) -> Tensor:
    """First row of the validation part of each unit, (U,); the end of the unit if it has none."""
    return units.starts + torch.from_numpy(settings.training_rows(units.lengths.numpy()))


def some_units(split: Tensor, ends: Tensor, most: int) -> Tensor:
    """Mask of units, (U,), drawn so that they have about `most` rows from `split` to `ends`."""
    rows = ends - split
    validated = torch.nonzero(rows > 0).flatten()
    count = max(1, len(validated) * most // int(rows.sum()))
    chosen = torch.zeros(len(ends), dtype=torch.bool)
    chosen[validated[subset(len(validated), count)]] = True
    return chosen


def subset(count: int, most: int) -> Tensor:
    """Draw at most `most` of `count` positions at random, sorted; the same at every call.

    A fixed stride could select one hour of the day only, or one of several targets.
    """
    if count <= most:
        return torch.arange(count)
    generator = torch.Generator().manual_seed(0)
    return torch.randperm(count, generator=generator)[:most].sort().values


def sample_rows(units: Units, most: int) -> Tensor:
    """Last rows, shape (B, T), T <= `most`, of a sample of units of at least median length."""
    length = min(int(units.lengths.median()), most)
    ends = units.indptr[1:][units.lengths >= length]
    return ends[subset(len(ends), SAMPLE_UNITS), None] + torch.arange(-length, 0)
