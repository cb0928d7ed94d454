"""Step of fitted networks on tensors: what `predict` and exported programs share."""

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
    """The next horizon of U units, in float64.

    Attributes
    ----------
    parts : Parts
        Of standardised forecasts.
    spread : Tensor of shape (U, C)
        Local spread at the last row.
    states : Tensor of shape (U, hidden_size)
        Outputs of the network after the last row.
    """

    parts: Parts
    spread: Tensor
    states: Tensor


class Step(nn.Module):
    """Rows on the scale of the network, its state, and the forecasts of the next horizon.

    A fitted model forecasts by it, and an exported program consists of it. The recurrence runs in
    float32, everything else in float64, so that the parts of a forecast sum to it to rounding.

    Parameters
    ----------
    model : ForecastModel
        Copied.
    scaling : Scaling
        Of which those of the exogenous columns and the exponent are taken.

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
        self.register_buffer("exog", exog if exog.numel() else None)  # archives take no empty one
        self.requires_grad_(False)

    def standardised(self, rows: Tensor, location: Tensor, scale: Tensor) -> Tensor:
        """Rows (..., C + E) in the units of the data on the scale of the network."""
        return standardised(rows, location, scale, self.exog, self.boxcox)

    def advance(self, inputs: Tensor, hidden: Tensor) -> Tensor:
        """State (layers, U, state_size) after inputs (U, T, c + E)."""
        return self.model.network.run(inputs.float(), hidden)[1]

    def ahead(self, windows: Windows, hidden: Tensor, future: Tensor | None) -> Ahead:
        """Forecast the next horizon.

        Parameters
        ----------
        windows : Windows
            Of all units, up to their last rows.
        hidden : Tensor of shape (layers, U, state_size)
            State after these rows.
        future : Tensor of shape (S, n, n_known), optional
            Columns known ahead, in the units of the data. Of fewer steps than the horizon the
            last one is repeated.
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
        """Transformed targets (S, h, C) from standardised values (U, h, c), arrays or tensors."""
        by_target = by_series(values, self.units_per_series)
        return by_target * scale[:, None] + location[:, None]
