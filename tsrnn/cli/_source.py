"""Files of the command line as frames in a shape that forecasters take."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.cli._console import say
from tsrnn.data import (
    CsvFormat,
    DataFiles,
    Layout,
    are_dates,
    holds_labels,
    quote,
    whole_numbers,
)

__all__ = ["Shape", "Source", "in_layout", "shape_of"]

STDIN = "-"
ID, TIME, VALUE = "unique_id", "ds", "y"
INTEGER, INT64 = re.compile(r"-?[0-9]{1,19}"), range(-(2**63), 2**63)
Place = Callable[[int], str]  # from the number of a row to where it stands in the file
GROUPED = re.compile(r"[-+]?\d[\d.,' ]*")  # a number with marks of another country
# Quarters and months as statistical offices write them; `read_panel` reads them.
PERIOD = r"\d{4}(-?Q[1-4]|M\d{2})"


@dataclass(frozen=True)
class Source:
    """Options on how files are read; None and empty where none is given."""

    id_col: str | None = None
    time_col: str | None = None
    target: Sequence[str] = ()
    wide: bool = False
    drop: Sequence[str] = ()
    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    time_format: str | None = None

    def read(self, path: str, shape: Shape | None = None) -> tuple[pd.DataFrame, Shape]:
        """Return a long frame, or a wide one with time in its index; and its shape.

        Parameters
        ----------
        path : str
            Of CSV or parquet files; - is CSV from stdin.
        shape : Shape, optional
            That of the file, where it is known.
        """
        name, table = self._open(path)
        check_there(name, table.columns, self.drop, "--drop")
        return self._framed(name, table, shape)

    def read_future(self, path: str, shape: Shape | None) -> pd.DataFrame:
        """Return rows of the steps ahead; columns to be dropped from the data need not be there."""
        return self._framed(*self._open(path), shape)[0]

    def like(self, layout: Layout) -> tuple[Source, Shape | None]:
        """Return the source for a model of a layout, and the shape of its files if known."""
        if layout.kind != "long":
            return replace(self, wide=True), None
        time, ids = self.time_col or str(layout.time_col), self.id_col or layout.id_col
        return self, Shape(time, ids, False)

    def _open(self, path: str) -> tuple[str, DataFiles]:
        csv = CsvFormat(self.sep, self.decimal, self.encoding, options=True)
        if path != STDIN:
            return path, DataFiles.find(path, csv)
        content = sys.stdin.buffer.read()
        return "stdin", DataFiles([Path("stdin")], "csv", csv=csv, content=content)

    def _framed(
        self, name: str, files: DataFiles, known_shape: Shape | None
    ) -> tuple[pd.DataFrame, Shape]:
        columns = [column for column in files.columns if column not in self.drop]
        shape = known_shape
        if shape is None:
            shape = shape_of(name, columns, self.id_col, self.time_col, self.target, self.wide)
        check_there(name, columns, [shape.time, *([shape.ids] if shape.ids else [])], "--time-col")
        frame = files.read(shape.time, shape.ids)[columns]
        times = frame[shape.time]
        if shape.guessed and not mostly_dates(times, self.time_format):
            raise ValueError(
                f"which column of {name} holds time is not known: none is called ds, and the "
                f"first, {quote(times.name)}, holds no dates (such as {quote(times.iloc[0])}). "
                "Name it by --time-col, or say --wide if time is in the first column; if these "
                "are dates, say how they are written by --time-format, such as %d.%m.%Y"
            )
        frame[shape.time] = parse_times(times, name, self.time_format, files.place)
        check_numbers(frame, name, {shape.time, shape.ids}, files.place, self.decimal)
        if not shape.wide:
            return frame, shape
        if known_shape is None and not self.wide:
            others = [repr(column) for column in columns if column != shape.time]
            shown = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
            say(f"{name} is read as wide: time in {shape.time!r}, variables {shown}")
        return frame.set_index(shape.time), shape


class Shape(NamedTuple):
    """Columns of time and ids, and whether a file is wide.

    `guessed` says that the first column was taken for time because nothing says which is.
    """

    time: str
    ids: str | None
    wide: bool
    guessed: bool = False

    def arguments(self) -> dict[str, str]:
        """Return the arguments of forecasters for this shape."""
        named = {} if self.ids is None else {"id_col": self.ids}
        return named if self.wide else {"time_col": self.time} | named


def shape_of(
    path: str,
    columns: Sequence[str],
    id_col: str | None = None,
    time_col: str | None = None,
    target: Sequence[str] = (),
    wide: bool = False,
) -> Shape:
    """Return the shape of a file with these columns, under options.

    A file is long if it has a column of ids, or one of time and one called y, or if `id_col` or
    `target` is given; else it is wide, time in `time_col`, or in ds, or in the first column.
    """
    check_there(path, columns, [id_col] if id_col else [], "--id-col")
    check_there(path, columns, [time_col] if time_col else [], "--time-col")
    check_there(path, columns, target, "--target")
    ids = id_col or (ID if ID in columns else None)
    time = time_col or (TIME if TIME in columns else None)
    long = ids is not None or bool(target) or (time is not None and VALUE in columns)
    if wide or not long:
        return Shape(time or columns[0], None, True, guessed=time is None and not wide)
    check_there(path, columns, [time or TIME], "--time-col")
    return Shape(time or TIME, ids, False)


def check_there(path: str, columns: Sequence[str], names: Sequence[str], option: str) -> None:
    """Refuse names of columns that a file does not have."""
    missing = [repr(name) for name in names if name not in columns]
    if missing:
        there = ", ".join(map(quote, columns[:10])) + (", ..." if len(columns) > 10 else "")
        raise ValueError(
            f"{path} has no column {', '.join(missing)}; its columns are {there}. Name columns "
            f"that are there by {option}"
        )


def mostly_dates(column: pd.Series, time_format: str | None) -> bool:
    """Whether a column holds dates, if some of its fields, as of a total, may be other text."""
    if not _is_text(column):
        return column.dtype.kind == "M"
    known = column.dropna().astype(str).str.strip()
    numbers = whole_numbers(known) if time_format is None else None
    if numbers is not None:
        return are_dates(numbers)
    if time_format is None and known.str.fullmatch(PERIOD).all():
        return True
    try:
        times = _datetimes(known, "", time_format)
    except ValueError:
        return False
    return bool(times.notna().mean() > 0.5)  # totals and notes are fewer than dates


def parse_times(column: pd.Series, path: str, time_format: str | None, place: Place) -> pd.Series:
    """Return text as datetimes, or as integers if all of it is; other columns as they are."""
    if not _is_text(column):
        return column
    known = column.dropna().astype(str).str.strip()
    numbers = whole_numbers(known) if time_format is None and len(known) == len(column) else None
    if numbers is not None:
        return numbers
    if time_format is None and len(known) == len(column) and known.str.fullmatch(PERIOD).all():
        return known
    times = _datetimes(known, path, time_format)
    wrong = np.flatnonzero(times.isna())
    if len(wrong):
        dates = f"dates like {time_format!r}"
        if time_format is None:
            dates = (
                "dates as in ISO 8601, such as 2024-01-31 or 2024-01-31T12:00, quarters such as "
                "2024Q1, or whole numbers"
            )
        advice = "Say how dates are written by --time-format, such as %d.%m.%Y, or name another "
        advice += "column by --time-col"
        if len(wrong) < len(known) / 2:
            advice = "Correct it, or take the line out of the file, if it is a total or a note"
        raise ValueError(
            f"the column {column.name!r} of {path} must hold {dates}; "
            f"{place(known.index[wrong[0]])} has {known.iloc[wrong[0]]!r}. {advice}"
        )
    return times.reindex(column.index)


def _datetimes(known: pd.Series, path: str, time_format: str | None) -> pd.Series:
    """Return datetimes, NaT where a text is none."""
    try:
        times = pd.to_datetime(known, format=time_format or "ISO8601", errors="coerce")
    except ValueError as error:
        if time_format is not None and "timezone" not in str(error).lower():
            raise ValueError(f"--time-format {time_format!r} is not understood: {error}") from error
        times = known
    if not isinstance(times.dtype, np.dtype | pd.DatetimeTZDtype) or times.dtype.kind != "M":
        raise ValueError(
            f"the column {known.name!r} of {path} must hold timestamps of one offset from UTC; it "
            "has several. Write them all in UTC, or give parquet, which knows time zones"
        )
    return times


def check_numbers(
    table: pd.DataFrame, path: str, others: Collection[Any], place: Place, decimal: str
) -> None:
    """Refuse text among the numbers of all columns but some; columns of labels are left."""
    for name in table.columns.difference(list(others), sort=False):
        column = table[name]
        if not _is_text(column) or holds_labels(column):
            continue
        plain = column.astype("str")
        if decimal != ".":  # 1.234 is a thousand and more there: no number, sooner than a wrong one
            plain = plain.str.replace(".", "'", regex=False).str.replace(decimal, ".", regex=False)
        wrong = np.flatnonzero(pd.to_numeric(plain, errors="coerce").isna() & column.notna())
        if len(wrong):
            text = str(column.iloc[wrong[0]])
            advice = (
                f"leave the column out by --drop {name}, or name it by --id-col if it holds ids"
            )
            if GROUPED.fullmatch(text):
                written = "say by --decimal and --sep how numbers are written, without a mark "
                advice = f"{written}between thousands; {advice}"
            raise ValueError(
                f"the column {name!r} of {path} must hold numbers; {place(int(wrong[0]))} has "
                f"{text!r}. Correct it, {advice}"
            )


def _is_text(column: pd.Series) -> bool:
    return column.dtype == object or isinstance(column.dtype, pd.StringDtype)


def in_layout(frame: pd.DataFrame, layout: Layout, ids: pd.Index) -> Any:
    """Return a frame as a saved model expects it: periods, time zone, type of ids, a Series."""
    if layout.kind == "long":
        stamps = _stamps(pd.Index(frame[layout.time_col]), layout)
        frame = frame.assign(**{str(layout.time_col): stamps})
        return _with_ids(frame, layout, ids)
    frame = frame.set_axis(_stamps(frame.index, layout), axis=0)
    if layout.time_col is not None:  # fitted in Python to a frame with its dates in a column
        return frame.rename_axis(layout.time_col).reset_index()
    return frame.iloc[:, 0] if layout.kind == "series" and frame.shape[1] == 1 else frame


def _stamps(times: pd.Index, layout: Layout) -> pd.Index:
    if not isinstance(times, pd.DatetimeIndex):
        return times
    if layout.time_kind == "period" and times.tz is None:
        return times.to_period(layout.time_dtype[len("period[") : -1])
    both = times.tz is not None and layout.tz is not None
    return times.tz_convert(layout.tz) if both else times


def _with_ids(frame: pd.DataFrame, layout: Layout, ids: pd.Index) -> pd.DataFrame:
    """Ids of CSV are text; where those of the model are integers, whole numbers are as well."""
    if layout.id_col is None or not pd.api.types.is_integer_dtype(ids.dtype):
        return frame
    column = frame[layout.id_col]
    texts = [text for text in column.dropna().unique() if isinstance(text, str)]
    numbers = {text: int(text) for text in texts if INTEGER.fullmatch(text)}
    # integers of 64 bits, written as Python writes them
    wrong = [
        text
        for text in texts
        if text not in numbers or str(numbers[text]) != text or numbers[text] not in INT64
    ]
    if wrong:
        named = ", ".join(map(quote, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
        raise ValueError(
            f"ids in the column {layout.id_col!r} must be whole numbers, written like 7 and not "
            f"like 007; not of the type of the ids fitted to: {named}. Mend them, or leave their "
            "rows out"
        )
    return frame.assign(**{layout.id_col: column.map(numbers)}) if numbers else frame
