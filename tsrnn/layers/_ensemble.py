"""Networks side by side, their outputs averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from tsrnn.layers._network import RecurrentNetwork


class Ensemble(nn.Module):
    r"""Networks of one shape that see the same inputs: :math:`z_t = \frac1E \sum_e z_t^{(e)}`.

    Called like a `RecurrentNetwork`. States are those of the members one after the other.

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
        """The members."""
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
        before = [None] * len(self.members) if hx is None else hx.chunk(len(self.members), -1)
        found = [
            member.run(x, state, lengths)
            for member, state in zip(self.networks, before, strict=True)
        ]
        states, h_n = zip(*found, strict=True)
        return torch.cat(states, -1), torch.cat(h_n, -1)

    def initial_state(self, batch: int) -> Tensor:
        """State before the first step."""
        return torch.cat([member.initial_state(batch) for member in self.networks], -1)

    def outputs(self, states: Tensor) -> Tensor:
        """What the last layers hand on of their states."""
        return self._joined(lambda member, part: member.outputs(part), states, -1)

    def head(self, states: Tensor) -> Tensor:
        """Mean of the members' heads."""
        return torch.stack(self._each(lambda member, part: member.head(part), states)).mean(0)

    @property
    def sums_blocks(self) -> bool:
        """Whether there are `contributions`."""
        return self.networks[0].sums_blocks

    def constant(self) -> Tensor:
        """What the output has without any state."""
        return torch.stack([member.constant() for member in self.networks]).mean(0)

    def contributions(self, states: Tensor) -> Tensor:
        """Additive parts by block, of the first member, the second, and so on."""
        parts = self._joined(lambda member, part: member.contributions(part), states, -2)
        return parts / len(self.members)

    def prepare(self, *, verbose: bool = False) -> None:
        """Have the compiled kernels ready."""
        self.networks[0].prepare(verbose=verbose)

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Those of all members."""
        return [p for member in self.networks for p in member.recurrent_parameters()]

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Those of the first member's layers, then of the second's, and so on."""
        return [block for member in self.networks for block in member.recurrent_blocks()]  # type: ignore[return-value]

    def _each(
        self, ask: Callable[[RecurrentNetwork, Tensor], Tensor], states: Tensor
    ) -> list[Tensor]:
        parts: Iterable[Tensor] = states.chunk(len(self.members), -1)
        return [ask(member, part) for member, part in zip(self.networks, parts, strict=True)]

    def _joined(
        self, ask: Callable[[RecurrentNetwork, Tensor], Tensor], states: Tensor, dim: int
    ) -> Tensor:
        return torch.cat(self._each(ask, states), dim)
