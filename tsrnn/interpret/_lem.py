"""Learned time steps and time scales of long expressive memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import linear

from tsrnn.interpret._checks import as_floats, check_tensor
from tsrnn.interpret._fitted import (
    ReadNetwork,
    by_network,
    fitted_time_unit,
    inputs_for,
    read_network,
    read_networks,
    single_network_hint,
)
from tsrnn.kernels import recurrence
from tsrnn.layers import LEM

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@torch.no_grad()
def time_steps(
    layer: Any,
    x: Tensor | None = None,
    hx: Tensor | None = None,
    lengths: Tensor | Sequence[int] | None = None,
) -> Tensor:
    r"""Learned time steps of a layer along data.

    .. math::
        \Delta t_n = \Delta t \, \hat\sigma(W_1 y_{n-1} + V_1 u_n + b_1), \qquad
        \overline{\Delta t}_n = \Delta t \, \hat\sigma(W_2 y_{n-1} + V_2 u_n + b_2),

    the first two of equations (3) of Rusch et al. (2022). A time step is the weight of the target
    in an update of z or y. Figure 4 of the paper shows their histogram.

    Parameters
    ----------
    layer : LEM, network or fitted forecaster
        A LEM layer, a `tsrnn.layers.RecurrentNetwork` of it, or a fitted `tsrnn.LEMForecaster`
        with one network.
    x : Tensor of shape (B, T, input_size) or (T, input_size), optional
        Inputs of the layer or of the network, before an input projection. By default the
        forecaster's ``sample_``: standardised last rows of some series, from the zero state.
    hx : Tensor of shape (num_layers, B, 2 d) or (num_layers, 2 d), optional
        State before the first step; zero by default.
    lengths : integers of shape (B,), optional
        Number of steps of each sequence in a padded batch.

    Returns
    -------
    Tensor of shape (num_layers, 2, B, T, d) or (num_layers, 2, T, d)
        Time steps of z, then of y, between the layer's `min_step` and `dt`; NaN after the end of a
        sequence. The last axis has the order of the layer's outputs. Dropout is off.

    Raises
    ------
    TypeError
        If there is no LEM layer, or `x` or `hx` is not a tensor.
    ValueError
        If the layer refuses `x`, `hx` or `lengths`, or there are several networks.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import time_steps
    >>> from tsrnn.layers import LEM
    >>> time_steps(LEM(3, 16), torch.zeros(8, 100, 3)).shape
    torch.Size([1, 2, 8, 100, 16])
    """
    network = read_network(layer, LEM, "time_steps")
    return _steps_along(network, inputs_for(layer, x, network), hx, lengths)


def _steps_along(
    network: ReadNetwork, x: Tensor, hx: Tensor | None, lengths: Tensor | Sequence[int] | None
) -> Tensor:
    """`time_steps` of a network, given the inputs x of its first layer."""
    layer: LEM = network.layers
    if hx is not None:
        check_tensor("hx", hx, x.dtype)
    if x.ndim == 2:
        start = None if hx is None else hx[:, None]
        return _steps_along(network, x[None], start, lengths)[:, :, 0]
    # Dropout in training mode would move the global generator.
    with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
        layer(x[:, :1], hx)  # one step, to raise early if shapes do not fit
    start = layer.initial_state(len(x)) if hx is None else hx
    steps = torch.stack(
        [
            _layer_time_steps(layer, i, u, states, start[i])
            for i, (u, states) in enumerate(layer_states(layer, x, start, lengths))
        ]
    )
    if lengths is None:
        return steps
    after = torch.arange(x.shape[1], device=x.device) >= torch.as_tensor(
        lengths, device=x.device
    ).unsqueeze(1)
    return steps.masked_fill(after[..., None], torch.nan)


@torch.no_grad()
def time_scales(
    layer: Any,
    x: Tensor | None = None,
    hx: Tensor | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    *,
    freq: Any = None,
    quantiles: Sequence[float] = QUANTILES,
) -> pd.DataFrame:
    r"""Quantiles of the learned time steps and time scales of every unit.

    With a constant time step :math:`\Delta t_n` a state is an exponentially weighted mean of its
    targets, :math:`z_n = \sum_{j \ge 0} \Delta t_n (1 - \Delta t_n)^j \tanh(\cdot)_{n-j}`, whose
    mean age is :math:`1 / \Delta t_n` steps, the present counted as one. The time scale is this
    age times the sampling interval (Rusch et al. 2022, Section 2 and B.2).

    Parameters
    ----------
    layer, x, hx, lengths
        As in `time_steps`. A forecaster or a `tsrnn.layers.Ensemble` may have several networks,
        which start from zero.
    freq : str, int or pandas offset, optional
        Frequency of the data, which sets the unit of time scales; by default the frequency of a
        fitted forecaster.
    quantiles : sequence of float
        Probabilities between 0 and 1; quantiles are taken over all sequences and steps.

    Returns
    -------
    DataFrame
        A row per quantile and unit, with the columns

        - ``network``: counted from 1, if there are several;
        - ``layer``, ``unit``: counted from 1, units in the order of the layer's outputs;
        - ``state``: "z" for :math:`\Delta t_n`, "y" for :math:`\overline{\Delta t}_n`;
        - ``quantile``;
        - ``time_step``: quantile of the time steps, between 0 and the layer's `dt`;
        - ``time_scale``: sampling interval over ``time_step``. It decreases in the time step, so
          that the 0.05 quantile of time steps corresponds to the 0.95 quantile of time scales.

        ``attrs["time_unit"]`` is the unit of time scales ("steps" if no frequency is known),
        ``attrs["time_step"]`` the length of a step in this unit.

    Raises
    ------
    TypeError
        If there is no LEM to read, or `x` or `hx` is not a tensor.
    ValueError
        If the layer refuses `x`, `hx` or `lengths`, `freq` or `quantiles` is invalid, or there are
        several networks and an `hx`.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Notes
    -----
    A time scale below one step means a time step above 1, which overshoots its target.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import time_scales
    >>> from tsrnn.layers import LEM
    >>> layer = LEM(1, 2, dt=0.5)
    >>> for parameter in layer.parameters():
    ...     _ = torch.nn.init.zeros_(parameter)
    >>> time_scales(layer, torch.zeros(10, 1), freq="h", quantiles=[0.5])
       layer state  unit  quantile  time_step  time_scale
    0      1     z     1       0.5       0.25         4.0
    1      1     z     2       0.5       0.25         4.0
    2      1     y     1       0.5       0.25         4.0
    3      1     y     2       0.5       0.25         4.0
    """
    levels = _checked_levels(quantiles)
    networks = read_networks(layer, LEM, "time_scales")
    unit = fitted_time_unit(layer, freq)
    if len(networks) > 1 and hx is not None:
        raise ValueError(
            f"hx is the state of one network; this {type(layer).__name__} has {len(networks)}. "
            f"{single_network_hint(layer)}, or leave hx out to start at zero"
        )
    tables = [
        _quantiles(_steps_along(network, inputs_for(layer, x, network), hx, lengths), levels)
        for network in networks
    ]
    table = by_network(tables, networks)
    table["time_scale"] = unit.step / table["time_step"]
    table.attrs = {"time_unit": unit.name, "time_step": unit.step}
    return table


def _quantiles(time_steps: Tensor, levels: np.ndarray) -> pd.DataFrame:
    """Quantiles of the time steps (num_layers, 2, ..., T, d) of a network."""
    steps = time_steps.double().cpu().numpy()
    steps = steps.reshape(*steps.shape[:2], -1, steps.shape[-1])
    values = np.moveaxis(np.nanquantile(steps, levels, axis=2), 0, -1)  # layer, state, unit, level
    labels = [range(1, len(values) + 1), ["z", "y"], range(1, values.shape[2] + 1), levels]
    names = ["layer", "state", "unit", "quantile"]
    table = pd.MultiIndex.from_product(labels, names=names).to_frame(index=False)
    table["time_step"] = values.ravel()
    return table


def _checked_levels(quantiles: Any) -> np.ndarray:
    levels = as_floats(quantiles)
    row = levels is not None and levels.ndim == 1 and levels.size > 0
    if levels is None or not row or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(
            "`quantiles` must be a sequence of numbers between 0 and 1, such as [0.05, 0.5, 0.95]; "
            f"got {quantiles!r}"
        )
    return levels


def layer_states(
    layer: LEM, x: Tensor, start: Tensor, lengths: Tensor | Sequence[int] | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs (B, T, in) and states y, z (B, T, 2, d) of every layer, without dropout."""
    for i in range(layer.num_layers):
        weight_ih, weight_hh, bias = layer.weights(i)
        inputs = linear(x, weight_ih, bias).unflatten(-1, (layer.cell.m, -1))
        params = weight_hh.flatten(0, -2)
        initial = start[i].unflatten(-1, (layer.cell.n, -1))
        states, _ = recurrence(layer.cell, inputs, params, initial, lengths, layer.engine)
        states = states.flatten(-2).unflatten(-1, (2, -1))
        yield x, states
        x = states[:, :, 0]


def _layer_time_steps(layer: LEM, i: int, u: Tensor, states: Tensor, start: Tensor) -> Tensor:
    """Time steps (2, B, T, d) of layer i along its inputs and states."""
    weight_ih, weight_hh, bias = layer.weights(i)
    d = layer.hidden_size
    before = torch.cat([start[:, None, :d], states[:, :-1, 0]], 1)
    blocks = before.unflatten(-1, (layer.block_size, -1))
    products = torch.einsum("qijk,btjk->qbtik", weight_hh[:2], blocks).flatten(-2)
    projected = linear(u, weight_ih[: 2 * d], None if bias is None else bias[: 2 * d])
    projected = projected.unflatten(-1, (2, d)).permute(2, 0, 1, 3)
    return (layer.dt * torch.sigmoid(projected + products)).clamp(min=layer.min_step)
