"""Arrays that carry their derivatives by a few parameters: forward mode, first and second order.

A correlation recursion has two to four parameters and thousands of outputs, so that forward
derivatives cost less than the adjoint ones and give the scores of every observation besides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class TensorJet:
    """A tensor with derivatives by k parameters.

    Parameters
    ----------
    value : Tensor of shape (...)
    first : Tensor of shape (k, ...) or None
        None where all are zero.
    second : Tensor of shape (k, k, ...) or None
    """

    value: Tensor
    first: Tensor | None = None
    second: Tensor | None = None

    def __add__(self, other: TensorJet) -> TensorJet:
        return TensorJet(
            self.value + other.value,
            _sum(self.first, other.first),
            _sum(self.second, other.second),
        )

    def __sub__(self, other: TensorJet) -> TensorJet:
        return self + other.map(torch.neg)

    def __mul__(self, other: TensorJet) -> TensorJet:
        cross = _outer(self.first, other.first)
        return TensorJet(
            self.value * other.value,
            _sum(_times(self.first, other.value), _times(other.first, self.value)),
            _sum(
                _sum(_times(self.second, other.value), _times(other.second, self.value)),
                None if cross is None else cross + cross.transpose(0, 1),
            ),
        )

    def map(self, linear: Callable[[Tensor], Tensor]) -> TensorJet:
        """Apply a linear function that works on the last dimensions."""
        value, *derivatives = self.parts
        return TensorJet(linear(value), *(None if d is None else linear(d) for d in derivatives))

    def power(self, exponent: float) -> TensorJet:
        """Raise to a power, element by element."""
        x, e = self.value, exponent
        slope = e * x ** (e - 1)
        bend = _times(_outer(self.first, self.first), e * (e - 1) * x ** (e - 2))
        return TensorJet(x**e, _times(self.first, slope), _sum(_times(self.second, slope), bend))

    def log(self) -> TensorJet:
        """Natural logarithm, element by element."""
        x = self.value
        bend = _times(_outer(self.first, self.first), -(x**-2))
        return TensorJet(x.log(), _times(self.first, 1 / x), _sum(_times(self.second, 1 / x), bend))

    @property
    def parts(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Value and derivatives."""
        return self.value, self.first, self.second


def variables(params: Tensor) -> list[TensorJet]:
    """The k parameters (U, k) of U units as jets of values (U, 1, 1, 1)."""
    units, k = params.shape
    unit_vectors = torch.eye(k, dtype=params.dtype)[:, :, None, None, None, None]
    return [
        TensorJet(params[:, i, None, None, None], unit_vectors[i].expand(k, units, 1, 1, 1))
        for i in range(k)
    ]


def constants(params: np.ndarray) -> list[TensorJet]:
    """Parameters (U, k) as jets of values (U, 1, 1, 1) without derivatives."""
    return [
        TensorJet(column) for column in torch.from_numpy(params)[:, :, None, None, None].unbind(1)
    ]


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _times(derivative: Tensor | None, factor: Tensor) -> Tensor | None:
    return None if derivative is None else derivative * factor


def _outer(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return None if a is None or b is None else a[:, None] * b[None]
