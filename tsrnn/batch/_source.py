"""What is to be forecast, as partitions of whole series."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.batch._files import FileRows, files_of
from tsrnn.batch._frequency import SERIES
from tsrnn.batch._request import Request
from tsrnn.batch._rows import FrameRows, Given

__all__ = ["Partition", "Source", "open_future", "open_source"]


class Partition(NamedTuple):
    """Some series, or a frame of an iterator.

    Parameters
    ----------
    number : int
    read : callable
        Gives the rows.
    ids : list or None
        None of a frame without ids.
    digest : str
        Of the rows of an iterator's frame; otherwise empty.
    """

    number: int
    read: Callable[[], Any]
    ids: list[Any] | None
    digest: str


class Source(NamedTuple):
    """Partitions and what they are of.

    Parameters
    ----------
    told : dict
        JSON values by which a later run knows whether it has the same source.
    ids : list or None
    n_partitions : int or None
        None if they are not known before the end.
    first : callable
        Gives some rows, of which the frequency is told.
    partitions : iterable of Partition
    texts, future_texts : tuple of str
        Columns whose numbers are read as text.
    """

    told: dict[str, Any]
    ids: list[Any] | None
    n_partitions: int | None
    first: Callable[[], Any]
    partitions: Iterable[Partition]
    texts: tuple[str, ...] = ()
    future_texts: tuple[str, ...] = ()


def open_source(source: Any, request: Request, rows_per_batch: int) -> Source:
    """Divide a source into partitions.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        If it is no frame, path or iterator of frames, or a column is missing.
    """
    if isinstance(source, str | os.PathLike):
        files = files_of(source)
        rows: Any = file_rows(files, request, request.columns)
        return _divided(rows, _told_of(files), rows_per_batch, numbers_of(rows, request))
    if nw.dependencies.is_into_dataframe(source):
        rows = FrameRows(source, request.id_col, request.columns)
        return _divided(rows, {"frame": frame_digest(rows.frame)}, rows_per_batch)
    if isinstance(source, Iterator) or (isinstance(source, Iterable) and not _is_wrong(source)):
        return _of_frames(iter(source), request)
    raise TypeError(
        "source must be a long frame, an iterator of long frames, or the path of parquet or CSV "
        f"files; got {type(source).__module__}.{type(source).__qualname__}"
    )


def open_future(X_future: Any, opened: Source, request: Request) -> tuple[Any, Source]:
    """Rows of the steps ahead, None if there are none, and the source that says so.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        If they cannot be read, or are of none of the series of the source.
    """
    if X_future is None:
        return None, opened
    if isinstance(X_future, str | os.PathLike):
        files = files_of(X_future)
        rows: Any = file_rows(files, request, request.future_columns)
        told, texts = _told_of(files), numbers_of(rows, request)
    else:
        rows = FrameRows(X_future, request.id_col, request.future_columns)
        told, texts = {"frame": frame_digest(rows.frame)}, ()
    if opened.ids and not any(name in rows for name in opened.ids):
        raise ValueError(
            f"X_future must hold the series of the source; its ids are such as {rows.ids[0]!r}, "
            f"those of the source such as {opened.ids[0]!r}. Make them the same, types included"
        )
    return rows, opened._replace(told=opened.told | {"X_future": told}, future_texts=texts)


def file_rows(files: list[Path], request: Request, columns: list[Any] | None) -> FileRows:
    """Index files, of the data or of the steps ahead."""
    csv = request.sep, request.decimal
    return FileRows(files, request.id_col, columns, request.time_col, request.whole_ids, csv)


def numbers_of(rows: FileRows, request: Request) -> tuple[str, ...]:
    """Columns that are read as text and are numbers."""
    return tuple(name for name in rows.texts if name != request.id_col)


def frame_digest(frame: Any) -> str:
    """Checksum of the values of a frame, the order of its rows included."""
    made = hashlib.sha256(repr(list(frame.columns)).encode())
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
    made.update(np.ascontiguousarray(hashes).tobytes())
    return made.hexdigest()


def _divided(
    rows: Any, told: dict[str, Any], rows_per_batch: int, texts: tuple[str, ...] = ()
) -> Source:
    batches = list(_batches(rows.ids, rows.counts, rows_per_batch))
    partitions = (Partition(i, rows.part(ids), ids, "") for i, ids in enumerate(batches))
    first = rows.part(rows.ids[:SERIES])
    return Source(told, rows.ids, len(batches), first, partitions, texts)


def _batches(ids: list[Any], counts: np.ndarray, rows_per_batch: int) -> Iterator[list[Any]]:
    """Neighbouring series with at most so many rows together, one series at least."""
    start, rows = 0, 0
    for place, count in enumerate(counts.tolist()):
        if rows and rows + count > rows_per_batch:
            yield ids[start:place]
            start, rows = place, 0
        rows += count
    yield ids[start:]


def _of_frames(frames: Iterator[Any], request: Request) -> Source:
    first = next(frames, None)
    if first is None:
        raise ValueError("the iterator must give at least one frame; it gave none")
    FrameRows(first, request.id_col, request.columns)  # refused now, if no frame will do

    def partitions() -> Iterator[Partition]:
        seen: dict[Any, int] = {}
        for number, frame in enumerate(_chained(first, frames)):
            ids = _ids_of(frame, number, request.id_col)
            for name in ids or []:
                if seen.setdefault(name, number) != number:
                    raise ValueError(
                        f"the iterator must give each series whole; {name!r} is in frame "
                        f"{seen[name]} and in frame {number}. Join its rows"
                    )
            yield Partition(number, Given(frame), ids, frame_digest(frame))

    return Source({"iterator": True}, None, None, Given(first), partitions())


def _ids_of(frame: Any, number: int, id_col: str) -> list[Any] | None:
    """Ids of the series of a frame; None if it has none, which is said when it is its turn."""
    if not nw.dependencies.is_into_dataframe(frame):
        raise TypeError(
            f"the iterator must give long frames; number {number} is of type "
            f"{type(frame).__qualname__}"
        )
    if id_col not in frame.columns:
        return None
    return nw.from_native(frame, eager_only=True)[id_col].unique(maintain_order=True).to_list()


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _told_of(files: list[Path]) -> dict[str, Any]:
    """Names, sizes and times of change, as a checksum."""
    stats = [(path, path.stat()) for path in files]
    lines = [f"{path.resolve()} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats]
    return {"files": len(files), "digest": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def _is_wrong(source: Any) -> bool:
    """Whether something that can be iterated over is no collection of frames."""
    return isinstance(source, bytes | dict | pd.Series | np.ndarray) or hasattr(source, "collect")
