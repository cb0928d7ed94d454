"""Linear models behind the forecaster contract: fit by maximum likelihood, unit by unit."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tsrnn.contract import (
    Arguments,
    Classical,
    FittedData,
    as_saved,
    unit_index,
    with_shared_arguments,
)
from tsrnn.data import Panel
from tsrnn.linear._as_rnn import AsRNN
from tsrnn.linear._diagnostics import InSample
from tsrnn.linear._family import Family
from tsrnn.linear._fitted import FittedLinear
from tsrnn.linear._frames import given_params
from tsrnn.linear._inference import check_kind
from tsrnn.linear._results import Results
from tsrnn.linear._state import LinearState
from tsrnn.linear._summary import LinearSummary, summarise


@with_shared_arguments
class LinearForecaster(Results, InSample, AsRNN, Classical[LinearState]):
    """Base of the models fitted by maximum likelihood; not to be used by itself.

    A subclass has its arguments and answers `_family`, the `Family` of models that they describe.

    Units are numbered series by series, within a series target by target.

    Parameters
    ----------
    cov_type : {"hessian", "opg", "information", "robust", "bollerslev-wooldridge", \
            "arch-robust"}
        Kind of standard errors.
    **shared
        All other arguments are those of `CommonArguments`.
    """

    offers: ClassVar[frozenset[str]] = frozenset({"sample_paths"})
    family_class: ClassVar[type[Family]]
    fitted_: FittedLinear

    def __init__(self, *, cov_type: str = "hessian", **shared: Any) -> None:
        super().__init__(**shared)
        self.cov_type = cov_type

    @abstractmethod
    def _family(self, arguments: Arguments, data: FittedData) -> Family:
        """Family at the orders of the arguments, for the columns of the data.

        Raises
        ------
        TypeError, ValueError
            If an argument is not legal.
        """

    def filter(self, df: Any, params: Any) -> LinearForecaster:
        """Run over data with parameters that are given, in place of `fit`.

        Parameters
        ----------
        df : frame
            As for `fit`.
        params : DataFrame, Series, dict or array_like
            In the shape of `params_`, a row a unit; or one set for all units.

        Returns
        -------
        self
            As fitted, without standard errors.

        Raises
        ------
        TypeError, ValueError
            If data, parameters or an argument cannot be used; the message says what to do.
        """
        arguments = Arguments.of(self)
        panel = self._read_training(df, arguments)
        return self._fit_to(panel, arguments, params)

    def summary(self, unit: Any = None, cov_type: str | None = None) -> LinearSummary:
        """Everything about one unit, or a table of many; print the result.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; by default the only one, or all in a table.
        cov_type : str, optional
            Kind of standard errors; that of the constructor by default.
        """
        return summarise(self, unit, cov_type)

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        check_kind(arguments.cov_type)
        super()._check(arguments, panel)

    def _fit_panel(
        self, arguments: Arguments, data: FittedData, panel: Panel, params: Any = None
    ) -> tuple[FittedLinear, LinearState]:
        family, horizon = self._family(arguments, data), self._horizon(arguments, data.layout)
        given = None
        if params is not None:
            units = unit_index(data.layout, data.ids, family.multivariate)
            given = given_params(params, units, family.names)
        fitted = FittedLinear.fit(arguments, data, horizon, family, panel, given)
        return fitted, fitted.filter(panel)

    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedLinear, LinearState]:
        fitted, state = FittedLinear.from_file(
            partial(self._family, arguments, data), arguments, data, header, arrays, last_times
        )
        with as_saved("params"):
            check_kind(arguments.cov_type, fitted.estimates)
        return fitted, state
