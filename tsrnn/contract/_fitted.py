"""Protocols of fitted models and of states of series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import pandas as pd

from tsrnn.contract._checks import positive_integer
from tsrnn.contract._estimator import Arguments
from tsrnn.contract._fitted_data import FittedData, zero_shares
from tsrnn.contract._rolling import Origins
from tsrnn.contract._support import Limits, Support, support_notes, widened_supports
from tsrnn.data import Layout, Panel


class SeriesState(Protocol):
    """State of S series after their last rows, from which forecasts continue; immutable.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    last_times : ndarray of shape (S,)
    target_scale : ndarray of shape (S, C)
        Positive standard deviation of each target in the data fitted to.

    Examples
    --------
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.datasets import load_macrodata
    >>> state = Naive(target="realgdp").fit(load_macrodata()[["realgdp"]]).state_
    >>> len(state.ids), state.last_times.shape, state.target_scale.shape
    (1, (1,), (1, 1))
    """

    @property
    def ids(self) -> pd.Index: ...

    @property
    def last_times(self) -> np.ndarray: ...

    @property
    def target_scale(self) -> np.ndarray: ...

    def select(self, series: np.ndarray, /) -> Self:
        """Select series by position."""

    def replaced(self, series: np.ndarray, new: Self, /) -> Self:
        """Return a copy with the states of `new` at positions `series`."""


class SeriesArrays:
    """Base of frozen dataclasses of arrays with a row per series.

    The first axis of arrays, indexes, dictionaries of arrays and nested records is the series.
    Fields of other types, such as a name or None, are common to all series.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from tsrnn.contract import SeriesArrays
    >>> @dataclass(frozen=True, eq=False)
    ... class Levels(SeriesArrays):
    ...     unit: str
    ...     level: np.ndarray
    >>> levels = Levels("m3/s", np.array([1.0, 2.0, 3.0]))
    >>> first = levels.select(np.array([0]))
    >>> levels.replaced(np.array([2]), first)
    Levels(unit='m3/s', level=array([1., 2., 1.]))
    """

    def select(self, series: np.ndarray) -> Self:
        """Select series by position."""
        parts = {f.name: _selected(vars(self)[f.name], series) for f in fields(self)}  # type: ignore[arg-type]
        return replace(self, **parts)  # type: ignore[type-var]

    def joined(self, others: Sequence[Self]) -> Self:
        """Append the series of other records."""
        names = [f.name for f in fields(self)]  # type: ignore[arg-type]
        parts = {n: _joined([getattr(part, n) for part in (self, *others)]) for n in names}
        return replace(self, **parts)  # type: ignore[type-var]

    def replaced(self, series: np.ndarray, new: Self) -> Self:
        """Return a copy with the rows of `new` at positions `series`, and the same ids."""
        names = [f.name for f in fields(self)]  # type: ignore[arg-type]
        parts = {n: _replaced(getattr(self, n), series, getattr(new, n)) for n in names}
        return replace(self, **parts)  # type: ignore[type-var]


def _selected(value: Any, series: np.ndarray) -> Any:
    if isinstance(value, SeriesArrays):
        return value.select(series)
    if isinstance(value, dict):
        return {name: array[series] for name, array in value.items()}
    return value[series] if isinstance(value, np.ndarray | pd.Index) else value


def _joined(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, SeriesArrays):
        return first.joined(values[1:])
    if isinstance(first, dict):
        return {name: _joined([value[name] for value in values]) for name in first}
    if isinstance(first, pd.Index):
        return first.append(list(values[1:]))
    return np.concatenate(values) if isinstance(first, np.ndarray) else first


def _replaced(value: Any, series: np.ndarray, new: Any) -> Any:
    if isinstance(value, SeriesArrays):
        return value.replaced(series, new)
    if isinstance(value, dict):
        return {name: _replaced(array, series, new[name]) for name, array in value.items()}
    if not isinstance(value, np.ndarray):
        return value
    copy = value.copy()
    copy[series] = new
    return copy


S = TypeVar("S", bound=SeriesState)


class FittedModel(Protocol[S]):
    """Fitted model: everything that a forecast needs besides the state of the series.

    It is immutable and independent of the estimator, so that copies share it. A subclass defines
    `arguments`, `data`, `horizon`, `guarantee`, `filter`, `advance`, `forecast` and `to_file`.
    Panels have S series, C targets and the exogenous columns of the data fitted to.

    Two methods are optional, and then named in `offers` of the estimator. `simulate(state, h, n,
    future, rng)` returns paths (n, S, h, C) for `Forecaster.sample_paths`. `variances(state, h)`
    returns conditional variances (S, h, C) of the residuals, or of forecast errors with
    ``of="forecast"``, for `Forecaster.predict_variance`.

    Attributes
    ----------
    arguments : Arguments
        Constructor arguments of the fit.
    data : FittedData
        Series and columns of the data fitted to.
    horizon : int
        Default number of steps of a forecast.
    guarantee : str
        Guarantee of the prediction intervals, and its assumptions.

    Examples
    --------
    >>> from tsrnn.baselines import Drift
    >>> from tsrnn.datasets import load_nile
    >>> model = Drift().fit(load_nile())
    >>> model.fitted_.forecast(model.state_, 3, [80], None)["-lo-80"].shape
    (1, 3, 1)
    """

    arguments: Arguments
    data: FittedData
    horizon: int

    @property
    def guarantee(self) -> str: ...

    @property
    def point(self) -> str:
        """Statistic of the forecast distribution that point forecasts are, such as "mean"."""
        return "mean"

    @property
    def recognises_support(self) -> bool:
        """True if the supports of the targets were read from the data."""
        return isinstance(self.arguments.support, str) and self.arguments.support == "auto"

    def filter(self, panel: Panel) -> S:
        """Return the state after the rows of a panel, also of one not fitted to."""

    def advance(self, state: S, panel: Panel) -> S:
        """Return the state after further rows of all series of `state`, in the same order."""

    def forecast(
        self, state: S, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Return forecasts (S, h, C) by suffix: "" for points, "-lo-80" and "-hi-80" for levels.

        `future` are the columns `data.known_ahead`, shape (S, h, n).
        """

    def with_layout(self, layout: Layout) -> Self:
        """Return the model with another layout, such as one with the times of further rows."""
        return replace(self, data=replace(self.data, layout=layout))  # type: ignore[type-var]

    def with_supports(self, supports: tuple[Support, ...]) -> Self:
        """Return the model with other supports of the targets."""
        return replace(self, data=replace(self.data, supports=supports))  # type: ignore[type-var]

    @property
    def support_notes(self) -> list[str]:
        """Sentences of a summary on the supports of the targets."""
        names, supports = self.data.layout.target_names, self.data.supports
        return support_notes(supports, names, self.recognises_support, self.point)

    def limits(self, panel: Panel) -> Limits:
        """Return the limits of forecasts after the rows of a panel, also of one not fitted to."""
        supports = widened_supports(panel, self.data.supports, self.recognises_support)
        return Limits(zero_shares(panel), supports)

    def to_file(self, state: S) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON values and arrays of a file; `Forecaster._from_file` is the inverse."""

    def states_at(self, state: S, panel: Panel, origins: Origins) -> Iterator[tuple[np.ndarray, S]]:
        """Yield, for k = 0, 1, ..., the k-th origin of each series and the states there."""
        on, known = np.arange(panel.n_series), np.zeros(panel.n_series, np.int64)
        for ordinal in range(origins.counts.max(initial=0)):
            at = np.flatnonzero(origins.ordinal == ordinal)
            # Keep the series that have a k-th origin.
            state, on = state.select(np.searchsorted(on, origins.series[at])), origins.series[at]
            begin, end = known[on], origins.offset[at]
            moves, known[on] = end > begin, end
            if moves.any():
                mask = np.isin(np.arange(panel.n_series), on[moves])
                new = panel.select(mask).between(begin[moves], end[moves])
                further = self.advance(state.select(np.flatnonzero(moves)), new)
                state = further if moves.all() else state.replaced(np.flatnonzero(moves), further)
            yield at, state

    def rolling(
        self, state: S, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        """Return forecasts (n, h, C) from n origins within a panel that follows `state`."""
        known_ahead = panel.exog_of(self.data.known_ahead)
        forecasts: dict[str, np.ndarray] = {}
        for at, reached in self.states_at(state, panel, origins):
            rows = origins.first[at][:, None] + np.arange(h)
            future = known_ahead[rows] if known_ahead.shape[1] else None
            for name, values in self.forecast(reached, h, levels, future).items():
                shape = len(origins.series), *values.shape[1:]
                forecasts.setdefault(name, np.empty(shape))[at] = values
        return forecasts

    def zero_probability(self, state: S, h: int) -> np.ndarray | None:
        """Return exact probabilities of zero (S, h, C), NaN for targets without one.

        None if all of them are computed from intervals.
        """
        return None

    def steps(self, method: str, h: int | None) -> int:
        """Return the checked number of steps of a method, `horizon` by default."""
        return self.horizon if h is None else positive_integer("h", h)
