"""Proposition 4.1 on long expressive memory: the bound on hidden states, and hidden states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.interpret._fitted import ReadNetwork, by_network, inputs_for, read_networks
from tsrnn.interpret._lem import layer_states
from tsrnn.layers._lem import LEM

__all__ = ["hidden_state_bound"]


@torch.no_grad()
def hidden_state_bound(layer: Any, x: Tensor | None = None) -> pd.DataFrame:
    r"""Proposition 4.1 along data: how large hidden states may be, and how large they are.

    .. math:: \max_i \max\{|z_n^i|, |y_n^i|\} \le \min(1, \overline\Delta \sqrt{t_n}), \qquad
        t_n = n \Delta t, \quad \overline\Delta = \frac{1 + \Delta t}{\sqrt{2 - \Delta t}},

    equation (4) of Rusch et al. (2022), for a layer that starts at zero.

    Parameters
    ----------
    layer : LEM, network or fitted forecaster
        Such a layer with a `dt` of 1 at most, as the proposition assumes, a network or an
        ensemble of networks of `tsrnn.layers` with it, or a fitted `tsrnn.LEMForecaster`.
    x : Tensor of shape (B, T, input_size) or (T, input_size), optional
        As in `time_steps`; by default the forecaster's own sample.

    Returns
    -------
    DataFrame
        A row a step of a layer, with the columns ``layer`` and ``step`` (n), counted from 1,
        ``bound``, and ``actual``, the largest modulus over sequences and units. Where there are
        several networks, a column ``network`` comes first.

    Raises
    ------
    TypeError
        If there is no LEM to read, or `x` is no tensor.
    ValueError
        If `dt` is above 1, or as the layer does of `x`.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Notes
    -----
    The bound does not depend on the inputs, and so holds for every layer of a stack. It is
    proved with the squares of the states; :math:`1 - (1 - \Delta t)^n`, which a unit reaches
    that always takes the largest step towards 1, is smaller and a bound as well.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import hidden_state_bound
    >>> from tsrnn.layers import LEM
    >>> table = hidden_state_bound(LEM(1, 8, dt=0.1), torch.ones(50, 1))
    >>> bool((table["actual"] <= table["bound"]).all())
    True
    """
    networks = read_networks(layer, LEM, "hidden_state_bound")
    tables = [_table(n.layers, checked_inputs(n, layer, x)) for n in networks]
    return by_network(tables, networks)


def _table(layer: LEM, x: Tensor) -> pd.DataFrame:
    """Bound and states along inputs (B, T, in) of the first layer."""
    start = layer.initial_state(len(x))
    n = np.arange(1, x.shape[1] + 1)
    slope = (1 + layer.dt) / np.sqrt(2 - layer.dt)
    bound = np.minimum(1.0, slope * np.sqrt(n * layer.dt))
    tables = [
        pd.DataFrame(
            {
                "layer": i,
                "step": n,
                "bound": bound,
                "actual": states.abs().amax((0, 2, 3)).double().cpu().numpy(),
            }
        )
        for i, (_, states) in enumerate(layer_states(layer, x, start), start=1)
    ]
    return pd.concat(tables, ignore_index=True)


def checked_inputs(network: ReadNetwork, model: Any, x: Tensor | None) -> Tensor:
    """Inputs (B, T, in) of layers of which the propositions speak, see `inputs_for`."""
    dt = network.layers.dt
    if dt > 1:
        raise ValueError(
            f"the propositions assume a time step dt of at most 1; this layer has dt={dt:g}"
        )
    inputs = inputs_for(model, x, network)
    return inputs[None] if inputs.ndim == 2 else inputs
