"""Problems of recurrences to be timed, and what a call makes of them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tsrnn.kernels import Cell, recurrence

Problem = tuple[Tensor, Tensor, Tensor]


def draw(cell: Cell, batch: int, steps: int, units: int, device: str = "cpu") -> Problem:
    """Inputs, parameters of stable recurrences and the gradient of the states."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(batch, steps, cell.m, units, generator=generator)
    params = torch.randn(cell.p, units, generator=generator) * (0.3 / math.sqrt(cell.n))
    if cell.name == "lru":
        radius, phase = (
            0.9 + 0.1 * torch.rand(2, units, generator=generator).unbind(0)[0],
            params[0],
        )
        params = torch.stack([radius * phase.cos(), radius * phase.sin()])
    grad = torch.randn(batch, steps, cell.n, units, generator=generator)
    return inputs.to(device), params.to(device), grad.to(device)


def results(cell: Cell, problem: Problem, engine: str) -> list[Tensor]:
    """States and gradients."""
    inputs, params, grad = problem
    leaves = [inputs.detach().requires_grad_(), params.detach().requires_grad_()]
    states, _ = recurrence(cell, *leaves, engine=engine)
    return [states.detach(), *torch.autograd.grad(states, leaves, grad)]


def needed_backward(cell: Cell) -> set[str]:
    """Names that the backward pass reads."""
    from tsrnn.kernels._trace import trace

    return trace(cell)[1].reads
