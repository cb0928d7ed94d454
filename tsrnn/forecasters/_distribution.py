"""Distributions of forecast errors, learned as functions of the state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.special import ndtri, stdtrit
from torch import Tensor, nn
from torch.nn.functional import softplus

DEGREES = 8.0  # degrees of freedom before training: heavier tails than normal, seven moments
LEAST_SCALE = 1e-4  # keeps the logarithm of the scale finite
FEWEST_DEGREES = 2.1  # the variance exists above 2
SIDE = (0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.995)  # probabilities learned above the median
LARGEST_LEVEL = 100 * (2 * SIDE[-1] - 1)


class Distribution(nn.Module, ABC):
    """Base of the distributions: a linear map of the state gives their `fields` parameters.

    The distributions are of errors over the local spread, by step and target. After `start`, they
    are the same in all states.
    """

    def __init__(self, hidden_size: int, horizon: int, n_targets: int, fields: int) -> None:
        super().__init__()
        self.shape = (horizon, n_targets, fields)
        self.map = nn.Linear(hidden_size, horizon * n_targets * fields)

    @torch.no_grad()
    def start(self, size: Tensor) -> None:
        """Initialise with errors of root mean square `size`, shape (h, C), over the spread."""
        self.map.weight.zero_()
        # Clamped, as the gradient of softplus vanishes at errors near zero.
        fields = self._fields_of(size[..., None].double().clamp(min=1e-3))
        self.map.bias.copy_(fields.expand(self.shape).flatten())

    def forward(self, states: Tensor) -> Tensor:
        """Map states, (..., hidden), to parameters, (..., h, C, fields)."""
        return self.map(states).unflatten(-1, self.shape)

    @abstractmethod
    def _fields_of(self, size: Tensor) -> Tensor:
        """Parameters, (h, C, fields), of errors of root mean square `size`, (h, C, 1)."""

    @abstractmethod
    def loss(self, error: Tensor, spread: Tensor, shape: Tensor) -> Tensor:
        """Loss of errors, both (..., h, C); the local spread broadcasts to them."""

    @abstractmethod
    def quantiles(self, shape: Tensor, probabilities: Sequence[float]) -> Tensor:
        """Quantiles of errors over the local spread, shape (..., h, C, len(probabilities))."""


class Quantiles(Distribution):
    r"""Quantiles around the median, fitted by the check loss (Koenker and Bassett, 1978).

    .. math:: L = \frac2Q \sum_q \max(q e_q, (q - 1) e_q), \qquad e_q = y - \hat y - s_t o_q

    The point forecast is the median. The offsets o are sums of positive numbers, so that quantiles
    do not cross. Between learned quantiles, offsets are linear in the normal score.
    """

    def __init__(self, hidden_size: int, horizon: int, n_targets: int) -> None:
        super().__init__(hidden_size, horizon, n_targets, 2 * len(SIDE))

    def _fields_of(self, size: Tensor) -> Tensor:
        gaps = torch.as_tensor(np.diff(ndtri(np.array([0.5, *SIDE]))))
        return inverse_softplus(size * gaps).repeat(1, 1, 2)

    def _offsets(self, shape: Tensor) -> Tensor:
        """Offsets of the quantiles 1 - SIDE, 0.5 and SIDE in ascending order, (..., 2 n + 1)."""
        below, above = softplus(shape).chunk(2, -1)
        median = torch.zeros_like(shape[..., :1])
        return torch.cat([-below.cumsum(-1).flip(-1), median, above.cumsum(-1)], -1)

    def loss(self, error: Tensor, spread: Tensor, shape: Tensor) -> Tensor:
        """See `Distribution`."""
        offsets = self._offsets(shape) * spread[..., None]
        beyond = error[..., None] - offsets
        levels = beyond.new_tensor(_probabilities())
        return 2 * torch.maximum(levels * beyond, (levels - 1) * beyond).mean(-1)

    def quantiles(self, shape: Tensor, probabilities: Sequence[float]) -> Tensor:
        """See `Distribution`; raises if a probability lies outside the learned range."""
        offsets, scores = self._offsets(shape), ndtri(_probabilities())
        quantiles = []
        for probability in probabilities:
            # The level 99 gives 0.995 only up to rounding.
            if not 1 - SIDE[-1] - 1e-9 <= probability <= SIDE[-1] + 1e-9:
                raise ValueError(
                    f"intervals='quantile' has learned levels up to {LARGEST_LEVEL:g}; got "
                    f"{100 * abs(2 * probability - 1):g}. Ask for a lower level, or fit with "
                    "intervals='student-t'"
                )
            score = np.clip(ndtri(probability), scores[0], scores[-1])
            right = int(np.clip(np.searchsorted(scores, score), 1, len(scores) - 1))
            weight = (score - scores[right - 1]) / (scores[right] - scores[right - 1])
            quantiles.append((1 - weight) * offsets[..., right - 1] + weight * offsets[..., right])
        return torch.stack(quantiles, -1)


class StudentT(Distribution):
    r"""Student's t around the point forecast, fitted by maximum likelihood.

    .. math:: y_{t+k} \sim \hat y_{t+k} + s_t \, \sigma_k(h_t) \, t_{\nu_k(h_t)}
    """

    def __init__(self, hidden_size: int, horizon: int, n_targets: int) -> None:
        super().__init__(hidden_size, horizon, n_targets, 2)

    def _fields_of(self, size: Tensor) -> Tensor:
        scale = size * math.sqrt((DEGREES - 2) / DEGREES)
        scale = (scale - LEAST_SCALE).clamp(min=0.01 * LEAST_SCALE)  # softplus is positive
        degrees = torch.full_like(size, DEGREES - FEWEST_DEGREES)
        return inverse_softplus(torch.cat([scale, degrees], -1))

    def _parameters_of(self, shape: Tensor) -> tuple[Tensor, Tensor]:
        """Scale and degrees of freedom."""
        return softplus(shape[..., 0]) + LEAST_SCALE, FEWEST_DEGREES + softplus(shape[..., 1])

    def loss(self, error: Tensor, spread: Tensor, shape: Tensor) -> Tensor:
        """See `Distribution`."""
        scale, degrees = self._parameters_of(shape)
        scale = scale * torch.where(spread > 0, spread, 1.0)
        size = (error / scale).square() / degrees
        half = degrees / 2
        # Log gamma, as the gamma function overflows from 172 on.
        constant = torch.lgamma(half) - torch.lgamma(half + 0.5) + 0.5 * (degrees * math.pi).log()
        loss = constant + scale.log() + (half + 0.5) * torch.log1p(size)
        return torch.where(spread > 0, loss, 0.0)  # constant series carry no information

    def quantiles(self, shape: Tensor, probabilities: Sequence[float]) -> Tensor:
        """See `Distribution`."""
        scale, degrees = self._parameters_of(shape)
        quantiles = [
            scale * torch.as_tensor(stdtrit(degrees.detach().double().numpy(), p)).to(scale.dtype)
            for p in probabilities
        ]
        return torch.stack(quantiles, -1)


HEADS: dict[str, Callable[[int, int, int], Distribution]] = {
    "quantile": Quantiles,
    "student-t": StudentT,
}


def inverse_softplus(value: Tensor) -> Tensor:
    """Inverse of softplus, without overflow for large values."""
    return value + torch.log(-torch.expm1(-value))


def _probabilities() -> np.ndarray:
    """Probabilities of the learned quantiles in ascending order."""
    return np.array([*(1 - p for p in reversed(SIDE)), 0.5, *SIDE])
