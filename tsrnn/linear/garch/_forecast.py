"""Forecasts of values and variances from a state, and paths simulated from it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear.garch._density import Density
from tsrnn.linear.garch._filter import VarianceState
from tsrnn.linear.garch._inference import shock_covariances, transition
from tsrnn.linear.garch._prepare import chunks
from tsrnn.linear.garch._specification import Fields, Model, Step, UnivariateMean

_NUMBERS = 2**23  # floats of the paths of a chunk of units: 64 MB
_MOST_CACHED = 2**17  # innovations that are cached for the next forecast: 1 MB


def expected_mean(model: Model, params: np.ndarray, state: VarianceState, h: int) -> np.ndarray:
    """Expected values (N, h): the recursion with residuals of zero."""
    columns = torch.from_numpy(np.array(params.T)).unbind(0)[model.mean_part]
    memory = tuple(torch.tensor(state.memory.T))[: model.mean.n_ma]
    past, zero = list(torch.tensor(state.recent.T)), torch.zeros(len(params), dtype=torch.float64)
    return torch.stack(_append_means(model.mean, columns, memory, past, zero, h)[-h:], 1).numpy()


def _append_means(
    mean: UnivariateMean, columns: Fields, memory: Fields, past: list[Tensor], zero: Tensor, h: int
) -> list[Tensor]:
    """Append h values with residuals of zero to past values."""
    for _ in range(h):
        lagged = tuple(past[-lag] for lag in mean.lags)
        past = [*past, zero + mean.predicted(memory, lagged, columns)]
        memory = mean.advance(memory, zero, columns)
    return past


def expected_variance(model: Model, params: np.ndarray, state: VarianceState, h: int) -> np.ndarray:
    """Expected variances (N, h); an EGARCH has them for h = 1 only."""
    vol, n_ma = model.vol, model.mean.n_ma
    if vol.root:
        return _expected_squares(model, params, state.memory[:, n_ma:], h)
    columns = torch.from_numpy(np.array(params.T)).unbind(0)[model.vol_part]
    fields = tuple(torch.tensor(state.memory.T))[n_ma:]
    variances = []
    for _ in range(h):
        variances.append(vol.variance_alone(fields))
        shocks = tuple(weight * fields[0] for weight in vol.expected)
        fields = vol.advance(fields, shocks, columns, (model.p, model.q))
    return torch.stack(variances, 1).numpy()


def _expected_squares(model: Model, params: np.ndarray, first: np.ndarray, h: int) -> np.ndarray:
    r"""Expected squares (N, h) of a recursion of roots, after a state (N, r).

    The first and second moments of the companion form :math:`s_{t+1} = A_t s_t + \omega` follow
    :math:`E s_{t+1} = E[A_t] E s_t + \omega` and
    :math:`E s_{t+1} s_{t+1}' = E[A_t M A_t'] + E[A_t s_t] \omega' + \omega E[A_t s_t]' +
    \omega \omega'` with :math:`M = E s_t s_t'`, whose first element is :math:`E h_t`.
    """
    mean, news = transition(model, params)
    joint, omega = shock_covariances(model, params), params[:, model.omega]
    second = first[:, :, None] * first[:, None, :]
    expected = np.empty((len(params), h))
    for k in range(h):
        expected[:, k] = second[:, 0, 0]
        carried = np.einsum("nij,nj->ni", mean, first)
        second = mean @ second @ mean.swapaxes(1, 2)
        for s, t in np.ndindex(joint.shape[1:]):  # only the first column of A_t is random
            size = joint[:, s, t] * expected[:, k]
            second += size[:, None, None] * news[s][:, :, :1] * news[t][:, None, :, 0]
        second[:, 0, :] += omega[:, None] * carried
        second[:, :, 0] += omega[:, None] * carried
        second[:, 0, 0] += omega**2
        first = carried
        first[:, 0] += omega
    return expected


def analytic_quantiles(
    model: Model, params: np.ndarray, state: VarianceState, h: int, probabilities: list[float]
) -> np.ndarray:
    """Quantiles (probabilities, N, h), as if forecast errors had the density of the innovations.

    Exact for the first step. Later steps have the right variance, but a sum of errors has another
    density.
    """
    mean = expected_mean(model, params, state, h)
    spread = error_variance(model, params, expected_variance(model, params, state, h))
    shape = params[:, model.shape_part]
    return np.stack([
        mean + model.density.quantile(probability, shape)[:, None] * np.sqrt(spread)
        for probability in probabilities
    ])  # fmt: skip


def error_variance(model: Model, params: np.ndarray, variance: np.ndarray) -> np.ndarray:
    r"""Variance (N, h) of the error of forecasts of y, :math:`\sum_{j<k} \psi_j^2 E h_{T+k-j}`.

    `variance` (N, h) are the expected variances of the residuals, which are uncorrelated.
    """
    h = variance.shape[1]
    weights = impulse_responses(model, params, h) ** 2
    return np.stack([(weights[:, : k + 1] * variance[:, k::-1]).sum(1) for k in range(h)], axis=1)


def impulse_responses(model: Model, params: np.ndarray, h: int) -> np.ndarray:
    """Effect (N, h) of a residual on the values 0, 1, ... steps later."""
    mean = model.mean
    columns = torch.from_numpy(np.array(params.T)).unbind(0)[model.mean_part]
    shock = torch.ones(len(params), dtype=torch.float64)
    zero = torch.zeros_like(shock)
    columns = (*(zero for _ in range(mean.constant)), *columns[mean.constant :])
    memory = mean.advance((zero,) * mean.n_ma, shock, columns)
    past = [zero] * mean.n_dropped + [shock]
    values = _append_means(mean, columns, memory, past, zero, h - 1)
    return torch.stack(values[mean.n_dropped :], 1).numpy()


def simulated_quantiles(
    model: Model,
    params: np.ndarray,
    state: VarianceState,
    shape: tuple[int, int],
    seed: int,
    probabilities: list[float],
) -> np.ndarray:
    """Quantiles (probabilities, N, h): exact for the first step, then of simulated paths."""
    n, h = len(params), shape[0]
    result = np.empty((len(probabilities), n, h))
    for part in chunks(n, shape[0] * shape[1], _NUMBERS):
        z = _innovations(model, params[part], shape, seed)
        y = simulate_garch(model, params[part], state.select(part), z).y
        result[:, part] = np.quantile(y, probabilities, axis=2, overwrite_input=True)
    # The error of the first step is an innovation: its quantiles need no paths.
    result[:, :, 0] = analytic_quantiles(model, params, state, 1, probabilities)[:, :, 0]
    return result


def simulated_variance(
    model: Model,
    params: np.ndarray,
    state: VarianceState,
    shape: tuple[int, int],
    seed: int,
    residuals: np.ndarray | None = None,
) -> np.ndarray:
    """Mean variance (N, h) over simulated paths.

    Innovations have the density of the model, or are drawn from standardised `residuals` (N, T)
    without their NaN.
    """
    result = np.empty((len(params), shape[0]))
    for part in chunks(len(params), shape[0] * shape[1], _NUMBERS):
        if residuals is None:
            z = _innovations(model, params[part], shape, seed)
        else:
            z = np.full((len(residuals[part]), *shape), np.nan)
            for i, row in enumerate(residuals[part]):
                if len(observed := row[np.isfinite(row)]):
                    z[i] = np.random.default_rng(seed).choice(observed, shape)
        paths = simulate_garch(model, params[part], state.select(part), z)
        result[part] = paths.variance.mean(2)
    return result


def _innovations(model: Model, params: np.ndarray, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Antithetic innovations (N or 1, h, paths).

    Every unit starts from the same seed, so that its paths do not depend on the batch.
    """
    shapes = params[:, model.shape_part]
    rows = (shapes if model.density.names else shapes[:1]).tolist()
    cached = len(rows) == 1 and shape[0] * shape[1] <= _MOST_CACHED
    draw = _cached_innovations if cached else mirrored_innovations
    return np.stack([draw(model.density, tuple(row), shape, seed) for row in rows])


def mirrored_innovations(
    density: Density, parameters: tuple[float, ...], shape: tuple[int, int], seed: int
) -> np.ndarray:
    """Antithetic innovations (h, paths): the second half has the opposite sign of the first.

    They have less simulation error than independent paths. NaN if a parameter is NaN.
    """
    h, paths = shape
    row = np.array([parameters])
    if not np.isfinite(row).all():
        return np.full(shape, np.nan)
    z = density.draw(np.random.default_rng(seed), (h, (paths + 1) // 2), row)[0]
    return np.concatenate([z, -z], 1)[:, :paths]


# A stream of new rows asks for the same innovations after every row.
_cached_innovations = lru_cache(maxsize=8)(mirrored_innovations)


class Paths(NamedTuple):
    """Simulated values and variances, each of shape (N, h, paths)."""

    y: np.ndarray
    variance: np.ndarray


def simulate_garch(model: Model, params: np.ndarray, state: VarianceState, z: np.ndarray) -> Paths:
    """Simulate from a state with standardised innovations z (N or 1, h, paths)."""
    shape, shocks = (len(params), z.shape[2]), torch.from_numpy(z)
    values, variance = (np.empty((shape[0], z.shape[1], shape[1])) for _ in range(2))
    columns = torch.from_numpy(np.array(params.T))[..., None].unbind(0)
    fields = tuple(field[:, None].expand(shape) for field in torch.tensor(state.memory.T))
    past = [y[:, None].expand(shape) for y in torch.tensor(state.recent.T)]
    step, mean = Step(model), model.mean
    for t in range(z.shape[1]):
        h = model.vol.variance_alone(fields[mean.n_ma :])
        e = torch.sqrt(h) * shocks[:, t]
        lagged = tuple(past[-lag] for lag in mean.lags)
        y = e + mean.predicted(fields[: mean.n_ma], lagged, columns[model.mean_part])
        fields = step.advance(fields, e, h, columns)
        past = [*past[1:], y] if past else past  # keeps as many values as the longest lag
        values[:, t], variance[:, t] = y.numpy(), h.numpy()
    return Paths(values, variance)
