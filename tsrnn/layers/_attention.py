"""Block-recurrent transformer, with attention within windows and state vectors across windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from tsrnn.kernels import over_replicates, without_padding
from tsrnn.layers._checks import (
    check_choice,
    check_dropout,
    check_flag,
    check_sizes,
    check_tensor_kind,
)
from tsrnn.layers._initialisation import draw_linear, draw_uniform
from tsrnn.layers._recurrent import Recurrent
from tsrnn.layers._windows import TransformerState, Windows

RECURRENT_MATRICES = ("W_Q", "W_K", "W_V")
UPDATES = ("gated", "joint")


class BlockRecurrentAttention(Recurrent):
    r"""Block-recurrent transformer, called like :class:`torch.nn.RNN` with ``batch_first=True``.

    A causal transformer with local attention and one recurrent layer (Hutchins et al., 2022;
    sections 5 and 6.2 of Cai et al., 2026). The recurrent layer has S state vectors M of size d,
    which every step reads and each window of W steps updates. Steps are embedded by
    :math:`u_t = W_x x_t + b`. In each layer a step attends to itself and the W previous steps,
    with a bias :math:`\beta_{t-s}` for every distance and head,

    .. math:: a_t = \sum_{s=t-W}^{t} \operatorname{softmax}_s\left(
        q_t^\top k_s / \sqrt{d_h} + \beta_{t-s}\right) v_s, \qquad
        y_t = u_t + W_o a_t, \qquad y_t + \mathrm{FFN}(\mathrm{LN}(y_t)),

    where q, k, v are linear in LN(u). In the recurrent layer :math:`W_o` also takes the read-out
    :math:`a'_t` of the state vectors, and a complete window X updates them:

    .. math:: a'_t &= \mathrm{Attention}(W_q' \mathrm{LN}(u_t), W_k' \bar M, W_v' \bar M), \\
        M &\leftarrow g \odot M + (1 - g) \odot \left(\mathrm{SelfAttention}(\bar M)
        + W_p \, \mathrm{Attention}(W_q'' \bar M, K_X, V_X) + b_p\right),

    with :math:`\bar M = \mathrm{LN}(M) + E`, the keys and values of local attention, and the fixed
    gate :math:`g = \sigma(b_g)`. The self-attention of the states has K = d / d_s heads of d_s
    columns of M each (section 6.2),

    .. math:: \mathrm{ParaAttention}(\bar M) = [\mathrm{head}_1, \dots, \mathrm{head}_K] W_O,
        \qquad \mathrm{head}_k = \mathrm{Attention}(\bar M^{(k)} W_Q^{(k)},
        \bar M^{(k)} W_K^{(k)}, \bar M^{(k)} W_V^{(k)}),

    or, with ``block_size=hidden_size``, the ordinary network, `n_heads` heads of
    :math:`\bar M W_Q, \bar M W_K, \bar M W_V` with d x d matrices. The output is LN of the output
    of the last layer. Table S.1 has 3 to 5 layers.

    With ``update="joint"`` the cell of section 5 updates the states, by one softmax over states
    and steps of the window X, whose rows are :math:`\mathrm{LN}(u_t)`,

    .. math:: M \leftarrow \operatorname{softmax}\left(M W_Q [M W_K; X W_K]^\top / \sqrt{d}\right)
        [M W_V; X W_V].

    In the paper this cell has one state vector, ``n_heads=1`` and ``block_size=hidden_size``.
    Smaller blocks are heads of their columns of M and X, with :math:`\sqrt{d_s}`.

    The state of a layer concatenates the output (zeros except in the last layer), the number of
    steps, the inputs of the layer at the last W steps, and the state vectors (zeros except in a
    recurrent layer). From 2 W steps on, the number of steps is W plus the phase in the window. A
    zero state means no steps; the vectors then have their learned initial values. The state keeps
    the steps of an incomplete window, so that a sequence may be cut anywhere.

    This is the variant of Hutchins et al. with the fixed gate and without a feedforward network for
    the states, with two differences. W_Q, W_K, W_V belong to the self-attention only, and steps
    read the states through separate matrices, so that blocks do not restrict the reading. And
    :math:`\mathrm{LN}(u_t)` of the recurrent layer has a learned embedding of the place in the
    window (`token_ids`), as :math:`\mathrm{LN}(M)` has E; otherwise the states would not know the
    order of the steps. The cell of section 5 has no gate, no normalisation of the states and no
    output matrix. The section does not specify how steps read the states, which is as above.

    Parameters
    ----------
    input_size : int
        Number of inputs per step.
    hidden_size : int
        Number of outputs d, and size of a state vector.
    num_layers : int, default 2
    block_size : int or None, default 2
        d_s, a divisor of `hidden_size`; None for `hidden_size`, multi-head attention of the states.
    n_states : int, default 32
        Number S of state vectors.
    window : int, default 64
        Length W of a window.
    n_heads : int, default 4
        Heads of all attention except self-attention of state blocks; a divisor of `hidden_size`.
    recurrent_layer : int or "all", optional
        Layer with state vectors, counted from 1, or all layers, as for EigenWorms (supplement D.2
        of Cai et al.). By default the layer before the last, or the only one.
    update : {"gated", "joint"}, default "gated"
        Update of the states by a complete window, see above.
    bias : bool, default True
        True to include biases of linear maps and normalisations, except W_Q, W_K and W_V.
    dropout : float, default 0
        Dropout probability of the outputs of attention and feedforward networks, in training.
    engine : {"auto"}
        Attention runs in torch, window by window.
    device, dtype
        As in torch.

    Attributes
    ----------
    embedding : torch.nn.Linear
    layers : torch.nn.ModuleList
        ``layers[recurrent_layer - 1].memory`` has the parameters of the states: `initial` (S, d),
        `state_ids` E (S, d), `token_ids` (W, d), `gate` b_g (d,) with ``update="gated"``, and
        ``self_attention.W_Q``, ``W_K``, ``W_V`` of shape (K, d_s, d_s).
    state_size : int
        d + 1 + W d + S d.

    Raises
    ------
    ValueError
        If a size is not a positive integer, `block_size` or `n_heads` does not divide
        `hidden_size`, `recurrent_layer` does not exist, the update is unknown, or an engine is
        given.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN: An Interpretable and Parallelizable Recurrent Neural
    Network for Time-Dependent Data.
    Hutchins, Schlag, Wu, Dyer and Neyshabur (2022), Block-Recurrent Transformers.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.interpret import recurrence_features
    >>> from tsrnn.layers import BlockRecurrentAttention
    >>> layer = BlockRecurrentAttention(3, 16, n_states=4, window=8)
    >>> output, state = layer(torch.zeros(5, 20, 3))
    >>> output.shape, state.shape
    (torch.Size([5, 20, 16]), torch.Size([2, 5, 209]))
    >>> recurrence_features(layer)["matrix"].unique().tolist()
    ['W_Q', 'W_K', 'W_V']
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 2,
        *,
        block_size: int | None = 2,
        n_states: int = 32,
        window: int = 64,
        n_heads: int = 4,
        recurrent_layer: int | str | None = None,
        update: str = "gated",
        bias: bool = True,
        dropout: float = 0.0,
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        input_size, hidden_size, num_layers, n_states, window, n_heads = check_sizes(
            input_size=input_size, hidden_size=hidden_size, num_layers=num_layers,
            n_states=n_states, window=window, n_heads=n_heads,
        )  # fmt: skip
        if block_size is not None:
            (block_size,) = check_sizes(block_size=block_size)
        if hidden_size % (block_size or 1) or hidden_size % n_heads:
            step = math.lcm(n_heads, block_size or 1)
            raise ValueError(
                "hidden_size must be a multiple of block_size and of n_heads; got "
                f"hidden_size={hidden_size}, block_size={block_size}, n_heads={n_heads}. Take "
                f"hidden_size={math.ceil(hidden_size / step) * step}"
            )
        if recurrent_layer is None:
            recurrent_layer = max(num_layers - 1, 1)
        recurrent = _recurrent_layers(recurrent_layer, num_layers)
        if not isinstance(engine, str) or engine != "auto":
            raise ValueError(
                "engine must be 'auto' for cell='attention', which runs in torch, window by "
                f"window; got {engine!r}. Leave it out"
            )
        check_choice("update", update, UPDATES)
        check_dropout(dropout)
        check_flag("bias", bias)
        check_tensor_kind(device, dtype)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.block_size = None if block_size == hidden_size else block_size  # the ordinary network
        self.window = window
        self.n_states = n_states
        self.n_heads = n_heads
        self.recurrent_layer = recurrent_layer
        self.recurrent = recurrent
        self.update = update
        self.bias = bias
        self.dropout = dropout
        self.matrix_names = RECURRENT_MATRICES
        self.state_size = hidden_size + 1 + (window + n_states) * hidden_size
        self.embedding = nn.Linear(input_size, hidden_size, bias=bias)
        self.layers = nn.ModuleList(
            TransformerLayer(
                hidden_size, n_heads, window, bias, dropout,
                Memory(hidden_size, n_states, window, n_heads, self.block_size, bias, update)
                if layer in recurrent else None,
            )
            for layer in range(1, num_layers + 1)
        )  # fmt: skip
        self.norm = nn.LayerNorm(hidden_size, bias=bias)
        self.to(device=device, dtype=dtype)
        self.initialise()

    def run(self, x: Tensor, hx: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """See `Recurrent`."""
        x = without_padding(x, lengths)
        if lengths is None:
            lengths = torch.full((len(x),), x.shape[1], device=x.device)
        old = TransformerState.unpack(hx, self.hidden_size, self.window, self.recurrent)
        windows = Windows(old.seen, lengths.to(torch.int64), x.shape[1], self.window)
        starts = (
            torch.where(old.begun, states, memory.initial)
            for states, memory in zip(old.states, self._memories, strict=True)
        )
        tokens, caches, ends = windows.place(self.embedding(x)), [], []
        for layer, cache in zip(self.layers, old.cache, strict=True):
            known = windows.after(cache, tokens)
            caches.append(windows.cache(known))
            start = None if layer.memory is None else next(starts)
            tokens, states = layer(known, windows, start)
            ends += [] if states is None else [states]
        output = without_padding(self.norm(windows.new(tokens)), lengths)
        new = old.after(windows, output, torch.stack(caches), torch.stack(ends))
        return output, new.pack(self.recurrent)

    def outputs(self, states: Tensor) -> Tensor:
        """Outputs within states (..., state_size), the first hidden_size numbers."""
        return states[..., : self.hidden_size]

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew.

        Linear maps are uniform on (-1/sqrt(in), 1/sqrt(in)) as in torch, blocks of the recurrent
        matrices on (-1/sqrt(d_s), 1/sqrt(d_s)). Initial states and embeddings are standard normal,
        distance biases are zero. b_g is uniform on (0, 4): a window keeps 50 to 98 percent of a
        state.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                draw_linear(module, generator)
            elif isinstance(module, nn.LayerNorm):
                module.reset_parameters()
            elif isinstance(module, LocalAttention):
                module.distance_bias.zero_()
            elif isinstance(module, Memory):
                module.draw(generator)

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Matrices W_Q, W_K, W_V (K, d_s, d_s) of the recurrent layers, by name.

        States are rows, as in papers on transformers: a block W maps m to m W.
        """
        return [
            {name: m.self_attention.get_parameter(name).detach() for name in RECURRENT_MATRICES}
            for m in self._memories
        ]

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
            f"block_size={self.block_size}, n_states={self.n_states}, window={self.window}, "
            f"n_heads={self.n_heads}, recurrent_layer={self.recurrent_layer}"
        )

    @property
    def _memories(self) -> list[Memory]:
        return [self.layers[layer - 1].memory for layer in self.recurrent]  # type: ignore[misc]


def _recurrent_layers(recurrent_layer: int | str, num_layers: int) -> range:
    """Layers with state vectors, counted from 1."""
    layers = range(1, num_layers + 1)
    counted = isinstance(recurrent_layer, int | np.integer) and recurrent_layer is not True
    if counted and recurrent_layer in layers:
        return range(int(recurrent_layer), int(recurrent_layer) + 1)
    if not isinstance(recurrent_layer, str) or recurrent_layer != "all":
        raise ValueError(
            f"recurrent_layer must be 'all' or one of the layers 1 to {num_layers}; got "
            f"{recurrent_layer!r}"
        )
    return layers


class TransformerLayer(nn.Module):
    """Local attention, attention to states in a recurrent layer, and feedforward network."""

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

    def forward(
        self, tokens: Tensor, windows: Windows, states: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Map tokens (B, 1 + G, W, d) and states (B, S, d) to tokens (B, G, W, d) and states."""
        normed = self.norm(tokens)
        if self.memory is not None:
            normed = normed + self.memory.token_ids
        heads, keys, values = self.attention(normed, windows.fresh)
        if self.memory is not None and states is not None:
            written = (keys, values) if self.memory.update == "gated" else (normed[:, 1:],)
            before, states = self.memory.carry(states, written, windows.complete)
            heads = torch.cat([heads, self.memory.read(normed[:, 1:], before)], -1)
        tokens = tokens[:, 1:] + self.dropout(self.mix(heads))
        return tokens + self.dropout(self.feedforward(tokens)), states


class LocalAttention(nn.Module):
    """Attention of every step to itself and the W previous steps, with a bias by distance."""

    def __init__(self, size: int, n_heads: int, window: int, bias: bool) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(size, size, bias=bias)
        self.key_value = nn.Linear(size, 2 * size, bias=bias)
        self.distance_bias = nn.Parameter(torch.empty(n_heads, window + 1))

    def forward(self, tokens: Tensor, fresh: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map tokens (B, 1 + G, W, d) to heads, keys and values (B, G, W, d).

        The first window of `fresh` (B,) sequences is empty.
        """
        keys, values = self.key_value(tokens).chunk(2, -1)
        # k and v (B, G, heads, 2 W, d / heads) of the previous and the present window
        k, v = (_heads(torch.cat([x[:, :-1], x[:, 1:]], -2), self.n_heads) for x in (keys, values))
        q = _heads(self.query(tokens[:, 1:]), self.n_heads)
        window = tokens.shape[2]
        places = torch.arange(2 * window, device=tokens.device)
        distance = places[:window, None] + window - places
        outside = (distance < 0) | (distance > window)
        bias = self.distance_bias[:, distance.clamp(0, window)].masked_fill(outside, -torch.inf)
        scores = (q * q.shape[-1] ** -0.5) @ k.mT + bias
        # Zeros of an empty cache would take weight from the real steps.
        scores[:, 0, ..., : tokens.shape[2]].masked_fill_(fresh[:, None, None, None], -torch.inf)
        return _joined(scores.softmax(-1) @ v), keys[:, 1:], values[:, 1:]


class Memory(nn.Module):
    """State vectors that tokens read and complete windows update."""

    def __init__(
        self, size: int, n_states: int, window: int, n_heads: int, block_size: int | None,
        bias: bool, update: str,
    ) -> None:  # fmt: skip
        super().__init__()
        self.n_heads = n_heads
        self.update = update
        self.initial = nn.Parameter(torch.empty(n_states, size))
        self.state_ids = nn.Parameter(torch.empty(n_states, size))
        self.token_ids = nn.Parameter(torch.empty(window, size))
        self.norm = nn.LayerNorm(size, bias=bias)
        self.self_attention = StateAttention(size, n_heads, block_size, bias, update)
        if update == "gated":
            self.gate = nn.Parameter(torch.empty(size))
            self.write_query = nn.Linear(size, size, bias=bias)
            self.write_output = nn.Linear(size, size, bias=bias)
        self.read_query = nn.Linear(size, size, bias=bias)
        self.read_key_value = nn.Linear(size, 2 * size, bias=bias)

    def updated(self, states: Tensor, window: Sequence[Tensor]) -> Tensor:
        """States (B, S, d) after a window, given keys and values, or tokens, (B, W, d) each."""
        if self.update == "joint":
            return self.self_attention(states, *window)
        keys, values = window
        named = self.norm(states) + self.state_ids
        across = attend(self.write_query(named), keys, values, self.n_heads)
        candidate = self.self_attention(named) + self.write_output(across)
        return torch.lerp(candidate.to(states.dtype), states, self.gate.sigmoid())

    def carry(
        self, states: Tensor, written: Sequence[Tensor], complete: Tensor
    ) -> tuple[Tensor, Tensor]:
        """States before each window (B, G, S, d), and after all complete windows (B, S, d).

        `written` has shape (B, G, W, d); a sequence is updated by its first `complete` (B,)
        windows.
        """
        before = [states]
        # Sequential, because a window reads the states after the previous one.
        for g in range(max(over_replicates(complete).flatten().tolist(), default=0)):
            new = self.updated(states, [tensor[:, g] for tensor in written])
            states = torch.where((complete > g)[:, None, None], new, states)
            before.append(states)
        count = written[0].shape[1]
        before += [states] * (count - len(before))
        return torch.stack(before[:count], 1), states

    def read(self, tokens: Tensor, states: Tensor) -> Tensor:
        """Attention of tokens (B, G, W, d) to the states (B, G, S, d) before their window."""
        keys, values = self.read_key_value(self.norm(states) + self.state_ids).chunk(2, -1)
        return attend(self.read_query(tokens), keys, values, self.n_heads)

    @torch.no_grad()
    def draw(self, generator: torch.Generator | None) -> None:
        """Draw the parameters outside of linear maps."""
        for embedding in (self.initial, self.state_ids, self.token_ids):
            embedding.normal_(generator=generator)
        if self.update == "gated":
            self.gate.uniform_(0.0, 4.0, generator=generator)  # keeps 0.5 to 0.98 of a state
        for name in RECURRENT_MATRICES:
            matrix = self.self_attention.get_parameter(name)
            draw_uniform([matrix], matrix.shape[-1] ** -0.5, generator)


class StateAttention(nn.Module):
    """Self-attention of the states in K blocks; in the cell of section 5 also to tokens."""

    def __init__(
        self, size: int, n_heads: int, block_size: int | None, bias: bool, update: str
    ) -> None:
        super().__init__()
        block = size if block_size is None else block_size
        self.n_blocks = size // block
        self.n_heads = n_heads if block_size is None else self.n_blocks
        for name in RECURRENT_MATRICES:
            blocks = torch.empty(self.n_blocks, block, block)
            self.register_parameter(name, nn.Parameter(blocks))
        self.W_O = nn.Linear(size, size, bias=bias) if update == "gated" else nn.Identity()

    def forward(self, states: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Map states (B, S, d), and tokens (B, W, d) if given, to states (B, S, d)."""
        attended = states if tokens is None else torch.cat([states, tokens], -2)
        q, k, v = (
            torch.einsum(
                "...ki,kij->...kj", rows.unflatten(-1, (self.n_blocks, -1)), getattr(self, name)
            ).flatten(-2)
            for name, rows in zip(RECURRENT_MATRICES, (states, attended, attended), strict=True)
        )
        return self.W_O(attend(q, k, v, self.n_heads))


def attend(q: Tensor, k: Tensor, v: Tensor, n_heads: int) -> Tensor:
    """Multi-head softmax attention of queries (..., n, d) to keys and values (..., m, d)."""
    lead = q.shape[:-2]
    # torch's fast kernels take four axes.
    q, k, v = (_heads(x, n_heads).flatten(0, -4) for x in (q, k, v))
    if over_replicates(q) is q:
        heads = nn.functional.scaled_dot_product_attention(q, k, v)
    else:  # torch.vmap has no rule for the fast kernels and would loop over the replicates
        heads = (q * q.shape[-1] ** -0.5 @ k.mT).softmax(-1) @ v
    return _joined(heads).unflatten(0, lead)


def _heads(x: Tensor, n_heads: int) -> Tensor:
    """Split (..., n, d) to (..., heads, n, d / heads)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(-2, -3)


def _joined(heads: Tensor) -> Tensor:
    """Join (..., heads, n, d / heads) to (..., n, d)."""
    return heads.transpose(-2, -3).flatten(-2)
