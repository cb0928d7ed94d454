"""CSV and parquet files: their columns by name, then their rows."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from tsrnn.cli._shape import TIME
from tsrnn.data import to_pandas

__all__ = ["STDIN", "Table", "open_table"]

STDIN = "-"
SEPARATORS = ";\t|,"  # of CSV files, the least likely in a name first
MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}


class Table(Protocol):
    """A file that has been opened."""

    columns: list[str]

    def read(self, time: str, ids: str | None) -> pd.DataFrame:
        """Read the rows; `time` and `ids` name the columns that hold them."""

    def place(self, row: int) -> str:
        """Say where a row, counted from 0, stands in the file."""


def open_table(path: str, sep: str, decimal: str = ".", encoding: str = "utf-8") -> Table:
    """Open a CSV or parquet file, or CSV from stdin.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is empty, or cannot be read.
    """
    if path == STDIN:
        return _Csv("stdin", sys.stdin.buffer.read(), sep, decimal, encoding)
    place = Path(path).expanduser()
    if not place.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file, or use 'tsrnn batch'")
    if place.suffix.lower() == ".parquet":
        return _Parquet(path, place)
    compression = COMPRESSIONS.get(place.suffix.lower())
    return _Csv(path, place.read_bytes(), sep, decimal, encoding, compression)


class _Csv:
    """CSV: ids and time are text, whatever they look like; the rest is what it looks like."""

    def __init__(
        self,
        name: str,
        content: bytes,
        sep: str,
        decimal: str,
        encoding: str,
        compression: str | None = None,
    ) -> None:
        self._name, self._content = name, content
        self._how: dict[str, Any] = {
            "sep": sep, "decimal": decimal, "encoding": encoding, "compression": compression,
        }  # fmt: skip
        if not content.strip():
            raise ValueError(f"{name} must hold a table; it is empty")
        header = self._rows(header=None, nrows=1, dtype=str, keep_default_na=False)
        self.columns = _names(name, header.iloc[0].tolist())
        other = next((mark for mark in SEPARATORS if mark in self.columns[0]), None)
        if len(self.columns) == 1 and other is not None:
            mark = repr(other)
            raise ValueError(
                f"{name} must have several columns; read with --sep {sep!r} its header is one, "
                f"{self.columns[0]!r}. If fields are parted by {mark}, say so by --sep {mark}"
            )

    def read(self, time: str, ids: str | None) -> pd.DataFrame:
        text = {name: str for name in (time, ids) if name is not None}
        missing: Mapping[str, list[str]] = {
            name: [""] if name == ids else MISSING for name in self.columns
        }
        table = self._rows(
            header=0, names=self.columns, dtype=text, na_values=missing, keep_default_na=False
        )
        if not len(table):
            raise ValueError(f"{self._name} must have rows below its header; it has none")
        return table

    def place(self, row: int) -> str:
        """Name the line: quoted fields may go over several, and empty lines are passed over."""
        text = _decompressed(self._content, self._how["compression"]).decode(self._how["encoding"])
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=self._how["sep"])
        ends = (lines.line_num for fields in lines if fields)
        return f"line {next(itertools.islice(ends, row + 1, None))}"

    def _rows(self, **how: Any) -> pd.DataFrame:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # that fields were lost
                return pd.read_csv(
                    io.BytesIO(self._content), index_col=False, low_memory=False, **self._how, **how
                )
        except LookupError as error:
            raise ValueError(
                f"--encoding must name an encoding, such as utf-8, cp1252 or latin-1: {error}"
            ) from error
        except UnicodeError as error:
            raise ValueError(
                f"{self._name} cannot be read as {self._how['encoding']}: {error}. Name its "
                "encoding by --encoding, such as cp1252 or latin-1"
            ) from error
        except (ValueError, OSError, EOFError, pd.errors.ParserWarning) as error:
            why = str(error).strip()
            raise ValueError(f"{self._name} cannot be read as CSV: {why}") from error


def _decompressed(content: bytes, compression: str | None) -> bytes:
    if compression is None:
        return content
    if compression == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(archive.namelist()[0])
    return {"gzip": gzip, "bz2": bz2, "xz": lzma}[compression].decompress(content)


def _names(path: str, header: list[str]) -> list[str]:
    """Names of columns; a first one without a name is that of an index, which is time."""
    names = [name.strip() for name in header]
    if not names[0] and TIME not in names:
        names[0] = TIME
    unnamed = [place + 1 for place, name in enumerate(names) if not name]
    if unnamed:
        raise ValueError(f"{path} must name its columns; number {unnamed[0]} has no name")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{path} must name its columns apart; {twice[0]!r} comes twice")
    return names


class _Parquet:
    """Parquet, read by polars."""

    def __init__(self, name: str, place: Path) -> None:
        import narwhals as nw

        self._name = name
        try:
            self._rows = nw.read_parquet(str(place), backend="polars", glob=False)
        except ModuleNotFoundError as error:
            raise ImportError(
                "parquet files are read by polars; pip install 'tsrnn[polars]', or give CSV"
            ) from error
        except Exception as error:  # polars has many of its own
            raise ValueError(f"{name} cannot be read as parquet: {error}") from error
        self.columns = list(self._rows.columns)

    def place(self, row: int) -> str:
        return f"row {row + 1}"

    def read(self, time: str, ids: str | None) -> pd.DataFrame:
        if not len(self._rows):
            raise ValueError(f"{self._name} must have rows; it has none")
        return to_pandas(self._rows.to_native())
