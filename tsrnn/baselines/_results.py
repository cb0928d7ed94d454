"""What every fitted baseline tells of its estimates, by unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tsrnn.baselines._memory import RowsMemory
from tsrnn.baselines._unit import Fitted
from tsrnn.contract import unit_index
from tsrnn.data import Layout


class Results:
    """Estimates as frames; a part of `FittedForecaster`.

    Frames have a row a unit: an id of a long frame, a column of a wide one.
    """

    multivariate: ClassVar[bool] = False  # whether all targets of a series are one unit
    memory_: RowsMemory
    estimates_: tuple[Fitted, ...]
    _panel_shape: tuple[Layout, tuple[str | int, ...]]

    @property
    def units_(self) -> pd.Index:
        """Labels of the fitted units."""
        check_is_fitted(self, "memory_")
        return unit_index(self._panel_shape[0], self.memory_.ids, self.multivariate)

    @property
    def params_(self) -> pd.DataFrame:
        """Estimated parameters; NaN where a unit has no parameter of a name."""
        units = self.units_
        columns = list(dict.fromkeys(name for one in self.estimates_ for name in one.names))
        values = np.full((len(units), len(columns)), np.nan)
        place = {name: j for j, name in enumerate(columns)}
        for i, one in enumerate(self.estimates_):
            values[i, [place[name] for name in one.names]] = one.params
        return pd.DataFrame(values, index=units, columns=columns)

    @property
    def loglik_(self) -> pd.Series:
        """Log-likelihood at the estimates."""
        return self._by_unit("loglik", [one.loglik for one in self._estimates()])

    @property
    def aic_(self) -> pd.Series:
        """Akaike's information criterion, as the library defines it."""
        return self._by_unit("aic", [one.aic for one in self._estimates()])

    @property
    def bic_(self) -> pd.Series:
        """Schwarz' Bayesian information criterion, as the library defines it."""
        return self._by_unit("bic", [one.bic for one in self._estimates()])

    @property
    def converged_(self) -> pd.Series:
        """Whether the optimiser met its tolerance; False where it failed."""
        return self._by_unit("converged", [one.converged for one in self._estimates()])

    @property
    def messages_(self) -> pd.Series:
        """Why a unit could not be fitted, or what the library warned of: a tuple of texts."""
        told = [(one.reason,) if one.reason else one.messages for one in self._estimates()]
        return self._by_unit("messages", told)

    @property
    def spec_(self) -> pd.Series:
        """What was chosen for each unit beside the parameters, such as orders, as a dict."""
        return self._by_unit("spec", [dict(one.spec) for one in self._estimates()])

    def _estimates(self) -> tuple[Fitted, ...]:
        check_is_fitted(self, "memory_")
        return self.estimates_

    def _by_unit(self, name: str, values: Sequence[Any]) -> pd.Series:
        made: np.ndarray = np.array(values) if np.isscalar(values[0]) else _objects(values)
        return pd.Series(made, index=self.units_, name=name)


def _objects(values: Sequence[Any]) -> np.ndarray:
    made = np.empty(len(values), object)
    made[:] = values
    return made
