"""File of a fitted recurrent forecaster: its header and arrays, and their checks when read."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from tsrnn.contract import (
    MOST_STEPS,
    Kind,
    anything,
    as_saved,
    by_name,
    check_arrays,
    integer,
    listed,
    one_of,
    optional,
    positive,
    real,
    record,
    refuse,
    text,
    truth,
)
from tsrnn.data import Layout, Scaler
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._intervals import Calibration
from tsrnn.forecasters._memory import Memory
from tsrnn.forecasters._model import ForecastModel, empty_model, model_without_memory
from tsrnn.forecasters._scaling import Scaling
from tsrnn.forecasters._settings import LOSSES, Settings, resolve
from tsrnn.layers import AGGREGATIONS, LAYERS, Recurrent, check_saveable

if TYPE_CHECKING:
    from tsrnn.forecasters._recurrent import RecurrentForecaster

_MODEL = "model."  # before the names of the network's parameters
# Fields of a file beside those of every forecaster.
FITTED: dict[str, Kind] = {
    "settings": by_name(anything),
    "intervals": text,
    "history": listed(by_name(anything)),
    "best_epochs": listed(integer(0)),
    "sample_length": integer(1),
    "linear_path": by_name(anything),
    "validation": by_name(listed(real)),
}
MOST_SIZE = 1000  # that an option of layers may have beside small arrays


def header_of(forecaster: RecurrentForecaster) -> dict[str, Any]:
    """Settings and course of the training, as JSON values.

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
    """Network and memory, as arrays."""
    memory, scaling = forecaster.state_, forecaster.state_.scaling
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
    forecaster: RecurrentForecaster,
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    n_series: int,
) -> None:
    """Set the fitted attributes of a forecaster, except its memory.

    Raises
    ------
    DamagedFileError
        With the field or array that is not as it was written.
    """
    layout, exog_names = forecaster._panel_shape
    record(FITTED)(header, "fitted")
    # A size beyond that of any array is refused before anything as large is allocated.
    most = max(MOST_SIZE, *(array.size for array in arrays.values()))
    record(settings_kinds(most, len(arrays)))(header["settings"], "fitted.settings")
    for name, value in header["settings"]["options"].items():
        if isinstance(value, int) and abs(value) > most:
            raise refuse(f"fitted.settings.options.{name}", f"at most {most}", value)
    with as_saved("params"):
        filled = resolve(forecaster.get_params(deep=False), forecaster.presets)
        forecaster._layer(filled)
    settings = Settings(**header["settings"])
    if settings.boxcox != filled["boxcox"]:
        raise refuse(
            "fitted.settings.boxcox", f"that of use_boxcox, {filled['boxcox']}", settings.boxcox
        )
    check_learned(header, settings)
    known = [exog_names.index(name) for name in forecaster.known_ahead_]
    sizes = len(layout.target_names), len(exog_names), known
    with as_saved("fitted.settings"):
        shaped = model_without_memory(settings, *sizes)
    check_shapes(arrays, settings, shaped, forecaster._panel_shape, n_series)
    model = empty_model(settings, *sizes)
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


def settings_kinds(most: int, n_arrays: int) -> dict[str, Kind]:
    """Kinds of the fields of `Settings` in a file whose arrays have up to `most` numbers."""
    size, part = integer(1, most), integer(1, max(n_arrays, 1))
    return {
        "horizon": integer(1, min(most, MOST_STEPS)),
        "input_size": size,
        "input_sizes": listed(integer(1)),
        "season": integer(1),
        "seasons": listed(integer(1)),
        "val_size": integer(1),
        "layer": one_of(*LAYERS),
        "options": by_name(anything),
        "hidden_size": size,
        "n_layers": part,
        "aggregation": one_of(*AGGREGATIONS),
        "input_projection": truth,
        "local_level": truth,
        "linear_path": truth,
        "boxcox": optional(real),
        "multivariate": one_of("independent", "joint"),
        "intervals": one_of("conformal", "gaussian", *HEADS),
        "loss": one_of(*LOSSES, *HEADS),
        "learning_rate": positive,
        "weight_decay": real,
        "batch_size": integer(1),
        "max_epochs": integer(1),
        "patience": optional(integer(1)),
        "n_estimators": part,
        "refit": truth,
    }


def check_learned(header: dict[str, Any], settings: Settings) -> None:
    """Check the record of the training."""
    one_of(settings.intervals)(header["intervals"], "fitted.intervals")
    listed(by_name(optional(real)))(header["history"], "fitted.history")
    listed(integer(0), settings.n_estimators)(header["best_epochs"], "fitted.best_epochs")
    for i, entry in enumerate(header["history"]):
        for name, kind in {"epoch": integer(0), "learning_rate": real}.items():
            kind(entry.get(name), f"fitted.history[{i}].{name}")
    path = {"prior": text, "penalty": real, "varying": truth, "reverting": truth, "error": real}
    record(path if settings.linear_path else {})(header["linear_path"], "fitted.linear_path")
    by_name(listed(real, settings.horizon))(header["validation"], "fitted.validation")
    if "model" not in header["validation"]:
        raise refuse("fitted.validation", "errors of 'model', among others", header["validation"])


def check_shapes(
    arrays: dict[str, np.ndarray],
    settings: Settings,
    model: ForecastModel,
    shape: tuple[Layout, tuple[str | int, ...]],
    n_series: int,
) -> None:
    """Check arrays by the parameters of a model and the shape of the data."""
    n_targets, n_exog = len(shape[0].target_names), len(shape[1])
    n_joint = n_targets if settings.joint else 1  # targets of a unit
    n_units = n_series * n_targets // n_joint
    network: Any = model.network
    rnn: Recurrent = (network.networks[0] if settings.n_estimators > 1 else network).rnn
    state = rnn.num_layers, n_units, settings.n_estimators * rnn.state_size
    by_series = ("float64", (n_series, n_targets))
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "n_rows": ("int64", (n_series,)),
        "location": by_series,
        "scale": by_series,
        "deviation": by_series,
        "constant": ("bool", (n_series, n_targets)),
        "exog_location": ("float64", (1, n_exog)),
        "exog_scale": ("float64", (1, n_exog)),
        "tail": ("float64", (-1, n_targets + n_exog)),
        "tail_lengths": ("int64", (n_series,)),
        "errors": ("float32", (-1, -1, settings.horizon, n_joint)),
        "state": ("float32", state),
        "sample": ("float32", (-1, -1, n_joint + n_exog)),
    }
    for name, parameter in model.state_dict().items():
        dtype = str(parameter.dtype).removeprefix("torch.")
        shapes[_MODEL + name] = dtype, tuple(parameter.shape)
    check_arrays(arrays, shapes)
    if len(arrays["errors"]) not in (1, n_units):
        required = f"of 1 unit, or of all {n_units}"
        raise refuse("the array 'errors'", required, arrays["errors"].shape)
    if not arrays["sample"].size:
        raise refuse("the array 'sample'", "of at least one row", arrays["sample"].shape)
    lengths, n_rows = arrays["tail_lengths"], len(arrays["tail"])
    if not ((lengths > 0) & (lengths <= n_rows)).all() or lengths.sum() != n_rows:
        required = f"the rows of each series, {n_rows} in all"
        raise refuse("the array 'tail_lengths'", required, lengths.tolist()[:8])


def revived_memory(
    arrays: dict[str, np.ndarray], ids: pd.Index, last_times: np.ndarray, exponent: float | None
) -> Memory:
    """Memory from the arrays that `arrays_of` returned."""
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
