"""Losses of samples: one number per sample, whatever the shape of its target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from tsrnn.contract import Arguments, choice
from tsrnn.erm._resampling import count

__all__ = [
    "LOSSES",
    "Loss",
    "checked_loss",
    "default_loss",
    "loss_name",
    "sample_losses",
    "squared_errors",
]

LOSSES = ("squared_error", "absolute_error", "log_loss", "zero_one")

Loss = str | Callable[[Any, Any], Any]


def sample_losses(estimator: Any, X: Any, z: Any, loss: Loss) -> np.ndarray:
    r"""Return the losses (N,) of a fitted estimator, each a mean over outputs and steps.

    .. math:: \ell_i = \frac{1}{m_i} \sum_{j=1}^{m_i} \ell(z_{i,j}, \hat z_{i,j}).

    X, z and loss are as in `empirical_risk`. Predictions have the shape of z; one of them may lack
    a last axis of length 1. The log loss of a label of probability 0 is infinite.
    """
    n = count(X)
    if count(z) != n:
        raise ValueError(f"X and z must have as many samples; got {n} and {count(z)}")
    if callable(loss):
        losses = loss(z, estimator.predict(X))
    elif loss == "log_loss":
        losses = _log_losses(estimator, X, z)
    else:
        losses = _entry_losses(loss, z, estimator.predict(X))
    return _checked(losses, n, loss_name(loss))


def squared_errors(z: Any, prediction: Any) -> np.ndarray:
    """Return the mean squared error of each sample over outputs and steps, shape (N,)."""
    return _checked(_entry_losses("squared_error", z, prediction), count(z), "squared_error")


def default_loss(estimator: Any) -> str:
    """Return the default loss of an estimator."""
    if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator):
        return "log_loss" if hasattr(estimator, "predict_proba") else "zero_one"
    arguments = getattr(estimator, "arguments_", None)
    if isinstance(arguments, Arguments):  # of the fit
        params = arguments.as_dict()
    else:
        params = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    loss = params.get("loss")
    return loss if isinstance(loss, str) and loss in LOSSES else "squared_error"


def checked_loss(loss: Any) -> Loss:
    """Return `loss`, checked to be callable or the name of a loss."""
    return loss if callable(loss) else choice("loss", loss, LOSSES)


def loss_name(loss: Loss) -> str:
    """Return the name of a loss; for a callable, the name of the function or class."""
    if isinstance(loss, str):
        return loss
    return str(getattr(loss, "__name__", type(loss).__name__))


def _entry_losses(loss: str, z: Any, prediction: Any) -> np.ndarray:
    """Return the loss of each sample, a mean over its entries."""
    if count(prediction) != count(z):
        raise ValueError(
            f"there must be one prediction per sample; got {count(prediction)} for {count(z)} "
            "samples"
        )

    def of_entries(z: np.ndarray, prediction: np.ndarray, where: str) -> np.ndarray:
        z, prediction = _aligned(z, prediction, where)
        if loss == "zero_one":
            return _different(z, prediction)
        error = _real(z, "targets") - _real(prediction, "predictions")
        return error**2 if loss == "squared_error" else np.abs(error)

    return _sample_means(of_entries, z, prediction)


def _different(z: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """Return 1 where labels differ, else 0; refuse to compare text with numbers."""
    z, prediction = _inferred(z), _inferred(prediction)
    if (z.dtype.kind in "biuf") != (prediction.dtype.kind in "biuf"):
        raise TypeError(
            "labels and predictions must both be numbers or both be text; got "
            f"{z.dtype} and {prediction.dtype}. Give z as the estimator was fitted to it."
        )
    return np.not_equal(z, prediction).astype(float)


def _inferred(labels: np.ndarray) -> np.ndarray:
    """Convert labels of dtype object to their common dtype."""
    if labels.dtype != object:
        return labels
    return np.array(labels.ravel().tolist()).reshape(labels.shape)


def _log_losses(estimator: Any, X: Any, z: Any) -> np.ndarray:
    """Return minus the log probability of the labels, a mean over steps."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"loss 'log_loss' needs predict_proba, which {type(estimator).__name__} has not; "
            "'zero_one' needs predict only"
        )
    if any(np.ndim(labels) for labels in estimator.classes_):
        raise ValueError(
            "loss 'log_loss' needs a classifier of one output; classes_ has the labels of "
            f"{len(estimator.classes_)} outputs. Fit one classifier per output."
        )
    place = {label: i for i, label in enumerate(np.asarray(estimator.classes_).tolist())}
    probability = estimator.predict_proba(X)
    if count(probability) != count(z):
        raise ValueError(
            f"there must be probabilities for every sample; got {count(probability)} for {count(z)}"
        )
    return _sample_means(lambda *entries: _surprise(place, *entries), z, probability)


def _surprise(
    place: dict[Any, int], z: np.ndarray, probability: np.ndarray, where: str
) -> np.ndarray:
    """Return -log p of each label; z has shape (...), probabilities (..., classes)."""
    if z.shape == (*probability.shape[:-1], 1):
        z = z[..., 0]
    if probability.shape != (*z.shape, len(place)):
        raise ValueError(
            f"labels of {where} have shape {z.shape}, so that probabilities must have "
            f"{(*z.shape, len(place))}; got {probability.shape}"
        )
    # atol for probabilities in float32.
    if not np.allclose(probability.sum(-1), 1.0, atol=1e-3) or probability.min(initial=0) < 0:
        raise ValueError(f"probabilities of {where} must not be negative and must sum to 1")
    labels, inverse = np.unique(z, return_inverse=True)  # one dictionary look-up per distinct label
    unseen = [label for label in labels.tolist() if label not in place]
    if unseen:
        raise ValueError(
            f"labels of {where} must be among classes_ {list(place)}, which the classifier was "
            f"fitted to; got {unseen}. In cross-validation a stratified splitter keeps every "
            "label in every training part."
        )
    column = np.array([place[label] for label in labels.tolist()], int)[inverse].reshape(z.shape)
    chosen = np.take_along_axis(probability, column[..., None], -1)[..., 0].astype(float)
    # No clipping: probability 0 gives an infinite loss. The inner 1 avoids a warning of log(0).
    return np.where(chosen > 0, -np.log(np.where(chosen > 0, chosen, 1.0)), np.inf)


def _sample_means(
    of_entries: Callable[[np.ndarray, np.ndarray, str], np.ndarray], z: Any, prediction: Any
) -> np.ndarray:
    """Return the mean loss of each sample; samples of different shapes go one by one."""
    if not (_is_ragged(z) or _is_ragged(prediction)):
        losses = of_entries(np.asarray(z), np.asarray(prediction), "the samples")
        if losses.size == 0:
            raise ValueError(
                f"every sample needs at least one value; got targets of {losses.shape}"
            )
        return losses.reshape(len(losses), -1).mean(1)
    z, prediction = (
        values if isinstance(values, list | tuple) else np.asarray(values)
        for values in (z, prediction)
    )
    means = []
    for i, (a, b) in enumerate(zip(z, prediction, strict=True)):
        losses = of_entries(np.asarray(a), np.asarray(b), f"sample {i}")
        if losses.size == 0:
            raise ValueError(f"every sample needs at least one value; sample {i} has none")
        means.append(float(losses.mean()))
    return np.array(means)


def _is_ragged(values: Any) -> bool:
    """Return True if samples are separate arrays, perhaps of different lengths."""
    if isinstance(values, list | tuple):
        return any(np.ndim(value) for value in values)
    array = np.asarray(values)
    return array.dtype == object and any(np.ndim(value) for value in array.flat)


def _aligned(z: np.ndarray, prediction: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    if z.shape == (*prediction.shape, 1):
        z = z[..., 0]
    elif prediction.shape == (*z.shape, 1):
        prediction = prediction[..., 0]
    if z.shape != prediction.shape:
        raise ValueError(
            f"predictions of {where} must have the shape {z.shape} of their targets; got "
            f"{prediction.shape}"
        )
    return z, prediction


def _real(values: np.ndarray, what: str) -> np.ndarray:
    try:
        if values.dtype.kind in "biufO":
            return values.astype(float)
    except (TypeError, ValueError):
        pass
    raise TypeError(
        f"{what} must be numbers for this loss; got {values.dtype}. 'zero_one' and 'log_loss' "
        "take labels."
    )


def _checked(losses: Any, n: int, name: str) -> np.ndarray:
    losses = _real(np.asarray(losses), "losses")
    if losses.shape != (n,):
        raise ValueError(
            f"loss {name!r} must give {n} numbers, one per sample; got shape {losses.shape}"
        )
    bad = np.flatnonzero(np.isnan(losses) | (losses == -np.inf))
    if len(bad):
        raise ValueError(
            f"loss {name!r} is {losses[bad[0]]} for {len(bad)} of {n} samples, the first sample "
            f"{bad[0]}; targets and predictions must be known. Leave such samples out."
        )
    return losses
