"""One layer of a block-recurrent transformer."""

import torch
from torch import Tensor, nn

from tsrnn.layers._brt_heads import LocalAttention
from tsrnn.layers._brt_memory import Memory
from tsrnn.layers._brt_windows import Windows


class TransformerLayer(nn.Module):
    """Local attention, with a memory also attention to it, then a feedforward network.

    Parameters
    ----------
    size, n_heads, window, bias, dropout
        As of the whole.
    memory : Memory, optional
        Of the recurrent layer.
    """

    def __init__(
        self, size: int, n_heads: int, window: int, bias: bool, dropout: float,
        memory: Memory | None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm = nn.LayerNorm(size, bias=bias)
        self.attention = LocalAttention(size, n_heads, window, bias)
        self.memory = memory
        self.mix = nn.Linear(size if memory is None else 2 * size, size, bias=bias)
        self.feedforward = nn.Sequential(
            nn.LayerNorm(size, bias=bias),
            nn.Linear(size, 4 * size, bias=bias),
            nn.GELU(),
            nn.Linear(4 * size, size, bias=bias),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, windows: Windows, states: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens (B, 1 + G, W, d) and states (B, S, d) to tokens (B, G, W, d) and states."""
        normed = self.norm(tokens)
        if self.memory is not None:
            normed = normed + self.memory.token_ids
        heads, keys, values = self.attention(normed, windows.fresh)
        if self.memory is not None:
            before, states = self.memory.carry(states, keys, values, windows.complete)
            heads = torch.cat([heads, self.memory.read(normed[:, 1:], before)], -1)
        tokens = tokens[:, 1:] + self.dropout(self.mix(heads))
        return tokens + self.dropout(self.feedforward(tokens)), states
