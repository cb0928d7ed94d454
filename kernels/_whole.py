"""Lengths reduced away: a padded batch as one whose sequences are all whole.

For engines that divide time. A recurrence does not look ahead, so what stands after the end
of a sequence changes nothing before it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.kernels._lengths import is_alive


def without_ends(inputs: Tensor, lengths: Tensor | None) -> Tensor:
    """Inputs with ones in the padding, where log, sqrt and division are smooth."""
    if lengths is None:
        return inputs
    alive = is_alive(lengths, inputs.shape[1])
    return torch.where(alive, inputs, inputs.new_ones(()))


def cut(
    states: Tensor, final: Tensor, initial: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Zeros after the ends, and the state that each sequence ends with."""
    if lengths is None:
        return states, final
    rows = torch.arange(len(states), device=states.device)
    last = states[rows, (lengths - 1).clamp(min=0)]
    final = torch.where((lengths > 0)[:, None, None], last, initial)
    return torch.where(is_alive(lengths, states.shape[1]), states, states.new_zeros(())), final


def extend(
    g_states: Tensor, g_final: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of whole sequences: of states, of the last state, and what goes to the first.

    The gradient of a final state belongs to the step that it ends with.
    """
    if lengths is None:
        return g_states, g_final, torch.zeros_like(g_final)
    g_states = torch.where(is_alive(lengths, g_states.shape[1]), g_states, g_states.new_zeros(()))
    empty, nothing = (lengths == 0)[:, None, None], torch.zeros_like(g_final)
    rows = torch.arange(len(g_states), device=g_states.device)
    last = (lengths - 1).clamp(min=0)
    g_states[rows, last] += torch.where(empty, nothing, g_final)
    return g_states, nothing, torch.where(empty, g_final, nothing)
