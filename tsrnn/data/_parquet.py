"""Parquet files as a long table, read some rows at a time: never held as a frame."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.data._frames import Table, read_table
from tsrnn.data._stamps import Stamps

__all__ = ["check_zones", "is_path", "read_parquet"]

ROWS_AT_ONCE = 2**19

Numbers = Callable[[Table], pd.DataFrame]


def is_path(df: object) -> bool:
    """Whether the data are given as the name of a file or folder."""
    return isinstance(df, str | os.PathLike)


def read_parquet(path: Any, id_col: str, time_col: str, numbers: Numbers) -> Table:
    """Read a parquet file, or all of a folder in the order of their names, as one long table.

    Folders named ``column=value`` are a column.

    Parameters
    ----------
    path : str or os.PathLike
    id_col, time_col : str
    numbers : callable
        The columns that are needed, in float64, of the table of some rows.

    Returns
    -------
    Table
        With these columns, and ids as categories.

    Raises
    ------
    ImportError
        If polars, which reads the files, is not installed.
    FileNotFoundError
        If there is no such file, or no parquet file in the folder.
    ValueError, TypeError
        If the files cannot be read or differ in their columns; see also `read_table`.
    """
    place = Path(path).expanduser()
    n_rows, pieces = _pieces(place)
    if place.is_dir():  # polars puts times with and without a zone together
        check_zones(_times_of(place, time_col), time_col)
    whole = None
    for done, piece in pieces:
        table, columns = _taken_apart(piece, id_col, time_col, numbers, done)
        if whole is None:
            whole = _Whole(table, columns, n_rows)
        whole.put(table, columns, done)
    assert whole is not None  # an empty file has one piece, which is refused
    return whole.table()


class _Whole:
    """Arrays for all rows, like those of the first."""

    def __init__(self, first: Table, columns: pd.DataFrame, n_rows: int) -> None:
        self._first, self._names = first, columns.columns
        self._values = np.empty((n_rows, len(self._names)), order="F")
        self._times = np.empty(n_rows, first.stamps.values.dtype)
        self._codes = np.empty(n_rows, np.int32)
        self._numbers: dict[Any, int] = {}  # of the series, by id

    def put(self, table: Table, columns: pd.DataFrame, start: int) -> None:
        """Store rows from number `start` on."""
        rows = slice(start, start + len(columns))
        self._values[rows], self._times[rows] = columns, table.stamps.values
        if table.ids is None:
            return
        codes, found = pd.factorize(table.ids)
        known = [self._numbers.setdefault(name, len(self._numbers)) for name in found.tolist()]
        self._codes[rows] = np.array([*known, -1])[codes]  # missing ids are -1 before and after

    def table(self) -> Table:
        first = self._first
        stamps = Stamps(self._times, first.stamps.kind, first.stamps.dtype, first.stamps.tz)
        columns = pd.DataFrame(self._values, columns=self._names, copy=False)
        return Table("long", "pandas", columns, stamps, self._ids(), first.id_col, first.time_col)

    def _ids(self) -> pd.Index | None:
        """Ids of the rows, of the type that a frame of them would have."""
        if self._first.ids is None:
            return None
        dtype = self._first.ids.dtype
        names = pd.Index(list(self._numbers), dtype=dtype if dtype.kind in "iufb" else None)
        return pd.Index(pd.Categorical.from_codes(self._codes, names))


def _pieces(place: Path) -> tuple[int, Iterator[tuple[int, Any]]]:
    """Number of rows, and the rows as polars frames with the number of the first."""
    try:
        lazy = nw.scan_parquet(_source(place), backend="polars", **_options(place))
    except ModuleNotFoundError as error:
        raise ImportError(
            "parquet files are read by polars, which is not installed. Run pip install "
            "'tsrnn[polars]', or give a frame"
        ) from error
    try:
        n_rows = int(lazy.select(nw.len()).collect().item())
    except nw.exceptions.NarwhalsError as error:
        raise _unreadable(place, error) from error
    return n_rows, _slices(place, lazy, n_rows)


def check_zones(times: Iterable[tuple[Path, Any]], time_col: str) -> None:
    """Refuse files whose timestamps are of different time zones.

    Parameters
    ----------
    times : iterable of (Path, dtype)
        Files, and what polars says their timestamps are; those that are none are passed over.
    time_col : str

    Raises
    ------
    ValueError
        Naming the column, two files and their zones.

    Examples
    --------
    >>> from pathlib import Path
    >>> import narwhals as nw
    >>> from tsrnn.data import check_zones
    >>> check_zones([(Path(name), nw.Datetime("us", "UTC")) for name in "ab"], "ds")
    """
    first = None
    for path, dtype in times:
        if not hasattr(dtype, "time_zone"):
            continue
        if first is None:
            first = path, dtype.time_zone
        elif dtype.time_zone != first[1]:
            raise ValueError(
                f"files must have timestamps of one time zone; the column {time_col!r} of "
                f"{str(first[0])!r} has {first[1] or 'none'}, that of {str(path)!r} "
                f"{dtype.time_zone or 'none'}. Convert all to one zone, such as UTC"
            )


def _times_of(folder: Path, time_col: str) -> Iterator[tuple[Path, Any]]:
    for path in sorted(folder.rglob("*.parquet")):
        lazy = nw.scan_parquet(str(path), backend="polars", glob=False)
        yield path, lazy.collect_schema().get(time_col)


def _slices(place: Path, lazy: Any, n_rows: int) -> Iterator[tuple[int, Any]]:
    for start in range(0, max(n_rows, 1), ROWS_AT_ONCE):
        rows = nw.from_native(lazy.to_native().slice(start, ROWS_AT_ONCE))
        try:
            yield start, rows.collect().to_native()
        except nw.exceptions.NarwhalsError as error:
            raise _unreadable(place, error) from error


def _source(place: Path) -> str:
    if os.path.isfile(place):  # of a name that no file can have: not, where `Path` raises
        return str(place)
    if not os.path.isdir(place):
        raise FileNotFoundError(
            f"there is no parquet file or folder {str(place)!r}. Give the path of one, or a frame"
        )
    if not any(place.rglob("*.parquet")):
        raise FileNotFoundError(
            f"the folder {str(place)!r} must hold files ending in .parquet; it has none. Give "
            "another folder, or the path of a file"
        )
    return f"{glob.escape(str(place))}/**/*.parquet"


def _options(place: Path) -> dict[str, bool]:
    return {"glob": False} if place.is_file() else {"hive_partitioning": True}


def _unreadable(place: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{str(place)!r} must be a parquet file, or a folder of parquet files with the same "
        f"columns of the same types; polars says: {error}. Write the files anew with one schema"
    )


def _taken_apart(
    piece: Any, id_col: str, time_col: str, numbers: Numbers, done: int
) -> tuple[Table, pd.DataFrame]:
    try:
        table = read_table(piece, id_col, time_col)
        return table, numbers(table)
    except ValueError as error:
        if done == 0:
            raise
        raise ValueError(f"after the first {done} rows: {error}") from error
