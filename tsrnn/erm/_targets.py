"""Reading z, one value a sample or one a step, and the weights of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _check_sample_weight

from tsrnn.erm._sequences import Sequences


def require_targets(y: Any, estimator: Any) -> None:
    """Raise scikit-learn's error where there are none."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )


def read_targets(y: Any, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Targets, one a sample or, with `many_to_many`, one a row of `sequences`.

    Returns
    -------
    ndarray of shape (N,), (N, k), (rows,) or (rows, k)
        Of their own type.

    Raises
    ------
    ValueError
        If they do not match the sequences; the message names the first sample that does not.
    """
    if many_to_many:
        return _of_steps(y, sequences)
    array = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    check_consistent_length(sequences.lengths, array)
    if array.ndim > 2:
        raise ValueError(
            f"y must have shape (N,) or (N, k), a target a sample; got {array.shape}. For a target "
            "a step set many_to_many=True"
        )
    return array


def _of_steps(y: Any, sequences: Sequences) -> np.ndarray:
    items = list(y)
    check_consistent_length(sequences.lengths, items)
    parts = [np.asarray(item) for item in items]
    for i, (part, length) in enumerate(zip(parts, sequences.lengths, strict=True)):
        if part.ndim not in (1, 2) or len(part) != length or part.shape[1:] != parts[0].shape[1:]:
            shape = (int(length), *parts[0].shape[1:2])
            raise ValueError(
                "with many_to_many=True y needs a target a step, of the same shape in all samples; "
                f"for sample {i} it must have shape {shape}, got {part.shape}"
            )
    return np.concatenate(parts)


def numeric(targets: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Targets in float64, two-dimensional, all of them finite."""
    if targets.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has {targets.dtype}")
    try:
        values = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers; {error}") from error
    values = values.reshape(len(values), -1)
    if not values.shape[1]:
        raise ValueError(f"y must have at least a column; got shape {targets.shape}")
    _check_finite(values, sequences, many_to_many)
    return values


def check_labels(labels: np.ndarray, sequences: Sequences, many_to_many: bool) -> None:
    """Raise if a label is missing."""
    if labels.dtype.kind == "f":
        _check_finite(labels[:, None], sequences, many_to_many)


def _check_finite(values: np.ndarray, sequences: Sequences, many_to_many: bool) -> None:
    finite = np.isfinite(values).all(1)
    if finite.all():
        return
    row = int(np.argmin(finite))
    kind = "NaN" if np.isnan(values[row]).any() else "infinity"
    raise ValueError(
        f"Input y contains {kind}: {(~finite).sum()} targets are not finite, the first at "
        f"{_where(row, sequences, many_to_many)}. Drop these samples; steps can be given a "
        "weight of 0 and any number"
    )


def codes(
    labels: np.ndarray, classes: np.ndarray, sequences: Sequences, many_to_many: bool
) -> np.ndarray:
    """Position of every label in the sorted `classes`.

    Raises
    ------
    ValueError
        If a label is none of them.
    """
    position = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    known = classes[position] == labels
    if not known.all():
        row = int(np.argmin(known))
        raise ValueError(
            f"y must hold labels among {classes.tolist()}; at "
            f"{_where(row, sequences, many_to_many)} it has {labels[row]!r}, unseen before. Name "
            "all labels in `classes` at the first partial_fit"
        )
    return position


def _where(row: int, sequences: Sequences, many_to_many: bool) -> str:
    if not many_to_many:
        return f"sample {row}"
    sample, step = sequences.place(row)
    return f"sample {sample}, step {step}"


def read_weights(sample_weight: Any, sequences: Sequences, many_to_many: bool) -> np.ndarray | None:
    """Weights of samples or, with `many_to_many`, of rows; None if all are equal.

    Raises
    ------
    ValueError
        If there are not as many as samples (or steps), one is negative, or all are zero.
    """
    if sample_weight is None:
        return None
    if many_to_many and np.ndim(sample_weight[0]):
        weights = _of_steps(sample_weight, sequences).astype(np.float64)
        if weights.ndim > 1 or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("sample_weight of steps must be finite, not negative, one a step")
    else:
        weights = _check_sample_weight(
            sample_weight, sequences.lengths, dtype=np.float64, ensure_non_negative=True
        )
        if many_to_many:
            weights = np.repeat(weights, sequences.lengths)
    if not weights.any():
        raise ValueError("sample_weight must have at least one that is not zero")
    return weights
