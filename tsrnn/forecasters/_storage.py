"""Fitted forecasters on disk: tensors as safetensors, everything else as JSON in its header."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tsrnn.data import Layout, Scaler
from tsrnn.forecasters._intervals import Calibration
from tsrnn.forecasters._memory import Memory, Scaling
from tsrnn.forecasters._model import empty_model
from tsrnn.forecasters._settings import Settings

if TYPE_CHECKING:
    from tsrnn.forecasters._recurrent import RecurrentForecaster

FORMAT = 1
HEADER = "tsrnn"
_NOT_SAVED = {"callbacks"}


def save(forecaster: RecurrentForecaster, path: str | os.PathLike[str]) -> None:
    """Write a fitted forecaster to one file, in one step.

    The file is written beside its place and renamed, so that a file of that name is
    whole or untouched. Constructor arguments must be JSON values; `callbacks` are not
    kept.

    Raises
    ------
    TypeError
        If an argument or a series id cannot be written as JSON; the message names it.
    """
    header, tensors = _header(forecaster), _tensors(forecaster)
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    os.close(handle)
    try:
        save_file(tensors, temporary, metadata={HEADER: json.dumps(header)})
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: str | os.PathLike[str]) -> RecurrentForecaster:
    """Read a forecaster that `save` has written. Nothing is unpickled.

    Parameters
    ----------
    path : path

    Returns
    -------
    forecaster
        Fitted; forecasts as the one that was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, not of tsrnn, or of a newer format.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no saved forecaster at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {}).get(HEADER, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(f"{path} is damaged or no forecaster saved by tsrnn: {error}") from error
    if not isinstance(header, dict) or "format" not in header:
        raise ValueError(f"{path} is a safetensors file, but no forecaster saved by tsrnn")
    if header["format"] > FORMAT:
        raise ValueError(
            f"{path} has format {header['format']}, written by tsrnn {header['version']}; this "
            f"version reads formats up to {FORMAT}. Install a newer tsrnn"
        )
    return _rebuild(header, tensors)


def _classes() -> dict[str, type[RecurrentForecaster]]:
    from tsrnn.forecasters._para_rnn import ParaRNNForecaster

    return {cls.__name__: cls for cls in (ParaRNNForecaster,)}


def _plain(value: Any, name: str) -> Any:
    """A constructor argument or id as a JSON value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list | np.ndarray | pd.Index):
        return [_plain(item, name) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(
        f"{name} must be numbers, strings or lists of them to be saved; got {value!r} of type "
        f"{type(value).__name__}"
    )


def _header(forecaster: RecurrentForecaster) -> dict[str, Any]:
    params = forecaster.get_params(deep=False)
    layout, exog_names = forecaster._panel_shape
    memory = forecaster.memory_
    return {
        "format": FORMAT,
        "version": version("tsrnn"),
        "class": type(forecaster).__name__,
        "params": {k: _plain(v, k) for k, v in params.items() if k not in _NOT_SAVED},
        "settings": asdict(forecaster.settings_),
        "layout": layout.to_dict(),
        "exog_names": _plain(exog_names, "exogenous columns"),
        "known_ahead": _plain(forecaster.known_ahead_, "known_ahead"),
        "ids": _plain(memory.ids, "series ids"),
        "id_dtype": str(memory.ids.dtype),
        "times_dtype": str(memory.last_times.dtype),
        "pooled": memory.scaling.target.pooled,
        "intervals": forecaster.calibration_.method,
        "history": forecaster.history_,
        "best_epoch": forecaster.best_epoch_,
        "linear_path": forecaster.linear_path_,
        "validation": forecaster.validation_.to_dict("list"),
    }


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


def _rebuild(header: dict[str, Any], tensors: dict[str, Tensor]) -> RecurrentForecaster:
    forecaster = _classes()[header["class"]](**header["params"])
    layout, exog_names = Layout.from_dict(header["layout"]), tuple(header["exog_names"])
    forecaster._panel_shape = layout, exog_names
    forecaster.freq_, forecaster.known_ahead_ = layout.freq, header["known_ahead"]
    forecaster.n_features_in_ = len(layout.target_names) + len(exog_names)
    settings = Settings(**header["settings"])
    known = [exog_names.index(name) for name in forecaster.known_ahead_]
    model = empty_model(settings, len(layout.target_names), len(exog_names), known)
    prefix = "model."
    weights = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    model.load_state_dict(weights)
    forecaster._set_model(settings, model.eval())
    forecaster.history_, forecaster.best_epoch_ = header["history"], header["best_epoch"]
    forecaster.linear_path_ = header["linear_path"]
    steps = pd.RangeIndex(1, settings.horizon + 1, name="step")
    forecaster.validation_ = pd.DataFrame(header["validation"], index=steps)
    forecaster.calibration_ = Calibration(tensors["errors"].numpy(), header["intervals"])
    forecaster.sample_ = tensors["sample"]
    forecaster.memory_ = _memory(
        header, {k: v.numpy() for k, v in tensors.items()}, tensors["state"]
    )
    return forecaster


def _memory(header: dict[str, Any], arrays: dict[str, np.ndarray], state: Tensor) -> Memory:
    scaling = Scaling(
        Scaler(arrays["location"], arrays["scale"], header["pooled"]),
        Scaler(arrays["exog_location"], arrays["exog_scale"], True),
        arrays["constant"],
    )
    borders = np.cumsum(arrays["tail_lengths"])[:-1]
    return Memory(
        ids=pd.Index(header["ids"], dtype=header["id_dtype"]),
        last_times=arrays["last_times"].astype(header["times_dtype"]),
        n_rows=arrays["n_rows"],
        scaling=scaling,
        tail=np.split(arrays["tail"], borders),
        state=state,
    )
