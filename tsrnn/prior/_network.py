"""Recurrent network that maps the evidence of structural models to forecast quantiles."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor, nn
from torch.nn.functional import softplus

from tsrnn.layers import layer_choice, make_layer
from tsrnn.prior._forward import (
    CELL_OPTIONS,
    FASTEST_CURVE,
    LATEST,
    LEAST_VARIANCE,
    MOST_CORRECTION,
    N_CURVES,
    PARTS,
    PRIOR_CELLS,
    SIDE,
    START_POWER,
    UNIT_SOFTPLUS,
    Predictive,
)
from tsrnn.prior._structural import N_FEATURES, SCALES, SEASONS, TRENDS

DROPOUT = 0.1  # of the features: the training collections are few
STATE_DROPOUT = 0.3  # of the state, which would learn the calendar years that collections share


class PriorNetwork(nn.Module):
    r"""Recurrent network that weighs the forecasts of structural models and sets their widths.

    .. math:: \hat y_{t+k} = \sum_j w_{jk}(h_t) \, \hat y_{j, t+k} + s_{tk} \, g_k(h_t), \qquad
        q_{p, t+k} = \hat y_{t+k} + s_{tk} \, o_{pk}(h_t)

    Here :math:`\hat y_j` are forecasts of structural models with fixed variances, each a linear
    recurrence. The weights w start as tempered posterior probabilities; :math:`s_{tk}` is the
    standard deviation of the mixture. The state :math:`h_t` belongs to a recurrence that reads
    prediction errors and posterior probabilities row by row. Functions of the step k are sums of
    three curves, which are defined for any horizon.

    Parameters
    ----------
    hidden_size : int, default 64
    n_layers : int, default 2
    width : int, default 128
        Width of the layer between the state and the weights.
    cell : {"rnn", "lem", "lru", "newton-gru", "newton-lstm"}, default "rnn"
        Cell of the recurrence, a name in `tsrnn.layers.CELLS`. LRU has no position-wise network
        here, because the head is one already.

    Attributes
    ----------
    cell : str
    state_size : int
        Size of `Predictive.state`.

    Raises
    ------
    ValueError
        If there is no such cell.

    Examples
    --------
    >>> from tsrnn.prior import PriorNetwork
    >>> network = PriorNetwork(hidden_size=8, n_layers=1, width=16)
    >>> sum(parameter.numel() for parameter in network.parameters()) < 10_000
    True
    """

    gaps: Tensor

    def __init__(
        self, hidden_size: int = 64, n_layers: int = 2, width: int = 128, cell: str = "rnn"
    ) -> None:
        super().__init__()
        if cell not in CELL_OPTIONS:
            raise ValueError(f"cell of a prior network must be one of {PRIOR_CELLS}; got {cell!r}")
        self.cell = cell
        choice = layer_choice(cell, CELL_OPTIONS[cell])
        self.rnn = make_layer(choice, N_FEATURES, hidden_size, n_layers) if n_layers else None
        self.norm = nn.LayerNorm(N_FEATURES)
        self.dropout, self.state_dropout = nn.Dropout(DROPOUT), nn.Dropout(STATE_DROPOUT)
        self.state_size = N_FEATURES + (hidden_size if n_layers else 0)
        last = nn.Linear(width, sum(PARTS.values()))
        self.head = nn.Sequential(nn.Linear(self.state_size, width), nn.SiLU(), last)
        # Zero, so that before training the forecast is the mean of the tempered posterior.
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.common = nn.Parameter(torch.zeros(len(SCALES), len(TRENDS), len(SEASONS)))
        gaps = np.diff(ndtri(np.array([0.5, *SIDE])))
        self.register_buffer("gaps", torch.tensor(gaps, dtype=torch.float32))

    def forward(
        self,
        features: Tensor,
        series: Tensor,
        rows: Tensor,
        season_length: int,
        forecasts: Tensor,
        deviations: Tensor,
        log_likelihood: Tensor,
    ) -> Predictive[Tensor]:
        """Predictive distributions from O rows of S series.

        Parameters
        ----------
        features : Tensor of shape (S, T, N_FEATURES)
        series, rows : integer Tensor of shape (O,)
            Series and row of each origin.
        season_length : int
        forecasts, deviations, log_likelihood : Tensor
            As in `Evidence`.
        """
        inputs = self.norm(features)
        state = self.dropout(inputs[series, rows])
        if self.rnn is not None:
            memory = self.rnn(inputs)[0][series, rows]
            state = torch.cat([state, self.state_dropout(memory)], -1)
        parts = dict(zip(PARTS, self.head(state).split(list(PARTS.values()), -1), strict=True))
        h = forecasts.shape[-1]
        curves = step_curves(h, season_length, features.dtype)

        n_seasons = len(SEASONS) if season_length > 1 else 1
        trend = parts["trend"].unflatten(-1, (len(TRENDS), N_CURVES)) @ curves
        season = parts["season"].unflatten(-1, (len(SEASONS), 2)) @ curves[:2]
        scale = parts["scale"].unflatten(-1, (len(SCALES), 2)) @ curves[:2]
        logits = (
            scale[:, :, None, None]
            + trend[:, None, :, None]
            + season[:, None, None, :n_seasons]
            + self.common[:, :, :n_seasons, None]
        ).flatten(1, 3)
        power = torch.exp(0.5 * parts["power"] + START_POWER)
        weights = torch.softmax(logits + (power * log_likelihood)[..., None], 1)
        median = (weights * forecasts).sum(1)
        apart = forecasts - median[:, None]
        variance = (weights * (deviations.square() + apart.square())).sum(1)
        deviation = (variance + LEAST_VARIANCE).sqrt()
        median = median + MOST_CORRECTION * deviation * (parts["shift"] @ curves)

        gaps = parts["gaps"].unflatten(-1, (2 * len(SIDE), N_CURVES)) @ curves
        below, above = softplus(gaps + UNIT_SOFTPLUS).chunk(2, 1)
        below, above = ((side * self.gaps[:, None]).cumsum(1) for side in (below, above))
        offsets = torch.cat([-below.flip(1), torch.zeros_like(below[:, :1]), above], 1)
        quantiles = median[:, None] + offsets * deviation[:, None]
        return Predictive(median, quantiles, weights, state)


def step_curves(h: int, season_length: int, dtype: torch.dtype) -> Tensor:
    """Curves (3, h) of the steps 1 to h: constant, logarithm, seasons beyond the first."""
    steps = torch.arange(1.0, h + 1, dtype=dtype)
    late = (steps / max(season_length, FASTEST_CURVE) - 1).clamp(max=LATEST)
    return torch.stack([torch.ones_like(steps), (steps.log() - 1.5) / 1.5, late])


@torch.inference_mode()
def predict_arrays(
    network: PriorNetwork,
    features: np.ndarray,
    series: np.ndarray,
    rows: np.ndarray,
    season_length: int,
    *of_models: np.ndarray,
) -> Predictive[np.ndarray]:
    """`PriorNetwork.forward` from arrays to arrays."""
    arrays = map(torch.from_numpy, (features, series, rows))
    answer = network(*arrays, season_length, *map(torch.from_numpy, of_models))
    return Predictive(*(part.numpy() for part in answer))
