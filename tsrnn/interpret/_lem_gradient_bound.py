"""Proposition 4.2 on long expressive memory: the bound on gradients, and gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.interpret._checks import check_tensor
from tsrnn.interpret._fitted import read_network
from tsrnn.interpret._lem import layer_states
from tsrnn.interpret._lem_state_bound import checked_inputs
from tsrnn.layers._lem import LEM

__all__ = ["gradient_bound"]

KINDS = ("1", "2", "z", "y")


def gradient_bound(
    layer: Any, x: Tensor | None = None, target: Tensor | None = None
) -> pd.DataFrame:
    r"""Proposition 4.2 on data: how large gradients of a loss at the end may be, and are.

    For the loss :math:`\mathcal{E}_n = \frac12 \|y_n - \bar y_n\|^2` of the last step and any
    entry :math:`\theta` of the parameters of the last layer,

    .. math::
        \left|\frac{\partial \mathcal{E}_n}{\partial \theta}\right| \le d_s (1 + \hat Y) \, S \,
        \max(1, \eta \Delta t) \sum_{k=1}^n \Delta t \Bigl(1 + \frac{\Gamma \Delta t}{2}
        \Bigr)^{n - k}, \qquad \Gamma = 2 (1 + \eta) (1 + 3 \eta),

    where :math:`\hat Y = \|\bar y_n\|_\infty`, :math:`\eta` is the largest of the maximum norms
    of :math:`W_1, W_2, W_z, W_y`, and S is 1, for V the largest modulus of an input. It holds for
    every :math:`\Delta t \le 1`.

    Parameters
    ----------
    layer : LEM, network or fitted forecaster
        Such a layer with a `dt` of 1 at most, a `tsrnn.layers.RecurrentNetwork` of it, or a fitted
        `tsrnn.LEMForecaster` of one network. The loss is this one, not that of its training.
    x : Tensor of shape (B, T, input_size) or (T, input_size), optional
        As in `time_steps`; by default the forecaster's own sample.
    target : Tensor of shape (B, d) or (d,), optional
        :math:`\bar y_n`, for the outputs at the last step; zero by default.

    Returns
    -------
    DataFrame
        A row a parameter, "W_1" to "b_y", with the columns

        - ``actual``: the largest modulus over sequences, each with a loss of its own, and entries;
        - ``bound``: the right-hand side above, infinite where it is too large for a number;
        - ``printed``: that of equation (6), NaN where its condition (34) does not hold.

        ``attrs`` holds ``eta``, ``gamma`` and ``t_n``.

    Raises
    ------
    TypeError
        If there is no LEM to read, or `x` or `target` is no tensor.
    ValueError
        If `dt` is above 1, `target` does not fit, there are several networks, or as the layer does
        of `x`.
    sklearn.exceptions.NotFittedError
        If a forecaster has not been fitted.

    Notes
    -----
    The proposition as printed, equation (6) of Rusch et al. (2022),

    .. math:: \left|\frac{\partial \mathcal{E}_n}{\partial \theta}\right| \le
        (1 + \hat Y) t_n + (1 + \hat Y) \Gamma t_n^2, \qquad t_n = n \Delta t,

    for :math:`\Delta t` so small that :math:`(1 + \Gamma \Delta t / 2)^{n - k} \le
    1 + \Gamma (n - k) \Delta t` for all k, its (34), does not hold in general. In (40) it
    multiplies maximum norms of a row, a matrix and a column; the row, the gradient
    :math:`y_n - \bar y_n`, has to be summed, at most :math:`d (1 + \hat Y)`, with blocks of size
    d_s those of one block. What multiplies a V are inputs, which need not be below 1; and a change
    of :math:`z_k` changes :math:`y_k` in the same step, by up to :math:`\eta \Delta t` of it. The
    bound above has these three factors and is otherwise (33) as proved. It is a worst case, which
    grows with n like :math:`(1 + \Gamma \Delta t / 2)^n`.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import gradient_bound
    >>> from tsrnn.layers import LEM
    >>> table = gradient_bound(LEM(1, 8, dt=0.01), torch.ones(20, 1))
    >>> bool((table["actual"] <= table["bound"]).all())
    True
    """
    network = read_network(layer, LEM, "gradient_bound")
    return _table(network.layers, checked_inputs(network, layer, x), target)


def _table(layer: LEM, x: Tensor, target: Tensor | None) -> pd.DataFrame:
    """Bounds and gradients along inputs (B, T, in) of the first layer."""
    target = _checked_target(layer, x, target)
    u = _inputs_of_last_layer(layer, x)
    constants = _constants(layer, u, target)
    rows = {
        **{f"W_{kind}": constants.bound(1.0) for kind in KINDS},
        **{f"V_{kind}": constants.bound(float(u.abs().max())) for kind in KINDS},
        **({f"b_{kind}": constants.bound(1.0) for kind in KINDS} if layer.bias else {}),
    }
    table = pd.DataFrame({"actual": _largest_gradients(layer, u, target), "bound": rows})
    table["printed"] = constants.printed()
    table = table.loc[list(rows)].rename_axis("parameter")
    table.attrs = {"eta": constants.eta, "gamma": constants.gamma, "t_n": constants.t_n}
    return table


class _Constants(NamedTuple):
    """What the bounds are made of."""

    n: int
    dt: float
    eta: float
    y_hat: float
    block_size: int

    @property
    def gamma(self) -> float:
        return 2 * (1 + self.eta) * (1 + 3 * self.eta)

    @property
    def t_n(self) -> float:
        return self.n * self.dt

    def bound(self, multiplier: float) -> float:
        """The corrected bound; `multiplier` is what multiplies the parameter, at most."""
        growth = self.gamma * self.dt / 2
        with np.errstate(over="ignore"):
            geometric = float(np.expm1(self.n * np.log1p(growth))) * 2 / self.gamma
        direct = multiplier * max(1.0, self.eta * self.dt)
        return self.block_size * (1 + self.y_hat) * direct * geometric if direct else 0.0

    def printed(self) -> float:
        """Equation (6), or NaN. Condition (34) is convex in n - k: n - 1 decides."""
        steps = self.n - 1
        small = steps * np.log1p(self.gamma * self.dt / 2) <= np.log1p(self.gamma * steps * self.dt)
        value = (1 + self.y_hat) * self.t_n * (1 + self.gamma * self.t_n)
        return value if small else float("nan")


@torch.no_grad()
def _constants(layer: LEM, u: Tensor, target: Tensor) -> _Constants:
    weight_hh = layer.weights(layer.num_layers - 1)[1]
    eta = float(weight_hh.abs().sum(2).max())  # rows of every block of every matrix
    return _Constants(u.shape[1], layer.dt, eta, float(target.abs().max()), layer.block_size)


@torch.no_grad()
def _inputs_of_last_layer(layer: LEM, x: Tensor) -> Tensor:
    return list(layer_states(layer, x, layer.initial_state(len(x))))[-1][0]


def _largest_gradients(layer: LEM, u: Tensor, target: Tensor) -> dict[str, float]:
    """Largest modulus of a gradient by the name of the parameter, sequence by sequence."""
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


def _checked_target(layer: LEM, x: Tensor, target: Tensor | None) -> Tensor:
    """Targets (B, d)."""
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
