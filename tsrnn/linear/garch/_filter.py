"""Filter: residuals and variances of data at given parameters, and the state at the end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tsrnn.kernels import Lanes, recurrence, sums
from tsrnn.linear.garch._prepare import Presample, design
from tsrnn.linear.garch._specification import AUXILIARY, Model, expected_params

_CELLS = 2**24  # numbers of a chunk's states: 128 MB


class VarianceState(NamedTuple):
    """State of N units after their last observation."""

    memory: np.ndarray  # (N, n_state)
    recent: np.ndarray  # (N, longest lag), the last values of y, the newest last


class Past(NamedTuple):
    """Values before the first observation of N units."""

    variance: np.ndarray  # (N,)
    z: np.ndarray | None = None  # (N,) standardised residual; None where shocks are expectations


def filter_garch(
    model: Model, params: np.ndarray, past: Past, y: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals and variances, each (N, T), of series (N, T); NaN where there are none.

    A value that is missing has a variance.
    """
    first, (n, steps) = model.mean.n_dropped, y.shape
    e, h = np.full((n, steps), np.nan), np.full((n, steps), np.nan)
    chunk = max(1, _CELLS // (steps * model.cell.n))
    for start in range(0, n if steps > first else 0, chunk):
        part = slice(start, start + chunk)
        inputs = design(model, _finite(model, y[part]), lengths[part])
        initial = np.zeros((1, model.cell.n, len(inputs)))
        before = Past(past.variance[part], None if past.z is None else past.z[part])
        initial[0, : model.n_state] = initial_state(model, params[part], before).T
        states, _ = recurrence(
            model.cell,
            torch.from_numpy(np.ascontiguousarray(inputs.transpose(1, 2, 0)[None])),
            torch.from_numpy(np.ascontiguousarray(params[part].T)),
            torch.from_numpy(initial),
        )
        fields = states[0, :, model.n_state :].permute(1, 2, 0).numpy()
        e[part, first:], h[part, first:] = (fields[AUXILIARY.index(name)] for name in "eh")
    outside = np.arange(steps) >= lengths[:, None]
    e[outside] = h[outside] = np.nan
    if model.gaps:
        e[np.isnan(y)] = np.nan
    return e, h


def _finite(model: Model, y: np.ndarray) -> np.ndarray:
    """Values of units, of which one without parameters may be anything; NaN in gaps stays."""
    return y if model.gaps else np.where(np.isfinite(y), y, 0.0)


def initial_state(model: Model, params: np.ndarray, past: Past) -> np.ndarray:
    """State (N, n_state) that follows from what stands before the first observation."""
    return Presample(model, "fixed", past.variance, z=past.z).state(params, 0).value


def resting_state(model: Model, params: np.ndarray, variance: np.ndarray) -> VarianceState:
    """State of N units after variances (N,), shocks at their expectation and values of zero."""
    memory = initial_state(model, expected_params(model, params), Past(variance))
    return VarianceState(memory, np.zeros((len(params), model.mean.n_dropped)))


def begin_garch(
    model: Model, params: np.ndarray, past: Past, y: np.ndarray, lengths: np.ndarray
) -> VarianceState:
    """State of N units after series (N, T) of at least the longest lag."""
    first, (n, steps) = model.mean.n_dropped, y.shape
    recent = np.full((n, first), np.nan)  # series without parameters may be shorter than the lags
    recent[:, :steps] = y[:, :first]
    state = VarianceState(initial_state(model, params, past), recent)
    return advance_garch(model, params, state, y[:, first:], np.maximum(lengths - first, 0))


def advance_garch(
    model: Model, params: np.ndarray, state: VarianceState, y: np.ndarray, lengths: np.ndarray
) -> VarianceState:
    """State of N units after further rows (N, T), of which the first `lengths` count."""
    if not lengths.any():
        return state
    n_recent = state.recent.shape[1]
    whole = np.concatenate([state.recent, y], 1) if n_recent else y
    inputs = design(model, _finite(model, whole), lengths + n_recent)
    end = sums(model.cell, Lanes(inputs), params, state.memory, terms=("l",), order=0)
    last = lengths[:, None] + np.arange(n_recent)
    return VarianceState(end.memory.T, np.take_along_axis(whole, last, 1))
