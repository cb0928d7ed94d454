"""Blocks too large to unroll: a batched matrix product a step."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tsrnn.kernels._lengths import checked_lengths, without_padding
from tsrnn.kernels.cells.para_rnn import activation_of


def dense(
    inputs: Tensor,
    weights: Tensor,
    initial: Tensor,
    lengths: Tensor | Sequence[int] | None = None,
    nonlinearity: str = "tanh",
) -> tuple[Tensor, Tensor]:
    r"""Run :math:`h_t = \sigma(W h_{t-1} + u_t)` with a full matrix W in each of K blocks.

    Parameters
    ----------
    inputs : Tensor of shape (B, T, d, K)
    weights : Tensor of shape (d, d, K)
    initial : Tensor of shape (B, d, K)
    lengths : integers of shape (B,), optional
        Steps to run of each sequence; all of T by default.
    nonlinearity : {"tanh", "relu", "identity"}

    Returns
    -------
    states : Tensor of shape (B, T, d, K)
        Zero after the end of a sequence.
    final : Tensor of shape (B, d, K)

    Raises
    ------
    ValueError
        If shapes do not fit, lengths lie outside 0 to T or the nonlinearity is unknown.
    """
    activation = activation_of(nonlinearity)
    _check_shapes(inputs, weights, initial)
    matrices = weights.permute(2, 1, 0)  # (K, from, to)
    alive = None
    if lengths is not None:
        given = checked_lengths(lengths, len(inputs), inputs.shape[1], inputs.device)
        alive = torch.arange(inputs.shape[1], device=inputs.device)[:, None] < given
        inputs = without_padding(inputs, given)
    state = initial.permute(2, 0, 1)
    states = []
    for t, u in enumerate(inputs.permute(1, 3, 0, 2)):  # (K, B, d)
        new = shown = activation(torch.baddbmm(u, state, matrices))
        if alive is not None:
            live = alive[t].view(1, -1, 1)
            shown = new.masked_fill(~live, 0.0)
            new = torch.where(live, new, state)
        states.append(shown)
        state = new
    return torch.stack(states).permute(2, 0, 3, 1), state.permute(1, 2, 0)


def _check_shapes(inputs: Tensor, weights: Tensor, initial: Tensor) -> None:
    if inputs.ndim != 4 or not inputs.shape[1]:
        raise ValueError(
            f"inputs must have shape (B, T, d, K) with T >= 1; got {tuple(inputs.shape)}"
        )
    batch, _, size, units = inputs.shape
    expected = {
        "weights": (weights, (size, size, units)),
        "initial": (initial, (batch, size, units)),
    }
    for name, (tensor, shape) in expected.items():
        if tuple(tensor.shape) != shape:
            raise ValueError(
                f"{name} must have shape {shape} for inputs of shape {tuple(inputs.shape)}; "
                f"got {tuple(tensor.shape)}"
            )
