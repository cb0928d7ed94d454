"""Stacked blocks around the recurrences of Danieli et al. (2025)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from tsrnn.kernels import Cell, cells, check_engine, prepare, recurrence, without_padding
from tsrnn.layers._cells import check_cell
from tsrnn.layers._checks import check_sizes, check_tensor_kind
from tsrnn.layers._initialisation import draw_newton, draw_uniform
from tsrnn.layers._newton import bounded, check_limit
from tsrnn.layers._recurrent import Recurrent, last_output
from tsrnn.layers._stack import matrices_of, matrix_names

RECURRENCES = {"newton-gru": cells.newton_gru, "newton-lstm": cells.newton_lstm}
EPSILON = 1e-5  # of the normalisations, as in Mamba2


class NewtonBlocks(Recurrent):
    r"""Stacked blocks of a causal convolution, a diagonal GRU or LSTM, a gate and an MLP.

    With :math:`s_t = P x_t + p`, each block adds to the stream s

    .. math::
        (u_t, g_t) &= W_{in} \operatorname{norm}(s_t), \qquad
        v_t = \operatorname{silu}\Bigl(k + \sum_{j=0}^{J-1} K_j \odot u_{t-j}\Bigr), \\
        y_t &= h_t + D \odot v_t, \qquad h = \text{recurrence of } v, \\
        s_t &\leftarrow s_t + W_{out} \operatorname{norm}(y_t \odot \operatorname{silu}(g_t)), \\
        s_t &\leftarrow s_t + V_{out} (\operatorname{silu}(a_t) \odot b_t), \qquad
        (a_t, b_t) = V_{in} \operatorname{norm}(s_t),

    The output is norm(s) of the last block, with RMS normalisation and a learned scale. This is the
    block of appendix C.1 of Danieli et al. (2025): a Transformer with a recurrence (their equation
    7 with 9) in place of attention, and with the causal depthwise convolution and gated
    normalisation of Mamba2. The recurrence has `n_heads` heads; the units of a head read one part
    of u.

    The paper shows the block as a picture. Its parameter counts (Table 4, to three digits at all
    four sizes) settle open questions: `expansion` is 1, W_in, W_out, V_in and V_out have no bias,
    and the MLP is gated with a width of 8/3, in the paper rounded up to a multiple of 256. Mamba2
    provides the order of gate and normalisation, silu after the convolution, and D, "the learnable
    scaling of the input", one number per unit that starts at 1. The bias p is an addition: without
    it a single input would lose its magnitude in the normalisation.

    Parameters
    ----------
    input_size : int
        Number of inputs per step; P embeds one-hot tokens.
    hidden_size : int
        Width of the stream, and number of outputs.
    num_layers : int, default 2
        Number of blocks.
    cell : {"newton-gru", "newton-lstm"}
        Recurrence of `NewtonGRU` or of `NewtonLSTM`.
    expansion : int, default 1
        Width of a block, in multiples of `hidden_size`.
    conv_size : int, default 4
        Length J of the convolution.
    n_heads : int, default 1
        Divisor of the width of a block; 4 in the paper.
    mlp_size : int, optional
        Width of a and b; 8/3 `hidden_size`, rounded up, by default.
    max_recurrent : float, optional
        Bound of the absolute values of the recurrent parameters, as in `NewtonGRU`; none by
        default, 0.5 in the paper.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence` that runs the layers.
    device, dtype
        As in torch.

    Attributes
    ----------
    cell : Cell
    units : int
        Width of a block.
    state_size : int
        Size of the output (`hidden_size`), the recurrent state (n * units) and the last J - 1
        values of u, oldest first ((J - 1) * units).

    Raises
    ------
    ValueError
        If a size is not a positive integer, `n_heads` does not divide the width of a
        block, the cell is unknown, the engine cannot run it, or `max_recurrent` is no positive
        number.

    References
    ----------
    Danieli et al. (2025), "ParaRNN: unlocking parallel training of nonlinear RNNs for large
    language models", appendix C.1. Dao and Gu (2024), "Transformers are SSMs".

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import NewtonBlocks
    >>> blocks = NewtonBlocks(3, 16, num_layers=2, cell="newton-lstm", n_heads=4)
    >>> output, h_n = blocks(torch.zeros(5, 20, 3))
    >>> output.shape, h_n.shape
    (torch.Size([5, 20, 16]), torch.Size([2, 5, 96]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 2,
        *,
        cell: str = "newton-gru",
        expansion: int = 1,
        conv_size: int = 4,
        n_heads: int = 1,
        mlp_size: int | None = None,
        max_recurrent: float | None = None,
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_cell(cell, "NewtonBlocks")
        input_size, hidden_size, num_layers, expansion, conv_size, n_heads = check_sizes(
            input_size=input_size, hidden_size=hidden_size, num_layers=num_layers,
            expansion=expansion, conv_size=conv_size, n_heads=n_heads,
        )  # fmt: skip
        (width,) = check_sizes(mlp_size=-(-8 * hidden_size // 3) if mlp_size is None else mlp_size)
        check_tensor_kind(device, dtype)
        self.units = expansion * hidden_size
        if self.units % n_heads:
            raise ValueError(
                f"n_heads must divide the width of a block, expansion * hidden_size = "
                f"{self.units}; got n_heads={n_heads}"
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.cell = RECURRENCES[cell]()
        check_engine(engine, self.cell, f"cell={cell!r}")
        self.engine = engine
        self.max_recurrent = limit = check_limit(max_recurrent)
        self.matrix_names = matrix_names(self.cell)
        self.state_size = hidden_size + (self.cell.n + conv_size - 1) * self.units
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        self.input = nn.Linear(input_size, hidden_size, **kind)
        self.mixers = nn.ModuleList(
            Mixer(hidden_size, self.units, self.cell, conv_size, n_heads, limit, engine, **kind)
            for _ in range(num_layers)
        )
        self.mlps = nn.ModuleList(MLP(hidden_size, width, **kind) for _ in range(num_layers))
        self.norm = nn.RMSNorm(hidden_size, eps=EPSILON, **kind)
        self.initialise()

    def run(self, x: Tensor, hx: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """See `Recurrent`."""
        # The residual stream keeps its precision under `torch.autocast`.
        stream = self.input(without_padding(x, lengths)).to(self.norm.weight.dtype)
        final = []
        for layer, (mixer, mlp) in enumerate(zip(self.mixers, self.mlps, strict=True)):
            before, carried = hx[layer].tensor_split([self.hidden_size], -1)
            change, carried = mixer(stream, carried, lengths)
            stream = stream + change
            stream = stream + mlp(stream)
            if layer == self.num_layers - 1:
                stream = without_padding(self.norm(stream), lengths)
            final.append(torch.cat([last_output(stream, before, lengths), carried], -1))
        return stream, torch.stack(final)

    def outputs(self, states: Tensor) -> Tensor:
        """Output within a state (..., state_size), its first hidden_size numbers."""
        return states[..., : self.hidden_size]

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew, as in appendix C.1 of Danieli et al. (2025).

        Matrices are normal with variance 1 / in, truncated at three standard deviations; W_out and
        V_out of block l are divided by :math:`\sqrt{2 l}`, the initialisation of DCLM. Matrices of
        the recurrence are drawn as in `NewtonGRU`. K, k and p are uniform as in torch; scales and D
        are 1.
        """
        _draw_truncated(self.input, generator)
        draw_uniform([self.input.bias], self.input_size**-0.5, generator)
        for layer, (mixer, mlp) in enumerate(zip(self.mixers, self.mlps, strict=True)):
            scale = (2 * (layer + 1)) ** -0.5
            mixer.reset_parameters(scale, generator)  # type: ignore[operator]
            mlp.reset_parameters(scale, generator)  # type: ignore[operator]
        nn.init.ones_(self.norm.weight)

    def prepare(self, *, verbose: bool = False) -> None:
        """Compile the kernels ahead of their use; with `verbose` report it."""
        if self.input.weight.device.type == "cpu" and self.engine != "reference":
            prepare(self.cell, self.input.weight.dtype, verbose=verbose)

    def recurrent_blocks(self) -> list[dict[str, Tensor]]:
        """Diagonal entries (units, 1, 1) of the recurrent matrices of every block, by name."""
        params = [mixer.recurrent_params().detach() for mixer in self.mixers]  # type: ignore[operator]
        return [matrices_of(self.cell, each) for each in params]

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return f"{self.input_size}, {self.hidden_size}, cell={self.cell.name!r}"


class Mixer(nn.Module):
    """Part of a block that mixes steps: convolution, recurrence, gate."""

    def __init__(
        self,
        size: int,
        units: int,
        cell: Cell,
        conv_size: int,
        n_heads: int,
        max_recurrent: float | None,
        engine: str,
        **kind: Any,
    ) -> None:
        super().__init__()
        self.cell = cell
        self.max_recurrent = max_recurrent
        self.engine = engine
        self.before = nn.RMSNorm(size, eps=EPSILON, **kind)
        self.inwards = nn.Linear(size, 2 * units, bias=False, **kind)
        self.conv = nn.Conv1d(units, units, conv_size, groups=units, **kind)
        head = units // n_heads
        self.weight = nn.Parameter(torch.empty(cell.m, n_heads, head, head, **kind))
        self.bias = nn.Parameter(torch.empty(cell.m, units, **kind))
        self.params = nn.Parameter(torch.empty(cell.p, units, **kind))
        self.skip = nn.Parameter(torch.empty(units, **kind))
        self.gated = nn.RMSNorm(units, eps=EPSILON, **kind)
        self.outwards = nn.Linear(units, size, bias=False, **kind)

    def forward(
        self, stream: Tensor, carried: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Change of the stream (B, T, size), and the carried state (B, (n + J - 1) units).

        The carried state holds the recurrent state and the last J - 1 inputs of the convolution.
        """
        u, gate = self.inwards(self.before(stream)).chunk(2, -1)
        start, past = carried.tensor_split([self.params[0].numel() * self.cell.n], -1)
        seen = torch.cat([past.unflatten(-1, (-1, u.shape[-1])), u], 1)
        if u.shape[1] == 1:  # for one step a weighted sum is cheaper than a convolution
            assert self.conv.bias is not None
            mixed = (seen * self.conv.weight[:, 0].T).sum(1, keepdim=True) + self.conv.bias
        else:
            mixed = self.conv(seen.mT).mT
        v = nn.functional.silu(mixed)
        states, final = recurrence(
            self.cell, self.inputs(v), self.recurrent_params(),
            start.unflatten(-1, (self.cell.n, -1)), lengths, self.engine, outputs_only=True,
        )  # fmt: skip
        y = states.flatten(-2) + self.skip * v
        change = self.outwards(self.gated(y * nn.functional.silu(gate)))
        recent = _last_steps(seen, self.conv.kernel_size[0] - 1, lengths)
        return change, torch.cat([final.flatten(1), recent.flatten(1)], -1)

    def recurrent_params(self) -> Tensor:
        """Bounded parameters (p, units) of the recurrence."""
        return bounded(self.params, self.max_recurrent)

    def inputs(self, v: Tensor) -> Tensor:
        """Projected inputs (B, T, m, units) of the recurrence, head by head."""
        heads = v.unflatten(-1, (self.weight.shape[1], -1))
        return torch.einsum("bthi,mhoi->btmho", heads, self.weight).flatten(-2) + self.bias

    def reset_parameters(self, scale: float, generator: torch.Generator | None) -> None:
        _draw_truncated(self.inwards, generator)
        _draw_truncated(self.outwards, generator, scale)
        bound = self.conv.kernel_size[0] ** -0.5
        draw_uniform(self.conv.parameters(), bound, generator)
        draw_newton(self.weight, self.params, self.bias, self.weight.shape[-1], generator)
        self.params.copy_(self.recurrent_params())  # start within the bounds
        for ones in (self.before.weight, self.skip, self.gated.weight):
            nn.init.ones_(ones)


class MLP(nn.Module):
    """Gated position-wise network."""

    def __init__(self, size: int, width: int, **kind: Any) -> None:
        super().__init__()
        self.before = nn.RMSNorm(size, eps=EPSILON, **kind)
        self.inwards = nn.Linear(size, 2 * width, bias=False, **kind)
        self.outwards = nn.Linear(width, size, bias=False, **kind)

    def forward(self, stream: Tensor) -> Tensor:
        a, b = self.inwards(self.before(stream)).chunk(2, -1)
        return self.outwards(nn.functional.silu(a) * b)

    def reset_parameters(self, scale: float, generator: torch.Generator | None) -> None:
        _draw_truncated(self.inwards, generator)
        _draw_truncated(self.outwards, generator, scale)
        nn.init.ones_(self.before.weight)


def _draw_truncated(
    linear: nn.Linear, generator: torch.Generator | None, scale: float = 1.0
) -> None:
    """Draw normal weights with variance scale^2 / in, truncated at three standard deviations."""
    std = scale / math.sqrt(linear.in_features)
    nn.init.trunc_normal_(linear.weight, 0, std, -3 * std, 3 * std, generator=generator)


def _last_steps(sequence: Tensor, count: int, lengths: Tensor | None) -> Tensor:
    """Last `count` steps of every sequence (B, count + T, D) that starts with `count` old steps."""
    if lengths is None:
        return sequence[:, sequence.shape[1] - count :]
    steps = lengths[:, None].long() + torch.arange(count, device=sequence.device)
    return torch.take_along_dim(sequence, steps[..., None], 1)
