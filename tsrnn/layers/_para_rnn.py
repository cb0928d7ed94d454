"""The ParaRNN layer: many small recurrent networks side by side."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tsrnn.kernels import cells, dense, prepare_projected, projected_recurrence, without_padding

NONLINEARITIES = ("tanh", "relu", "identity")
INITIALISATIONS = ("stable", "uniform")


class ParaRNN(nn.Module):
    r"""Stacked ParaRNN layers, called like :class:`torch.nn.RNN` with ``batch_first=True``.

    Each layer holds K = `hidden_size` / `block_size` small networks,

    .. math:: h_t^{(k)} = \sigma(W_h^{(k)} h_{t-1}^{(k)} + W_x^{(k)} x_t + b^{(k)}),
        \qquad h_t^{(k)} \in \mathbb{R}^{d_s},

    equation (7) of Cai et al. (2026) before aggregation; layer l > 1 takes the
    states of all blocks of layer l - 1 as its x. With ``block_size=hidden_size``
    it is the ordinary recurrent network.

    Parameters
    ----------
    input_size : int
        Number of inputs a step.
    hidden_size : int
        Number of states d of a layer.
    block_size : int, default 2
        d_s, a divisor of `hidden_size`. Blocks of up to 8 states run compiled on
        the CPU; larger ones take a matrix product a step.
    num_layers : int, default 1
    nonlinearity : {"tanh", "relu", "identity"}
        The function sigma.
    bias : bool, default True
        Whether b is there.
    dropout : float, default 0
        Probability of dropping an output of a layer but the last, in training.
    init : {"stable", "uniform"}, default "stable"
        See `reset_parameters`.
    device, dtype
        As in torch.

    Raises
    ------
    ValueError
        If a size is no positive integer, `block_size` does not divide `hidden_size`,
        or a choice is unknown.

    Attributes
    ----------
    weight_ih_l{l} : Parameter of shape (hidden_size, in)
    weight_hh_l{l} : Parameter of shape (d_s, d_s, K)
        Matrix of block k is ``weight_hh_l0[:, :, k]``.
    bias_l{l} : Parameter of shape (hidden_size,)

    Notes
    -----
    States are ordered field by field: state i of block k is feature ``i * K + k``,
    so that the units that are computed together lie together.
    """

    LARGEST_COMPILED_BLOCK = 8

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        block_size: int = 2,
        num_layers: int = 1,
        *,
        nonlinearity: str = "tanh",
        bias: bool = True,
        dropout: float = 0.0,
        init: str = "stable",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(
            input_size=input_size,
            hidden_size=hidden_size,
            block_size=block_size,
            num_layers=num_layers,
        )
        if hidden_size % block_size:
            raise ValueError(
                f"hidden_size must be a multiple of block_size; got hidden_size={hidden_size}, "
                f"block_size={block_size}"
            )
        _check_choice("nonlinearity", nonlinearity, NONLINEARITIES)
        _check_choice("init", init, INITIALISATIONS)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1); got {dropout!r}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.block_size = block_size
        self.num_layers = num_layers
        self.nonlinearity = nonlinearity
        self.bias = bias
        self.dropout = dropout
        self.init = init
        made = {"device": device, "dtype": dtype}
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size
            shapes = {
                f"weight_ih_l{layer}": (hidden_size, width),
                f"weight_hh_l{layer}": (block_size, block_size, self.n_blocks),
            } | ({f"bias_l{layer}": (hidden_size,)} if bias else {})
            for name, shape in shapes.items():
                self.register_parameter(name, nn.Parameter(torch.empty(shape, **made)))  # type: ignore[arg-type]
        self.reset_parameters()

    @property
    def n_blocks(self) -> int:
        """K, the number of blocks of a layer."""
        return self.hidden_size // self.block_size

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew.

        With ``init="stable"`` every recurrent block is r Q with Q a random
        orthogonal matrix and r^2 uniform on [0, 1]: a contraction, so that states
        neither explode nor, for the blocks near r = 1, are forgotten at once.
        Memory lengths are spread from one step to long. W_x is uniform with
        variance 1 / (3 in), b is zero. With ``init="uniform"`` everything is uniform
        on (-1/sqrt(d), 1/sqrt(d)) as in :class:`torch.nn.RNN`.
        """
        for layer in range(self.num_layers):
            weight_ih, weight_hh, bias = self._weights(layer)
            if self.init == "uniform":
                bound = 1 / math.sqrt(self.hidden_size)
                for parameter in (weight_ih, weight_hh, bias):
                    if parameter is not None:
                        parameter.uniform_(-bound, bound, generator=generator)
                continue
            bound = 1 / math.sqrt(weight_ih.shape[1])
            weight_ih.uniform_(-bound, bound, generator=generator)
            weight_hh.copy_(_contractions(weight_hh, generator))
            if bias is not None:
                bias.zero_()

    def forward(
        self,
        x: Tensor,
        hx: Tensor | None = None,
        lengths: Tensor | Sequence[int] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Run over sequences.

        Parameters
        ----------
        x : Tensor of shape (B, T, input_size) or (T, input_size)
        hx : Tensor of shape (num_layers, B, hidden_size) or (num_layers, hidden_size), optional
            State before the first step; zero by default.
        lengths : integers of shape (B,), optional
            Number of steps of each sequence in a padded batch. Outputs after the
            end are zero.

        Returns
        -------
        output : Tensor of shape (B, T, hidden_size) or (T, hidden_size)
            States of the last layer.
        h_n : Tensor of shape of `hx`
            State of every layer after the last step.

        Raises
        ------
        ValueError
            If shapes do not fit or lengths lie outside 0 to T.
        """
        if x.ndim == 2:
            output, h_n = self(x[None], None if hx is None else hx[:, None], lengths)
            return output[0], h_n[:, 0]
        _check_input(x, hx, self)
        steps = None if lengths is None else torch.as_tensor(lengths, device=x.device)
        final = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = nn.functional.dropout(x, self.dropout, self.training)
            x, last = self.run_layer(layer, x, None if hx is None else hx[layer], steps)
            final.append(last)
        return x, torch.stack(final)

    def run_layer(
        self, layer: int, x: Tensor, initial: Tensor | None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """One layer: x (B, T, in) and initial (B, hidden) to states (B, T, hidden) and the last."""
        weight_ih, weight_hh, bias = self._weights(layer)
        fields = (self.block_size, self.n_blocks)
        if initial is None:
            initial = x.new_zeros(len(x), self.hidden_size)
        start = initial.unflatten(-1, fields)
        if self.block_size <= self.LARGEST_COMPILED_BLOCK:
            cell = cells.para_rnn(self.block_size, self.nonlinearity)
            params = weight_hh.flatten(0, 1)
            states, final = projected_recurrence(cell, x, weight_ih, bias, params, start, lengths)
        else:
            x = without_padding(x, lengths)
            inputs = nn.functional.linear(x, weight_ih, bias).unflatten(-1, fields)
            states, final = dense(inputs, weight_hh, start, lengths, self.nonlinearity)
        return states.flatten(-2), final.flatten(-2)

    def prepare(self, *, verbose: bool = False) -> None:
        """Have the compiled kernels ready; with `verbose` say so where they are compiled."""
        if self.block_size > self.LARGEST_COMPILED_BLOCK:
            return
        cell = cells.para_rnn(self.block_size, self.nonlinearity)
        for layer in range(self.num_layers):
            weight, _, bias = self._weights(layer)
            prepare_projected(
                cell, weight.shape[1], bias is not None, weight.dtype, verbose=verbose
            )

    def recurrent_blocks(self) -> list[Tensor]:
        """Recurrent matrices, one tensor of shape (K, d_s, d_s) a layer."""
        return [
            self._weights(layer)[1].detach().permute(2, 0, 1) for layer in range(self.num_layers)
        ]

    def _weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        return (
            getattr(self, f"weight_ih_l{layer}"),
            getattr(self, f"weight_hh_l{layer}"),
            getattr(self, f"bias_l{layer}", None),
        )

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return (
            f"{self.input_size}, {self.hidden_size}, block_size={self.block_size}, "
            f"num_layers={self.num_layers}, nonlinearity={self.nonlinearity!r}"
        )


def _contractions(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Blocks r Q of shape (d_s, d_s, K): Q orthogonal (Haar), r^2 uniform on [0, 1]."""
    size, _, count = like.shape
    q, r = torch.linalg.qr(like.new_empty(count, size, size).normal_(generator=generator))
    q = q * torch.diagonal(r, dim1=1, dim2=2).sign()[:, None, :]  # without it Q is not uniform
    radius = like.new_empty(count).uniform_(generator=generator).sqrt()
    return (radius[:, None, None] * q).permute(1, 2, 0)


def check_sizes(**sizes: int) -> None:
    """Raise unless every size is a positive integer."""
    for name, value in sizes.items():
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a positive integer; got {value!r}")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}; got {value!r}")


def _check_input(x: Tensor, hx: Tensor | None, layer: ParaRNN) -> None:
    if x.ndim != 3 or x.shape[2] != layer.input_size or not x.shape[1]:
        raise ValueError(
            f"x must have shape (B, T, {layer.input_size}) or (T, {layer.input_size}) with "
            f"T >= 1; got {tuple(x.shape)}"
        )
    expected = (layer.num_layers, len(x), layer.hidden_size)
    if hx is not None and tuple(hx.shape) != expected:
        raise ValueError(f"hx must have shape {expected}; got {tuple(hx.shape)}")
    weight = layer.weight_ih_l0
    for name, tensor in (("x", x), ("hx", hx)):
        if tensor is not None and (tensor.dtype, tensor.device) != (weight.dtype, weight.device):
            raise ValueError(
                f"{name} must have the dtype and device of the layer, {weight.dtype} on "
                f"{weight.device}; got {tensor.dtype} on {tensor.device}. Convert one of them "
                "with .to()"
            )
