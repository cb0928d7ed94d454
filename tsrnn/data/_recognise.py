"""Dates and numbers written as text, where only one reading is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype, is_object_dtype

from tsrnn.data._faults import listed, quote
from tsrnn.data._panel import Layout
from tsrnn.data._written_dates import (
    DateOrder,
    Dates,
    is_text,
    looks_like_dates,
    names_time,
    read_dates,
    read_serial_days,
)
from tsrnn.data._written_numbers import Decimal, NumberText, parse_numbers


@dataclass(frozen=True)
class Written:
    """Order of dates and decimal mark in the text of a frame.

    Parameters
    ----------
    date_order : {"DMY", "MDY"}, optional
        Order of day, month and year; None if ambiguous.
    decimal : {".", ","}, optional
        Decimal mark; None if ambiguous.

    Examples
    --------
    >>> from tsrnn.data import Written
    >>> Written(decimal=",")
    Written(date_order=None, decimal=',')
    """

    date_order: DateOrder | None = None
    decimal: Decimal | None = None


UNKNOWN = Written()
EXACT = 2**53  # integers below convert to float64 without loss
Place = Callable[[int], str]


@dataclass(frozen=True)
class Recognised:
    """Frame with dates and numbers in place of text.

    Parameters
    ----------
    frame : pandas.DataFrame
    notes : tuple of str
        Sentences on readings other than ISO 8601 and Python.
    written : Written

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import recognise
    >>> recognise(pd.DataFrame({"y": ["1.234,5", "950,0"]})).written.decimal
    ','
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    written: Written = UNKNOWN


def recognise(
    frame: pd.DataFrame,
    *,
    time: Any = None,
    ids: Any = None,
    written: Written = UNKNOWN,
    layout: Layout | None = None,
    place: Callable[[int], str] | None = None,
) -> Recognised:
    """Read text in the columns and the index of a frame as dates and numbers.

    A column is read if its rows together allow only one reading, or readings that agree. Other text
    stays unchanged, as do the ids. `written` has the order of dates and the decimal mark of
    ambiguous columns. The `layout` of the data fitted to decides what `written` leaves open, and
    gives the zone of times with an offset from UTC; its columns of labels stay text.

    `place` names the row at a position in messages, for text files. Without it the frame comes from
    a program, and text that Python reads as a number is that number ("1.234").
    """
    kept = {ids}
    if layout is not None:
        written = Written(
            written.date_order or layout.date_order, written.decimal or layout.decimal
        )
        kept |= {*layout.ignored, *(each.column for each in layout.categories)}
    read: dict[Any, Dates | _NumberColumn] = {}
    order = written.date_order
    has_time = time in frame.columns

    def may_be_days(name: Any, dtype: Any) -> bool:
        """Return True if a column may hold times as serial days of spreadsheets."""
        return dtype.kind in "iuf" and (name == time or (not has_time and names_time(name)))

    for name, dtype in zip(frame.columns.tolist(), frame.dtypes.tolist(), strict=True):
        if name not in kept and (_may_be_text(dtype) or may_be_days(name, dtype)):
            column = _read_column(frame[name], name == time, order, layout, place)
            read |= {} if column is None else {name: column}
            order = order or getattr(column, "order", None)
    index = frame.index
    if not has_time:
        zone = None if layout is None else layout.tz
        dates = read_dates(index, "the index", order=order, zone=zone)
        index, order = dates.values, order or dates.order

    # Numbers of a frame are written alike: an unambiguous column decides for the others.
    shown = {column.mark for column in read.values() if isinstance(column, _NumberColumn)} - {None}
    decimal = written.decimal or (shown.pop() if len(shown) == 1 else None)
    columns: dict[Any, Any] = {}
    notes = [] if has_time else [dates.note]
    for name, column in read.items():
        if isinstance(column, Dates):
            columns[name], of_column = column.values, [column.note]
        else:
            columns[name], of_column = column.values(decimal)
        notes += of_column
    if columns or index is not frame.index:
        frame = frame.copy(deep=False)
        frame.index = index
        for name, values in columns.items():
            frame[name] = values
    return Recognised(frame, tuple(filter(None, notes)), Written(order, decimal))


def _may_be_text(dtype: Any) -> bool:
    return is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype)


def _read_column(
    column: pd.Series,
    is_time: bool,
    order: DateOrder | None,
    layout: Layout | None,
    place: Place | None,
) -> Dates | _NumberColumn | None:
    """Read a column as dates or numbers; None if it holds neither."""
    where = place or "row {}".format
    what, zone = f"the column {quote(column.name)}", None if layout is None else layout.tz
    if is_numeric_dtype(column.dtype):
        were_dates = is_time and layout is not None and layout.time_kind == "datetime"
        return read_serial_days(column, what, fitted=were_dates)
    if not is_text(column):
        return None
    if is_time or looks_like_dates(column, years=False):
        return read_dates(pd.Index(column), what, order=order, zone=zone, place=where)
    return _NumberColumn.parse(column, what, where, in_file=place is not None)


@dataclass(frozen=True)
class _NumberColumn:
    """Column of numbers as text: its distinct texts, and the position of each row's text."""

    what: str
    texts: list[str]
    rows: np.ndarray
    parsed: list[NumberText]
    in_file: bool

    @classmethod
    def parse(
        cls, column: pd.Series, what: str, place: Place, in_file: bool
    ) -> _NumberColumn | None:
        """Parse a column; return None if it does not hold numbers."""
        rows, different = pd.factorize(column)
        texts = [*map(str, different)]
        parsed = parse_numbers(texts, np.bincount(rows[rows >= 0], minlength=len(texts)))
        if parsed is None:
            return None
        self = cls(what, texts, rows, parsed, in_file)
        if self.marks:
            return self

        def shown(texts: list[int]) -> str:
            named = np.flatnonzero(np.isin(rows, texts)).tolist()
            return listed([f"{quote(column.iloc[i])} in {place(i)}" for i in named], 3)

        wrong = [i for i, each in enumerate(parsed) if not each.values]
        if wrong:
            raise ValueError(
                f"{what} must hold numbers in every row; no number is {shown(wrong)}. Correct "
                "these rows or drop them; codes that name a category are labels by "
                'astype("category").'
            )
        point, comma = (
            next(i for i, each in enumerate(parsed) if [*each.values] == [mark]) for mark in ".,"
        )
        raise ValueError(
            f"{what} must hold numbers with one mark of decimals; it is a point in "
            f"{shown([point])}, a comma in {shown([comma])}. Write them alike."
        )

    @property
    def marks(self) -> list[Decimal]:
        """Decimal marks that fit all numbers."""
        return [mark for mark in (".", ",") if all(mark in each.values for each in self.parsed)]

    @property
    def mark(self) -> Decimal | None:
        """Decimal mark of the numbers, None if ambiguous."""
        return self.marks[0] if len(self.marks) == 1 else None

    @property
    def is_plain(self) -> bool:
        """True if a program wrote the numbers with decimal points.

        A program writes 950.0 next to 1.234. Text with 950 next to 1.234 may have points between
        thousands.
        """
        values = self._values(".")
        whole = [text.strip(" +-").isdecimal() for text in self.texts]
        return not self.in_file and not any(whole) and all(map(_is_plain, self.texts, values))

    def _values(self, mark: Decimal) -> np.ndarray:
        """Return the values of the distinct texts."""
        return np.array([each.values[mark] for each in self.parsed])

    def values(self, decimal: Decimal | None) -> tuple[np.ndarray, list[str]]:
        """Return the numbers, as integers if all are written as such, and notes."""
        marks = self.marks
        if len(marks) == 2 and decimal is None and not self.is_plain:
            point, comma = self._values("."), self._values(",")
            unlike = np.flatnonzero(~((point == comma) | np.isnan(point)))
            if len(unlike):
                i = unlike[0]
                raise ValueError(
                    f"{self.what} must hold numbers of one meaning; {quote(self.texts[i])} is "
                    f"{point[i]:.15g} with a decimal point and {comma[i]:.15g} with a decimal "
                    'comma, and no row says which. Say so: pd.read_csv(..., decimal=".", '
                    'thousands=",") or the other way round.'
                )
        mark = decimal if decimal in marks else marks[0]
        values = self._values(mark)  # type: ignore[arg-type]
        notes = [self._note(values)]
        missing = {text for text, each in zip(self.texts, self.parsed, strict=True) if each.missing}
        if missing:
            n_rows = int(np.isin(self.rows, [self.texts.index(text) for text in missing]).sum())
            notes.append(
                f"{listed(map(quote, sorted(missing)))} of {self.what} "
                f"{'is' if len(missing) == 1 else 'are'} read as missing, in "
                f"{n_rows:,} row{'s' * (n_rows > 1)}."
            )
        whole = all(text.lstrip("-").isdecimal() for text in self.texts) and (self.rows >= 0).all()
        if whole and (np.abs(values) < EXACT).all():
            return values.astype(np.int64)[self.rows], notes
        return np.append(values, np.nan)[self.rows], notes

    def _note(self, values: np.ndarray) -> str:
        """Return a sentence on a number that Python would read otherwise or refuse, else ""."""
        odd = [i for i, text in enumerate(self.texts) if not _is_plain(text, values[i])]
        if not odd and self.in_file:  # where all are text
            return ""
        if not odd:
            return f"{self.what[0].upper()}{self.what[1:]} holds numbers as text."
        shown = max(odd, key=lambda i: len(self.texts[i]))
        unit = self.parsed[shown].unit
        return (
            f"{quote(self.texts[shown])} of {self.what} is read as {values[shown]:.15g}"
            f"{f', in {quote(unit)}' if unit else ''}."
        )


def _is_plain(text: str, value: float) -> bool:
    """Return True for a missing value, and a number as Python reads it."""
    try:
        return bool(np.isnan(value)) or float(text) == value
    except ValueError:
        return False
