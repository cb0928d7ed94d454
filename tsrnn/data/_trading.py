"""Trading days: the days from Monday to Friday that have rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsrnn.data._axis import Axis
from tsrnn.data._frequency import Business, Grid, TradingDays, split_days, weekday
from tsrnn.data._panel import Layout, Panel

__all__ = ["as_trading_days", "closed_days", "with_closed_days"]

# Share of the days from Monday to Friday that may be closed, and the longest row of closed days.
# Chinese exchanges are closed on 7 percent of these days, and for up to 8 in a row.
MOST_CLOSED, LONGEST_CLOSED = 0.08, 10


def as_trading_days(axis: Axis, grid: Grid, recognised: bool) -> Grid:
    """Grid of trading days, where rows have it: by its alias, or if it may be recognised.

    Business days with a few gaps, as holidays leave them, are recognised.
    """
    if not isinstance(grid, Business) or grid.step > 1:
        return grid
    if not isinstance(grid, TradingDays) and not recognised:
        return grid
    days = split_days(axis.distinct[0], axis.tz)[0]
    weekend = np.flatnonzero(weekday(days) >= 5)
    if len(weekend):
        if isinstance(grid, TradingDays):
            rows = np.flatnonzero(weekday(split_days(axis.times, axis.tz)[0]) >= 5)
            raise ValueError(
                f"trading days (freq='C') lie from Monday to Friday; not so do "
                f"{axis.describe(rows)}. Leave these rows out, or number the rows by an integer "
                "index"
            )
        return grid
    trading = TradingDays.of(days)
    if isinstance(grid, TradingDays):
        return trading
    closed = np.array(trading.closed)
    if not len(closed):
        return grid
    numbers = grid.number(closed)
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) > 1)
    longest = np.diff(np.append(starts, len(numbers))).max()
    few = len(closed) <= MOST_CLOSED * (len(closed) + len(np.unique(days)))
    return trading if few and longest <= LONGEST_CLOSED else grid


def closed_days(grid: Grid) -> tuple[str, ...]:
    """Closed days of a grid as `Layout.closed` has them."""
    if not isinstance(grid, TradingDays):
        return ()
    return tuple(np.array(grid.closed, "datetime64[D]").astype(str).tolist())


def trading_note(grid: Grid) -> str:
    """Sentence on trading days that were recognised."""
    closed = closed_days(grid)
    days = (
        f"{closed[0]} is" if len(closed) == 1 else f"{len(closed)} days, such as {closed[0]}, are"
    )
    return (
        f"Rows are trading days (freq='C'): {days} taken as closed. Forecasts are of the next days "
        "from Monday to Friday; freq='B' inserts missing rows."
    )


def with_closed_days(layout: Layout, last_times: np.ndarray, panel: Panel) -> Layout:
    """Layout that knows the closed days between the last rows and new ones that follow them.

    Parameters
    ----------
    layout : Layout
        Of trading days.
    last_times : ndarray of shape (S,)
    panel : Panel
        Rows after these.

    Returns
    -------
    Layout

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.data import read_panel, with_closed_days
    >>> days = pd.date_range("2024-07-01", periods=5, freq="B")
    >>> old = read_panel(pd.Series([1.0, 2.0, 3.0], days[:3]), freq="C")
    >>> new = read_panel(pd.Series([4.0], days[4:]), freq="C")
    >>> with_closed_days(old.layout, old.last_times, new).closed
    ('2024-07-04',)
    """
    times = np.concatenate([[last_times.max()], panel.times])
    later = TradingDays.of(split_days(times[times >= last_times.max()], layout.tz)[0])
    return replace(layout, closed=tuple(sorted({*layout.closed, *closed_days(later)})))
