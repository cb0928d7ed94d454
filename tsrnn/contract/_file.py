"""Files of fitted models: arrays as safetensors, everything else as JSON in the header."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tsrnn.contract._atomic import file_place, put_file
from tsrnn.contract._schema import DamagedFileError
from tsrnn.contract._schema import text as text_kind

FORMAT = 9
OLDEST = 2  # oldest format that is read; 1 was written only by development versions
HEADER, DIGEST = "tsrnn", "sha256"
MOST_NESTING = 64  # depth of a header: about twenty levels of nested combinations

PathLike = str | os.PathLike[str]


def write_file(
    path: PathLike | IO[bytes], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write a header of JSON values and arrays to one file, atomically.

    "format" and "version" are added to the header. An open file is written from its current
    position.
    """
    if is_deeper(header, MOST_NESTING - 1):
        raise ValueError(
            f"files hold models nested at most {MOST_NESTING // 3} deep; this one is deeper. Save "
            "its members by themselves"
        )
    text = json.dumps({"format": FORMAT, "version": version("tsrnn")} | dict(header))
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {HEADER: text, DIGEST: digest(text, whole)}
    if isinstance(path, str | os.PathLike):
        content = save(whole, metadata)
        put_file(file_place(path), lambda place: place.write_bytes(content))
    else:
        _binary(path).write(save(whole, metadata))


def read_file(path: PathLike | IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays from a file of `write_file`; nothing is unpickled.

    An open file is read from its current position to its end. A ValueError says that the file is
    damaged, not of tsrnn, or of a newer format.
    """
    if not isinstance(path, str | os.PathLike):
        name, content = "the open file", _binary(path).read()
    elif os.path.isfile(path):
        name, content = str(path), Path(path).read_bytes()
    else:
        raise FileNotFoundError(
            f"no saved model at {str(path)!r}. Give the path that save was given"
        )
    try:
        arrays = load(content)
        # safetensors: eight bytes with the size of a JSON header, whose "__metadata__" is free.
        end = 8 + int.from_bytes(content[:8], "little")
        metadata: dict[str, str] = json.loads(content[8:end]).get("__metadata__", {})
    except (SafetensorError, AttributeError, KeyError, TypeError) as error:  # unknown dtypes
        raise DamagedFileError(
            f"{name} is damaged or no model saved by tsrnn: {error}. Give a file that save has "
            "written"
        ) from error
    if HEADER not in metadata:
        raise DamagedFileError(
            f"{name} is a safetensors file, but no model saved by tsrnn. Give a file that save has "
            "written"
        )
    text = metadata[HEADER]
    try:
        header = json.loads(text)
        written = header["format"]
        newer, older = written > FORMAT, written < OLDEST
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFileError(
            f"{name} is damaged: its header cannot be read. Save the model again"
        ) from error
    # Format before checksum, which other versions may compute differently.
    if newer:
        raise DamagedFileError(
            f"{name} is in format {written}, written by tsrnn {header.get('version')}; "
            f"this version reads formats up to {FORMAT}. Install a newer tsrnn"
        )
    if older:
        raise DamagedFileError(
            f"{name} is in format {written}, of a development version of tsrnn; this version reads "
            f"formats from {OLDEST} on. Fit the model and save it again"
        )
    if metadata.get(DIGEST) != digest(text, arrays):
        raise DamagedFileError(
            f"{name} is damaged: its content does not match its checksum. Save the model again"
        )
    if is_deeper(header, MOST_NESTING):
        raise DamagedFileError(
            f"{name} is damaged: its header must be nested at most {MOST_NESTING} deep; it is "
            "deeper. Save the model again"
        )
    text_kind(header.get("version"), "version")
    return header, arrays


def _binary(file: IO[bytes]) -> IO[bytes]:
    """Return the file if it is open in binary mode."""
    if isinstance(file, io.TextIOBase) or not hasattr(file, "read"):
        raise TypeError(f"a path or a binary file is needed; got {file!r}. Open it in binary mode")
    return file


def is_deeper(value: Any, depth: int) -> bool:
    """Return True if the JSON is nested deeper than `depth`."""
    level = [value]
    for _ in range(depth + 1):  # a loop, since recursion could exhaust the stack
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def digest(header: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return the checksum of header and arrays."""
    checksum = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = arrays[name]
        checksum.update(f"{name} {array.dtype} {array.shape}".encode())
        checksum.update(array.tobytes())
    return checksum.hexdigest()


def plain(value: Any, name: str) -> Any:
    """Convert a constructor argument or id to a JSON value.

    Parameters
    ----------
    value : object
        A number, str, path, bool or None; a dict with keys of str; a sequence or array of these.
    name : str
        Name of the value in messages.

    Returns
    -------
    object
        Builtin types: lists for sequences and arrays, str for paths.

    Raises
    ------
    TypeError
        If the value has no JSON form.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import plain
    >>> plain((np.float64(0.5), "a", np.arange(3)), "level")
    [0.5, 'a', [0, 1, 2]]
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(item, name) for key, item in value.items()}
    if isinstance(value, tuple | list | np.ndarray | pd.Index):
        return [plain(item, name) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"to be saved, {name} must be numbers, strings or lists of them; got {value!r} of type "
        f"{type(value).__name__}. Convert to one of these and fit again"
    )
