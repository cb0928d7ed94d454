"""Reader of plain or gzipped files of the user, with a limit on their size."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

__all__ = ["as_folder", "read_file"]


def as_folder(data_home: Any) -> Path:
    """Return `data_home` as a path with ``~`` expanded."""
    if not isinstance(data_home, str | os.PathLike):
        raise TypeError(f"data_home must be a path; got {data_home!r}")
    return Path(data_home).expanduser()


def read_file(path: Path, most: int, advice: str) -> bytes:
    """Return the content of a file, decompressed if its name ends in ``.gz``.

    Parameters
    ----------
    path : Path
    most : int
        Largest number of bytes of the content. No more are decompressed, so that a small file
        cannot exhaust memory.
    advice : str
        Sentence at the end of an error.

    Raises
    ------
    ValueError
        If the gzip file is incomplete, or its content is longer than `most`.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{path} must be a complete gzip file; got {path.stat().st_size} bytes that do not "
            f"decompress ({error}). {advice}"
        ) from error
    if len(content) > most:
        raise ValueError(f"{path} must hold at most {most} bytes; its content is longer. {advice}")
    return content
