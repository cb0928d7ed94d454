"""What a file holds of a fitted estimator, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler

from tsrnn.contract import arguments_of, plain
from tsrnn.erm._risk import Risk, risk_of
from tsrnn.erm._scaling import from_moments
from tsrnn.layers._cells import check_saveable

if TYPE_CHECKING:
    from tsrnn.erm._base import SequenceEstimator

_NETWORK = "network."  # before the names of its parameters


def header_of(estimator: SequenceEstimator) -> dict[str, Any]:
    """JSON values.

    Raises
    ------
    TypeError
        If an argument is no JSON value, as a cell of one's own is not.
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
            "n_train": estimator.n_train_,
            "n_validation": estimator.n_validation_,
            "history": estimator.history_,
            "best_epoch": estimator.best_epoch_,
            "sample_length": estimator.sample_length_,
            "validation_skill": estimator.validation_skill_,
            **estimator._target_header(),
        },
    }


def arrays_of(estimator: SequenceEstimator) -> dict[str, np.ndarray]:
    """Arrays."""
    return {
        "sample": estimator.sample_.numpy(),
        **_moments("input", estimator.input_scaler_),
        **_moments("target", estimator.target_scaler_),
        **_losses("training", estimator.training_risk_),
        **_losses("validation", estimator.validation_risk_),
        **{_NETWORK + name: p.numpy() for name, p in estimator.network_.state_dict().items()},
    }


def revive(
    estimator: SequenceEstimator, fitted: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Give an estimator back what was fitted."""
    estimator.n_features_in_, estimator._fitted_to_table = fitted["n_features_in"], fitted["table"]
    if fitted["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(fitted["feature_names"], dtype=object)
    estimator.n_train_, estimator.n_validation_ = fitted["n_train"], fitted["n_validation"]
    estimator.input_scaler_ = _scaler("input", arrays)
    estimator.target_scaler_ = _scaler("target", arrays)
    estimator._set_targets(fitted)
    estimator._make_network(fitted["n_inputs"])
    weights = {
        name.removeprefix(_NETWORK): torch.as_tensor(array)
        for name, array in arrays.items()
        if name.startswith(_NETWORK)
    }
    estimator.network_.load_state_dict(weights)
    estimator.network_.eval()
    estimator.history_, estimator.best_epoch_ = fitted["history"], fitted["best_epoch"]
    estimator.validation_skill_ = fitted["validation_skill"]
    estimator.sample_length_ = fitted["sample_length"]
    estimator.sample_ = torch.as_tensor(arrays["sample"])
    training = _risk("training", arrays, estimator._loss)
    assert training is not None  # every fit has samples
    estimator.training_risk_ = training
    estimator.validation_risk_ = _risk("validation", arrays, estimator._loss)


def _moments(name: str, scaler: StandardScaler | None) -> dict[str, np.ndarray]:
    if scaler is None:
        return {}
    return {f"{name}_mean": scaler.mean_, f"{name}_scale": scaler.scale_}


def _losses(name: str, risk: Risk | None) -> dict[str, np.ndarray]:
    if risk is None:
        return {}
    weights = {} if risk.weights is None else {f"{name}_weights": risk.weights}
    return {f"{name}_losses": risk.losses, **weights}


def _risk(name: str, arrays: dict[str, np.ndarray], loss: str) -> Risk | None:
    losses = arrays.get(f"{name}_losses")
    return None if losses is None else risk_of(losses, arrays.get(f"{name}_weights"), loss, 0)


def _scaler(name: str, arrays: dict[str, np.ndarray]) -> StandardScaler | None:
    mean = arrays.get(f"{name}_mean")
    return None if mean is None else from_moments(mean, arrays[f"{name}_scale"])
