"""How the parameters of a layer are drawn."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from tsrnn.kernels import Cell
from tsrnn.layers._cells import gate, matrices_of


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
        forget = gate(cell, "u_f")
        if forget is not None:
            bias.view(cell.m, -1)[forget] = 1.0


def draw_chrono(cell: Cell, bias: Tensor, length: float, generator: torch.Generator | None) -> None:
    """Biases of the gates such that units remember from one step to `length`; others are zero."""
    bias.zero_()
    fields = bias.view(cell.m, -1)
    for keep, sign in (("u_f", 1.0), ("u_z", -1.0)):  # z of a GRU lets the new in
        fields_of = gate(cell, keep)
        if fields_of is not None:
            drawn = torch.empty_like(fields[fields_of]).uniform_(
                1.0, length - 1.0, generator=generator
            )
            fields[fields_of] = sign * drawn.log()
    forget, new = gate(cell, "u_f"), gate(cell, "u_i")
    if forget is not None and new is not None:
        fields[new] = -fields[forget]


def _contractions(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Blocks r Q of shape (K, d_s, d_s): Q orthogonal (Haar), r^2 uniform on [0, 1]."""
    count, size, _ = like.shape
    q, r = torch.linalg.qr(like.new_empty(count, size, size).normal_(generator=generator))
    q = q * torch.diagonal(r, dim1=1, dim2=2).sign()[:, None, :]  # without it Q is not uniform
    radius = like.new_empty(count).uniform_(generator=generator).sqrt()
    return radius[:, None, None] * q
