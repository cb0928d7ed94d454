"""Forecasts of values and variances from a state, and what surrounds them."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.garch._filter import State
from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._simulate import (
    expected_mean,
    expected_variance,
    impulse_responses,
    simulate,
)

_NUMBERS = 2**23  # of the paths of a chunk of units


def draws(model: Model, params: np.ndarray, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Innovations (N or 1, h, paths) and their mirror images, the same for equal shapes.

    Every unit starts from the same seed, so that its paths do not depend on the other units.
    """
    h, paths = shape
    half, shapes = (h, (paths + 1) // 2), params[:, model.shape_part]
    rows = shapes if model.density.names else shapes[:1]
    z = np.full((len(rows), *half), np.nan)
    for i in np.flatnonzero(np.isfinite(rows).all(1)):
        z[i] = model.density.draw(np.random.default_rng(seed), half, rows[i : i + 1])[0]
    return np.concatenate([z, -z], 2)[:, :, :paths]


def resampled(residuals: np.ndarray, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Innovations (N, h, paths) drawn from standardised residuals (N, T), NaN left out."""
    rows = []
    for own in residuals:
        own = own[np.isfinite(own)]
        generator = np.random.default_rng(seed)
        rows.append(generator.choice(own, shape) if len(own) else np.full(shape, np.nan))
    return np.array(rows)


def chunks(n: int, shape: tuple[int, int]) -> list[slice]:
    """Parts of n units whose paths of a shape fit into memory together."""
    size = max(1, _NUMBERS // (shape[0] * shape[1]))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def of_part(state: State, part: slice) -> State:
    """State of some units."""
    return State(state.memory[part], state.recent[part])


def simulated_variance(
    model: Model, params: np.ndarray, state: State, shape: tuple[int, int], seed: int
) -> np.ndarray:
    """Mean variance (N, h) of simulated paths."""
    result = np.empty((len(params), shape[0]))
    for part in chunks(len(params), shape):
        z = draws(model, params[part], shape, seed)
        paths = simulate(model, params[part], of_part(state, part), z)
        result[part] = paths.variance.mean(2)
    return result


def bootstrapped_variance(
    model: Model,
    params: np.ndarray,
    state: State,
    shape: tuple[int, int],
    seed: int,
    residuals: np.ndarray,
) -> np.ndarray:
    """Mean variance (N, h) of paths with innovations drawn from standardised residuals (N, T)."""
    result = np.empty((len(params), shape[0]))
    for part in chunks(len(params), shape):
        z = resampled(residuals[part], shape, seed)
        paths = simulate(model, params[part], of_part(state, part), z)
        result[part] = paths.variance.mean(2)
    return result


def simulated_quantiles(
    model: Model,
    params: np.ndarray,
    state: State,
    shape: tuple[int, int],
    seed: int,
    probabilities: list[float],
) -> np.ndarray:
    """Quantiles (probabilities, N, h): the model's own for the first step, then of paths."""
    n, h = len(params), shape[0]
    result = np.empty((len(probabilities), n, h))
    for part in chunks(n, shape):
        z = draws(model, params[part], shape, seed)
        y = simulate(model, params[part], of_part(state, part), z).y
        result[:, part] = np.quantile(y, probabilities, axis=2)
    result[:, :, 0] = analytic_quantiles(model, params, state, 1, probabilities)[:, :, 0]
    return result


def analytic_quantiles(
    model: Model, params: np.ndarray, state: State, h: int, probabilities: list[float]
) -> np.ndarray:
    r"""Quantiles (probabilities, N, h) with the density's shape at every step.

    The variance of the error of step k is :math:`\sum_{j<k} \psi_j^2 E h_{T+k-j}`, which is
    right; that the sum of errors has the density of one is right for the first step only.
    """
    point = expected_mean(model, params, state, h)
    variance = expected_variance(model, params, state, h)
    weights = impulse_responses(model, params, h) ** 2
    spread = np.stack([(weights[:, : k + 1] * variance[:, k::-1]).sum(1) for k in range(h)], axis=1)
    shape = params[:, model.shape_part]
    return np.stack([
        point + model.density.quantile(probability, shape)[:, None] * np.sqrt(spread)
        for probability in probabilities
    ])  # fmt: skip
