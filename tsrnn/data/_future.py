"""Future steps: their timestamps and exogenous columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data._axis import show_time
from tsrnn.data._categories import with_dummies
from tsrnn.data._faults import listed, quote, quoted, type_advice
from tsrnn.data._frequency import (
    Count,
    Freq,
    Grid,
    Irregular,
    TradingDays,
    parse_freq,
    steps_ahead,
    stretch,
)
from tsrnn.data._panel import Layout, Name, Panel
from tsrnn.data._read import check_same_kind
from tsrnn.data._table import (
    Table,
    check_numeric,
    exact_columns,
    float_array,
    plain_numbers,
    read_table,
)
from tsrnn.data._timestamps import period_step

FEW_ROWS, MOST_ROWS = 10**4, 10**8  # rows of forecasts: cheap to build; gigabytes


def future_times(
    last: Panel | tuple[np.ndarray, Freq | Grid], h: int, *, tz: str | None = None
) -> np.ndarray:
    """Return the h timestamps after the last one of each series, shape (S, h).

    `last` is a panel, or a tuple of last timestamps, shape (S,), and frequency. Times have the
    dtype of `Panel.times`; days and months follow the wall clock of the zone `tz`.
    """
    if isinstance(h, bool) or not isinstance(h, int | np.integer) or h < 1:
        raise ValueError(f"h must be an integer of at least 1; got {quote(h)}.")
    if isinstance(last, Panel):
        times, freq, tz = last.last_times, last.layout.grid, last.layout.tz
    else:
        times, freq = np.asarray(last[0]), last[1]
    if h * len(times) > MOST_ROWS:
        raise ValueError(
            f"forecasts must be fewer than {MOST_ROWS:,} rows; got h={h} of {len(times)} series. "
            "Take a smaller h, or some of the series."
        )
    if h * len(times) > FEW_ROWS:  # the last step alone raises before memory is allocated
        _advance(times, np.array([h]), freq, tz)
    return _ahead(times, h, freq, tz)


def past_times(last: np.ndarray, n: int, freq: Freq | Grid, *, tz: str | None = None) -> np.ndarray:
    """Return the n timestamps up to the last one of each series, shape (S, n).

    Times have the dtype of `Panel.times`; days and months follow the wall clock of the zone `tz`. A
    grid, `Layout.grid`, has closed days.
    """
    return _advance(last[:, None], np.arange(1 - n, 1)[None], freq, tz)


def steps_between(
    first: np.ndarray, later: np.ndarray, freq: Freq | Grid, tz: str | None = None
) -> np.ndarray:
    """Return the number of whole steps from one timestamp to another, shape (S,).

    Steps are rounded down, and negative if `later` lies before `first`. Days and months follow the
    wall clock of the zone `tz`. A grid, `Layout.grid`, has closed days.
    """
    grid = _grid(first, freq)
    return (grid.numbers(later, tz) - grid.numbers(first, tz)) // grid.step


def _ahead(times: np.ndarray, h: int, freq: Freq | Grid, tz: str | None) -> np.ndarray:
    """Return the h timestamps after each of `times` (S,), shape (S, h)."""
    if len(times) == 1 and times.dtype.kind == "M" and tz is None and isinstance(freq, str):
        return stretch(freq).after(times.astype("datetime64[ns]"), h)[None]
    if isinstance(freq, Irregular):  # future rows have no times: steps stand for them
        return np.repeat(steps_ahead(np.arange(1, h + 1))[None], len(times), 0)
    return _advance(times[:, None], np.arange(1, h + 1)[None, :], freq, tz)


def _advance(times: np.ndarray, steps: np.ndarray, freq: Freq | Grid, tz: str | None) -> np.ndarray:
    if times.dtype.kind == "M":
        return _grid(times, freq).advance(times.astype("datetime64[ns]"), steps, tz)
    return _grid(times, freq).advance(times.astype(np.int64), steps, None)


def _grid(times: np.ndarray, freq: Freq | Grid) -> Grid:
    if isinstance(freq, Grid):
        return freq
    if times.dtype.kind != "M" and isinstance(freq, str):
        return Count(period_step(freq), freq)
    return parse_freq(freq)


def check_continues(new: Panel, ids: Any, last_times: np.ndarray, freq: Freq | Grid) -> np.ndarray:
    """Return the positions of new series among known ones, whose rows they must continue.

    New rows of each series begin one step after its last known row, `last_times` of shape (S,);
    unknown series are refused.
    """
    # An Index is kept: a copy would build its hash table again.
    known = (ids if isinstance(ids, pd.Index) else pd.Index(ids)).get_indexer(new.ids)
    if np.any(known < 0):
        unknown = new.ids[known < 0]
        advice = type_advice(unknown, ids) or " Drop them, or fit again."
        raise ValueError(
            f"new rows must belong to series that are known; unknown are {quoted(unknown)}.{advice}"
        )
    first = new.times[new.indptr[:-1]]
    expected = _ahead(np.asarray(last_times)[known], 1, freq, new.layout.tz)[:, 0]
    wrong = np.flatnonzero(first != expected)
    if isinstance(freq, TradingDays) and freq.span is None:  # future closed days are unknown
        wrong = np.flatnonzero(first < expected)
    if isinstance(freq, Irregular):
        _check_later(new, first, np.asarray(last_times)[known])
    elif len(wrong):
        i, axis = wrong[0], new.axis
        expects, came = (show_time(t[i], axis.dtype, axis.tz) for t in (expected, first))
        more = f" So it is for {len(wrong) - 1} more series." if len(wrong) > 1 else ""
        raise ValueError(
            f"{axis.where(i)}new rows must begin at {expects}, one step ({new.freq!r}) after the "
            f"last known row; they begin at {came}. Pass the rows from {expects} on.{more}"
        )
    return known


def _check_later(new: Panel, first: np.ndarray, last: np.ndarray) -> None:
    """Refuse new irregular rows at or before the last known row of their series."""
    wrong, axis = np.flatnonzero(first <= last), new.axis
    if len(wrong):
        i = wrong[0]
        ends, begins = (show_time(times[i], axis.dtype, axis.tz) for times in (last, first))
        raise ValueError(
            f"{axis.where(i)}new rows must come after the last known row, {ends}; they begin at "
            f"{begins}. Pass the later rows"
        )


def read_future(
    X_future: Any,
    *,
    h: int,
    columns: Sequence[Name],
    panel: Panel | None = None,
    ids: Any = None,
    last_times: np.ndarray | None = None,
    freq: Freq | Grid | None = None,
    layout: Layout | None = None,
) -> np.ndarray:
    """Read the future values of exogenous columns, shape (S, h, n).

    Rows are matched by id and time, in any order. Other times and series are ignored, so that
    `X_future` may hold the calendar of a whole year. It has exactly the columns `columns`, without
    missing or infinite values; columns of labels become their dummies. The data to continue are a
    `panel`, or its attributes `ids`, `last_times`, `freq` and `layout`.
    """
    if panel is not None:
        ids, last_times, freq, layout = panel.ids, panel.last_times, panel.freq, panel.layout
    if ids is None or last_times is None or freq is None or layout is None:
        raise ValueError("read_future needs panel, or all of ids, last_times, freq and layout.")
    time_col = "" if layout.time_col is None else layout.time_col
    table = read_table(X_future, layout.id_col or "", time_col, layout, "X_future")
    table = table.dated(freq, layout)
    check_same_kind(table, layout)
    came = [name for name in table.names if name not in layout.ignored]
    names = exact_columns(came, columns, "columns of X_future")
    wanted = _wanted(table, pd.Index(ids), last_times, h, layout)
    rows = _match(table, pd.Index(ids), wanted, layout)
    labels = [each.column for each in layout.categories if each.column in names]
    numbers = [name for name in names if name not in labels]
    frame = plain_numbers(table.columns, table.keys)
    check_numeric(frame, numbers, "the column")
    # Matched rows alone: others may have any label.
    values, sources = with_dummies(
        float_array(frame, numbers)[rows.ravel()],
        frame[labels].iloc[rows.ravel()] if labels else frame,
        names,
        layout.categories,
        " of X_future",
    )
    values = values.reshape(*rows.shape, -1)
    finite = np.isfinite(values)
    for j in np.flatnonzero(~finite.all(axis=(0, 1))):
        places = _places(~finite[:, :, j], pd.Index(ids), wanted, layout)
        raise ValueError(
            f"the column {sources[j]!r} of X_future must have no missing or infinite values; such "
            f"are {places}. Fill them in."
        )
    return values


def times_of_future(
    X_future: Any, ids: Any, last_times: np.ndarray, h: int, layout: Layout
) -> np.ndarray:
    """Return the timestamps of the h future steps, shape (S, h).

    If a step is a row, as on trading days without a calendar, the rows of `X_future` define them.
    """
    if not layout.observed or not hasattr(X_future, "columns"):
        return future_times((last_times, layout.grid), h, tz=layout.tz)
    time_col = "" if layout.time_col is None else layout.time_col
    table = read_table(X_future, layout.id_col or "", time_col, layout, "X_future")
    return _wanted(table, pd.Index(ids), last_times, h, layout)


def _wanted(
    table: Table, ids: pd.Index, last_times: np.ndarray, h: int, layout: Layout
) -> np.ndarray:
    """Return the timestamps (S, h) that X_future must have; its own if a step is a row."""
    wanted = future_times((last_times, layout.grid), h, tz=layout.tz)
    if not layout.observed:
        return wanted
    codes, came = table.groups()
    series = ids.get_indexer(came)[codes]
    for i in range(len(ids)):
        times = np.unique(table.stamps.values[series == i])
        later = times[times > last_times[i]][:h]
        if len(later) == h:
            wanted[i] = later
    return wanted


def _match(table: Table, ids: pd.Index, wanted: np.ndarray, layout: Layout) -> np.ndarray:
    """Return the row of X_future for each series and future time, shape (S, h)."""
    codes, came = table.groups()
    numbers = ids.get_indexer(came)
    series, others = numbers[codes], came[numbers < 0]
    stamps = np.unique(wanted)
    place = np.minimum(np.searchsorted(stamps, table.stamps.values), len(stamps) - 1)
    use = np.flatnonzero((series >= 0) & (stamps[place] == table.stamps.values))
    # One integer for each pair of series and time, so that one sorted search matches both.
    keys = np.arange(len(ids))[:, None] * len(stamps) + np.searchsorted(stamps, wanted)
    keys_given = series[use] * len(stamps) + place[use]
    at = np.minimum(np.searchsorted(keys.ravel(), keys_given), keys.size - 1)
    hit = keys.ravel()[at] == keys_given
    at, use = at[hit], use[hit]
    counts = np.bincount(at, minlength=keys.size).reshape(keys.shape)
    if np.any(counts > 1):
        raise ValueError(
            "X_future must have one row for each series and time; repeated are "
            f"{_places(counts > 1, ids, wanted, layout)}. Drop the duplicates."
        )
    if np.any(counts == 0):
        raise ValueError(
            f"X_future must cover the {wanted.shape[1]} steps after the data; missing are "
            f"{_places(counts == 0, ids, wanted, layout)}."
            f"{type_advice(others, ids) or ' Add these rows, or take a smaller h.'}"
        )
    rows = np.empty(keys.size, np.int64)
    rows[at] = use
    return rows.reshape(keys.shape)


def _places(mask: np.ndarray, ids: pd.Index, wanted: np.ndarray, layout: Layout) -> str:
    """Return the series and times of a mask (S, h) as text."""
    texts = []
    hit = np.flatnonzero(mask.any(axis=1))
    for i in hit[:3]:
        times = wanted[i, mask[i]]
        first = [show_time(t, layout.time_dtype, layout.tz) for t in times[:3]]
        shown = listed([*first, *times[3:]], 3)
        whose = f"series {quote(ids[i])}: " if layout.id_col is not None else ""
        texts.append(f"{whose}{len(times)} at {shown}")
    more = len(hit) - 3
    return "; ".join(texts) + (f"; and {more} more series" if more > 0 else "")
