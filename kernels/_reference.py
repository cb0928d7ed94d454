"""The obvious loop over time in torch: what every other engine is tested against."""

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell


def reference(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """Run the recurrence step by step; arguments as in `recurrence`.

    Any device, any floating dtype, any derivative that autograd has. Slow.
    """
    weights = params.unbind(0)
    state = initial
    states = []
    for t in range(inputs.shape[1]):
        new = torch.stack(cell.step(state.unbind(1), inputs[:, t].unbind(1), weights), 1)
        alive = (t < lengths).view(-1, 1, 1)
        state = torch.where(alive, new, state)
        states.append(torch.where(alive, new, torch.zeros_like(new)))
    return torch.stack(states, 1), state
