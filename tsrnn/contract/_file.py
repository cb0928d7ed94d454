"""The file of a fitted model: arrays as safetensors, everything else as JSON in its header."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

FORMAT = 1
HEADER, DIGEST = "tsrnn", "sha256"

PathLike = str | os.PathLike[str]


def write_file(path: PathLike, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write header and arrays to one file, in one step.

    The file is written beside its place and renamed, so that a file of that name is
    whole or untouched.

    Parameters
    ----------
    path : path
    header : dict
        JSON values by name; "format" and "version" are added.
    arrays : dict of ndarray

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; make it first")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    text = json.dumps({"format": FORMAT, "version": version("tsrnn")} | dict(header))
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.tmp")
    try:
        save_file(whole, temporary, metadata={HEADER: text, DIGEST: digest(text, whole)})
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_file(path: PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file that `write_file` has written. Nothing is unpickled.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, not of tsrnn, or of a newer format.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no saved model at {path}")
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, AttributeError, TypeError) as error:  # of unknown dtypes
        raise ValueError(f"{path} is damaged or no model saved by tsrnn: {error}") from error
    return _checked_header(path, metadata, arrays), arrays


def _checked_header(
    path: Path, metadata: dict[str, str], arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """The header of a file that is of tsrnn, of a known format and as it was written."""
    if HEADER not in metadata:
        raise ValueError(f"{path} is a safetensors file, but no model saved by tsrnn")
    text = metadata[HEADER]
    try:
        header = json.loads(text)
        newer = header["format"] > FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: its header cannot be read") from error
    if newer:
        raise ValueError(
            f"{path} is in format {header['format']}, written by tsrnn {header.get('version')}; "
            f"this version reads formats up to {FORMAT}. Install a newer tsrnn"
        )
    if metadata.get(DIGEST) != digest(text, arrays):
        raise ValueError(f"{path} is damaged: its content does not match its checksum")
    return header


def digest(header: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Checksum of everything in a file."""
    made = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = arrays[name]
        made.update(f"{name} {array.dtype} {array.shape}".encode())
        made.update(array.tobytes())
    return made.hexdigest()


def plain(value: Any, name: str) -> Any:
    """A constructor argument or id as a JSON value.

    Raises
    ------
    TypeError
        If it is none; the message says `name`.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(item, name) for key, item in value.items()}
    if isinstance(value, tuple | list | np.ndarray | pd.Index):
        return [plain(item, name) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"to be saved, {name} must be numbers, strings or lists of them; got {value!r} of type "
        f"{type(value).__name__}. Convert to one of these and fit again"
    )
