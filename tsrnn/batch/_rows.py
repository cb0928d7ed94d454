"""Rows of series of long data, in a frame in memory or in parquet and CSV files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tsrnn.data import DataFiles, load_polars, quote

__all__ = ["FileRows", "FrameRows", "Given"]

_FILE, _ROW = "__file", "__row"


class FrameRows:
    """Long frame of pandas or polars, with an index from series to rows; `columns` are kept."""

    def __init__(self, frame: Any, id_col: str, columns: list[Any] | None = None) -> None:
        if not nw.dependencies.is_into_dataframe(frame):
            raise TypeError(
                "series must come as a long pandas or polars DataFrame, a path, or an iterator of "
                f"frames; got {type(frame).__module__}.{type(frame).__qualname__}"
            )
        check_columns(list(frame.columns), [id_col] if columns is None else columns, id_col)
        self.frame = frame if columns is None else frame[columns]
        if len(frame) == 0:
            raise ValueError("the frame must have rows; it is empty")
        labels = nw.from_native(frame, eager_only=True)[id_col].to_list()
        codes, ids = pd.factorize(np.asarray(labels, dtype=object))
        check_ids(int((codes < 0).sum()), id_col)
        types = sorted({type(name).__name__ for name in ids.tolist()})
        if len(types) > 1:
            raise TypeError(
                f"the ids in {quote(id_col)} must be of one type; they are of {', '.join(types)}. "
                "Convert them, for example by astype(str)"
            )
        self.ids: list[Any] = ids.tolist()
        self.counts = np.bincount(codes, minlength=len(ids))
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])
        self._places = {name: place for place, name in enumerate(self.ids)}

    def __contains__(self, name: Any) -> bool:
        return name in self._places

    def part(self, ids: Sequence[Any]) -> Callable[[], Any]:
        """Return a function that gives the rows of some series, in their order."""
        if len(ids) == len(self.ids):
            return Given(self.frame)
        places = [self._places[name] for name in ids]
        spans = [self._order[self._starts[i] : self._starts[i + 1]] for i in places]
        rows = np.sort(np.concatenate(spans)) if spans else np.zeros(0, np.int64)
        pandas = isinstance(self.frame, pd.DataFrame)
        return Given(self.frame.iloc[rows] if pandas else self.frame[rows])


class Given:
    """Function that returns a frame, and can be pickled."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __call__(self) -> Any:
        return self._frame


class FileRows:
    """Long data in files, with an index from series to files.

    `ids` are grouped by shared files, so that neighbours read few files; `whole_ids` says that
    those of CSV files are whole numbers, and not text as written. All columns read are numeric but
    the ids and the time.
    """

    def __init__(
        self,
        files: DataFiles,
        id_col: str,
        columns: list[Any] | None,
        time_col: str,
        whole_ids: bool,
    ) -> None:
        self.files, self._id_col, self._columns, self._time_col = files, id_col, columns, time_col
        # The first rows of a CSV file do not determine the types of later ones: read text.
        self.texts: list[Any] = []
        if files.kind == "csv":
            self.texts = [id_col] if columns is None else [c for c in columns if c != time_col]
        else:
            files.check_zones(time_col)
        pl = load_polars()
        with files.errors(time_col):
            names = files.scan(self.texts).collect_schema().names()
            check_columns(names, [id_col] if columns is None else columns, id_col)
            # rows of each series in each file, in the order of their first rows
            table = files.scan(self.texts, include_file_paths=_FILE).select(_FILE, id_col)
            counted = table.with_row_index(_ROW).group_by(_FILE, id_col)
            counted = counted.agg(pl.len(), pl.col(_ROW).min())
            table = counted.collect(engine="streaming").sort(_ROW)
        if table.height == 0:
            raise ValueError(f"{str(files.paths[0])!r} must have rows; it is empty")
        ids = pl.col(id_col)
        missing = ids.is_null()
        if table[id_col].dtype.is_float():
            missing |= ids.is_nan()
        check_ids(int(table.filter(missing)["len"].sum()), id_col)
        self._index(_with_whole_ids(table, id_col) if whole_ids and self.texts else table)

    def _index(self, table: Any) -> None:
        """Keep the series, those of connected files together, in the order of their first row."""
        places = {str(path): place for place, path in enumerate(self.files.paths)}
        file = np.array([places[name] for name in table[_FILE].to_list()])
        labels = table[self._id_col]
        self.ids = labels.unique(maintain_order=True).to_list()
        numbers = {name: number for number, name in enumerate(self.ids)}
        series = np.array([numbers[name] for name in labels.to_list()])
        counts = np.bincount(series, table["len"].to_numpy()).astype(np.int64)
        n, k = len(self.ids), len(places)
        edges = coo_array((np.ones(len(file)), (series, n + file)), shape=(n + k, n + k))
        group = connected_components(edges, directed=False)[1]
        order = np.argsort(group[:n], kind="stable")
        self._group, self._file_group = dict(zip(self.ids, group[:n], strict=True)), group[n:]
        self.ids = [self.ids[i] for i in order]
        self.counts = counts[order]
        self._dtype = labels.dtype

    def __contains__(self, name: Any) -> bool:
        return name in self._group

    def part(self, ids: Sequence[Any]) -> FilePart:
        """Return a function that reads the rows of some series, in the order of the files."""
        wanted = {self._group[name] for name in ids}
        pairs = zip(self.files.paths, self._file_group, strict=True)
        files = replace(self.files, paths=[path for path, group in pairs if group in wanted])
        labels = load_polars().Series(list(ids), dtype=self._dtype)
        return FilePart(files, self._columns, self.texts, self._id_col, self._time_col, labels)


@dataclass(frozen=True)
class FilePart:
    """Rows of some series of some files, read when called."""

    files: DataFiles
    columns: list[Any] | None
    texts: list[Any]
    id_col: str
    time_col: str
    ids: Any

    def __call__(self) -> Any:
        """Return the rows as a polars frame, in the order of the files."""
        pl = load_polars()
        table = self.files.scan(self.texts)
        if self.columns is not None:
            table = table.select(self.columns)
        with self.files.errors(self.time_col):
            names = self.ids.cast(table.collect_schema()[self.id_col])
            rows = table.filter(pl.col(self.id_col).is_in(names.implode())).collect()
        return rows.with_columns(pl.col(self.id_col).cast(self.ids.dtype))


def _with_whole_ids(table: Any, id_col: str) -> Any:
    """Parse ids from text to whole numbers; refuse others."""
    pl = load_polars()
    written = table[id_col]
    whole = written.cast(pl.Int64, strict=False)
    wrong = written.filter((whole.cast(pl.String) != written).fill_null(True))
    if len(wrong):
        raise ValueError(
            "ids must be whole numbers, as those that the model was fitted to; got "
            f"{quote(wrong[0])}. Take such series out"
        )
    return table.with_columns(whole)


def check_columns(columns: list[Any], needed: list[Any], id_col: str) -> None:
    """Refuse data with a needed column missing or duplicated."""
    missing = [name for name in needed if name not in columns]
    if missing:
        advice = "Name the columns by the model's id_col, time_col and target"
        if id_col in missing:
            advice += "; or melt a wide frame into a long one"
        raise ValueError(
            f"the data need the columns {quote(missing)}; theirs are {quote(columns)}. {advice}"
        )
    twice = [name for name in needed if columns.count(name) > 1]
    if twice:
        raise ValueError(f"column names must be unique; twice there are {quote(twice)}. Rename one")


def check_ids(n_missing: int, id_col: str) -> None:
    """Refuse rows without an id."""
    if n_missing:
        raise ValueError(
            f"the column {quote(id_col)} must name a series in each row; {n_missing} ids are "
            "missing. Fill them in or drop these rows"
        )
