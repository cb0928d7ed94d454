"""Frames taken apart: ids, timestamps, targets and exogenous columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype, is_object_dtype

from tsrnn.data._categories import holds_labels, is_number_text
from tsrnn.data._digits import UNITS, from_digits
from tsrnn.data._faults import array_advice, listed, quote, quoted
from tsrnn.data._forked import check_threads
from tsrnn.data._frames import pandas_columns, pandas_labels
from tsrnn.data._panel import Layout, Name
from tsrnn.data._recognise import UNKNOWN, Recognised, Written, recognise
from tsrnn.data._timestamps import Stamps, calendar_or_steps, read_stamps
from tsrnn.data._written_dates import is_text, looks_like_dates, names_time

_ACCEPTED = (
    "a pandas Series or DataFrame with a DatetimeIndex, PeriodIndex or integer index, or a "
    "pandas or polars DataFrame with a time column"
)
CONVERT = (
    'Convert it: pd.read_csv(..., decimal=",", thousands=".") where numbers are written so, or '
    "pd.to_numeric; drop rows that hold none, such as totals"
)
SAMPLE = 1000  # pairs of neighbouring rows that show whether a frame is sorted by series
VALUES_AT_ONCE = 2**20  # values copied from a frame at once; bounds the memory of the copy
FEW_ROWS = 16  # frames up to this length are converted to see whether all values are numbers
FEW_COLUMNS = 8  # frames up to this width are converted column by column
TEXT = nw.String, nw.Categorical, nw.Enum  # types of polars
# Names of dates, which are no variables, and of parts of dates, which may be variables.
DATE_NAMES = {"date", "datum", "fecha"}
YEARS = {"year", "years", "yr", "jahr", "année", "annee", "año", "anno", "ano", "jaar"}
MONTHS = {"month", "months", "monat", "mois", "mes", "mese", "mês", "maand"}
PARTS = {"quarter", "quartal", "week", "woche", "semaine", "day", "tag", "jour"} | YEARS | MONTHS
DEFAULT_TIME = "ds"  # name of the time column where none is given
_ONE_SERIES = pd.Index([0])  # ids of a frame without an id column
_LOST = "Give one with rows; a filter or a join before may have left none."


@dataclass(frozen=True, eq=False)
class Table:
    """Frame split into ids, timestamps and values, with rows in the order of the frame.

    `columns` is the whole frame; `keys` names its columns of ids and timestamps. `ids` holds the
    id of each row, or None. `notes` say how text was read, `written` how it is written. Other
    fields are those of `Layout`.
    """

    kind: Literal["series", "wide", "long"]
    backend: Literal["pandas", "polars", "numpy"]
    columns: pd.DataFrame
    stamps: Stamps
    ids: pd.Index | None = None
    id_col: str | None = None
    time_col: Name | None = None
    index_name: Name | None = None
    series_name: Name | None = None
    keys: tuple[Name, ...] = ()
    notes: tuple[str, ...] = ()
    written: Written = UNKNOWN

    @cached_property
    def names(self) -> list[Name]:
        """Names of the columns that are not keys."""
        return [name for name in self.columns.columns.tolist() if name not in self.keys]

    def dated(self, freq: Any, layout: Layout | None) -> Table:
        """Read timestamps in digits, such as 20240131, as dates."""
        what = "the index" if self.time_col is None else f"the column {quote(self.time_col)}"
        dtype = "" if layout is None else layout.time_dtype
        stamps = calendar_or_steps(self.stamps, what, freq, dtype)
        return self if stamps is self.stamps else replace(self, stamps=stamps)

    def rows(self, rows: slice | np.ndarray) -> Table:
        """Select rows by a slice, a mask or their positions."""
        return replace(
            self,
            columns=self.columns.iloc[rows],
            stamps=replace(self.stamps, values=self.stamps.values[rows]),
            ids=None if self.ids is None else self.ids[rows],
        )

    def groups(self) -> tuple[np.ndarray, pd.Index]:
        """Return the series of each row, shape (N,), and the ids in order of appearance.

        A frame without ids is one series with the id 0.
        """
        if self.ids is None:
            return np.zeros(len(self.columns), np.int64), _ONE_SERIES.view()
        plain = len(self.ids) == 1 and isinstance(self.ids[0], str | int | np.integer)
        if plain and self.ids.dtype != "category":  # one row of a stream: no need to hash
            return np.zeros(1, np.int64), self.ids.rename(None)
        try:
            codes, ids = _factorized(self.ids)
        except TypeError as error:
            raise TypeError(
                f"the column {quote(self.id_col)} must hold text, numbers or other values that can "
                f"be compared and hashed; {error}. Convert the ids, for example by astype(str)."
            ) from error
        rows = np.flatnonzero(codes < 0)
        if len(rows):
            raise ValueError(
                f"the column {quote(self.id_col)} must name a series in each row; {len(rows)} ids "
                f"are missing, at row {listed(rows, 3)}. Fill them in or drop these rows."
            )
        return codes, pd.Index(np.asarray(ids)) if self.ids.dtype == "category" else pd.Index(ids)


def _factorized(ids: pd.Index) -> tuple[np.ndarray, pd.Index]:
    """Return the code of each id, and the distinct ids.

    Frames sorted by series are factorized by runs: comparing neighbours takes a fifth of the time
    of hashing every id.
    """
    whole = isinstance(ids.dtype, np.dtype) and ids.dtype.kind in "iu"
    if not whole and ids.dtype != object and getattr(ids.dtype, "storage", None) != "python":
        return pd.factorize(ids)
    values = ids.to_numpy() if whole else ids.to_numpy(dtype=object)
    sample = np.arange(1, len(values), max(len(values) // SAMPLE, 1))
    try:
        if np.sum(values[sample] == values[sample - 1]) > len(sample) / 2:
            starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
            codes, names = pd.factorize(values[starts])
            lengths = np.diff(np.append(starts, len(values)))
            return np.repeat(codes, lengths), pd.Index(names, dtype=ids.dtype)
    except (TypeError, ValueError):  # ids that cannot be compared may still be hashed
        pass
    codes, names = pd.factorize(values)
    return codes, pd.Index(names, dtype=ids.dtype)


def read_table(
    df: object,
    id_col: str,
    time_col: Name,
    layout: Layout | None = None,
    what: str = "the data",
    *,
    strict: bool = False,
    written: Written = UNKNOWN,
) -> Table:
    """Split a frame into ids, timestamps and values, in the shape of `layout` if it is given.

    `what` is the name of the frame in messages. Text is read as dates and numbers unless `strict`;
    `written` decides ambiguous dates and decimal marks.

    Refused are empty frames, missing or repeated names, missing timestamps, and frames with
    several candidates for the column of timestamps.
    """
    strict = strict if layout is None else layout.strict
    if isinstance(df, pd.Series):
        return _series_table(df, layout, strict)
    keys = (id_col, time_col) if layout is None or layout.kind == "long" else ()
    frame, backend, dates = _open(df, keys, what)
    _check_names(frame)
    if layout is None:  # dtypes decide below which columns hold numbers
        frame = plain_numbers(frame, (id_col, time_col))
    if len(frame) == 0:
        raise ValueError(f"the frame must have rows; it is empty. {_LOST}")
    text = Recognised(frame)
    if not strict:
        text = recognise(frame, time=time_col, ids=id_col, written=written, layout=layout)
    frame = text.frame
    if time_col not in frame.columns:
        table = _wide_table(frame, backend, dates, id_col, time_col, layout, strict)
    elif layout is not None and layout.kind == "wide" and layout.time_col is not None:
        table = _dated_by_column(frame, backend, dates, time_col)
    else:
        table = _long_table(frame, backend, dates, id_col, time_col)
    return replace(table, notes=text.notes + table.notes, written=text.written)


def _series_table(series: pd.Series, layout: Layout | None, strict: bool) -> Table:
    """Return a Series as a table."""
    if len(series) == 0:
        raise ValueError(f"the Series must have rows; it is empty. {_LOST}")
    if isinstance(series.name, np.integer):  # column of a frame with integer names
        series = series.rename(int(series.name))
    name = series.name
    _check_name(name)
    frame = series.to_frame("y" if name is None else name)
    text = Recognised(frame) if strict else recognise(frame, layout=layout)
    index = text.frame.index
    stamps = read_stamps(index, "the index of the Series")
    _check_name(index.name)
    names = {"index_name": index.name, "series_name": name}
    text_of = {"notes": text.notes, "written": text.written}
    return Table("series", "pandas", text.frame, stamps, **names, **text_of)  # type: ignore[arg-type]


def _long_table(
    frame: pd.DataFrame,
    backend: Literal["pandas", "polars"],
    dates: frozenset[str],
    id_col: str,
    time_col: Name,
) -> Table:
    """Return a frame with a time column as a table."""
    what = f"the column {quote(str(time_col))}"
    stamps = read_stamps(pd.Index(frame[time_col]), what, is_date=time_col in dates)
    has_ids = id_col in frame.columns
    if id_col in dates:  # forecasts then have dates as ids, not timestamps
        frame = frame.assign(**{id_col: frame[id_col].dt.date})
    return Table(
        kind="long",
        backend=backend,
        columns=frame,
        stamps=stamps,
        ids=pd.Index(frame[id_col]) if has_ids else None,
        id_col=id_col if has_ids else None,
        time_col=str(time_col),
        keys=(time_col, id_col) if has_ids else (time_col,),
    )


def _wide_table(
    frame: pd.DataFrame,
    backend: Literal["pandas", "polars"],
    dates: frozenset[str],
    id_col: str,
    time_col: Name,
    layout: Layout | None,
    strict: bool,
) -> Table:
    """Return a wide frame as a table; its time is in a column of dates, else in the index."""
    if layout is None or (layout.kind != "long" and layout.time_col is None):
        time = _date_column(frame, backend, id_col, time_col)
        if time is not None:
            return _dated_by_column(frame, backend, dates, time)
    if backend == "polars" or id_col in frame.columns:
        raise ValueError(
            f"a long frame needs the time column {quote(time_col)}; its columns are "
            f"{quoted(frame.columns)}. Name the one with the timestamps by time_col."
        )
    if layout is None:
        counts = _counting_column(frame, strict)
        if counts is not None:
            note = f"The column {quote(counts)} counts time."
            return replace(_dated_by_column(frame, backend, dates, counts), notes=(note,))
    if frame.shape[1] == 0:
        raise ValueError("the frame must have columns; it has none. Add those to forecast.")
    stamps = read_stamps(frame.index, "the index of a frame without a time column")
    _check_name(frame.index.name)
    return Table("wide", "pandas", frame, stamps, index_name=frame.index.name)  # type: ignore[arg-type]


def _dated_by_column(
    frame: pd.DataFrame, backend: Literal["pandas", "polars"], dates: frozenset[str], time: Name
) -> Table:
    """Return a wide frame with its time in a column as a table."""
    what = f"the column {quote(time)}"
    stamps = read_stamps(pd.Index(frame[time]), what, is_date=time in dates)
    return Table("wide", backend, frame, stamps, time_col=time, keys=(time,))


def _open(
    df: object, keys: tuple[Name, ...], what: str
) -> tuple[pd.DataFrame, Literal["pandas", "polars"], frozenset[str]]:
    """Return the frame in pandas, its library, and the names of its polars Date columns.

    A frame with all `keys` is long, and its ids, the first key, become categories.
    """
    if isinstance(df, pd.DataFrame):
        return df, "pandas", frozenset()
    if nw.dependencies.is_polars_lazyframe(df):
        raise TypeError(f"{what} must be {_ACCEPTED}; got a polars LazyFrame. Call .collect().")
    if nw.dependencies.is_polars_dataframe(df):
        check_threads()
        frame = nw.from_native(df, eager_only=True)
        dates = frozenset(name for name, dtype in frame.schema.items() if dtype == nw.Date)
        if keys and {*keys} <= {*frame.columns} and frame.schema[str(keys[0])] in TEXT:
            ids = frame[str(keys[0])]
            columns = pandas_columns(frame.drop(ids.name))
            columns.insert(frame.columns.index(ids.name), ids.name, pandas_labels(ids))
            return columns, "polars", dates
        return pandas_columns(frame), "polars", dates
    came = f"{type(df).__module__}.{type(df).__qualname__}".removeprefix("builtins.")
    raise TypeError(f"{what} must be {_ACCEPTED}; got {came}.{array_advice(df)}")


def _check_names(frame: pd.DataFrame) -> None:
    if isinstance(frame.columns, pd.MultiIndex):
        raise ValueError(
            f"columns must have one level; got a MultiIndex of {frame.columns.nlevels}. Join the "
            "levels to one name."
        )
    if not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()].unique()
        raise ValueError(
            f"column names must be unique; duplicated are {quoted(repeated)}. Rename or drop them."
        )
    names = frame.columns.tolist()
    if {*map(type, names)} <= {str, int}:
        return
    for name in names:
        _check_name(name)
        if name is None:
            raise ValueError("columns must have names; one is None. Rename it.")


def plain_numbers(frame: pd.DataFrame, keys: Sequence[Name]) -> pd.DataFrame:
    """Convert object columns of Python numbers, such as Decimal, to floats."""
    objects = [
        name
        for name, dtype in zip(frame.columns.tolist(), frame.dtypes.tolist(), strict=True)
        if is_object_dtype(dtype) and name not in keys
    ]
    floats = {name: _floats(frame[name]) for name in objects}
    floats = {name: column for name, column in floats.items() if column is not None}
    if not floats:
        return frame
    frame = frame.copy(deep=False)
    for name, column in floats.items():
        frame[name] = column
    return frame


def _floats(column: pd.Series) -> np.ndarray | None:
    """Return objects as floats, NaN where missing; None if a value is no real number."""
    missing = column.isna().to_numpy()
    known = column[~missing]
    if not all(isinstance(value, Real | Decimal) for value in known):
        return None
    values = np.full(len(column), np.nan)
    values[~missing] = [float(value) for value in known]
    return values


def _check_name(name: object) -> None:
    if name is not None and (isinstance(name, bool) or not isinstance(name, str | int)):
        raise ValueError(
            f"names of columns, index and Series must be strings or integers; got "
            f"{quote(name)} ({type(name).__name__}). Rename it."
        )


def _date_column(frame: pd.DataFrame, backend: str, id_col: str, time_col: Name) -> Name | None:
    """Return the column of dates of a wide frame; None if there are no dates.

    The frame must have one column of dates, numbers in the others, and an index that only counts
    rows. Otherwise it is ambiguous where the time is, and the error says how to resolve it.
    """
    if len(frame) <= FEW_ROWS and frame.to_numpy().dtype.kind in "iuf":  # numbers alone
        return None
    dated = [name for name in not_real(frame, frame.columns.tolist()) if _holds_dates(frame[name])]
    if not dated:
        return None
    day, index = dated[0], frame.index
    argument = f"time_col={quote(day)}"
    if id_col in frame.columns:
        raise ValueError(
            f"a long frame needs the time column {quote(time_col)}; dates are in {quoted(dated)}. "
            f"Give {argument}."
        )
    if time_col not in (DEFAULT_TIME, ""):
        raise ValueError(
            f"time_col={quote(time_col)} is no column of the frame; dates are in {quoted(dated)}. "
            f"Give {argument}, or leave time_col out."
        )
    if len(dated) > 1:
        raise ValueError(
            f"one column must hold the time; dates are in {quoted(dated)}. Keep one of them: "
            f"df.drop(columns={quote(dated[1:])})."
        )
    # An unnamed integer index only counts rows, with gaps after a filter.
    counts = pd.api.types.is_integer_dtype(index.dtype) and index.name is None
    if backend == "pandas" and not counts:
        raise ValueError(
            "time must be in the index or in a column; the frame has dates in the column "
            f"{quote(day)} and an index of its own ({index.dtype}). Drop the one that is not the "
            f"time: df.drop(columns={quote(day)}), or df.reset_index(drop=True)."
        )
    others = [name for name in frame.columns.tolist() if name != day]
    text = not_real(frame, others)
    if frame[day].is_unique:  # with repeated dates, labels may name series
        text = [name for name in text if not holds_labels(frame[name])]
    if text:
        raise _no_numbers(frame, day, others, text)
    if not others:
        raise ValueError(
            f"a frame needs a column to forecast; it has the dates in {quote(day)} alone. Add one."
        )
    return day


def _holds_dates(column: pd.Series) -> bool:
    dates = (pd.DatetimeTZDtype, pd.PeriodDtype)
    return column.dtype.kind == "M" or (
        isinstance(column.dtype, dates) or looks_like_dates(column, years=False)
    )


def _no_numbers(
    frame: pd.DataFrame, day: Name, others: Sequence[Name], text: Sequence[Name]
) -> ValueError:
    """Return an error for columns beside the dates that hold no numbers."""
    name, column = text[0], frame[text[0]]
    must = f"the columns beside the dates in {quote(day)} must be numbers; not so {quoted(text)}"
    drop = f"if it is not needed, use df.drop(columns={quote(text)})"
    if not is_text(column):
        return ValueError(f"{must} (dtype {column.dtype}). Convert it; {drop}.")
    odd = odd_value(column)
    if is_number_text(column):
        return ValueError(f"{must}, which are written as text, such as {odd}. {CONVERT}; {drop}.")
    numbers = [other for other in others if other not in text]
    target = repr(numbers[0]) if len(numbers) == 1 else "..."
    return ValueError(
        f"{must}, such as {odd}. If {quote(name)} names series, give "
        f"id_col={quote(name)}, time_col={quote(day)}, target={target}; if it is a regressor, give "
        f"target={target}; {drop}."
    )


def _counting_column(frame: pd.DataFrame, strict: bool) -> Name | None:
    """Return the column of consecutive dates in digits of a frame whose index only counts rows.

    None if there is none. Refused are such columns with `strict`, with a name that is not one of
    time, and several of them.
    """
    index = frame.index
    says_nothing = index.name is None and index.equals(pd.RangeIndex(len(frame)))
    if not says_nothing or len(frame) < 2 or frame.shape[1] < 2:
        return None
    numeric = frame.loc[:, of_dtypes(frame, is_real)]
    # The first and the last row rule out nearly all columns of a frame of thousands.
    ends = float_array(numeric.iloc[[0, -1]], numeric.columns.tolist())
    counting: list[tuple[Name, str]] = []
    for form in UNITS:
        least = 10.0 ** (len(form) - 1)
        chosen = np.flatnonzero(((ends >= least) & (ends < 10 * least) & (ends % 1 == 0)).all(0))
        dated = ~np.isnat(from_digits(ends[:, chosen].astype(np.int64), form)).any(0)
        names = numeric.columns[chosen[dated]].tolist()
        counting += [(name, form) for name in names if _counts_time(frame[name], form)]
    if not counting:
        return None
    name, form = counting[0]
    if len(counting) == 1 and not strict and names_time(name):
        return name
    dates = "years" if form == "YYYY" else f"dates ({form})"
    raise ValueError(
        f"time must be in the index; the frame counts its rows and has {dates} in the column "
        f"{quote(name)}. Use df.set_index({quote(name)}); if they are a variable, give the frame "
        "an index of its own times."
    )


def _counts_time(column: pd.Series, form: str) -> bool:
    """Return True if numbers are consecutive dates of a form, too regular for a variable."""
    values = column.to_numpy(np.float64, na_value=np.nan)
    if not np.isfinite(values).all() or (values % 1).any():
        return False
    if form == "YYYY":
        return bool((np.diff(values) == 1).all())
    times = from_digits(values.astype(np.int64), form)
    if np.isnat(times).any():
        return False
    if len(form) > 6:
        return bool((np.diff(times) > np.timedelta64(0)).all())
    steps = np.diff(times.astype("datetime64[M]").astype(np.int64))
    return bool((steps > 0).all() and (steps == steps[0]).all() and len(steps) > 1)


def choose_columns(
    table: Table,
    target: Name | Sequence[Name] | None,
    exog: Sequence[Name] | None,
    layout: Layout | None,
    strict: bool = False,
) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    """Return the names of the targets and of the exogenous columns.

    Columns of labels are among them unless `strict`.
    """
    targets = _targets(table, target) if layout is None else layout.target_names
    renamed = table.kind == "series" and layout is not None
    present, chosen = set(targets if renamed else table.names), set(targets)
    missing = [name for name in targets if name not in present]
    if missing:
        instead = f"the columns are {quoted(table.names, 10)}. Name it by target"
        if not table.names:
            taken = [name for name in (table.id_col, table.time_col) if name is not None]
            instead = f"there is no other column than {listed(map(quote, taken))}. Add it"
        raise ValueError(f"the target {quoted(missing)} is not a column; {instead}.")
    if target is None and layout is None and table.kind == "wide":
        _refuse_labels(table)
    if layout is None and table.kind == "wide":
        _refuse_times(table, target is None)
    others = [] if table.kind == "series" else [n for n in table.names if n not in chosen]
    if layout is not None:
        others = [name for name in others if name not in layout.ignored]
    if exog is not None:
        return targets, exact_columns(others, exog, "exogenous columns")
    _refuse_text(table.columns, others, strict)
    return targets, tuple(others)


def _targets(table: Table, target: Name | Sequence[Name] | None) -> tuple[Name, ...]:
    if target is None:
        return ("y",) if table.kind == "long" else tuple(table.names)
    if isinstance(target, str | int):
        return (target,)
    iterates = isinstance(target, Iterable) and getattr(target, "shape", None) != ()
    names = tuple(target) if iterates else ()
    if (
        not all(isinstance(name, str | int) for name in names)
        or not names
        or len(set(names)) < len(names)
    ):
        raise ValueError(
            f"target must name columns, each once; got {quote(target)}. Give a name or a list of "
            "them."
        )
    return names


def _refuse_labels(table: Table) -> None:
    text = not_real(table.columns, table.names)
    labels = [name for name in text if holds_labels(table.columns[name])]
    if labels and table.time_col is not None:
        raise _no_numbers(table.columns, table.time_col, table.names, labels)
    if labels:
        raise TypeError(
            "all columns of a wide frame are forecast unless target names some of them; "
            f"{quoted(labels)} {'hold' if len(labels) > 1 else 'holds'} labels, such as "
            f"{odd_value(table.columns[labels[0]])}. Name the columns of numbers to forecast by "
            "target, or drop the others."
        )


def _refuse_times(table: Table, all_forecast: bool) -> None:
    """Refuse columns with names of time in a frame whose index counts rows from 0."""
    words = DATE_NAMES | PARTS if all_forecast else DATE_NAMES
    names = [name for name in table.names if str(name).lower() in words]
    times = table.stamps.values
    if not names or table.stamps.kind != "integer" or (times != np.arange(len(times))).any():
        return
    advice = "Convert them by pd.to_datetime(..., format=...)"
    years, months = ([n for n in names if str(n).lower() in words] for words in (YEARS, MONTHS))
    if years and months:
        year, month = years[0], months[0]
        advice = (
            f"Join them: df.assign(ds=df[{quote(year)}].astype(str) + '-' + "
            f"df[{quote(month)}].astype(str)).drop(columns={quote([year, month])})"
        )
    raise ValueError(
        "time must be in the index or in a column of dates; the frame counts its rows, and numbers "
        f"in {quoted(names)} are not read as dates. {advice}"
        f"{'; or name the columns to forecast by target' if all_forecast else ''}."
    )


def _refuse_text(columns: pd.DataFrame, names: Sequence[Name], strict: bool) -> None:
    must = "columns besides targets must be numeric, boolean or labels"
    others = not_real(columns, names)
    for name in others:
        if is_number_text(columns[name]):
            raise TypeError(
                f"{must}; {quote(name)} holds numbers written as text, such as "
                f"{odd_value(columns[name])}. {CONVERT}; codes that name a category are labels by "
                'astype("category").'
            )
    labels = [name for name in others if holds_labels(columns[name])]
    if strict and labels:
        raise TypeError(
            f"columns besides targets must be numeric or boolean with strict=True; not so "
            f"{quoted(labels)} (dtype {_dtypes(columns, labels)}). Leave strict out to have "
            "columns of zeros and ones made, or make them by pd.get_dummies(df, "
            f"columns={quote(labels)}, drop_first=True, dtype=float)."
        )
    wrong = [name for name in others if name not in labels]
    if wrong:
        raise TypeError(
            f"{must}; not so {quoted(wrong)} (dtype {_dtypes(columns, wrong)}), such as "
            f"{odd_value(columns[wrong[0]])}. Drop them, or convert them."
        )


def _dtypes(columns: pd.DataFrame, names: Sequence[Name]) -> str:
    return ", ".join(sorted({str(columns[name].dtype) for name in names}))


def exact_columns(came: Sequence[Name], expected: Sequence[Name], what: str) -> tuple[Name, ...]:
    """Return `expected` if `came` has the same names in any order; refuse other names."""
    present, needed_names = set(came), set(expected)
    missing = [name for name in expected if name not in present]
    extra = [name for name in came if name not in needed_names]
    if missing or extra:
        parts = [f"missing {quoted(missing)}"] if missing else []
        parts += [f"not needed {quoted(extra)}"] if extra else []
        needed = quoted(expected, 10) if len(expected) else "none"
        action = [*(["add"] if missing else []), *(["drop"] if extra else [])]
        raise ValueError(
            f"{what} must be {needed}; {', '.join(parts)}. {' and '.join(action).capitalize()} "
            "these columns."
        )
    return tuple(expected)


def check_numeric(
    columns: pd.DataFrame, names: Sequence[Name], what: str, *, booleans: bool = True
) -> None:
    """Refuse columns that hold no numbers, by the first one and a value of it.

    `what` is the role of the columns in the message.
    """
    for name in not_real(columns, names, booleans=booleans)[:1]:
        column = columns[name]
        advice, example = "Convert it, for example by astype('float64')", ""
        odd = odd_value(column)
        if is_number_text(column):
            advice, example = CONVERT, f", numbers written as text, such as {odd}"
        elif odd is not None:
            example = f" (such as {odd}, {odd.type_name})"
            if not odd.readable:
                advice = "Convert it: put numbers or NaN in their place, then astype('float64')"
        raise TypeError(
            f"{what} {quote(name)} must be numeric (integer or float); got dtype {column.dtype}"
            f"{example}. {advice}."
        )


def few_numbers(columns: pd.DataFrame, names: Sequence[Name]) -> np.ndarray | None:
    """Return `float_array` of at most `FEW_COLUMNS` columns of numpy numbers; else None.

    A stream reads one row at a time, for which `check_numeric` takes ten times as long.
    """
    if len(names) > FEW_COLUMNS:
        return None
    out = np.empty((len(columns), len(names)))
    for j, name in enumerate(names):
        column = columns[name]
        if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "iuf":
            return None
        out[:, j] = column
    return out


def float_array(columns: pd.DataFrame, names: Sequence[Name]) -> np.ndarray:
    """Copy columns of numbers to an array of shape (N, len(names)), NaN where missing."""
    number: dict[Name, int] = {name: place for place, name in enumerate(columns.columns.tolist())}
    places = np.array([number[name] for name in names], np.intp)
    out = np.empty((len(columns), len(places)))
    at_once = max(1, VALUES_AT_ONCE // max(1, len(columns)))
    for low in range(0, len(places), at_once):
        part = places[low : low + at_once]
        neighbours = (np.diff(part) == 1).all()  # pandas gives a view for a slice
        chosen = columns.iloc[:, slice(part[0], part[-1] + 1) if neighbours else part]
        out[:, low : low + at_once] = chosen.to_numpy(np.float64, na_value=np.nan)
    return out


def not_real(columns: pd.DataFrame, names: Sequence[Name], *, booleans: bool = True) -> list[Name]:
    """Return the names of columns that hold neither real numbers nor accepted booleans."""

    def is_taken(dtype: Any) -> bool:
        return is_real(dtype) and (booleans or not is_bool_dtype(dtype))

    names_there: list[Name] = list(columns.columns.tolist())
    taken = dict(zip(names_there, of_dtypes(columns, is_taken), strict=True))
    return [name for name in names if not taken[name]]


def of_dtypes(columns: pd.DataFrame, holds: Callable[[Any], bool]) -> list[bool]:
    """Return `holds(dtype)` for each column, evaluated once per dtype."""
    dtypes = columns.dtypes.tolist()
    # By identity: a categorical dtype hashes all its labels, which may not be hashable.
    answers = {key: holds(dtype) for key, dtype in {id(dtype): dtype for dtype in dtypes}.items()}
    return [answers[id(dtype)] for dtype in dtypes]


def is_real(dtype: Any) -> bool:
    """Return True if columns of a dtype hold real numbers or booleans."""
    return is_bool_dtype(dtype) or (is_numeric_dtype(dtype) and not is_complex_dtype(dtype))


@dataclass(frozen=True)
class OddValue:
    """Value that keeps a column from being numeric; `readable` if `float` converts it."""

    value: Any
    row: int
    readable: bool

    @property
    def type_name(self) -> str:
        return type(self.value).__name__

    def __str__(self) -> str:
        return f"{quote(self.value)} at row {self.row}"


def odd_value(column: pd.Series) -> OddValue | None:
    """Return the first value that `float` refuses, or else the first known value."""
    scalar, first = pd.api.types.is_scalar, None
    for row, value in enumerate(column):
        if scalar(value) and pd.isna(value):
            continue
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            return OddValue(value, row, False)
        first = first or OddValue(value, row, True)
    return first
