"""Forecast step of fitted networks on tensors, shared by `predict` and exported programs."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tsrnn.forecasters._model import ForecastModel, Parts
from tsrnn.forecasters._scaling import Scaling, standardised
from tsrnn.forecasters._units import Windows, by_series
from tsrnn.layers import Ensemble


class Ahead(NamedTuple):
    """Forecasts of the next horizon of U units, in float64.

    `parts` are of the standardised forecasts; `spread`, shape (U, C), is local at the last row;
    `states`, shape (U, hidden_size), are the outputs of the network after it.
    """

    parts: Parts
    spread: Tensor
    states: Tensor


class Step(nn.Module):
    """Standardisation, state update and forecasts of the next horizon.

    Fitted models use it to forecast, and exported programs consist of it. The recurrence runs in
    float32, everything else in float64, so that the parts of a forecast sum to it to rounding.

    Parameters
    ----------
    model : ForecastModel
        Copied.
    scaling : Scaling
        Gives the scaling of the exogenous columns and the Box-Cox exponent.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> fitted = model.fit(load_elec_equip()).fitted_
    >>> _, windows = fitted.last_rows(model.state_)
    >>> ahead = fitted.step.ahead(windows, model.state_.hidden, None)
    >>> ahead.parts.total().shape
    torch.Size([1, 12, 1])
    """

    exog: Tensor | None

    def __init__(self, model: ForecastModel, scaling: Scaling) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).double().eval()
        network = self.model.network
        for member in network.networks if isinstance(network, Ensemble) else [network]:
            member.rnn.float()
            if member.input is not None:
                member.input.float()
        self.boxcox = scaling.boxcox
        self.units_per_series = scaling.constant.shape[1] // model.n_targets
        exog = torch.from_numpy(np.concatenate([scaling.exog.location, scaling.exog.scale]))
        self.register_buffer("exog", exog if exog.numel() else None)  # archives refuse empty ones
        self.requires_grad_(False)

    def standardised(self, rows: Tensor, location: Tensor, scale: Tensor) -> Tensor:
        """Standardise rows on the original scale, shape (..., C + E)."""
        return standardised(rows, location, scale, self.exog, self.boxcox)

    def advance(self, inputs: Tensor, hidden: Tensor) -> Tensor:
        """State after inputs of shape (U, T, c + E), shape (layers, U, state_size)."""
        return self.model.network.run(inputs.float(), hidden)[1]

    def ahead(self, windows: Windows, hidden: Tensor, future: Tensor | None) -> Ahead:
        """Forecast the next horizon.

        Parameters
        ----------
        windows : Windows
            Windows up to the last row of each unit.
        hidden : Tensor of shape (layers, U, state_size)
            State after these rows.
        future : Tensor of shape (S, n, n_known), optional
            Columns known ahead, on the original scale; the last step is repeated up to the horizon.
        """
        model, states = self.model, self.model.network.outputs(hidden[-1]).double()
        known = None
        if future is not None:
            assert self.exog is not None
            location, scale = self.exog[:, [i - model.n_targets for i in model.known]]
            steps = torch.arange(model.horizon).clamp(max=future.shape[1] - 1)
            known = ((future - location) / scale)[:, None, steps]
            known = known.expand(-1, self.units_per_series, -1, -1).flatten(0, 1)
        return Ahead(model.parts(windows, states, known), windows.spread, states)

    def transformed(self, values: Any, location: Any, scale: Any) -> Any:
        """Undo the standardisation of values, (U, h, c), and arrange them by series, (S, h, C)."""
        by_target = by_series(values, self.units_per_series)
        return by_target * scale[:, None] + location[:, None]
