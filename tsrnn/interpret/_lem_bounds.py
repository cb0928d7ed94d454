"""Bounds on states and gradients of long expressive memory, Propositions 4.1 and 4.2."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.interpret._checks import check_tensor
from tsrnn.interpret._fitted import ReadNetwork, by_network, inputs_for, read_network, read_networks
from tsrnn.interpret._lem import layer_states
from tsrnn.layers import LEM

KINDS = ("1", "2", "z", "y")


@torch.no_grad()
def hidden_state_bound(layer: Any, x: Tensor | None = None) -> pd.DataFrame:
    r"""Bound of Proposition 4.1 on hidden states, and the states along data.

    .. math:: \max_i \max\{|z_n^i|, |y_n^i|\} \le \min(1, \overline\Delta \sqrt{t_n}), \qquad
        t_n = n \Delta t, \quad \overline\Delta = \frac{1 + \Delta t}{\sqrt{2 - \Delta t}},

    equation (4) of Rusch et al. (2022), for a layer that starts at zero.

    Parameters
    ----------
    layer : LEM, network or fitted forecaster
        A LEM layer with a `dt` of at most 1, a network or ensemble of `tsrnn.layers` with it, or a
        fitted `tsrnn.LEMForecaster`.
    x : Tensor of shape (B, T, input_size) or (T, input_size), optional
        As in `time_steps`; by default the forecaster's sample.

    Returns
    -------
    DataFrame
        A row per layer and step, with the columns ``layer`` and ``step`` (n), counted from 1,
        ``bound``, and ``actual``, the largest modulus over sequences and units. With several
        networks the first column is ``network``.

    Raises
    ------
    TypeError
        If there is no LEM layer, or `x` is not a tensor.
    ValueError
        If `dt` is above 1, or the layer refuses `x`.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Notes
    -----
    The bound does not depend on the inputs, and so holds for every layer of a stack. A smaller
    bound is :math:`1 - (1 - \Delta t)^n`, which a unit attains if it always takes the largest step
    towards 1.

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
    tables = [_state_table(n.layers, checked_inputs(n, layer, x)) for n in networks]
    return by_network(tables, networks)


def gradient_bound(
    layer: Any, x: Tensor | None = None, target: Tensor | None = None
) -> pd.DataFrame:
    r"""Bound of Proposition 4.2 on gradients of a final loss, and the gradients along data.

    For the loss :math:`\mathcal{E}_n = \frac12 \|y_n - \bar y_n\|^2` of the last step and any
    entry :math:`\theta` of the parameters of the last layer,

    .. math::
        \left|\frac{\partial \mathcal{E}_n}{\partial \theta}\right| \le d_s (1 + \hat Y) \, S \,
        \max(1, \eta \Delta t) \sum_{k=1}^n \Delta t \Bigl(1 + \frac{\Gamma \Delta t}{2}
        \Bigr)^{n - k}, \qquad \Gamma = 2 (1 + \eta) (1 + 3 \eta),

    where :math:`\hat Y = \|\bar y_n\|_\infty`, :math:`\eta` is the largest maximum norm of
    :math:`W_1, W_2, W_z, W_y`, and S is the largest modulus of an input for V, else 1. The bound
    holds for every :math:`\Delta t \le 1`.

    Parameters
    ----------
    layer : LEM, network or fitted forecaster
        A LEM layer with a `dt` of at most 1, a `tsrnn.layers.RecurrentNetwork` of it, or a fitted
        `tsrnn.LEMForecaster` with one network, whose training loss is not used.
    x : Tensor of shape (B, T, input_size) or (T, input_size), optional
        As in `time_steps`; by default the forecaster's sample.
    target : Tensor of shape (B, d) or (d,), optional
        Target :math:`\bar y_n` of the outputs at the last step; zero by default.

    Returns
    -------
    DataFrame
        A row per parameter, "W_1" to "b_y", with the columns

        - ``actual``: largest modulus over entries and over sequences, each with its own loss;
        - ``bound``: right-hand side above, infinite if it overflows;
        - ``printed``: right-hand side of equation (6), NaN if its condition (34) does not hold.

        ``attrs`` holds ``eta``, ``gamma`` and ``t_n``.

    Raises
    ------
    TypeError
        If there is no LEM layer, or `x` or `target` is not a tensor.
    ValueError
        If `dt` is above 1, `target` does not fit, there are several networks, or the layer refuses
        `x`.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Notes
    -----
    The proposition as printed, equation (6) of Rusch et al. (2022),

    .. math:: \left|\frac{\partial \mathcal{E}_n}{\partial \theta}\right| \le
        (1 + \hat Y) t_n + (1 + \hat Y) \Gamma t_n^2, \qquad t_n = n \Delta t,

    under the condition (34), :math:`(1 + \Gamma \Delta t / 2)^{n - k} \le 1 + \Gamma (n - k)
    \Delta t` for all k, does not hold in general, for three reasons. The product of maximum norms
    in (40) needs the sum of the row :math:`y_n - \bar y_n`, at most :math:`d (1 + \hat Y)`, or d_s
    in place of d with blocks. V is multiplied by inputs, which may exceed 1. And a change of
    :math:`z_k` changes :math:`y_k` in the same step, by a factor of up to :math:`\eta \Delta t`.
    The bound above is (33) as proved with these three factors. It is a worst case, which grows
    with n like :math:`(1 + \Gamma \Delta t / 2)^n`.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import gradient_bound
    >>> from tsrnn.layers import LEM
    >>> table = gradient_bound(LEM(1, 8, dt=0.01), torch.ones(20, 1))
    >>> bool((table["actual"] <= table["bound"]).all())
    True
    """
    lem, u, target, constants, largest_input = read_last_layer(layer, x, target, "gradient_bound")
    bounds = {
        f"{name}_{kind}": constants.bound(largest_input if name == "V" else 1.0)
        for name in ("WVb" if lem.bias else "WV")
        for kind in KINDS
    }
    table = pd.DataFrame({"actual": _largest_gradients(lem, u, target), "bound": bounds})
    table["printed"] = constants.printed()
    table = table.loc[list(bounds)].rename_axis("parameter")
    table.attrs = {"eta": constants.eta, "gamma": constants.gamma, "t_n": constants.t_n}
    return table


def _state_table(layer: LEM, x: Tensor) -> pd.DataFrame:
    """Table of `hidden_state_bound`, given inputs (B, T, in) of the first layer."""
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


class GradientConstants(NamedTuple):
    """Bounds on gradients and their constants."""

    n: int
    dt: float
    eta: float
    y_hat: float
    block_size: int

    @property
    def gamma(self) -> float:
        return 2 * (1 + self.eta) * (1 + 3 * self.eta)

    @property
    def growth(self) -> float:
        """Largest growth of a gradient in a step."""
        return self.gamma * self.dt / 2

    @property
    def t_n(self) -> float:
        return self.n * self.dt

    def bound(self, multiplier: float) -> float:
        """Corrected bound for a parameter that is multiplied by at most `multiplier`."""
        growth = self.growth
        # Geometric sum ((1 + growth)^n - 1) / growth by expm1, exact for small growth.
        with np.errstate(over="ignore"):
            geometric = float(np.expm1(self.n * np.log1p(growth))) * 2 / self.gamma
        direct = multiplier * max(1.0, self.eta * self.dt)
        return self.block_size * (1 + self.y_hat) * direct * geometric if direct else 0.0

    def summands(self, name: str, largest_input: float) -> np.ndarray:
        """Corrected bound on the partial gradients of a parameter, by step k."""
        k = np.arange(1, self.n + 1)
        states = np.minimum(1.0, (1 + self.dt) / np.sqrt(2 - self.dt) * np.sqrt(k * self.dt))
        multiplier = {"W": states, "V": largest_input, "b": 1.0}[name[0]]
        with np.errstate(over="ignore", invalid="ignore"):
            powers = np.exp((self.n - k) * np.log1p(self.growth))
            direct = self.block_size * (1 + self.y_hat) * max(1.0, self.eta * self.dt) * self.dt
            # With zero inputs the bound for V is 0 times a possibly infinite power.
            return np.nan_to_num(direct * multiplier * powers, nan=0.0, posinf=np.inf)

    def small_enough(self) -> bool:
        """Condition (34), which is convex in n - k, so that n - 1 decides."""
        steps = self.n - 1
        return bool(steps * np.log1p(self.growth) <= np.log1p(self.gamma * steps * self.dt))

    def right_hand_side(self) -> float:
        """Equation (6)."""
        return (1 + self.y_hat) * self.t_n * (1 + self.gamma * self.t_n)

    def printed(self) -> float:
        """Equation (6), or NaN if its condition does not hold."""
        return self.right_hand_side() if self.small_enough() else float("nan")


def read_last_layer(
    model: Any, x: Tensor | None, target: Tensor | None, called: str
) -> tuple[LEM, Tensor, Tensor, GradientConstants, float]:
    """Layers of a model, inputs and targets of the last layer, and its `gradient_constants`."""
    network = read_network(model, LEM, called)
    lem: LEM = network.layers
    x = checked_inputs(network, model, x)
    target = checked_target(lem, x, target)
    with torch.no_grad():
        *_, (u, _) = layer_states(lem, x, lem.initial_state(len(x)))
    return lem, u, target, *gradient_constants(lem, u, target)


def gradient_constants(layer: LEM, u: Tensor, target: Tensor) -> tuple[GradientConstants, float]:
    """Constants of the last layer, and the largest modulus of its inputs u (B, T, in)."""
    weight_hh = layer.weights(layer.num_layers - 1)[1].detach()
    eta = float(weight_hh.abs().sum(2).max())  # rows of every block of every matrix
    y_hat = float(target.abs().max())
    return GradientConstants(u.shape[1], layer.dt, eta, y_hat, layer.block_size), float(
        u.abs().max()
    )


def _largest_gradients(layer: LEM, u: Tensor, target: Tensor) -> dict[str, float]:
    """Largest modulus of the gradients of each parameter over sequences."""
    last = layer.num_layers - 1
    parameters = [p for p in layer.weights(last) if p is not None]
    largest: dict[str, float] = {}
    for sequence, goal in zip(u.split(1), target.split(1), strict=True):
        with torch.enable_grad():
            outputs, _ = layer.run_layer(last, sequence, None)
            loss = (outputs[:, -1] - goal).square().sum() / 2
            gradients = torch.autograd.grad(loss, parameters)
        for name, gradient in zip("VWb", gradients, strict=False):
            for kind, part in zip(KINDS, gradient.chunk(4), strict=True):
                key = f"{name}_{kind}"
                largest[key] = max(largest.get(key, 0.0), float(part.abs().max()))
    return largest


def checked_target(layer: LEM, x: Tensor, target: Tensor | None) -> Tensor:
    """Validate targets, and return them with shape (B, d)."""
    shape = (len(x), layer.hidden_size)
    if target is None:
        return x.new_zeros(shape)
    check_tensor("target", target, x.dtype)
    if target.ndim == 1:
        target = target[None]
    if tuple(target.shape) != shape:
        raise ValueError(
            f"target must have shape {shape}, the outputs at the last step; "
            f"got {tuple(target.shape)}"
        )
    return target.to(x)


def checked_inputs(network: ReadNetwork, model: Any, x: Tensor | None) -> Tensor:
    """Inputs (B, T, in) of layers with dt <= 1, see `inputs_for`."""
    dt = network.layers.dt
    if dt > 1:
        raise ValueError(
            f"the propositions assume a time step dt of at most 1; this layer has dt={dt:g}"
        )
    return finite_inputs(network, model, x)


def finite_inputs(network: ReadNetwork, model: Any, x: Tensor | None) -> Tensor:
    """Inputs (B, T, in); raise if they are not finite."""
    inputs = inputs_for(model, x, network)
    if not inputs.isfinite().all():
        raise ValueError("x must be finite; got NaN or infinite values. Leave these steps out")
    return inputs[None] if inputs.ndim == 2 else inputs
