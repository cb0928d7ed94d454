"""How the parameters of a block-recurrent transformer are drawn."""

from __future__ import annotations

import torch
from torch import nn

from tsrnn.layers._brt_heads import LocalAttention
from tsrnn.layers._brt_memory import Memory
from tsrnn.layers._init import draw_uniform


def draw_transformer(transformer: nn.Module, generator: torch.Generator | None) -> None:
    """Draw every part as its kind is drawn."""
    for module in transformer.modules():
        if isinstance(module, nn.Linear):
            draw_uniform(module.parameters(), module.in_features**-0.5, generator)
        elif isinstance(module, nn.LayerNorm):
            module.reset_parameters()
        elif isinstance(module, LocalAttention):
            module.distance_bias.zero_()
        elif isinstance(module, Memory):
            module.draw(generator)
