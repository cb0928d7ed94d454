"""Gross errors of single rows, set missing for the likelihood of a model of the mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsrnn.contract import Arguments, frequency_defaults
from tsrnn.data import Panel
from tsrnn.linear._estimates import Estimates
from tsrnn.prior import LONGEST_SEASON, Outliers, skip_errors


def without_gross_errors(arguments: Arguments, panel: Panel) -> tuple[Panel, Outliers]:
    """Set gross errors of the targets to NaN, and return their outliers.

    Without ``outliers=`` in the arguments the panel is returned as it is.
    """
    # Only models of the mean of one variable have the argument.
    if getattr(arguments, "outliers", None) is None:
        return panel, Outliers.none()
    values, outliers = skip_errors(panel.values, panel.indptr, season_of(arguments, panel))
    return replace(panel, values=values), outliers


def season_of(arguments: Arguments, panel: Panel) -> int:
    """Rows of the season of the model, else of the frequency; 1 without one or for a long one."""
    values = arguments.as_dict()
    seasonal = values.get("seasonal_order")
    season = values.get("season_length") if seasonal is None else seasonal[3]
    season = season or frequency_defaults(panel.layout).season
    return season if season <= LONGEST_SEASON else 1


def with_skipped(estimates: Estimates, outliers: Outliers) -> Estimates:
    """Append a message with the number of rows skipped to each unit with outliers."""
    if outliers.shift.all():
        return estimates  # `replace` would compute deferred matrices
    series, counts = np.unique(outliers.errors[0], return_counts=True)
    messages = list(estimates.messages)
    for unit, n in zip(series.tolist(), counts.tolist(), strict=True):
        rows = "1 row is a gross error and is" if n == 1 else f"{n} rows are gross errors and are"
        messages[unit] += (f'{rows} skipped (outliers="pulse"); see outliers_.',)
    return replace(estimates, messages=tuple(messages))
