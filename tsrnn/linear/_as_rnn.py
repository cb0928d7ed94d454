"""Fitted linear models as layers of a network, and layers read as models."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tsrnn.layers import ParaRNN
from tsrnn.linear._rnn import DifferenceEquation, as_rnn, from_rnn


class Recursion(NamedTuple):
    """A linear recursion of a fitted unit and what came before the data.

    Attributes
    ----------
    equation : DifferenceEquation
    outputs : ndarray of shape (n,)
        h before the first observation, at all lags.
    inputs : ndarray of shape (m,)
        x before the first observation, at all lags.
    """

    equation: DifferenceEquation
    outputs: np.ndarray
    inputs: np.ndarray


class AsRNN:
    """The recursion of a model as a linear recurrent network; a part of `LinearForecaster`.

    A subclass says what it is: `_recursion` of a unit, and `_named`, the parameters that an
    equation stands for.
    """

    def to_rnn(self, unit: Any = None) -> ParaRNN:
        r"""The model's recursion as a linear recurrent layer, in float64.

        .. math:: h_{t+1} = W_h h_t + W_x x_t + b

        (Cai et al., 2026, section 2.1), with x what the recursion takes in at t. After x_t the
        first numbers of the layer's output are what is expected at t + 1; started at
        `rnn_start`, it gives the same numbers as the model with a known start.

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
        return as_rnn(self._unit_recursion(unit).equation)

    def rnn_start(self, unit: Any = None) -> Tensor:
        """State of `to_rnn`'s layer before the first input, (1, 1, state), to be given as hx.

        That of a past in which recursion and inputs stood where the model has them stand before
        the data.
        """
        (recurrent, inputs, intercept), outputs, before = self._unit_recursion(unit)
        terms = recurrent @ outputs + inputs @ before
        # Part i of the state holds what lags i and more add; the first, h_1, the intercept too.
        state = np.cumsum(terms[::-1], 0)[::-1].copy()
        state[0] += intercept
        return torch.from_numpy(state.reshape(1, 1, -1))

    @classmethod
    def from_rnn(cls, layer: ParaRNN, readout: np.ndarray | None = None) -> pd.Series:
        r"""Parameters of the model that a linear recurrent layer is, in whatever basis.

        Parameters
        ----------
        layer : tsrnn.layers.ParaRNN
            One layer with ``nonlinearity="identity"``, given the inputs of `to_rnn`.
        readout : ndarray of shape (n, hidden_size), optional
            What makes the model's h of the layer's output; its first numbers by default.

        Returns
        -------
        Series
            Named as in `params_`, with as many lags as the layer has states. What a
            layer of the recursion does not hold, such as the variance of an ARMA, is missing.

        Raises
        ------
        TypeError
            If it is no such layer.
        ValueError
            If its states cannot be told from its output.
        """
        n = cls._outputs_of(layer)
        return pd.Series(cls._named(from_rnn(layer, readout, n)), dtype=np.float64)

    @classmethod
    def _outputs_of(cls, layer: ParaRNN) -> int:
        """How many numbers of a layer's output the recursion has: one unless said otherwise."""
        return 1

    @classmethod
    def _named(cls, equation: DifferenceEquation) -> dict[str, float]:
        raise TypeError(f"{cls.__name__} is not read from layers")

    def _recursion(self, unit: int) -> Recursion:
        raise ValueError(f"the recursion of this {type(self).__name__} is not linear")

    def _unit_recursion(self, unit: Any) -> Recursion:
        check_is_fitted(self, "memory_")
        number = self._unit_number(unit)  # type: ignore[attr-defined]
        if not self.estimates_.fitted[number]:  # type: ignore[attr-defined]
            raise ValueError(f"unit {self.units_[number]!r} has no parameters")  # type: ignore[attr-defined]
        return self._recursion(number)


def padded(values: np.ndarray, r: int) -> np.ndarray:
    """Coefficients by lag, (r, ...), zero after the last."""
    whole = np.zeros((r, *values.shape[1:]))
    whole[: len(values)] = values
    return whole
