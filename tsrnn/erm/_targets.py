"""Targets of samples, numbers or classes: encoding for a network, and decoding of its outputs."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from scipy.special import softmax
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from tsrnn.contract import Kind, anything, as_saved, integer, listed, plain, refuse, text
from tsrnn.data import quote
from tsrnn.erm._sequences import Sequences, check_columns_are_numbers, check_is_table
from tsrnn.erm._training import LARGEST, fitted_scaler, from_moments, z_scores

__all__ = [
    "ClassTargets",
    "RegressionTargets",
    "Targets",
    "label_array",
    "read_targets",
    "read_weights",
]

LABELS = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|U\d{1,5})|\|O")  # dtypes as numpy writes them


class Targets(ABC):
    """Encoding of targets as numbers for a network, and decoding of its outputs.

    The n rows are samples, or the stacked steps of all samples. `scaler` of the k targets is None
    for classes, and `classes`, sorted labels, None for numbers. `kinds` are fields of a file.
    """

    scaler: StandardScaler | None = None
    classes: np.ndarray | None = None
    kinds: ClassVar[dict[str, Kind]]

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of outputs of a network: k, or n_classes."""

    @classmethod
    @abstractmethod
    def of(
        cls, y: np.ndarray, sequences: Sequences, many_to_many: bool, classes: np.ndarray | None
    ) -> tuple[Self, np.ndarray]:
        """Return the encoding for y (n,) or (n, k), and the result of `read`."""

    @abstractmethod
    def read(self, y: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
        """Return y (n,) or (n, k) as numbers (n, k), or as positions of classes (n,)."""

    def standardised(self, values: np.ndarray, weights: np.ndarray | None) -> Self:
        """Return the encoding with a scaler fitted to values of `read`; classes have none."""
        return self

    @abstractmethod
    def encoded(self, values: np.ndarray, weights: np.ndarray | None) -> Tensor:
        """Return values in the scale of the network's outputs; values of weight 0 are arbitrary."""

    def output_bounds(self, bound: float) -> tuple[Tensor, Tensor]:
        """Return least and largest output of a network, each of shape (n_outputs,)."""
        ends = np.full((2, self.n_outputs), bound) * [[-1.0], [1.0]]
        if self.scaler is not None:
            ends = z_scores(ends, self.scaler)
        least, largest = torch.from_numpy(ends.astype(np.float32))
        return least, largest

    @abstractmethod
    def estimates(self, outputs: np.ndarray, bound: float | None) -> np.ndarray:
        """Return conditional means or medians (n, k), or probabilities (n, n_classes)."""

    @abstractmethod
    def predictions(self, outputs: np.ndarray, bound: float | None) -> np.ndarray:
        """Return estimates in the shape of y, or the most probable classes (n,)."""

    @abstractmethod
    def header(self) -> dict[str, Any]:
        """Return the fields of a file."""

    @classmethod
    @abstractmethod
    def from_file(cls, fitted: dict[str, Any], scaler: StandardScaler | None) -> Self:
        """Rebuild the encoding from a file; raise DamagedFileError if it is inconsistent."""


@dataclass(frozen=True, eq=False)
class RegressionTargets(Targets):
    """Numeric targets, of shape () or (k,) per sample or step."""

    shape: tuple[int, ...]
    scaler: StandardScaler
    kinds: ClassVar[dict[str, Kind]] = {"target_shape": listed(integer(1))}

    @property
    def n_outputs(self) -> int:
        return math.prod(self.shape)

    @classmethod
    def of(
        cls, y: np.ndarray, sequences: Sequences, many_to_many: bool, classes: Any = None
    ) -> tuple[Self, np.ndarray]:
        values = _numeric(y, sequences, many_to_many)
        k = values.shape[1]
        return cls(y.shape[1:], from_moments(np.zeros(k), np.ones(k))), values

    def read(self, y: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
        values = _numeric(y, sequences, many_to_many)
        if y.shape[1:] != self.shape:
            raise ValueError(
                f"a target of y must have shape {self.shape}, as in the first fit; got "
                f"{y.shape[1:]}"
            )
        return values

    def standardised(self, values: np.ndarray, weights: np.ndarray | None) -> Self:
        return replace(self, scaler=fitted_scaler("y", values, weights))

    def encoded(self, values: np.ndarray, weights: np.ndarray | None) -> Tensor:
        scaled = z_scores(values, self.scaler)
        too_large = (np.abs(scaled) > LARGEST).any(1) & (True if weights is None else weights > 0)
        if too_large.any():
            raise ValueError(
                f"y is too large for the network, whose numbers end at {LARGEST:.3g}: its largest "
                f"absolute value is {np.abs(values[too_large]).max():.3g}. Change its unit, or "
                "set standardize=True"
            )
        return torch.from_numpy(scaled.clip(-LARGEST, LARGEST).astype(np.float32))

    def estimates(self, outputs: np.ndarray, bound: float | None) -> np.ndarray:
        values: np.ndarray = outputs * self.scaler.scale_ + self.scaler.mean_
        if bound is not None:  # outputs are bounded, but scaling back rounds
            values = values.clip(-bound, bound)
        return values

    def predictions(self, outputs: np.ndarray, bound: float | None) -> np.ndarray:
        return self.estimates(outputs, bound).reshape(-1, *self.shape)

    def header(self) -> dict[str, Any]:
        return {"target_shape": list(self.shape)}

    @classmethod
    def from_file(cls, fitted: dict[str, Any], scaler: StandardScaler | None) -> Self:
        if scaler is None:
            raise refuse("the array 'target_mean'", "there", None)
        shape, k = fitted["target_shape"], scaler.n_features_in_
        if len(shape) > 1 or math.prod(shape) != k:
            raise refuse("fitted.target_shape", f"of the {k} targets of the scaler", shape)
        return cls(tuple(shape), scaler)


@dataclass(frozen=True, eq=False)
class ClassTargets(Targets):
    """Class targets, one per sample or step; `classes` are the sorted labels."""

    classes: np.ndarray
    kinds: ClassVar[dict[str, Kind]] = {"classes": listed(anything), "label_dtype": text}

    @property
    def n_outputs(self) -> int:
        return len(self.classes)

    @classmethod
    def of(
        cls, y: np.ndarray, sequences: Sequences, many_to_many: bool, classes: np.ndarray | None
    ) -> tuple[Self, np.ndarray]:
        labels = _labels(y, sequences, many_to_many)
        targets = cls(label_array("y", labels) if classes is None else classes)
        if targets.n_outputs < 2:
            raise ValueError(
                "a classifier needs samples of at least 2 classes; got "
                f"{targets.n_outputs} class: {targets.classes.tolist()}"
            )
        return targets, targets._positions(labels, sequences, many_to_many)

    def read(self, y: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
        labels = _labels(y, sequences, many_to_many)
        return self._positions(labels, sequences, many_to_many)

    def _positions(
        self, labels: np.ndarray, sequences: Sequences, many_to_many: bool
    ) -> np.ndarray:
        position = np.minimum(np.searchsorted(self.classes, labels), self.n_outputs - 1)
        known = self.classes[position] == labels
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"y must hold labels among {self.classes.tolist()}; at "
                f"{sequences.where(row, many_to_many)} it has {quote(labels.tolist()[row])}, "
                "unseen before. Name all labels in `classes` at the first partial_fit"
            )
        return position

    def encoded(self, values: np.ndarray, weights: np.ndarray | None) -> Tensor:
        return torch.from_numpy(values)

    def estimates(self, outputs: np.ndarray, bound: float | None) -> np.ndarray:
        return np.asarray(softmax(outputs, axis=1))

    def predictions(self, outputs: np.ndarray, bound: float | None) -> np.ndarray:
        return self.classes[outputs.argmax(1)]

    def header(self) -> dict[str, Any]:
        return {"classes": plain(self.classes, "labels"), "label_dtype": self.classes.dtype.str}

    @classmethod
    def from_file(cls, fitted: dict[str, Any], scaler: StandardScaler | None) -> Self:
        if scaler is not None:
            raise refuse("the array 'target_mean'", "absent, as classes have no scale", "it")
        labels, dtype = fitted["classes"], fitted["label_dtype"]
        if not LABELS.fullmatch(dtype):
            raise refuse("fitted.label_dtype", "the type of labels in numpy", dtype)
        with as_saved("fitted.classes and fitted.label_dtype"):
            classes = np.array(labels, dtype=dtype)
            rising = classes.ndim == 1 and np.array_equal(label_array("y", classes), classes)
        if not rising or plain(classes, "labels") != labels:
            raise refuse("fitted.classes", f"labels of type {dtype}, each once, sorted", labels)
        return cls(classes)


def label_array(name: str, labels: Any) -> np.ndarray:
    """Return the sorted distinct labels; `name` is their name in messages."""
    try:
        return np.unique(np.asarray(labels))
    except (TypeError, ValueError) as error:
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"{name} must hold labels of one type; it has {' and '.join(kinds)}"
        ) from error


def read_targets(y: Any, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Return targets, one per sample or, with `many_to_many`, per row of `sequences`.

    The shape is (N,), (N, k), (rows,) or (rows, k); the dtype is that of y.
    """
    if y is None:  # the message of scikit-learn
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
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
    """Return weights of samples or, with `many_to_many`, of rows, at most 1; None without any."""
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


def _numeric(targets: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Return targets as a two-dimensional float64 array, checked to be finite."""
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


def _labels(y: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Return labels as a one-dimensional array, checked for missing ones."""
    labels = np.asarray(column_or_1d(y, warn=True))
    if labels.dtype.kind == "f":
        _check_finite(labels[:, None], sequences, many_to_many)
    missing = pd.isna(labels)
    if missing.any():
        raise ValueError(
            f"y must have a label everywhere; {missing.sum()} are missing, the first at "
            f"{sequences.where(int(missing.argmax()), many_to_many)}. "
            f"{_advice(many_to_many, 'label')}"
        )
    check_classification_targets(labels)
    return labels


def _items(values: Any) -> list[Any]:
    """Return values by sample: items of a list, rows of an array or a frame."""
    if isinstance(values, list | tuple):
        return list(values)
    array = np.asarray(values)
    return list(array) if array.ndim else []


def _is_ragged(values: Any) -> bool:
    """Return True if samples have values of different shapes."""
    is_list = isinstance(values, list | tuple)
    if not is_list and getattr(getattr(values, "dtype", None), "kind", None) != "O":
        return False
    try:
        return len({np.shape(item) for item in _items(values)}) > 1
    except ValueError:  # rows of one sample differ in length
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
