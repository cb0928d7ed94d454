"""ParaRNN layers whose blocks have several sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from tsrnn.layers._checks import check_dropout, check_sizes
from tsrnn.layers._para_rnn import ParaRNN
from tsrnn.layers._recurrent import LayeredRecurrent


class UnequalParaRNN(LayeredRecurrent):
    r"""Stacked ParaRNN layers with blocks of sizes d_1, ..., d_K, called like `ParaRNN`.

    .. math:: h_t^{(k)} = \sigma(W_h^{(k)} h_{t-1}^{(k)} + W_x^{(k)} x_t + b^{(k)})
        \in \mathbb{R}^{d_k}, \qquad h_t = [h_t^{(1)}, \dots, h_t^{(K)}],

    equation (3) of Cai et al. (2026) without the equal sizes of equation (7); or gated blocks.
    Blocks of one size form a `ParaRNN` layer. Layer l > 1 takes the outputs of all blocks of layer
    l - 1 as its x.

    Outputs and states are ordered by block size, within a size by field as in `ParaRNN`.
    `contributions` number blocks in this order, recurrence features from 1 within each size. The
    time of a step grows with the largest size (Theorem 2).

    Parameters
    ----------
    input_size : int
        Number of inputs per step.
    hidden_size : int
        Number of outputs d of a layer, a multiple of the sum of `block_size`.
    block_size : sequence of int, default (2,)
        d_1, ..., d_K, repeated to fill `hidden_size`.
    num_layers : int, default 1
    cell : {"rnn", "gru", "lstm"}
    nonlinearity, bias, dropout, init, chrono_length, engine, device, dtype
        As in `ParaRNN`. Blocks of one size are drawn like a layer.

    Attributes
    ----------
    layers : ModuleList of ModuleList of ParaRNN
        Parts of every layer, by increasing block size.
    block_size : tuple of int
    n_blocks : int
        Number K of blocks of a layer, including repetitions.
    state_size : int
        Size of the state of a layer.
    matrix_names : tuple of str
        Recurrent matrices by size, such as "W (2 x 2)" and "W (4 x 4)".

    Raises
    ------
    TypeError, ValueError
        If a size is not a positive integer, sizes do not fill `hidden_size`, or another argument
        is not one of `ParaRNN`.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, equation (3) and Theorem 2.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import UnequalParaRNN
    >>> layer = UnequalParaRNN(3, 32, block_size=(2, 2, 4, 8), num_layers=2)
    >>> [(part.block_size, part.n_blocks) for part in layer.layers[0]]
    [(2, 4), (4, 2), (8, 2)]
    >>> output, h_n = layer(torch.zeros(5, 20, 3))
    >>> output.shape, h_n.shape
    (torch.Size([5, 20, 32]), torch.Size([2, 5, 32]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        block_size: Sequence[int] = (2,),
        num_layers: int = 1,
        *,
        cell: str = "rnn",
        nonlinearity: str = "tanh",
        bias: bool = True,
        dropout: float = 0.0,
        init: str = "stable",
        chrono_length: float | None = None,
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        input_size, hidden_size, num_layers = check_sizes(
            input_size=input_size, hidden_size=hidden_size, num_layers=num_layers
        )
        if np.ndim(block_size) != 1 or not len(block_size):
            raise TypeError(
                "block_size of UnequalParaRNN must be a sequence of sizes, one at least; got "
                f"{block_size!r}. Blocks of one size are a ParaRNN"
            )
        sizes = tuple(check_sizes(block_size=size)[0] for size in block_size)
        repeats, rest = divmod(hidden_size, sum(sizes))
        if rest:
            raise ValueError(
                "hidden_size must be a multiple of the sum of block_size; got "
                f"hidden_size={hidden_size}, block_size={sizes}, of sum {sum(sizes)}"
            )
        check_dropout(dropout)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.block_size = sizes
        self.dropout = dropout
        self.engine = engine
        self.nonlinearity = nonlinearity if cell == "rnn" else None
        self.layers = nn.ModuleList(
            nn.ModuleList(
                ParaRNN(
                    input_size if layer == 0 else hidden_size, count * repeats * size, size,
                    cell=cell, nonlinearity=nonlinearity, bias=bias, init=init,
                    chrono_length=chrono_length, engine=engine, device=device, dtype=dtype,
                )
                for size, count in sorted(Counter(sizes).items())
            )
            for layer in range(num_layers)
        )  # fmt: skip
        first = list(self.parts(0))
        self.n_blocks = sum(part.n_blocks for part in first)
        self.state_size = sum(part.state_size for part in first)
        self.matrix_names = tuple(_name(name, part) for part in first for name in part.matrix_names)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw the parameters anew, see `ParaRNN`."""
        for part in self.parts():
            part.reset_parameters(generator)

    def run_layer(
        self, layer: int, x: Tensor, initial: Tensor | None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs (B, T, hidden) and last state of a layer, given x (B, T, in), initial (B, n)."""
        if initial is None:
            initial = x.new_zeros(len(x), self.state_size)
        runs = [
            part.run_layer(0, x, start, lengths)
            for part, start in zip(self.parts(layer), self._by_size(initial), strict=True)
        ]
        outputs, last = zip(*runs, strict=True)
        return torch.cat(outputs, -1), torch.cat(last, -1)

    def outputs(self, states: Tensor) -> Tensor:
        """Outputs (..., hidden_size) within states (..., state_size) of a layer."""
        pairs = zip(self.parts(0), self._by_size(states), strict=True)
        return torch.cat([part.outputs(state) for part, state in pairs], -1)

    @property
    def takes_replicates(self) -> bool:
        """See `Recurrent`."""
        return all(part.takes_replicates for part in self.parts())

    def prepare(self, *, verbose: bool = False) -> None:
        """Compile the kernels ahead of their use; with `verbose` report it."""
        for part in self.parts():
            part.prepare(verbose=verbose)

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Recurrent matrices if they start stable."""
        return [p for part in self.parts() for p in part.recurrent_parameters()]

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Recurrent matrices (K, d_k, d_k) of every layer, by name and size."""
        layers: list[dict[str, Tensor]] = []
        for layer in range(self.num_layers):
            matrices: dict[str, Tensor] = {}
            for part in self.parts(layer):
                (blocks,) = part.recurrent_blocks()
                named = blocks if isinstance(blocks, dict) else {part.matrix_names[0]: blocks}
                matrices |= {_name(name, part): matrix for name, matrix in named.items()}
            layers.append(matrices)
        return layers

    def block_units(self) -> list[Tensor]:
        """Indices of the units of every block among the outputs of a layer."""
        places, first = [], 0
        for part in self.parts(0):
            units = torch.arange(first, first + part.hidden_size)
            places += list(units.view(part.block_size, part.n_blocks).T)
            first += part.hidden_size
        return places

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return (
            f"{self.input_size}, {self.hidden_size}, block_size={self.block_size}, "
            f"num_layers={self.num_layers}"
        )

    def parts(self, layer: int | None = None) -> Iterator[ParaRNN]:
        """Parts with one block size, of one layer or of all layers."""
        for parts in self.layers if layer is None else [self.layers[layer]]:
            yield from parts  # type: ignore[misc]

    def _by_size(self, states: Tensor) -> Sequence[Tensor]:
        """Split states (..., state_size) by block size."""
        return states.split([part.state_size for part in self.parts(0)], -1)


def _name(matrix: str, part: ParaRNN) -> str:
    return f"{matrix} ({part.block_size} x {part.block_size})"
