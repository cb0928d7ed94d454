"""Curves of fitted functions, with bands from refits."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import check_levels, level_name
from tsrnn.erm._refits import Refits
from tsrnn.erm._sequences import Sequences

_NO_BAND = "no band: of one fitted estimator; block_bootstrap gives refits for one."


def lag_of_all(name: str, value: Any, sequences: Sequences) -> int:
    """Return a lag, checked to be shorter than every sample."""
    shortest = int(np.argmin(sequences.lengths))
    last = int(sequences.lengths[shortest]) - 1
    return within(name, value, last, f"; sample {shortest} is the shortest, with {last + 1} steps")


def channel_of(value: Any, sequences: Sequences) -> int:
    """Return the checked position of an input."""
    return within("channel", value, sequences.inputs.n_inputs - 1, ", counted from 0")


def within(name: str, value: Any, last: int, why: str = "") -> int:
    """Return an integer, checked to lie from 0 to `last`; `why` explains the limit in messages."""
    message = f"{name} must be a whole number from 0 to {last}{why}; got {value!r}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(message)
    if not 0 <= int(value) <= last:
        raise ValueError(message)
    return int(value)


class Functions:
    """Fitted functions of a model: of the estimator, then of its refits.

    `output` is a column of the predictions; for a classifier, the position of a class in
    `classes_`. `model` is the name of the estimator's class, `name` names the values.
    """

    def __init__(self, model: Any, output: Any) -> None:
        whole, members = model, ()
        if isinstance(model, Refits):
            whole, members = model.estimator, model.members
        self.model, self._estimators = type(whole).__name__, (whole, *members)
        for estimator in self._estimators:
            check_is_fitted(estimator)
        self._output, self._is_classifier = output, is_classifier(whole)
        if self._is_classifier:
            if not hasattr(whole, "predict_proba"):
                raise TypeError(
                    "a classifier must have predict_proba, for its curve is of a probability; "
                    f"{self.model} has none."
                )
            classes = list(whole.classes_)
            why = f", a place in classes_ ({', '.join(map(str, classes))})"
            self._label = classes[within("output", output, len(classes) - 1, why)]
            self.name = f"probability of class {self._label}"
        else:
            within("output", output, np.iinfo(np.int64).max)
            self.name = f"prediction of output {output}" if output else "prediction"

    def __len__(self) -> int:
        return len(self._estimators)

    def __call__(self, sequences: Sequences, block: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the values of each function at samples, shape (functions, n)."""
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
        """Return the probabilities of the class, 0 for a refit without samples of it."""
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


def level_of(level: Any) -> float:
    """Return the checked level of a band in percent."""
    levels = check_levels(level)
    if len(levels) != 1:
        raise TypeError(f"level must be one percentage such as level=90; got {level!r}")
    return levels[0]


def curve_frame(
    model: Any, points: dict[str, Any], curves: np.ndarray, level: float, labels: dict[str, Any]
) -> pd.DataFrame:
    """Return a table of a curve and the band of its refits; `curves` is (functions, points).

    `points` are the first columns, `labels` are added to `attrs`.
    """
    frame = pd.DataFrame({**points, "estimate": curves[0]})
    frame.attrs.update(labels)
    if not isinstance(model, Refits):
        frame.attrs["guarantee"] = _NO_BAND
        return frame
    tail = (1 - level / 100) / 2
    members = curves[1:]
    # "weibull" is the (B + 1) p-th smallest of B members, the convention of the bootstrap.
    ends = np.quantile(members, [tail, 1 - tail], axis=0, method="weibull")
    frame["lower"], frame["upper"] = ends
    frame["std_error"] = members.std(axis=0, ddof=1)
    frame.attrs["level"] = level
    percent = level_name(level)
    covers = model.method != "deep ensemble"
    name = f"{percent}% band" if covers else f"Middle {percent}% of refits"
    # With fewer members the quantile lies below the smallest; 1e-9 allows for rounding.
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
