"""From a file to a frame in a shape that forecasters take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from tsrnn.cli._columns import Place, check_numbers, mostly_dates, parse_times
from tsrnn.cli._console import say
from tsrnn.cli._shape import Shape, check_there, shape_of
from tsrnn.cli._tables import STDIN, Table, open_table
from tsrnn.data import Layout

__all__ = ["Source", "in_layout"]

INTEGER, INT64 = re.compile(r"-?[0-9]{1,19}"), range(-(2**63), 2**63)


@dataclass(frozen=True)
class Source:
    """What was said of the files; None and empty where nothing was."""

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
        """A long frame, or a wide one with time in its index; and which.

        Parameters
        ----------
        path : str
            Of a CSV or parquet file; - is CSV from stdin.
        shape : Shape, optional
            That of the file, where it is known.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If it cannot be read, a column is missing, or time or numbers are none.
        """
        name, table = self._open(path)
        check_there(name, table.columns, self.drop, "--drop")
        return self._framed(name, table, shape)

    def read_future(self, path: str, shape: Shape | None) -> pd.DataFrame:
        """Rows of the steps ahead; columns to be dropped from the data need not be there.

        Raises
        ------
        FileNotFoundError, ValueError
            As `read`.
        """
        return self._framed(*self._open(path), shape)[0]

    def like(self, layout: Layout) -> tuple[Source, Shape | None]:
        """The source of files for a model of a layout, and their shape where that says all."""
        if layout.kind != "long":
            return replace(self, wide=True), None
        time, ids = self.time_col or str(layout.time_col), self.id_col or layout.id_col
        return self, Shape(time, ids, False)

    def _open(self, path: str) -> tuple[str, Table]:
        table = open_table(path, self.sep.replace("\\t", "\t"), self.decimal, self.encoding)
        return "stdin" if path == STDIN else path, table

    def _framed(self, name: str, table: Table, shape: Shape | None) -> tuple[pd.DataFrame, Shape]:
        columns = [column for column in table.columns if column not in self.drop]
        found = self._shape_of(name, columns) if shape is None else shape
        check_there(name, columns, [found.time, *([found.ids] if found.ids else [])], "--time-col")
        frame = table.read(found.time, found.ids)[columns]
        frame[found.time] = self._times(frame[found.time], name, found, table.place)
        check_numbers(frame, name, {found.time, found.ids}, table.place, self.decimal)
        if not found.wide:
            return frame, found
        if shape is None and not self.wide:
            _say_wide(name, found, columns)
        return frame.set_index(found.time), found

    def _shape_of(self, name: str, columns: list[str]) -> Shape:
        return shape_of(name, columns, self.id_col, self.time_col, self.target, self.wide)

    def _times(self, column: pd.Series, name: str, shape: Shape, place: Place) -> pd.Series:
        if shape.guessed and not mostly_dates(column, self.time_format):
            raise ValueError(
                f"which column of {name} holds time is not known: none is called ds, and the "
                f"first, {column.name!r}, holds no dates (such as {column.iloc[0]!r}). Name it by "
                "--time-col, or say --wide if time is in the first column; if these are dates, say "
                "how they are written by --time-format, such as %d.%m.%Y"
            )
        return parse_times(column, name, self.time_format, place)


def in_layout(frame: pd.DataFrame, layout: Layout, ids: pd.Index) -> Any:
    """A frame as a saved model expects it: periods, time zone, type of ids, a Series."""
    if layout.kind == "long":
        stamps = pd.Series(_stamps(pd.Index(frame[layout.time_col]), layout))
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
    """Ids of CSV are text; where those of the model are integers, whole numbers are as well.

    Raises
    ------
    ValueError
        If ids of a model of integers are other text.
    """
    if layout.id_col is None or not pd.api.types.is_integer_dtype(ids.dtype):
        return frame
    column = frame[layout.id_col]
    numbers = {text: _whole(text) for text in column.dropna().unique() if isinstance(text, str)}
    wrong = [text for text, number in numbers.items() if number is None]
    if wrong:
        named = ", ".join(map(repr, wrong[:5])) + (", ..." if len(wrong) > 5 else "")
        raise ValueError(
            f"ids in the column {layout.id_col!r} must be whole numbers, written like 7 and not "
            f"like 007; not of the type of the ids fitted to: {named}. Mend them, or leave their "
            "rows out"
        )
    return frame.assign(**{layout.id_col: column.map(numbers)}) if numbers else frame


def _whole(text: str) -> int | None:
    """An integer of 64 bits, written as Python writes it."""
    number = int(text) if INTEGER.fullmatch(text) else None
    return number if str(number) == text and number in INT64 else None


def _say_wide(name: str, shape: Shape, columns: list[str]) -> None:
    others = [repr(column) for column in columns if column != shape.time]
    shown = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
    say(f"{name} is read as wide: time in {shape.time!r}, variables {shown}")
