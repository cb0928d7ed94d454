"""Base of forecasters with parameters of one series or panel: no networks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tsrnn.contract._base import Forecaster
from tsrnn.contract._checks import (
    check_not_too_large,
    check_not_too_small,
    positive_integer,
    seed_of,
    verbosity,
)
from tsrnn.contract._estimator import Arguments
from tsrnn.contract._fitted import S
from tsrnn.contract._frequency import habits
from tsrnn.data import Layout, Panel


class Classical(Forecaster[S]):
    """Base of forecasters that are not networks; not to be used by itself.

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

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        verbosity(arguments.verbose)
        check_not_too_small(panel)
        if not isinstance(arguments.random_state, np.random.Generator | np.random.RandomState):
            seed_of(arguments.random_state)
        if panel.exog_names and not self.takes_exog:
            raise ValueError(
                f"{type(self).__name__} takes no exogenous columns; got {list(panel.exog_names)}. "
                "Drop them, or name them as targets"
            )
        self._horizon(arguments, panel.layout)
        super()._check(arguments, panel)

    @staticmethod
    def _horizon(arguments: Arguments, layout: Layout) -> int:
        """Steps of a forecast: those of the frequency where none are given."""
        given = arguments.horizon
        return positive_integer("horizon", habits(layout.freq).horizon if given is None else given)

    def _read_frame(self, df: Any, arguments: Arguments, **shape: Any) -> Panel:
        panel = super()._read_frame(df, arguments, **shape)
        check_not_too_large(panel)
        return panel
