"""The network around the recurrent layers: projection, recurrence, aggregation, output."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tsrnn.kernels import Cell, without_padding
from tsrnn.layers._checks import check_choice, check_sizes
from tsrnn.layers._para_rnn import ParaRNN

AGGREGATIONS = ("linear", "ffn")


class RecurrentNetwork(nn.Module):
    r"""ParaRNN layers between linear maps: Algorithm 1 and section 4.1 of Cai et al. (2026).

    .. math:: z_t = Q \, F(h_{t,L}) + c, \qquad h_{t,l} = R_l(h_{t,l-1}), \quad h_{t,0} = P x_t

    with recurrent layers R_l and the aggregation F, applied once, after the last
    layer. With ``aggregation="linear"`` F is a matrix W_f and only the product
    Q W_f acts; the two are not identified one by one, so the network holds their
    product. The same is true of P and the first layer's W_x unless
    ``input_projection=True``. With ``aggregation="ffn"`` F is the position-wise
    feedforward network :math:`W_2 \max(0, W_1 h + b_1) + b_2`.

    Parameters
    ----------
    input_size, output_size : int
    hidden_size : int
    block_size : int, optional
    num_layers : int, default 1
    cell : {"rnn", "gru", "lstm"} or Cell
    nonlinearity : {"tanh", "relu", "identity"}
        The recurrent layers, see `ParaRNN`.
    aggregation : {"linear", "ffn"}
        With "linear" the output is a sum over blocks, see `contributions`.
    ffn_size : int, optional
        Inner width of "ffn"; 4 times `hidden_size` by default (Vaswani et al., 2017).
    input_projection : bool, default False
        Whether P stands before the first layer, as a matrix of its own.
    init : {"stable", "uniform"}
        See :meth:`ParaRNN.reset_parameters`.

    Raises
    ------
    ValueError
        If a size is no positive integer, `block_size` does not divide `hidden_size`,
        or a choice is unknown.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        hidden_size: int,
        block_size: int | None = None,
        num_layers: int = 1,
        *,
        cell: str | Cell = "rnn",
        nonlinearity: str = "tanh",
        aggregation: str = "linear",
        ffn_size: int | None = None,
        input_projection: bool = False,
        init: str = "stable",
    ) -> None:
        super().__init__()
        check_choice("aggregation", aggregation, AGGREGATIONS)
        inner = 4 * hidden_size if ffn_size is None else ffn_size
        check_sizes(
            input_size=input_size,
            output_size=output_size,
            hidden_size=hidden_size,
            ffn_size=inner,
        )
        self.aggregation = aggregation
        width = hidden_size if input_projection else input_size
        self.input = nn.Linear(input_size, hidden_size) if input_projection else None
        self.rnn = ParaRNN(
            width,
            hidden_size,
            block_size,
            num_layers,
            cell=cell,
            nonlinearity=nonlinearity,
            init=init,
        )
        self.ffn = (
            nn.Sequential(nn.Linear(hidden_size, inner), nn.ReLU(), nn.Linear(inner, hidden_size))
            if aggregation == "ffn"
            else None
        )
        self.output = nn.Linear(hidden_size, output_size)

    @torch.no_grad()
    def reset_parameters(
        self, generator: torch.Generator | None = None, *, zero_output: bool = False
    ) -> None:
        """Draw all parameters anew; with `zero_output` the network starts as zero."""
        self.rnn.reset_parameters(generator)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                bound = module.in_features**-0.5
                module.weight.uniform_(-bound, bound, generator=generator)
                module.bias.uniform_(-bound, bound, generator=generator)
        if zero_output:
            self.output.weight.zero_()
            self.output.bias.zero_()

    def forward(
        self,
        x: Tensor,
        hx: Tensor | None = None,
        lengths: Tensor | Sequence[int] | None = None,
        *,
        start: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Compute the outputs at every step from `start` on.

        Parameters
        ----------
        x : Tensor of shape (B, T, input_size) or (T, input_size)
        hx : Tensor of shape (num_layers, B, state_size) or (num_layers, state_size), optional
            State of `rnn`.
        lengths : integers of shape (B,), optional
        start : int, default 0
            Steps before it only warm the state up; negative counts from the end.

        Returns
        -------
        output : Tensor of shape (B, T - start, output_size) or (T - start, output_size)
        h_n : Tensor of shape of `hx`

        Raises
        ------
        ValueError
            If shapes do not fit or lengths lie outside 0 to T.
        """
        if x.ndim == 2:
            output, h_n = self(x[None], None if hx is None else hx[:, None], lengths, start=start)
            return output[0], h_n[:, 0]
        if self.input is not None:
            x = self.input(without_padding(x, lengths))
        states, h_n = self.rnn(x, hx, lengths)
        return self.head(states[:, start:]), h_n

    def head(self, states: Tensor) -> Tensor:
        """Aggregate and project outputs of `rnn` (..., hidden_size) to (..., output_size)."""
        return self.output(states if self.ffn is None else self.ffn(states))

    def contributions(self, states: Tensor) -> Tensor:
        r"""Additive parts of the output by block of the last layer.

        The equation after (7) of Cai et al. (2026): with a linear aggregation the
        output is :math:`c + \sum_k Q^{(k)} h_t^{(k)}`.

        Parameters
        ----------
        states : Tensor of shape (..., hidden_size)
            Outputs of the last layer.

        Returns
        -------
        Tensor of shape (..., K, output_size)
            Without the constant c, ``output.bias``.

        Raises
        ------
        ValueError
            If the aggregation is not linear: there is no such sum.
        """
        if self.ffn is not None:
            raise ValueError(
                "contributions by block exist for aggregation='linear' only; with 'ffn' the "
                "blocks act together. Fit with aggregation='linear' to get them"
            )
        fields = (self.rnn.block_size, self.rnn.n_blocks)
        return torch.einsum(
            "...ik,oik->...ko",
            states.unflatten(-1, fields),
            self.output.weight.unflatten(-1, fields),
        )

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Recurrent matrices of every layer, see :meth:`ParaRNN.recurrent_blocks`."""
        return self.rnn.recurrent_blocks()
