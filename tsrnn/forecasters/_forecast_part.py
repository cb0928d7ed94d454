"""Protocol of what forecasts in a recurrent forecaster, alone or as one part of several."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
import pandas as pd

from tsrnn.contract import Arguments, FittedData, FittedModel, SeriesState, Summary
from tsrnn.data import Panel
from tsrnn.interpret import ForecastPaths, forecast_features

if TYPE_CHECKING:
    from tsrnn.forecasters._columns import FittedColumns
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._prior import FittedPrior, PriorState
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._stability import FeatureStability

S = TypeVar("S", bound=SeriesState)


class StateOfParts:
    """Base of states that consist of other states, which know the ids, times and row counts."""

    @property
    @abstractmethod
    def _by_series(self) -> tuple[Any, ...]:
        """States that together contain each series once, in order."""

    @property
    def ids(self) -> pd.Index:
        """Series ids, shape (S,)."""
        first, *others = self._by_series
        return first.ids.append([state.ids for state in others]) if others else first.ids

    @property
    def last_times(self) -> np.ndarray:
        """Last time of each series, shape (S,)."""
        return np.concatenate([state.last_times for state in self._by_series])

    @property
    def n_rows(self) -> np.ndarray:
        """Rows seen of each series, shape (S,)."""
        return np.concatenate([state.n_rows for state in self._by_series])


class ForecastPart(FittedModel[S], Protocol[S]):
    """Fitted model that forecasts in a recurrent forecaster.

    A forecaster holds a `ForecastPart` and never asks for its kind: trained networks, with or
    without a regression on columns before them, networks by series, a pretrained network, or a
    weighted mean of several. A kind that lacks a method raises an error that names the alternative.
    Missing values are skipped if `skips_missing`, and filled before the model reads them otherwise.
    Parts of a forecast with `shares_state` read the same state, and are evaluated together.
    """

    skips_missing: ClassVar[bool] = False
    shares_state: ClassVar[bool] = False

    def filter(self, panel: Panel, seen: S | None = None) -> S:
        """State after the rows of a panel; `seen` is the state of the series fitted to."""

    def contributions(self, state: S, future: np.ndarray | None) -> dict[str, np.ndarray]:
        """Additive parts, shape (S, h, C), of the forecasts of the next horizon, by name."""

    @property
    def trained(self) -> FittedNetworks:
        """Networks trained on all series, without a regression before them; raises without any."""

    @property
    def network_active(self) -> bool:
        """True if a network contributes to the forecasts."""
        return any(self.trained.best_epochs)

    @property
    def inactive_networks(self) -> dict[int, str]:
        """Reason by network, counted from 1, that contributes nothing to the forecasts."""
        from tsrnn.forecasters._summary import reason_of_inactivity

        networks = self.trained
        return {
            number: reason_of_inactivity(networks, number)
            for number, best in enumerate(networks.best_epochs, start=1)
            if best == 0
        }

    @property
    def regression(self) -> FittedColumns | None:
        """Regression on exogenous columns; None without one."""
        return None

    def pretrained(self, state: S) -> tuple[FittedPrior, PriorState] | None:
        """Pretrained network that forecasts, and its part of a state; None without one."""
        return None

    def parts_of(self, state: S) -> dict[str, tuple[ForecastPart[Any], Any]]:
        """Weighted parts by name, each with its part of a state; raises if one model forecasts."""
        raise AttributeError(
            "only a stacked forecast has parts_; one model forecasts here, see summary()"
        )

    def member(self, label: Any) -> tuple[int, ForecastPart[Any]]:
        """Position and model of the series, or of the column, that has a network by itself."""
        raise ValueError(
            "for_series needs a network for each series; here all series share one model. Name "
            "series in predict(ids=...), or construct with per_series=True and fit again, which "
            "trains a network for each"
        )

    def readable(self, panel: Panel, state: S | None = None) -> Panel:
        """Prepare a panel for `filter` and `advance`: fill gaps if the model cannot skip them.

        `state` is the state before these rows; None at the beginning of the series.
        """
        return panel

    def forecast_paths(self, state: S, at: str) -> ForecastPaths:
        """Paths of forecasts along the data; `at` says where networks are linearised."""
        return self.trained.forecast_paths(state, at)  # type: ignore[arg-type]

    def summarise(
        self, forecaster: RecurrentForecaster, stability: FeatureStability | None
    ) -> Summary:
        """Summary of the forecaster that holds this model, see `RecurrentForecaster.summary`."""

    def program(self) -> FittedNetworks:
        """Networks to export as a program; raises if anything beside networks forecasts."""


class PartOfParts(ForecastPart[S], Protocol[S]):
    """Model that takes arguments, data and horizon from the first of the models it consists of."""

    @property
    @abstractmethod
    def first(self) -> Any:
        """Model that decides."""

    @property
    def arguments(self) -> Arguments:  # type: ignore[override]
        """Constructor arguments of the fit."""
        return self.first.arguments

    @property
    def data(self) -> FittedData:  # type: ignore[override]
        """Series and columns of the data fitted to."""
        return self.first.data

    @property
    def horizon(self) -> int:  # type: ignore[override]
        """Default number of forecast steps."""
        return self.first.horizon

    def steps(self, method: str, h: int | None) -> int:
        """Number of steps for a method; see `FittedModel.steps`."""
        return self.first.steps(method, h)


def features_of(
    forecaster: RecurrentForecaster, stability: FeatureStability | None
) -> pd.DataFrame | None:
    """Features of the whole forecast, with their stability if given.

    None if the forecasts are constant, or the file has no sample rows to compute features from.
    """
    if stability is not None:
        check_stability(stability)
        return stability.features
    try:
        return forecast_features(forecaster)
    except ValueError:
        return None


def check_stability(stability: FeatureStability) -> None:
    """Raise unless `stability` is that of the features of a whole forecast."""
    from tsrnn.forecasters._stability import FeatureStability  # imports the forecasters

    if not isinstance(stability, FeatureStability):
        raise TypeError(
            "stability must be what tsrnn.forecasters.feature_stability gave; got "
            f"{type(stability).__name__}"
        )
    if stability.of != "forecast":
        raise ValueError(
            "stability must describe the whole forecast, feature_stability(..., "
            f'of="forecast"); got of={stability.of!r}'
        )
