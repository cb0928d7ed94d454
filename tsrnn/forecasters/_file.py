"""Read fitted networks from a file; every field and array is checked before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from tsrnn.contract import (
    MOST_STEPS,
    Arguments,
    Calibration,
    FittedData,
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
from tsrnn.data import Scaler
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._fitted import WEIGHTS, FittedNetworks
from tsrnn.forecasters._model import ForecastModel, empty_model, model_without_values
from tsrnn.forecasters._scaling import Scaling
from tsrnn.forecasters._settings import LOSSES, Settings
from tsrnn.forecasters._state import RecurrentState
from tsrnn.layers import AGGREGATIONS, LAYERS, MOST_SIZE, Recurrent

# Fields of a file in addition to the fields of every forecaster.
FITTED: dict[str, Kind] = {
    "settings": by_name(anything),
    "intervals": text,
    "pooled_units": integer(1),
    "history": listed(by_name(anything)),
    "best_epochs": listed(integer(0)),
    "sample_length": integer(1),
    "linear_path": by_name(anything),
    "validation": by_name(listed(real)),
    "tests": by_name(anything),
}


def from_file(
    arguments: Arguments,
    data: FittedData,
    filled: dict[str, Any],
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    last_times: np.ndarray,
) -> tuple[FittedNetworks, RecurrentState]:
    """Read the fitted networks and the state that `FittedNetworks.to_file` wrote.

    `filled` are the resolved arguments. Errors name the damaged field or array.
    """
    settings = Settings(**header["settings"])
    if settings.boxcox != filled["boxcox"]:
        raise refuse(
            "fitted.settings.boxcox", f"that of use_boxcox, {filled['boxcox']}", settings.boxcox
        )
    check_learned(header, settings)
    # Files of earlier versions have no sample rows and no sizes of pooled errors.
    arrays.setdefault("sample_rows", np.zeros((1, 0, arrays["sample"].shape[-1]), np.float32))
    arrays.setdefault("error_units", np.zeros(0, np.int64))
    arrays.setdefault("error_sizes", np.zeros((0, arrays["errors"].shape[-1])))
    known = [data.exog_names.index(name) for name in data.known_ahead]
    sizes = data.n_targets, len(data.exog_names), known
    with as_saved("fitted.settings"):
        shaped = model_without_values(settings, *sizes)
    check_shapes(arrays, settings, shaped, data)
    model = empty_model(settings, *sizes)
    model.load_state_dict(
        {
            name.removeprefix(WEIGHTS): torch.as_tensor(array)
            for name, array in arrays.items()
            if name.startswith(WEIGHTS)
        }
    )
    scaling = Scaling(
        Scaler(arrays["location"], arrays["scale"]),
        Scaler(arrays["exog_location"], arrays["exog_scale"], pooled=True),
        arrays["constant"],
        arrays["deviation"],
        settings.boxcox,
    )
    pooled: dict[str, Any] = {}
    if len(arrays["error_sizes"]):
        pooled = {"units": arrays["error_units"], "sizes": arrays["error_sizes"]}
    steps = pd.RangeIndex(1, settings.horizon + 1, name="step")
    fitted = FittedNetworks(
        arguments=arguments,
        data=data,
        settings=settings,
        model=model.eval(),
        calibration=Calibration(
            arrays["errors"], header["intervals"], header["pooled_units"], **pooled
        ),
        scaling=scaling,
        history=header["history"],
        best_epochs=header["best_epochs"],
        linear_path=header["linear_path"],
        validation=pd.DataFrame(header["validation"], index=steps),
        tests=tests_of(header["tests"]),
        sample=torch.as_tensor(arrays["sample"]),
        sample_rows=torch.as_tensor(arrays["sample_rows"]),
        sample_length=header["sample_length"],
    )
    state = RecurrentState(
        ids=data.ids,
        fitted=np.arange(len(data.ids)),
        last_times=last_times,
        n_rows=arrays["n_rows"],
        scaling=scaling,
        tail=np.split(arrays["tail"], np.cumsum(arrays["tail_lengths"])[:-1]),
        hidden=torch.as_tensor(arrays["state"]),
    )
    return fitted, state


def check_settings(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Check the fields of a file and its settings."""
    record(FITTED)(header, "fitted")
    # Sizes larger than any array are refused before memory is allocated for them.
    most = max(MOST_SIZE, *(array.size for array in arrays.values()))
    record(settings_kinds(most, len(arrays)))(header["settings"], "fitted.settings")
    for name, value in header["settings"]["options"].items():
        if isinstance(value, int) and abs(value) > most:
            raise refuse(f"fitted.settings.options.{name}", f"at most {most}", value)


def settings_kinds(most: int, n_arrays: int) -> dict[str, Kind]:
    """Kinds of the fields of `Settings`, with sizes up to `most`."""
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
        "local_levels": listed(truth),
        "linear_path": truth,
        "network": one_of(True, False, "auto"),
        "boxcox": optional(real),
        "multivariate": one_of("independent", "joint", "factor"),
        "factor_lags": integer(0, most),
        "n_factors": integer(0, most),
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
    """Check the training history, the linear path and the validation errors."""
    one_of(settings.intervals)(header["intervals"], "fitted.intervals")
    listed(by_name(optional(real)))(header["history"], "fitted.history")
    listed(integer(0), settings.n_estimators)(header["best_epochs"], "fitted.best_epochs")
    for i, entry in enumerate(header["history"]):
        for name, kind in {"epoch": integer(0), "learning_rate": real}.items():
            kind(entry.get(name), f"fitted.history[{i}].{name}")
    path = {"prior": text, "penalty": real, "varying": truth, "reverting": truth, "error": real}
    optional_kinds = {"factor_gain": real, "factor_statistic": real}
    path |= {name: kind for name, kind in optional_kinds.items() if name in header["linear_path"]}
    if settings.factor:
        path |= {"factor_penalty": real, "factor_levels": truth}
    record(path if settings.linear_path else {})(header["linear_path"], "fitted.linear_path")
    usable = settings.linear_path and 0 < settings.factor_lags <= settings.input_size
    if settings.factor and not (usable and settings.n_factors > 0):
        required = "rows of the input size, factors and a linear path"
        raise refuse("fitted.settings.multivariate", required, settings.multivariate)
    by_name(listed(real, settings.horizon))(header["validation"], "fitted.validation")
    if "model" not in header["validation"]:
        raise refuse("fitted.validation", "errors of 'model', among others", header["validation"])


def check_sizes(arrays: dict[str, np.ndarray], n_units: int) -> None:
    """Check the units of pooled errors and the error sizes by unit; both may be empty."""
    errors, units, sizes = (arrays[name] for name in ("errors", "error_units", "error_sizes"))
    if not len(units) and not len(sizes):
        return
    if len(sizes) != n_units or not (np.isnan(sizes) | ((sizes > 0) & np.isfinite(sizes))).all():
        raise refuse("the array 'error_sizes'", f"positive, of {n_units} units", sizes.shape)
    if errors.shape[:2] != (1, len(units)) or not ((units >= 0) & (units < n_units)).all():
        raise refuse("the array 'error_units'", "a unit of each pooled error", units.shape)


def tests_of(columns: dict[str, Any]) -> pd.DataFrame:
    """Read the tests of the forecast parts that `FittedNetworks.to_file` wrote."""
    names = ["step", "part"]
    if not columns:  # file of an earlier version
        empty = pd.MultiIndex.from_arrays([[], []], names=names)
        return pd.DataFrame(columns=["n", "gain", "statistic", "p_value"], index=empty)
    count = len(columns["step"]) if isinstance(columns.get("step"), list) else 0
    kinds = {
        "step": listed(text, count),
        "part": listed(text, count),
        "n": listed(integer(0), count),
    }
    kinds |= dict.fromkeys(["gain", "statistic", "p_value"], listed(real, count))
    record(kinds)(columns, "fitted.tests")
    steps = [int(step) if step.isdigit() else step for step in columns["step"]]
    index = pd.MultiIndex.from_arrays([steps, columns["part"]], names=names)
    return pd.DataFrame({name: columns[name] for name in kinds if name not in names}, index)


def check_shapes(
    arrays: dict[str, np.ndarray], settings: Settings, model: ForecastModel, data: FittedData
) -> None:
    """Check arrays against the parameters of a model and the shape of the data."""
    n_series, n_targets, n_exog = len(data.ids), data.n_targets, len(data.exog_names)
    n_joint = n_targets if settings.joint else 1  # number of targets of a unit
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
        "error_units": ("int64", (-1,)),
        "error_sizes": ("float64", (-1, n_joint)),
        "state": ("float32", state),
        "sample": ("float32", (-1, -1, n_joint + n_exog)),
        "sample_rows": ("float32", (-1, -1, n_joint + n_exog)),
    }
    for name, parameter in model.state_dict().items():
        dtype = str(parameter.dtype).removeprefix("torch.")
        shapes[WEIGHTS + name] = dtype, tuple(parameter.shape)
    check_arrays(arrays, shapes, positive=("n_rows",))
    if len(arrays["errors"]) not in (1, n_units):
        required = f"of 1 unit, or of all {n_units}"
        raise refuse("the array 'errors'", required, arrays["errors"].shape)
    check_sizes(arrays, n_units)
    if not arrays["sample"].size:
        raise refuse("the array 'sample'", "of at least one row", arrays["sample"].shape)
    lengths, n_rows = arrays["tail_lengths"], len(arrays["tail"])
    if not ((lengths > 0) & (lengths <= n_rows)).all() or lengths.sum() != n_rows:
        required = f"the rows of each series, {n_rows} in all"
        raise refuse("the array 'tail_lengths'", required, lengths.tolist()[:8])
