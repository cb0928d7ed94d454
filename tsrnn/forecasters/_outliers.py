"""Table of the outliers that the pretrained network skips or follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tsrnn.data import Layout, past_times
from tsrnn.interpret import section
from tsrnn.prior import outlier_lines, outlier_table

if TYPE_CHECKING:
    from tsrnn.forecasters._prior import FittedPrior, PriorState

NOTE = (
    "Outliers: rows among the last that the network reads which structural models do not expect "
    "from all others. Errors, of single rows, are skipped; a shift is a change of the level, which "
    "forecasts follow. Size: the value less the expected one, or the change of the level. "
    "Probability: posterior, with prior odds of one to 22,000 a row. An error in the last row may "
    "be a shift: the forecast mixes both futures, 60 to 40 where it is certain to be either."
)


def outlier_frame(fitted: FittedPrior, state: PriorState, layout: Layout) -> pd.DataFrame:
    """Outliers ordered by series, target and row, with the keys of the data."""
    _, counts, outliers = fitted.rows_read(state)
    n_targets, window = fitted.data.n_targets, state.tail.shape[1]
    unit, row = outliers.series, outliers.row
    series = unit // n_targets
    target, place = unit % n_targets, window - counts[unit] + row
    past = past_times(state.last_times, window, fitted.data.layout.grid, tz=layout.tz)
    size = outliers.size
    if fitted.columns is not None and fitted.columns.effects.logarithms:
        assert state.columns is not None
        # Residuals of factors are converted to the scale of the data.
        size = size * np.exp(state.columns.shares[series, place, target].sum(-1))
    outliers = outliers._replace(size=size)
    return outlier_table(outliers, layout, state.ids[series], past[series, place])


def outlier_section(frame: pd.DataFrame) -> list[str]:
    """Lines of a summary on outliers; empty without any."""
    return [] if frame.empty else [section("Outliers"), *outlier_lines(frame)]
