"""Filter: errors and covariances of data at given coefficients, and the state at the end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._matrices import Path
from tsrnn.linear._mean import residuals
from tsrnn.linear.vech._density import squares
from tsrnn.linear.vech._likelihood import states
from tsrnn.linear.vech._specification import Model, Specification
from tsrnn.linear.vech._structure import unvech


class CovarianceState(NamedTuple):
    """State of a series after its last row; of S series with a leading axis.

    Attributes
    ----------
    history : array of shape (m, n)
        The last m rows, the latest last.
    squares : array of shape (p, N)
        vech(e e'), the latest first.
    states : array of shape (q, N)
        h, the latest first.
    """

    history: np.ndarray
    squares: np.ndarray
    states: np.ndarray


def begin_vech(spec: Specification, history: np.ndarray, presample: np.ndarray) -> CovarianceState:
    """State after the first rows (m, n) of a series, those that the lags of the mean take."""
    return CovarianceState(
        history, np.tile(presample, (spec.p, 1)), np.tile(presample, (spec.q, 1))
    )


def advance_vech(
    model: Model, state: CovarianceState, values: np.ndarray
) -> tuple[Path, CovarianceState]:
    """Run over rows (T, n) that follow a state."""
    p, q, m, rows = len(model.theta), len(model.phi), len(model.lags), len(values)
    level = np.concatenate([state.history, values])
    errors = residuals(level, model.intercept, model.lags)
    new = squares(np.ascontiguousarray(errors.T)).T
    known = np.concatenate([state.squares[::-1], new])
    inputs = np.tile(model.constant, (rows, 1))
    for i, matrix in enumerate(model.theta, start=1):
        inputs += known[p - i : p - i + rows] @ matrix.T
    h = inputs if rows == 0 else states(list(model.phi), inputs[..., None], state.states)[..., 0]
    every = np.concatenate([state.states[::-1], h])
    end = CovarianceState(
        level[len(level) - m :], known[len(known) - p :][::-1], every[len(every) - q :][::-1]
    )
    return Path(errors, unvech(h)), end
