"""CSV: the format of a file, its rows and the lines that they stand in."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import warnings
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from tsrnn.data._table import DEFAULT_TIME

__all__ = [
    "COMPRESSIONS",
    "CsvFormat",
    "CsvText",
    "compression_of",
    "decompressed",
    "whole_numbers",
]

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
INTEGERS, FLOATS = r"[+-]?\d{1,18}", r"\d{1,15}\.0*"  # what 64 bits hold exactly in any case
SEPARATORS = ";\t|,"  # of CSV files, the least likely in a name first


@dataclass(frozen=True)
class CsvFormat:
    """Format of CSV files.

    Parameters
    ----------
    sep, decimal : str
        Separator of fields and decimal mark, a character each.
    encoding : str
    options : bool
        Whether messages name these as options of a command, such as --sep.

    Attributes
    ----------
    MISSING : tuple of str
        Fields that are missing values, but for ids, of which an empty field alone is.

    Examples
    --------
    >>> from tsrnn.data import CsvFormat
    >>> CsvFormat(sep=";", decimal=",").encoding
    'utf-8'
    """

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    options: bool = False

    MISSING: ClassVar[tuple[str, ...]] = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")

    def setting(self, name: str, value: str) -> str:
        """Return a setting as the caller writes it."""
        return f"--{name} {value!r}" if self.options else f"pd.read_csv(..., {name}={value!r})"


class CsvText:
    """CSV: ids and time are text, whatever they look like; the rest is what it looks like."""

    def __init__(
        self, name: str, content: bytes, compression: str | None, csv_format: CsvFormat
    ) -> None:
        self.name, self.n_rows = name, 0
        self._content, self._compression, self._format = content, compression, csv_format
        if not content.strip():
            raise ValueError(f"{name} must hold a table; it is empty")
        header = self._parse(header=None, nrows=1, dtype=str, keep_default_na=False)
        names = self.columns = [field.strip() for field in header.iloc[0].tolist()]
        if not names[0] and DEFAULT_TIME not in names:
            names[0] = DEFAULT_TIME  # without a name as that of an index, which is time
        unnamed = [place + 1 for place, field in enumerate(names) if not field]
        if unnamed:
            raise ValueError(f"{name} must name its columns; number {unnamed[0]} has no name")
        twice = [field for field, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"{name} must name its columns apart; {twice[0]!r} comes twice")
        other = next((mark for mark in SEPARATORS if mark in names[0]), None)
        if len(names) == 1 and other is not None:
            argument = "--sep" if csv_format.options else "sep"
            raise ValueError(
                f"{name} must have several columns; read with {argument} {csv_format.sep!r} its "
                f"header is one, {names[0]!r}. If fields are parted by {other!r}, say so by "
                f"{csv_format.setting('sep', other)}"
            )

    def read(self, time: str | None, ids: str | None) -> pd.DataFrame:
        """Read the rows; an empty field is the one missing id."""
        text = {name: str for name in (time, ids) if name is not None}
        missing: Mapping[str, list[str]] = {
            name: [""] if name == ids else list(CsvFormat.MISSING) for name in self.columns
        }
        table = self._parse(
            header=0, names=self.columns, dtype=text, na_values=missing, keep_default_na=False
        )
        self.n_rows = len(table)
        if not len(table):
            raise ValueError(f"{self.name} must have rows below its header; it has none")
        return table

    def place(self, row: int) -> str:
        """Name the line: quoted fields may go over several, and empty lines are passed over."""
        text = decompressed(self._content, self._compression).decode(self._format.encoding)
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=self._format.sep)
        ends = (lines.line_num for fields in lines if fields)
        return f"line {next(itertools.islice(ends, row + 1, None))}"

    def _parse(self, **how: Any) -> pd.DataFrame:
        encoding, options = self._format.encoding, self._format.options
        argument = "--encoding" if options else "encoding"
        how |= {
            "sep": self._format.sep,
            "decimal": self._format.decimal,
            "encoding": encoding,
            "compression": self._compression,
            "index_col": False,
            "low_memory": False,
        }
        if int(pd.__version__.partition(".")[0]) < 3:  # whose default may miss the last bit
            how["float_precision"] = "round_trip"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # that fields were lost
                return pd.read_csv(io.BytesIO(self._content), **how)
        except LookupError as error:
            raise ValueError(
                f"{argument} must name an encoding, such as utf-8, cp1252 or latin-1: {error}"
            ) from error
        except UnicodeError as error:
            raise ValueError(
                f"{self.name} cannot be read as {encoding}: {error}. Name its encoding by "
                f"{argument if options else 'pd.read_csv(..., encoding=...)'}, such as cp1252 or "
                "latin-1"
            ) from error
        except (ValueError, OSError, EOFError, pd.errors.ParserWarning) as error:
            raise ValueError(f"{self.name} cannot be read as CSV: {str(error).strip()}") from error


def whole_numbers(times: pd.Series) -> pd.Series | None:
    """Numbers of a column of text that holds nothing but whole numbers; None of any other.

    Parameters
    ----------
    times : pandas.Series

    Returns
    -------
    pandas.Series or None
        Integers; floats where all have a decimal point, as those of a column that had gaps.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import whole_numbers
    >>> whole_numbers(pd.Series(["20240131", "20240201"])).tolist()
    [20240131, 20240201]
    >>> whole_numbers(pd.Series(["2024-01-31"])) is None
    True
    """
    different = times.drop_duplicates()
    kinds: Any = ((INTEGERS, "int64"), (FLOATS, "float64"))
    for pattern, dtype in kinds:
        if not different.hasnans and different.str.fullmatch(pattern).all():
            return times.astype(dtype)
    return None


def compression_of(path: Path) -> str | None:
    """Return how a file is compressed, by its name."""
    return COMPRESSIONS.get(path.suffix.lower())


def decompressed(content: bytes, compression: str | None) -> bytes:
    """Return the content of a compressed file."""
    if compression is None:
        return content
    if compression == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.read(archive.namelist()[0])
    return {"gzip": gzip, "bz2": bz2, "xz": lzma}[compression].decompress(content)
