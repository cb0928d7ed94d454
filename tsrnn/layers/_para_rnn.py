"""ParaRNN layer, many small recurrent networks in parallel."""

from collections.abc import Callable

import torch
from torch import nn

from tsrnn.kernels import Cell, cells
from tsrnn.layers._cells import check_cell
from tsrnn.layers._checks import check_block_size, check_choice
from tsrnn.layers._initialisation import (
    MATRICES,
    check_chrono,
    draw_chrono,
    draw_stable,
    draw_uniform,
)
from tsrnn.layers._stack import CellStack, gate

BLOCKS: dict[str, Callable[..., Cell]] = {
    "rnn": cells.para_rnn,
    "gru": cells.para_gru,
    "lstm": cells.para_lstm,
}
NONLINEARITIES = ("tanh", "relu", "identity")
BLOCK_SIZE = 2  # smallest block with complex eigenvalues, for damped waves
INITIALISATIONS = (*MATRICES, "uniform", "chrono")


class ParaRNN(CellStack):
    r"""Stacked ParaRNN layers, called like :class:`torch.nn.RNN` with ``batch_first=True``.

    Each layer holds K = `hidden_size` / `block_size` small networks,

    .. math:: h_t^{(k)} = \sigma(W_h^{(k)} h_{t-1}^{(k)} + W_x^{(k)} x_t + b^{(k)}),
        \qquad h_t^{(k)} \in \mathbb{R}^{d_s},

    equation (7) of Cai et al. (2026) before aggregation; or gated networks (their section 5), or
    networks of a custom cell. Layer l > 1 takes the outputs of all blocks of layer l - 1 as its x.
    ``block_size=hidden_size`` is the ordinary network.

    States are ordered by field: field i of block k has index ``i * K + k``, which keeps memory
    access contiguous. The first `hidden_size` numbers of a state are the output. They are the
    whole state of "rnn" and "gru"; for "lstm" the cells c follow, so that one tensor of 2
    `hidden_size` numbers is the pair (h, c) of :class:`torch.nn.LSTM`.

    Parameters
    ----------
    input_size : int
        Number of inputs per step.
    hidden_size : int
        Number of outputs d of a layer.
    block_size : int, optional
        d_s, a divisor of `hidden_size`; 2 by default. Blocks of more than 8 states need a matrix
        product per step. A custom cell sets it to the number of its outputs.
    num_layers : int, default 1
    cell : {"rnn", "gru", "lstm"} or Cell
        Cell of a block: :func:`~tsrnn.kernels.cells.para_rnn`,
        :func:`~tsrnn.kernels.cells.para_gru`, :func:`~tsrnn.kernels.cells.para_lstm`, or a custom
        :class:`tsrnn.kernels.Cell`. Other cells of `tsrnn.layers.CELLS` have other layers.
    nonlinearity : {"tanh", "relu", "identity"}
        Function sigma of "rnn".
    bias : bool, default True
        True to include b.
    dropout : float, default 0
        Probability of dropping an output of a layer except the last, in training.
    init : {"stable", "orthogonal", "identity", "uniform", "chrono"}, default "stable"
        See `reset_parameters`.
    chrono_length : float, optional
        T_max of ``init="chrono"``: the longest dependency expected, in steps, above 2.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence` that runs the layers.
    device, dtype
        As in torch.

    Attributes
    ----------
    weight_ih_l{l} : Parameter of shape (m K, in)
        Row ``i * K + k`` projects to input field i of block k. Fields are the states for "rnn", z,
        r, c for "gru", and i, f, g, o for "lstm".
    weight_hh_l{l} : Parameter of shape (d_s, d_s, K), (matrices, d_s, d_s, K) or (p, K)
        Recurrent parameters of "rnn"; of "gru" (z, r, c) and "lstm" (i, f, g, o); of cells with
        other parameters. The matrix of block k is ``weight_hh_l0[..., k]``.
    bias_l{l} : Parameter of shape (m K,)
    cell : Cell
    n_blocks : int
        K.
    state_size : int
        Size n K of the state of a layer.
    matrix_names : tuple of str
        Names of the recurrent matrices of a block; empty if a custom cell has none.

    Raises
    ------
    ValueError
        If a size is not a positive integer, `block_size` does not divide `hidden_size`,
        a choice is unknown, or the engine cannot run the cell.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import ParaRNN
    >>> layer = ParaRNN(3, 16, block_size=2, num_layers=2)
    >>> output, h_n = layer(torch.zeros(8, 100, 3))
    >>> output.shape, h_n.shape
    (torch.Size([8, 100, 16]), torch.Size([2, 8, 16]))
    >>> layer.weight_hh_l0.shape
    torch.Size([2, 2, 8])
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
        chrono_length: float | None = None,
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if block_size is not None:
            hidden_size, block_size = check_block_size(hidden_size, block_size)
        block = _block_cell(cell, block_size, nonlinearity)
        check_choice("init", init, INITIALISATIONS)
        if init == "chrono" and gate(block, "u_f") is None and gate(block, "u_r") is None:
            raise ValueError(
                "init='chrono' draws biases of gates, which cell='lstm' and 'gru' have and this "
                f"cell ({block.name}) has not. Take one of these, or another init"
            )
        check_chrono(init, chrono_length, bias)
        super().__init__(
            input_size, hidden_size, num_layers, block, bias=bias, dropout=dropout, engine=engine,
            called=f"cell={cell!r}" if isinstance(cell, str) else None, device=device, dtype=dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity if cell == "rnn" else None
        self.init = init
        self.chrono_length = chrono_length
        self.initialise()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew.

        "stable": each recurrent block is r Q with Q a random orthogonal matrix and r^2 uniform on
        [0, 1]. It is a contraction: states do not explode, and half-lives range from one step to
        long. W_x is uniform with variance 1 / (3 in); b is 1 for the forget gate of "lstm", else
        0. Parameters of a custom cell are uniform on (-1/sqrt(p), 1/sqrt(p)).

        "orthogonal" sets all r to 1, and "identity" (Le et al., 2015) uses identity matrices;
        otherwise they equal "stable". They suit the ordinary network, ``block_size=hidden_size``,
        whose memory starts with eigenvalues of modulus 1: an orthogonal matrix has waves of all
        periods (C-1), the identity d features R-1. There "stable" draws one r for the whole
        matrix, which may forget within a few steps, and "uniform" has eigenvalues up to about
        1 / sqrt(3).

        "uniform": W_x and b are uniform on (-1/sqrt(d), 1/sqrt(d)), as in :class:`torch.nn.RNN`,
        and blocks on (-1/sqrt(d_s), 1/sqrt(d_s)), the bound of a network of this size.

        "chrono" (Tallec and Ollivier, 2018), for "lstm" and "gru": matrices are as with "uniform",
        and biases are zero, as in appendix B.3 of Rusch et al. (2022), except
        :math:`b_f \sim \log U[1, T_{\max} - 1]` and :math:`b_i = -b_f` in an LSTM, and
        :math:`b_z \sim -\log U[1, T_{\max} - 1]` in a GRU.
        """
        for layer in range(self.num_layers):
            weight_ih, weight_hh, bias = self.weights(layer)
            if self.init in MATRICES:
                params = weight_hh.view(self.cell.p, self.n_blocks)
                draw_stable(self.cell, weight_ih, params, bias, generator, self.init)
            else:
                shared = [p for p in (weight_ih, bias) if p is not None]
                draw_uniform(shared, self.hidden_size**-0.5, generator)
                draw_uniform([weight_hh], self.block_size**-0.5, generator)
            if self.chrono_length is not None and bias is not None:
                draw_chrono(self.cell, bias, self.chrono_length, generator)

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Recurrent matrices, if their singular values start at 1 or below."""
        return super().recurrent_parameters() if self.init in MATRICES else []

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        by_name = f"nonlinearity={self.nonlinearity!r}"
        kind = by_name if self.nonlinearity else f"cell={self.cell.name!r}"
        return (
            f"{self.input_size}, {self.hidden_size}, block_size={self.block_size}, "
            f"num_layers={self.num_layers}, {kind}"
        )


def _block_cell(cell: str | Cell, block_size: int | None, nonlinearity: str) -> Cell:
    """Cell of a block, by name with a block size and a nonlinearity, or custom."""
    check_cell(cell, "ParaRNN")
    if isinstance(cell, Cell):
        if cell.shared or not cell.m:
            raise ValueError(
                f"the cell of a layer must have inputs, of its own for each block; {cell.name!r} "
                f"has m={cell.m}, shared={cell.shared}"
            )
        if block_size not in (None, cell.n_outputs):
            raise ValueError(
                f"block_size of cell {cell.name!r} is the number of its outputs, "
                f"{cell.n_outputs}; got {block_size!r}. Leave it out"
            )
    check_choice("nonlinearity", nonlinearity, NONLINEARITIES)
    if cell != "rnn" and nonlinearity != "tanh":
        raise ValueError(
            "nonlinearity is a choice of cell='rnn'; got nonlinearity="
            f"{nonlinearity!r} with cell={getattr(cell, 'name', cell)!r}"
        )
    if isinstance(cell, Cell):
        return cell
    size = BLOCK_SIZE if block_size is None else block_size
    return BLOCKS[cell](size, nonlinearity) if cell == "rnn" else BLOCKS[cell](size)
