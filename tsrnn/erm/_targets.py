"""Targets of samples, one value per sample or one per step, and weights of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _check_sample_weight

from tsrnn.erm._sequences import Sequences, check_columns_are_numbers, check_is_table

__all__ = ["check_labels", "codes", "numeric", "read_targets", "read_weights", "require_targets"]


def require_targets(y: Any, estimator: Any) -> None:
    """Raise scikit-learn's error where y is missing."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )


def read_targets(y: Any, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Targets, one per sample or, with `many_to_many`, one per row of `sequences`.

    Returns
    -------
    ndarray of shape (N,), (N, k), (rows,) or (rows, k)
        Of their own type.

    Raises
    ------
    ValueError
        If they do not match the sequences; the message names the first sample that does not.
    """
    check_is_table(y, "y")
    if many_to_many:
        return _step_targets(y, sequences)
    if _is_ragged(y):
        raise ValueError(
            "y must have shape (N,) or (N, k), one target per sample; got samples of different "
            "lengths. For one target per step set many_to_many=True"
        )
    array = check_array(
        y, ensure_2d=False, allow_nd=True, dtype=None, ensure_all_finite=False, input_name="y"
    )
    check_consistent_length(sequences.lengths, array)
    if array.ndim > 2:
        raise ValueError(
            f"y must have shape (N,) or (N, k), one target per sample; got {array.shape}. For one "
            "target per step set many_to_many=True"
        )
    return array


def read_weights(sample_weight: Any, sequences: Sequences, many_to_many: bool) -> np.ndarray | None:
    """Weights of samples or, with `many_to_many`, of rows, 1 at most; None if none are given.

    Raises
    ------
    ValueError
        If there are not as many as samples (or steps), one is negative, or all are zero.
    """
    if sample_weight is None:
        return None
    check_is_table(sample_weight, "sample_weight")
    check_columns_are_numbers(sample_weight, "sample_weight")
    if many_to_many and any(np.ndim(item) for item in _items(sample_weight)[:1]):
        weights = _step_weights(sample_weight, sequences)
    else:
        weights = _check_sample_weight(
            sample_weight, sequences.lengths, dtype=np.float64, ensure_non_negative=True
        )
        if many_to_many:
            weights = np.repeat(weights, sequences.lengths)
    if not weights.any():
        raise ValueError("sample_weight must have at least one that is not zero")
    return weights / weights.max()


def numeric(targets: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Targets in float64, two-dimensional, all of them finite."""
    if targets.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has {targets.dtype}")
    if targets.dtype.kind in "SUMm":
        raise ValueError(f"y must hold numbers; got {targets.dtype}. Convert it first")
    try:
        values = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers; {error}") from error
    values = values.reshape(len(values), -1)
    if not values.shape[1]:
        raise ValueError(f"y must have at least one column; got shape {targets.shape}")
    _check_finite(values, sequences, many_to_many)
    return values


def check_labels(labels: np.ndarray, sequences: Sequences, many_to_many: bool) -> None:
    """Raise if a label is missing."""
    if labels.dtype.kind == "f":
        _check_finite(labels[:, None], sequences, many_to_many)
    missing = pd.isna(labels)
    if missing.any():
        raise ValueError(
            f"y must have a label everywhere; {missing.sum()} are missing, the first at "
            f"{sequences.where(int(missing.argmax()), many_to_many)}. "
            f"{_advice(many_to_many, 'label')}"
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
            f"{sequences.where(row, many_to_many)} it has {labels.tolist()[row]!r}, unseen "
            "before. Name all labels in `classes` at the first partial_fit"
        )
    return position


def _items(values: Any) -> list[Any]:
    """Values by sample: the items of a list, the rows of an array or a frame."""
    if isinstance(values, list | tuple):
        return list(values)
    array = np.asarray(values)
    return list(array) if array.ndim else []


def _is_ragged(values: Any) -> bool:
    """Whether samples have values of their own, of different shapes."""
    is_list = isinstance(values, list | tuple)
    if not is_list and getattr(getattr(values, "dtype", None), "kind", None) != "O":
        return False
    try:
        return len({np.shape(item) for item in _items(values)}) > 1
    except ValueError:  # rows of one sample differ
        return True


def _step_targets(y: Any, sequences: Sequences) -> np.ndarray:
    items = _items(y)
    check_consistent_length(sequences.lengths, items)
    need = "with many_to_many=True y needs one target per step, of the same shape in all samples; "
    parts: list[np.ndarray] = []
    for i, item in enumerate(items):
        try:
            parts.append(np.asarray(item))
        except ValueError as error:
            raise ValueError(f"{need}those of sample {i} differ in length") from error
    for i, (part, length) in enumerate(zip(parts, sequences.lengths, strict=True)):
        if part.ndim not in (1, 2) or len(part) != length or part.shape[1:] != parts[0].shape[1:]:
            shape = (int(length), *parts[0].shape[1:2])
            raise ValueError(f"{need}for sample {i} it must have shape {shape}, got {part.shape}")
    return np.concatenate(parts)


def _step_weights(sample_weight: Any, sequences: Sequences) -> np.ndarray:
    items = _items(sample_weight)
    check_consistent_length(sequences.lengths, items)
    for i, (item, length) in enumerate(zip(items, sequences.lengths, strict=True)):
        if np.shape(item) != (length,):
            raise ValueError(
                "sample_weight needs one number per sample, or one per step as y has with "
                f"many_to_many=True; for sample {i} it must have shape ({length},), got "
                f"{np.shape(item)}"
            )
    weights = np.concatenate(items).astype(np.float64)
    legal = np.isfinite(weights) & (weights >= 0)
    if not legal.all():
        row = int(np.argmin(legal))
        raise ValueError(
            "sample_weight must be finite and not negative; at "
            f"{sequences.where(row, True)} it is {weights[row]}"
        )
    return weights


def _check_finite(values: np.ndarray, sequences: Sequences, many_to_many: bool) -> None:
    finite = np.isfinite(values).all(1)
    if finite.all():
        return
    row = int(np.argmin(finite))
    kind = "NaN" if np.isnan(values[row]).any() else "infinity"
    raise ValueError(
        f"Input y contains {kind}: {(~finite).sum()} targets are not finite, the first at "
        f"{sequences.where(row, many_to_many)}. {_advice(many_to_many, 'number')}"
    )


def _advice(many_to_many: bool, filler: str) -> str:
    if not many_to_many:
        return "Drop these samples"
    return f"Drop these samples, or give these steps a weight of 0 and any {filler}"
