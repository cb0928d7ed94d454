"""Base of forecasters with parameters of one series or panel: no networks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd

from tsrnn.contract._base import Forecaster, M
from tsrnn.contract._checks import (
    check_not_too_large,
    check_not_too_small,
    positive_integer,
    seed_of,
    verbosity,
)
from tsrnn.contract._frequency import habits
from tsrnn.data import Panel

_SHOWN = 3


class Classical(Forecaster[M]):
    """Base of forecasters that are not networks; not to be used by itself.

    Where each series has parameters of its own, those of a fitted series apply to it alone, and
    those of the only series to any other.

    Parameters
    ----------
    random_state, verbose
        As `CommonArguments` has them.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As `CommonArguments` has them.

    Examples
    --------
    >>> from tsrnn import ARMA, ParaRNNForecaster
    >>> from tsrnn.contract import Classical
    >>> [issubclass(model, Classical) for model in (ARMA, ParaRNNForecaster)]
    [True, False]
    """

    takes_exog: ClassVar[bool] = False

    def _begin(self, panel: Panel) -> None:
        """Check what does not depend on the model, and keep the shape of the data."""
        arguments = self.arguments_
        verbosity(arguments.verbose)
        check_not_too_small(panel)
        if not isinstance(arguments.random_state, np.random.Generator | np.random.RandomState):
            seed_of(arguments.random_state)
        if panel.exog_names and not self.takes_exog:
            raise ValueError(
                f"{type(self).__name__} takes no exogenous columns; got {list(panel.exog_names)}. "
                "Drop them, or name them as targets"
            )
        given = arguments.horizon
        horizon = habits(panel.freq).horizon if given is None else given
        self.horizon_ = positive_integer("horizon", horizon)
        self._set_shape(panel)

    def _read_frame(self, df: Any, **shape: Any) -> Panel:
        panel = super()._read_frame(df, **shape)
        check_not_too_large(panel)
        return panel

    def _series_of(self, ids: pd.Index) -> np.ndarray:
        """Number of the fitted series whose parameters apply to each id.

        Raises
        ------
        ValueError
            If an id was not fitted, unless there is one series, whose parameters then apply.
        """
        if len(self.memory_.ids) == 1:
            return np.zeros(len(ids), np.int64)
        fitted = self.memory_.ids.get_indexer(ids)
        if np.any(fitted < 0):
            unknown = ", ".join(repr(label) for label in ids[fitted < 0][:_SHOWN])
            raise ValueError(
                f"{type(self).__name__} has parameters for each series it was fitted to; not "
                f"among them: {unknown}. Fit to these series, or fit one alone and apply it"
            )
        return fitted

    def _all_ahead(self, future: np.ndarray | None) -> np.ndarray | None:
        """Exogenous columns of the steps ahead, in the order of those fitted to.

        Raises
        ------
        ValueError
            If the future of one is not known.
        """
        names = self._data_shape.exog_names
        absent = [name for name in names if name not in self.known_ahead_]
        if absent:
            raise ValueError(
                f"forecasts need the future of all regressors; not known ahead are {absent}. "
                f"Construct with known_ahead={list(names)}, fit again and give them as X_future"
            )
        if not names:
            return None
        assert future is not None  # by the contract, with columns that are known ahead
        return future[:, :, [self.known_ahead_.index(name) for name in names]]
