"""Attention with several heads."""

import torch
from torch import Tensor, nn


def attend(q: Tensor, k: Tensor, v: Tensor, n_heads: int) -> Tensor:
    """Softmax attention of queries (..., n, d) to keys and values (..., m, d), head by head."""
    lead = q.shape[:-2]
    # The fast kernels of torch take four axes.
    q, k, v = (_heads(x, n_heads).flatten(0, -4) for x in (q, k, v))
    heads = nn.functional.scaled_dot_product_attention(q, k, v)
    return _joined(heads).unflatten(0, lead)


class LocalAttention(nn.Module):
    """Every step attends to itself and the W steps before it; a bias for each distance."""

    def __init__(self, size: int, n_heads: int, window: int, bias: bool) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(size, size, bias=bias)
        self.key_value = nn.Linear(size, 2 * size, bias=bias)
        self.distance_bias = nn.Parameter(torch.empty(n_heads, window + 1))

    def forward(self, tokens: Tensor, fresh: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B, 1 + G, W, d) to heads, keys and values (B, G, W, d).

        Where `fresh` (B,) is true the first window has no meaning.
        """
        keys, values = self.key_value(tokens).chunk(2, -1)
        # k and v (B, G, heads, 2 W, d / heads): of the window before and the own one
        k, v = (_heads(torch.cat([x[:, :-1], x[:, 1:]], -2), self.n_heads) for x in (keys, values))
        q = _heads(self.query(tokens[:, 1:]), self.n_heads)
        scores = (q * q.shape[-1] ** -0.5) @ k.mT + self._bias()
        scores[:, 0, ..., : tokens.shape[2]].masked_fill_(fresh[:, None, None, None], -torch.inf)
        return _joined(scores.softmax(-1) @ v), keys[:, 1:], values[:, 1:]

    def _bias(self) -> Tensor:
        """What is added to the scores (heads, W, 2 W): of the distance, or minus infinity."""
        window = self.distance_bias.shape[1] - 1
        places = torch.arange(2 * window, device=self.distance_bias.device)
        distance = places[:window, None] + window - places
        outside = (distance < 0) | (distance > window)
        return self.distance_bias[:, distance.clamp(0, window)].masked_fill(outside, -torch.inf)


def _heads(x: Tensor, n_heads: int) -> Tensor:
    """(..., n, d) to (..., heads, n, d / heads)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(-2, -3)


def _joined(heads: Tensor) -> Tensor:
    """(..., heads, n, d / heads) to (..., n, d)."""
    return heads.transpose(-2, -3).flatten(-2)
