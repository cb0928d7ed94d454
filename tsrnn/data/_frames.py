"""Panels and forecasts as frames in the shape of the data, in pandas or polars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.data._digits import to_digits
from tsrnn.data._faults import quote, quoted
from tsrnn.data._frequency import Tick, TradingDays, parse_freq, steps_of, stretch
from tsrnn.data._panel import Layout, Name, Panel
from tsrnn.data._timestamps import digit_form, period_freq, periods

# Types of polars that convert to one two-dimensional array without a change of dtype.
NUMBERS = (
    nw.Float64, nw.Float32, nw.Int64, nw.Int32, nw.Int16, nw.Int8,
    nw.UInt64, nw.UInt32, nw.UInt16, nw.UInt8,
)  # fmt: skip


def write_frame(
    layout: Layout,
    ids: Any,
    times: np.ndarray,
    forecasts: Mapping[str, np.ndarray],
    *,
    target_names: tuple[Name, ...] | None = None,
    model: str = "ParaRNN",
    cutoffs: np.ndarray | None = None,
) -> Any:
    """Return forecasts as a frame in the shape of the data.

    Parameters
    ----------
    layout : Layout
        Layout of the data.
    ids : array_like, shape (S,)
        Id of each forecast; repeats if there are several cutoffs.
    times : ndarray, shape (S, h)
        Of the kind of `Panel.times`.
    forecasts : mapping of str to ndarray, each of shape (S, h, n_targets)
        "" is the point forecast; other keys ("-lo-80", "-hi-80") are suffixes of its column.
    target_names : tuple of str or int, optional
        Names of the targets; by default those of the layout.
    model : str
        Name of the forecast column of a long frame with one target, and of an unnamed Series
        with intervals.
    cutoffs : ndarray, shape (S,), optional
        Last timestamp known to each forecast, written as a column "cutoff" before the forecasts.
        A wide frame then stacks the forecasts of all cutoffs.

    Returns
    -------
    pandas.Series, pandas.DataFrame, polars.DataFrame or ndarray
        The point forecast alone of a Series is a Series, of an array an array with as many axes.
        Frames with time in a column have ids and timestamps first and a new index.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.data import future_times, read_panel, write_frame
    >>> y = pd.Series([1.0, 2.0, 3.0], pd.RangeIndex(3), name="sales")
    >>> panel = read_panel(y)
    >>> forecasts = {"": np.array([[[4.0], [5.0]]])}
    >>> write_frame(panel.layout, panel.ids, future_times(panel, 2), forecasts)
    3    4.0
    4    5.0
    Name: sales, dtype: float64
    """
    names = layout.target_names if target_names is None else tuple(target_names)
    _check_shapes(len(ids), times, forecasts, len(names), layout, cutoffs)
    labels = _forecast_labels(layout, forecasts, names, model)
    values = np.empty((len(names), len(forecasts), times.size))  # rows are columns of the frame
    for k, forecast in enumerate(forecasts.values()):
        values[:, k] = forecast.reshape(times.size, len(names)).T
    before: dict[str, pd.Index] = {}
    if cutoffs is not None:
        before["cutoff"] = write_stamps(np.repeat(cutoffs, times.shape[1]), layout)
    whole = cutoffs is None and layout.time_col is None  # time is in the index
    if layout.backend == "numpy" and whole and list(forecasts) == [""]:
        return values.ravel() if layout.kind == "series" else values[:, 0].T.copy()
    stamps = (_index if whole else write_stamps)(times.ravel(), layout)
    if whole and layout.kind == "series" and list(forecasts) == [""]:
        index = stamps.rename(layout.index_name)
        return pd.Series(values.ravel(), index=index, name=layout.series_name)
    rows = pd.Index(ids)
    rows = rows if layout.id_col is None else rows.repeat(times.shape[1])
    frame = _frame(layout, rows, stamps, before, labels, values.reshape(len(labels), times.size))
    return in_library(frame, layout)


def _frame(
    layout: Layout,
    ids: pd.Index,
    stamps: pd.Index,
    before: Mapping[str, Any],
    labels: Sequence[Name],
    values: np.ndarray,
) -> pd.DataFrame:
    """Return a frame of ids, timestamps, the columns `before`, and `values` (columns, rows).

    The frame holds the array itself: to build thousands of columns takes longer than to forecast.
    """
    keys: dict[Name, Any] = {}
    if layout.time_col is not None:
        keys |= {} if layout.id_col is None else {layout.id_col: ids}
        keys |= {layout.time_col: stamps}
    _check_distinct([*keys, *before, *labels])
    index = stamps.rename(layout.index_name) if layout.time_col is None else None
    frame = pd.DataFrame(values.T, index=index, columns=_labels(*labels).view(), copy=False)
    for place, (name, column) in enumerate([*keys.items(), *before.items()]):
        frame.insert(place, name, column)
    return frame


@lru_cache(maxsize=64)
def _labels(*labels: Name) -> pd.Index:
    """Return labels of columns, cached: all forecasts of a stream have the same."""
    return pd.Index(labels)


def _check_shapes(
    n_series: int,
    times: np.ndarray,
    forecasts: Mapping[str, np.ndarray],
    n_targets: int,
    layout: Layout,
    cutoffs: np.ndarray | None,
) -> None:
    if times.ndim != 2 or len(times) != n_series:
        raise ValueError(f"times must have shape ({n_series}, h); got {times.shape}.")
    for key, forecast in forecasts.items():
        if forecast.shape != (*times.shape, n_targets):
            raise ValueError(
                f"forecasts[{key!r}] must have shape {(*times.shape, n_targets)} (series, h, "
                f"targets); got {forecast.shape}."
            )
    if cutoffs is not None and cutoffs.shape != (n_series,):
        raise ValueError(f"cutoffs must have shape ({n_series},); got {cutoffs.shape}.")
    if layout.kind != "long" and cutoffs is None and n_series != 1:
        raise ValueError(f"a {layout.kind} layout has one series; got {n_series}. Give cutoffs.")


def _forecast_labels(
    layout: Layout, forecasts: Mapping[str, np.ndarray], names: tuple[Name, ...], model: str
) -> list[Name]:
    """Return the names of the columns of forecasts, target by target."""
    alone = layout.kind == "long" and len(names) == 1
    unnamed = layout.kind == "series" and layout.series_name is None
    bases = (model,) if alone or unnamed else names
    return [base if key == "" else f"{base}{key}" for base in bases for key in forecasts]


def _check_distinct(names: list[Name]) -> None:
    """Refuse repeated names of columns."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"columns of the forecasts must have names of their own; there would be more than one "
            f"{quoted(repeated)}, as a column of the data has that name. Rename it and fit again."
        )


def _index(times: np.ndarray, layout: Layout) -> pd.Index:
    """Return consecutive timestamps as an index, with a frequency if pandas can hold it.

    pandas has no daily index over a midnight that a change of clocks leaves out.
    """
    if layout.irregular:
        return write_stamps(times, layout)
    written = digit_form(layout.time_dtype) is not None
    if layout.time_kind == "datetime" and layout.tz is None and not written:
        index = stretch(str(layout.freq)).index(times)
        if index is not None:
            return index.as_unit(stamp_unit(layout))
    stamps = write_stamps(times, layout)
    if not isinstance(stamps, pd.DatetimeIndex):
        return stamps
    if isinstance(layout.grid, TradingDays):
        follow = (np.diff(layout.grid.numbers(times, layout.tz)) == 1).all()
        return pd.DatetimeIndex(stamps, freq=layout.grid.offset) if follow else stamps
    wall = stamps.tz_localize(None)
    fixed = isinstance(parse_freq(layout.freq), Tick)
    if fixed or len(set(wall.time)) == 1:
        return pd.DatetimeIndex(stamps, freq=str(layout.freq))
    return stamps


def write_paths(
    layout: Layout, ids: Any, times: np.ndarray, paths: np.ndarray, *, model: str = "ParaRNN"
) -> Any:
    """Return simulated paths, shape (n, S, h, n_targets), stacked in the shape of the data.

    It is `write_frame` of each path, with a column "path" from 1 to n before the values. `model`
    names the column of a long frame with one target.
    """
    n, _, h, n_targets = paths.shape
    _check_shapes(len(ids), times, {"": paths[0]}, n_targets, layout, None)
    labels = _forecast_labels(layout, {"": paths}, layout.target_names, model)
    rows = np.tile(np.arange(times.size), n)
    number = {"path": np.repeat(np.arange(1, n + 1), times.size)}
    values = np.ascontiguousarray(paths.reshape(-1, n_targets).T)
    stamps = write_stamps(times.ravel(), layout)[rows]
    return in_library(
        _frame(layout, pd.Index(ids).repeat(h)[rows], stamps, number, labels, values), layout
    )


def is_array(values: object) -> bool:
    """Return True for arrays, lists and tuples."""
    return isinstance(values, np.ndarray | list | tuple)


def array_frame(values: Any, start: int = 0) -> pd.Series | pd.DataFrame:
    """Return an array or a list, shape (T,) or (T, C), as a Series or DataFrame.

    The index counts the rows from `start`.
    """
    required = "an array must have one axis, rows, or two, rows and variables"
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise TypeError(f"{required}; got rows of different lengths. {error}") from error
    if array.ndim not in (1, 2):
        advice = "Give a long frame with a column of ids for several series"
        raise TypeError(f"{required}; got shape {array.shape}. {advice}")
    index = pd.RangeIndex(start, start + len(array))
    return pd.Series(array, index) if array.ndim == 1 else pd.DataFrame(array, index)


def panel_frame(panel: Panel, columns: Sequence[Name] | None = None) -> pd.DataFrame | pd.Series:
    """Return the rows of a panel as a frame; the inverse of `read_panel`.

    Parameters
    ----------
    panel : Panel
    columns : sequence of str or int, optional
        Exogenous columns to return without targets, as in `X_future`; by default targets and all
        exogenous columns. Columns of labels have their name in the frame that was read.

    Returns
    -------
    pandas.Series or pandas.DataFrame
        Frame of the kind of the layout, always of pandas. Inserted rows have NaN targets. Labels
        are categorical with all levels.

    Examples
    --------
    >>> from tsrnn.data import panel_frame, read_panel
    >>> from tsrnn.datasets import load_nile
    >>> panel_frame(read_panel(load_nile())).equals(load_nile())
    True
    """
    layout, stamps = panel.layout, write_stamps(panel.times, panel.layout)
    if layout.kind == "series" and columns is None:
        values = panel.values[:, 0].copy()  # pandas 2 would share the memory of the panel
        return pd.Series(values, index=stamps, name=layout.series_name)
    chosen = panel.exog_columns if columns is None else tuple(columns)
    coded = {each.column: each for each in layout.categories if each.column in chosen}
    numbers = [name for name in chosen if name not in coded]
    targets = panel.target_names if columns is None else ()
    values = np.empty((len(targets) + len(numbers), len(panel.times)))  # rows are columns
    values[: len(targets)] = panel.values.T[: len(targets)]
    values[len(targets) :] = panel.exog_of(numbers).T
    rows = panel.ids.repeat(panel.lengths)
    frame = _frame(layout, rows, stamps, {}, [*targets, *numbers], values)
    n_before = frame.shape[1] - len(numbers)
    for place, name in enumerate(chosen):
        if name in coded:
            labels = coded[name].labels(panel.exog_of(coded[name].names))
            frame.insert(n_before + place, name, labels)  # type: ignore[arg-type]
    return frame


def row_keys(layout: Layout, ids: pd.Index, times: np.ndarray) -> pd.DataFrame:
    """Return a pandas frame with the time of each of N rows, and its id if the data have ids."""
    as_pandas = replace(layout, backend="pandas")
    if layout.kind == "long":
        empty = {"": np.zeros((len(times), 1, 1))}
        frame = write_frame(as_pandas, ids, times[:, None], empty, target_names=("",))
        return frame.iloc[:, :-1]
    name = layout.index_name if layout.time_col is None else layout.time_col
    return write_stamps(times, as_pandas).to_frame(
        index=False, name="time" if name is None else name
    )


def by_row(panel: Panel, columns: Mapping[str, np.ndarray]) -> Any:
    """Return values of every row and target in long form.

    Parameters
    ----------
    panel : Panel
    columns : mapping of str to ndarray, shape (N, n_targets)

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        Id and time as in the data, ``target`` if there are several, then the columns. Targets of
        a series are stacked. The library is that of the data.

    Examples
    --------
    >>> from tsrnn.data import by_row, read_panel
    >>> from tsrnn.datasets import load_nile
    >>> panel = read_panel(load_nile())
    >>> by_row(panel, {"double": 2 * panel.values}).columns.tolist()
    ['ds', 'double']
    """
    layout, n_targets = panel.layout, panel.values.shape[1]
    keys = row_keys(layout, panel.ids.repeat(panel.lengths), panel.times)
    series = np.repeat(np.arange(panel.n_series), panel.lengths)
    target = np.tile(np.arange(n_targets), len(keys))
    order = np.lexsort((target, np.repeat(series, n_targets)))  # stable: times stay in order
    frame = keys.loc[keys.index.repeat(n_targets)].reset_index(drop=True)
    if n_targets > 1:
        frame["target"] = np.array(layout.target_names, dtype=object)[target]
    numbers = pd.DataFrame({name: values.ravel() for name, values in columns.items()})
    rows = pd.concat([frame, numbers], axis=1).iloc[order].reset_index(drop=True)
    return in_library(rows, layout)


def write_stamps(times: np.ndarray, layout: Layout) -> pd.Index:
    """Convert times of a panel, shape (N,), to the timestamps of its layout.

    Future rows of irregular data have steps after the last row: 1, 2, ...
    """
    if layout.time_kind == "period":
        return periods(times, period_freq(layout.time_dtype))
    steps = steps_of(times) if layout.irregular else None
    if steps is not None:
        return pd.Index(steps)
    form, dtype = digit_form(layout.time_dtype), layout.time_dtype
    if form is not None:
        times, dtype = to_digits(times, form), dtype[len(form) + 1 : -1]
    if layout.time_kind == "integer" or form is not None:
        whole = not dtype.startswith("float")
        bounds = np.iinfo(dtype) if whole else np.finfo(dtype)
        fits = times.size == 0 or (times.min() >= bounds.min and times.max() <= bounds.max)
        # Forecasts may leave the range of a short dtype such as int16.
        return pd.Index(times, dtype=dtype if fits else "int64")
    index = pd.DatetimeIndex(times.astype("datetime64[ns]"))
    index = index.as_unit(stamp_unit(layout))
    return index if layout.tz is None else index.tz_localize("UTC").tz_convert(layout.tz)


def stamp_unit(layout: Layout) -> Any:
    """Return the unit of datetimes of a layout; "us" for polars Date."""
    return "us" if layout.time_dtype == "date" else layout.time_dtype[len("datetime64[") : -1]


def in_library(frame: pd.DataFrame, layout: Layout) -> Any:
    """Convert a frame to the library of the data.

    Parameters
    ----------
    frame : DataFrame
        Output of `write_frame` for pandas; for polars, its timestamps are in a column.
    layout : Layout

    Returns
    -------
    pandas.DataFrame or polars.DataFrame

    Examples
    --------
    >>> from tsrnn.data import in_library, panel_frame, read_panel
    >>> from tsrnn.datasets import load_nile
    >>> panel = read_panel(load_nile())
    >>> in_library(panel_frame(panel), panel.layout).equals(load_nile())
    True
    """
    if layout.backend != "polars":
        return frame
    table = to_polars(frame)
    if layout.time_dtype != "date":
        return table
    names = [name for name in (str(layout.time_col), "cutoff") if name in frame.columns]
    dates = [name for name in names if frame[name].dtype.kind == "M"]  # steps are integers
    return nw.from_native(table).with_columns(nw.col(*dates).cast(nw.Date)).to_native()


def to_pandas(frame: Any) -> pd.DataFrame:
    """Convert a polars frame to pandas; return a pandas frame itself."""
    if isinstance(frame, pd.DataFrame):
        return frame
    return pandas_columns(nw.from_native(frame, eager_only=True))


def pandas_columns(source: nw.DataFrame[Any]) -> pd.DataFrame:
    """Convert a frame of polars to pandas, columns of one numeric dtype as one block."""
    alike: dict[Any, list[str]] = {}
    for name, dtype in source.schema.items():
        if dtype in NUMBERS:
            alike.setdefault(dtype, []).append(name)
    blocks = []
    for dtype, names in alike.items():
        part = source.select(names)
        # Integer columns with a missing value become floats; the others of their dtype do not.
        whole = dtype.is_float() or not any(part.select(nw.all().null_count()).row(0))
        if whole and len(names) > 1:
            blocks.append(pd.DataFrame(part.to_numpy(), columns=names))
    together = {name for block in blocks for name in block.columns.tolist()}
    alone = {n: pandas_column(source[n]) for n in source.columns if n not in together}
    index = pd.RangeIndex(len(source))
    frame = pd.concat([pd.DataFrame(alone, index=index), *blocks], axis=1)
    return frame if frame.columns.tolist() == source.columns else frame[source.columns]


def pandas_labels(column: nw.Series[Any]) -> pd.Series:
    """Convert a text column of polars to a categorical; as text, each row would be an object."""
    text = column.cast(nw.String)
    labels: Any = text.drop_nulls().unique(maintain_order=True).to_list()
    numbers = nw.from_native(text.cast(nw.Enum(labels)).to_native().to_physical(), series_only=True)
    codes: Any = numbers.cast(nw.Int64).fill_null(-1).to_numpy()
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(labels)))


def pandas_column(column: nw.Series[Any]) -> pd.Series:
    """Convert a column of polars to pandas."""
    if column.dtype == nw.Boolean and column.null_count() > 0:
        column = column.cast(nw.Float64)
    if column.dtype == nw.Enum:  # its order is part of the dtype
        levels: Any = column.cat.get_categories().to_list()
        return pd.Series(pd.Categorical(column.to_list(), levels))
    if column.dtype.is_nested() or column.dtype in (nw.Object, nw.Int128, nw.UInt128):
        return pd.Series(column.to_list(), dtype=object)
    tz = getattr(column.dtype, "time_zone", None)
    series: Any = pd.Series(column.to_numpy())
    return series if tz is None else series.dt.tz_localize("UTC").dt.tz_convert(tz)


def to_polars(frame: Any) -> Any:
    """Convert a pandas frame to polars; its index is dropped.

    Timestamps keep their zone; periods become their first timestamp. Columns of several types, and
    names that are equal as text, are refused.
    """
    if not isinstance(frame, pd.DataFrame):
        return frame
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(
            f"columns must differ in their names; named twice are {twice}. Rename them"
        )
    floats = [name for name, dtype in frame.dtypes.items() if dtype == np.float64]
    others, numbers = frame.drop(columns=floats), frame[floats].to_numpy()
    columns: dict[str, Any] = dict.fromkeys(names)  # keeps the order of columns
    columns |= {str(name): _values(pd.Index(column)) for name, column in others.items()}
    columns |= {str(name): numbers[:, j] for j, name in enumerate(floats)}
    try:
        # Column by column: from a square array polars 1.30 may take the rows for columns.
        table = nw.from_dict(columns, backend="polars")
    except ModuleNotFoundError as error:
        raise ImportError(
            "polars is needed and not installed. Run pip install 'tsrnn[polars]'"
        ) from error
    except TypeError as error:
        raise TypeError(
            f"a column of polars holds values of one type, a column of this frame does not: "
            f"{error}. Convert it, for example by astype('str')"
        ) from error
    zones = {
        str(name): str(column.dt.tz)
        for name, column in others.items()
        if isinstance(column.dtype, pd.DatetimeTZDtype)
    }
    for name, zone in zones.items():
        utc = nw.col(name).dt.replace_time_zone("UTC")
        try:
            table = table.with_columns(utc.dt.convert_time_zone(zone))
        except Exception as error:  # an exception of polars, which is not imported here
            raise ValueError(
                f"columns of polars hold times of the zones of the tz database, such as "
                f"'Europe/Berlin'; the column {quote(name)} has {zone}. Convert it, for example by "
                "dt.tz_convert('UTC')"
            ) from error
    return table.to_native()


def _values(column: pd.Index) -> np.ndarray | list[Any]:
    """Return a column in a form that polars accepts: timestamps in UTC, text as a list."""
    if isinstance(column, pd.PeriodIndex):
        column = column.to_timestamp()
    if isinstance(column, pd.DatetimeIndex):
        utc = column if column.tz is None else column.tz_convert("UTC").tz_localize(None)
        return (utc.as_unit("ms") if utc.unit == "s" else utc).to_numpy()
    array = np.asarray(column)
    if array.dtype.kind in "iufb":
        return array
    return column.astype(object).where(column.notna(), None).tolist()
