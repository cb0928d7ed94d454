"""How the parameters of a layer are drawn."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from tsrnn.kernels import Cell
from tsrnn.layers._cells import forget_gate, matrices_of


def draw_uniform(
    parameters: Iterable[Tensor], bound: float, generator: torch.Generator | None
) -> None:
    """Draw from (-bound, bound)."""
    for parameter in parameters:
        parameter.uniform_(-bound, bound, generator=generator)


def draw_stable(
    cell: Cell,
    weight_ih: Tensor,
    params: Tensor,
    bias: Tensor | None,
    generator: torch.Generator | None,
) -> None:
    """Contractions as recurrent matrices, other parameters small, open forget gates."""
    draw_uniform([weight_ih], 1 / math.sqrt(weight_ih.shape[1]), generator)
    matrices = matrices_of(cell, params)
    for matrix in matrices.values():
        matrix.copy_(_contractions(matrix, generator))
    others = params[sum(matrix[0].numel() for matrix in matrices.values()) :]
    draw_uniform([others], 1 / math.sqrt(max(cell.p, 1)), generator)
    if bias is not None:
        bias.zero_()
        gate = forget_gate(cell)
        if gate is not None:
            bias.view(cell.m, -1)[gate] = 1.0


def _contractions(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Blocks r Q of shape (K, d_s, d_s): Q orthogonal (Haar), r^2 uniform on [0, 1]."""
    count, size, _ = like.shape
    q, r = torch.linalg.qr(like.new_empty(count, size, size).normal_(generator=generator))
    q = q * torch.diagonal(r, dim1=1, dim2=2).sign()[:, None, :]  # without it Q is not uniform
    radius = like.new_empty(count).uniform_(generator=generator).sqrt()
    return radius[:, None, None] * q
