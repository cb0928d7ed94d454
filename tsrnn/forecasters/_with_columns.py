"""Trained networks behind a regression on columns: they forecast its residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from tsrnn.contract import (
    Arguments,
    FittedData,
    Origins,
    SeriesArrays,
    Support,
    check_arrays,
    level_name,
    record,
)
from tsrnn.data import Layout, Panel, Scaler
from tsrnn.forecasters._columns import (
    REGRESSION,
    ColumnState,
    FittedColumns,
    effect_kinds,
    file_shapes,
    state_from_file,
    state_to_file,
)
from tsrnn.forecasters._forecast_part import PartOfParts, StateOfParts
from tsrnn.forecasters._repeated import repeated
from tsrnn.forecasters._scaling import boxcox
from tsrnn.interpret import ForecastPaths
from tsrnn.prior import LONGEST_SEASON

if TYPE_CHECKING:
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._settings import Settings
    from tsrnn.forecasters._stability import FeatureStability
    from tsrnn.forecasters._state import RecurrentState
    from tsrnn.forecasters._summary import NetworkSummary

ORIGINS_AT_ONCE = 64  # bounds the memory: hourly data have hundreds of columns at each step


@dataclass(frozen=True, eq=False)
class StateWithColumns(StateOfParts, SeriesArrays):
    """State of S series whose columns have effects.

    Attributes
    ----------
    network : RecurrentState
        State of the networks, which read the residuals of the regression.
    columns : ColumnState
    last : ndarray of shape (S, C)
        Last row of the targets.
    target_scale : ndarray of shape (S, C)
        Standard deviation of each target in the rows fitted to.

    Examples
    --------
    >>> from tsrnn import LRUForecaster
    >>> from tsrnn.datasets import load_macrodata
    >>> growth = load_macrodata()[["realcons", "realdpi"]].pct_change().dropna()
    >>> model = LRUForecaster(4, target="realcons", known_ahead="realdpi", max_epochs=1)
    >>> model.fit(growth).state_.last.shape
    (1, 1)
    """

    network: RecurrentState
    columns: ColumnState
    last: np.ndarray
    target_scale: np.ndarray

    @property
    def _by_series(self) -> tuple[RecurrentState]:
        return (self.network,)


@dataclass(frozen=True, eq=False)
class FittedWithColumns(PartOfParts[StateWithColumns]):
    """Fitted networks behind a regression on columns, whose effects are added to the forecasts.

    Attributes
    ----------
    columns : FittedColumns
    network : FittedNetworks
        Trained on the residuals of the regression, with the columns as inputs.
    target_scale : ndarray of shape (S, C)
        Standard deviation of each target in the rows fitted to.

    Examples
    --------
    >>> from tsrnn import LRUForecaster
    >>> from tsrnn.datasets import load_macrodata
    >>> growth = load_macrodata()[["realcons", "realdpi"]].pct_change().dropna()
    >>> model = LRUForecaster(4, target="realcons", known_ahead="realdpi", max_epochs=1)
    >>> model.fit(growth).fitted_.columns.table()["effect of"].tolist()[0]
    'realdpi'
    """

    columns: FittedColumns
    network: FittedNetworks
    target_scale: np.ndarray

    @property
    def first(self) -> FittedNetworks:
        """Networks, which have the arguments, the data and the horizon."""
        return self.network

    @property
    def point(self) -> str:
        """Statistic that the point forecast estimates."""
        return self.network.point

    def with_layout(self, layout: Layout) -> FittedWithColumns:
        """Replace the layout of the data."""
        return replace(self, network=self.network.with_layout(layout))

    def with_supports(self, supports: tuple[Support, ...]) -> FittedWithColumns:
        """Replace the supports of the targets."""
        return replace(self, network=self.network.with_supports(supports))

    @property
    def guarantee(self) -> str:
        """Guarantee of the prediction intervals, and the assumptions behind it."""
        return self.network.guarantee

    def filter(self, panel: Panel, seen: StateWithColumns | None = None) -> StateWithColumns:
        """State after the rows of a panel; `seen` is the state of the series fitted to.

        New series have the mean coefficients of the series fitted to.
        """
        last = None if seen is None else (seen.last_times[0], seen.last[0])
        from tsrnn.forecasters._fitted import fitted_series  # torch

        series = fitted_series(self.data.ids, panel, last)
        left, columns = self.without_effects(self.columns.begin(panel), panel)
        scale = Scaler.fit(panel.values, panel.indptr).scale
        scale[series >= 0] = self.target_scale[series[series >= 0]]
        network = self.network.filter_series(left, series)
        return StateWithColumns(network, columns, last_rows(panel), scale)

    def advance(self, state: StateWithColumns, panel: Panel) -> StateWithColumns:
        """Append rows to all series, given in the same order."""
        left, columns = self.without_effects(state.columns, panel, state.network.tail)
        network = self.network.advance(state.network, left)
        return replace(state, network=network, columns=columns, last=last_rows(panel))

    def forecast(
        self, state: StateWithColumns, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Forecasts (S, h, C) and their intervals, under the names of `FittedModel`."""
        left = self.network.forecast(state.network, h, levels, future)
        shares, deviation = self.effects_ahead(state, h, future)
        widening = self.columns.widening(state.columns)[:, None]
        return self.with_effects(left, levels, shares, deviation, widening)

    def without_effects(
        self, state: ColumnState, panel: Panel, past: Sequence[np.ndarray] | None = None
    ) -> tuple[Panel, ColumnState]:
        """Residuals of the regression without gaps, and the state of the columns after them.

        Gaps are filled with the value one season earlier; `past` holds the residuals before.
        """
        left, columns = self.columns.advance(state, panel)
        return repeated(left, self.network.settings.season, past), columns

    def effects_ahead(
        self, state: StateWithColumns, h: int, future: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Effects of the columns ahead and standard errors of the effects, each (S, h, C)."""
        exog = self.columns.exog_ahead(state.columns, h, future)
        times = self.data.times_ahead(state, h)
        matrix, shares = self.columns.ahead(state.columns, times, exog)
        return shares, np.sqrt(self.columns.variances(state.columns, matrix))

    def with_effects(
        self,
        left: dict[str, np.ndarray],
        levels: list[float],
        shares: np.ndarray,
        deviation: np.ndarray,
        widening: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Add the effects of columns to forecasts of the residuals.

        Parameters
        ----------
        left : dict of ndarray of shape (..., h, C)
            Forecasts of the residuals under the names of `FittedModel`.
        levels : list of float
        shares : ndarray of shape (..., h, C)
            Effects of the columns.
        deviation : ndarray of shape (..., h, C)
            Standard errors of the effects.
        widening : ndarray that broadcasts to (..., h, C)
            Factors of the widths.
        """
        point, restored = left[""], self.columns.effects.restored
        if self.columns.effects.logarithms:
            deviation = deviation * np.abs(point)
        forecasts = {"": restored(point, shares)}
        for level, side in product(levels, ("lo", "hi")):
            name = f"-{side}-{level_name(level)}"
            away, beyond = left[name] - point, ndtri(0.5 + level / 200) * deviation
            # Both errors are treated as normal and independent: their half widths add as roots of
            # squares. A constant series has no width (sign 0) and gets none from coefficients.
            away = np.sign(away) * widening * np.hypot(away, beyond)
            forecasts[name] = restored(point + away, shares)
        return forecasts

    def rolling(
        self, state: StateWithColumns, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        """Forecasts, shape (n, h, C), from n origins within a panel after `state`."""
        left, _ = self.without_effects(state.columns, panel, state.network.tail)
        forecasts = self.network.rolling(state.network, left, origins, h, levels)
        shares, deviation = np.empty((2, *forecasts[""].shape))
        for i, (matrix, centre, *_) in enumerate(self.columns.along(state.columns, panel)):
            known = state.columns.select(np.array([i]))
            known = replace(known, centre=np.zeros_like(known.centre))
            coefficients = self.columns.coefficients(known)[0]
            of_series = np.flatnonzero(origins.series == i)
            for begin in range(0, len(of_series), ORIGINS_AT_ONCE):
                at = of_series[begin : begin + ORIGINS_AT_ONCE]
                first = origins.first[at] - panel.indptr[i]
                ahead = matrix[first[:, None] + np.arange(h)]
                shares[at] = self.columns.clipped(ahead @ coefficients.T)
                # Each origin has its own centre: the average of the columns up to that row.
                apart = (ahead - centre[first][:, None]).reshape(1, -1, matrix.shape[1])
                variance = self.columns.variances(known, apart)
                deviation[at] = np.sqrt(variance).reshape(len(at), h, -1)
        widening = self.columns.widening(state.columns)[origins.series][:, None]
        return self.with_effects(forecasts, levels, shares, deviation, widening)

    def simulate(
        self,
        state: StateWithColumns,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw paths, shape (n, S, h, C), each with its own draw of the coefficients.

        All steps of a path share one normal draw, as they share the coefficients.
        """
        paths = self.network.simulate(state.network, h, n, future, rng)
        point = self.network.forecast(state.network, h, [], future)[""]
        shares, deviation = self.effects_ahead(state, h, future)
        drawn = rng.standard_normal((n, *deviation[:, :1].shape)) * deviation
        paths = point + self.columns.widening(state.columns)[:, None] * (paths - point)
        return self.columns.effects.restored(paths, shares + drawn)

    def contributions(
        self, state: StateWithColumns, future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Additive parts of the (transformed) forecasts, shape (S, h, C): network, then columns."""
        parts = self.network.contributions(state.network, future)
        point = self.network.forecast(state.network, self.horizon, [], future)[""]
        times = self.data.times_ahead(state, self.horizon)
        exog = self.columns.exog_ahead(state.columns, self.horizon, future)
        effects, _ = self.columns.contributions(state.columns, times, exog, point)
        if (exponent := self.network.scaling.boxcox) is not None:
            added = effects.sum(-1)
            change = boxcox(point + added, exponent) - boxcox(point, exponent)
            # The derivative replaces the difference quotient where that loses all digits.
            small = np.abs(added) < 1e-6 * point
            slope = change / np.where(small, 1.0, added)
            effects = effects * np.where(small, point ** (exponent - 1), slope)[..., None]
        return parts | dict(zip(self.columns.part_names, np.moveaxis(effects, -1, 0), strict=True))

    @property
    def trained(self) -> FittedNetworks:
        """Networks behind the regression, without it."""
        return self.network

    @property
    def regression(self) -> FittedColumns:
        """Regression on exogenous columns."""
        return self.columns

    def forecast_paths(self, state: StateWithColumns, at: str) -> ForecastPaths:
        """Paths of the networks' forecasts, without the effects of columns."""
        return self.network.forecast_paths(state.network, at)

    def summarise(
        self, forecaster: RecurrentForecaster, stability: FeatureStability | None
    ) -> NetworkSummary:
        """Summary of the networks, with the effects of columns."""
        from tsrnn.forecasters._summary import summarise

        return summarise(self.network, forecaster, stability, self.columns)

    def program(self) -> FittedNetworks:
        """Refuse: a program has no regression."""
        columns = dict.fromkeys(self.data.given_ahead, "none")
        raise ValueError(
            "a program is a network alone; the effects of columns of this forecaster are a "
            f"regression before it. Fit with effects={columns} and without calendar, so that the "
            "network learns them, or keep it by save and tsrnn.load"
        )

    def to_file(self, state: StateWithColumns) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays of a file; `with_columns_from_file` is the inverse."""
        header, arrays = self.network.to_file(state.network)
        of_columns, numbers = self.columns.to_file()
        numbers |= state_to_file(state.columns)
        numbers |= {"columns.last": state.last, "columns.target_scale": self.target_scale}
        return header | of_columns, arrays | numbers


def fit_columns(
    arguments: Arguments, data: FittedData, panel: Panel, settings: Settings
) -> FittedColumns | None:
    """Fit the regression of a panel on the columns known ahead; None if none has an effect.

    Columns not known ahead are left to the network. Static columns are inputs of both.
    """
    kinds = effect_kinds(arguments, data)
    history = [name for name in data.exog_names if name not in data.known_ahead]
    if lagged := [name for name in history if "lagged" in kinds.get(name, ())]:
        raise ValueError(
            "a network trained on the series learns the effects of columns that are not known "
            f'ahead by itself; got "lagged" for {lagged}. Leave them out of effects, name them in '
            "known_ahead, or leave out the arguments that ask for a network of these series"
        )
    if len(history) == len(data.exog_names):
        return None
    columns = FittedColumns.of(
        panel,
        data,
        settings.season if settings.season <= LONGEST_SEASON else 1,
        kinds | dict.fromkeys((name for name in history if name not in data.static), ("none",)),
        factors=settings.boxcox is not None,  # dividing keeps the residuals positive for Box-Cox
    )
    return columns if any(term.column >= 0 for term in columns.effects.terms) else None


def with_columns_from_file(
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    network: FittedNetworks,
    state: RecurrentState,
) -> tuple[FittedWithColumns, StateWithColumns]:
    """Read the regression that `FittedWithColumns.to_file` wrote; `network` is read already."""
    data, season = network.data, network.settings.season
    season = season if season <= LONGEST_SEASON else 1
    record(REGRESSION, may_lack=["panel"])(header, "fitted")
    by_series = "float64", (len(data.ids), data.n_targets)
    shapes = {f"columns.{name}": by_series for name in ("last", "target_scale")}
    check_arrays(arrays, file_shapes(header, data, season) | shapes)
    columns = FittedColumns.from_file(header, arrays, data, season)
    fitted = FittedWithColumns(columns, network, arrays["columns.target_scale"])
    state_of_columns = state_from_file(arrays, data)
    return fitted, StateWithColumns(
        state, state_of_columns, arrays["columns.last"], fitted.target_scale
    )


def last_rows(panel: Panel) -> np.ndarray:
    """Last row of the targets of each series, shape (S, C)."""
    return panel.values[panel.indptr[1:] - 1]
