"""Forecasts drawn after their history, out of a fitted forecaster."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.contract._arguments import positive_integer
from tsrnn.contract._intervals import check_levels, honest_intervals, zero_shares
from tsrnn.data import future_times, panel_frame, write_frame

if TYPE_CHECKING:
    from tsrnn.contract._base import Forecaster
    from tsrnn.data import Layout

SHOWN = 4  # panels without being asked for more
SHORTEST = 40  # rows of history


def draw_forecasts(
    forecaster: Forecaster[Any],
    X: Any,
    h: int | None,
    level: Any,
    X_future: Any,
    series: Any,
    columns: Any,
    last: int | None,
    ax: Any,
) -> np.ndarray:
    """Forecast some series and draw them; arguments as those of `Forecaster.plot`."""
    # The only arrow to the pictures; matplotlib is loaded when something is drawn.
    from tsrnn.plotting import plot_forecasts

    h = forecaster.horizon_ if h is None else positive_integer("h", h)
    levels = check_levels(level)
    panel = None if X is None else forecaster._read(X)
    every = forecaster.memory_.ids if panel is None else panel.ids
    layout = replace(forecaster._panel_shape[0], backend="pandas")
    room = SHOWN if ax is None else len(_listed(ax))
    points = _point_columns(forecaster, layout)
    chosen = points[:room] if columns is None else _listed(columns)
    which = _numbers(every, layout, series, max(room // max(len(chosen), 1), 1))
    if panel is None:
        memory = forecaster.memory_.select(which)
        if not forecaster._history.most:
            raise ValueError(
                f"of its {len(every)} series the model keeps no rows to draw; give those of some "
                "as X, as in plot(df, h=12)"
            )
        past = forecaster._history.frame(which, memory.ids, layout)
        zeros = forecaster._zero_shares[which]
    else:
        panel = panel.select(every[which])
        memory, zeros = forecaster._memory_of(panel), zero_shares(panel)
        past = panel_frame(replace(panel, layout=layout))
    times = future_times((memory.last_times, forecaster.freq_), h, tz=layout.tz)
    future = forecaster._read_future(X_future, memory, h)
    forecasts = forecaster._forecast(memory, h, levels, future)
    forecasts = honest_intervals(forecasts, levels, zeros, layout, memory.ids)
    made = write_frame(layout, memory.ids, times, forecasts, model=forecaster.column_name)
    note = ""
    if columns is None and len(chosen) < len(points):
        note = f"{len(chosen)} of {len(points):,} columns; name others by columns="
    elif series is None and len(which) < len(every):
        note = f"{len(which)} of {len(every):,} series; name others by series="
    return plot_forecasts(
        past,
        made,
        ax,
        columns=chosen,
        series=None if layout.id_col is None else list(memory.ids),
        last=max(4 * h, SHORTEST) if last is None else last,
        note=note,
        id_col=layout.id_col or forecaster.arguments_.id_col,
        time_col=str(layout.time_col or forecaster.arguments_.time_col),
        target_col=str(layout.target_names[0]),
    )


def _point_columns(forecaster: Forecaster[Any], layout: Layout) -> list[Any]:
    """Columns of the point forecasts that `write_frame` writes."""
    alone = layout.kind == "long" and len(layout.target_names) == 1
    unnamed = layout.kind == "series" and layout.series_name is None
    return [forecaster.column_name] if alone or unnamed else list(layout.target_names)


def _numbers(ids: pd.Index, layout: Layout, series: Any, room: int) -> np.ndarray:
    """Numbers of the series asked for, by default of the first ones."""
    if series is None:
        return np.arange(min(room, len(ids)))
    if layout.id_col is None:
        raise ValueError(
            "series selects from data with an id column, which these have not; choose columns "
            f"among {list(layout.target_names)} by columns="
        )
    asked = _listed(series)
    hashable = all(isinstance(label, Hashable) for label in asked)
    which = ids.get_indexer(pd.Index(asked)) if hashable else np.array([-1])
    unknown = not hashable or (which < 0).any()
    if unknown or not asked:
        more = ", ..." if len(ids) > SHOWN else ""
        raise ValueError(
            f"series must be ids among the {len(ids)} there are, "
            f"{', '.join(map(repr, ids[:SHOWN]))}{more}; got {series!r}"
        )
    return which


def _listed(labels: Any) -> list[Any]:
    """Labels or axes as a list; a single one is a list of its own."""
    if isinstance(labels, np.ndarray):
        return list(labels.ravel())
    listed = isinstance(labels, Sequence | set | pd.Index | pd.Series) and not isinstance(
        labels, str
    )
    return list(labels) if listed else [labels]
