"""Paths of a model from a state on, drawn or with expected shocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear.garch._filter import State
from tsrnn.linear.garch._model import Model, Step


class Paths(NamedTuple):
    """Values and variances of every unit, step and path, each (N, h, paths)."""

    y: np.ndarray
    variance: np.ndarray


def simulate(model: Model, params: np.ndarray, state: State, z: np.ndarray) -> Paths:
    """Go on from a state with standardised innovations z (N or 1, h, paths)."""
    steps, n = z.shape[1], (len(params), z.shape[2])
    y, variance = np.empty((n[0], steps, n[1])), np.empty((n[0], steps, n[1]))
    for t, (value, h) in enumerate(_walk(model, params, state, torch.from_numpy(z))):
        y[:, t], variance[:, t] = value.numpy(), h.numpy()
    return Paths(y, variance)


def _walk(
    model: Model, params: np.ndarray, state: State, z: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    columns = torch.from_numpy(np.array(params.T))[..., None].unbind(0)
    shape = (len(params), z.shape[2])
    memory = tuple(field[:, None].expand(shape) for field in torch.tensor(state.memory.T))
    past = [y[:, None].expand(shape) for y in torch.tensor(state.recent.T)]
    step, mean = Step(model), model.mean
    for t in range(z.shape[1]):
        h, _ = model.vol.variance(memory[mean.n_ma :])
        e = torch.sqrt(h) * z[:, t]
        lagged = tuple(past[-lag] for lag in mean.lags)
        y = e + mean.predicted(memory[: mean.n_ma], lagged, columns[model.mean_part])
        memory = step.remembered(memory, e, h, columns)
        past.append(y)
        yield y, h


def expected_mean(model: Model, params: np.ndarray, state: State, h: int) -> np.ndarray:
    """Expected values (N, h), with residuals of zero from now on."""
    mean, part = model.mean, model.mean_part
    columns = torch.from_numpy(np.array(params.T)).unbind(0)[part]
    memory = tuple(torch.tensor(state.memory.T))[: mean.n_ma]
    past = list(torch.tensor(state.recent.T))
    zero = torch.zeros(len(params), dtype=torch.float64)
    for _ in range(h):
        lagged = tuple(past[-lag] for lag in mean.lags)
        past.append(zero + mean.predicted(memory, lagged, columns))
        memory = mean.advance(memory, zero, columns)
    return torch.stack(past[-h:], 1).numpy()


def expected_variance(model: Model, params: np.ndarray, state: State, h: int) -> np.ndarray:
    """Expected variances (N, h), of a recursion of logarithms for a single step."""
    vol, n_ma = model.vol, model.mean.n_ma
    columns = torch.from_numpy(np.array(params.T)).unbind(0)[model.vol_part]
    memory = tuple(torch.tensor(state.memory.T))[n_ma:]
    variances = []
    for _ in range(h):
        variances.append(vol.variance(memory)[0])
        shocks = tuple(weight * memory[0] for weight in vol.expected)
        memory = vol.advance(memory, shocks, columns, (model.p, model.q))
    return torch.stack(variances, 1).numpy()


def impulse_responses(model: Model, params: np.ndarray, h: int) -> np.ndarray:
    """Effect (N, h) of a residual on the values 0, 1, ... steps later."""
    mean = model.mean
    columns = torch.from_numpy(np.array(params.T)).unbind(0)[model.mean_part]
    one = torch.ones(len(params), dtype=torch.float64)
    zero = torch.zeros_like(one)
    still = (*(zero for _ in range(mean.constant)), *columns[mean.constant :])
    memory = mean.advance((zero,) * mean.n_ma, one, still)
    past = [zero] * mean.n_dropped + [one]
    for _ in range(h - 1):
        lagged = tuple(past[-lag] for lag in mean.lags)
        past.append(zero + mean.predicted(memory, lagged, still))
        memory = mean.advance(memory, zero, still)
    return torch.stack(past[mean.n_dropped :], 1).numpy()
