"""Fitted forecasters to disk: tensors as safetensors, everything else as JSON in its header."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file
from torch import Tensor

from tsrnn.forecasters._settings import CELLS
from tsrnn.kernels import Cell

if TYPE_CHECKING:
    from tsrnn.forecasters._recurrent import RecurrentForecaster

FORMAT = 1
HEADER, DIGEST = "tsrnn", "sha256"


def save(forecaster: RecurrentForecaster, path: str | os.PathLike[str]) -> None:
    """Write a fitted forecaster to one file, in one step.

    The file is written beside its place and renamed, so that a file of that name is
    whole or untouched. Constructor arguments must be JSON values; `callbacks` and a
    generator as `random_state` are not kept.

    Raises
    ------
    TypeError
        If an argument or a series id cannot be written as JSON, as a cell of one's own
        cannot; the message names it.
    OSError
        If the file cannot be written.
    """
    header, tensors = json.dumps(_header(forecaster)), _tensors(forecaster)
    metadata = {HEADER: header, DIGEST: digest(header, tensors)}
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist; make it first")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    temporary = path.with_name(f"{path.name}.{uuid4().hex}.tmp")
    try:
        save_file(tensors, temporary, metadata=metadata)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def digest(header: str, tensors: dict[str, Tensor]) -> str:
    """Checksum of everything in a file."""
    made = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        made.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        made.update(tensor.numpy().tobytes())
    return made.hexdigest()


def _header(forecaster: RecurrentForecaster) -> dict[str, Any]:
    layout, exog_names = forecaster._panel_shape
    memory = forecaster.memory_
    _check_cell(forecaster.settings_.cell)
    return {
        "format": FORMAT,
        "version": version("tsrnn"),
        "class": type(forecaster).__name__,
        "params": _params(forecaster),
        "settings": asdict(forecaster.settings_),
        "layout": layout.to_dict(),
        "exog_names": _plain(exog_names, "exogenous columns"),
        "known_ahead": _plain(forecaster.known_ahead_, "known_ahead"),
        "ids": _plain(memory.ids, "series ids"),
        "id_dtype": str(memory.ids.dtype),
        "times_dtype": str(memory.last_times.dtype),
        "intervals": forecaster.calibration_.method,
        "history": forecaster.history_,
        "best_epoch": forecaster.best_epoch_,
        "linear_path": forecaster.linear_path_,
        "validation": forecaster.validation_.to_dict("list"),
    }


def _check_cell(cell: str | Cell) -> None:
    if isinstance(cell, Cell):
        raise TypeError(
            f"to be saved, cell must be one of {CELLS}; got the cell {cell.name!r}, whose step is "
            "code, which files do not hold. Use pickle"
        )


def _params(forecaster: RecurrentForecaster) -> dict[str, Any]:
    """Constructor arguments as JSON values."""
    params = forecaster.get_params(deep=False) | {"callbacks": None}
    if isinstance(params["random_state"], np.random.Generator | np.random.RandomState):
        params["random_state"] = None
    return {name: _plain(value, name) for name, value in params.items()}


def _plain(value: Any, name: str) -> Any:
    """A constructor argument or id as a JSON value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list | np.ndarray | pd.Index):
        return [_plain(item, name) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"to be saved, {name} must be numbers, strings or lists of them; got {value!r} of type "
        f"{type(value).__name__}. Convert to one of these and fit again"
    )


def _tensors(forecaster: RecurrentForecaster) -> dict[str, Tensor]:
    memory, scaling = forecaster.memory_, forecaster.memory_.scaling
    arrays = {
        "last_times": memory.last_times.astype("int64"),
        "n_rows": memory.n_rows,
        "location": scaling.target.location,
        "scale": scaling.target.scale,
        "exog_location": scaling.exog.location,
        "exog_scale": scaling.exog.scale,
        "constant": scaling.constant,
        "tail": np.vstack(memory.tail),
        "tail_lengths": np.array([len(rows) for rows in memory.tail]),
        "errors": forecaster.calibration_.errors,
    }
    tensors = {name: torch.as_tensor(np.ascontiguousarray(a)) for name, a in arrays.items()}
    tensors |= {"state": memory.state, "sample": forecaster.sample_}
    tensors |= {f"model.{k}": v for k, v in forecaster.model_.state_dict().items()}
    return {name: tensor.contiguous() for name, tensor in tensors.items()}
