"""Reader of the text files of the UEA and UCR archives."""

from __future__ import annotations

import gzip
import io
import math
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import IO, NoReturn

import numpy as np

__all__ = ["LabelledSequences", "read_ts"]

FLAGS = ("timestamps", "missing", "univariate", "equallength")
NUMBERS = ("dimensions", "serieslength")
LABELS = ("classlabel", "targetlabel")
ALIASES = {"dimension": "dimensions"}


@dataclass(frozen=True, eq=False)
class LabelledSequences:
    """Labelled sequences of a file, as `read_ts` returns them.

    Parameters
    ----------
    name : str
        Problem name in the file.
    X : ndarray of shape (N, T, d_in), or list of N ndarrays of shape (T_i, d_in)
        float64, or float32 from `load_google12`; NaN where a value is missing; a list if
        lengths differ.
    y : ndarray of shape (N,), or None
        Labels as str, or targets as float64; None if the file has neither.
    labels : tuple of str
        Classes in the order of the file; empty if `y` holds targets or nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import LabelledSequences
    >>> LabelledSequences("Steps", np.zeros((2, 10, 1)), np.array(["up", "down"]), ("up", "down"))
    LabelledSequences(name='Steps', labels=('up', 'down'))
    """

    name: str
    X: np.ndarray | list[np.ndarray] = field(repr=False)
    y: np.ndarray | None = field(repr=False)
    labels: tuple[str, ...]


def read_ts(path: str | PathLike[str], member: str | None = None) -> LabelledSequences:
    r"""Read a ``.ts`` file of the UEA and UCR archives of time-series classification.

    Empty lines and lines that begin with ``#`` are skipped. Tags such as ``@univariate true``
    come first, the last one is ``@data``. Each later line is a case: dimensions separated by
    ``:``, their values by ``,``, and the label or target at the end.

    Parameters
    ----------
    path : str or path-like
        File; gzipped if its name ends in ``.gz``, a zip archive if it ends in ``.zip``.
    member : str, optional
        File name within the zip archive, without its folder; only for zip archives.

    Returns
    -------
    LabelledSequences
        Fields ``name``, ``X``, ``y`` and ``labels``. Missing values, ``?`` and ``NaN``, become
        NaN.

    Raises
    ------
    ValueError
        With the line number, if the file has time stamps (not supported), is damaged, encrypted
        or compressed in a way that Python does not know, or has cases that contradict its tags;
        if `member` is missing or not wanted.
    FileNotFoundError
        If there is no such file, or none in the archive.

    Notes
    -----
    Tags are ``@problemName``, ``@timeStamps``, ``@missing``, ``@univariate``, ``@dimensions`` (or
    ``@dimension``), ``@equalLength``, ``@seriesLength``, ``@classLabel`` and ``@targetLabel``, in
    upper or lower case. All but ``@data`` may be left out. Cases are checked against the tags.

    References
    ----------
    Bagnall et al. (2018), The UEA multivariate time series classification archive, 2018.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tsrnn.datasets import read_ts
    >>> lines = ["@problemName Toy", "@classLabel true up down", "@data", "1,2,3:0,0,1:up",
    ...          "3,2,?:1,1,0:down"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "Toy_TRAIN.ts"
    ...     _ = path.write_text("\n".join(lines))
    ...     toy = read_ts(path)
    >>> toy
    LabelledSequences(name='Toy', labels=('up', 'down'))
    >>> toy.X.shape, toy.y.tolist()
    ((2, 3, 2), ['up', 'down'])
    """
    file = Path(fspath(path))
    if (file.suffix == ".zip") != isinstance(member, str):
        raise ValueError(
            "member must be the name of a file in a zip archive, and left out for other files; "
            f"got member={member!r} with {file.name}"
        )
    lines = _lines(file, member)
    file = file if member is None else file / member
    header = _read_header(file, lines)
    cases = [_read_case(header, number, text) for number, text in lines]
    if not cases:
        raise ValueError(f"{file} has no cases after @data")
    header.check_lengths(cases)
    arrays = [case.values for case in cases]
    equal = len({len(array) for array in arrays}) == 1
    return LabelledSequences(
        name=header.name,
        X=np.stack(arrays) if equal else arrays,
        y=header.labels_of(cases),
        labels=header.classes,
    )


@dataclass
class _Header:
    """Tags of a file; absent where the file does not state them."""

    file: Path
    name: str = ""
    flags: dict[str, bool] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    has_targets: bool = False
    seen: set[str] = field(default_factory=set)

    @property
    def is_labelled(self) -> bool:
        return bool(self.classes) or self.has_targets

    def fail(self, number: int, problem: str) -> NoReturn:
        raise ValueError(f"{self.file}, line {number}: {problem}")

    def check_dimensions(self, number: int, count: int) -> None:
        declared = 1 if self.flags.get("univariate") else self.numbers.get("dimensions")
        # Without a tag the first case decides.
        wanted = self.numbers.setdefault("dimensions", declared or count)
        if declared is not None and declared != wanted:
            self.fail(number, f"@univariate true and @dimensions {wanted} contradict each other")
        if count != wanted:
            self.fail(number, f"each case must have {wanted} dimensions; got {count}")

    def check_lengths(self, cases: list[_Case]) -> None:
        if self.flags.get("equallength") is False:
            return
        wanted = self.numbers.get("serieslength")
        if wanted is None and self.flags.get("equallength"):
            wanted = len(cases[0].values)
        for case in cases:
            if wanted is not None and len(case.values) != wanted:
                self.fail(
                    case.number,
                    f"all cases must have {wanted} steps, as the tags or the first case say; got "
                    f"{len(case.values)}",
                )

    def labels_of(self, cases: list[_Case]) -> np.ndarray | None:
        if not self.is_labelled:
            return None
        return np.array([case.label for case in cases], dtype=float if self.has_targets else str)


@dataclass
class _Case:
    number: int
    values: np.ndarray
    label: str | float | None


def _lines(file: Path, member: str | None) -> Iterator[tuple[int, str]]:
    """Yield numbered lines, without comments and empty ones."""
    number = 0
    try:
        # Some files of the archives have comments in other encodings.
        with (
            _opened(file, member) as binary,
            io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape") as stream,
        ):
            for number, line in enumerate(stream, start=1):
                text = line.strip()
                if text and not text.startswith("#"):
                    yield number, text
    # RuntimeError: the member is encrypted, or its compression unknown.
    except (EOFError, RuntimeError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{file} cannot be unzipped after line {number}: {error}") from error


def _opened(file: Path, member: str | None) -> IO[bytes] | gzip.GzipFile:
    """Open a file to read its unzipped bytes."""
    if member is None:
        return gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb")
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if Path(name).name == member]
        if len(names) != 1:
            raise FileNotFoundError(
                f"{file} must hold one file {member}; it holds {len(names)} among its "
                f"{len(archive.namelist())} files"
            )
        return archive.open(names[0])


def _read_header(file: Path, lines: Iterator[tuple[int, str]]) -> _Header:
    header = _Header(file)
    number = 0
    for number, text in lines:
        if not text.startswith("@"):
            header.fail(number, f"a tag such as @problemName or @data must come; got {text[:40]!r}")
        first, *after = text.split(None, 1)
        tag = first[1:].lower()
        tag = ALIASES.get(tag, tag)
        if tag == "data":
            return header
        if tag in header.seen:
            header.fail(number, f"@{tag} comes twice")
        header.seen.add(tag)
        _read_tag(header, number, tag, after[0] if after else "")
    return header.fail(number, "the file ends before @data")


def _read_tag(header: _Header, number: int, tag: str, rest: str) -> None:
    if tag == "problemname":
        header.name = rest
    elif tag in FLAGS:
        header.flags[tag] = _flag(header, number, tag, rest)
        if tag == "timestamps" and header.flags[tag]:
            header.fail(number, "time stamps are not supported; values only, @timeStamps false")
    elif tag in NUMBERS:
        if not (re.fullmatch(r"\d{1,18}", rest, re.ASCII) and int(rest)):
            header.fail(number, f"@{tag} must be followed by a positive integer; got {rest!r}")
        header.numbers[tag] = int(rest)
    elif tag in LABELS:
        _read_labels(header, number, tag, rest)
    else:
        known = ("problemname", *FLAGS, *NUMBERS, *LABELS, "data")
        header.fail(number, f"tags must be among {', '.join(known)}; got @{tag}")


def _read_labels(header: _Header, number: int, tag: str, rest: str) -> None:
    answer, *names = rest.split() or [""]
    labelled = _flag(header, number, tag, answer)
    if labelled and header.is_labelled:
        header.fail(number, "cases must have classes or targets, not both")
    if tag == "targetlabel":
        header.has_targets = labelled
    elif labelled and (not names or len(set(names)) < len(names)):
        header.fail(number, f"@classLabel true must be followed by different classes; got {names}")
    elif labelled:
        header.classes = tuple(names)


def _flag(header: _Header, number: int, tag: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        header.fail(number, f"@{tag} must be followed by true or false; got {text!r}")
    return text.lower() == "true"


def _read_case(header: _Header, number: int, text: str) -> _Case:
    dimensions = text.split(":")
    label = _label(header, number, dimensions.pop()) if header.is_labelled else None
    header.check_dimensions(number, len(dimensions))
    columns = [_values(header, number, dimension) for dimension in dimensions]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        header.fail(
            number, f"all dimensions of a case must have as many values; got {sorted(lengths)}"
        )
    return _Case(number, np.array(columns).T.copy(), label)


def _label(header: _Header, number: int, text: str) -> str | float:
    text = text.strip()
    if not header.has_targets:
        if text not in header.classes:
            header.fail(
                number, f"the label must be among {list(header.classes)}; got {text[:40]!r}"
            )
        return text
    target = _finite_or_missing(text)
    if target is None or math.isnan(target):
        header.fail(number, f"the target must be a finite number; got {text[:40]!r}")
    return target


def _values(header: _Header, number: int, text: str) -> np.ndarray:
    pieces = text.split(",")
    values = _plain_numbers(text, pieces)
    if values is None:
        values = np.empty(len(pieces))
        for place, piece in enumerate(pieces):
            value = _finite_or_missing(piece)
            if value is None:
                header.fail(
                    number, f"value {place + 1} of a dimension is no finite number: {piece[:40]!r}"
                )
            values[place] = value
    if header.flags.get("missing") is False and np.isnan(values).any():
        header.fail(number, "a value is missing, although the file says @missing false")
    return values


def _plain_numbers(text: str, pieces: list[str]) -> np.ndarray | None:
    """Parse finite numbers and NaN at once, in half the time; None if a piece is anything else."""
    if "_" in text or not text.isascii():
        return None
    try:
        values = np.array(pieces, dtype=np.float64)
    except ValueError:
        return None
    return None if np.isinf(values).any() else values


def _finite_or_missing(text: str) -> float | None:
    """Parse a finite number; NaN for a missing one, None for other text."""
    if "_" in text or not text.isascii():  # float() accepts underscores and other digits
        return None
    try:
        value = float(text)
    except ValueError:
        return math.nan if text.strip() == "?" else None
    return None if math.isinf(value) else value
