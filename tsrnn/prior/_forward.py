"""Forward pass of `PriorNetwork` on numpy arrays, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from scipy.special import expit, ndtri

from tsrnn.prior._structural import N_FEATURES, SCALES, SEASONS, TRENDS

SIDE = (0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.995)  # probabilities learned above the median
PROBABILITIES = np.array([*(1 - p for p in reversed(SIDE)), 0.5, *SIDE])
N_CURVES = 3  # basis functions of the step, see `step_curves`
FASTEST_CURVE = 4  # rows of the shortest season that the curves know
LATEST = 3.0  # seasons after which the curves are constant
UNIT_SOFTPLUS = 0.5413  # inverse softplus of 1
MOST_CORRECTION = 0.3  # standard deviations; starts small beside the structural models
LEAST_VARIANCE = 1e-4  # of a forecast over the squared mean change: keeps the root smooth
START_POWER = -1.2  # exp(-1.2) = 0.3: likelihoods of misspecified models are overconfident
NORM_EPSILON = 1e-5  # as in torch.nn.LayerNorm
SOFTPLUS_LINEAR = 20.0  # beyond, torch replaces softplus by its argument
# Cells and options of their layers. An LRU needs no position-wise network: the head is one.
CELL_OPTIONS: dict[str, dict[str, Any]] = {
    "rnn": {},
    "lem": {},
    "lru": {"mlp": False},
    "newton-gru": {},
    "newton-lstm": {},
}
PRIOR_CELLS = tuple(CELL_OPTIONS)
ON_ARRAYS = ("rnn",)  # cells with a forward pass in this file
# Sizes of the head's outputs for each origin. Seasons and scales need the first two curves only.
PARTS = {
    "trend": N_CURVES * len(TRENDS),
    "season": 2 * len(SEASONS),
    "scale": 2 * len(SCALES),
    "power": 1,
    "gaps": 2 * N_CURVES * len(SIDE),
    "shift": N_CURVES,
}

Array = TypeVar("Array")


class Predictive(NamedTuple, Generic[Array]):
    """Predictive distributions of h rows from O origins, in the units of `Evidence`.

    The state has the inputs and the recurrent state, from which the weights are computed.
    """

    median: Array  # (O, h)
    quantiles: Array  # (O, len(PROBABILITIES), h)
    weights: Array  # of the structural models in the median, (O, J, h)
    state: Array  # (O, D)


def weight_shapes(
    hidden_size: int = 64, n_layers: int = 2, width: int = 128, cell: str = "rnn"
) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights of a `PriorNetwork` of the cell "rnn", by name."""
    if hidden_size % 2:
        raise ValueError(f"hidden_size must be a multiple of 2; got {hidden_size}")
    shapes: dict[str, tuple[int, ...]] = {
        "common": (len(SCALES), len(TRENDS), len(SEASONS)),
        "gaps": (len(SIDE),),
        "norm.weight": (N_FEATURES,),
        "norm.bias": (N_FEATURES,),
    }
    for layer in range(n_layers):
        n_inputs = hidden_size if layer else N_FEATURES
        shapes[f"rnn.weight_ih_l{layer}"] = (hidden_size, n_inputs)
        shapes[f"rnn.weight_hh_l{layer}"] = (2, 2, hidden_size // 2)
        shapes[f"rnn.bias_l{layer}"] = (hidden_size,)
    n_state = N_FEATURES + (hidden_size if n_layers else 0)
    shapes |= {"head.0.weight": (width, n_state), "head.0.bias": (width,)}
    n_parts = sum(PARTS.values())
    return shapes | {"head.2.weight": (n_parts, width), "head.2.bias": (n_parts,)}


def predict(
    weights: Mapping[str, np.ndarray],
    features: np.ndarray,
    series: np.ndarray,
    rows: np.ndarray,
    season_length: int,
    forecasts: np.ndarray,
    deviations: np.ndarray,
    log_likelihood: np.ndarray,
) -> Predictive[np.ndarray]:
    """Predictive distributions from O rows of S series, as `PriorNetwork.forward` gives them.

    The weights belong to a network with the cell "rnn", in the precision to compute in; the other
    arguments are those of `PriorNetwork.forward`.
    """
    # Layer normalisation in place: features of a panel are larger than the cache.
    inputs = features - features.mean(-1, keepdims=True)
    variance = np.einsum("stf,stf->st", inputs, inputs) / features.shape[-1]
    inputs *= (1 / np.sqrt(variance + NORM_EPSILON))[..., None]
    inputs *= weights["norm.weight"]
    inputs += weights["norm.bias"]
    state = inputs[series, rows]
    if "rnn.bias_l0" in weights:
        recurrent = _run_layers(inputs, weights)
        state = np.concatenate([state, recurrent[series, rows]], -1)
    hidden = state @ weights["head.0.weight"].T + weights["head.0.bias"]
    answer = (hidden * expit(hidden)) @ weights["head.2.weight"].T + weights["head.2.bias"]
    borders = np.cumsum(list(PARTS.values()))[:-1]
    parts = dict(zip(PARTS, np.split(answer, borders, -1), strict=True))
    curves = step_curves(forecasts.shape[-1], season_length)

    def by_step(name: str, n_curves: int) -> np.ndarray:
        product = parts[name].reshape(-1, n_curves) @ curves[:n_curves]
        return product.reshape(len(state), -1, product.shape[1])

    n_seasons = len(SEASONS) if season_length > 1 else 1
    trend, season, scale = by_step("trend", N_CURVES), by_step("season", 2), by_step("scale", 2)
    common = weights["common"][:, :, :n_seasons, None]
    weight = scale[:, :, None, None] + trend[:, None, :, None] + common
    weight += season[:, None, None, :n_seasons]
    weight = weight.reshape(forecasts.shape)
    power = np.exp(0.5 * parts["power"] + START_POWER)
    weight += (power * log_likelihood)[..., None]
    # Softmax over the models, in place: these arrays are the largest.
    weight -= weight.max(1, keepdims=True)
    np.exp(weight, out=weight)
    weight /= weight.sum(1, keepdims=True)
    median = np.einsum("ojh,ojh->oh", weight, forecasts)
    spread = forecasts - median[:, None]
    spread *= spread
    spread += deviations * deviations
    deviation = np.sqrt(np.einsum("ojh,ojh->oh", weight, spread) + LEAST_VARIANCE)
    median = median + MOST_CORRECTION * deviation * (parts["shift"] @ curves)

    gaps = _softplus(by_step("gaps", N_CURVES) + UNIT_SOFTPLUS)
    below, above = (
        (side * weights["gaps"][:, None]).cumsum(1) for side in np.split(gaps, 2, axis=1)
    )
    offsets = np.concatenate([-below[:, ::-1], np.zeros_like(below[:, :1]), above], 1)
    quantiles = median[:, None] + offsets * deviation[:, None]
    return Predictive(median, quantiles, weight, state)


def _run_layers(inputs: np.ndarray, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """States (S, T, hidden_size) of the last layer, h_t = tanh(W h_{t-1} + u_t) with 2x2 blocks."""
    n_series, n_rows, _ = inputs.shape
    layer = 0
    while f"rnn.bias_l{layer}" in weights:
        matrix = weights[f"rnn.weight_hh_l{layer}"]  # (2, 2, K), unit i of block k is i * K + k
        projected = inputs @ weights[f"rnn.weight_ih_l{layer}"].T + weights[f"rnn.bias_l{layer}"]
        # Time first, so that a step reads memory in order.
        steps = np.ascontiguousarray(projected.swapaxes(0, 1)).reshape(n_rows, n_series, 2, -1)
        state = np.zeros(steps.shape[1:])
        for step in steps:  # states replace the projections in place
            step += matrix[:, 0] * state[:, :1] + matrix[:, 1] * state[:, 1:]
            state = np.tanh(step, out=step)
        inputs = steps.reshape(n_rows, n_series, -1).swapaxes(0, 1)
        layer += 1
    return inputs


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.where(x > SOFTPLUS_LINEAR, x, np.log1p(np.exp(np.minimum(x, SOFTPLUS_LINEAR))))


def step_curves(h: int, season_length: int) -> np.ndarray:
    """Curves (3, h) of the steps 1 to h: constant, logarithm, seasons beyond the first."""
    steps = np.arange(1.0, h + 1)
    late = np.minimum(steps / max(season_length, FASTEST_CURVE) - 1, LATEST)
    return np.stack([np.ones_like(steps), (np.log(steps) - 1.5) / 1.5, late])


def neighbours(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of the next quantile of `PROBABILITIES` to the right, and its weight.

    Normal scores are interpolated linearly, and extrapolated beyond the outermost quantiles.
    """
    known, scores = ndtri(PROBABILITIES), ndtri(probabilities)
    right = np.clip(np.searchsorted(known, scores), 1, len(known) - 1)
    return right, (scores - known[right - 1]) / (known[right] - known[right - 1])


def at_probabilities(quantiles: np.ndarray, probabilities: Sequence[float]) -> np.ndarray:
    """Interpolate quantiles (O, 15, h) at `PROBABILITIES` to n probabilities, shape (O, n, h)."""
    right, weight = neighbours(np.asarray(probabilities, float))
    weight = weight[:, None]
    return (1 - weight) * quantiles[:, right - 1] + weight * quantiles[:, right]
