"""The ParaRNN layer: many small recurrent networks side by side."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tsrnn.kernels import (
    Cell,
    prepare_projected,
    projected_recurrence,
)
from tsrnn.layers._cells import (
    block_size_of,
    check_cell,
    make_cell,
    matrices_of,
    matrix_names,
    weight_shape,
)
from tsrnn.layers._checks import check_choice, check_sizes
from tsrnn.layers._init import draw_stable, draw_uniform

INITIALISATIONS = ("stable", "uniform")


class ParaRNN(nn.Module):
    r"""Stacked ParaRNN layers, called like :class:`torch.nn.RNN` with ``batch_first=True``.

    Each layer holds K = `hidden_size` / `block_size` small networks,

    .. math:: h_t^{(k)} = \sigma(W_h^{(k)} h_{t-1}^{(k)} + W_x^{(k)} x_t + b^{(k)}),
        \qquad h_t^{(k)} \in \mathbb{R}^{d_s},

    equation (7) of Cai et al. (2026) before aggregation, or gated ones, their section 5,
    or those of a cell of one's own; layer l > 1 takes the outputs of all blocks of
    layer l - 1 as its x. With ``block_size=hidden_size`` it is the ordinary network.

    Parameters
    ----------
    input_size : int
        Number of inputs a step.
    hidden_size : int
        Number of outputs d of a layer.
    block_size : int, optional
        d_s, a divisor of `hidden_size`; 2 by default. Blocks of up to 8 states are
        unrolled; larger ones take a matrix product a step. Of an own cell it is the
        number of its outputs.
    num_layers : int, default 1
    cell : {"rnn", "gru", "lstm"} or Cell
        What the blocks are: :func:`~tsrnn.kernels.cells.para_rnn`,
        :func:`~tsrnn.kernels.cells.para_gru`, :func:`~tsrnn.kernels.cells.para_lstm`, or a
        :class:`tsrnn.kernels.Cell`, whose units take the place of blocks.
    nonlinearity : {"tanh", "relu", "identity"}
        The function sigma of "rnn".
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
    weight_ih_l{l} : Parameter of shape (m K, in)
        Row ``i * K + k`` projects to input field i of block k: for "rnn" of state i; for
        "gru" fields are those of z, of r, then of c; for "lstm" of i, f, g, o.
    weight_hh_l{l} : Parameter of shape (d_s, d_s, K), (matrices, d_s, d_s, K) or (p, K)
        For "rnn", for "gru" (z, r, c) and "lstm" (i, f, g, o), and for cells with parameters
        that are no matrices. Matrix of block k is ``weight_hh_l0[..., k]``.
    bias_l{l} : Parameter of shape (m K,)
    cell : Cell
    n_blocks : int
        K.
    state_size : int
        Numbers that a layer carries from step to step: n K.
    matrix_names : tuple of str
        Names of the recurrent matrices of a block; empty if an own cell has none.

    Notes
    -----
    States are ordered field by field: field i of block k is number ``i * K + k``, so that
    the units that are computed together lie together. The first `hidden_size` numbers of a
    state are the output. For "rnn" and "gru" there are no others; for "lstm" the cells c
    follow, so that one tensor of 2 `hidden_size` numbers is the pair (h, c) of
    :class:`torch.nn.LSTM`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        block_size: int | None = None,
        num_layers: int = 1,
        *,
        cell: str | Cell = "rnn",
        nonlinearity: str = "tanh",
        bias: bool = True,
        dropout: float = 0.0,
        init: str = "stable",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_cell(cell)
        block_size = block_size_of(cell, block_size)
        self.cell = make_cell(cell, block_size, nonlinearity)
        check_sizes(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if hidden_size % block_size:
            raise ValueError(
                f"hidden_size must be a multiple of block_size; got hidden_size={hidden_size}, "
                f"block_size={block_size}"
            )
        check_choice("init", init, INITIALISATIONS)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1); got {dropout!r}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.block_size = block_size
        self.num_layers = num_layers
        self.nonlinearity = nonlinearity if cell == "rnn" else None
        self.bias = bias
        self.dropout = dropout
        self.init = init
        self.n_blocks = hidden_size // block_size
        self.state_size = self.cell.n * self.n_blocks
        self.matrix_names = matrix_names(self.cell)
        made = {"device": device, "dtype": dtype}
        rows = self.cell.m * self.n_blocks
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size
            shapes: dict[str, tuple[int, ...]] = {
                f"weight_ih_l{layer}": (rows, width),
                f"weight_hh_l{layer}": weight_shape(self.cell, self.n_blocks),
            } | ({f"bias_l{layer}": (rows,)} if bias else {})
            for name, shape in shapes.items():
                self.register_parameter(name, nn.Parameter(torch.empty(shape, **made)))  # type: ignore[arg-type]
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew.

        With ``init="stable"`` every recurrent block, of each matrix of a gated cell, is
        r Q with Q a random orthogonal matrix and r^2 uniform on [0, 1]: a contraction, so
        that states neither explode nor, for the blocks near r = 1, are forgotten at once.
        Memory lengths are spread from one step to long. W_x is uniform with variance
        1 / (3 in), b is zero but for the forget gate of "lstm", where it is 1. Parameters of
        an own cell are uniform on (-1/sqrt(p), 1/sqrt(p)). With ``init="uniform"`` everything
        is uniform on (-1/sqrt(d), 1/sqrt(d)) as in :class:`torch.nn.RNN`.
        """
        for layer in range(self.num_layers):
            weight_ih, weight_hh, bias = self._weights(layer)
            if self.init == "stable":
                params = weight_hh.view(self.cell.p, self.n_blocks)
                draw_stable(self.cell, weight_ih, params, bias, generator)
            else:
                given = [p for p in (weight_ih, weight_hh, bias) if p is not None]
                draw_uniform(given, self.hidden_size**-0.5, generator)

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
        hx : Tensor of shape (num_layers, B, state_size) or (num_layers, state_size), optional
            State before the first step; zero by default.
        lengths : integers of shape (B,), optional
            Number of steps of each sequence in a padded batch. Outputs after the
            end are zero.

        Returns
        -------
        output : Tensor of shape (B, T, hidden_size) or (T, hidden_size)
            Outputs of the last layer.
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
        """One layer: x (B, T, in) and initial (B, state) to outputs (B, T, hidden), last state."""
        weight_ih, weight_hh, bias = self._weights(layer)
        if initial is None:
            initial = x.new_zeros(len(x), self.state_size)
        start = initial.unflatten(-1, (self.cell.n, self.n_blocks))
        params = weight_hh.flatten(0, -2)
        given = (weight_ih, bias, params, start, lengths)
        outputs, final = projected_recurrence(self.cell, x, *given)
        return outputs.flatten(-2), final.flatten(-2)

    def outputs(self, states: Tensor) -> Tensor:
        """What a layer hands on of states (..., state_size): the first hidden_size numbers."""
        # A slice of everything would cost a copy in the backward pass.
        return states if self.cell.n_outputs == self.cell.n else states[..., : self.hidden_size]

    def prepare(self, *, verbose: bool = False) -> None:
        """Have the compiled kernels ready; with `verbose` say so where they are compiled."""
        for layer in range(self.num_layers):
            weight, _, bias = self._weights(layer)
            if weight.device.type != "cpu":
                return  # kernels of other devices are compiled where they are first used
            prepare_projected(
                self.cell, weight.shape[1], bias is not None, weight.dtype, verbose=verbose
            )

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Recurrent matrices of every layer, a tensor of shape (K, d_s, d_s) each.

        For "rnn" a layer is its one tensor; with several matrices, as in "gru" and "lstm",
        it is a dict of them by name: A_z, A_r, A_c, or W_i, W_f, W_g, W_o.

        Raises
        ------
        ValueError
            If the cell has no recurrent matrices.
        """
        if not self.matrix_names:
            raise ValueError(f"cell {self.cell.name!r} has no recurrent matrices to read")
        weights = [self._weights(layer)[1].detach() for layer in range(self.num_layers)]
        layers = [matrices_of(self.cell, weight_hh.flatten(0, -2)) for weight_hh in weights]
        if len(self.matrix_names) > 1:
            return layers
        return [matrix for matrices in layers for matrix in matrices.values()]

    def _weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        return (
            getattr(self, f"weight_ih_l{layer}"),
            getattr(self, f"weight_hh_l{layer}"),
            getattr(self, f"bias_l{layer}", None),
        )

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        kind = (
            f"nonlinearity={self.nonlinearity!r}"
            if self.nonlinearity
            else f"cell={self.cell.name!r}"
        )
        return (
            f"{self.input_size}, {self.hidden_size}, block_size={self.block_size}, "
            f"num_layers={self.num_layers}, {kind}"
        )


def _check_input(x: Tensor, hx: Tensor | None, layer: ParaRNN) -> None:
    if x.ndim != 3 or x.shape[2] != layer.input_size or not x.shape[1]:
        raise ValueError(
            f"x must have shape (B, T, {layer.input_size}) or (T, {layer.input_size}) with "
            f"T >= 1; got {tuple(x.shape)}"
        )
    expected = (layer.num_layers, len(x), layer.state_size)
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
