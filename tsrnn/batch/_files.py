"""Rows of series in parquet or CSV files, read a few series at a time."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tsrnn.batch._rows import check_columns, check_ids
from tsrnn.data import check_zones

__all__ = ["FileRows", "files_of", "polars"]

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv"}
ROWS_FOR_TYPES = 10_000  # of a CSV file, from which the types of its columns are told
_FILE, _ROW = "__file", "__row"


def polars() -> Any:
    """The library that reads and writes files.

    Raises
    ------
    ImportError
        If it is not installed.
    """
    try:
        import polars
    except ImportError as error:
        raise ImportError(
            "files are read and written by polars, which is not installed. Run pip install "
            "'tsrnn[polars]'"
        ) from error
    return polars


def files_of(source: Any) -> list[Path]:
    """Files that a path, a folder or a pattern names, sorted.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If they are neither parquet nor CSV, or some of both.
    """
    place = Path(source).expanduser().absolute()  # workers may be in another folder
    if place.is_file():
        return _of_one_kind([place])
    if place.is_dir():
        found = [path for path in place.rglob("*") if kind_of(path) and not _is_aside(path, place)]
    else:
        found = [Path(name) for name in glob.glob(str(place), recursive=True)]
        found = [path for path in found if path.name[0] not in "._"]
    found = [path for path in found if path.is_file()]
    if not found:
        raise FileNotFoundError(
            f"no parquet or CSV file is at {str(source)!r}. Give the path of one, of a folder of "
            "them, or a pattern such as 'sales/*.parquet'"
        )
    return _of_one_kind(sorted(found))


def kind_of(path: Path) -> str | None:
    """What a file is by its name: "parquet", "csv" or None."""
    name = path.name.lower()
    return next((kind for suffix, kind in SUFFIXES.items() if name.endswith(suffix)), None)


def _is_aside(path: Path, folder: Path) -> bool:
    """Whether a file, or a folder that it is in, is one that other tools pass over."""
    return any(part[0] in "._" for part in path.relative_to(folder).parts)


def _of_one_kind(files: list[Path]) -> list[Path]:
    kinds = sorted({kind_of(path) or path.suffix for path in files})
    if kinds not in (["parquet"], ["csv"]):
        raise ValueError(
            f"files must all be parquet, or all be CSV (.csv, .csv.gz); got {kinds}. Name them by "
            "a pattern such as 'sales/*.parquet'"
        )
    return files


@dataclass(frozen=True)
class FilePart:
    """Rows of some series of some files, read when called."""

    files: list[Path]
    columns: list[Any] | None
    texts: list[Any]
    id_col: str
    time_col: str
    ids: Any
    hive: bool
    csv: tuple[str, str] = (",", ".")

    def __call__(self) -> Any:
        """The rows as a polars frame, in the order of the files."""
        pl = polars()
        table = _scan(self.files, self.texts, self.hive, self.csv)
        if self.columns is not None:
            table = table.select(self.columns)
        try:
            names = self.ids.cast(table.collect_schema()[self.id_col])
            rows = table.filter(pl.col(self.id_col).is_in(names.implode())).collect()
        except pl.exceptions.PolarsError as error:
            raise _unreadable(self.files, error, self.time_col) from error
        return rows.with_columns(pl.col(self.id_col).cast(self.ids.dtype))


class FileRows:
    """Files of long data, and which series are where.

    Series that share files come together: `ids` are grouped so that few files are read for
    neighbours.

    Parameters
    ----------
    files : list of Path
    id_col : str
    columns : list or None
        Columns to read; None for all.
    time_col : str
        The other columns, but it and the ids, are numbers.
    whole_ids : bool
        Whether ids in CSV files are whole numbers; otherwise they are text as it stands.
    csv : tuple of str
        Separator of fields and decimal mark of CSV files.

    Raises
    ------
    ValueError
        If the files cannot be read, differ in their columns, miss one, or miss ids.
    """

    def __init__(
        self,
        files: list[Path],
        id_col: str,
        columns: list[Any] | None,
        time_col: str,
        whole_ids: bool,
        csv: tuple[str, str] = (",", "."),
    ) -> None:
        self.files, self._time_col, self._csv = files, time_col, csv
        if kind_of(files[0]) == "parquet":  # polars puts times with and without a zone together
            check_zones(_times_of(files, time_col), time_col)
        self._hive = len(files) > 1
        self.texts = _texts(files, id_col, columns, time_col)
        self._id_col, self._columns = id_col, columns
        pl = polars()
        try:
            own = _scan(files, self.texts, self._hive, csv).collect_schema().names()
            check_columns(own, [id_col] if columns is None else columns, id_col)
            table = _series_of(files, id_col, self.texts, self._hive, csv)
        except pl.exceptions.PolarsError as error:
            raise _unreadable(files, error, time_col) from error
        if table.height == 0:
            raise ValueError(f"{str(files[0])!r} must have rows; it is empty")
        check_ids(int(table.filter(_is_missing(table, id_col))["len"].sum()), id_col)
        whole = whole_ids and id_col in self.texts
        self._index(_with_whole_ids(table, id_col) if whole else table)

    def _index(self, table: Any) -> None:
        """Keep the series, those of connected files together, in the order of their first row."""
        places = {str(path): place for place, path in enumerate(self.files)}
        file = np.array([places[name] for name in table[_FILE].to_list()])
        listed = table[self._id_col]
        self.ids = listed.unique(maintain_order=True).to_list()
        numbers = {name: number for number, name in enumerate(self.ids)}
        series = np.array([numbers[name] for name in listed.to_list()])
        counts = np.bincount(series, table["len"].to_numpy()).astype(np.int64)
        n, k = len(self.ids), len(self.files)
        edges = coo_array((np.ones(len(file)), (series, n + file)), shape=(n + k, n + k))
        group = connected_components(edges, directed=False)[1]
        order = np.argsort(group[:n], kind="stable")
        self._group, self._file_group = dict(zip(self.ids, group[:n], strict=True)), group[n:]
        self.ids = [self.ids[i] for i in order]
        self.counts = counts[order]
        self._dtype = listed.dtype

    def __contains__(self, name: Any) -> bool:
        return name in self._group

    def part(self, ids: Sequence[Any]) -> FilePart:
        """A function that reads the rows of some series, in the order of the files."""
        wanted = {self._group[name] for name in ids}
        files = [
            path
            for path, group in zip(self.files, self._file_group, strict=True)
            if group in wanted
        ]
        listed = polars().Series(list(ids), dtype=self._dtype)
        names = self._id_col, self._time_col
        return FilePart(files, self._columns, self.texts, *names, listed, self._hive, self._csv)


def _is_missing(table: Any, id_col: str) -> Any:
    """Which rows have no id."""
    column = polars().col(id_col)
    return (
        column.is_null() | column.is_nan() if table[id_col].dtype.is_float() else column.is_null()
    )


def _series_of(
    files: list[Path], id_col: str, texts: list[Any], hive: bool, csv: tuple[str, str]
) -> Any:
    """Rows of each series in each file, in the order of their first rows."""
    pl = polars()
    table = _scan(files, texts, hive, csv, include_file_paths=_FILE).select(_FILE, id_col)
    counted = table.with_row_index(_ROW).group_by(_FILE, id_col).agg(pl.len(), pl.col(_ROW).min())
    return counted.collect(engine="streaming").sort(_ROW)


def _texts(files: list[Path], id_col: str, columns: list[Any] | None, time_col: str) -> list[Any]:
    """Columns of CSV files that are read as they are written: ids and numbers.

    The first rows of a file do not tell what is in the others.
    """
    if kind_of(files[0]) != "csv":
        return []
    return [id_col] if columns is None else [name for name in columns if name != time_col]


def _with_whole_ids(table: Any, id_col: str) -> Any:
    """Ids read as text as the whole numbers that they are.

    Raises
    ------
    ValueError
        If one is none.
    """
    pl = polars()
    written = table[id_col]
    whole = written.cast(pl.Int64, strict=False)
    wrong = written.filter((whole.cast(pl.String) != written).fill_null(True))
    if len(wrong):
        raise ValueError(
            f"ids must be whole numbers, as those that the model was fitted to; got {wrong[0]!r}. "
            "Take such series out"
        )
    return table.with_columns(whole)


def _scan(
    files: list[Path], texts: list[Any], hive: bool, csv: tuple[str, str], **options: Any
) -> Any:
    """The files as one lazy table."""
    pl = polars()
    names = [str(path) for path in files]
    if kind_of(files[0]) == "parquet":
        return pl.scan_parquet(names, glob=False, hive_partitioning=hive, **options)
    return pl.scan_csv(
        names,
        glob=False,
        separator=csv[0],
        decimal_comma=csv[1] == ",",
        try_parse_dates=True,
        infer_schema_length=ROWS_FOR_TYPES,
        schema_overrides=dict.fromkeys(texts, pl.String),
        **options,
    )


def _times_of(files: list[Path], time_col: str) -> Iterator[tuple[Path, Any]]:
    """Files, and what their timestamps are; those that cannot be read are left out."""
    for path in files:
        try:
            yield path, _scan([path], [], False, (",", ".")).collect_schema().get(time_col)
        except polars().exceptions.PolarsError:
            continue  # said where it is read


def _unreadable(files: list[Path], error: Exception, time_col: str) -> ValueError:
    check_zones(_times_of(files, time_col), time_col)
    whose = repr(str(files[0]))
    if len(files) > 1:
        whose += f" and {len(files) - 1} files more"
    return ValueError(
        f"{whose} must be files of one kind with the same columns of the same types; polars says: "
        f"{error}. Write them anew with one schema"
    )
