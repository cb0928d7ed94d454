"""Parquet and CSV files: search, and reading as a whole, in blocks of rows or lazily."""

from __future__ import annotations

import glob
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from tsrnn.data._categories import holds_labels
from tsrnn.data._csv import (
    COMPRESSIONS,
    CsvFormat,
    CsvText,
    compression_of,
    decompressed,
    plain_format,
    whole_numbers,
)
from tsrnn.data._excel import EXCEL, sheet_text
from tsrnn.data._faults import quote
from tsrnn.data._forked import check_threads
from tsrnn.data._frames import to_pandas
from tsrnn.data._panel import Layout
from tsrnn.data._recognise import UNKNOWN, Recognised, Written, recognise
from tsrnn.data._table import Table, read_table
from tsrnn.data._text_table import SAMPLE, is_number, is_time
from tsrnn.data._timestamps import Stamps, are_dates
from tsrnn.data._written_dates import is_text, looks_like_dates, read_dates

ROWS_AT_ONCE = 2**19  # rows of a parquet file that are a frame at one time
ROWS_FOR_TYPES = 10_000  # rows of a CSV file from which polars infers dtypes
MAGIC = b"PAR1"  # the first bytes of a parquet file
PLAIN = CsvFormat()

PartColumns = Callable[[Table], pd.DataFrame]


def is_path(df: object) -> bool:
    """Return True if the data are the name of a file or folder."""
    return isinstance(df, str | os.PathLike)


def load_polars() -> Any:
    """Import polars, which reads parquet files and writes files.

    A process forked after polars had started its threads is refused, since it would wait for ever.
    """
    try:
        import polars
    except ImportError as error:
        raise ImportError(
            "parquet files are read and written by polars, which is not installed. Run pip install "
            "'tsrnn[parquet]', or give a frame or CSV"
        ) from error
    check_threads()
    return polars


@dataclass(frozen=True)
class DataFiles:
    r"""Parquet or CSV files that are read as one table.

    Parameters
    ----------
    paths : sequence of Path
    kind : {"parquet", "csv"}
    hive : bool
        Read folders named ``column=value`` as a column of parquet files.
    csv : CsvFormat
    content : bytes, optional
        Content of a CSV file from elsewhere, such as stdin, with its name in `paths`.
    source_notes : tuple of str
        Sentences on the origin of `content`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tsrnn.data import DataFiles
    >>> files = DataFiles([Path("stdin")], "csv", content=b"ds,y\n2024-01-01,3\n2024-01-02,4")
    >>> files.columns
    ['ds', 'y']
    >>> files.read("ds")["y"].tolist()
    [3, 4]
    """

    paths: Sequence[Path]
    kind: Literal["parquet", "csv"]
    hive: bool = False
    csv: CsvFormat = PLAIN
    content: bytes | None = None
    source_notes: tuple[str, ...] = ()

    @classmethod
    def find(cls, source: Any, csv: CsvFormat = PLAIN) -> DataFiles:
        """Return the files of a path, a folder or a pattern, sorted by name.

        The suffix of a file, or else its content, says what it is. In folders and patterns, names
        that begin with a point or an underscore are ignored. An Excel file, only by its own name,
        is read as CSV from its first sheet with a table.

        Raises
        ------
        FileNotFoundError
            If no file matches.
        ValueError
            If files are neither parquet nor CSV, or mixed.
        """
        place = Path(source).expanduser()
        # os.path returns False for names that no file can have, where Path raises.
        if os.path.isfile(place) and place.suffix.lower() in EXCEL:
            content, notes = sheet_text(place)
            plain = replace(csv, sep=",", encoding="utf-8")
            return cls([place], "csv", csv=plain, content=content, source_notes=tuple(notes))
        if os.path.exists(place) and not os.path.isdir(place):
            return cls([place], _kind_of(place) or _kind_of_content(place), csv=csv)
        if os.path.isdir(place):
            paths = [path for path in place.rglob("*") if _kind_of(path)]
            paths = [path for path in paths if not _is_aside(path.relative_to(place).parts)]
        else:
            paths = [Path(name) for name in glob.glob(str(place), recursive=True)]
            paths = [path for path in paths if not _is_aside([path.name])]
        paths = sorted(path for path in paths if path.is_file())
        if not paths:
            raise FileNotFoundError(
                f"no parquet or CSV file is at {str(source)!r}. Give the path of one, of a folder "
                "of them, or a pattern such as 'sales/*.parquet'"
            )
        kinds = sorted({_kind_of(path) or path.suffix for path in paths})
        if len(kinds) > 1 or kinds[0] not in ("parquet", "csv"):
            raise ValueError(
                f"files must all be parquet, or all be CSV (.csv, .csv.gz); got {kinds}. Name them "
                "by a pattern such as 'sales/*.parquet'"
            )
        return cls(paths, kinds[0], hive=True, csv=csv)  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """Name of the files for messages."""
        more = len(self.paths) - 1
        files = "file" if more == 1 else "files"
        return str(self.paths[0]) + (f" and {more} {files} more" if more else "")

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        if self.kind == "csv":
            return self._texts[0].columns
        with self.errors():
            return list(self.scan().collect_schema().names())

    def read(self, time: str | None = None, ids: str | None = None) -> pd.DataFrame:
        """Read all rows, with times and ids of CSV files as text.

        Parameters
        ----------
        time, ids : str, optional
            Names of the columns of times and ids.

        Raises
        ------
        ValueError
            If the files cannot be read, differ in their columns or have no rows.
        """
        if self.kind == "csv":
            for text in self._texts[1:]:
                if text.columns != self.columns:
                    raise ValueError(
                        f"{text.name} must have the columns of {self._texts[0].name}, "
                        f"{self.columns}; it has {text.columns}. Write them anew with one schema"
                    )
            frames = [text.read(time, ids) for text in self._texts]
            return frames[0] if len(frames) == 1 else pd.concat(_alike(frames), ignore_index=True)
        self.check_zones(time)
        with self.errors(time):
            rows = self.scan().collect()
        if not len(rows):
            raise ValueError(f"{self.name} must have rows; it has none")
        return to_pandas(rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was inferred from CSV files; `read` adds those on rows."""
        if self.kind == "parquet":
            return ()
        if len(self._texts) == 1:
            return (*self.source_notes, *self._texts[0].notes)
        counts = Counter(note for text in self._texts for note in text.notes)

        def first_with(note: str) -> str:
            return next(text.name for text in self._texts if note in text.notes)

        # A note of several files is shown once.
        return tuple(
            note if n == len(self._texts) else f"{n} files, such as {first_with(note)}: {note}"
            for note, n in counts.items()
        )

    def recognised(
        self,
        time: str | None = None,
        ids: str | None = None,
        columns: Sequence[str] | None = None,
        layout: Layout | None = None,
        written: Written = UNKNOWN,
    ) -> Recognised:
        """Read all rows, and convert text of CSV files to numbers and dates.

        Parameters
        ----------
        time, ids : str, optional
            Names of the columns of times and ids.
        columns : sequence of str, optional
            Columns to return; by default all.
        layout : Layout, optional
            Layout of the data fitted to.
        written : Written
            Order of dates and decimal mark for ambiguous files.

        Returns
        -------
        Recognised

        Raises
        ------
        ValueError
            If the files cannot be read, or a column of numbers or dates holds other text. The
            message names the line.
        """
        frame = self.read(time, ids)
        if columns is not None:
            frame = frame[list(columns)].copy()
        if time is not None:
            frame[time] = self._formatted_times(frame[time])
        if self.kind == "parquet":
            return Recognised(frame)
        decimal: Any = self.csv.decimal or written.decimal
        written = replace(written, decimal=decimal)
        result = Recognised(frame, (), written)
        if not self.csv.strict:
            result = recognise(
                frame, time=time, ids=ids, written=written, layout=layout, place=self.place
            )
        frame = result.frame
        if time is None:  # the first column that holds dates
            time = next((c for c in frame.columns if looks_like_dates(frame[c], years=False)), None)
        if time is not None and is_text(frame[time]):
            frame[time] = self._read_dates(frame[time])
        for name in frame.columns:
            if name not in (time, ids):
                self._check_numbers(frame[name])
        return Recognised(frame, (*self.notes, *result.notes), result.written)

    def _formatted_times(self, times: pd.Series) -> pd.Series:
        """Convert text to dates of the given format, or else to whole numbers."""
        time_format = self.csv.time_format
        if not is_text(times):
            return times
        if time_format is None:
            different = pd.Series(times.unique()).str.strip()
            if self.kind == "parquet" or whole_numbers(different) is None:
                return times
            numbers = whole_numbers(times.str.strip())  # years, steps or dates in digits
            return times if numbers is None else numbers
        known = times.dropna().astype(str).str.strip()
        argument = "--time-format" if self.csv.options else "time_format"
        try:
            dates = pd.to_datetime(known, format=time_format, errors="coerce")
        except ValueError as error:
            if "timezone" in str(error).lower():
                raise ValueError(
                    f"the column {quote(times.name)} of {self.name} must hold timestamps of one "
                    "offset from UTC; it has several. Write them all in UTC"
                ) from error
            raise ValueError(f"{argument} {time_format!r} is not understood: {error}") from error
        wrong = np.flatnonzero(dates.isna())
        if len(wrong):
            raise ValueError(
                f"the column {quote(times.name)} of {self.name} must hold dates like "
                f"{time_format!r}; {self.place(known.index[wrong[0]])} has "
                f"{quote(known.iloc[wrong[0]])}. Correct it, or give another {argument}"
            )
        return dates.reindex(times.index)

    def _read_dates(self, times: pd.Series) -> pd.Index:
        """Convert text to dates with the year first; refuse other text."""
        different = times.dropna().unique()  # series of a panel share their dates
        wrong = [text for text in different if not is_time(text)]
        what = f"the column {quote(times.name)} of {self.name}"
        if not wrong:
            return read_dates(pd.Index(times), what, strict=True, place=self.place).values
        advice = "Correct it, or take the line out of the file, if it is a total or a note"
        if 2 * len(wrong) > len(different):
            name = "--time-col" if self.csv.options else "time_col"
            advice = f"Name the column of dates by {name}"
        place = self.place(int(np.flatnonzero(times == wrong[0])[0]))
        raise ValueError(
            f"{what} must hold dates, such as 2024-01-31, or whole numbers; {place} has "
            f"{quote(wrong[0])}. {advice}"
        )

    def _check_numbers(self, column: pd.Series) -> None:
        """Refuse text among the numbers of a column; accept labels, dates and codes."""
        if not is_text(column) or holds_labels(column) or looks_like_dates(column):
            return
        known = column.dropna()
        wrong = known[~known.map(is_number)]
        if len(wrong):
            name = column.name
            out = (
                f"leave the column out by --drop {name}" if self.csv.options else "drop the column"
            )
            ids = "--id-col" if self.csv.options else "id_col"
            raise ValueError(
                f"the column {quote(name)} of {self.name} must hold numbers; "
                f"{self.place(int(wrong.index[0]))} has {quote(wrong.iloc[0])}. Correct it, {out}, "
                f"or name it by {ids} if it holds ids"
            )

    def plain_format(self) -> CsvFormat:
        """Return the format of plain CSV files, a header and rows, from the first file.

        Raises
        ------
        ValueError
            If the file is not plain, or the decimal mark is ambiguous.
        """
        if self.content is not None:
            raise ValueError(
                f"{self.name} must be a file of text to be read part by part. Write it as CSV"
            )
        if self.kind == "parquet" or (self.csv.sep and self.csv.decimal):
            return self.csv.plain()
        path = self.paths[0]
        if compression_of(path) is None:
            with path.open("rb") as file:
                head = file.read(SAMPLE)
        else:
            head = decompressed(path.read_bytes(), compression_of(path))[:SAMPLE]
        return plain_format(str(path), head, self.csv)

    def place(self, row: int) -> str:
        """Return the place of a row, counted from 0, as text: its line in a CSV file."""
        if self.kind == "parquet":
            return f"row {row + 1}"
        for text in self._texts:
            if row < text.n_rows:
                break
            row -= text.n_rows
        return text.place(row) + (f" of {text.name}" if len(self._texts) > 1 else "")

    def scan(self, texts: Sequence[Any] = (), **options: Any) -> Any:
        """Return the files as one lazy table of polars.

        Parameters
        ----------
        texts : sequence of str
            Columns of CSV files to read as text.
        **options
            Arguments of `polars.scan_parquet` or `polars.scan_csv`.

        Raises
        ------
        ImportError
            If polars is not installed.
        ValueError
            If a file is a pipe or device, which can be read only once.
        """
        pl, names = load_polars(), [str(path) for path in self.paths]
        # `find` has checked the files of folders and patterns.
        if not self.hive and any(path.exists() and not path.is_file() for path in self.paths):
            raise ValueError(
                f"{names[0]} is a pipe or a device, which can be read only once. Write it to a file"
            )
        if self.kind == "parquet":
            return pl.scan_parquet(names, glob=False, hive_partitioning=self.hive, **options)
        reading = {
            "separator": self.csv.sep or ",",
            "decimal_comma": self.csv.decimal == ",",
            "try_parse_dates": True,
            "infer_schema_length": ROWS_FOR_TYPES,
            "schema_overrides": dict.fromkeys(texts, pl.String),
        }
        if {compression_of(path) for path in self.paths} <= {None, "gzip"}:
            return pl.scan_csv(names, glob=False, **reading, **options)
        label = options.pop("include_file_paths", None)  # polars does not decompress bz2, xz, zip
        tables = []
        for path in self.paths:
            content = io.BytesIO(decompressed(path.read_bytes(), compression_of(path)))
            table = pl.scan_csv(content, **reading, **options)
            tables.append(table.with_columns(pl.lit(str(path)).alias(label)) if label else table)
        return pl.concat(tables)

    @contextmanager
    def errors(self, time: str | None = None) -> Iterator[None]:
        """Convert errors of polars to a ValueError that names files, or different zones."""
        pl = load_polars()
        try:
            yield
        except pl.exceptions.PolarsError as error:
            self.check_zones(time)
            raise ValueError(
                f"{self.name} cannot be read as {'CSV' if self.kind == 'csv' else 'parquet'}: "
                f"{error}. Files that are read together must be files of one kind with the same "
                "columns of the same types"
            ) from error

    def check_zones(self, time: str | None) -> None:
        """Refuse files whose timestamps in the column `time` have different zones.

        polars would concatenate times with and without a zone.

        Raises
        ------
        ValueError
            Naming the column, two files and their zones.
        """
        if time is None or len(self.paths) < 2:
            return
        pl = load_polars()

        def types() -> Iterator[tuple[Path, Any]]:
            for path in self.paths:
                try:
                    lazy = DataFiles([path], self.kind, csv=self.csv).scan()
                    yield path, lazy.collect_schema().get(time)
                except pl.exceptions.PolarsError:
                    continue  # reading refuses it with a better message

        check_zones(types(), time)

    @cached_property
    def _texts(self) -> list[CsvText]:
        if self.content is not None:
            return [CsvText(str(self.paths[0]), self.content, None, self.csv)]
        return [
            CsvText(str(path), path.read_bytes(), compression_of(path), self.csv)
            for path in self.paths
        ]


def _alike(frames: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Convert columns to text in all frames if they are text in one."""
    texts = [
        name for name in frames[0].columns if len({is_text(frame[name]) for frame in frames}) > 1
    ]
    return [
        frame.assign(**{name: frame[name].map(str, na_action="ignore") for name in texts})
        for frame in frames
    ]


def _kind_of(path: Path) -> Literal["parquet", "csv"] | None:
    """Return the kind of a file by its suffix, None if unknown."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    is_csv = name.endswith((".csv", *(f".csv{suffix}" for suffix in COMPRESSIONS)))
    return "csv" if is_csv else None


def _kind_of_content(path: Path) -> Literal["parquet", "csv"]:
    """Return the kind of a file by its first bytes; a pipe is CSV, since reading consumes it."""
    if not path.is_file():
        return "csv"
    with path.open("rb") as file:
        return "parquet" if file.read(len(MAGIC)) == MAGIC else "csv"


def _is_aside(parts: Iterable[str]) -> bool:
    """Return True if a part of a path marks it as hidden or temporary, by convention."""
    return any(part[0] in "._" for part in parts)


def check_zones(times: Iterable[tuple[Path, Any]], time_col: str) -> None:
    """Refuse files whose timestamps, given by their polars dtypes, have different zones."""
    zoned = [(path, dtype.time_zone) for path, dtype in times if hasattr(dtype, "time_zone")]
    for path, zone in zoned[1:]:
        first, first_zone = zoned[0]
        if zone != first_zone:
            raise ValueError(
                f"files must have timestamps of one time zone; the column {quote(time_col)} of "
                f"{str(first)!r} has {first_zone or 'none'}, that of {str(path)!r} "
                f"{zone or 'none'}. Convert all to one zone, such as UTC"
            )


def read_files(
    source: Any,
    id_col: str,
    time_col: str,
    part_columns: PartColumns,
    layout: Layout | None = None,
    strict: bool = False,
    targets: bool = False,
) -> Table:
    """Read the files of a path, a folder or a pattern as one table.

    CSV is read as a frame, parquet in blocks of rows in the order of the files. `part_columns`
    returns the columns of a block, as floats or labels; ids become categories. `targets` is True
    if the caller names the columns to forecast.
    """
    files = DataFiles.find(source, CsvFormat(strict=strict))
    if files.kind == "csv":
        time, ids = (name if name in files.columns else None for name in (time_col, id_col))
        text = files.recognised(time, ids, layout=layout)
        if ids is None and not strict and (layout is None or layout.kind != "long"):
            text = _with_index(text, time, targets, layout)
        table = read_table(text.frame, id_col, time_col, layout, strict=strict)
        return replace(table, notes=text.notes + table.notes, written=text.written)
    files.check_zones(time_col)
    pl = load_polars()
    with files.errors(time_col):
        lazy = files.scan()
        n_rows = int(lazy.select(pl.len()).collect().item())
    rows, written = None, UNKNOWN
    for start in range(0, max(n_rows, 1), ROWS_AT_ONCE):  # read_table refuses an empty block
        with files.errors(time_col):
            piece = lazy.slice(start, ROWS_AT_ONCE).collect()
        try:
            table = read_table(piece, id_col, time_col, strict=strict, written=written)
            columns = part_columns(table)
        except ValueError as error:
            if start == 0:
                raise
            raise ValueError(f"after the first {start} rows: {error}") from error
        written = table.written
        rows = rows or _LongRows(table, columns, n_rows)
        rows.put(table, columns, start)
    assert rows is not None
    return rows.table()


def dates_or_years(column: pd.Series) -> bool:
    """Return True if a column of integers holds dates in digits or consecutive years."""
    if column.dtype.kind != "i" or len(column) < 2:
        return False
    years = column.to_numpy()
    if (np.diff(years) == 1).all() and years[0] >= 1500 and years[-1] < 2200:
        return True
    return are_dates(column)


def _with_index(
    read: Recognised, time: str | None, targets: bool, layout: Layout | None
) -> Recognised:
    """Move the time of a wide table into the index: "ds" if "y" is missing, or years.

    `read_table` finds other dates.
    """
    frame = read.frame
    if frame.shape[1] < 2 or (layout is not None and layout.time_col is not None):
        return read
    if time is not None:
        if layout is None and (targets or "y" in frame.columns):
            return read
        note = f"The file is read as wide: time in {quote(time)}, a variable in each other column."
        return replace(read, frame=frame.set_index(time), notes=(*read.notes, note))
    first = frame.iloc[:, 0]
    if not dates_or_years(first):
        return read
    note = f"Time is in the first column, {quote(first.name)}."
    return replace(read, frame=frame.set_index(first.name), notes=(*read.notes, note))


class _Labels:
    """Integer codes of the labels of all rows, filled block by block."""

    def __init__(self, n_rows: int) -> None:
        self.codes = np.full(n_rows, -1, np.int32)  # -1 means missing
        self._numbers: dict[Any, int] = {}
        self._declared = False  # a categorical dtype declares levels and their order

    @property
    def names(self) -> list[Any]:
        """Distinct labels in order of appearance."""
        return [*self._numbers]

    def put(self, labels: Any, rows: slice) -> None:
        """Store the labels of a block."""
        if isinstance(labels.dtype, pd.CategoricalDtype):
            self._declared = True
            labels = pd.Categorical(labels)
            codes, names = labels.codes, labels.categories
        else:
            codes, names = pd.factorize(labels)
        known = [self._numbers.setdefault(name, len(self._numbers)) for name in names.tolist()]
        self.codes[rows] = np.array([*known, -1])[codes]

    def column(self) -> Any:
        """Return the labels of all rows, in the dtype of the blocks."""
        if self._declared:
            return pd.Categorical.from_codes(self.codes, pd.Index(self.names))
        return np.array([*self.names, None], object)[self.codes]


class _LongRows:
    """Arrays for all rows of a long table, filled block by block, in the dtypes of the first."""

    def __init__(self, first: Table, columns: pd.DataFrame, n_rows: int) -> None:
        self._first, self._names = first, columns.columns
        self._values = np.empty((n_rows, len(self._names)), order="F")
        self._times = np.empty(n_rows, first.stamps.values.dtype)
        self._ids = _Labels(n_rows)
        self._labels: dict[Any, _Labels] = {}  # by column of labels

    def put(self, table: Table, columns: pd.DataFrame, start: int) -> None:
        """Store a block that begins at row `start`."""
        rows, expected, came = slice(start, start + len(columns)), self._first.stamps, table.stamps
        if (came.kind, came.tz) != (expected.kind, expected.tz):
            raise ValueError(
                f"times must be of one kind and zone; after the first {start} rows they are "
                f"{came.dtype} ({came.tz or 'no zone'}), before {expected.dtype} "
                f"({expected.tz or 'no zone'}). Write them anew in one form"
            )
        for name in columns.columns[[dtype.kind != "f" for dtype in columns.dtypes]]:
            self._labels.setdefault(name, _Labels(len(self._times))).put(columns[name], rows)
            columns = columns.assign(**{name: np.nan})
        self._values[rows], self._times[rows] = columns, table.stamps.values
        if table.ids is not None:
            self._ids.put(table.ids, rows)

    def table(self) -> Table:
        """Return all rows as a table, with ids of the dtype that one frame would have."""
        first, ids = self._first, None
        if first.ids is not None:
            dtype = first.ids.dtype
            names = pd.Index(self._ids.names, dtype=dtype if dtype.kind in "iufb" else None)
            ids = pd.Index(pd.Categorical.from_codes(self._ids.codes, names))
        stamps = Stamps(self._times, first.stamps.kind, first.stamps.dtype, first.stamps.tz)
        columns = pd.DataFrame(self._values, columns=self._names, copy=False)
        for name, labels in self._labels.items():
            columns[name] = labels.column()
        return replace(first, columns=columns, stamps=stamps, ids=ids, backend="pandas")
