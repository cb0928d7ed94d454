"""The mathematics of one layer of linear recurrent units."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tsrnn.kernels import cells, projected_recurrence

LOGARITHMS = ("nu_log", "theta_log", "gamma_log")  # of what is positive, a number a state


class LayerTensors(NamedTuple):
    """Parameters of a layer of N states; of complex numbers real parts, then imaginary ones."""

    nu_log: Tensor  # (N,)
    theta_log: Tensor  # (N,)
    gamma_log: Tensor  # (N,)
    B: Tensor  # (2 N, in)
    C: Tensor  # (hidden, 2 N), imaginary parts with the sign turned
    D: Tensor  # (hidden, in)

    def diagonal(self) -> Tensor:
        """Real and imaginary parts (2, N) of exp(-exp(nu) + i exp(theta))."""
        angle = self.theta_log.exp()
        return torch.stack([angle.cos(), angle.sin()]) * torch.exp(-self.nu_log.exp())

    def input_weights(self) -> Tensor:
        """Real and imaginary parts (2, N, in) of gamma B."""
        return self.B.unflatten(0, (2, -1)) * self.gamma_log.exp()[:, None]

    def recur(self, x: Tensor, initial: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Inputs (B, T, in) and initial states (B, 2 N) to all states (B, T, 2 N), last ones."""
        weight, start = self.input_weights().flatten(0, 1), initial.unflatten(-1, (2, -1))
        states, end = projected_recurrence(
            cells.lru(), x, weight, None, self.diagonal(), start, lengths
        )
        return states.flatten(-2), end.flatten(-2)

    def read(self, states: Tensor, x: Tensor) -> Tensor:
        """Real parts of C times the states plus D times the inputs, (B, T, hidden)."""
        return nn.functional.linear(states, self.C) + nn.functional.linear(x, self.D)


def tensor_shapes(units: int, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    """Shapes of `LayerTensors`, by name."""
    return {name: (units,) for name in LOGARITHMS} | {
        "B": (2 * units, inputs),
        "C": (outputs, 2 * units),
        "D": (outputs, inputs),
    }


def last_output(output: Tensor, initial: Tensor, lengths: Tensor | None) -> Tensor:
    """Output (B, hidden) at the end of each sequence, the initial one where it has no steps."""
    if lengths is None:
        return output[:, -1]
    end = (lengths.long() - 1).clamp(min=0)[:, None, None].expand(-1, 1, output.shape[2])
    return torch.where(lengths[:, None] > 0, output.gather(1, end)[:, 0], initial)


def real_blocks(eigenvalue: Tensor) -> Tensor:
    """Multiplication by complex numbers (N,) as real blocks (N, 2, 2)."""
    re, im = eigenvalue.real, eigenvalue.imag
    return torch.stack([re, -im, im, re], -1).unflatten(-1, (2, 2))
