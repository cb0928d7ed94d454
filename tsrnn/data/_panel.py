"""The panel, to which every model of the package is fitted, and the layout of its frame."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from tsrnn.data._axis import Axis
from tsrnn.data._categories import Categories
from tsrnn.data._faults import quoted
from tsrnn.data._frequency import (
    IRREGULAR,
    MONDAY_TO_FRIDAY,
    Freq,
    Grid,
    Irregular,
    TradingDays,
    is_trading,
)

# Fields of a layout that are tuples, and lists in JSON.
LISTS = "target_names", "closed", "calendar_span", "row_times", "ignored"

Name: TypeAlias = str | int

# Kind of timestamps -> pattern of its dtypes.
_STAMPS = {
    "datetime": r"datetime64\[(s|ms|us|ns)\]|date|"
    r"YYYY(Q|MM|DDD|MMDD(HH(MM(SS)?)?)?)?\[(u?int(8|16|32|64)|float(16|32|64))\]",
    "period": r"period\[[A-Za-z0-9-]{1,20}\]",
    "integer": r"u?int(8|16|32|64)",
}
# A zone names a file of the tz database: the pattern refuses paths to files elsewhere.
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+:-]*(/[A-Za-z0-9_+:-]+)*")


@dataclass(frozen=True, eq=False)
class Panel:
    """Regular series of one frequency, one below the other.

    No row is missing. Values are finite, or NaN where missing if read with ``missing="keep"``.

    Parameters
    ----------
    values : ndarray of float64, shape (N, n_targets)
        Rows sorted by series, then time; NaN only if read with ``missing="keep"``.
    indptr : ndarray of int64, shape (S + 1,)
        Series i has the rows indptr[i] to indptr[i + 1].
    ids : pandas.Index, shape (S,)
        Ids in order of their first row; the id of a single series without one is 0.
    times : ndarray, shape (N,)
        datetime64[ns], in UTC if the layout has a zone; int64 ordinals of periods; int64 integers.
    exog : ndarray of float64, shape (N, n_exog)
        NaN only if read with ``missing="keep"``.
    exog_names : tuple of str or int
        Names of the columns of `exog`; a column of labels has the names of its dummies.
    layout : Layout
        Names of the targets, the frequency, and the shape of the frame that was read.
    notes : tuple of str
        Sentences about what was inserted, encoded or left out when the data were read.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import read_panel
    >>> ids, days = ["a", "a", "a", "b", "b"], pd.date_range("2024-01-01", periods=3)
    >>> df = pd.DataFrame({"unique_id": ids, "ds": days[[0, 1, 2, 0, 1]], "y": [1, 2, 3, 7, 8]})
    >>> panel = read_panel(df)
    >>> panel.n_series, panel.lengths, panel.series(1).ravel()
    (2, array([3, 2]), array([7., 8.]))
    """

    values: np.ndarray
    indptr: np.ndarray
    ids: pd.Index
    times: np.ndarray
    exog: np.ndarray
    exog_names: tuple[Name, ...]
    layout: Layout
    notes: tuple[str, ...] = ()

    @property
    def target_names(self) -> tuple[Name, ...]:
        """Names of the targets."""
        return self.layout.target_names

    @property
    def freq(self) -> Freq:
        """Frequency: a pandas alias, or the step of an integer index."""
        return self.layout.freq

    @property
    def exog_columns(self) -> tuple[Name, ...]:
        """Names of the exogenous columns in the frame, columns of labels in place of dummies.

        Columns of a single label, which have no dummies, come last.
        """
        single = [each.column for each in self.layout.categories if not each.names]
        return (*self.layout.frame_names(self.exog_names), *single)

    @property
    def n_series(self) -> int:
        """Number of series S."""
        return len(self.indptr) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each series, shape (S,)."""
        return np.diff(self.indptr)

    @property
    def last_times(self) -> np.ndarray:
        """Last timestamp of each series, shape (S,)."""
        return self.times[self.indptr[1:] - 1]

    @property
    def axis(self) -> Axis:
        """Time axis of the panel, for messages."""
        layout = self.layout
        named = layout.id_col is not None
        return Axis(self.times, self.indptr, self.ids, named, layout.time_dtype, layout.tz)

    def series(self, i: int) -> np.ndarray:
        """Return the values of series i, a view of shape (lengths[i], n_targets)."""
        return self.values[self.indptr[i] : self.indptr[i + 1]]

    def exog_of(self, names: Sequence[Name]) -> np.ndarray:
        """Return exogenous columns, shape (N, len(names)); a view if all are named in order.

        Raises
        ------
        KeyError
            If the panel has no such column.
        """
        if tuple(names) == self.exog_names:
            return self.exog
        places = {name: place for place, name in enumerate(self.exog_names)}
        return self.exog[:, np.array([places[name] for name in names], np.intp)]

    def complete_cases(self) -> Panel:
        """Set targets to NaN in rows with a missing exogenous value.

        The exogenous value itself becomes the last known one of the series, or 0 without any.
        """
        missing = np.isnan(self.exog)
        if not missing.any():
            return self
        first = np.repeat(self.indptr[:-1], self.lengths)[:, None]
        rows = np.arange(len(self.exog))[:, None]
        # Last row with a value; it may belong to the series before, which `first` rules out.
        known = np.maximum.accumulate(np.where(missing, -1, rows))
        filled = np.take_along_axis(self.exog, np.maximum(known, 0), 0)
        values = np.where(missing.any(1, keepdims=True), np.nan, self.values)
        return replace(self, values=values, exog=np.where(known >= first, filled, 0.0))

    def windows(self, length: int, step: int = 1) -> list[np.ndarray]:
        """Return the sliding windows of each series as views.

        Parameters
        ----------
        length : int
            Rows of a window.
        step : int
            Rows between the starts of neighbouring windows.

        Returns
        -------
        list of ndarray, each of shape (n_windows, length, n_targets)

        Raises
        ------
        ValueError
            If a series is shorter than a window, or an argument is below 1.
        """
        short = np.flatnonzero(self.lengths < length)
        if len(short):
            whose = f" {quoted(self.ids[short])}" if self.layout.id_col else ""
            raise ValueError(
                f"windows of {length} rows need series at least as long; the series{whose} "
                f"has only {self.lengths[short[0]]}. Take a smaller length, or drop short series."
            )
        return [windows(self.series(i), length, step) for i in range(self.n_series)]

    def tail(self, n: int) -> Panel:
        """Return the last n rows of each series, or all rows of a shorter series.

        Raises
        ------
        ValueError
            If n is below 1.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1; got {n}.")
        starts = np.maximum(self.indptr[1:] - n, self.indptr[:-1])
        return self._cut(np.arange(self.n_series), starts, self.indptr[1:])

    def between(self, starts: np.ndarray, ends: np.ndarray) -> Panel:
        """Return the rows starts[i] to ends[i] (exclusive) of each series i.

        Raises
        ------
        ValueError
            If a range is empty or leaves the series.
        """
        wrong = np.flatnonzero((starts < 0) | (ends > self.lengths) | (starts >= ends))
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"rows must lie within the {self.lengths[i]} of the series; got {starts[i]} to "
                f"{ends[i]}."
            )
        first = self.indptr[:-1]
        return self._cut(np.arange(self.n_series), first + starts, first + ends)

    def select(self, series: Any) -> Panel:
        """Select series by mask or id.

        Parameters
        ----------
        series : array_like
            A boolean mask of shape (S,), or ids in the order wanted.

        Raises
        ------
        ValueError
            If the mask has another length, an id is unknown or repeated, or nothing is selected.
        """
        mask = np.asarray(series)
        if mask.dtype == bool:
            if mask.shape != (self.n_series,):
                raise ValueError(
                    f"a mask must have one entry a series, {self.n_series}; got shape {mask.shape}."
                )
            chosen = np.flatnonzero(mask)
        else:
            ids = pd.Index(series)
            chosen = self.ids.get_indexer(ids)
            wrong = ids[(chosen < 0) | ids.duplicated()]
            if len(wrong):
                raise ValueError(
                    f"ids must be known and named once; unknown or repeated are {quoted(wrong)}."
                )
        if len(chosen) == 0:
            raise ValueError("at least one series must be selected; got none.")
        return self._cut(chosen, self.indptr[chosen], self.indptr[chosen + 1])

    def _cut(self, chosen: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Panel:
        """Return the rows from starts to ends of the chosen series; views if contiguous."""
        lengths = ends - starts
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        rows: slice | np.ndarray = slice(int(starts[0]), int(ends[-1]))
        if np.any(starts[1:] != ends[:-1]):
            rows = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return replace(
            self,
            values=self.values[rows],
            indptr=indptr,
            ids=self.ids[chosen],
            times=self.times[rows],
            exog=self.exog[rows],
        )


def windows(array: np.ndarray, length: int, step: int = 1) -> np.ndarray:
    """Return all windows of consecutive rows as a read-only view.

    Parameters
    ----------
    array : ndarray, shape (N, ...)
    length : int
        Rows of a window.
    step : int
        Rows between the starts of neighbouring windows.

    Returns
    -------
    ndarray, shape ((N - length) // step + 1, length, ...)
        Window i is array[i * step : i * step + length]; it shares the memory of `array`.

    Raises
    ------
    ValueError
        If `length` is not between 1 and N or `step` is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.data import windows
    >>> windows(np.arange(5), length=3)
    array([[0, 1, 2],
           [1, 2, 3],
           [2, 3, 4]])
    """
    if not 1 <= length <= len(array):
        raise ValueError(
            f"length must lie between 1 and the number of rows, {len(array)}; got {length}."
        )
    if step < 1:
        raise ValueError(f"step must be at least 1; got {step}.")
    return np.moveaxis(sliding_window_view(array, length, axis=0), -1, 1)[::step]


@dataclass(frozen=True)
class Layout:
    """Shape of a frame that was read, from which `write_frame` builds forecasts of that shape.

    Fields are JSON values, see `to_dict`; tuples become lists.

    Parameters
    ----------
    kind : {"series", "wide", "long"}
        A Series; a frame with a column per series and time in its index or in a column; a frame
        with the series stacked and time in a column.
    backend : {"pandas", "polars", "numpy"}
        Library of the frame; "numpy" for an array or a list, whose rows are counted from 0.
    target_names : tuple of str or int
        Columns to forecast. An unnamed Series has the target "y".
    time_kind : {"datetime", "period", "integer"}
        Kind of timestamps.
    freq : str or int
        Frequency: a pandas alias, or the step of an integer index.
    time_dtype : str
        Dtype of the timestamps without zone: "datetime64[us]", "period[M]", "int64", or "date"
        for a polars Date column. Dates in digits have their form, as in "YYYYMMDD[int64]".
    tz : str or None
        Time zone of the timestamps; None if they are naive.
    id_col : str or None
        Column with the series' ids; None if there is none.
    time_col : str, int or None
        Column with the timestamps; None if they are in the index.
    index_name : str, int or None
        Name of the index of a wide frame.
    series_name : str, int or None
        Name of a Series.
    closed : tuple of str
        Closed days within the weekmask, as "2024-01-01", for freq "C" or "C-XNYS" (an exchange).
    weekmask : str
        Open weekdays of trading days, a digit each from Monday on, as in numpy.
    calendar_span : tuple of str
        First and last day of the calendar that lists closed days; empty if days without rows are
        the closed days.
    row_times : tuple of int
        Timestamps of all irregular rows (freq "irregular"), as integers.
    categories : tuple of Categories
        Levels of the columns of labels.
    ignored : tuple of str or int
        Exogenous columns of the frame that are not read.
    date_order : {"DMY", "MDY"} or None
        Order of day, month and year in dates written as text; None if ambiguous.
    decimal : {".", ","} or None
        Decimal mark of numbers written as text; None if ambiguous.
    strict : bool
        True if arrays, labels, and text other than ISO 8601 dates are refused.

    Examples
    --------
    >>> from tsrnn.data import Layout, read_panel
    >>> from tsrnn.datasets import load_co2
    >>> layout = read_panel(load_co2(), missing="keep").layout
    >>> layout.kind, layout.target_names, layout.freq
    ('wide', ('co2',), 'W-SAT')
    >>> Layout.from_dict(layout.to_dict()) == layout
    True
    """

    kind: Literal["series", "wide", "long"]
    backend: Literal["pandas", "polars", "numpy"]
    target_names: tuple[Name, ...]
    time_kind: Literal["datetime", "period", "integer"]
    freq: Freq
    time_dtype: str
    tz: str | None = None
    id_col: str | None = None
    time_col: Name | None = None
    index_name: Name | None = None
    series_name: Name | None = None
    closed: tuple[str, ...] = ()
    weekmask: str = MONDAY_TO_FRIDAY
    calendar_span: tuple[str, ...] = ()
    row_times: tuple[int, ...] = ()
    categories: tuple[Categories, ...] = ()
    ignored: tuple[Name, ...] = ()
    date_order: Literal["DMY", "MDY"] | None = None
    decimal: Literal[".", ","] | None = None
    strict: bool = False

    @property
    def grid(self) -> Freq | Grid:
        """Frequency, as a grid where its alias lacks closed days or times of irregular rows."""
        if self.freq == IRREGULAR:
            return _irregular(self.row_times)
        if not is_trading(self.freq):
            return self.freq
        return _trading_days(self.freq, self.weekmask, self.closed, self.calendar_span)

    @property
    def offset(self) -> Freq | pd.offsets.CustomBusinessDay:
        """Argument `freq` for a fit to a part of the rows."""
        grid = self.grid
        known = isinstance(grid, TradingDays) and grid.span is not None
        return grid.offset if known else self.freq  # type: ignore[union-attr]

    @property
    def observed(self) -> bool:
        """True if a step is a row, and timestamps of future rows are unknown.

        Irregular rows, and trading days without a calendar, have no future timestamps.
        """
        return self.irregular or (is_trading(self.freq) and not self.calendar_span)

    @property
    def irregular(self) -> bool:
        """True if rows have arbitrary times between them."""
        return self.freq == IRREGULAR

    def dummy_names(self, names: Iterable[Name]) -> list[Name]:
        """Return the names with columns of labels replaced by their dummies."""
        dummies = {each.column: each.names for each in self.categories}
        return [dummy for name in names for dummy in dummies.get(name, (name,))]

    def frame_names(self, names: Iterable[Name]) -> tuple[Name, ...]:
        """Return the names with dummies replaced by their columns; inverse of `dummy_names`."""
        columns: dict[Name, Name] = {
            dummy: each.column for each in self.categories for dummy in each.names
        }
        return tuple(dict.fromkeys(columns.get(name, name) for name in names))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        categories = [
            {"column": each.column, "levels": [*each.levels], "without_rows": [*each.without_rows]}
            for each in self.categories
        ]
        lists = {name: [*getattr(self, name)] for name in LISTS}
        return asdict(self) | lists | {"categories": categories}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Layout:
        """Rebuild a layout from `to_dict`.

        Raises
        ------
        ValueError
            If fields are missing or unknown, or do not go together.
        """
        known = {field.name for field in fields(cls)}
        if set(state) != known:
            raise ValueError(
                f"a layout has the fields {sorted(known)}; got {sorted(state)}. "
                "Pass what Layout.to_dict() returned."
            )
        tuples = {name: tuple(state[name]) for name in LISTS}
        categories = tuple(
            Categories(each["column"], tuple(each["levels"]), tuple(each["without_rows"]))
            for each in state["categories"]
        )
        layout = cls(**(state | tuples | {"categories": categories}))
        layout._check()
        return layout

    def _check(self) -> None:
        long, wide = self.kind == "long", self.kind == "wide"
        stamps = _STAMPS.get(self.time_kind)
        rules = {
            "kind": self.kind in ("series", "wide", "long")
            and (len(self.target_names) == 1 or self.kind != "series"),
            "backend": self.backend == "pandas"
            or (self.backend == "polars" and (long or (wide and self.time_col is not None)))
            or (self.backend == "numpy" and not long and self.time_kind == "integer"),
            "target_names": all(map(_is_name, self.target_names))
            and len(set(self.target_names)) == len(self.target_names) > 0,
            "time_kind": stamps is not None,
            "freq": isinstance(self.freq, int if self.time_kind == "integer" else str),
            "closed": all(map(_is_day, self.closed)) and (not self.closed or is_trading(self.freq)),
            "weekmask": isinstance(self.weekmask, str)
            and bool(re.fullmatch(r"(?=.*1)[01]{7}", self.weekmask)),
            "calendar_span": all(map(_is_day, self.calendar_span))
            and len(self.calendar_span) in ((0, 2) if is_trading(self.freq) else (0,)),
            "row_times": all(type(time) is int for time in self.row_times)
            and all(a < b for a, b in pairwise(self.row_times))
            and bool(self.row_times) == self.irregular
            and (self.time_kind == "datetime" or not self.irregular),
            "time_dtype": bool(stamps and re.fullmatch(stamps, str(self.time_dtype))),
            "tz": self.tz is None
            or (
                self.time_kind == "datetime"
                and bool(len(str(self.tz)) < 64 and _ZONE.fullmatch(str(self.tz)))
            ),
            "id_col": self.id_col is None or (long and isinstance(self.id_col, str)),
            "time_col": (long and isinstance(self.time_col, str))
            or (not long and self.time_col is None)
            or (wide and _is_name(self.time_col) and self.time_col not in self.target_names),
            "index_name": self.index_name is None or _is_name(self.index_name),
            "series_name": self.series_name is None or _is_name(self.series_name),
            "categories": all(map(_are_categories, self.categories))
            and len({each.column for each in self.categories}) == len(self.categories),
            "ignored": all(map(_is_name, self.ignored)),
            "date_order": self.date_order in (None, "DMY", "MDY"),
            "decimal": self.decimal in (None, ".", ","),
            "strict": isinstance(self.strict, bool),
        }
        for name, kept in rules.items():
            if not kept:
                raise ValueError(
                    f"the field {name!r} of a layout does not go with the others, or is of "
                    f"another type; got {getattr(self, name)!r}. Pass what Layout.to_dict() "
                    "returned."
                )


@lru_cache(maxsize=64)
def _irregular(row_times: tuple[int, ...]) -> Irregular:
    return Irregular(1, IRREGULAR, row_times)


@lru_cache(maxsize=64)
def _trading_days(
    freq: Freq, weekmask: str, closed: tuple[str, ...], span: tuple[str, ...]
) -> TradingDays:
    """Return the grid of trading days, cached: every forecast needs it several times."""
    days, ends = (tuple(np.array(dates, "M8[D]").astype(int).tolist()) for dates in (closed, span))
    return TradingDays(1, freq, weekmask, days, ends or None)


def _is_day(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"[12]\d{3}-[01]\d-[0-3]\d", value))


def _are_categories(value: Categories) -> bool:
    levels = value.levels + value.without_rows
    distinct = len({*levels}) == len(levels) and all(isinstance(level, str) for level in levels)
    return _is_name(value.column) and distinct and len(value.levels) > 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
