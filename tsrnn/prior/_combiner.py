"""Combination of the forecasts of several models, with weights and quantiles from a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tsrnn.prior._file import TrainedNetwork
from tsrnn.prior._forward import PROBABILITIES, at_probabilities
from tsrnn.prior._network import step_curves
from tsrnn.prior._trained import Forecasts

COMBINED = ("ETS", "Theta", "CES", "AutoARIMA")  # combined classes, in the order of the weights
N_CURVES = 2  # of the step: a constant and a logarithm
# Largest change of a log weight, a factor of 0.6 to 1.65: wrong weights cost series unlike the
# training data little.
MOST_CHANGE = 0.5
LEAST_SPREAD = 0.05  # standard deviations; forecasts that are closer agree
FARTHEST = 50.0  # bound of the inputs, in standard deviations from the prior's median
INNER = (PROBABILITIES.searchsorted(0.1 - 1e-9), PROBABILITIES.searchsorted(0.9 - 1e-9))
INNER_WIDTH = 2.5631  # width of a normal 80 percent interval in standard deviations
LEAST_DEVIATION = 1e-13  # over the largest forecast: smaller ones are rounding errors


class CombinerInputs(NamedTuple):
    """Inputs of the combiner: forecasts of K models from O origins, the prior as the last.

    Distances are forecasts less the prior's median, over its standard deviation; 0 if missing.
    """

    state: Tensor  # of the prior network at the origin, (O, D)
    distances: Tensor  # (O, K, h)
    known: Tensor  # mask of the models with forecasts, (O, K)

    @classmethod
    def of(cls, prior: Forecasts, forecasts: np.ndarray) -> CombinerInputs:
        """Inputs from forecasts (O, K - 1, h) of the other models, NaN if missing."""
        known = np.isfinite(forecasts).all(2, keepdims=True)
        given = np.where(known, forecasts, prior.median[:, None])
        distances = (given - prior.median[:, None]) / prior_deviation(prior)[:, None]
        distances = np.pad(np.clip(distances, -FARTHEST, FARTHEST), ((0, 0), (0, 1), (0, 0)))
        known = np.pad(known[..., 0], ((0, 0), (0, 1)), constant_values=True)
        return cls(*map(torch.from_numpy, (prior.state, distances, known)))


class CombinerWeights(NamedTuple):
    """Weights of the models, the prior as the last, which sum to one, and factors by origin.

    The factors multiply the distances of the prior's quantiles from its median.
    """

    weights: Tensor  # (O, K, h)
    factors: Tensor  # (O, 15, h)


def prior_deviation(prior: Forecasts) -> np.ndarray:
    """Standard deviation (U, h) of the normal distribution with the prior's 80 percent interval."""
    low, high = INNER
    deviation = (prior.quantiles[:, high] - prior.quantiles[:, low]) / INNER_WIDTH
    largest = np.abs(prior.median).max(1, keepdims=True)
    floor = LEAST_DEVIATION * np.where(largest > 0, largest, 1.0)
    return np.maximum(deviation, floor)


class CombinerNetwork(nn.Module):
    r"""Network for the weights of several models and the factors of the prior's quantiles.

    .. math:: w_{ik} \propto \exp\Big( \tfrac12 \tanh a_{ik}(h_t, z_t) - e^{c(h_t, z_t)} \,
        \frac{|z_{itk} - m_{tk}|}{d_{tk}} \Big), \qquad
        \hat y_{t+k} = \sum_i w_{ik} \hat y_{i, t+k}

    Here :math:`h_t` is the state of the prior network, z are the forecasts relative to the prior's,
    m is their median and d their mean distance from it. Weights decrease with the distance from the
    median of the models: before training the combination lies between mean and median, and training
    moves it little. The step enters by two curves and by means of z up to the step, which are
    defined for any horizon. The quantiles are the prior's, moved to the combination, with distances
    multiplied by :math:`e^{s_k(h_t, z_t)} (1 + d_{tk})^g` on each side. A layer of `width` units
    lies between the inputs and the weights; in training, the share `dropout` of inputs is 0.
    """

    def __init__(self, state_size: int, width: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        self.state_size, self.width = state_size, width
        n_models = len(COMBINED) + 1
        self._parts = {"model": N_CURVES * n_models, "closeness": 1, "side": 2 * N_CURVES}
        n_summaries = 2 * len(COMBINED) + 1
        first = nn.Linear(state_size + n_summaries, width)
        last = nn.Linear(width, sum(self._parts.values()))
        self.head = nn.Sequential(nn.Dropout(dropout), first, nn.SiLU(), last)
        # Zero, so that before training the weights depend on `common` only.
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.common = nn.Parameter(torch.zeros(n_models, N_CURVES))
        self.spread_power = nn.Parameter(torch.zeros(2))

    def forward(self, inputs: CombinerInputs, season_length: int) -> CombinerWeights:
        """Weights and factors at the steps of the inputs."""
        state, distances, known = inputs
        h = distances.shape[-1]
        curves = step_curves(h, season_length, state.dtype)[:N_CURVES].T
        there = known[..., None]
        # nanmedian returns the lower of two middle values; both signs together give the median.
        alive = torch.where(there, distances, torch.nan)
        centre = (alive.nanmedian(1).values - (-alive).nanmedian(1).values) / 2
        apart = torch.where(there, (distances - centre[:, None]).abs(), 0.0)
        spread = apart.sum(1) / known.sum(1, keepdim=True)

        # Means over the steps up to each one, so that a forecast does not depend on the horizon.
        by_step = [distances[:, :-1].asinh(), (spread + LEAST_SPREAD).log()[:, None]]
        means = torch.cat(by_step, 1).cumsum(-1) / torch.arange(1, h + 1)
        constant = torch.cat([state, known[:, :-1].to(state.dtype)], 1)
        summaries = [constant[:, None].expand(-1, h, -1), means.transpose(1, 2)]
        sizes = list(self._parts.values())
        head = self.head(torch.cat(summaries, -1)).split(sizes, -1)
        parts = dict(zip(self._parts, head, strict=True))
        logits = self.common + parts["model"].unflatten(-1, (-1, N_CURVES))
        logits = MOST_CHANGE * (logits * curves[:, None]).sum(-1).tanh().transpose(1, 2)
        closeness = parts["closeness"].transpose(1, 2).exp()
        logits = logits - closeness * apart / (spread[:, None] + LEAST_SPREAD)
        weights = logits.masked_fill(~there, -torch.inf).softmax(1)

        sides = (parts["side"].unflatten(-1, (2, N_CURVES)) * curves[:, None]).sum(-1)
        sides = sides.transpose(1, 2) + self.spread_power[:, None] * spread.log1p()[:, None]
        sides = sides.exp()
        middle = len(PROBABILITIES) // 2
        factors = torch.cat(
            [sides[:, :1].expand(-1, middle, -1), sides[:, 1:].expand(-1, middle + 1, -1)], 1
        )
        return CombinerWeights(weights, factors)


@dataclass(frozen=True, eq=False)
class Combined:
    """Combined forecasts of h rows of U units, with the quantiles at `PROBABILITIES`."""

    median: np.ndarray  # (U, h)
    quantiles: np.ndarray  # (U, 15, h)
    weights: np.ndarray  # (U, K, h)

    def at(self, probabilities: Sequence[float]) -> np.ndarray:
        """Quantiles (U, n, h) at n probabilities between 0 and 1."""
        return at_probabilities(self.quantiles, probabilities)


@dataclass(frozen=True, eq=False)
class TrainedCombiner(TrainedNetwork):
    """Pretrained network of a combination; `size` has the arguments of `CombinerNetwork`."""

    prefix = "combiner."
    noun = "network of a combination"

    @staticmethod
    def new_network(**size: Any) -> CombinerNetwork:
        """Untrained network of the given size."""
        return CombinerNetwork(**size)

    @torch.inference_mode()
    def combine(self, prior: Forecasts, forecasts: np.ndarray, season_length: int) -> Combined:
        """Combine forecasts (U, 4, h) of the models of `COMBINED`, NaN if missing, with a prior."""
        inputs = CombinerInputs.of(prior, forecasts)
        answer: CombinerWeights = self.float64_network(inputs, season_length)
        weights, factors = answer.weights.numpy(), answer.factors.numpy()
        values = np.concatenate([forecasts, prior.median[:, None]], 1)
        median = (weights * np.where(inputs.known[..., None].numpy(), values, 0.0)).sum(1)
        offsets = factors * (prior.quantiles - prior.median[:, None])
        return Combined(median, median[:, None] + offsets, weights)


def trained_combiner(path: str | Path | None = None) -> TrainedCombiner:
    """Read a network written by `TrainedCombiner.save`, by default the network of the package."""
    if path is not None:
        return TrainedCombiner.read(path)
    return TrainedCombiner.shipped("combiner.safetensors")
