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

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.contract import check_is_fitted
from tsrnn.data import quote
from tsrnn.layers import ParaRNN

if TYPE_CHECKING:
    from tsrnn.linear._family import Family
    from tsrnn.linear._fitted import FittedLinear


class Recursion(NamedTuple):
    """Linear recursion of a fitted unit; its presample values are the same at all lags."""

    equation: DifferenceEquation
    outputs: np.ndarray | None = None  # (n,), presample of h
    inputs: np.ndarray | None = None  # (m,), presample of x
    start: np.ndarray | None = (
        None  # (r n,), state of the layer, where the presample is not constant
    )


class AsRNN:
    """Recursion of a model as a linear recurrent network; a part of `LinearForecaster`."""

    family_class: ClassVar[type[Family]]
    fitted_: FittedLinear

    def to_rnn(self, unit: Any = None) -> ParaRNN:
        r"""The model's recursion as a linear recurrent layer, in float64.

        .. math:: h_{t+1} = W_h h_t + W_x x_t + b

        (Cai et al., 2026, section 2.1), with the input x_t of the recursion. After x_t the first
        outputs of the layer are the expectation at t + 1. Started at `rnn_start`, it equals the
        model with a known start.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; not needed where there is one.

        Returns
        -------
        tsrnn.layers.ParaRNN

        Raises
        ------
        ValueError
            If a unit must be named, has no parameters, or its recursion is not linear.
        """
        return layer_of(self._unit_recursion(unit).equation)

    def rnn_start(self, unit: Any = None) -> Tensor:
        """Initial state hx of `to_rnn`'s layer, shape (1, 1, state).

        It follows from a presample in which recursion and inputs are constant, at the model's
        presample values; for smoothing models, from their states before the first row.
        """
        (recurrent, inputs, intercept), outputs, before, state = self._unit_recursion(unit)
        if state is None:
            terms = recurrent @ outputs + inputs @ before
            # Part i of the state sums the terms of lags i and above; part 1 adds the intercept.
            state = np.cumsum(terms[::-1], 0)[::-1].copy()
            state[0] += intercept
        return torch.from_numpy(state.reshape(1, 1, -1))

    @classmethod
    def from_rnn(cls, layer: ParaRNN, readout: np.ndarray | None = None) -> pd.Series:
        r"""Parameters of the model that a linear recurrent layer represents, in any basis.

        Parameters
        ----------
        layer : tsrnn.layers.ParaRNN
            One layer with ``nonlinearity="identity"``, given the inputs of `to_rnn`.
        readout : ndarray of shape (n, hidden_size), optional
            Matrix from the layer's output to h of the model; by default the first n outputs.

        Returns
        -------
        Series
            Named as in `params_`, with as many lags as the layer has states. Parameters outside
            the recursion, such as the variance of an ARMA, are missing.

        Raises
        ------
        TypeError
            If it is no such layer.
        ValueError
            If its states cannot be recovered from its output.
        """
        family = cls.family_class
        equation = equation_of(layer, readout, family.outputs_of(layer))
        return pd.Series(family.named(equation), dtype=np.float64)

    def _unit_recursion(self, unit: Any) -> Recursion:
        check_is_fitted(self)
        number = self._unit_number(unit)  # type: ignore[attr-defined]
        if not self.fitted_.estimates.fitted[number]:
            raise ValueError(f"unit {quote(self.units_[number])} has no parameters")  # type: ignore[attr-defined]
        return self.fitted_.family.recursion(*self.fitted_.unit(number))


def padded(values: np.ndarray, r: int) -> np.ndarray:
    """Pad coefficients by lag with zeros to shape (r, ...)."""
    whole = np.zeros((r, *values.shape[1:]))
    whole[: len(values)] = values
    return whole


class DifferenceEquation(NamedTuple):
    """Coefficients of a linear difference equation."""

    recurrent: np.ndarray  # (r, n, n), M_1, ..., M_r
    inputs: np.ndarray  # (r, n, m), N_1, ..., N_r
    intercept: np.ndarray  # (n,), c


def layer_of(equation: DifferenceEquation) -> ParaRNN:
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


def equation_of(
    layer: ParaRNN, readout: np.ndarray | None = None, n: int = 1
) -> DifferenceEquation:
    r"""Difference equation of an output of a linear layer, in any basis of its state.

    With W_h = A and the output C h: :math:`C A^r = M_1 C A^{r-1} + \dots + M_r C`, and the
    first terms of the response :math:`C A^j W_x` give N. The readout C has shape (n, states), by
    default it takes the first n outputs; the order r is states / n. A TypeError refuses other
    layers, a ValueError states that cannot be recovered from the outputs.
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
    if np.linalg.cond(observed) > 1e12:  # a solution would have about four digits
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
    """W_h (d, d), W_x (d, m) and b (d,) of a linear layer; W_h is block diagonal."""
    if not isinstance(layer, ParaRNN):
        raise TypeError(f"layer must be a tsrnn.layers.ParaRNN; got a {type(layer).__name__}")
    if layer.nonlinearity != "identity" or layer.num_layers != 1:
        raise TypeError(
            "layer must be one linear layer, ParaRNN(..., nonlinearity='identity', num_layers=1); "
            f"got {layer!r}"
        )
    blocks = _array(layer, "weight_hh_l0")
    d, _, count = blocks.shape
    matrix = np.zeros((d, count, d, count))
    for k in range(count):
        matrix[:, k, :, k] = blocks[..., k]
    bias = _array(layer, "bias_l0") if layer.bias else np.zeros(d * count)
    return matrix.reshape(d * count, d * count), _array(layer, "weight_ih_l0"), bias


def _array(layer: ParaRNN, name: str) -> np.ndarray:
    return layer.get_parameter(name).detach().double().cpu().numpy()
