"""Forecasters that remember the rows of the series; the base of all baselines."""

from __future__ import annotations

from typing import Any

from tsrnn.baselines._memory import RowsMemory
from tsrnn.contract import Classical, habits, positive_integer
from tsrnn.data import Panel


class RowsForecaster(Classical[RowsMemory]):
    """Base of the baselines; not to be used by itself.

    A forecast depends on all rows seen of a series, and on what `fit` has estimated. Series and
    what follows from them are checked by the subclass; here is what all have in common.
    """

    def _fit_to(self, panel: Panel) -> None:
        self._begin(panel)
        self.memory_ = self._fit_panel(panel)

    def _memory_of(self, panel: Panel) -> RowsMemory:
        return RowsMemory.of(panel)

    def _advance(self, memory: RowsMemory, panel: Panel) -> RowsMemory:
        return memory.followed_by(panel)

    def _widths(self) -> tuple[int, int]:
        """Numbers of targets and of exogenous columns."""
        layout, exog_names = self._panel_shape
        return len(layout.target_names), len(exog_names)

    def _season(self, season_length: Any) -> int:
        """The argument `season_length`, by frequency where it is None."""
        if season_length is None:
            return habits(self.freq_).season
        return positive_integer("season_length", season_length)
