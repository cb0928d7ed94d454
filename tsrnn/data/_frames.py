"""Which frames are accepted, and where their ids, timestamps and columns are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.data._columns import CONVERT, is_real, written_number
from tsrnn.data._dates import is_text, looks_like_dates
from tsrnn.data._layout import Layout, Name
from tsrnn.data._libraries import pandas_column
from tsrnn.data._stamps import Stamps, read_stamps
from tsrnn.data._text import listed, quote, quoted

__all__ = ["Table", "read_table"]

_ACCEPTED = (
    "a pandas Series or DataFrame with a DatetimeIndex, PeriodIndex or integer index, or a "
    "pandas or polars DataFrame with a time column"
)
YEARS = 1500, 2200  # whole numbers in between that rise by one are years, not a variable
DEFAULT_TIME = "ds"  # name of the time column where none is given
_LOST = "Give one with rows; a filter or a join before may have left none."


@dataclass(frozen=True, eq=False)
class Table:
    """A frame taken apart, its rows as they came.

    Parameters
    ----------
    kind, backend
        See `Layout`.
    columns : DataFrame
        Everything but ids and timestamps; its index means nothing.
    stamps : Stamps
    ids : pandas.Index or None
        Id of each row.
    id_col, time_col, index_name, series_name
        See `Layout`.
    """

    kind: Literal["series", "wide", "long"]
    backend: Literal["pandas", "polars"]
    columns: pd.DataFrame
    stamps: Stamps
    ids: pd.Index | None = None
    id_col: str | None = None
    time_col: Name | None = None
    index_name: Name | None = None
    series_name: Name | None = None

    @property
    def names(self) -> list[Name]:
        """Names of the columns."""
        return list(self.columns.columns)

    def rows(self, mask: np.ndarray) -> Table:
        """Return some of the rows."""
        return replace(
            self,
            columns=self.columns[mask],
            stamps=replace(self.stamps, values=self.stamps.values[mask]),
            ids=None if self.ids is None else self.ids[mask],
        )

    def groups(self) -> tuple[np.ndarray, pd.Index]:
        """Return the number of the series of each row and the ids in order of appearance.

        A frame without ids is one series, with the id 0.
        """
        if self.ids is None:
            return np.zeros(len(self.columns), np.int64), pd.Index([0])
        try:
            codes, ids = pd.factorize(self.ids)
        except TypeError as error:
            raise TypeError(
                f"the column {self.id_col!r} must hold text, numbers or other values that can be "
                f"compared and hashed; {error}. Convert the ids, for example by astype(str)."
            ) from error
        rows = np.flatnonzero(codes < 0)
        if len(rows):
            raise ValueError(
                f"the column {self.id_col!r} must name a series in each row; {len(rows)} ids are "
                f"missing, at row {listed(rows, 3)}. Fill them in or drop these rows."
            )
        return codes, pd.Index(np.asarray(ids)) if self.ids.dtype == "category" else pd.Index(ids)


def read_table(df: object, id_col: str, time_col: Name, layout: Layout | None = None) -> Table:
    """Take a frame apart.

    Parameters
    ----------
    df : Series or DataFrame
    id_col, time_col : str
        Columns of a long frame.
    layout : Layout, optional
        Of the data that the frame is to agree with; by default the shape is that of the frame.

    Raises
    ------
    TypeError
        If it is no accepted frame, or its timestamps are none.
    ValueError
        If it is empty, or names or timestamps are missing or repeated, or it is not clear which
        column holds the timestamps.
    """
    if isinstance(df, pd.Series):
        return _read_series(df)
    frame, backend, dates = _open(df)
    _check_names(frame)
    if len(frame) == 0:
        raise ValueError(f"the frame must have rows; it is empty. {_LOST}")
    if time_col in frame.columns:
        if layout is not None and layout.kind == "wide" and layout.time_col is not None:
            return _read_wide(frame, backend, time_col, dates)
        return _read_long(frame, backend, id_col, str(time_col), dates)
    in_column = None
    if layout is None or (layout.kind != "long" and layout.time_col is None):
        in_column = _date_column(frame, backend, id_col, time_col)
    if in_column is not None:
        return _read_wide(frame, backend, in_column, dates)
    if backend == "polars" or id_col in frame.columns:
        raise ValueError(
            f"a long frame needs the time column {time_col!r}; its columns are "
            f"{quoted(frame.columns)}. Name the one with the timestamps by time_col."
        )
    if layout is None:
        _check_no_years(frame)
    return _read_wide(frame, backend, None, dates)


def _check_no_years(frame: pd.DataFrame) -> None:
    """Refuse a frame whose index says nothing and one of whose columns counts years.

    Raises
    ------
    ValueError
        Saying how to make that column the time.
    """
    index = frame.index
    says_nothing = index.name is None and index.equals(pd.RangeIndex(len(frame)))
    if not says_nothing or len(frame) < 2 or frame.shape[1] < 2:
        return
    for name in frame.columns:
        column = frame[name]
        if not pd.api.types.is_integer_dtype(column.dtype) or column.hasnans:
            continue
        years = column.to_numpy()
        if YEARS[0] <= years[0] <= years[-1] <= YEARS[1] and (np.diff(years) == 1).all():
            raise ValueError(
                f"time must be in the index; the frame counts its rows and has years in the column "
                f"{name!r}. Use df.set_index({name!r}); if they are a variable, give the frame an "
                "index of its own times."
            )


def _date_column(frame: pd.DataFrame, backend: str, id_col: str, time_col: Name) -> Name | None:
    """Return the column that holds the time of a wide frame; None if there are no dates.

    That is the only column of dates of a frame whose other columns are numbers and whose index
    says nothing.

    Raises
    ------
    ValueError
        If there are dates and doubt about them, saying how to resolve it.
    """
    dated = [name for name in frame.columns if _holds_dates(frame[name])]
    if not dated:
        return None
    day, index = dated[0], frame.index
    said = f"time_col={day!r}"
    if id_col in frame.columns:
        raise ValueError(
            f"a long frame needs the time column {time_col!r}; dates are in {quoted(dated)}. Give "
            f"{said}."
        )
    if time_col not in (DEFAULT_TIME, ""):
        raise ValueError(
            f"time_col={time_col!r} is no column of the frame; dates are in {quoted(dated)}. Give "
            f"{said}, or leave time_col out."
        )
    if len(dated) > 1:
        raise ValueError(
            f"one column must hold the time; dates are in {quoted(dated)}. Keep one of them: "
            f"df.drop(columns={dated[1:]!r})."
        )
    if backend == "pandas" and not (_is_count(index) and index.name is None):
        raise ValueError(
            f"time must be in the index or in a column; the frame has dates in the column {day!r} "
            f"and an index of its own ({index.dtype}). Drop the one that is not the time: "
            f"df.drop(columns={day!r}), or df.reset_index(drop=True)."
        )
    others = [name for name in frame.columns if name != day]
    text = [name for name in others if not is_real(frame[name])]
    if text:
        raise _no_numbers(frame, day, others, text)
    if not others:
        raise ValueError(
            f"a frame needs a column to forecast; it has the dates in {day!r} alone. Add one."
        )
    return day


def _holds_dates(column: pd.Series) -> bool:
    dates = (pd.DatetimeTZDtype, pd.PeriodDtype)
    return column.dtype.kind == "M" or isinstance(column.dtype, dates) or looks_like_dates(column)


def _is_count(index: pd.Index) -> bool:
    """Whether an index only counts rows, some of which may have been left out."""
    return pd.api.types.is_integer_dtype(index.dtype)


def _no_numbers(
    frame: pd.DataFrame, day: Name, others: Sequence[Name], text: Sequence[Name]
) -> ValueError:
    """Error for columns beside the dates that are no numbers."""
    name, column = text[0], frame[text[0]]
    must = f"the columns beside the dates in {day!r} must be numbers; not so {quoted(text)}"
    drop = f"if it is not needed, use df.drop(columns={text!r})"
    if not is_text(column):
        return ValueError(f"{must} (dtype {column.dtype}). Convert it; {drop}.")
    numeral = written_number(column)
    if numeral is not None:
        return ValueError(
            f"{must}, which are written as text, such as {quote(numeral)}. {CONVERT}; {drop}."
        )
    numbers = [other for other in others if other not in text]
    target = repr(numbers[0]) if len(numbers) == 1 else "..."
    return ValueError(
        f"{must}, such as {quote(column.dropna().iloc[0])}. If {quote(name)} names series, give "
        f"id_col={name!r}, time_col={day!r}, target={target}; {drop}."
    )


def _read_series(series: pd.Series) -> Table:
    if len(series) == 0:
        raise ValueError(f"the Series must have rows; it is empty. {_LOST}")
    _check_name(series.name)
    frame = series.to_frame("y" if series.name is None else series.name)
    stamps = read_stamps(series.index, "the index of the Series")
    _check_name(series.index.name)
    names = {"index_name": series.index.name, "series_name": series.name}
    return Table("series", "pandas", frame, stamps, **names)  # type: ignore[arg-type]


def _read_wide(
    frame: pd.DataFrame,
    backend: Literal["pandas", "polars"],
    time_col: Name | None,
    dates: frozenset[str],
) -> Table:
    """Read a wide frame, its time in a column or, without one, in its index."""
    if time_col is not None:
        stamps = read_stamps(
            pd.Index(frame[time_col]), f"the column {quote(time_col)}", is_date=time_col in dates
        )
        columns = frame.drop(columns=time_col)
        return Table("wide", backend, columns, stamps, time_col=time_col)
    if frame.shape[1] == 0:
        raise ValueError("the frame must have columns; it has none. Add those to forecast.")
    stamps = read_stamps(frame.index, "the index of a frame without a time column")
    _check_name(frame.index.name)
    return Table("wide", "pandas", frame, stamps, index_name=frame.index.name)  # type: ignore[arg-type]


def _read_long(
    frame: pd.DataFrame,
    backend: Literal["pandas", "polars"],
    id_col: str,
    time_col: str,
    dates: frozenset[str],
) -> Table:
    times, what = pd.Index(frame[time_col]), f"the column {time_col!r}"
    stamps = read_stamps(times, what, is_date=time_col in dates)
    has_ids = id_col in frame.columns
    if id_col in dates:  # so that they come back as dates
        frame = frame.assign(**{id_col: frame[id_col].dt.date})
    return Table(
        kind="long",
        backend=backend,
        columns=frame.drop(columns=[time_col, id_col] if has_ids else [time_col]),
        stamps=stamps,
        ids=pd.Index(frame[id_col]) if has_ids else None,
        id_col=id_col if has_ids else None,
        time_col=time_col,
    )


def _open(df: object) -> tuple[pd.DataFrame, Literal["pandas", "polars"], frozenset[str]]:
    """Return the frame in pandas, its library and the names of its polars Date columns."""
    if isinstance(df, pd.DataFrame):
        return df, "pandas", frozenset()
    if nw.dependencies.is_polars_lazyframe(df):
        raise TypeError(f"the data must be {_ACCEPTED}; got a polars LazyFrame. Call .collect().")
    if nw.dependencies.is_polars_dataframe(df):
        frame = nw.from_native(df, eager_only=True)
        dates = frozenset(name for name, dtype in frame.schema.items() if dtype == nw.Date)
        columns = {name: pandas_column(frame[name]) for name in frame.columns}
        return pd.DataFrame(columns), "polars", dates
    came = f"{type(df).__module__}.{type(df).__qualname__}".removeprefix("builtins.")
    raise TypeError(f"the data must be {_ACCEPTED}; got {came}.")


def _check_names(frame: pd.DataFrame) -> None:
    if isinstance(frame.columns, pd.MultiIndex):
        raise ValueError(
            f"columns must have one level; got a MultiIndex of {frame.columns.nlevels}. Join the "
            "levels to one name."
        )
    repeated = frame.columns[frame.columns.duplicated()].unique()
    if len(repeated):
        raise ValueError(
            f"column names must be unique; duplicated are {quoted(repeated)}. Rename or drop them."
        )
    for name in frame.columns:
        _check_name(name)
        if name is None:
            raise ValueError("columns must have names; one is None. Rename it.")


def _check_name(name: object) -> None:
    if name is not None and (isinstance(name, bool) or not isinstance(name, str | int)):
        raise ValueError(
            f"names of columns, index and Series must be strings or integers; got {name!r} "
            f"({type(name).__name__}). Rename it."
        )
