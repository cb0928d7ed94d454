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
    inputs = inputs[..., None] if cell.shared else inputs
    alive = torch.arange(inputs.shape[1], device=inputs.device) < lengths[:, None]
    # Padding may hold anything. One, where log, sqrt and division are smooth, keeps NaN from
    # reaching the gradients as zero times NaN.
    inputs = torch.where(alive[..., None, None], inputs, torch.ones_like(inputs))
    state = initial
    states = []
    for u, live in zip(inputs.unbind(1), alive.unbind(1), strict=True):
        new = torch.stack(cell.step(state.unbind(1), u.unbind(1), weights), 1)
        state = torch.where(live[:, None, None], new, state)
        states.append(torch.where(live[:, None, None], new, torch.zeros_like(new)))
    return torch.stack(states, 1), state
