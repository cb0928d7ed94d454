"""What a file holds of a fitted recurrent forecaster, and the way back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from tsrnn.data import Scaler
from tsrnn.forecasters._intervals import Calibration
from tsrnn.forecasters._memory import Memory, Scaling
from tsrnn.forecasters._model import empty_model
from tsrnn.forecasters._settings import Settings
from tsrnn.layers._cells import check_saveable

if TYPE_CHECKING:
    from tsrnn.forecasters._recurrent import RecurrentForecaster

_MODEL = "model."  # before the names of the network's parameters


def header_of(forecaster: RecurrentForecaster) -> dict[str, Any]:
    """What was fitted, as JSON values.

    Raises
    ------
    TypeError
        If the cell is one of the user's own.
    """
    check_saveable(forecaster.settings_.options.get("cell"))
    return {
        "settings": asdict(forecaster.settings_),
        "intervals": forecaster.calibration_.method,
        "history": forecaster.history_,
        "best_epochs": forecaster.best_epochs_,
        "sample_length": forecaster.sample_length_,
        "linear_path": forecaster.linear_path_,
        "validation": forecaster.validation_.to_dict("list"),
    }


def arrays_of(forecaster: RecurrentForecaster) -> dict[str, np.ndarray]:
    """What was fitted, as arrays: the network and the memory."""
    memory, scaling = forecaster.memory_, forecaster.memory_.scaling
    return {
        "n_rows": memory.n_rows,
        "location": scaling.target.location,
        "scale": scaling.target.scale,
        "exog_location": scaling.exog.location,
        "exog_scale": scaling.exog.scale,
        "constant": scaling.constant,
        "deviation": scaling.deviation,
        "tail": np.vstack(memory.tail),
        "tail_lengths": np.array([len(rows) for rows in memory.tail]),
        "errors": forecaster.calibration_.errors,
        "state": memory.state.numpy(),
        "sample": forecaster.sample_.numpy(),
        **{_MODEL + name: p.numpy() for name, p in forecaster.model_.state_dict().items()},
    }


def revive(
    forecaster: RecurrentForecaster, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Set what was fitted, but for the memory."""
    layout, exog_names = forecaster._panel_shape
    settings = Settings(**header["settings"])
    known = [exog_names.index(name) for name in forecaster.known_ahead_]
    model = empty_model(settings, len(layout.target_names), len(exog_names), known)
    weights = {
        name.removeprefix(_MODEL): torch.as_tensor(array)
        for name, array in arrays.items()
        if name.startswith(_MODEL)
    }
    model.load_state_dict(weights)
    forecaster._set_model(settings, model.eval())
    forecaster.history_, forecaster.best_epochs_ = header["history"], header["best_epochs"]
    forecaster.sample_length_ = header["sample_length"]
    forecaster.linear_path_ = header["linear_path"]
    steps = pd.RangeIndex(1, settings.horizon + 1, name="step")
    forecaster.validation_ = pd.DataFrame(header["validation"], index=steps)
    forecaster.calibration_ = Calibration(arrays["errors"], header["intervals"])
    forecaster.sample_ = torch.as_tensor(arrays["sample"])


def revived_memory(
    arrays: dict[str, np.ndarray], ids: pd.Index, last_times: np.ndarray, exponent: float | None
) -> Memory:
    """The memory whose arrays `arrays_of` gave."""
    scaling = Scaling(
        Scaler(arrays["location"], arrays["scale"]),
        Scaler(arrays["exog_location"], arrays["exog_scale"], pooled=True),
        arrays["constant"],
        arrays["deviation"],
        exponent,
    )
    borders = np.cumsum(arrays["tail_lengths"])[:-1]
    return Memory(
        ids=ids,
        fitted=np.arange(len(ids)),
        last_times=last_times,
        n_rows=arrays["n_rows"],
        scaling=scaling,
        tail=np.split(arrays["tail"], borders),
        state=torch.as_tensor(arrays["state"]),
    )
