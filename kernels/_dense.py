"""Blocks too large to unroll: a batched matrix product a step."""

import torch
from torch import Tensor

from tsrnn.kernels.cells.para_rnn import ACTIVATIONS


def dense(
    inputs: Tensor,
    weights: Tensor,
    initial: Tensor,
    lengths: Tensor | None = None,
    nonlinearity: str = "tanh",
) -> tuple[Tensor, Tensor]:
    r"""Run :math:`h_t = \sigma(W h_{t-1} + u_t)` with a full matrix W in each of K blocks.

    Parameters
    ----------
    inputs : Tensor of shape (B, T, d, K)
    weights : Tensor of shape (d, d, K)
    initial : Tensor of shape (B, d, K)
    lengths : integer Tensor of shape (B,), optional
        Steps to run of each sequence; all of T by default.
    nonlinearity : {"tanh", "relu", "identity"}

    Returns
    -------
    states : Tensor of shape (B, T, d, K)
        Zero after the end of a sequence.
    final : Tensor of shape (B, d, K)
    """
    activation = ACTIVATIONS[nonlinearity]
    matrices = weights.permute(2, 1, 0)  # (K, from, to)
    steps = inputs.permute(1, 3, 0, 2)  # (T, K, B, d)
    state = initial.permute(2, 0, 1)
    alive = None
    states = []
    for t, u in enumerate(steps):
        new = activation(torch.baddbmm(u, state, matrices))
        if lengths is not None:
            alive = (t < lengths).view(1, -1, 1)
            states.append(torch.where(alive, new, torch.zeros_like(new)))
            state = torch.where(alive, new, state)
        else:
            states.append(new)
            state = new
    return torch.stack(states).permute(2, 0, 3, 1), state.permute(1, 2, 0)
