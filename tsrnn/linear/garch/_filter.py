"""Residuals and variances of data at given parameters, and the state after the last row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tsrnn.kernels import Lanes, recurrence, sums
from tsrnn.linear.garch._prepare import Presample, chunks, design
from tsrnn.linear.garch._specification import AUXILIARY, Model, expected_params

_NUMBERS = 2**24  # floats of a chunk's states: 128 MB


class VarianceState(NamedTuple):
    """State of N units after their last observation."""

    memory: np.ndarray  # (N, n_state)
    recent: np.ndarray  # (N, longest lag), the last values of y, newest last

    def select(self, part: slice) -> VarianceState:
        """State of a range of units."""
        return VarianceState(self.memory[part], self.recent[part])


class Past(NamedTuple):
    """Presample values of N units."""

    variance: np.ndarray  # (N,)
    z: np.ndarray | None = None  # (N,) standardised residual; None: shocks at their expectation


def filter_garch(
    model: Model, params: np.ndarray, past: Past, y: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals and variances of series (N, T), each (N, T).

    NaN in the first rows, which have not all lags, and beyond `lengths`. A missing value has a
    variance and no residual.
    """
    first, (n, steps) = model.mean.n_dropped, y.shape
    e, h = np.full((n, steps), np.nan), np.full((n, steps), np.nan)
    for part in chunks(n if steps > first else 0, steps * model.cell.n, _NUMBERS):
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
    """Replace values that are not finite, of units without parameters; NaN in gaps stays."""
    return y if model.gaps else np.where(np.isfinite(y), y, 0.0)


def initial_state(model: Model, params: np.ndarray, past: Past) -> np.ndarray:
    """State (N, n_state) that the presample values imply."""
    return Presample(model, "fixed", past.variance, z=past.z).state(params, 0).value


def resting_state(model: Model, params: np.ndarray, variance: np.ndarray) -> VarianceState:
    """State of N units after a past of constant variance (N,), expected shocks and zero values."""
    memory = initial_state(model, expected_params(model, params), Past(variance))
    return VarianceState(memory, np.zeros((len(params), model.mean.n_dropped)))


def begin_garch(
    model: Model, params: np.ndarray, past: Past, y: np.ndarray, lengths: np.ndarray
) -> VarianceState:
    """State of N units after series (N, T), which are at least as long as the longest lag."""
    first, (n, steps) = model.mean.n_dropped, y.shape
    recent = np.full((n, first), np.nan)  # units without parameters may be shorter
    recent[:, :steps] = y[:, :first]
    state = VarianceState(initial_state(model, params, past), recent)
    return advance_garch(model, params, state, y[:, first:], np.maximum(lengths - first, 0))


def advance_garch(
    model: Model, params: np.ndarray, state: VarianceState, y: np.ndarray, lengths: np.ndarray
) -> VarianceState:
    """State of N units after further rows (N, T); rows beyond `lengths` are not read."""
    if not lengths.any():
        return state
    n_recent = state.recent.shape[1]
    whole = np.concatenate([state.recent, y], 1) if n_recent else y
    inputs = design(model, _finite(model, whole), lengths + n_recent)
    end = sums(model.cell, Lanes(inputs), params, state.memory, terms=("l",), order=0)
    last = lengths[:, None] + np.arange(n_recent)
    return VarianceState(end.memory.T, np.take_along_axis(whole, last, 1))
