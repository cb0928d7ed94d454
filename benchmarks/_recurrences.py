"""Problems of recurrences to be timed, and what a call makes of them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tsrnn.kernels import Cell, recurrence

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


def needed_backward(cell: Cell) -> set[str]:
    """Names that the backward pass reads."""
    from tsrnn.kernels._trace import trace

    return trace(cell)[1].reads
