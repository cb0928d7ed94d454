"""Forecasters whose library sees the data in units of their standard deviations."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from tsrnn.baselines._fitted import FittedForecaster
from tsrnn.baselines._scaled import ScaledModel
from tsrnn.contract import flag, with_shared_arguments


@with_shared_arguments
class StandardizedForecaster(FittedForecaster):
    """Base of the models of statsmodels that depend on the unit of the data.

    Parameters
    ----------
    standardize : bool
        Whether statsmodels is given targets and regressors divided by their standard deviations.
    **shared
        All other arguments are those of `FittedForecaster`.
    """

    def __init__(self, *, standardize: bool = True, **shared: Any) -> None:
        super().__init__(**shared)
        self.standardize = standardize

    @abstractmethod
    def _settings(self) -> ScaledModel:
        """The model with the arguments of the class, checked."""

    def _model(self) -> ScaledModel:
        standardize = flag("standardize", self.arguments_.standardize)
        return replace(self._settings(), standardize=standardize)
