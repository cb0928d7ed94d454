"""Conversion of feed-forward networks to ParaRNNs, and back: Proposition C.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import block_diag, invpascal
from torch import Tensor, nn

from tsrnn.contract import positive_integer
from tsrnn.layers import ParaRNN, RecurrentNetwork

__all__ = [
    "ModifiedLayer",
    "ModifiedParaRNN",
    "as_feedforward",
    "as_modified_para_rnn",
    "as_para_rnn",
]

LARGEST_ERROR = 1e-3  # relative to the largest output; larger errors mean cancellation


class ModifiedLayer(NamedTuple):
    r"""Layer with an activation on a part of its units: :math:`\sigma_I(W_h h + W_x x + b)`.

    Attributes
    ----------
    projection : ndarray of shape (d, in)
        Matrix W_x.
    bias : ndarray of shape (d,)
    active : bool ndarray of shape (d,)
        Mask of the units I with max(0, .); others are linear.
    recurrent : ndarray of shape (d, d), optional
        Matrix W_h; None for a position-wise layer.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.erm import ModifiedLayer
    >>> ModifiedLayer(np.eye(2), np.zeros(2), np.array([True, False])).recurrent is None
    True
    """

    projection: np.ndarray
    bias: np.ndarray
    active: np.ndarray
    recurrent: np.ndarray | None = None


@dataclass(frozen=True)
class ModifiedParaRNN:
    r"""ParaRNN with partly activated layers: the class MPRNN of supplement C.1.

    .. math:: \bar N = \bar Q \circ \bar F \circ \bar R_L \circ \dots \circ \bar R_1 \circ \bar P,
        \qquad \bar R_l(X)[t] = \sigma_I(W_{h,l} \bar R_l(X)[t-1] + W_{x,l} x_t + b_l)

    with the state zero before the first step.

    Parameters
    ----------
    input_map : ndarray of shape (d, d_in)
        Matrix P.
    layers : sequence of ModifiedLayer
        Layers R_1 to R_L of d units.
    aggregation : ModifiedLayer
        Aggregation F, position-wise.
    output_map : ndarray of shape (d_out, d)
        Matrix Q.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.erm import ModifiedLayer, ModifiedParaRNN
    >>> linear = ModifiedLayer(np.eye(2), np.zeros(2), np.zeros(2, bool), 0.5 * np.eye(2))
    >>> position_wise = linear._replace(recurrent=None)
    >>> network = ModifiedParaRNN(np.eye(2), [linear], position_wise, np.eye(2))
    >>> network(np.array([[[1.0, -1.0], [0.0, 0.0]]]))[0, 1]
    array([ 0.5, -0.5])
    """

    input_map: np.ndarray
    layers: Sequence[ModifiedLayer]
    aggregation: ModifiedLayer
    output_map: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return outputs (B, T, d_out) at every step of inputs (B, T, d_in)."""
        x = x @ self.input_map.T
        for layer in (*self.layers, self.aggregation):
            inputs = x @ layer.projection.T + layer.bias
            outputs: list[np.ndarray] = []
            for t in range(x.shape[1]):
                value = inputs[:, t]
                if t and layer.recurrent is not None:
                    value = value + outputs[-1] @ layer.recurrent.T
                outputs.append(np.where(layer.active, np.maximum(value, 0.0), value))
            x = np.stack(outputs, 1)
        return x @ self.output_map.T


def as_modified_para_rnn(
    network: nn.Sequential, length: int, step: int | None = None
) -> ModifiedParaRNN:
    r"""Return a partly activated ParaRNN equal to a feed-forward network of a sequence: Lemma C.2.

    Layers 1 to T are linear and add up, :math:`s_l[t] = s_l[t-1] + b_l x_t + s_{l-1}[t]`, one sum
    for each unit of the first layer of the network; with :math:`b` from the inverse of the matrix
    :math:`\binom{2T-i-j}{T-i}` the last sum at step :math:`t_0` is the unit's combination of
    :math:`x_1, \dots, x_{t_0}`. The other layers are those of the network, step by step.

    Parameters
    ----------
    network : torch.nn.Sequential
        `torch.nn.Linear` and `torch.nn.ReLU` in turn, L linear maps, of the inputs of the steps
        one after the other, :math:`(x_1', \dots, x_{t_0}')'`.
    length : int
        T, steps of the sequences.
    step : int, optional
        :math:`t_0`, the step at which the outputs are those of the network; T by default.

    Returns
    -------
    ModifiedParaRNN
        Of :math:`(d_{in} + 1) d` units and T + L - 1 layers, where d is the largest output of the
        maps of the network.

    Raises
    ------
    TypeError, ValueError
        If the network is of another kind, `step` is no step of it, or rounding leaves errors above
        a thousandth of the largest output (see Notes).

    Notes
    -----
    The entries of b grow like binomial coefficients and cancel in the last sum, with the largest
    loss of digits for :math:`t_0 = T`. Rounding errors above a thousandth of the largest output
    are refused.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, supplement C.1.1, Lemma C.2.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from tsrnn.erm import as_modified_para_rnn
    >>> network = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    >>> x = torch.rand(5, 3, 2, dtype=torch.float64)
    >>> outputs = as_modified_para_rnn(network, length=3)(x.numpy())[:, 2]
    >>> bool(abs(outputs - network(x.flatten(1)).detach().numpy()).max() < 1e-10)
    True
    """
    maps = _affine_maps(network)
    T = positive_integer("length", length)
    t0 = T if step is None else positive_integer("step", step)
    n_inputs = maps[0][0].shape[1]
    if t0 > T or n_inputs % t0:
        raise ValueError(
            f"step must be one of the {T} steps and divide the inputs of the network, "
            f"{n_inputs}; got {t0}"
        )
    d_in, d = n_inputs // t0, max(len(bias) for _, bias in maps)
    width = (d_in + 1) * d
    first, constant = maps[0]
    # Weights A[k] (d, d_in) of step k = 1 to T; the first T - t0 are zero.
    A = np.zeros((T, d, d_in))
    A[T - t0 :, : len(first)] = first.reshape(-1, t0, d_in).swapaxes(0, 1)
    inverse = invpascal(T, exact=False)[::-1, ::-1]  # of binom(2T - i - j, T - i)
    b = np.einsum("ki,kuv->iuv", inverse, A)
    sums = np.arange(1, d + 1) * (d_in + 1) - 1  # positions of the sums, after copies of x_t
    linear, active = np.zeros(width, bool), np.ones(width, bool)
    recurrent = np.zeros((width, width))
    recurrent[sums, sums] = 1.0
    layers = []
    for b_l in b:
        projection = np.eye(width)
        for unit, place in enumerate(sums):
            projection[place, place - d_in : place] = b_l[unit]
        layers.append(ModifiedLayer(projection, np.zeros(width), linear, recurrent))
    collected = np.zeros((width, width))
    collected[np.arange(d), sums] = 1.0
    # Layer T + 1 selects the sums; later layers are those of the network, in the first d units.
    inner = [(collected, constant), *((_padded(weight, width), bias) for weight, bias in maps[1:])]
    positions = [
        ModifiedLayer(weight, _padded(bias, width), active if number < len(inner) - 1 else linear)
        for number, (weight, bias) in enumerate(inner)
    ]
    copies = np.tile(np.vstack([np.eye(d_in), np.zeros((1, d_in))]), (d, 1))
    modified = ModifiedParaRNN(
        copies, [*layers, *positions[:-1]], positions[-1], np.eye(len(maps[-1][1]), width)
    )
    x = _sample(T, d_in)
    _check_digits(modified(x)[:, t0 - 1], _feedforward(maps, x[:, :t0].reshape(len(x), -1)), T)
    return modified


def as_para_rnn(
    network: nn.Sequential | ModifiedParaRNN,
    length: int,
    step: int | None = None,
    *,
    block_size: int = 2,
) -> RecurrentNetwork:
    r"""Return a ParaRNN equal to a feed-forward network of a sequence: Proposition C.1 (i).

    For inputs in [0, 1], its output at :math:`t_0` equals the network of
    :math:`x_1, \dots, x_{t_0}`. Lemma C.2 gives a partly activated ParaRNN, see
    `as_modified_para_rnn`. Lemma C.1 replaces each of its layers by two fully activated ones, with
    a constant that keeps linear units positive.

    Parameters
    ----------
    network : torch.nn.Sequential or ModifiedParaRNN
        Network as in `as_modified_para_rnn`, of L linear maps with at most d outputs; or, for Lemma
        C.1 alone, a partly activated ParaRNN whose recurrent matrices have blocks of `block_size`.
    length : int
        Steps T of the sequences.
    step : int, optional
        Step :math:`t_0`, by default T; only for a feed-forward network.
    block_size : int, default 2
        Block size d_s, at least 2, a divisor of :math:`(d_{in} + 1) d`.

    Returns
    -------
    RecurrentNetwork
        Network in float64 with a `ParaRNN` of :math:`(d_{in} + 1) d + d_s` units in blocks of d_s,
        2 (T + L - 1) layers with ReLU, and aggregation "fc". For a ModifiedParaRNN of d units and L
        layers it has d + d_s units and 2 L layers, and equal outputs at every step.

    Raises
    ------
    TypeError, ValueError
        If the network is of another kind, a size does not fit, or rounding leaves errors above a
        thousandth of the largest output (see Notes).

    Notes
    -----
    Two details differ from the proof. First, the proof starts the state of every second layer at a
    constant, while a ParaRNN of section 4.1 starts at zero (Algorithm 1). Here an additional unit
    marks the first step, which requires d_s of at least 2. Second, the constant of a unit bounds
    its input, by interval arithmetic over [0, 1]. The proof takes the largest absolute output of a
    layer, which does not bound the part that the activation cuts off. Outputs differ for inputs
    outside [0, 1]. The constants are as large as the numbers that cancel in
    `as_modified_para_rnn`. For networks with standard normal weights, errors relative to the
    largest output were below 1e-12 at T = 4 and 1e-7 at T = 8.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, supplement C.1.1, Proposition C.1 and Lemma C.1.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from tsrnn.erm import as_para_rnn
    >>> network = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    >>> recurrent = as_para_rnn(network, length=3)
    >>> recurrent.rnn.hidden_size, recurrent.rnn.num_layers  # (2 + 1) 4 + 2 and 2 (3 + 2 - 1)
    (14, 8)
    >>> x = torch.rand(5, 3, 2, dtype=torch.float64)
    >>> bool(torch.allclose(recurrent(x)[0][:, 2], network(x.flatten(1))))
    True
    """
    T, d_s = positive_integer("length", length), positive_integer("block_size", block_size)
    if isinstance(network, ModifiedParaRNN):
        if step is not None:
            raise ValueError(
                "step is of a feed-forward network; a ModifiedParaRNN keeps its outputs at every "
                f"step. Leave it out; got {step!r}"
            )
        modified = network
    else:
        modified = as_modified_para_rnn(network, T, step)
    recurrent = _activated_throughout(modified, T, d_s)
    x = _sample(T, modified.input_map.shape[1])
    with torch.no_grad():
        outputs = recurrent(torch.from_numpy(x))[0].numpy()
    if isinstance(network, ModifiedParaRNN):
        _check_digits(outputs, network(x), T)
    else:  # a feed-forward network has outputs at one step
        t0 = T if step is None else step
        expected = _feedforward(_affine_maps(network), x[:, :t0].reshape(len(x), -1))
        _check_digits(outputs[:, t0 - 1], expected, T)
    return recurrent


def _activated_throughout(modified: ModifiedParaRNN, T: int, d_s: int) -> RecurrentNetwork:
    """Replace each partly activated layer by two fully activated ones: Lemma C.1."""
    width, d_in = modified.input_map.shape
    if d_s < 2 or width % d_s:
        raise ValueError(
            f"block_size must be at least 2 and divide the {width} units of the modified ParaRNN; "
            f"got {d_s}"
        )
    mask = np.kron(np.eye(width // d_s), np.ones((d_s, d_s))) == 0
    if any(r.recurrent is not None and r.recurrent[mask].any() for r in modified.layers):
        raise ValueError(f"recurrent matrices must have blocks of block_size={d_s}; got others")
    lower, upper = np.zeros((T, d_in)), np.ones((T, d_in))
    lower, upper = _bounds(modified.input_map, lower, upper)
    offset = np.zeros(width)  # constants added to the units of the layer below
    layers: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # W_h, W_x, b
    for layer in modified.layers:
        entering = _bounds(layer.projection, lower, upper)
        lift = np.maximum(0.0, -(entering[0] + layer.bias).min(0))  # keeps inputs positive
        lower, upper = _layer_bounds(layer, lower, upper)
        raised = np.where(layer.active, 0.0, np.maximum(0.0, -lower.min(0)))
        W_h = np.zeros((width, width)) if layer.recurrent is None else layer.recurrent
        # The first layer projects. Of the additional units, one is always 1, the next is 1 from
        # the second step on.
        clock = np.zeros((width + d_s, width + d_s))
        clock[width + 1, width] = 1.0
        bias = layer.bias - layer.projection @ offset + lift
        layers.append((clock, _padded(layer.projection, width + d_s), _padded(bias, width + d_s)))
        layers[-1][2][width] = 1.0
        # The second layer recurs. Before the first step states are zero: raise only later ones.
        projection = _padded(np.eye(width), width + d_s)
        projection[:width, width + 1] = -W_h @ raised
        layers.append((_padded(W_h, width + d_s), projection, _padded(raised - lift, width + d_s)))
        offset = raised
    last = modified.aggregation
    lower, _ = _layer_bounds(last, lower, upper)
    raised = np.where(last.active, 0.0, np.maximum(0.0, -lower.min(0)))
    weight = _padded(last.projection, width + d_s)
    bias = _padded(last.bias - last.projection @ offset + raised, width + d_s)
    bias[width] = 1.0  # a constant unit, since Q has no bias
    output = np.zeros((len(modified.output_map), width + d_s))
    output[:, :width] = modified.output_map
    output[:, width] = -modified.output_map @ raised
    first = np.vstack([modified.input_map, np.zeros((d_s, d_in))])
    return _network(first, layers, (weight, bias), output, d_s)


def as_feedforward(network: RecurrentNetwork, step: int) -> nn.Sequential:
    r"""Return a feed-forward network equal to a ParaRNN at a step: Proposition C.1 (ii).

    A recurrent layer becomes :math:`t_0 + 1` layers. The first computes the inputs
    :math:`u_t = W_x x_t + b` of all steps, as :math:`\max(0, u_t)` and :math:`\max(0, -u_t)`; layer
    s computes :math:`h_s = \max(0, W_h h_{s-1} + u_s)` and passes on the rest, and the last the
    states of all steps.

    Parameters
    ----------
    network : RecurrentNetwork
        Network with a `ParaRNN` with ReLU, of d units and L layers, and ``aggregation="fc"`` as in
        the theorem, or "linear".
    step : int
        Step :math:`t_0`, counted from 1.

    Returns
    -------
    torch.nn.Sequential
        Network of the inputs :math:`(x_1', \dots, x_{t_0}')'`, alternating `torch.nn.Linear` and
        `torch.nn.ReLU`, with :math:`(t_0 + 1) L + 2` maps (one less with "linear") of at most
        :math:`(2 t_0 - 1) d` outputs.

    Raises
    ------
    TypeError, ValueError
        If the network is of another kind, or `step` is no positive integer.

    Notes
    -----
    Outputs are equal for all inputs, up to rounding. The last layer of a recurrence is the identity
    on positive numbers: :math:`t_0 L + 2` maps would suffice.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, supplement C.1.1, Proposition C.1.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.erm import as_feedforward
    >>> from tsrnn.layers import ParaRNN, RecurrentNetwork
    >>> rnn = ParaRNN(3, 8, num_layers=2, nonlinearity="relu")
    >>> network = RecurrentNetwork(rnn, 1, aggregation="fc").double()
    >>> x = torch.randn(5, 4, 3, dtype=torch.float64)
    >>> flat = as_feedforward(network, step=4)
    >>> bool(torch.allclose(flat(x.flatten(1)), network(x)[0][:, 3]))
    True
    >>> sum(isinstance(part, torch.nn.Linear) for part in flat)  # (4 + 1) 2 + 2
    12
    """
    if not isinstance(network, RecurrentNetwork) or not isinstance(network.rnn, ParaRNN):
        raise TypeError(
            "network must be a tsrnn.layers.RecurrentNetwork around a ParaRNN; got "
            f"{type(network).__name__}"
        )
    if network.rnn.nonlinearity != "relu" or network.aggregation == "ffn":
        raise ValueError(
            "network must have nonlinearity='relu' and aggregation='fc' or 'linear'; got "
            f"nonlinearity={network.rnn.nonlinearity!r}, aggregation={network.aggregation!r}"
        )
    t0, rnn = positive_integer("step", step), network.rnn
    d = rnn.hidden_size
    maps: list[tuple[np.ndarray, np.ndarray]] = []
    # Affine map (t0, d_l, all), (t0, d_l) from outputs so far to inputs of the layer at each step.
    weight = np.eye(t0 * rnn.input_size).reshape(t0, rnn.input_size, -1)
    bias = np.zeros((t0, rnn.input_size))
    if network.input is not None:
        P, c = float64_array(network.input.weight), float64_array(network.input.bias)
        weight, bias = np.kron(np.eye(t0), P).reshape(t0, len(P), -1), np.tile(c, (t0, 1))
    for layer in range(rnn.num_layers):
        projection, blocks, shift = rnn.weights(layer)
        W_x, b = float64_array(projection), np.zeros(d) if shift is None else float64_array(shift)
        W_h = np.zeros((d, d))
        for k, block in enumerate(float64_array(blocks.movedim(-1, 0))):
            W_h[np.ix_(*2 * [np.arange(k, d, rnn.n_blocks)])] = block  # units field by field
        u, constant = W_x @ weight, bias @ W_x.T + b
        signs = [(0, 1.0), *((t, sign) for t in range(1, t0) for sign in (1.0, -1.0))]
        maps.append((
            np.concatenate([sign * u[t] for t, sign in signs]),
            np.concatenate([sign * constant[t] for t, sign in signs]),
        ))  # fmt: skip
        for s in range(1, t0):
            # From h_1 to h_s and pairs of u_{s+1} to u_{t0}: one state more, one pair less.
            known, pairs = s * d, 2 * (t0 - s) * d
            A = np.zeros((known + d + pairs - 2 * d, known + pairs))
            A[:known, :known] = np.eye(known)
            A[known : known + d, known - d : known] = W_h
            A[known : known + d, known : known + 2 * d] = np.kron([1.0, -1.0], np.eye(d))
            A[known + d :, known + 2 * d :] = np.eye(pairs - 2 * d)
            maps.append((A, np.zeros(len(A))))
        maps.append((np.eye(t0 * d), np.zeros(t0 * d)))
        weight, bias = np.eye(t0 * d).reshape(t0, d, -1), np.zeros((t0, d))
    last = weight[-1]  # states at t0
    if network.ffn is not None:
        inner: Any = network.ffn[0]
        maps.append((float64_array(inner.weight) @ last, float64_array(inner.bias)))
        last = np.eye(d)
    maps.append((float64_array(network.output.weight) @ last, float64_array(network.output.bias)))
    return _sequential(maps)


def _sample(length: int, d_in: int) -> np.ndarray:
    """Return test sequences (B, T, d_in), including the constants 0 and 1."""
    x = np.random.default_rng(0).uniform(size=(8, length, d_in))
    x[0], x[1] = 0.0, 1.0
    return x


def _check_digits(outputs: np.ndarray, expected: np.ndarray, length: int) -> None:
    """Raise if the relative rounding error exceeds `LARGEST_ERROR`."""
    error = np.abs(outputs - expected).max() / max(np.abs(expected).max(), np.finfo(float).tiny)
    if not error <= LARGEST_ERROR:
        raise ValueError(
            "length must be short enough for the binomial coefficients of the construction not to "
            f"cancel in float64; got {length}, with an error of {error:.1e} of the largest output. "
            "Shorten the sequence, to about 12 steps"
        )


def _feedforward(maps: list[tuple[np.ndarray, np.ndarray]], x: np.ndarray) -> np.ndarray:
    """Return the outputs of linear maps with ReLU between them."""
    for weight, bias in maps[:-1]:
        x = np.maximum(x @ weight.T + bias, 0.0)
    return x @ maps[-1][0].T + maps[-1][1]


def _affine_maps(network: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return weights and biases of linear maps with ReLU between them, in float64."""
    parts = list(network) if isinstance(network, nn.Sequential) else []
    kinds = [nn.Linear if number % 2 == 0 else nn.ReLU for number in range(len(parts))]
    fits = all(isinstance(part, kind) for part, kind in zip(parts, kinds, strict=True))
    if not fits or len(parts) % 2 == 0:
        raise TypeError(
            "network must be a torch.nn.Sequential of Linear and ReLU in turn that begins and ends "
            f"with Linear; got {network!r}"
        )
    linear: list[Any] = parts[::2]
    for before, behind in pairwise(linear):
        if before.out_features != behind.in_features:
            raise ValueError(
                "each Linear must take as many inputs as the one before has outputs; got "
                f"{before.out_features} outputs and {behind.in_features} inputs"
            )
    return [
        (
            float64_array(m.weight),
            np.zeros(m.out_features) if m.bias is None else float64_array(m.bias),
        )
        for m in linear
    ]


def _bounds(
    matrix: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of the products of a matrix (m, n) with vectors within bounds (..., n)."""
    positive, negative = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    return lower @ positive.T + upper @ negative.T, upper @ positive.T + lower @ negative.T


def _layer_bounds(
    layer: ModifiedLayer, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds (T, d) of the outputs of a layer with inputs within bounds (T, n)."""
    low, high = (bound + layer.bias for bound in _bounds(layer.projection, lower, upper))
    for t in range(len(low)):
        if t and layer.recurrent is not None:
            before = _bounds(layer.recurrent, low[t - 1], high[t - 1])
            low[t], high[t] = low[t] + before[0], high[t] + before[1]
        low[t], high[t] = (
            np.where(layer.active, np.maximum(bound[t], 0.0), bound[t]) for bound in (low, high)
        )
    return low, high


def _network(
    first: np.ndarray,
    layers: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
    aggregation: tuple[np.ndarray, np.ndarray],
    output: np.ndarray,
    block_size: int,
) -> RecurrentNetwork:
    """Return a network with P, layers (W_h, W_x, b), F and Q, given units block by block."""
    width, d_in = first.shape
    with torch.random.fork_rng(devices=[]):  # the parameters drawn are overwritten
        rnn = ParaRNN(width, width, block_size, len(layers), nonlinearity="relu",
                      dtype=torch.float64)  # fmt: skip
        network = RecurrentNetwork(rnn, len(output), aggregation="fc", input_size=d_in).double()
    order = np.arange(width).reshape(-1, block_size).T.ravel()  # the layers order units by field
    ffn: Any = network.ffn
    with torch.no_grad():
        for number, (W_h, W_x, b) in enumerate(layers):
            projection, recurrent, bias = rnn.weights(number)
            blocks = [W_h[k : k + block_size, k : k + block_size]
                      for k in range(0, width, block_size)]  # fmt: skip
            assert np.array_equal(block_diag(*blocks), W_h)
            _copy(projection, W_x[order] if number == 0 else W_x[np.ix_(order, order)])
            _copy(recurrent, np.stack(blocks, -1))
            _copy(bias, b[order])
        _copy(ffn[0].weight, aggregation[0][:, order])
        _copy(ffn[0].bias, aggregation[1])
        for linear, matrix in ((network.input, first), (network.output, output)):
            _copy(linear.weight, matrix)  # type: ignore[union-attr]
            linear.bias.zero_()  # type: ignore[union-attr]
    return network


def _sequential(maps: Sequence[tuple[np.ndarray, np.ndarray]]) -> nn.Sequential:
    """Return linear maps in float64 with ReLU between them."""
    parts: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for weight, bias in maps:
            linear = nn.Linear(weight.shape[1], len(weight), dtype=torch.float64)
            _copy(linear.weight, weight)
            _copy(linear.bias, bias)
            parts += [linear, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def _padded(array: np.ndarray, size: int) -> np.ndarray:
    """Pad a vector or matrix by zeros to a size along every axis."""
    padded = np.zeros((size,) * array.ndim)
    padded[tuple(slice(count) for count in array.shape)] = array
    return padded


def _copy(tensor: Tensor | None, array: np.ndarray) -> None:
    assert tensor is not None
    tensor.copy_(torch.from_numpy(np.ascontiguousarray(array)))


def float64_array(tensor: Tensor) -> np.ndarray:
    """Return a tensor as an array in float64."""
    return tensor.detach().cpu().double().numpy()
