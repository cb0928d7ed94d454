"""The state vectors of a block-recurrent transformer."""

import torch
from torch import Tensor, nn

from tsrnn.layers._brt_heads import attend

RECURRENT_MATRICES = ("W_Q", "W_K", "W_V")


class StateAttention(nn.Module):
    """Self-attention of the states, with recurrent matrices W_Q, W_K, W_V in K blocks."""

    def __init__(self, size: int, n_heads: int, block_size: int | None, bias: bool) -> None:
        super().__init__()
        block = size if block_size is None else block_size
        self.n_blocks = size // block
        self.n_heads = n_heads if block_size is None else self.n_blocks
        for name in RECURRENT_MATRICES:
            blocks = torch.empty(self.n_blocks, block, block)
            self.register_parameter(name, nn.Parameter(blocks))
        self.W_O = nn.Linear(size, size, bias=bias)

    def forward(self, states: Tensor) -> Tensor:
        """States (B, S, d) to (B, S, d)."""
        split = states.unflatten(-1, (self.n_blocks, -1))
        q, k, v = (
            torch.einsum("...ki,kij->...kj", split, getattr(self, name)).flatten(-2)
            for name in RECURRENT_MATRICES
        )
        return self.W_O(attend(q, k, v, self.n_heads))


class Memory(nn.Module):
    """States that tokens read and that take in each window when it is complete."""

    def __init__(
        self, size: int, n_states: int, window: int, n_heads: int, block_size: int | None,
        bias: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.n_heads = n_heads
        self.initial = nn.Parameter(torch.empty(n_states, size))
        self.state_ids = nn.Parameter(torch.empty(n_states, size))
        self.token_ids = nn.Parameter(torch.empty(window, size))
        self.gate = nn.Parameter(torch.empty(size))
        self.norm = nn.LayerNorm(size, bias=bias)
        self.self_attention = StateAttention(size, n_heads, block_size, bias)
        self.write_query = nn.Linear(size, size, bias=bias)
        self.write_output = nn.Linear(size, size, bias=bias)
        self.read_query = nn.Linear(size, size, bias=bias)
        self.read_key_value = nn.Linear(size, 2 * size, bias=bias)

    def update(self, states: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """States (B, S, d) after a window with keys and values (B, W, d)."""
        named = self.norm(states) + self.state_ids
        across = attend(self.write_query(named), keys, values, self.n_heads)
        candidate = self.self_attention(named) + self.write_output(across)
        return torch.lerp(candidate, states, self.gate.sigmoid())

    def carry(
        self, states: Tensor, keys: Tensor, values: Tensor, complete: Tensor
    ) -> tuple[Tensor, Tensor]:
        """States before each window (B, G, S, d), and at the end (B, S, d).

        Keys and values are (B, G, W, d); a sequence takes in its first `complete` (B,) windows.
        """
        before = [states]
        for g in range(max(complete.tolist(), default=0)):
            new = self.update(states, keys[:, g], values[:, g])
            states = torch.where((complete > g)[:, None, None], new, states)
            before.append(states)
        count = keys.shape[1]
        before += [states] * (count - len(before))
        return torch.stack(before[:count], 1), states

    def read(self, tokens: Tensor, states: Tensor) -> Tensor:
        """Tokens (B, G, W, d) attend to the states (B, G, S, d) before their window."""
        keys, values = self.read_key_value(self.norm(states) + self.state_ids).chunk(2, -1)
        return attend(self.read_query(tokens), keys, values, self.n_heads)

    @torch.no_grad()
    def draw(self, generator: torch.Generator | None) -> None:
        """Draw what is no linear map."""
        for embedding in (self.initial, self.state_ids, self.token_ids):
            embedding.normal_(generator=generator)
        self.gate.uniform_(0.0, 4.0, generator=generator)
        for name in RECURRENT_MATRICES:
            matrix = self.self_attention.get_parameter(name)
            bound = matrix.shape[-1] ** -0.5
            matrix.uniform_(-bound, bound, generator=generator)
