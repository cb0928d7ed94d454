"""Forecasters that remember the rows of the series; the base of all baselines."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tsrnn.baselines._memory import RowsMemory
from tsrnn.contract import Forecaster, habits, positive_integer, seed_of, verbosity
from tsrnn.data import Panel


class RowsForecaster(Forecaster[RowsMemory]):
    """Base of the baselines; not to be used by itself.

    A forecast depends on all rows seen of a series, and on what `fit` has estimated. Series and
    what follows from them are checked by the subclass; here is what all have in common.
    """

    takes_exog: ClassVar[bool] = False

    def _fit_to(self, panel: Panel) -> None:
        verbosity(self.verbose)
        if not isinstance(self.random_state, np.random.Generator | np.random.RandomState):
            seed_of(self.random_state)
        if panel.exog_names and not self.takes_exog:
            raise ValueError(
                f"{type(self).__name__} takes no exogenous columns; got {list(panel.exog_names)}. "
                "Drop them, or name them as targets"
            )
        horizon = habits(panel.freq).horizon if self.horizon is None else self.horizon
        self.horizon_ = positive_integer("horizon", horizon)
        self._set_shape(panel)
        self.memory_ = self._fit_panel(panel)

    def _memory_of(self, panel: Panel) -> RowsMemory:
        return RowsMemory.of(panel)

    def _advance(self, memory: RowsMemory, panel: Panel) -> RowsMemory:
        return memory.followed_by(panel)

    def _season(self, season_length: Any) -> int:
        """The argument `season_length`, by frequency where it is None."""
        if season_length is None:
            return habits(self.freq_).season
        return positive_integer("season_length", season_length)
