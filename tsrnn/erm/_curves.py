"""Curves of fitted functions: samples by lag, calls in batches, bands of refits."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import check_levels, level_name
from tsrnn.erm._refits import Refits
from tsrnn.erm._resampling import count

_NUMBERS_A_CALL = 2_000_000  # inputs of a call, so that its memory stays small
_NO_BAND = "no band: of one fitted estimator; block_bootstrap gives refits for one."


class LaggedSamples:
    """Samples of sequences, their steps counted from the newest.

    Parameters
    ----------
    X : array of shape (N, T, d_in) or (N, T), DataFrame, or list of N arrays (T_i, d_in)

    Attributes
    ----------
    lengths : ndarray of shape (N,)
        T_i.
    n_channels : int
        d_in.

    Raises
    ------
    ValueError
        If there are no samples, steps or channels, or samples differ in their channels.
    """

    def __init__(self, X: Any) -> None:
        if count(X) == 0:
            raise ValueError("X must hold at least one sequence; got none.")
        self._columns = getattr(X, "columns", None)
        self._is_list = not hasattr(X, "shape") or np.dtype(object) == getattr(X, "dtype", None)
        values: Any
        if self._is_list:
            values = [np.asarray(part, dtype=float) for part in X]
            self._flat = values[0].ndim == 1
        else:
            values = np.asarray(X, dtype=float)
            self._flat = values.ndim == 2
        self._values = _by_channel(values, self._is_list)
        self.lengths = np.array([len(part) for part in self._values])
        self.n_channels = self._values[0].shape[1]

    def __len__(self) -> int:
        return len(self.lengths)

    def at(self, lag: int, channel: int) -> np.ndarray:
        """Values at a lag, of shape (N,)."""
        return np.array([part[-1 - lag, channel] for part in self._values])

    def spread(self, channel: int) -> float:
        """Standard deviation over all steps of all samples; 0 of a single value."""
        values = np.concatenate([part[:, channel] for part in self._values])
        return float(values.std(ddof=1)) if len(values) > 1 else 0.0

    def steps(self, rows: np.ndarray) -> np.ndarray:
        """Samples side by side, aligned at the newest step: (n, longest, d_in), a copy."""
        if not self._is_list:
            return self._values[rows]
        block = np.zeros((len(rows), self.lengths[rows].max(), self.n_channels))
        for part, row in zip(block, rows, strict=True):
            part[len(part) - self.lengths[row] :] = self._values[row]
        return block

    def restored(self, block: np.ndarray, rows: np.ndarray) -> Any:
        """Samples in the form of X, as long as those of `rows`, from a block of `steps`."""
        if self._columns is not None:
            return pd.DataFrame(block[..., 0], columns=self._columns)
        block = block[..., 0] if self._flat else block
        if not self._is_list:
            return block
        pairs = zip(block, self.lengths[rows], strict=True)
        return [part[len(part) - length :] for part, length in pairs]

    def batches(self, rows: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """Positions in `rows`, or in all, so few at a time that a call stays small."""
        lengths = self.lengths if rows is None else self.lengths[rows]
        order = np.argsort(-lengths, kind="stable")
        while len(order):
            size = max(1, _NUMBERS_A_CALL // int(lengths[order[0]] * self.n_channels))
            yield order[:size]
            order = order[size:]


def _by_channel(values: Any, is_list: bool) -> Any:
    """Values as (N, T, d_in), or as a list of (T_i, d_in)."""
    if not is_list:
        if values.ndim not in (2, 3) or 0 in values.shape:
            raise ValueError(
                "X must have the shape (N, T, d_in), or (N, T) of univariate series, with none of "
                f"these 0; got {values.shape}."
            )
        return values[..., None] if values.ndim == 2 else values
    parts = [part[:, None] if part.ndim == 1 else part for part in values]
    first = parts[0].shape[1:]
    for i, part in enumerate(parts):
        alike = part.shape[1:] == first and values[i].ndim == values[0].ndim
        if part.ndim != 2 or 0 in part.shape or not alike:
            raise ValueError(
                "sequences in a list must have the shape (T_i, d_in), T_i at least 1 and d_in the "
                f"same in all; sequence {i} has {values[i].shape}, sequence 0 {values[0].shape}."
            )
    return parts


def lag_of_all(name: str, value: Any, sequences: LaggedSamples) -> int:
    """Lag as an int, one that every sample has.

    Raises
    ------
    TypeError, ValueError
        If it is no whole number, negative, or longer than the shortest sample allows.
    """
    shortest = int(np.argmin(sequences.lengths))
    last = int(sequences.lengths[shortest]) - 1
    why = f"; sample {shortest} is the shortest, with {last + 1} steps"
    return within(name, value, last, why)


def channel_of(value: Any, sequences: LaggedSamples) -> int:
    """Number of an input, as an int."""
    return within("channel", value, sequences.n_channels - 1, why=", counted from 0")


def within(name: str, value: Any, last: int, why: str = "") -> int:
    """Whole number from 0 to `last`, as an int.

    Raises
    ------
    TypeError, ValueError
        If it is not; the message says what the range is and why.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number from 0 to {last}{why}; got {value!r}")
    whole = int(value)
    if not 0 <= whole <= last:
        raise ValueError(f"{name} must be a whole number from 0 to {last}{why}; got {value!r}")
    return whole


class Functions:
    """Fitted functions of a model, the estimator's first and then those of its refits.

    Parameters
    ----------
    model : fitted estimator or Refits
    output : int
        Column of the predictions; of a classifier the place of a class in `classes_`.

    Attributes
    ----------
    name : str
        Words for the values.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If an estimator is not fitted.
    TypeError, ValueError
        If there is no such output.
    """

    def __init__(self, model: Any, output: Any) -> None:
        whole, members = model, ()
        if isinstance(model, Refits):
            whole, members = model.estimator, model.members
        self._estimators = (whole, *members)
        for estimator in self._estimators:
            check_is_fitted(estimator)
        self._output, self._is_classifier = output, is_classifier(whole)
        if self._is_classifier:
            self._label = _label(whole, output)
            self.name = f"probability of class {self._label}"
        else:
            within("output", output, np.iinfo(np.int64).max)
            self.name = f"prediction of output {output}" if output else "prediction"

    def __len__(self) -> int:
        return len(self._estimators)

    def __call__(self, sequences: LaggedSamples, block: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Values of each function at samples: (functions, n)."""
        X = sequences.restored(block, rows)
        of_one = self._probability if self._is_classifier else self._prediction
        values = [of_one(estimator, X) for estimator in self._estimators]
        for predictions in values:
            if predictions.shape != (len(rows),):
                raise ValueError(
                    f"the model must give one prediction per sample; for {len(rows)} samples it "
                    f"gave {len(predictions)}."
                )
        return np.stack(values)

    def _probability(self, classifier: Any, X: Any) -> np.ndarray:
        """Probabilities of the class; 0 where a refit never met it."""
        probabilities = np.asarray(classifier.predict_proba(X), dtype=float)
        places = np.flatnonzero(np.asarray(classifier.classes_) == self._label)
        return probabilities[:, places[0]] if len(places) else np.zeros(len(probabilities))

    def _prediction(self, regressor: Any, X: Any) -> np.ndarray:
        predictions = np.asarray(regressor.predict(X), dtype=float)
        if predictions.ndim not in (1, 2):
            raise ValueError(
                "predictions must have the shape (N,) or (N, n_outputs), one for each sample; got "
                f"{predictions.shape}."
            )
        columns = predictions[:, None] if predictions.ndim == 1 else predictions
        last = columns.shape[1] - 1
        why = f"; predictions have {last + 1} column(s)"
        return columns[:, within("output", self._output, last, why)]


def _label(classifier: Any, output: Any) -> Any:
    """Label of the class at a place in `classes_`."""
    if not hasattr(classifier, "predict_proba"):
        raise TypeError(
            "a classifier must have predict_proba, for its curve is of a probability; "
            f"{type(classifier).__name__} has none."
        )
    classes = list(classifier.classes_)
    names = ", ".join(str(name) for name in classes)
    return classes[within("output", output, len(classes) - 1, f", a place in classes_ ({names})")]


def level_of(level: Any) -> float:
    """Level of a band, a single percentage."""
    levels = check_levels(level)
    if len(levels) != 1:
        raise TypeError(f"level must be one percentage such as level=90; got {level!r}")
    return levels[0]


def curve_frame(
    model: Any, points: dict[str, Any], curves: np.ndarray, level: float, labels: dict[str, Any]
) -> pd.DataFrame:
    """Table of a curve with the band of its refits.

    Parameters
    ----------
    model : estimator or Refits
    points : dict
        Columns to the left.
    curves : ndarray of shape (functions, points)
        The estimator's first.
    level : float
        Percent.
    labels : dict
        For `attrs`.
    """
    frame = pd.DataFrame({**points, "estimate": curves[0]})
    frame.attrs.update(labels)
    if not isinstance(model, Refits):
        frame.attrs["guarantee"] = _NO_BAND
        return frame
    tail = (1 - level / 100) / 2
    members = curves[1:]
    # The (B + 1) p-th smallest of B members, as usual for the bootstrap.
    ends = np.quantile(members, [tail, 1 - tail], axis=0, method="weibull")
    frame["lower"], frame["upper"] = ends
    frame["std_error"] = members.std(axis=0, ddof=1)
    frame.attrs["level"] = level
    percent = level_name(level)
    covers = model.method != "deep ensemble"
    name = f"{percent}% band" if covers else f"Middle {percent}% of refits"
    # With fewer members the quantile would lie beyond the smallest: 1e-9 is for rounding.
    if (len(members) + 1) * tail >= 1 - 1e-9:
        frame.attrs["band"] = name
        frame.attrs["guarantee"] = f"{name} from {model.guarantee}"
        return frame
    frame.attrs["band"] = "Range of refits"
    frame.attrs["guarantee"] = (
        f"range of {model.guarantee} {len(members)} refits are too few for {percent} percent, "
        f"which takes {int(np.ceil(1 / tail - 1e-9)) - 1}: the band is their range."
    )
    return frame
