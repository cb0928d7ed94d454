"""From a frame to a panel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data._alias import TICKS, parse_freq
from tsrnn.data._apart import tell_apart
from tsrnn.data._axis import Axis
from tsrnn.data._blocks import checked_positions
from tsrnn.data._columns import choose_columns, numeric
from tsrnn.data._frames import Table, read_table
from tsrnn.data._grid import NS_PER_DAY, Count, Grid, Tick
from tsrnn.data._infer import infer_grid
from tsrnn.data._layout import Freq, Layout, Name
from tsrnn.data._panel import Panel
from tsrnn.data._parquet import is_path, read_parquet
from tsrnn.data._regular import check_few_missing, check_gaps, check_increasing
from tsrnn.data._stamps import Stamps, period_freq, period_step
from tsrnn.data._values import (
    check_complete,
    check_finite,
    check_infinite,
    insert_rows,
    interpolate,
)

__all__ = ["check_same_kind", "make_grid", "read_panel", "read_series"]

_HOPELESS = 16  # series that cannot be read alone, after which the fault is not theirs
_MISSING = ("error", "interpolate", "keep")


def read_panel(
    df: Any,
    *,
    target: Name | Sequence[Name] | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    freq: Any = None,
    missing: str = "error",
    exog: Sequence[Name] | None = None,
    layout: Layout | None = None,
) -> Panel:
    """Read a frame or parquet files: the one way in which data enter the package.

    Parameters
    ----------
    df : pandas.Series, pandas.DataFrame, polars.DataFrame or path
        *Wide*: a Series, or a frame without a column `time_col`; time is in the index
        (DatetimeIndex, PeriodIndex or integers), or in the one column that holds dates if all
        others hold numbers; a column is a variable. *Long*: a frame with a
        column `time_col`; with a column `id_col` it holds several series, which may be
        interleaved. Within a series, time increases. A path (str or os.PathLike) names a
        parquet file, or a folder of them read in the order of their names, which hold a long
        frame; they are read some rows at a time, and forecasts come as a pandas frame.
    target : str, int or sequence of them, optional
        Columns to forecast. By default all columns of a wide frame, and "y" of a long one. The
        other columns are exogenous.
    id_col, time_col : str
        Names of the columns with ids and timestamps in a long frame.
    freq : str, int or pandas offset, optional
        Frequency of all series; inferred by default. Integers are for integer timestamps.
    missing : {"error", "interpolate", "keep"}
        Refuse missing values and missing rows; or insert the rows and fill every numeric column
        linearly in the row number, between known values only; or insert the rows and leave
        missing values of targets NaN, wherever they are, even all of a series. Exogenous columns
        must then have a value in every row, those between the rows of a series included.
    exog : sequence of str or int, optional
        Exactly these columns must be there besides the targets.
    layout : Layout, optional
        Layout of the data that a model was fitted to: the frame must be of the same kind with
        the same targets and the same kind of timestamps. The name of a Series does not matter.

    Returns
    -------
    Panel
        With arrays of its own: later changes of `df` do not reach it.

    Raises
    ------
    TypeError
        If `df` is no such frame, or timestamps or columns have the wrong type.
    FileNotFoundError
        If there is no such file, or no parquet file in the folder.
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

    Text is read as dates where it can mean nothing else: years first, as in "2020-01-31",
    "2020-01-31 12:00", "2020-01" (the first of the month) and "2020Q1" (a period), of one form in
    all rows. Forecasts have timestamps or periods in its place.

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
    table, targets, exog_names = _open(df, target, id_col, time_col, missing, exog, layout)
    return _panel(table, targets, exog_names, freq, missing, layout)


def read_series(
    df: Any,
    *,
    target: Name | Sequence[Name] | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    freq: Any = None,
    missing: str = "error",
) -> tuple[Panel, dict[Any, str]]:
    """Read the series of a frame that can be read, and say of the others why they cannot.

    Parameters
    ----------
    df, target, id_col, time_col, freq, missing
        As for `read_panel`.

    Returns
    -------
    panel : Panel
    faults : dict of str
        By id of a series that is left out, the message about it.

    Raises
    ------
    TypeError, ValueError
        As `read_panel`, if the fault is that of the frame or of a frame without ids, or no
        series can be read.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.data import read_series
    >>> days = pd.date_range("2024-01-01", periods=3)
    >>> df = pd.DataFrame({"unique_id": list("aaabbb"), "ds": [*days, *days], "y": range(6)})
    >>> panel, faults = read_series(df.assign(y=df["y"].replace(4, np.inf)))
    >>> list(panel.ids), list(faults)
    (['a'], ['b'])
    """
    table, targets, exog_names = _open(df, target, id_col, time_col, missing, None, None)
    codes, ids = table.groups()

    def read(series: list[int]) -> Panel:
        part = table if len(series) == len(ids) else table.rows(np.isin(codes, series))
        return _panel(part, targets, exog_names, freq, missing, None)

    panels, faults = tell_apart(range(len(ids)), read, _HOPELESS)
    if len(panels) > 1:
        # The frequency that most series have: alone, a short one need not show it.
        counts: Counter[Freq] = Counter()
        for panel in panels:
            counts[panel.freq] += panel.n_series
        freq = counts.most_common(1)[0][0]
        _, faults = tell_apart(range(len(ids)), read)
        panels = []
    good = [i for i in range(len(ids)) if i not in faults]
    why = {ids[i]: str(error) for i, error in sorted(faults.items())}
    return panels[0] if panels else read(good), why


def _open(
    df: Any,
    target: Any,
    id_col: str,
    time_col: str,
    missing: str,
    exog: Sequence[Name] | None,
    layout: Layout | None,
) -> tuple[Table, tuple[Name, ...], tuple[Name, ...]]:
    """Take a frame or files apart; the names of the targets and of the exogenous columns."""
    if missing not in _MISSING:
        raise ValueError(f"missing must be one of {_MISSING}; got {missing!r}.")
    if layout is not None:
        id_col = layout.id_col or id_col
        time_col = time_col if layout.time_col is None else layout.time_col  # type: ignore[assignment]
    for argument, name in (("id_col", id_col), ("time_col", time_col)):
        if not isinstance(name, str | int):
            raise TypeError(
                f"{argument} must be the name of one column; got {name!r}. Join several columns "
                "into one, such as df['store'] + '/' + df['item'], and name that"
            )

    def choose(table: Table) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
        if layout is not None:
            check_same_kind(table, layout)
        return choose_columns(table, target, exog, layout)

    if is_path(df):
        table = read_parquet(df, id_col, time_col, lambda part: _as_frame(part, *choose(part)))
    else:
        table = read_table(df, id_col, time_col, layout)
    return table, *choose(table)


def _panel(
    table: Table,
    targets: tuple[Name, ...],
    exog_names: tuple[Name, ...],
    freq: Any,
    missing: str,
    layout: Layout | None,
) -> Panel:
    """Check the rows of a table and put them in order."""
    axis, order = _make_axis(table)
    check_increasing(axis)
    grid = make_grid(table.stamps, axis, freq, layout)
    data = _numbers(table, targets, exog_names)[order]
    n = len(targets)
    axis, data = _regular(axis, grid, data, (*targets, *exog_names), n, missing)
    return Panel(
        values=np.ascontiguousarray(data[:, :n]),
        indptr=axis.indptr,
        ids=axis.ids,
        times=axis.times,
        exog=np.ascontiguousarray(data[:, n:]),
        exog_names=exog_names,
        layout=_make_layout(table, targets, grid.alias),
    )


def make_grid(stamps: Stamps, axis: Axis, freq: Any, layout: Layout | None) -> Grid:
    """Return the grid of the timestamps: given, carried by them, or inferred.

    Raises
    ------
    ValueError
        If the frequency is not understood, contradicts the timestamps, or cannot be inferred.
    """
    if freq is None and layout is not None:
        freq = layout.freq
    if stamps.kind == "period":
        return _period_grid(stamps, freq)
    if freq is None:
        freq = stamps.freq
    if freq is None:
        return infer_grid(axis)
    grid = parse_freq(freq)
    if (stamps.kind == "integer") != (type(grid) is Count):
        raise ValueError(
            f"freq={freq!r} does not fit {stamps.kind} timestamps: an integer index takes an "
            'integer step such as freq=1, datetimes an alias such as freq="MS".'
        )
    if layout is not None and grid.alias != layout.freq:
        raise ValueError(
            f"freq must be that of the data fitted to, {layout.freq!r}; got {freq!r}. Leave it out."
        )
    _check_resolution(grid, stamps.dtype)
    return grid


def check_same_kind(table: Table, layout: Layout) -> None:
    """Refuse a frame of another kind than the one a model was fitted to.

    Raises
    ------
    ValueError
        Saying what differs.
    """
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
        return f"long with the id column {ids!r}" if ids else "long without an id column"
    place = "index" if shape.time_col is None else f"column {shape.time_col!r}"
    return f"{shape.kind} (time in the {place})"


def _make_axis(table: Table) -> tuple[Axis, np.ndarray | slice]:
    """Return the time side, sorted by series, and the order of the rows."""
    codes, ids = table.groups()
    times = table.stamps.values
    order: np.ndarray | slice = slice(None)
    if np.any(codes[1:] < codes[:-1]):
        order = np.argsort(codes, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(ids)))])
    named = table.ids is not None
    period = period_freq(table.stamps.dtype)
    # a copy, since without a change of order the times are still the frame's own
    return Axis(np.array(times[order]), indptr, ids, named, table.stamps.tz, period), order


def _numbers(table: Table, targets: tuple[Name, ...], exog: tuple[Name, ...]) -> np.ndarray:
    """Return targets and exogenous columns side by side."""
    columns = table.columns
    if table.kind == "series":
        columns = columns.set_axis(list(targets), axis=1)
    values = numeric(columns, targets, "the target", booleans=False)
    return np.hstack([values, numeric(columns, exog, "the column")]) if exog else values


def _as_frame(table: Table, targets: tuple[Name, ...], exog: tuple[Name, ...]) -> pd.DataFrame:
    return pd.DataFrame(_numbers(table, targets, exog), columns=[*targets, *exog])


def _regular(
    axis: Axis, grid: Grid, data: np.ndarray, names: Sequence[Name], n_targets: int, missing: str
) -> tuple[Axis, np.ndarray]:
    """Check that rows and values are complete, or complete them."""
    offsets = checked_positions(axis, grid)
    if missing == "keep":
        check_infinite(data, names, axis)
        axis, data = _complete(axis, grid, offsets, data)
        check_complete(data[:, n_targets:], names[n_targets:], axis)
        return axis, data
    fill = missing == "interpolate"
    check_finite(data, names, axis, fill=fill)
    if not fill:
        check_gaps(axis, grid, offsets)
        return axis, data
    axis, data = _complete(axis, grid, offsets, data)
    return axis, interpolate(data)


def _complete(
    axis: Axis, grid: Grid, offsets: np.ndarray, data: np.ndarray
) -> tuple[Axis, np.ndarray]:
    """Insert the missing rows, if there are any, with all their values missing."""
    lengths = offsets[axis.indptr[1:] - 1] + 1
    if lengths.sum() == len(data):
        return axis, data
    check_few_missing(axis, grid, lengths)
    return _insert(axis, grid, offsets, lengths, data)


def _insert(
    axis: Axis, grid: Grid, offsets: np.ndarray, lengths: np.ndarray, data: np.ndarray
) -> tuple[Axis, np.ndarray]:
    """Insert the missing rows, so that series i has lengths[i]."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    steps = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
    firsts = np.repeat(axis.times[axis.indptr[:-1]], lengths)
    times = grid.advance(firsts, steps, axis.tz)
    full = Axis(times, indptr, axis.ids, axis.named, axis.tz, axis.period)
    return full, insert_rows(data, indptr[axis.codes] + offsets, len(times))


def _period_grid(stamps: Stamps, freq: Any) -> Grid:
    carried = str(stamps.freq)
    given = carried if freq is None else getattr(freq, "freqstr", freq)
    if given != carried:
        raise ValueError(
            f"freq must be that of the periods, {carried!r}; got {freq!r}. Leave it out, or "
            "convert the periods by asfreq or to_timestamp."
        )
    return Count(period_step(carried), carried)


def _check_resolution(grid: Grid, dtype: str) -> None:
    sizes = TICKS | {"date": NS_PER_DAY}
    unit = sizes.get(dtype.removeprefix("datetime64[").removesuffix("]"), 1)
    if isinstance(grid, Tick) and grid.step % unit:
        raise ValueError(
            f"freq={grid.alias!r} is finer than the timestamps ({dtype}). Use another freq, or "
            'convert the timestamps by astype("datetime64[ns]").'
        )


def _make_layout(table: Table, targets: tuple[Name, ...], freq: Freq) -> Layout:
    return Layout(
        kind=table.kind,
        backend=table.backend,
        target_names=targets,
        time_kind=table.stamps.kind,
        freq=freq,
        time_dtype=table.stamps.dtype,
        tz=table.stamps.tz,
        id_col=table.id_col,
        time_col=table.time_col,
        index_name=table.index_name,
        series_name=table.series_name,
    )
