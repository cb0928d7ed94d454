"""Networks of recurrent layers with projection, aggregation and output, and their ensembles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tsrnn.kernels import as_lengths, without_padding
from tsrnn.layers._checks import check_choice, check_sizes
from tsrnn.layers._initialisation import draw_linear
from tsrnn.layers._recurrent import Recurrent
from tsrnn.layers._stack import CellStack, Linear
from tsrnn.layers._unequal import UnequalParaRNN

AGGREGATIONS = ("linear", "fc", "ffn")


class RecurrentNetwork(nn.Module):
    r"""Recurrent layers between linear maps: Algorithm 1 and section 4.1 of Cai et al. (2026).

    .. math:: z_t = Q \, F(h_{t,L}) + c, \qquad h_{t,l} = R_l(h_{t,l-1}), \quad h_{t,0} = P x_t

    with recurrent layers R_l and the aggregation F after the last layer. With
    ``aggregation="linear"`` F is a matrix W_f. Only the product Q W_f is identified, so the network
    holds the product; likewise the product of P and the first layer's W_x, unless P is requested.
    With "fc" F is the fully connected layer :math:`\max(0, W_1 h + b_1)` of section 4.1, with "ffn"
    the position-wise network :math:`W_2 \max(0, W_1 h + b_1) + b_2`.

    Parameters
    ----------
    rnn : Recurrent
        Recurrent layers, such as a `ParaRNN`.
    output_size : int
    aggregation : {"linear", "fc", "ffn"}
        With "linear" the output of a `ParaRNN` is a sum over blocks, see `contributions`.
    ffn_size : int, optional
        Inner width of "ffn"; 4 times the hidden size by default (Vaswani et al., 2017).
    input_size : int, optional
        Inputs of a separate matrix P before the first layer; by default there is no P.

    Raises
    ------
    TypeError
        If `rnn` is not a recurrent layer.
    ValueError
        If a size is not a positive integer, or a choice is unknown.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import ParaRNN, RecurrentNetwork
    >>> network = RecurrentNetwork(ParaRNN(3, 16), output_size=2)
    >>> network(torch.zeros(5, 20, 3))[0].shape
    torch.Size([5, 20, 2])
    """

    def __init__(
        self,
        rnn: Recurrent,
        output_size: int,
        *,
        aggregation: str = "linear",
        ffn_size: int | None = None,
        input_size: int | None = None,
    ) -> None:
        super().__init__()
        check_choice("aggregation", aggregation, AGGREGATIONS)
        if not isinstance(rnn, Recurrent):
            raise TypeError(
                "rnn must be a recurrent layer of tsrnn.layers, such as ParaRNN(3, 16); got "
                f"{rnn!r}"
            )
        hidden = rnn.hidden_size
        output_size, inner = check_sizes(
            output_size=output_size, ffn_size=4 * hidden if ffn_size is None else ffn_size
        )
        self.aggregation = aggregation
        self.input = None
        if input_size is not None:
            (input_size,) = check_sizes(input_size=input_size)
            self.input = Linear(input_size, rnn.input_size)
        self.rnn = rnn
        self.ffn = None
        if aggregation == "fc":
            self.ffn = nn.Sequential(Linear(hidden, hidden), nn.ReLU())
        elif aggregation == "ffn":
            self.ffn = nn.Sequential(Linear(hidden, inner), nn.ReLU(), Linear(inner, hidden))
        self.output = Linear(hidden, output_size)

    @torch.no_grad()
    def reset_parameters(
        self, generator: torch.Generator | None = None, *, zero_output: bool = False
    ) -> None:
        """Draw all parameters anew; with `zero_output` the network starts as zero."""
        self.rnn.reset_parameters(generator)
        for part in (self.input, *([] if self.ffn is None else self.ffn), self.output):
            if isinstance(part, nn.Linear):
                draw_linear(part, generator)
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
        hx : Tensor, optional
            State of `rnn`.
        lengths : integers of shape (B,), optional
        start : int, default 0
            First step with an output; negative counts from the end.

        Returns
        -------
        output : Tensor of shape (B, T - start, output_size) or (T - start, output_size)
        h_n : Tensor of the shape of `hx`

        Raises
        ------
        ValueError
            If shapes do not fit or lengths lie outside 0 to T.
        """
        if x.ndim == 2:
            output, h_n = self(x[None], None if hx is None else hx[:, None], lengths, start=start)
            return output[0], h_n[:, 0]
        states, h_n = self.run(x, hx, lengths)
        return self.head(states[:, start:]), h_n

    def run(
        self, x: Tensor, hx: Tensor | None = None, lengths: Tensor | Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs of the last layer (B, T, hidden_size) and the state after the last step."""
        if lengths is not None:  # convert once for the projection and the layers
            lengths = as_lengths(lengths, len(x), x.device, x.shape[1])
        if self.input is not None:
            x = self.input(without_padding(x, lengths))
        states, h_n = self.rnn(x, hx, lengths)
        return states, h_n

    @property
    def hidden_size(self) -> int:
        """Outputs of the last layer."""
        return self.rnn.hidden_size

    @property
    def matrix_names(self) -> tuple[str, ...]:
        """See `Recurrent`."""
        return self.rnn.matrix_names

    def initial_state(self, batch: int) -> Tensor:
        """State of `rnn` before the first step."""
        return self.rnn.initial_state(batch)

    def outputs(self, states: Tensor) -> Tensor:
        """Output of the last layer for its state."""
        return self.rnn.outputs(states)

    @property
    def takes_replicates(self) -> bool:
        """See `Recurrent`."""
        return self.rnn.takes_replicates

    def prepare(self, *, verbose: bool = False) -> None:
        """Compile the kernels ahead of their use, see `Recurrent`."""
        self.rnn.prepare(verbose=verbose)

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """See `Recurrent`."""
        return self.rnn.recurrent_parameters()

    @property
    def sums_blocks(self) -> bool:
        """True if the output is a sum over blocks, see `contributions`."""
        return self.ffn is None and isinstance(self.rnn, CellStack | UnequalParaRNN)

    def constant(self) -> Tensor:
        """Constant c (output_size,) of the output, to which `contributions` are added."""
        return self.output.bias

    def head(self, states: Tensor) -> Tensor:
        """Aggregate and project outputs of `rnn` (..., hidden_size) to (..., output_size)."""
        return self.output(states if self.ffn is None else self.ffn(states))

    def contributions(self, states: Tensor) -> Tensor:
        r"""Additive parts of the output by block of the last layer.

        With a linear aggregation the output is :math:`c + \sum_k Q^{(k)} h_t^{(k)}`, the equation
        after (7) of Cai et al. (2026).

        Parameters
        ----------
        states : Tensor of shape (..., hidden_size)
            Outputs of the last layer.

        Returns
        -------
        Tensor of shape (..., K, output_size)
            Parts without the constant c.

        Raises
        ------
        ValueError
            If the aggregation is not linear, or the layers have no blocks.
        """
        if not isinstance(self.rnn, CellStack | UnequalParaRNN):
            raise ValueError(
                f"contributions by block exist for layers of blocks; {type(self.rnn).__name__} "
                "has none"
            )
        if self.ffn is not None:
            raise ValueError(
                "contributions by block exist for aggregation='linear' only; with "
                f"{self.aggregation!r} the "
                "blocks act together. Fit with aggregation='linear' to get them"
            )
        if isinstance(self.rnn, UnequalParaRNN):
            weight = self.output.weight
            parts = [states[..., units] @ weight[:, units].T for units in self.rnn.block_units()]
            return torch.stack(parts, -2)
        fields = (self.rnn.block_size, self.rnn.n_blocks)
        return torch.einsum(
            "...ik,oik->...ko",
            states.unflatten(-1, fields),
            self.output.weight.unflatten(-1, fields),
        )

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Recurrent matrices of every layer, see `Recurrent`."""
        return self.rnn.recurrent_blocks()


class Ensemble(nn.Module):
    r"""Mean of E networks of one shape, :math:`z_t = \frac1E \sum_e z_t^{(e)}`.

    It is called like a `RecurrentNetwork`. Its state concatenates the states of the members.

    Parameters
    ----------
    members : sequence of RecurrentNetwork

    Attributes
    ----------
    hidden_size : int
        Sum of the members' hidden sizes.
    matrix_names : tuple of str

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import Ensemble, ParaRNN, RecurrentNetwork
    >>> members = [RecurrentNetwork(ParaRNN(3, 8), output_size=2) for _ in range(4)]
    >>> x = torch.ones(5, 20, 3)
    >>> z, h_n = Ensemble(members)(x)
    >>> z.shape, h_n.shape
    (torch.Size([5, 20, 2]), torch.Size([1, 5, 32]))
    >>> bool(torch.allclose(z, sum(member(x)[0] for member in members) / 4, atol=1e-6))
    True
    """

    def __init__(self, members: Sequence[RecurrentNetwork]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.hidden_size = sum(member.hidden_size for member in members)
        self.matrix_names = members[0].matrix_names

    @property
    def networks(self) -> list[RecurrentNetwork]:
        """Members of the ensemble."""
        return list(self.members)  # type: ignore[arg-type]

    def reset_parameters(
        self, generator: torch.Generator | None = None, *, zero_output: bool = False
    ) -> None:
        """Draw the parameters of every member anew."""
        for member in self.networks:
            member.reset_parameters(generator, zero_output=zero_output)

    def forward(
        self, x: Tensor, hx: Tensor | None = None, lengths: Tensor | Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute the outputs at every step; see :meth:`RecurrentNetwork.forward`."""
        states, h_n = self.run(x, hx, lengths)
        return self.head(states), h_n

    def run(
        self, x: Tensor, hx: Tensor | None = None, lengths: Tensor | Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """States of the last layers (B, T, hidden_size) and the state after the last step."""
        count = len(self.members)
        starts = [None] * count if hx is None else hx.chunk(count, -1)
        if lengths is not None:  # convert once for all members
            lengths = as_lengths(lengths, len(x), x.device, x.shape[1])
        runs = [net.run(x, h, lengths) for net, h in zip(self.networks, starts, strict=True)]
        states, h_n = zip(*runs, strict=True)
        return torch.cat(states, -1), torch.cat(h_n, -1)

    def initial_state(self, batch: int) -> Tensor:
        """State before the first step."""
        return torch.cat([member.initial_state(batch) for member in self.networks], -1)

    def outputs(self, states: Tensor) -> Tensor:
        """Outputs of the last layers for their states."""
        return torch.cat(self._each(RecurrentNetwork.outputs, states), -1)

    def head(self, states: Tensor) -> Tensor:
        """Mean of the members' heads."""
        return torch.stack(self._each(RecurrentNetwork.head, states)).mean(0)

    @property
    def sums_blocks(self) -> bool:
        """True if the output is a sum over blocks, see `contributions`."""
        return self.networks[0].sums_blocks

    def constant(self) -> Tensor:
        """Constant of the output, to which `contributions` are added."""
        return torch.stack([member.constant() for member in self.networks]).mean(0)

    def contributions(self, states: Tensor) -> Tensor:
        """Additive parts by block, in the order of the members."""
        parts = self._each(RecurrentNetwork.contributions, states)
        return torch.cat(parts, -2) / len(self.members)

    def prepare(self, *, verbose: bool = False) -> None:
        """Compile the kernels ahead of their use."""
        self.networks[0].prepare(verbose=verbose)

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Recurrent parameters of all members."""
        return [p for member in self.networks for p in member.recurrent_parameters()]

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Recurrent matrices of every layer, in the order of the members."""
        return [block for member in self.networks for block in member.recurrent_blocks()]  # type: ignore[return-value]

    def _each(
        self, method: Callable[[RecurrentNetwork, Tensor], Tensor], states: Tensor
    ) -> list[Tensor]:
        """Results of a method for the states of each member."""
        parts = states.chunk(len(self.members), -1)
        return [method(member, part) for member, part in zip(self.networks, parts, strict=True)]
