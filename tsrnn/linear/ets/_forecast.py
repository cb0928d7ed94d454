"""Exponential smoothing after a state: further rows, forecasts, their variances, and paths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from tsrnn.linear.ets._cells import advance
from tsrnn.linear.ets._specification import Components, Recursion


def after_rows(
    recursion: Recursion,
    params: np.ndarray,
    states: np.ndarray,
    values: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """States (N, q) after `lengths` (N,) rows of values (N, T), NaN where missing."""
    last, left = _columns(states), torch.from_numpy(lengths)
    for t, fields in enumerate(states_by_row(recursion, params, states, values)):
        last = tuple(torch.where(left > t, a, b) for a, b in zip(fields, last, strict=True))
    return torch.stack(last, 1).numpy()


def states_by_row(
    recursion: Recursion, params: np.ndarray, states: np.ndarray, values: np.ndarray
) -> Iterator[tuple[torch.Tensor, ...]]:
    """States after each row of values (N, T), each (N,).

    Level, trend, and the season, which begins with the next row and ends with this row.
    """
    columns, fields = _columns(params), _columns(states)
    for y in torch.from_numpy(np.ascontiguousarray(values.T)):
        fields, _ = advance(recursion, fields, columns, partial(_residual, y))
        yield tuple(fields)


def _residual(y: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    return torch.where(y.isnan(), 0.0, y - mean)


def _columns(array: np.ndarray) -> tuple[torch.Tensor, ...]:
    return torch.from_numpy(np.ascontiguousarray(array.T)).unbind(0)


def expected(recursion: Recursion, params: np.ndarray, states: np.ndarray, h: int) -> np.ndarray:
    """Means (N, h) with zero errors ahead."""
    columns, fields, means = _columns(params), _columns(states), []
    for _ in range(h):
        fields, mean = advance(recursion, fields, columns, torch.zeros_like)
        means.append(mean)
    return torch.stack(means, 1).numpy()


def responses(recursion: Recursion, params: np.ndarray, h: int) -> np.ndarray:
    r"""Effects (N, h) of a unit residual on the means 1, 2, ... steps later, in a linear model.

    .. math:: c_j = \alpha + \beta (\phi + \dots + \phi^j) + \gamma 1[m | j]
    """
    n = len(params)
    residual = torch.ones(n, dtype=torch.float64)
    none = torch.zeros((n, recursion.n_states), dtype=torch.float64)
    fields, _ = advance(recursion, none.unbind(1), _columns(params), lambda mean: residual)
    states = torch.stack(fields, 1).numpy()
    return expected(recursion, params, states, h)


def variances(
    model: Components, params: np.ndarray, sigma2: np.ndarray, means: np.ndarray
) -> np.ndarray:
    r"""Variances (N, h) of forecasts of a linear model (Hyndman et al., 2008, section 6.3).

    .. math::
        \sigma^2 \Big( 1 + \sum_{j=1}^{k-1} c_j^2 \Big) \qquad \text{or} \qquad
        (1 + \sigma^2) \theta_k - \mu_k^2, \quad
        \theta_k = \mu_k^2 + \sigma^2 \sum_{j=1}^{k-1} c_j^2 \theta_{k-j}
    """
    h = means.shape[1]
    squares = responses(model.recursion, params, h) ** 2
    if model.error == "add":
        return sigma2[:, None] * (1 + np.pad(squares[:, :-1].cumsum(1), ((0, 0), (1, 0))))
    moments = np.empty_like(means)
    for k in range(h):
        before = (squares[:, :k] * moments[:, :k][:, ::-1]).sum(1)
        moments[:, k] = means[:, k] ** 2 + sigma2 * before
    return (1 + sigma2)[:, None] * moments - means**2


def simulated(
    model: Components,
    params: np.ndarray,
    sigma2: np.ndarray,
    states: np.ndarray,
    z: np.ndarray,
    effects: np.ndarray,
) -> np.ndarray:
    """Paths (N, h, n) with standard normal innovations z (N or 1, h, n).

    Effects of exogenous columns have shape (N, h), or (N, 1) without columns.
    """
    columns = tuple(column[:, None] for column in _columns(params))
    shape = len(params), z.shape[2]
    fields = tuple(field[:, None].expand(shape) for field in _columns(states))
    sigma, shocks = torch.from_numpy(np.sqrt(sigma2))[:, None], torch.from_numpy(z)
    paths = np.empty((shape[0], *z.shape[1:]))
    added = torch.from_numpy(np.broadcast_to(effects, (shape[0], z.shape[1])).copy())
    for t in range(z.shape[1]):
        error = (sigma * shocks[:, t]).expand(shape)
        if model.error == "mul":  # an observation cannot be negative
            observe = partial(_relative, error.clamp(min=-1.0), added[:, t, None])
        else:
            observe = partial(_constant, error)
        fields, mean = advance(model.recursion, fields, columns, observe)
        paths[:, t] = (mean + added[:, t, None] + observe(mean)).numpy()
    return paths


def _relative(error: torch.Tensor, added: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    return error * (mean + added)


def _constant(residual: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    return residual
