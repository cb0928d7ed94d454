"""Readers of frames and files: the only way in which data enter the package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data._axis import (
    Axis,
    check_increasing,
    followed,
    infer_grid,
    is_increasing,
    rows_in_time,
)
from tsrnn.data._categories import Categories, choose_categories, holds_labels, with_dummies
from tsrnn.data._digits import EXAMPLES, UNITS, from_digits, to_digits
from tsrnn.data._faults import quote, split_by_series
from tsrnn.data._files import is_path, read_files
from tsrnn.data._frames import array_frame, is_array
from tsrnn.data._frequency import (
    NS_PER_DAY,
    TICKS,
    Count,
    Freq,
    Grid,
    Irregular,
    Tick,
    TradingDays,
    parse_freq,
)
from tsrnn.data._missing import TREATMENTS, complete
from tsrnn.data._panel import Layout, Name, Panel
from tsrnn.data._table import (
    Table,
    check_numeric,
    choose_columns,
    few_numbers,
    float_array,
    not_real,
    plain_numbers,
    read_table,
)
from tsrnn.data._timestamps import Stamps, digit_form, period_step
from tsrnn.data._trading import as_trading_days, calendar_fields, observed_days, trading_note

_HOPELESS = 16  # first series that all fail alone: the fault is then common


def read_panel(
    df: Any,
    *,
    target: Name | Sequence[Name] | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    freq: Any = None,
    missing: str = "error",
    strict: bool = False,
    exog: Sequence[Name] | None = None,
    layout: Layout | None = None,
) -> Panel:
    """Read a frame or files into a panel.

    Parameters
    ----------
    df : pandas.Series, pandas.DataFrame, polars.DataFrame, array_like or path
        *Array or list*: rows of one variable, or rows and variables; rows are counted from 0.
        *Wide*: a Series, or a frame without a column `time_col`. Each column is a variable. Time
        is in the index (DatetimeIndex, PeriodIndex, integers, dates in digits), or in the only
        column of dates if the other columns hold numbers.
        *Long*: a frame with a column `time_col`; a column `id_col` distinguishes several series,
        which may be interleaved. Time increases within each series, or decreases within each.
        *Path* (str or os.PathLike): a parquet or CSV file, a folder of them, read in the order of
        their names, or a pattern such as ``"sales/*.parquet"``. Forecasts are pandas frames.
        Parquet files hold a long frame and are read in blocks of rows. CSV files may be compressed
        (.gz, .bz2, .xz, .zip); their ids are text, and fields such as "NA" in other columns are
        missing values.
    target : str, int or sequence of them, optional
        Columns to forecast. By default all columns of a wide frame, and "y" of a long one. The
        other columns are exogenous: numbers, booleans, or labels, which become dummies.
    id_col, time_col : str
        Names of the columns with ids and timestamps in a long frame.
    freq : str, int or pandas offset, optional
        Frequency of all series; inferred by default. Integer timestamps have an integer frequency.
        "C" takes the days with rows as trading days; "C-XNYS" has the sessions of an exchange, by
        its ISO 10383 code; a `pandas.offsets.CustomBusinessDay` has its holidays and weekmask.
        "irregular" takes each row as a step, whatever the time between rows.
    missing : {"error", "interpolate", "keep", "auto"}
        "error" refuses missing values and missing rows. "interpolate" inserts the rows and fills
        numeric columns linearly in the row number, between known values only. "keep" inserts the
        rows and leaves missing values NaN, even in all rows of a series. "auto" is "keep" with
        notes in the panel, and refuses series without a value.
    strict : bool, default False
        Refuse arrays, lists, columns of labels, numbers as text, dates other than ISO 8601, and
        rows in decreasing time. Ignored if `layout` is given, which has its own.
    exog : sequence of str or int, optional
        Required columns besides the targets; others are refused.
    layout : Layout, optional
        Layout of the data that a model was fitted to. The frame must have the same kind, targets
        and kind of timestamps. The name of a Series does not matter.

    Returns
    -------
    Panel
        Panel with copies of the data.

    Raises
    ------
    TypeError
        If `df` is no such frame, or timestamps or columns have the wrong type.
    FileNotFoundError
        If the path does not exist, or the folder has neither a parquet nor a CSV file.
    ImportError
        If parquet files are to be read and polars is not installed.
    ValueError
        If columns are missing; timestamps are missing, repeated, unsorted, irregular or have
        gaps; values are missing or infinite. The message names series, column and rows.

    Notes
    -----
    The step of an inferred frequency is the most common difference of neighbouring rows. Steps
    below a day are compared in UTC; days, weeks, months, quarters and years on the wall clock of
    the timestamps' zone.

    Text is read as dates or numbers if all rows of a column together allow only one reading. The
    notes of the panel say how. `strict` accepts only dates with the year first: "2020-01-31",
    "2020-01-31 12:00", "2020-01" (the first of the month) and "2020Q1" (a period). `recognise`
    documents the other forms. Forecasts have timestamps or periods in place of dates.

    Whole numbers, as integers or floats, are dates if all have one form: 20240131, 202401, 20241
    (a quarter), 2024031 (a day of the year), 2024013112 (an hour; also with minutes and seconds).
    Forecasts then have dates in the same form. If most but not all are dates, they are refused; if
    fewer, they count steps. Integers of four digits count steps. An integer `freq` makes all of
    them steps, an alias makes them dates.

    An exogenous column of text or of a categorical type holds labels. Each level but the first, the
    reference, becomes a column of zeros and ones, named as in statsmodels. Levels of text are
    sorted; a categorical keeps its order, and its levels without a row have the effect of the
    reference. A column with more than 50 levels, or with more levels than half its rows, is
    refused. `layout` holds the levels; a later frame with an unknown level is refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import read_panel
    >>> days = pd.date_range("2024-01-01", periods=3)
    >>> panel = read_panel(pd.DataFrame({"y": [1.0, 2, 3], "price": [9.0, 8, 9]}, days), target="y")
    >>> panel.freq, panel.target_names, panel.exog_names
    ('D', ('y',), ('price',))
    >>> panel.values.shape
    (3, 1)
    """
    strict = strict if layout is None else layout.strict
    counted = is_array(df) and not strict
    if counted:
        df = array_frame(df)
    table, columns = _open(df, target, id_col, time_col, freq, missing, strict, exog, layout)
    if counted or (layout is not None and layout.backend == "numpy"):
        table = replace(table, backend="numpy")
    return _panel(table, columns, freq, missing, strict, layout)


def read_series(
    df: Any,
    *,
    target: Name | Sequence[Name] | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    freq: Any = None,
    missing: str = "error",
    strict: bool = False,
) -> tuple[Panel, dict[Any, str]]:
    """Read all series without a fault, and return the message by id of each of the others.

    Arguments are those of `read_panel`, which raises if the fault is common, the frame has no ids,
    or no series can be read.
    """
    table, columns = _open(df, target, id_col, time_col, freq, missing, strict, None, None)
    codes, ids = table.groups()
    if np.any(codes[1:] < codes[:-1]):
        order = series_order(codes)
        table, codes = table.rows(order), codes[order]

    def read(series: list[int]) -> Panel:
        first, last = series[0], series[-1]
        rows: slice | np.ndarray = slice(*np.searchsorted(codes, [first, last + 1]).tolist())
        if len(series) <= last - first:  # series in between are left out
            rows = np.isin(codes, series)
        return _panel(table.rows(rows), columns, freq, missing, strict, None)

    panels, faults = split_by_series(range(len(ids)), read, _HOPELESS)
    if len(panels) > 1:
        # The most common frequency: a short series alone may not show it.
        counts: Counter[Freq] = Counter()
        for panel in panels:
            counts[panel.freq] += panel.n_series
        freq = counts.most_common(1)[0][0]
        _, faults = split_by_series(range(len(ids)), read)
        panels = []
    good = [i for i in range(len(ids)) if i not in faults]
    names = ids.tolist()
    why = {names[i]: str(error) for i, error in sorted(faults.items())}
    return panels[0] if panels else read(good), why


def _open(
    df: Any,
    target: Any,
    id_col: str,
    time_col: str,
    freq: Any,
    missing: str,
    strict: bool,
    exog: Sequence[Name] | None,
    layout: Layout | None,
) -> tuple[Table, _Columns]:
    """Split a frame or files into ids, timestamps and values, and choose columns."""
    if missing not in TREATMENTS:
        raise ValueError(f"missing must be one of {TREATMENTS}; got {quote(missing)}.")
    if layout is not None:
        id_col = layout.id_col or id_col
        time_col = time_col if layout.time_col is None else layout.time_col  # type: ignore[assignment]
    _check_keys(id_col=id_col, time_col=time_col)

    def choose(table: Table) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
        if layout is not None:
            check_same_kind(table, layout)
        return choose_columns(table, target, exog, layout, strict)

    def part_columns(part: Table) -> pd.DataFrame:
        return _part_columns(part, *choose(part if layout is None else part.dated(freq, layout)))

    if is_path(df):
        table = read_files(df, id_col, time_col, part_columns, layout, strict, target is not None)
    else:
        table = read_table(df, id_col, time_col, layout, strict=strict)
    table = table.dated(freq, layout)
    targets, exog_names = choose(table)
    if layout is not None:
        return table, _Columns(targets, exog_names, layout.categories, layout.ignored)
    # Levels from all rows: `read_series` reads parts of them.
    labels = not_real(table.columns, exog_names)
    return table, _Columns(targets, exog_names, choose_categories(table.columns, labels), ())


def _check_keys(**names: object) -> None:
    for argument, name in names.items():
        if not isinstance(name, str | int):
            raise TypeError(
                f"{argument} must be the name of one column; got {quote(name)}. Join several "
                "columns into one, such as df['store'] + '/' + df['item'], and name that"
            )


def _part_columns(
    part: Table, targets: tuple[Name, ...], exog_names: tuple[Name, ...]
) -> pd.DataFrame:
    """Return the columns of a block of rows: numbers as floats, labels unchanged."""
    labels = {name for name in exog_names if holds_labels(part.columns[name])}
    names = [*targets, *(name for name in exog_names if name not in labels)]
    numbers = _float_columns(part, targets, tuple(names[len(targets) :]))
    columns = pd.DataFrame(numbers, columns=names)
    for place, name in enumerate([*targets, *exog_names]):
        if name in labels:
            columns.insert(place, name, part.columns[name].array)  # type: ignore[arg-type]
    return columns


@dataclass(frozen=True)
class _Columns:
    """Targets and exogenous columns of a table, and their fields of `Layout`."""

    targets: tuple[Name, ...]
    exog: tuple[Name, ...]
    categories: tuple[Categories, ...]
    ignored: tuple[Name, ...]

    def values(self, table: Table) -> tuple[np.ndarray, list[Name]]:
        """Return targets and exogenous columns, labels as dummies, and their source columns."""
        coded = {each.column for each in self.categories}
        numbers = tuple(name for name in self.exog if name not in coded)
        data = _float_columns(table, self.targets, numbers)
        names = [*self.targets, *self.exog]
        return with_dummies(data, table.columns, names, self.categories)


def _panel(
    table: Table, columns: _Columns, freq: Any, missing: str, strict: bool, layout: Layout | None
) -> Panel:
    """Return the checked rows of a table, sorted by series and time."""
    codes, ids = table.groups()
    order = None
    if np.any(codes[1:] < codes[:-1]):
        order = series_order(codes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(ids)))])
    stamps = table.stamps
    # Indexing by `order` copies; without it, the times would share the memory of the frame.
    times = stamps.values.copy() if order is None else stamps.values[order]
    axis = Axis(times, indptr, ids, table.ids is not None, stamps.dtype, stamps.tz)
    notes = [*table.notes, *(each.note for each in columns.categories)]
    if not strict and not is_increasing(axis):
        rows, note = rows_in_time(axis)
        order = rows if order is None else order[rows]
        freq_of_index = stamps.freq  # of decreasing timestamps it is negative
        if isinstance(freq_of_index, str):
            freq_of_index = freq_of_index.removeprefix("-")
        elif isinstance(freq_of_index, pd.offsets.CustomBusinessDay):
            freq_of_index = -freq_of_index
        axis, stamps = replace(axis, times=times[rows]), replace(stamps, freq=freq_of_index)
        notes += [note] if note else []
    check_increasing(axis)
    recognised = missing == "auto" and freq is None and layout is None
    grid = _grid(stamps, axis, freq, layout, recognised)
    if recognised and isinstance(grid, TradingDays) and grid.span is None:
        notes.append(trading_note(grid))
    (data, names), n = columns.values(table), len(columns.targets)
    data = data if order is None else data[order]
    labels = {each.column for each in columns.categories}
    axis, data, of_gaps = complete(
        axis, grid, data, names, missing, fixed=layout is not None, labels=labels
    )
    kept = Layout(
        kind=table.kind,
        backend=table.backend,
        target_names=columns.targets,
        time_kind=stamps.kind,
        freq=grid.alias,
        time_dtype=stamps.dtype,
        tz=stamps.tz,
        id_col=table.id_col,
        time_col=table.time_col,
        index_name=table.index_name,
        series_name=table.series_name,
        categories=columns.categories,
        ignored=columns.ignored,
        date_order=table.written.date_order,
        decimal=table.written.decimal,
        strict=strict,
        **calendar_fields(grid),
    )
    return Panel(
        values=np.ascontiguousarray(data[:, :n]),
        indptr=axis.indptr,
        ids=axis.ids,
        times=axis.times,
        exog=np.ascontiguousarray(data[:, n:]),
        exog_names=tuple(kept.dummy_names(columns.exog)),
        layout=kept,
        notes=(*notes, *of_gaps),
    )


def series_order(codes: np.ndarray) -> np.ndarray:
    """Return the stable order of rows by series."""
    # numpy sorts 16-bit integers by radix: two passes are faster than one merge sort of 64 bits.
    order = np.argsort(codes.astype(np.uint16), kind="stable")  # lower 16 bits
    if codes.max() < 2**16:
        return order
    return order[np.argsort((codes >> 16).astype(np.uint16)[order], kind="stable")]


def _float_columns(
    table: Table, targets: tuple[Name, ...], exog_names: tuple[Name, ...]
) -> np.ndarray:
    """Return targets and exogenous columns side by side."""
    columns = table.columns
    if table.kind == "series":
        columns = columns.set_axis(list(targets), axis=1)
    few = few_numbers(columns, [*targets, *exog_names])
    if few is not None:
        return few
    columns = plain_numbers(columns, table.keys)
    check_numeric(columns, targets, "the target", booleans=False)
    check_numeric(columns, exog_names, "the column")
    return float_array(columns, [*targets, *exog_names])


def _grid(stamps: Stamps, axis: Axis, freq: Any, layout: Layout | None, recognised: bool) -> Grid:
    """Return the grid of the timestamps; trading days include their closed days."""
    try:
        grid = make_grid(stamps, axis, freq, layout)
    except ValueError:
        # Rows on Tuesdays and Fridays have no frequency of pandas, but a weekmask.
        trading = observed_days(axis) if recognised and stamps.freq is None else None
        if trading is None:
            raise
        return trading
    return as_trading_days(axis, grid, recognised, fixed=layout is not None)


def make_grid(stamps: Stamps, axis: Axis, freq: Any, layout: Layout | None) -> Grid:
    """Return the grid of the timestamps: given, carried by them, or inferred."""
    if freq is None and layout is not None:
        freq = layout.freq
    if stamps.kind == "period":
        carried = str(stamps.freq)
        given = carried if freq is None else getattr(freq, "freqstr", freq)
        if given != carried:
            raise ValueError(
                f"freq must be that of the periods, {carried!r}; got {freq!r}. Leave it out, or "
                "convert the periods by asfreq or to_timestamp."
            )
        return Count(period_step(carried), carried)
    if freq is None:
        freq = stamps.freq
    if freq is None:
        return infer_grid(axis)
    try:
        grid = parse_freq(freq)
        _check_grid(grid, freq, stamps)
    except ValueError as error:
        if layout is not None:
            raise
        fitting = followed(axis)
        raise ValueError(f"{error} {fitting}." if fitting else str(error)) from None
    if layout is not None and grid.alias != layout.freq:
        raise ValueError(
            f"freq must be that of the data fitted to, {layout.freq!r}; got {freq!r}. Leave it out."
        )
    known = grid if layout is None else layout.grid
    return known if isinstance(known, Grid) else grid  # `known` has the closed days fitted to


def _check_grid(grid: Grid, freq: Any, stamps: Stamps) -> None:
    """Refuse a frequency that the kind of timestamps cannot have."""
    if (stamps.kind == "integer") != (type(grid) is Count):
        steps = "integers that count steps take an integer step, datetimes an alias of pandas"
        digits = f", as do dates in digits such as {EXAMPLES}" if stamps.kind == "integer" else ""
        raise ValueError(f"freq={freq!r} does not fit {stamps.kind} timestamps: {steps}{digits}.")
    form = digit_form(stamps.dtype)
    if form is not None and not isinstance(grid, Irregular):
        year = grid.advance(np.array(["2000-01-01"], "datetime64[ns]"), np.arange(1, 13), None)
        if (from_digits(to_digits(year, form), form) != year).any():
            raise ValueError(
                f"freq={freq!r} does not fit dates written as {form}: its steps lead to times that "
                f"cannot be written so. Steps must be a multiple of {UNITS[form]!r}."
            )
    sizes = TICKS | {"date": NS_PER_DAY}
    unit = sizes.get(stamps.dtype.removeprefix("datetime64[").removesuffix("]"), 1)
    if isinstance(grid, Tick) and grid.step % unit:
        raise ValueError(
            f"freq={grid.alias!r} is finer than the timestamps ({stamps.dtype}). Convert them by "
            'astype("datetime64[ns]").'
        )


def check_same_kind(table: Table, layout: Layout) -> None:
    """Refuse a frame of another kind than the data fitted to."""
    _check_equal("frame", _kind(table), _kind(layout))
    _check_equal("timestamps", table.stamps.kind, layout.time_kind)
    if layout.time_kind == "period":
        _check_equal("periods", table.stamps.dtype, layout.time_dtype, " Use asfreq.")
    came, expected = table.stamps.tz, layout.tz
    _check_equal("time zone", came or "none", expected or "none", " Use tz_convert or tz_localize.")


def _check_equal(what: str, came: str, expected: str, advice: str = "") -> None:
    if came != expected:
        raise ValueError(
            f"new data must have the shape of the data fitted to: {what} must be {expected}; "
            f"got {came}.{advice}"
        )


def _kind(shape: Table | Layout) -> str:
    if shape.kind == "long":
        ids = shape.id_col
        return f"long with the id column {quote(ids)}" if ids else "long without an id column"
    place = "index" if shape.time_col is None else f"column {quote(shape.time_col)}"
    return f"{shape.kind} (time in the {place})"
