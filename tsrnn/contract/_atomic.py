"""Atomic writing of files: an interrupted process leaves the old file or none."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]

TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{32}\.tmp", re.DOTALL)
OLD = 86_400  # age in seconds of an abandoned temporary file, on systems without locks
SPECIAL = {
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def file_place(path: PathLike, inputs: Mapping[str, PathLike | None] | None = None) -> Path:
    """Return a path at which a file can be written.

    Refused are a missing folder, a folder itself, a read-only place, a pipe, socket or device,
    which a file would replace, and one of the `inputs` (by their names in messages), also by
    another path.
    """
    place = as_path(path)
    _destination(place)
    for name, given in (inputs or {}).items():
        if given is not None and _same_file(place, Path(given).expanduser()):
            raise ValueError(
                f"a file that is read must not be written over: {str(path)!r} is the file of "
                f"{name}, {str(given)!r}. Name another file to write"
            )
    return place


def put_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically: to a temporary file, synchronised to disk, then renamed.

    The target of a symbolic link is replaced. A new file has the permissions of the umask, an
    existing one keeps its own, and all of its content if `write` fails. Temporary files that killed
    processes left behind are removed.
    """
    target = _destination(path)
    remove_unfinished(target.parent, target.name)
    with _claimed(target) as temporary:
        mode = stat.S_IMODE(temporary.stat().st_mode)
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            before = target.stat()
            mode = stat.S_IMODE(before.st_mode)
            if hasattr(os, "chown"):
                with contextlib.suppress(OSError):  # only root may give files away
                    os.chown(temporary, before.st_uid, before.st_gid)
        temporary.chmod(mode)  # `write` may have replaced the temporary file
        temporary.replace(target)


def remove_unfinished(folder: Path, name: str | None = None) -> None:
    """Remove temporary files of killed processes, of all files or of the one `name`.

    Running processes keep theirs.
    """
    try:
        names = os.listdir(folder)
    except OSError:  # a folder with write but not read permission
        return
    for candidate in names:
        match = TEMPORARY.fullmatch(candidate)
        if match and name in (None, match["name"]):
            with contextlib.suppress(OSError):  # of another user, or removed meanwhile
                _remove_if_unclaimed(folder / candidate)


def inside(path: PathLike, folder: PathLike) -> bool:
    """Return True if a path, with links resolved, lies in a folder.

    Parameters
    ----------
    path, folder : path

    Returns
    -------
    bool

    Examples
    --------
    >>> from tsrnn.contract import inside
    >>> inside("runs/today/part.csv", "runs"), inside("data/part.csv", "runs")
    (True, False)
    """
    return Path(path).expanduser().resolve().is_relative_to(Path(folder).expanduser().resolve())


def as_path(path: Any) -> Path:
    """Return the argument as a path with ``~`` expanded."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a path must be text or a pathlib.Path; got {path!r}")
    return Path(path).expanduser()


def _destination(place: Path) -> Path:
    """Return the file behind a path, with links resolved; raise if it cannot be written."""
    try:
        target = Path(os.path.realpath(place))
    except ValueError as error:  # characters that no name may have
        raise ValueError(
            f"{str(place)!r} cannot be the name of a file: {error}. Name another"
        ) from error
    if not target.parent.is_dir():
        folder = target.parent if place.is_symlink() else place.parent
        raise FileNotFoundError(f"the folder {folder} does not exist; make it first")
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except OSError as error:  # a circle of links
        raise OSError(f"{place} cannot be written to: {error}. Name another file") from error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{place} is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in SPECIAL.items() if test(mode)), "no regular file")
        raise OSError(f"{place} is {kind}, which a file would replace; name a regular file")
    if not os.access(target, os.W_OK):
        raise PermissionError(f"{place} may not be written to; change that, or name another file")
    return target


def _same_file(path: Path, other: Path) -> bool:
    """Return True if two paths are the same file, also by links."""
    try:
        return os.path.samefile(path, other)
    except OSError:  # one does not exist yet
        return os.path.realpath(path) == os.path.realpath(other)


@contextlib.contextmanager
def _claimed(target: Path) -> Iterator[Path]:
    """Create an empty temporary file next to `target`, locked while it is written."""
    while True:
        temporary = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if _lock(descriptor) and temporary.exists():
            break
        os.close(descriptor)  # another process removed it before it was locked
    try:
        if fcntl is None:  # open files cannot be renamed on Windows
            os.close(descriptor)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        if fcntl is not None:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open file; return False if another process holds the lock."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _remove_if_unclaimed(path: Path) -> None:
    """Remove a regular file that no process holds a lock on."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return
    if fcntl is None:
        if time.time() - path.stat().st_mtime > OLD:
            path.unlink()
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(descriptor)
