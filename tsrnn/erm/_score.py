"""Scores of estimators, over all steps where there are targets of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from tsrnn.erm._losses import sample_losses
from tsrnn.erm._risk import Risk, risk_of
from tsrnn.erm._sequences import read_sequences
from tsrnn.erm._targets import read_targets, read_weights, require_targets


def r_squared(estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Coefficient of determination."""
    true, found, weights = _pairs(estimator, X, y, sample_weight)
    return float(r2_score(true, found, sample_weight=weights))


def accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Share of right labels."""
    true, found, weights = _pairs(estimator, X, y, sample_weight)
    return float(accuracy_score(true, found, sample_weight=weights))


def risk_of_steps(
    estimator: Any, X: Any, y: np.ndarray, weights: np.ndarray, lengths: np.ndarray
) -> Risk:
    """Risk over the steps of samples, with a standard error of independent samples.

    The loss of a sample is the weighted mean over its steps, its weight the sum of theirs, so that
    the risk is the weighted mean over all steps, which training lowers.

    Parameters
    ----------
    estimator : fitted estimator of steps
    X : array or list of N sequences
    y : ndarray of shape (rows,) or (rows, k)
        Targets of all steps, one sample below the other.
    weights : ndarray of shape (rows,)
        Of each sample some above 0.
    lengths : integer ndarray of shape (N,)
    """
    kept, losses = weights > 0, np.zeros(len(weights))
    y = y[kept]
    losses[kept] = sample_losses(_Steps(estimator, X, kept), y, y, estimator._loss)
    starts = np.cumsum(lengths) - lengths
    totals = np.add.reduceat(weights, starts)
    sums = np.add.reduceat(weights * losses, starts)
    return risk_of(sums / totals, totals, estimator._loss, 0)


class _Steps:
    """An estimator whose samples are some steps of sequences, whatever it is given."""

    def __init__(self, estimator: Any, X: Any, kept: np.ndarray) -> None:
        self._estimator, self._X, self._kept = estimator, X, kept
        self.classes_ = getattr(estimator, "classes_", None)

    def predict(self, _: Any) -> np.ndarray:
        return np.concatenate([*self._estimator.predict(self._X)])[self._kept]

    def predict_proba(self, _: Any) -> np.ndarray:
        return np.concatenate([*self._estimator.predict_proba(self._X)])[self._kept]


def _pairs(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Targets, predictions and weights of samples, or of the steps of all samples."""
    require_targets(y, estimator)
    predicted = estimator.predict(X)
    sequences, many = read_sequences(X, estimator, reset=False), estimator.arguments_.many_to_many
    found = np.concatenate([*predicted]) if many else predicted
    weights = read_weights(sample_weight, sequences, many)
    return read_targets(y, sequences, many), found, weights
