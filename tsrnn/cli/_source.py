"""Files of the command line as frames in a shape that forecasters take."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from tsrnn.cli._console import note, say
from tsrnn.data import (
    CsvFormat,
    DataFiles,
    Layout,
    Written,
    dates_or_years,
    looks_like_dates,
    quote,
)

STDIN = "-"
ID, TIME, VALUE = "unique_id", "ds", "y"
INTEGER, INT64 = re.compile(r"-?[0-9]{1,19}"), range(-(2**63), 2**63)


@dataclass(frozen=True)
class Source:
    """Options on how files are read; None and empty where none is given."""

    id_col: str | None = None
    time_col: str | None = None
    target: Sequence[str] = ()
    wide: bool = False
    drop: Sequence[str] = ()
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    time_format: str | None = None
    strict: bool = False

    def read(self, path: str, shape: Shape | None = None) -> tuple[pd.DataFrame, Shape]:
        """Read a long frame, or a wide one with time in its index, and its shape.

        The path names CSV or parquet files; - is CSV from stdin.
        """
        name, table = self._open(path)
        check_there(name, table.columns, self.drop, "--drop")
        return self._framed(name, table, shape)

    def read_future(self, path: str, shape: Shape | None) -> pd.DataFrame:
        """Read rows of the steps ahead. Columns dropped from the data may be absent."""
        return self._framed(*self._open(path), shape)[0]

    def like(self, layout: Layout) -> tuple[Source, Shape | None]:
        """Return the source for a model of a layout, and the shape of its files if known."""
        if layout.kind != "long":
            return replace(self, wide=True), None
        time, ids = self.time_col or str(layout.time_col), self.id_col or layout.id_col
        written = Written(layout.date_order, layout.decimal)
        return self, Shape(time, ids, False, written=written)

    def _open(self, path: str) -> tuple[str, DataFiles]:
        csv = CsvFormat(
            self.sep, self.decimal, self.encoding, self.time_format, self.strict, options=True
        )
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
        keys = [key for key in (shape.time, shape.ids) if key is not None]
        check_there(name, columns, keys, "--time-col")
        time = None if shape.guessed and self.time_format is None else shape.time
        read = files.recognised(time, shape.ids, columns, written=shape.written)
        frame = read.frame
        if shape.guessed:
            shape = self._with_time(name, frame)
        shape = shape._replace(written=read.written)
        for sentence in read.notes:
            note(sentence)
        if not shape.wide or shape.time is None:
            return frame, shape
        if known_shape is None and not self.wide:
            others = [quote(column) for column in columns if column != shape.time]
            shown = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
            say(f"{name} is read as wide: time in {quote(shape.time)}, variables {shown}")
        return frame.set_index(shape.time), shape

    def _with_time(self, name: str, frame: pd.DataFrame) -> Shape:
        """Find the column of times of a wide file by its values."""
        columns = list(frame.columns)
        time = next((column for column in columns if holds_times(frame[column])), None)
        if time is None and len(columns) > 1:
            first = frame[columns[0]]
            raise ValueError(
                f"which column of {name} holds time is not known: none is called ds, and the "
                f"first, {quote(first.name)}, holds no dates (such as {quote(first.iloc[0])}). "
                "Name it by --time-col, or say --wide if time is in the first column; if these "
                "are dates, say how they are written by --time-format, such as %d.%m.%Y"
            )
        return Shape(time, None, True)


class Shape(NamedTuple):
    """Columns of time and ids, and whether a file is wide.

    `guessed` is True if the first column was taken for time because nothing names it. Without a
    time column rows are counted. `written` settles ambiguous dates and numbers of further files.
    """

    time: str | None
    ids: str | None
    wide: bool
    guessed: bool = False
    written: Written = Written()

    def arguments(self) -> dict[str, str]:
        """Return the arguments of forecasters for this shape."""
        named = {} if self.ids is None else {"id_col": self.ids}
        return named if self.wide or self.time is None else {"time_col": self.time} | named


def shape_of(
    path: str,
    columns: Sequence[str],
    id_col: str | None = None,
    time_col: str | None = None,
    target: Sequence[str] = (),
    wide: bool = False,
) -> Shape:
    """Return the shape of a file with these columns, under options.

    A file is long if it has a column of ids, or one of time and one called y, or if `target` is
    given beside them; else it is wide, time in `time_col`, or in ds, or in the first column.
    """
    check_there(path, columns, [id_col] if id_col else [], "--id-col")
    check_there(path, columns, [time_col] if time_col else [], "--time-col")
    check_there(path, columns, target, "--target")
    ids = id_col or (ID if ID in columns else None)
    time = time_col or (TIME if TIME in columns else None)
    long = ids is not None or (time is not None and (bool(target) or VALUE in columns))
    if wide or not long:
        return Shape(time or columns[0], None, True, guessed=time is None and not wide)
    check_there(path, columns, [time or TIME], "--time-col")
    return Shape(time or TIME, ids, False)


def check_there(path: str, columns: Sequence[str], names: Sequence[str], option: str) -> None:
    """Refuse names of columns that a file does not have."""
    missing = [quote(name) for name in names if name not in columns]
    if missing:
        there = ", ".join(map(quote, columns[:10])) + (", ..." if len(columns) > 10 else "")
        raise ValueError(
            f"{path} has no column {', '.join(missing)}; its columns are {there}. Name columns "
            f"that are there by {option}"
        )


def holds_times(column: pd.Series) -> bool:
    """Return True if values are dates, periods, text that reads as dates, or consecutive years."""
    dated = column.dtype.kind == "M" or isinstance(column.dtype, pd.PeriodDtype)
    return dated or dates_or_years(column) or looks_like_dates(column, years=False)


def in_layout(frame: pd.DataFrame, layout: Layout, ids: pd.Index) -> Any:
    """Convert a frame to what a saved model expects: periods, time zone, type of ids, a Series."""
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
    """Convert ids, which are text in CSV, to integers if the model has integer ids."""
    if layout.id_col is None or not pd.api.types.is_integer_dtype(ids.dtype):
        return frame
    column = frame[layout.id_col]
    texts = [text for text in column.dropna().unique() if isinstance(text, str)]
    numbers = {text: int(text) for text in texts if INTEGER.fullmatch(text)}
    # Text must come back from the 64-bit integer: 007 would be another series than 7.
    wrong = [
        text
        for text in texts
        if text not in numbers or str(numbers[text]) != text or numbers[text] not in INT64
    ]
    if wrong:
        named = ", ".join(map(quote, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
        raise ValueError(
            f"ids in the column {quote(layout.id_col)} must be whole numbers, written like 7 and "
            f"not like 007; not of the type of the ids fitted to: {named}. Mend them, or leave "
            "their rows out"
        )
    return frame.assign(**{layout.id_col: column.map(numbers)}) if numbers else frame
