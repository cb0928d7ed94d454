"""Gradients of long expressive memory by step, and their growth with the length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import linear

from tsrnn.interpret._checks import as_floats
from tsrnn.interpret._fitted import read_network
from tsrnn.interpret._lem_bounds import (
    KINDS,
    GradientConstants,
    checked_target,
    finite_inputs,
    gradient_bound,
    read_last_layer,
)
from tsrnn.kernels import recurrence
from tsrnn.layers import LEM


def partial_gradients(
    layer: Any, x: Tensor | None = None, target: Tensor | None = None
) -> pd.DataFrame:
    r"""Contributions of every step to the gradient of a final loss, Propositions 4.3 and E.2.

    The gradient of the loss :math:`\mathcal{E}_n = \frac12 \|y_n - \bar y_n\|^2` with respect to
    parameters of the last layer is a sum over steps, equation (5) of Rusch et al. (2022),

    .. math::
        \frac{\partial \mathcal{E}_n}{\partial \theta}
        = \sum_{k=1}^n \frac{\partial \mathcal{E}_n^{(k)}}{\partial \theta}, \qquad
        \frac{\partial \mathcal{E}_n^{(k)}}{\partial \theta}
        = \frac{\partial \mathcal{E}_n}{\partial X_n} \frac{\partial X_n}{\partial X_k}
          \frac{\partial^+ X_k}{\partial \theta},

    with the states :math:`X_n` of z and y. Proposition E.2 replaces :math:`\partial X_n / \partial
    X_k` by the identity, its leading term, and by :math:`I + \sum_{l=k+1}^n (\partial X_l /
    \partial X_{l-1} - I)`, its expansion.

    Parameters
    ----------
    layer, x, target
        As in `gradient_bound`.

    Returns
    -------
    DataFrame
        A row per parameter and step k, with the columns ``parameter``, "W_1" to "b_y", and
        ``step``, and the largest moduli over sequences and entries of

        - ``actual``: the partial gradient;
        - ``leading``: the leading term;
        - ``remainder``: the partial gradient less the expansion;
        - ``bound``: the summand of `gradient_bound`, for W times
          :math:`\min(1, \overline\Delta \sqrt{t_k})` by Proposition 4.1.

    Raises
    ------
    TypeError, ValueError, sklearn.exceptions.NotFittedError
        As `gradient_bound`.

    Notes
    -----
    One backward pass gives all steps: a partial gradient is the gradient with respect to the input
    of a gate at step k, times the factor of its matrix.

    For :math:`W_y` leading term and expansion agree with equation (45) up to :math:`\Delta t^3`,
    after two corrections: the last sum has the sign of (50), and the index of :math:`W_2` has no
    2. The power refers to a fixed number of steps n - k; for fixed :math:`t_n = n \Delta t` the
    remainder is of the order :math:`\Delta t \, (t_n - t_k)^2`.

    Proposition 4.3, :math:`\partial \mathcal{E}_n^{(k)} / \partial \theta = O(\Delta t^{3/2})`,
    is an upper bound for the matrices W at fixed k, because states are bounded by
    :math:`\sqrt{t_k}`. It is not the exact order, contrary to notation (17) of the paper: early
    states are of the order :math:`t_k`, and partial gradients of the order
    :math:`\Delta t \, t_k`, which is :math:`\Delta t^2` at fixed k and :math:`\Delta t` at fixed
    :math:`t_k`. For biases and V the order is :math:`\Delta t` from the first step on, above
    :math:`\Delta t^{3/2}`. The intended conclusion holds: with :math:`t_n` of order 1 partial
    gradients follow :math:`t_k` and do not vanish with the number of steps n - k.

    References
    ----------
    Rusch, Mishra, Erichson and Mahoney (2022), Long Expressive Memory for Sequence Modeling,
    ICLR, Section 4 and appendix E.3.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import partial_gradients
    >>> from tsrnn.layers import LEM
    >>> table = partial_gradients(LEM(1, 12, dt=0.01), torch.ones(20, 1))
    >>> bool((table["actual"] <= table["bound"]).all())
    True
    >>> b_y = table[table["parameter"] == "b_y"]["actual"]
    >>> bool(b_y.max() < 2 * b_y.min())  # early steps count as much as late ones
    True
    """
    lem, u, target, constants, largest_input = read_last_layer(
        layer, x, target, "partial_gradients"
    )
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "parameter": name,
                    "step": np.arange(1, constants.n + 1),
                    **columns,
                    "bound": constants.summands(name, largest_input),
                }
            )
            for name, columns in _partial_columns(lem, u, target)
        ],
        ignore_index=True,
    )


def gradient_growth(
    layer: Any,
    x: Tensor | None = None,
    exponents: Sequence[float] = (0.5, 1.0),
    lengths: Sequence[int] | None = None,
    target: Tensor | None = None,
) -> pd.DataFrame:
    r"""Growth of gradients with the length of the data if the time step shrinks with it.

    Remark E.1 of Rusch et al. (2022) sets :math:`\Delta t = n^{-s}` in the bound (6) of
    Proposition 4.2, which becomes of the order :math:`n^{2 (1 - s)}`: bounded for s = 1, linear in
    n for s = 1/2. Here these time steps are set in a layer with given weights.

    Parameters
    ----------
    layer, x, target
        As in `gradient_bound`; the layer's `dt` is replaced.
    exponents : sequence of float
        Exponents s, from 0 to 1.
    lengths : sequence of int, optional
        Lengths n, up to the steps of `x`; by default 1/8, 1/4, 1/2 and all of them.

    Returns
    -------
    DataFrame
        A row per exponent and length, with the columns ``exponent``, ``length``, ``dt``, ``t_n``
        :math:`= n \Delta t`, and

        - ``actual``: largest modulus of a gradient of the loss after n steps;
        - ``bound``: largest bound of `gradient_bound`;
        - ``printed``: right-hand side of (6), even if its condition does not hold;
        - ``condition``: True if its condition (34) holds.

        ``attrs["orders"]`` maps exponents to the slopes of log ``actual`` and log ``printed``
        against log n.

    Raises
    ------
    TypeError, ValueError, sklearn.exceptions.NotFittedError
        As `gradient_bound`, or if exponents or lengths lie outside their ranges.

    Notes
    -----
    The remark needs (34), which is nearly :math:`\Gamma t_n \le 2.51`, for every n. If s < 1,
    :math:`t_n = n^{1 - s}` grows, the condition fails from some n on, and the bound as proved grows
    like :math:`\exp(\Gamma n^{1 - s} / 2)`. Gradients may do so, too: near an unstable state of a
    unit they grow like :math:`\exp(r n^{1 - s})`. For s = 1 gradients are bounded in n for any
    weights, by the same formula.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import gradient_growth
    >>> from tsrnn.layers import LEM
    >>> table = gradient_growth(LEM(1, 12), torch.ones(40, 1), exponents=[1.0])
    >>> list(table["length"]), list(table["t_n"])
    ([5, 10, 20, 40], [1.0, 1.0, 1.0, 1.0])
    >>> bool((table["actual"] <= table["bound"]).all())
    True
    """
    network = read_network(layer, LEM, "gradient_growth")
    lem: LEM = network.layers
    inputs = finite_inputs(network, layer, x)
    target = checked_target(lem, inputs, target)
    most = inputs.shape[1]
    if lengths is None:
        lengths = [n for n in (most // 8, most // 4, most // 2, most) if n]
    steps = _checked_numbers("lengths", lengths, 1, most)
    if not (steps == np.round(steps)).all():
        raise ValueError(f"lengths must be integers; got {lengths!r}")
    rows = []
    for s in _checked_numbers("exponents", exponents, 0, 1).tolist():
        for n in np.unique(steps.astype(int)).tolist():
            scaled = _with_time_step(lem, float(n) ** -s)
            table = gradient_bound(scaled, inputs[:, :n], target)
            constants = GradientConstants(
                n, scaled.dt, table.attrs["eta"], float(target.abs().max()), lem.block_size
            )
            rows.append(
                {
                    "exponent": s, "length": n, "dt": scaled.dt, "t_n": table.attrs["t_n"],
                    "actual": table["actual"].max(), "bound": table["bound"].max(),
                    "printed": constants.right_hand_side(), "condition": constants.small_enough(),
                }
            )  # fmt: skip
    growth = pd.DataFrame(rows)
    growth.attrs["orders"] = {
        s: {name: _order(part["length"], part[name]) for name in ("actual", "printed")}
        for s, part in growth.groupby("exponent")
    }
    return growth


def _partial_columns(
    layer: LEM, u: Tensor, target: Tensor
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Columns actual, leading and remainder (n,) of each parameter, with its name."""
    last, d_s, K = layer.num_layers - 1, layer.block_size, layer.n_blocks
    weight_ih, weight_hh, bias = layer.weights(last)
    params = weight_hh.detach().flatten(0, -2)
    batch, steps = u.shape[:2]
    gates = linear(u, weight_ih, bias).detach().unflatten(-1, (4 * d_s, K)).requires_grad_()
    with torch.enable_grad():
        states, _ = recurrence(layer.cell, gates, params, engine=layer.engine)
        error = states[:, -1, :d_s] - target.unflatten(-1, (d_s, K))
        (exact,) = torch.autograd.grad(error.square().sum() / 2, gates)
    before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1).detach()

    def backward(cotangent: Tensor) -> tuple[Tensor, Tensor]:
        """Map cotangents (B, T, n, K) of X_k to those of the gates at step k and of X_(k-1)."""
        start = before.flatten(0, 1).requires_grad_()
        entering = gates.detach().flatten(0, 1)[:, None].requires_grad_()
        with torch.enable_grad():  # all steps at once, each a sequence of one step
            after, _ = recurrence(layer.cell, entering, params, start, engine=layer.engine)
            value = (after[:, 0] * cotangent.flatten(0, 1)).sum()
            by_gates, by_start = torch.autograd.grad(value, [entering, start])
        shape = batch, steps
        return by_gates[:, 0].unflatten(0, shape), by_start.unflatten(0, shape)

    at_end = torch.cat([error, torch.zeros_like(error)], 1).detach()[:, None]
    at_end = at_end.expand(-1, steps, -1, -1).contiguous()
    leading, by_start = backward(at_end)
    changes = by_start - at_end  # of step l, of which those with l > k count
    later = changes.flip(1).cumsum(1).flip(1) - changes
    expansion, _ = backward(at_end + later)

    # A partial gradient is an outer product, whose largest modulus is a product of largest moduli.
    y_before, z_now = before[:, :, :d_s], states.detach()[:, :, d_s:]
    for letter in "WVb" if bias is not None else "WV":
        for number, kind in enumerate(KINDS):
            if letter == "W":
                multiplied = (z_now if kind == "y" else y_before).abs().amax(2)
            elif letter == "V":
                multiplied = u.abs().amax(2, keepdim=True)
            else:
                multiplied = u.new_ones(1, 1, 1)
            part = slice(number * d_s, (number + 1) * d_s)
            yield f"{letter}_{kind}", {
                column: (by_gates[:, :, part].abs().amax(2) * multiplied)
                .amax((0, 2)).double().cpu().numpy()
                for column, by_gates in (
                    ("actual", exact), ("leading", leading), ("remainder", exact - expansion)
                )
            }  # fmt: skip


def _with_time_step(layer: LEM, dt: float) -> LEM:
    """Copy of a layer with another time step, and `min_step` in proportion."""
    scaled = LEM(
        layer.input_size, layer.hidden_size, layer.num_layers, dt=dt,
        min_step=min(layer.min_step / layer.dt * dt, dt),
        block_size=layer.block_size, bias=layer.bias, engine="dense",  # compiled in a second
        device=next(layer.parameters()).device, dtype=next(layer.parameters()).dtype,
    )  # fmt: skip
    scaled.load_state_dict(layer.state_dict())
    return scaled


def _order(lengths: pd.Series, values: pd.Series) -> float:
    """Slope of logarithms; NaN for one length or values that are not positive."""
    logs = np.log(np.where(values > 0, values, np.nan))
    if len(lengths) < 2 or not np.isfinite(logs).all():
        return float("nan")
    return float(np.polyfit(np.log(lengths), logs, 1)[0])


def _checked_numbers(name: str, values: Any, low: float, high: float) -> np.ndarray:
    numbers = as_floats(values)
    row = numbers is not None and numbers.ndim == 1 and numbers.size > 0
    if numbers is None or not row or not ((numbers >= low) & (numbers <= high)).all():
        raise ValueError(
            f"{name} must be a sequence of numbers from {low:g} to {high:g}; got {values!r}"
        )
    return numbers
