"""How good forecasts were, in one number."""

from __future__ import annotations

import numpy as np

from tsrnn.data import Panel


def r_squared(panel: Panel, forecast: np.ndarray, scale: np.ndarray) -> float:
    """1 - MSE / s^2, averaged over series and targets.

    Missing values of the panel do not count, nor does a target of which all are missing.

    Parameters
    ----------
    panel : Panel
        What came.
    forecast : ndarray of shape (S, h, C)
        With h at least the length of the longest series.
    scale : ndarray of shape (S, C)
        Standard deviations s.

    Raises
    ------
    ValueError
        If all values of the panel are missing, or squared errors overflow.
    """
    scores: list[float] = []
    for i in range(panel.n_series):
        actual = panel.series(i)
        with np.errstate(over="ignore"):
            squares = ((actual - forecast[i, : len(actual)]) / scale[i]) ** 2
        scores += [
            1 - float(column[seen].mean())
            for column, seen in zip(squares.T, ~np.isnan(actual.T), strict=True)
            if seen.any()
        ]
    if not scores:
        raise ValueError("a score needs values to compare with; all values of df are missing")
    score = float(np.mean(scores))
    if np.isinf(score):
        raise ValueError(
            "a score needs squared errors in units of the training data's variance that are "
            "numbers; they overflow. Replace the values of df that lie so far from the data"
        )
    return score
