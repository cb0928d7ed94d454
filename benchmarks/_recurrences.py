"""Problems of recurrences to be timed, and what a call makes of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tsrnn.kernels import Cell, recurrence

if TYPE_CHECKING:
    from tsrnn.layers import ParaRNN

Problem = tuple[Tensor, Tensor, Tensor]


def draw(cell: Cell, batch: int, steps: int, units: int, device: str = "cpu") -> Problem:
    """Inputs, parameters of stable recurrences and the gradient of the states."""
    # What is on no memory has no numbers.
    generator = None if device == "meta" else torch.Generator(device).manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=device)

    inputs = normal(batch, steps, cell.m, units)
    params = normal(cell.p, units) * (0.3 / math.sqrt(cell.n))
    if cell.name == "lru":
        radius = 0.9 + 0.1 * torch.rand(units, generator=generator, device=device)
        phase = params[0]
        params = torch.stack([radius * phase.cos(), radius * phase.sin()])
    return inputs, params, normal(batch, steps, cell.n, units)


def results(cell: Cell, problem: Problem, engine: str) -> list[Tensor]:
    """States and gradients."""
    inputs, params, grad = problem
    leaves = [inputs.detach().requires_grad_(), params.detach().requires_grad_()]
    states, _ = recurrence(cell, *leaves, engine=engine)
    return [states.detach(), *torch.autograd.grad(states, leaves, grad)]


def full_matrices(blocks: Tensor) -> Tensor:
    """Blocks (..., d_s, d_s, K) laid into matrices (..., d, d), unit i of block k at i K + k."""
    size, _, count = blocks.shape[-3:]
    whole, k = blocks.new_zeros(*blocks.shape[:-3], size, count, size, count), torch.arange(count)
    # Indices around an axis come first in the result: (K, ..., d_s, d_s).
    whole[..., :, k, :, k] = blocks.movedim(-1, 0)
    return whole.reshape(*blocks.shape[:-3], size * count, size * count)


@torch.no_grad()
def torch_twin(layer: ParaRNN) -> torch.nn.RNN:
    """Layer of torch with the weights of ours, its blocks laid into one recurrent matrix."""
    twin = torch.nn.RNN(layer.input_size, layer.hidden_size, batch_first=True)
    twin.weight_hh_l0.copy_(full_matrices(layer.weight_hh_l0))
    twin.weight_ih_l0.copy_(layer.weight_ih_l0)
    twin.bias_ih_l0.copy_(layer.bias_l0)
    twin.bias_hh_l0.zero_()
    return twin


def needed_backward(cell: Cell) -> set[str]:
    """Names that the backward pass reads."""
    from tsrnn.kernels._trace import trace

    return trace(cell)[1].reads
