"""Fitted forecasters from disk, the inverse of saving; nothing is unpickled."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open
from torch import Tensor

from tsrnn.data import Layout, Scaler
from tsrnn.forecasters._intervals import Calibration
from tsrnn.forecasters._memory import Memory, Scaling
from tsrnn.forecasters._model import empty_model
from tsrnn.forecasters._para_rnn import ParaRNNForecaster
from tsrnn.forecasters._recurrent import RecurrentForecaster
from tsrnn.forecasters._save import DIGEST, FORMAT, HEADER, digest
from tsrnn.forecasters._settings import Settings

CLASSES: dict[str, type[RecurrentForecaster]] = {cls.__name__: cls for cls in (ParaRNNForecaster,)}


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
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged or no forecaster saved by tsrnn: {error}") from error
    return _rebuild(_checked_header(path, metadata, tensors), tensors)


def _checked_header(
    path: Path, metadata: dict[str, str], tensors: dict[str, Tensor]
) -> dict[str, Any]:
    """The header of a file that is of tsrnn, of a known format and as it was written."""
    if HEADER not in metadata:
        raise ValueError(f"{path} is a safetensors file, but no forecaster saved by tsrnn")
    text = metadata[HEADER]
    try:
        header = json.loads(text)
        newer = header["format"] > FORMAT or header["class"] not in CLASSES
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: its header cannot be read") from error
    if newer:
        raise ValueError(
            f"{path} holds a {header['class']} in format {header['format']}, written by tsrnn "
            f"{header.get('version')}; this version reads {', '.join(CLASSES)} in formats up to "
            f"{FORMAT}. Install a newer tsrnn"
        )
    if metadata.get(DIGEST) != digest(text, tensors):
        raise ValueError(f"{path} is damaged: its content does not match its checksum")
    return header


def _rebuild(header: dict[str, Any], tensors: dict[str, Tensor]) -> RecurrentForecaster:
    forecaster = CLASSES[header["class"]](**header["params"])
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
        Scaler(arrays["location"], arrays["scale"]),
        Scaler(arrays["exog_location"], arrays["exog_scale"], pooled=True),
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
