"""CSV: format, rows and line numbers of a file."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from tsrnn.data._month_columns import find_spread
from tsrnn.data._table import DEFAULT_TIME
from tsrnn.data._text_table import (
    SAMPLE,
    SEPARATORS,
    Record,
    decode,
    find_table,
    footnotes,
    is_binary,
    is_time,
    shorten,
    shown_lines,
)

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
INTEGERS, FLOATS = r"[+-]?\d{1,18}", r"\d{1,15}\.0*"  # exact in int64 and float64
FIRST_ROWS = 50  # rows in which the column of times is sought
CODE = re.compile(r"0\d+")
MONTH = re.compile(r"(0?[1-9]|1[0-2])\.(1[89]|20)\d{2}")  # 01.2020 also reads as a number
GROUPED = r"[+-]?\d{1,3}(\.\d{3})+"


@dataclass(frozen=True)
class CsvFormat:
    """Format of CSV files; None is inferred from each file.

    Parameters
    ----------
    sep, decimal : str, optional
        Separator of fields and decimal mark, one character each.
    encoding : str, optional
    time_format : str, optional
        Format of dates for `strftime`, such as "%d.%m.%Y".
    strict : bool
        Refuse files with lines other than a header and rows. Defaults are then commas and UTF-8.
    options : bool
        Name parameters in messages as options of the command line, such as --sep.

    Attributes
    ----------
    MISSING : tuple of str
        Fields that mean a missing value. A missing id is an empty field alone.

    Examples
    --------
    >>> from tsrnn.data import CsvFormat
    >>> CsvFormat(sep=";", decimal=",").encoding is None
    True
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    time_format: str | None = None
    strict: bool = False
    options: bool = False

    MISSING: ClassVar[tuple[str, ...]] = (
        *("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"),
        *("n/a", "#N/A", "<NA>"),
    )

    def setting(self, name: str, value: str) -> str:
        """Return a parameter with its value as the caller writes it."""
        return f"--{name} {value!r}" if self.options else f"pd.read_csv(..., {name}={value!r})"

    def plain(self) -> CsvFormat:
        """Return the format with defaults instead of inference."""
        sep, decimal, encoding = self.sep or ",", self.decimal or ".", self.encoding or "utf-8"
        return replace(self, sep=sep, decimal=decimal, encoding=encoding)


class CsvText:
    """Text of a CSV file: ids and times are read as text, other columns by their content.

    `columns` are the names of columns. `notes` say what was inferred; `read` adds those on rows.
    """

    def __init__(
        self, name: str, content: bytes, compression: str | None, csv_format: CsvFormat
    ) -> None:
        self.name, self.n_rows = name, 0
        self._rows: np.ndarray | None = None  # row of the file per row of the frame, if they differ
        self._format = csv_format.plain() if csv_format.strict else csv_format
        content = self._unpack(content, compression)
        if not content or content.isspace():
            raise ValueError(f"{name} must hold a table; it is empty")
        if csv_format.encoding is None and is_binary(content):
            raise ValueError(
                f"{name} cannot be read as CSV: it is no text. Give a compressed file its "
                f"suffix, such as .gz, and a workbook .xlsx; of text, name the encoding by "
                f"{self._encoding_argument}, such as utf-16-le"
            )
        self._content, encoding_notes = self._decode(content)
        try:
            self._table = find_table(self._content, self._format.sep)
        except ValueError as error:
            raise self._bad_header(error) from error
        if self._format.decimal == self._table.sep and self._table.separated:
            raise ValueError(
                f"{name} cannot have {self._table.sep!r} between fields and as decimal mark both. "
                f"Name the other by {self._format.setting('sep', ';')}, or leave decimal out"
            )
        self.notes = [*encoding_notes, *self._table.notes]
        self._names = self._column_names()
        first = [row.fields[0] for row in self._table.sample if row.text][:FIRST_ROWS]
        self._spread = find_spread(self._names, first)
        if self._spread is not None:
            self.notes += self._spread.notes
        self.columns = [name for name in self._names if name]
        if self._spread is not None:
            self.columns = self._spread.columns

    def read(self, time: str | None, ids: str | None) -> pd.DataFrame:
        """Read the rows; the only missing id is an empty field."""
        table = self._rows_of(time, ids)
        if not len(table):
            raise ValueError(f"{self.name} must have rows below its header; it has none")
        if self._spread is not None:
            try:
                table, rows = self._spread.as_long(table)
            except ValueError as error:
                raise ValueError(f"{self.name} {error}") from error
            self._rows = rows if self._rows is None else self._rows[rows]
        self.n_rows = len(table)
        if self._format.strict and self.notes:
            argument = "--strict" if self._format.options else "strict=True"
            raise ValueError(
                f"{self.name} must hold a header and rows alone with {argument}, in UTF-8 with "
                f"fields separated by {self._format.sep!r}. {self.notes[0]} Correct the file, or "
                f"leave {argument} out"
            )
        return table

    def place(self, row: int) -> str:
        """Return the line of a row: quoted fields span lines, and empty lines are no rows."""
        if self._rows is not None:
            row = int(self._rows[row])
        for number, (line, _) in enumerate(self._lines()):
            if number == row:
                return f"line {line}"
        raise IndexError(row)

    def _bad_header(self, error: ValueError) -> ValueError:
        """Return an error with the separator, if any, that makes header and rows fit."""
        given = self._format.sep
        try:
            seen = find_table(self._content, None).sep
        except ValueError:
            seen = given or ""
        if given is None or seen == given:
            return ValueError(f"{self.name} {error}")
        return ValueError(
            f"{self.name} {error}. If fields are parted by {seen!r}, say so by "
            f"{self._format.setting('sep', seen)}"
        )

    def _unpack(self, content: bytes, compression: str | None) -> bytes:
        try:
            return decompressed(content, compression)
        except (ValueError, OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.name} cannot be read as CSV: {error}") from error

    def _decode(self, content: bytes) -> tuple[bytes, list[str]]:
        argument = "--encoding" if self._format.options else "encoding"
        try:
            return decode(content, self._format.encoding)
        except LookupError as error:
            raise ValueError(
                f"{argument} must name an encoding, such as utf-8, cp1252 or latin-1: {error}"
            ) from error
        except UnicodeError as error:
            encoding = self._format.encoding or "utf-8"
            raise ValueError(
                f"{self.name} cannot be read as {encoding}: {error}. Name its encoding by "
                f"{self._encoding_argument}, such as cp1252 or latin-1"
            ) from error

    @property
    def _encoding_argument(self) -> str:
        """Name of the parameter `encoding` for the caller."""
        return "--encoding" if self._format.options else "pd.read_csv(..., encoding=...)"

    def _column_names(self) -> list[str]:
        """Return the checked names of columns, "" for an empty column without a name."""
        names, table = list(self._table.names), self._table
        if not names[0] and DEFAULT_TIME not in names:
            names[0] = DEFAULT_TIME  # pandas writes an unnamed index, mostly time, like this
        holding = [any(len(r.fields) > j and r.fields[j].strip() for r in table.sample)
                   for j in range(len(names))]  # fmt: skip
        unnamed = [j + 1 for j, name in enumerate(names) if not name and holding[j]]
        if unnamed:
            raise ValueError(f"{self.name} must name its columns; number {unnamed[0]} has no name")
        twice = [field for field, count in Counter(filter(None, names)).items() if count > 1]
        if twice:
            raise ValueError(f"{self.name} must name its columns apart; {twice[0]!r} comes twice")
        other = next((mark for mark in SEPARATORS if mark in names[0]), None)
        if len(names) == 1 and other is not None and self._format.sep is not None:
            argument = "--sep" if self._format.options else "sep"
            raise ValueError(
                f"{self.name} must have several columns; read with {argument} {table.sep!r} its "
                f"header is one, {names[0]!r}. If fields are parted by {other!r}, say so by "
                f"{self._format.setting('sep', other)}"
            )
        n_words = len(names[0].split())
        words = [len(row.fields[0].split()) for row in table.sample] if len(names) == 1 else []
        if n_words > 1 and words and {*words} == {n_words}:
            raise ValueError(
                f"{self.name} must have a separator between fields; its header is {names[0]!r}, "
                f"and rows have {n_words} words, too. If a blank separates fields, say so by "
                f"{self._format.setting('sep', ' ')}; if several do, write it anew with commas"
            )
        return names

    def _rows_of(self, time: str | None, ids: str | None) -> pd.DataFrame:
        """Read the rows without the lines above and below the table."""
        names, table = self._names, self._table
        end, below, n_empty = footnotes(self._content, table, self._time_place(time))
        if below:
            lines = "1 line is" if len(below) == 1 else f"{len(below)} lines are"
            self.notes.append(f"{lines} left out below the table: {shown_lines(below)}.")
        self._end = end
        if table.start >= end or self._content[table.start : table.start + SAMPLE].isspace():
            return pd.DataFrame(columns=self.columns)
        # Columns without a name get one that no header can hold.
        keys = [name or f"\n{place}" for place, name in enumerate(names)]
        text: dict[str, type] = {name: str for name in (time, ids, *self._texts()) if name in keys}
        if self._spread is not None:
            text = dict.fromkeys(keys, str)
        frame = self._parse(keys, text, ids)
        frame = self._without_empty(frame, names, n_empty)
        self._check_widths(frame)
        if self._spread is not None:
            return frame
        return self._with_thousands(frame, ids)

    def _time_place(self, time: str | None) -> int | None:
        """Return the position of the column of times, by name or by fields that look like times."""
        names = self._names
        if self._spread is not None and self._spread.kind != "years":
            return None
        if time in names:
            return names.index(str(time))
        if DEFAULT_TIME in names:
            return names.index(DEFAULT_TIME)
        rows = self._table.sample[:FIRST_ROWS]
        for place in range(len(names)):
            fields = [row.fields[place] for row in rows if place < len(row.fields)]
            if fields and 2 * sum(map(is_time, fields)) > len(fields):
                return place
        return None

    def _texts(self) -> list[str]:
        """Return columns of digits that are text: codes such as 007, months such as 01.2020."""
        rows = self._table.sample
        chosen = []
        for place, name in enumerate(self._names):
            fields = [row.fields[place].strip() for row in rows if place < len(row.fields)]
            fields = [field for field in fields if field]
            codes = any(CODE.fullmatch(field) for field in fields)
            codes = codes and all(map(str.isdecimal, fields))
            months = place == 0 and all(MONTH.fullmatch(field) for field in fields)
            if name and fields and (codes or months):
                chosen.append(name)
        return chosen

    def _parse(self, keys: list[str], text: Mapping[str, type], ids: str | None) -> pd.DataFrame:
        missing: Mapping[str, list[str]] = {
            name: [""] if name == ids else list(CsvFormat.MISSING) for name in keys
        }
        how: dict[str, Any] = {
            "sep": self._table.sep,
            "decimal": self._format.decimal or ".",
            "header": None,
            "names": keys,
            "dtype": text,
            "na_values": missing,
            "keep_default_na": False,
            "index_col": False,
            "low_memory": False,
        }
        if int(pd.__version__.partition(".")[0]) < 3:  # its default may miss the last bit
            how["float_precision"] = "round_trip"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # warns of lost fields
                # Slice, and so copy, the file only if lines follow the table.
                content = self._content
                file = io.BytesIO(content if self._end == len(content) else content[: self._end])
                file.seek(self._table.start)
                return pd.read_csv(file, **how)
        except (ValueError, pd.errors.ParserWarning) as error:
            for line, fields in self._lines():
                if len(fields) > len(keys):
                    raise self._wrong_width(line, fields) from error
            if "EOF inside string" in str(error):
                ends = [self._table.line, *(line for line, _ in self._lines())]
                raise ValueError(
                    f"{self.name} cannot be read as CSV: quotes must come in pairs; that of line "
                    f"{ends[-2] + 1} is not closed. Close it, or take it out"
                ) from error
            raise ValueError(f"{self.name} cannot be read as CSV: {str(error).strip()}") from error

    def _without_empty(self, frame: pd.DataFrame, names: list[str], n_below: int) -> pd.DataFrame:
        """Drop empty columns without a name, and empty rows."""
        unnamed = [key for key, name in zip(frame.columns, names, strict=True) if not name]
        for key in unnamed:
            if frame[key].notna().any():
                number = frame.columns.get_loc(key) + 1  # type: ignore[operator]
                raise ValueError(f"{self.name} must name its columns; number {number} has no name")
        if unnamed:
            columns = "1 column" if len(unnamed) == 1 else f"{len(unnamed)} columns"
            verb = "is" if len(unnamed) == 1 else "are"
            self.notes.append(f"{columns} without a name and without values {verb} left out.")
            frame = frame.drop(columns=unnamed)
        empty = np.zeros(len(frame), bool)
        # Last column first: it mostly holds numbers without a gap, which ends the search.
        if len(names) > 1 and all(frame[name].isna().any() for name in frame.columns[::-1]):
            empty = frame.isna().all(axis=1).to_numpy()
        n_empty = int(empty.sum()) + n_below
        if n_empty:
            rows = "1 row" if n_empty == 1 else f"{n_empty} rows"
            verb = "is" if n_empty == 1 else "are"
            self.notes.append(f"{rows} without any value {verb} left out.")
        if empty.any():
            self._rows = np.flatnonzero(~empty)
            frame = frame[~empty].reset_index(drop=True)
        return frame

    def _check_widths(self, frame: pd.DataFrame) -> None:
        """Refuse rows with fewer fields than names, which parsers fill up silently."""
        if not frame.iloc[:, -1].isna().any():
            return
        least = max(place for place, name in enumerate(self._names) if name) + 1
        part = self._table.start, self._end
        n_marks = self._content.count(self._table.sep.encode(), *part)
        whole = n_marks >= len(frame) * (self._table.width - 1)
        if whole and self._content.find(b'"', *part) < 0:
            return
        for line, fields in self._lines():
            if len(fields) < least:
                raise self._wrong_width(line, fields)

    def _wrong_width(self, line: int, fields: list[str]) -> ValueError:
        least = sum(map(bool, self._names))
        text = self._table.sep.join(fields)
        return ValueError(
            f"{self.name} cannot be read as CSV: rows must have {least} fields, as the header; "
            f"line {line} has {len(fields)}, {shorten(text)}. Correct it, quote fields that hold "
            f"{self._table.sep!r}, or take the line out if it is a total or a note"
        )

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the last line of each row and its fields."""
        body = self._content[self._table.start : self._end]
        text = io.StringIO(body.decode(), newline="")
        reader = csv.reader(text, delimiter=self._table.sep)
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip():
                yield self._table.line + reader.line_num, fields

    def _with_thousands(self, frame: pd.DataFrame, ids: str | None) -> pd.DataFrame:
        """Return columns of 1.234 as text if every point may separate thousands."""
        if self._table.sep == "," or self._format.decimal is not None:
            return frame
        floats = [name for name in frame.columns if frame[name].dtype.kind == "f"]
        thousandths = {name: frame[name].dropna().to_numpy() * 1000 for name in floats}
        # One number with more or fewer than three decimals settles the mark for the whole file.
        if any((np.abs(x - np.round(x)) > 1e-6).any() for x in thousandths.values()) or not floats:
            return frame
        keys = [name or f"\n{place}" for place, name in enumerate(self._names)]
        text = self._parse(keys, dict.fromkeys(keys, str), ids)[floats]
        if self._rows is not None:
            text = text.iloc[self._rows].reset_index(drop=True)
        columns = {name: text[name].dropna().str.strip() for name in floats}
        numbers = {
            name: each[each.str.contains(".", regex=False)] for name, each in columns.items()
        }
        pointed = [name for name in floats if len(numbers[name])]
        if not all(numbers[name].str.fullmatch(GROUPED).all() for name in pointed):
            return frame
        return frame.assign(**{name: text[name] for name in pointed})


def plain_format(name: str, head: bytes, csv_format: CsvFormat) -> CsvFormat:
    """Return the format of a plain file, a header and rows in UTF-8, from its first bytes.

    Given parameters of `csv_format` are kept; an ambiguous decimal mark is refused.
    """
    end = max(head.rfind(b"\n"), head.rfind(b"\r")) + 1 or len(head)
    try:
        content, notes = decode(head[:end], None)
        table = find_table(content, csv_format.sep)
    except (UnicodeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as CSV: {error}") from error
    notes += [note for note in table.notes if "separated" not in note]
    first = [row.fields[0] for row in table.sample if row.text][:FIRST_ROWS]
    spread = find_spread(table.names, first) if table.names[0] else None
    if notes or spread is not None:
        notes += [] if spread is None else spread.notes
        raise ValueError(
            f"{name} must be a header and rows in UTF-8, to be read part by part. {notes[0]} Write "
            "it anew, or forecast it as a whole, by Forecaster().fit(path) or tsrnn forecast"
        )
    decimal = csv_format.decimal or _decimal_mark(name, table.sep, table.sample)
    return replace(csv_format, sep=table.sep, decimal=decimal)


def _decimal_mark(name: str, sep: str, rows: list[Record]) -> str:
    """Return the decimal mark of the numbers in `rows`."""
    if sep == ",":
        return "."
    fields = [field.strip() for row in rows for field in row.fields]
    marks = [mark for mark in ".," if any(re.fullmatch(rf"[+-]?\d*[{mark}]\d+", f) for f in fields)]
    if not marks:
        return "."
    marked = [field for field in fields if re.fullmatch(rf"[+-]?\d*[{marks[0]}]\d+", field)]
    if len(marks) > 1 or all(re.fullmatch(r"[+-]?\d{1,3}[.,]\d{3}", field) for field in marked):
        raise ValueError(
            f"numbers of {name} must have a decimal mark that can be seen; {marked[0]!r} could be "
            f"{re.sub('[.,]', '.', marked[0])} or {re.sub('[.,]', '', marked[0])}. Give decimal="
            f"{marks[0]!r} for the first, and write numbers without a mark between thousands"
        )
    return marks[0]


def whole_numbers(times: pd.Series) -> pd.Series | None:
    """Convert a column of text that holds only whole numbers; return None for other columns.

    The result is of integers, or of floats if all have a decimal point, as after missing values in
    pandas.
    """
    different = times.drop_duplicates()
    kinds: Any = ((INTEGERS, "int64"), (FLOATS, "float64"))
    for pattern, dtype in kinds:
        if not different.hasnans and different.str.fullmatch(pattern).all():
            return times.astype(dtype)
    return None


def compression_of(path: Path) -> str | None:
    """Return the compression of a file by its suffix."""
    return COMPRESSIONS.get(path.suffix.lower())


def decompressed(content: bytes, compression: str | None) -> bytes:
    """Return the content of a compressed file."""
    if compression is None:
        return content
    if compression == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(archive.namelist()[0])
    return {"gzip": gzip, "bz2": bz2, "xz": lzma}[compression].decompress(content)
