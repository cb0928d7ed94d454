"""The series to forecast, as partitions of whole series, and their common frequency."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.batch._request import Request, with_numbers
from tsrnn.batch._rows import FileRows, FrameRows, Given
from tsrnn.data import CsvFormat, DataFiles, array_advice, quote, read_panel

__all__ = [
    "Partition",
    "Source",
    "common_freq",
    "csv_marks",
    "find_files",
    "open_future",
    "open_source",
]

SERIES = 50  # that determine the frequency; each is read once, in the calling process


class Partition(NamedTuple):
    """Partition: the series of some `ids`, or a frame of an iterator, whose checksum is `digest`.

    The ids are None for a frame without ids; `read` returns the rows.
    """

    number: int
    read: Callable[[], Any]
    ids: list[Any] | None
    digest: str


class Source(NamedTuple):
    """Partitions and the series that they hold.

    The fingerprint, JSON values, identifies the source for a later run. An iterator has no number
    of partitions. `first` returns the rows that determine the frequency; `texts` and `future_texts`
    are columns whose numbers are read as text.
    """

    fingerprint: dict[str, Any]
    ids: list[Any] | None
    n_partitions: int | None
    first: Callable[[], Any]
    partitions: Iterable[Partition]
    texts: tuple[str, ...] = ()
    future_texts: tuple[str, ...] = ()


def open_source(source: Any, request: Request, rows_per_batch: int) -> Source:
    """Divide a source into partitions."""
    if isinstance(source, str | os.PathLike):
        rows, fingerprint, texts = _file_rows(source, request, request.columns)
        return _divided(rows, fingerprint, rows_per_batch, texts)
    if nw.dependencies.is_into_dataframe(source):
        frame = FrameRows(source, request.id_col, request.columns)
        return _divided(frame, {"frame": _frame_digest(frame.frame)}, rows_per_batch)
    # iterables that are no collections of frames
    wrong = isinstance(source, bytes | dict | pd.Series | np.ndarray) or hasattr(source, "collect")
    wrong |= isinstance(source, list | tuple) and any(isinstance(x, Real) for x in source[:1])
    if isinstance(source, Iterator) or (isinstance(source, Iterable) and not wrong):
        return _of_frames(iter(source), request)
    raise TypeError(
        "source must be a long frame, an iterator of long frames, or the path of parquet or CSV "
        f"files; got {type(source).__module__}.{type(source).__qualname__}."
        f"{array_advice(source, request.columns or (request.id_col, request.time_col, 'y'))}"
    )


def open_future(X_future: Any, opened: Source, request: Request) -> tuple[Any, Source]:
    """Rows of the steps ahead or None, and the source with its fingerprint extended."""
    if X_future is None:
        return None, opened
    if isinstance(X_future, str | os.PathLike):
        rows, fingerprint, texts = _file_rows(X_future, request, request.future_columns)
    else:
        rows = FrameRows(X_future, request.id_col, request.future_columns)
        fingerprint, texts = {"frame": _frame_digest(rows.frame)}, ()
    if opened.ids and not any(name in rows for name in opened.ids):
        raise ValueError(
            f"X_future must hold the series of the source; its ids are such as "
            f"{quote(rows.ids[0])}, those of the source such as {quote(opened.ids[0])}. Make them "
            f"the same, types included"
        )
    fingerprint = opened.fingerprint | {"X_future": fingerprint}
    return rows, opened._replace(fingerprint=fingerprint, future_texts=texts)


def find_files(source: Any, request: Request) -> DataFiles:
    """Return the files of a path, with absolute paths: workers may be in another folder."""
    files = DataFiles.find(source, CsvFormat(request.sep, request.decimal))
    return replace(files, paths=[path.absolute() for path in files.paths])


def csv_marks(sources: Iterable[Any], sep: str | None, decimal: str | None) -> tuple[str, str]:
    """Separator and decimal mark of CSV files: given, or detected in the first file."""
    for source in sources:
        if isinstance(source, str | os.PathLike):
            seen = DataFiles.find(source, CsvFormat(sep, decimal)).plain_format()
            return str(seen.sep), str(seen.decimal)
    return "," if sep is None else sep, "." if decimal is None else decimal


def _file_rows(
    source: Any, request: Request, columns: list[Any] | None
) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
    """Return the rows of files, their fingerprint, and the columns whose numbers are text."""
    files = find_files(source, request)
    rows = FileRows(files, request.id_col, columns, request.time_col, request.whole_ids)
    stats = [(path, path.stat()) for path in files.paths]
    lines = [f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    texts = tuple(name for name in rows.texts if name != request.id_col)
    return rows, {"files": len(lines), "digest": digest}, texts


def _frame_digest(frame: Any) -> str:
    """Checksum of the values of a frame, including the order of rows."""
    digest = hashlib.sha256(repr(list(frame.columns)).encode())
    if isinstance(frame, pd.DataFrame):
        try:
            hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy()
        except TypeError as error:
            raise TypeError(
                f"columns of the source must hold numbers, text or times; {error}. Convert or drop "
                "the column"
            ) from error
    else:
        hashes = frame.hash_rows().to_numpy()
    digest.update(np.ascontiguousarray(hashes).tobytes())
    return digest.hexdigest()


def _divided(
    rows: Any, fingerprint: dict[str, Any], rows_per_batch: int, texts: tuple[str, ...] = ()
) -> Source:
    """Group neighbouring series into partitions of at most `rows_per_batch` rows or one series."""
    batches: list[list[Any]] = [[]]
    n_rows = 0
    for name, count in zip(rows.ids, rows.counts.tolist(), strict=True):
        if n_rows and n_rows + count > rows_per_batch:
            batches.append([])
            n_rows = 0
        batches[-1].append(name)
        n_rows += count
    partitions = (Partition(i, rows.part(ids), ids, "") for i, ids in enumerate(batches))
    first = rows.part(rows.ids[:SERIES])
    return Source(fingerprint, rows.ids, len(batches), first, partitions, texts)


def _of_frames(frames: Iterator[Any], request: Request) -> Source:
    first = next(frames, None)
    if first is None:
        raise ValueError("the iterator must give at least one frame; it gave none")
    FrameRows(first, request.id_col, request.columns)  # raises before any work

    def partitions() -> Iterator[Partition]:
        seen: dict[Any, int] = {}
        for number, frame in enumerate(itertools.chain([first], frames)):
            ids = _ids_of(frame, number, request.id_col)
            for name in ids or []:
                if seen.setdefault(name, number) != number:
                    raise ValueError(
                        f"the iterator must give each series whole; {quote(name)} is in frame "
                        f"{seen[name]} and in frame {number}. Join its rows"
                    )
            yield Partition(number, Given(frame), ids, _frame_digest(frame))

    return Source({"iterator": True}, None, None, Given(first), partitions())


def _ids_of(frame: Any, number: int, id_col: str) -> list[Any] | None:
    """Ids of a frame; None without an id column, which is an error of its partition."""
    if not nw.dependencies.is_into_dataframe(frame):
        raise TypeError(
            f"the iterator must give long frames; number {number} is of type "
            f"{type(frame).__qualname__}"
        )
    if id_col not in frame.columns:
        return None
    return nw.from_native(frame, eager_only=True)[id_col].unique(maintain_order=True).to_list()


def common_freq(frame: Any, request: Request) -> Any:
    """Most frequent frequency of the first series of a frame; None without any.

    Without it, a partition would take the frequency of its own series, whatever the others have.
    """
    rows = FrameRows(frame, request.id_col, request.columns)
    counts: Counter[Any] = Counter()
    for name in rows.ids[:SERIES]:
        try:
            panel = read_panel(
                with_numbers(rows.part([name])(), request.texts, request.decimal),
                target=request.targets,
                id_col=request.id_col,
                time_col=request.time_col,
                missing="keep",
            )
        except (TypeError, ValueError):
            continue
        counts[panel.freq] += 1
    return counts.most_common(1)[0][0] if counts else None
