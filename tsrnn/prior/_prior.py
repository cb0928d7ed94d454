"""Prior of time series, a mixture of components with layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import frequency_defaults, positive_integer, seed_of
from tsrnn.prior._counts import counts, intermittent
from tsrnn.prior._layers import calendar, level_shifts, outliers, rounding, scale, zeros
from tsrnn.prior._linear import ets, random_walk, sarima, structural
from tsrnn.prior._nonlinear import (
    bilinear,
    markov_switching,
    ornstein_uhlenbeck,
    threshold_ar,
    volatility,
)
from tsrnn.prior._trends import broken_trend, cycles, gaussian_process, growth_curve

Component = Callable[[np.random.Generator, int, int, int], np.ndarray]
Layer = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]

# Name -> component and its share.
COMPONENTS: dict[str, tuple[Component, float]] = {
    "ets": (ets, 0.2),
    "sarima": (sarima, 0.16),
    "structural": (structural, 0.16),
    "random_walk": (random_walk, 0.1),
    "broken_trend": (broken_trend, 0.08),
    "growth_curve": (growth_curve, 0.05),
    "cycles": (cycles, 0.05),
    "gaussian_process": (gaussian_process, 0.05),
    "volatility": (volatility, 0.03),
    "markov_switching": (markov_switching, 0.03),
    "ornstein_uhlenbeck": (ornstein_uhlenbeck, 0.02),
    "threshold_ar": (threshold_ar, 0.02),
    "bilinear": (bilinear, 0.01),
    "counts": (counts, 0.025),
    "intermittent": (intermittent, 0.015),
}
LAYERS: tuple[Layer, ...] = (calendar, level_shifts, outliers, zeros, scale, rounding)

_CHUNK = 10_000  # series that are drawn together, which bounds memory
_REDRAWS = 50
_LARGEST = 1e12  # squares are finite in float32
_LENGTH_GROUPS = 8  # groups of similar lengths, which waste few rows


@dataclass(frozen=True)
class SeriesPrior:
    r"""Prior of time series: a mixture of components that passes through layers.

    .. math:: y \sim L_q \circ \dots \circ L_1 (x), \qquad x \sim \sum_k w_k P_k

    Series with values that are not finite or above 1e12 are drawn again from their component: the
    prior is conditional on series that do not explode. The docstrings of components and layers
    give their distributions.

    Parameters
    ----------
    components : mapping of str to callable, or sequence of str and callables, optional
        Names of `COMPONENTS`, or functions ``component(rng, n_series, n_rows, season_length)`` that
        return an array (n_series, n_rows). All of `COMPONENTS` if None.
    weights : mapping of str to float, or sequence of float, optional
        Relative shares of the components, by name or in their order. If None, the shares of
        `COMPONENTS` for these, else equal shares.
    layers : sequence of callables, optional
        Functions ``layer(rng, values, season_length)`` that transform arrays (n_series, n_rows), in
        order; `LAYERS` if None, () for none. They skip series of integers, which are counts.

    See Also
    --------
    compose : Compose level, season and noise, for custom components.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import SeriesPrior
    >>> SeriesPrior().sample(1000, 60, season_length=12).shape
    (1000, 60)

    A custom component beside components of the package:

    >>> def trend(rng, n_series, n_rows, season_length):
    ...     return 1 + rng.exponential(size=(n_series, 1)) * np.arange(n_rows)
    >>> prior = SeriesPrior(["ets", "sarima", trend], weights=[0.4, 0.4, 0.2])
    >>> prior.sample(10, 24, season_length=4).shape
    (10, 24)
    """

    components: Mapping[str, Component] | Sequence[str | Component] | None = None
    weights: Mapping[str, float] | Sequence[float] | None = None
    layers: Sequence[Layer] | None = None

    def sample(
        self,
        n_series: int,
        n_rows: int,
        season_length: int | Mapping[int, float] = 1,
        random_state: Any = 0,
    ) -> np.ndarray:
        """Draw series of equal lengths.

        Parameters
        ----------
        n_series : int
        n_rows : int
            At least 2.
        season_length : int or mapping of int to float
            Season length in rows, 1 for none; or relative shares of several season lengths.
        random_state : int, numpy random generator or None

        Returns
        -------
        ndarray of shape (n_series, n_rows)
            Finite float64; components are in random order.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid, if a component returns a wrong shape or 50 times series that
            are not finite, or if a layer returns values that are not finite.
        """
        n_series = positive_integer("n_series", n_series)
        n_rows = positive_integer("n_rows", n_rows)
        if n_rows < 2:
            raise ValueError(f"n_rows must be at least 2; got {n_rows}")
        components, shares = self._mixture()
        layers = LAYERS if self.layers is None else tuple(self.layers)
        rng = np.random.default_rng(seed_of(random_state))
        if isinstance(season_length, Mapping):
            weights = _shares("season_length", list(season_length.values()), len(season_length))
            numbers = rng.multinomial(n_series, weights)
            drawn = [
                self.sample(int(number), n_rows, season, rng)
                for season, number in zip(season_length, numbers, strict=True)
                if number
            ]
            return rng.permutation(np.concatenate(drawn))
        season_length = positive_integer("season_length", season_length)
        values = np.empty((n_series, n_rows))
        for first in range(0, n_series, _CHUNK):
            chunk = values[first : first + _CHUNK]
            order = rng.permutation(len(chunk))
            ends = rng.multinomial(len(chunk), shares).cumsum()
            for (name, component), rows in zip(
                components.items(), np.split(order, ends[:-1]), strict=True
            ):
                if len(rows):
                    chunk[rows] = _finite_series(
                        name, component, rng, len(rows), n_rows, season_length
                    )
            measured = (chunk % 1 != 0).any(1)
            layered = chunk[measured]
            for layer in layers:
                layered = layer(rng, layered, season_length)
            if not np.isfinite(layered).all():
                raise ValueError("layers must return finite values; got some that are not")
            chunk[measured] = layered
        return values

    def sample_frame(
        self,
        n_series: int,
        lengths: int | tuple[int, int] | Sequence[int] = (20, 120),
        freq: str | int = "MS",
        season_length: int | None = None,
        random_state: Any = 0,
    ) -> pd.DataFrame:
        """Draw series of unequal lengths as a long frame for forecasters.

        Parameters
        ----------
        n_series : int
        lengths : int, pair of int or sequence of int
            Rows of every series, bounds of a log-uniform draw, or rows of each series.
        freq : str or int
            Alias of pandas such as "MS", "QS", "YS", "D", "h"; an integer is the step of an
            integer index.
        season_length : int, optional
            Season length in rows; by `freq` if None.
        random_state : int, numpy random generator or None

        Returns
        -------
        DataFrame
            Columns ``unique_id``, ``ds`` and ``y``; all series end at the same time.

        Raises
        ------
        TypeError, ValueError
            If an argument is invalid.

        Examples
        --------
        >>> from tsrnn.prior import SeriesPrior
        >>> frame = SeriesPrior().sample_frame(5, lengths=(24, 48), freq="MS")
        >>> list(frame.columns), frame["unique_id"].nunique()
        (['unique_id', 'ds', 'y'], 5)
        """
        n_series = positive_integer("n_series", n_series)
        season = frequency_defaults(freq).season if season_length is None else season_length
        rng = np.random.default_rng(seed_of(random_state))
        rows = _lengths(rng, n_series, lengths)
        series: list[np.ndarray] = [np.empty(0)] * n_series
        # Series of similar lengths are drawn together and cut at their start.
        for group in np.array_split(np.argsort(rows, kind="stable"), _LENGTH_GROUPS):
            if len(group):
                drawn = self.sample(len(group), int(rows[group].max()), season, rng)
                for place, values in zip(group, drawn, strict=True):
                    series[place] = values[len(values) - rows[place] :]
        longest = int(rows.max())
        times = (
            pd.RangeIndex(0, longest * freq, freq)
            if isinstance(freq, int)
            else pd.date_range("2000-01-01", periods=longest, freq=freq)
        )
        width = len(str(n_series - 1))
        names = np.array([f"s{i:0{width}d}" for i in range(n_series)])
        row = np.concatenate([np.arange(longest - n, longest) for n in rows])
        return pd.DataFrame(
            {"unique_id": np.repeat(names, rows), "ds": times[row], "y": np.concatenate(series)}
        )

    def _mixture(self) -> tuple[dict[str, Component], np.ndarray]:
        """Components by name, and their shares, which sum to one."""
        components = _components(self.components)
        weights = self.weights
        if weights is None:
            default = self.components is None
            shares = [COMPONENTS[name][1] if default else 1.0 for name in components]
        elif isinstance(weights, Mapping):
            if set(weights) != set(components):
                raise ValueError(
                    f"weights needs the names of the components, {sorted(components)}; got "
                    f"{sorted(weights)}"
                )
            shares = [weights[name] for name in components]
        else:
            shares = list(weights)
        return components, _shares("weights", shares, len(components))


def _shares(name: str, weights: Sequence[float], count: int) -> np.ndarray:
    """Normalise weights to a sum of one."""
    given = np.asarray(weights, dtype=float)
    if given.shape != (count,) or not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ValueError(
            f"{name} needs {count} finite numbers of at least 0 with a positive sum; got "
            f"{weights!r}"
        )
    return given / given.sum()


def _components(given: Any) -> dict[str, Component]:
    """Validate the argument `components` and return components by name."""
    if given is None:
        return {name: component for name, (component, _) in COMPONENTS.items()}
    pairs = given.items() if isinstance(given, Mapping) else (("", entry) for entry in given)
    components: dict[str, Component] = {}
    for label, entry in pairs:
        if isinstance(entry, str) and entry not in COMPONENTS:
            raise ValueError(f"components has the names {sorted(COMPONENTS)}; got {entry!r}")
        component = COMPONENTS[entry][0] if isinstance(entry, str) else entry
        if not callable(component):
            raise TypeError(
                "components needs names or functions component(rng, n_series, n_rows, "
                f"season_length); got {entry!r}"
            )
        name = str(label or getattr(component, "__name__", f"component {len(components)}"))
        if name in components:
            raise ValueError(
                f"components needs different names; got {name!r} twice. Give a mapping of names"
            )
        components[name] = component
    if not components:
        raise ValueError("components needs at least one component; got none")
    return components


def _finite_series(
    name: str,
    component: Component,
    rng: np.random.Generator,
    n_series: int,
    n_rows: int,
    season_length: int,
) -> np.ndarray:
    """Draw from a component until all series are finite."""
    values = np.empty((n_series, n_rows))
    missing = np.arange(n_series)
    for _ in range(_REDRAWS):
        drawn = np.asarray(component(rng, len(missing), n_rows, season_length), dtype=float)
        if drawn.shape != (len(missing), n_rows):
            raise ValueError(
                f"component {name!r} must return an array of shape {(len(missing), n_rows)}, "
                f"n_series and n_rows; got {drawn.shape}"
            )
        values[missing] = drawn
        missing = missing[~(np.abs(drawn) <= _LARGEST).all(1)]
        if not len(missing):
            return values
    raise ValueError(
        f"component {name!r} gave values that are not finite or above {_LARGEST:g} in "
        f"{_REDRAWS} draws; season_length={season_length}, n_rows={n_rows}"
    )


def _lengths(rng: np.random.Generator, n_series: int, lengths: Any) -> np.ndarray:
    """Validate the argument `lengths` and return the rows (n_series,) of each series."""
    given = np.atleast_1d(np.asarray(lengths))
    if given.dtype.kind not in "iu" or given.ndim != 1 or not (given >= 2).all():
        raise ValueError(
            "lengths must be an integer of at least 2, a pair of the least and the most, or one "
            f"for each series; got {lengths!r}"
        )
    if isinstance(lengths, tuple) and len(given) == 2:
        if given[0] > given[1]:
            raise ValueError(f"lengths must be the least before the most; got {lengths!r}")
        low, high = np.log(given[0]), np.log(given[1] + 1)
        return np.minimum(np.exp(rng.uniform(low, high, n_series)).astype(int), given[1])
    if len(given) not in (1, n_series):
        raise ValueError(
            f"lengths must have one entry for each of the {n_series} series; got {len(given)}"
        )
    return np.broadcast_to(given, n_series)
