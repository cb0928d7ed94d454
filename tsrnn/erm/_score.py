"""Scores of estimators, over all steps where there are targets of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

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


def _pairs(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Targets, predictions and weights of samples, or of the steps of all samples."""
    require_targets(y, estimator)
    predicted = estimator.predict(X)
    sequences, many = read_sequences(X, estimator, reset=False), estimator.many_to_many
    found = np.concatenate([*predicted]) if many else predicted
    weights = read_weights(sample_weight, sequences, many)
    return read_targets(y, sequences, many), found, weights
