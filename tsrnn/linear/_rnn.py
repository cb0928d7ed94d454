r"""Linear difference equations as linear recurrent layers, and back.

Every model of `tsrnn.linear` whose recurrence is linear predicts by

.. math:: h_{t+1} = c + \sum_{i=1}^r M_i h_{t+1-i} + \sum_{i=1}^r N_i x_{t+1-i}

with h of n numbers and inputs x of m. The linear network with the recurrent matrix and the
weights

.. math:: W_h = \begin{pmatrix} M_1 & I & \\ \vdots & & I \\ M_r & & \end{pmatrix}, \quad
          W_x = \begin{pmatrix} N_1 \\ \vdots \\ N_r \end{pmatrix}, \quad
          b = \begin{pmatrix} c \\ 0 \end{pmatrix}

has h as the first n numbers of its state (Cai et al., 2026, section 2.1, where r = 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tsrnn.layers import ParaRNN


class DifferenceEquation(NamedTuple):
    """Coefficients of a linear difference equation.

    Attributes
    ----------
    recurrent : ndarray of shape (r, n, n)
        M_1, ..., M_r.
    inputs : ndarray of shape (r, n, m)
        N_1, ..., N_r.
    intercept : ndarray of shape (n,)
        c.
    """

    recurrent: np.ndarray
    inputs: np.ndarray
    intercept: np.ndarray


def as_rnn(equation: DifferenceEquation) -> ParaRNN:
    """Linear layer of one block whose first n outputs follow the equation, in float64."""
    recurrent, inputs, intercept = equation
    r, n, m = inputs.shape
    layer = ParaRNN(m, r * n, r * n, nonlinearity="identity", dtype=torch.float64)
    shift = np.eye(r * n, k=n)
    shift[:, :n] = recurrent.reshape(r * n, n)
    with torch.no_grad():
        layer.get_parameter("weight_hh_l0")[..., 0] = torch.from_numpy(shift)
        layer.get_parameter("weight_ih_l0")[:] = torch.from_numpy(inputs.reshape(r * n, m))
        bias = layer.get_parameter("bias_l0")
        bias[:n], bias[n:] = torch.from_numpy(intercept), 0.0
    return layer


def from_rnn(layer: ParaRNN, readout: np.ndarray | None = None, n: int = 1) -> DifferenceEquation:
    r"""Equation that an output of a linear layer follows, whatever basis its state has.

    With W_h = A and the output C h: :math:`C A^r = M_1 C A^{r-1} + \dots + M_r C`, and the
    first terms of the response :math:`C A^j W_x` give N.

    Parameters
    ----------
    layer : tsrnn.layers.ParaRNN
        One layer with ``nonlinearity="identity"``.
    readout : ndarray of shape (n, hidden_size), optional
        The matrix C; by default it takes the first n outputs.
    n : int, default 1
        Number of outputs, where `readout` is not given.

    Returns
    -------
    DifferenceEquation
        Of order r = hidden_size / n.

    Raises
    ------
    TypeError
        If it is no such layer.
    ValueError
        If its state does not fit the number of outputs, or cannot be told from them.
    """
    matrix, weights, bias = _weights(layer)
    size = len(matrix)
    output = np.eye(n, size) if readout is None else np.atleast_2d(np.asarray(readout, float))
    n = len(output)
    if output.shape[1] != size or size % n:
        raise ValueError(
            f"the layer has {size} states; a readout must have shape (n, {size}) with n a divisor "
            f"of {size}; got {output.shape}"
        )
    r = size // n
    seen = [output]
    for _ in range(r):
        seen.append(seen[-1] @ matrix)
    observed = np.vstack(seen[:r])
    if np.linalg.cond(observed) > 1e12:
        raise ValueError(
            "some of the layer's states never reach its output: a network with fewer states "
            "does the same. Read that one, or give another readout"
        )
    # Solutions of [M_r, ..., M_1] observed = C A^r.
    ahead = np.linalg.solve(observed.T, seen[r].T).T.reshape(n, r, n)
    recurrent = ahead.transpose(1, 0, 2)[::-1]
    inputs = _moving_average(recurrent, [part @ weights for part in seen[:r]])
    offsets = _moving_average(recurrent, [part @ bias[:, None] for part in seen[:r]])
    return DifferenceEquation(recurrent, inputs, offsets.sum(0)[:, 0])


def _moving_average(recurrent: np.ndarray, response: list[np.ndarray]) -> np.ndarray:
    """N_i = H_{i-1} - sum_{k < i} M_k H_{i-1-k} of a response H_0, H_1, ..."""
    return np.stack(
        [
            term - sum((recurrent[k] @ response[i - 1 - k] for k in range(i)), np.zeros_like(term))
            for i, term in enumerate(response)
        ]
    )


def _weights(layer: ParaRNN) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W_h (d, d), W_x (d, m) and b (d,) of a linear layer, its blocks on the diagonal."""
    if not isinstance(layer, ParaRNN):
        raise TypeError(f"layer must be a tsrnn.layers.ParaRNN; got a {type(layer).__name__}")
    if layer.nonlinearity != "identity" or layer.num_layers != 1:
        raise TypeError(
            "layer must be one linear layer, ParaRNN(..., nonlinearity='identity', num_layers=1); "
            f"got {layer!r}"
        )
    blocks = _numbers(layer, "weight_hh_l0")
    d, _, count = blocks.shape
    matrix = np.zeros((d, count, d, count))
    for k in range(count):
        matrix[:, k, :, k] = blocks[..., k]
    bias = _numbers(layer, "bias_l0") if layer.bias else np.zeros(d * count)
    return matrix.reshape(d * count, d * count), _numbers(layer, "weight_ih_l0"), bias


def _numbers(layer: ParaRNN, name: str) -> np.ndarray:
    return layer.get_parameter(name).detach().double().cpu().numpy()
