"""Parts of the block of Danieli et al. (2025)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from tsrnn.kernels import Cell, recurrence
from tsrnn.layers._init import draw_uniform
from tsrnn.layers._newton import draw_newton

EPSILON = 1e-5  # of the normalisations, as in Mamba2


class Mixer(nn.Module):
    """What mixes steps: convolution, recurrence, gate."""

    def __init__(
        self,
        size: int,
        units: int,
        cell: Cell,
        conv_size: int,
        n_heads: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.cell = cell
        self.before = make_norm(size, **made)
        self.inwards = nn.Linear(size, 2 * units, bias=False, **made)
        self.conv = nn.Conv1d(units, units, conv_size, groups=units, **made)
        head = units // n_heads
        self.weight = nn.Parameter(torch.empty(cell.m, n_heads, head, head, **made))
        self.bias = nn.Parameter(torch.empty(cell.m, units, **made))
        self.params = nn.Parameter(torch.empty(cell.p, units, **made))
        self.skip = nn.Parameter(torch.empty(units, **made))
        self.gated = make_norm(units, **made)
        self.outwards = nn.Linear(units, size, bias=False, **made)

    def forward(
        self, stream: Tensor, memory: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Stream (B, T, size) and memory (B, ...) to what is added to it and the new memory."""
        u, gate = self.inwards(self.before(stream)).chunk(2, -1)
        start, past = memory.tensor_split([self.params[0].numel() * self.cell.n], -1)
        seen = torch.cat([past.unflatten(-1, (-1, u.shape[-1])), u], 1)
        v = nn.functional.silu(self.conv(seen.mT).mT)
        states, final = recurrence(
            self.cell, self.inputs(v), self.params, start.unflatten(-1, (self.cell.n, -1)),
            lengths, outputs_only=True,
        )  # fmt: skip
        y = states.flatten(-2) + self.skip * v
        change = self.outwards(self.gated(y * nn.functional.silu(gate)))
        kept = last_steps(seen, self.conv.kernel_size[0] - 1, lengths)
        return change, torch.cat([final.flatten(1), kept.flatten(1)], -1)

    def inputs(self, v: Tensor) -> Tensor:
        """Projected inputs (B, T, m, units) of the recurrence, head by head."""
        heads = v.unflatten(-1, (self.weight.shape[1], -1))
        return torch.einsum("bthi,mhoi->btmho", heads, self.weight).flatten(-2) + self.bias

    def reset_parameters(self, scale: float, generator: torch.Generator | None) -> None:
        draw_linear(self.inwards, generator)
        draw_linear(self.outwards, generator, scale)
        bound = self.conv.kernel_size[0] ** -0.5
        draw_uniform(self.conv.parameters(), bound, generator)
        draw_newton(self.weight, self.params, self.bias, self.weight.shape[-1], generator)
        for ones in (self.before.weight, self.skip, self.gated.weight):
            nn.init.ones_(ones)


class MLP(nn.Module):
    """What acts on every step by itself."""

    def __init__(
        self,
        size: int,
        width: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.before = make_norm(size, **made)
        self.inwards = nn.Linear(size, 2 * width, bias=False, **made)
        self.outwards = nn.Linear(width, size, bias=False, **made)

    def forward(self, stream: Tensor) -> Tensor:
        a, b = self.inwards(self.before(stream)).chunk(2, -1)
        return self.outwards(nn.functional.silu(a) * b)

    def reset_parameters(self, scale: float, generator: torch.Generator | None) -> None:
        draw_linear(self.inwards, generator)
        draw_linear(self.outwards, generator, scale)
        nn.init.ones_(self.before.weight)


def make_norm(
    size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> nn.RMSNorm:
    return nn.RMSNorm(size, eps=EPSILON, device=device, dtype=dtype)


def draw_linear(linear: nn.Linear, generator: torch.Generator | None, scale: float = 1.0) -> None:
    """Normal of variance scale^2 / in, cut at three standard deviations."""
    std = scale / math.sqrt(linear.in_features)
    nn.init.trunc_normal_(linear.weight, 0, std, -3 * std, 3 * std, generator=generator)


def last_steps(sequence: Tensor, count: int, lengths: Tensor | None) -> Tensor:
    """Last `count` steps at the own end of sequences (B, count + T, D) led by `count` earlier."""
    if lengths is None:
        return sequence[:, sequence.shape[1] - count :]
    steps = lengths[:, None].long() + torch.arange(count, device=sequence.device)
    return torch.take_along_dim(sequence, steps[..., None], 1)
