"""What is to be forecast, as partitions of whole series."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.batch._files import FileRows, files_of
from tsrnn.batch._request import Request
from tsrnn.batch._rows import FrameRows, Given

__all__ = ["Partition", "Source", "frame_digest", "future_rows", "open_source"]


class Partition(NamedTuple):
    """Some series, or a frame of an iterator.

    Parameters
    ----------
    number : int
    read : callable
        Gives the rows.
    ids : list or None
        None where they are not known before the frame is read.
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
    n_series, n_partitions : int or None
        None if they are not known before the end.
    first : callable
        Gives some rows, of which the frequency is told.
    partitions : iterable of Partition
    texts : tuple of str
        Columns whose numbers are read as text.
    """

    told: dict[str, Any]
    n_series: int | None
    n_partitions: int | None
    first: Callable[[], Any]
    partitions: Iterable[Partition]
    texts: tuple[str, ...] = ()


SERIES_FOR_FREQUENCY = 50


def open_source(source: Any, request: Request, rows_per_batch: int) -> Source:
    """Divide a source into partitions.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        If it is no frame, path or iterator of frames, or a column is missing.
    """
    if isinstance(source, str | os.PathLike):
        files = files_of(source)
        rows: Any = FileRows(files, request.id_col, request.columns, request.time_col)
        numbers = [name for name in rows.texts if name != request.id_col]
        return _divided(rows, _told_of(files), rows_per_batch, numbers)
    if nw.dependencies.is_into_dataframe(source):
        rows = FrameRows(source, request.id_col, request.columns)
        return _divided(rows, {"frame": frame_digest(rows.frame)}, rows_per_batch)
    if isinstance(source, Iterator) or (isinstance(source, Iterable) and not _is_wrong(source)):
        return _of_frames(iter(source))
    raise TypeError(
        "source must be a long frame, an iterator of long frames, or the path of parquet or CSV "
        f"files; got {type(source).__module__}.{type(source).__qualname__}"
    )


def future_rows(X_future: Any, request: Request) -> tuple[Any, dict[str, Any]]:
    """Rows of the steps ahead, and what they are of."""
    if X_future is None:
        return None, {}
    if isinstance(X_future, str | os.PathLike):
        files = files_of(X_future)
        rows: Any = FileRows(files, request.id_col, request.future_columns, request.time_col)
        return rows, _told_of(files)
    rows = FrameRows(X_future, request.id_col, request.future_columns)
    return rows, {"frame": frame_digest(rows.frame)}


def frame_digest(frame: Any) -> str:
    """Checksum of the values of a frame, the order of its rows included."""
    made = hashlib.sha256(repr(list(frame.columns)).encode())
    if isinstance(frame, pd.DataFrame):
        hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    else:
        hashes = frame.hash_rows().to_numpy()
    made.update(np.ascontiguousarray(hashes).tobytes())
    return made.hexdigest()


def _divided(
    rows: Any, told: dict[str, Any], rows_per_batch: int, texts: Sequence[str] = ()
) -> Source:
    batches = list(_batches(rows.ids, rows.counts, rows_per_batch))
    partitions = (Partition(i, rows.part(ids), ids, "") for i, ids in enumerate(batches))
    first = rows.part(rows.ids[:SERIES_FOR_FREQUENCY])
    return Source(told, len(rows.ids), len(batches), first, partitions, tuple(texts))


def _batches(ids: list[Any], counts: np.ndarray, rows_per_batch: int) -> Iterator[list[Any]]:
    """Neighbouring series with at most so many rows together, one series at least."""
    start, rows = 0, 0
    for place, count in enumerate(counts.tolist()):
        if rows and rows + count > rows_per_batch:
            yield ids[start:place]
            start, rows = place, 0
        rows += count
    yield ids[start:]


def _of_frames(frames: Iterator[Any]) -> Source:
    first = next(frames, None)
    if first is None:
        raise ValueError("the iterator must give at least one frame; it gave none")

    def partitions() -> Iterator[Partition]:
        for number, frame in enumerate(_chained(first, frames)):
            if not nw.dependencies.is_into_dataframe(frame):
                raise TypeError(
                    f"the iterator must give long frames; number {number} is of type "
                    f"{type(frame).__qualname__}"
                )
            yield Partition(number, Given(frame), None, frame_digest(frame))

    return Source({"iterator": True}, None, None, lambda: first, partitions())


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
