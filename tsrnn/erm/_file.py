"""File of a fitted estimator: its header, its arrays, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler

from tsrnn.contract import (
    Kind,
    anything,
    arguments_of,
    as_saved,
    by_name,
    check_arrays,
    integer,
    listed,
    optional,
    plain,
    real,
    record,
    refuse,
    text,
    truth,
)
from tsrnn.erm._risk import Risk, risk_of
from tsrnn.erm._settings import SIZES
from tsrnn.erm._training import from_moments
from tsrnn.layers import check_saveable

if TYPE_CHECKING:
    from tsrnn.erm._estimator import SequenceEstimator

_NETWORK = "network."  # before the names of its parameters
MOST_SIZE = 1000  # of an option of layers beside small arrays
# Attributes that a file has as they are, without the underscore.
RECORD = (
    "n_train", "n_validation", "history", "best_epoch", "sample_length", "validation_skill",
)  # fmt: skip
# Fields of every estimator, and those of its fit.
COMMON: dict[str, Kind] = {
    "format": integer(1),
    "version": text,
    "class": text,
    "params": by_name(anything),
    "tuples": listed(text),
    "fitted": by_name(anything),
}
FITTED: dict[str, Kind] = {
    "n_features_in": integer(1),
    "feature_names": optional(listed(text)),
    "table": truth,
    "n_inputs": integer(1),
    "n_train": integer(0),
    "n_validation": integer(0),
    "history": listed(by_name(optional(real))),
    "best_epoch": integer(0),
    "sample_length": integer(1),
    "validation_skill": optional(real),
}


def header_of(estimator: SequenceEstimator) -> dict[str, Any]:
    """Header of the file, JSON values.

    Raises
    ------
    TypeError
        If an argument cannot be written as JSON, such as your own cell.
    """
    check_saveable(estimator.arguments_.cell)
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "class": type(estimator).__name__,
        **arguments_of(estimator),
        "fitted": {
            "n_features_in": estimator.n_features_in_,
            "feature_names": None if names is None else plain(names, "columns of X"),
            "table": estimator._fitted_to_table,
            "n_inputs": estimator.sample_.shape[2],
            **{name: getattr(estimator, f"{name}_") for name in RECORD},
            **estimator._target_header(),
        },
    }


def arrays_of(estimator: SequenceEstimator) -> dict[str, np.ndarray]:
    """Arrays of the file by name."""
    arrays = {"sample": estimator.sample_.numpy()}
    for name, scaler in (("input", estimator.input_scaler_), ("target", estimator.target_scaler_)):
        if scaler is not None:
            arrays |= {f"{name}_mean": scaler.mean_, f"{name}_scale": scaler.scale_}
    risks = {"training": estimator.training_risk_, "validation": estimator.validation_risk_}
    for name, risk in risks.items():
        if risk is not None:
            arrays[f"{name}_losses"] = risk.losses
            if risk.weights is not None:
                arrays[f"{name}_weights"] = risk.weights
    network = estimator.network_.state_dict()
    return arrays | {_NETWORK + name: p.numpy() for name, p in network.items()}


def revive(
    estimator: SequenceEstimator, fitted: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Restore the fit of an estimator.

    Raises
    ------
    DamagedFileError
        Naming the field or array that is not as it was written.
    """
    record(FITTED | estimator._target_kinds())(fitted, "fitted")
    _check_sizes(estimator, fitted, arrays)
    estimator.n_features_in_, estimator._fitted_to_table = fitted["n_features_in"], fitted["table"]
    if fitted["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(fitted["feature_names"], dtype=object)
    estimator.input_scaler_ = _scaler("input", arrays)
    estimator.target_scaler_ = _scaler("target", arrays)
    estimator._set_targets(fitted)
    _check_arrays(estimator, fitted, arrays)
    estimator._make_network(fitted["n_inputs"])
    weights = {
        name.removeprefix(_NETWORK): torch.as_tensor(array)
        for name, array in arrays.items()
        if name.startswith(_NETWORK)
    }
    estimator.network_.load_state_dict(weights)
    estimator.network_.eval()
    for name in RECORD:
        setattr(estimator, f"{name}_", fitted[name])
    estimator.sample_ = torch.as_tensor(arrays["sample"])
    training = _risk("training", arrays, estimator._loss)
    assert training is not None  # every fit has samples
    estimator.training_risk_ = training
    estimator.validation_risk_ = _risk("validation", arrays, estimator._loss)


def _check_sizes(
    estimator: SequenceEstimator, fitted: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Refuse sizes of a network that the arrays do not bear out, before it is built."""
    most = max(MOST_SIZE, *(array.size for array in arrays.values()))
    params = estimator.get_params(deep=False)
    further = params["layer_options"] if isinstance(params["layer_options"], dict) else {}
    sizes = {f"params.{name}": params[name] for name in ("hidden_size", *SIZES)}
    sizes |= {f"params.layer_options.{name}": value for name, value in further.items()}
    sizes |= {f"fitted.{name}": fitted[name] for name in ("n_inputs", "n_features_in")}
    for place, value in sizes.items():
        if isinstance(value, int) and abs(value) > most:
            raise refuse(place, f"at most {most}, by the arrays", value)
    if isinstance(params["n_layers"], int) and params["n_layers"] > len(arrays):
        raise refuse("params.n_layers", f"at most {len(arrays)}, by the arrays", params["n_layers"])
    with as_saved("params"):
        estimator._check_settings()
    names, n = fitted["feature_names"], fitted["n_features_in"]
    optional(listed(text, n))(names, "fitted.feature_names")
    inputs = 1 if fitted["table"] else n
    if fitted["n_inputs"] != inputs:
        raise refuse("fitted.n_inputs", f"{inputs}, by n_features_in and table", fitted["n_inputs"])
    for i, entry in enumerate(fitted["history"]):
        for name, kind in {"epoch": integer(0), "learning_rate": real}.items():
            kind(entry.get(name), f"fitted.history[{i}].{name}")


def _check_arrays(
    estimator: SequenceEstimator, fitted: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Refuse arrays that are not those of the network, its scalers and its risks."""
    n_inputs, n_outputs = fitted["n_inputs"], estimator._n_outputs()
    with as_saved("params"):
        network = estimator._network_without_memory(n_inputs)
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "sample": ("float32", (-1, -1, n_inputs)),
        "training_losses": ("float64", (-1,)),
        "validation_losses": ("float64", (-1,)),
    }
    for name in ("training", "validation"):
        if f"{name}_losses" in arrays:
            shapes[f"{name}_weights"] = "float64", arrays[f"{name}_losses"].shape
    for name, size, scaler in (
        ("input", n_inputs, estimator.input_scaler_),
        ("target", n_outputs, estimator.target_scaler_),
    ):
        if scaler is not None:
            shapes |= dict.fromkeys((f"{name}_mean", f"{name}_scale"), ("float64", (size,)))
    for name, parameter in network.state_dict().items():
        dtype = str(parameter.dtype).removeprefix("torch.")
        shapes[_NETWORK + name] = dtype, tuple(parameter.shape)
    check_arrays(
        arrays, shapes, may_lack=["validation_losses", "training_weights", "validation_weights"]
    )
    if bool(estimator.standardize) != (estimator.input_scaler_ is not None):
        raise refuse("the array 'input_mean'", "there if standardize is True", sorted(arrays))
    for name in ("sample", "training_losses"):
        if not arrays[name].size:
            raise refuse(f"the array {name!r}", "not empty", arrays[name].shape)


def _risk(name: str, arrays: dict[str, np.ndarray], loss: str) -> Risk | None:
    losses = arrays.get(f"{name}_losses")
    return None if losses is None else risk_of(losses, arrays.get(f"{name}_weights"), loss, 0)


def _scaler(name: str, arrays: dict[str, np.ndarray]) -> StandardScaler | None:
    mean, scale = arrays.get(f"{name}_mean"), arrays.get(f"{name}_scale")
    if mean is None or scale is None:
        return None
    if mean.ndim != 1 or mean.shape != scale.shape or mean.dtype != scale.dtype:
        raise refuse(f"the array '{name}_scale'", f"as '{name}_mean', a row", scale.shape)
    return from_moments(mean, scale)
