"""Protocol of what forecasts in a recurrent forecaster, alone or as one part of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
import pandas as pd

from tsrnn.contract import FittedModel, SeriesState, Summary
from tsrnn.data import Panel
from tsrnn.interpret import ForecastPaths, forecast_features

if TYPE_CHECKING:
    from tsrnn.forecasters._columns import FittedColumns
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._prior import FittedPrior, PriorState
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._stability import FeatureStability

S = TypeVar("S", bound=SeriesState)


class ForecastPart(FittedModel[S], Protocol[S]):
    """Fitted model that forecasts in a recurrent forecaster.

    A forecaster holds one, asks it, and never asks for its kind. Kinds are trained networks, behind
    a regression on columns or not, networks by series, a pretrained network, and a weighted mean of
    some of these. A kind that lacks something refuses it, and says where it is to be had.

    Attributes
    ----------
    skips_missing : bool
        True if missing values are skipped; False if they are filled before the model reads them.
    shares_state : bool
        True if all such parts of a forecast read the same state, and are evaluated together.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_nile
    >>> model = ParaRNNForecaster().fit(load_nile())
    >>> model.fitted_.skips_missing, model.fitted_.network_active
    (True, True)
    """

    skips_missing: ClassVar[bool] = False
    shares_state: ClassVar[bool] = False

    def filter(self, panel: Panel, seen: S | None = None) -> S:
        """State after the rows of a panel; `seen` is the state of the series fitted to."""

    def contributions(self, state: S, future: np.ndarray | None) -> dict[str, np.ndarray]:
        """Additive parts, shape (S, h, C), of the forecasts of the next horizon, by name."""

    @property
    def trained(self) -> FittedNetworks:
        """Networks trained on all series, without a regression before them.

        Raises
        ------
        ValueError
            If there are none.
        """

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
        """Weighted parts by name, each with its part of a state.

        Raises
        ------
        AttributeError
            If one model forecasts.
        """
        raise AttributeError(
            "parts_ are those of a stacked forecast; one model forecasts here, see summary()"
        )

    def member(self, label: Any) -> tuple[int, ForecastPart[Any]]:
        """Position and model of the series, or of the column, that has a network by itself.

        Raises
        ------
        ValueError
            If there is no such series, or all series share what forecasts.
        """
        raise ValueError(
            "for_series gives the forecaster of one series of those that have a network each; "
            "here all series share what forecasts. Name series in predict(ids=...), or "
            "construct with per_series=True and fit again, which trains a network for each"
        )

    def readable(self, panel: Panel, state: S | None = None) -> Panel:
        """Rows of a panel as `filter` and `advance` read them, with gaps filled if need be.

        `state` is the state before these rows, None at the beginning of the series.
        """
        return panel

    def forecast_paths(self, state: S, at: str) -> ForecastPaths:
        """Paths of forecasts along the data; `at` says where networks are made linear."""
        return self.trained.forecast_paths(state, at)  # type: ignore[arg-type]

    def summarise(
        self, forecaster: RecurrentForecaster, stability: FeatureStability | None
    ) -> Summary:
        """Summary of the forecaster that holds this model, see `RecurrentForecaster.summary`."""

    def program(self) -> FittedNetworks:
        """Networks that are all of the forecast, which a program of torch or ONNX can hold.

        Raises
        ------
        ValueError
            If something else forecasts.
        """


def features_of(
    forecaster: RecurrentForecaster, stability: FeatureStability | None
) -> pd.DataFrame | None:
    """Features of the whole forecast, with their stability where it is given.

    None where forecasts do not vary, or a file has no rows to judge by.
    """
    if stability is not None:
        check_stability(stability)
        return stability.features
    try:
        return forecast_features(forecaster)
    except ValueError:
        return None


def check_stability(stability: FeatureStability) -> None:
    """Refuse what is not the stability of the features of a whole forecast."""
    from tsrnn.forecasters._stability import FeatureStability  # which refits forecasters

    if not isinstance(stability, FeatureStability):
        raise TypeError(
            "stability must be what tsrnn.forecasters.feature_stability gave; got "
            f"{type(stability).__name__}"
        )
    if stability.of != "forecast":
        raise ValueError(
            'stability is that of the whole forecast, feature_stability(..., of="forecast"); got '
            f"of={stability.of!r}"
        )
