"""Files that are whole or untouched, however the process ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4


def file_place(path: str | os.PathLike[str]) -> Path:
    """A path at which a file can be written.

    Parameters
    ----------
    path : path

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        If its folder does not exist, or it is a folder.

    Examples
    --------
    >>> from tsrnn.contract import file_place
    >>> file_place("model.tsrnn").name
    'model.tsrnn'
    """
    place = Path(path).expanduser()
    if not place.parent.is_dir():
        raise FileNotFoundError(f"the folder {place.parent} does not exist; make it first")
    if place.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    return place


def put_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place, see that it is on the disk, and move it there.

    Parameters
    ----------
    path : Path
    write : callable
        Given a path, writes the file there.

    Raises
    ------
    OSError
        If the file cannot be written; one that was there before is untouched.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tsrnn.contract import put_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     put_file(Path(folder, "words"), lambda place: place.write_text("whole"))
    ...     Path(folder, "words").read_text()
    'whole'
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
