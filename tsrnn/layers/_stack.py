"""Stacked layers that run one cell each in many blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsrnn.kernels import (
    BlockStep,
    Cell,
    check_engine,
    is_small,
    linear,
    prepare_projected,
    projected_recurrence,
)
from tsrnn.layers._checks import (
    check_block_size,
    check_dropout,
    check_flag,
    check_sizes,
    check_tensor_kind,
)
from tsrnn.layers._recurrent import LayeredRecurrent


class Linear(nn.Linear):
    """Linear map with support for replicates, see :func:`tsrnn.kernels.linear`."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        return linear(x, self.weight, self.bias)


class CellStack(LayeredRecurrent):
    """Abstract base of the modules whose layers run one cell.

    Layer l > 1 takes the outputs of all blocks of layer l - 1 as its x. A subclass chooses the
    cell, documents its parameters and draws them. `hidden_size` must be a multiple of the cell's
    outputs; `called` describes the cell in the error if an engine cannot run it.

    States are ordered by field: field i of block k has index ``i * K + k``. The first
    `hidden_size` numbers of a state are the output.

    Attributes
    ----------
    weight_ih_l{l} : Parameter of shape (m K, in)
        Row ``i * K + k`` projects to input field i of block k.
    weight_hh_l{l} : Parameter
        Parameters of the cell, with last axis K.
    bias_l{l} : Parameter of shape (m K,)
    block_size, n_blocks : int
        Outputs of a block, and number K of blocks of a layer.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        cell: Cell,
        *,
        bias: bool,
        dropout: float,
        engine: str = "auto",
        called: str | None = None,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        check_engine(engine, cell, called)
        input_size, hidden_size, num_layers = check_sizes(
            input_size=input_size, hidden_size=hidden_size, num_layers=num_layers
        )
        self.block_size = cell.n_outputs
        check_block_size(hidden_size, self.block_size)
        check_dropout(dropout)
        check_flag("bias", bias)
        check_tensor_kind(device, dtype)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.cell = cell
        self.bias = bias
        self.dropout = dropout
        self.engine = engine
        self.n_blocks = hidden_size // self.block_size
        self.state_size = cell.n * self.n_blocks
        self.matrix_names = matrix_names(cell)
        rows = cell.m * self.n_blocks
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size
            shapes: dict[str, tuple[int, ...]] = {
                f"weight_ih_l{layer}": (rows, width),
                f"weight_hh_l{layer}": weight_shape(cell, self.n_blocks),
            } | ({f"bias_l{layer}": (rows,)} if bias else {})
            for name, shape in shapes.items():
                weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
                self.register_parameter(name, weight)

    def run_layer(
        self, layer: int, x: Tensor, initial: Tensor | None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs (B, T, hidden) and last state of a layer, given x (B, T, in), initial (B, n)."""
        weight_ih, weight_hh, bias = self.weights(layer)
        if initial is None:
            initial = x.new_zeros(len(x), self.state_size)
        start = initial.unflatten(-1, (self.cell.n, self.n_blocks))
        params = weight_hh.reshape(*weight_ih.shape[:-2], self.cell.p, self.n_blocks)
        outputs, final = projected_recurrence(
            self.cell, x, weight_ih, bias, params, start, lengths, self.engine
        )
        return outputs.flatten(-2), final.flatten(-2)

    def outputs(self, states: Tensor) -> Tensor:
        """Outputs within states (..., state_size), the first hidden_size numbers."""
        # A full slice would cost a copy in the backward pass.
        return states if self.cell.n_outputs == self.cell.n else states[..., : self.hidden_size]

    @property
    def takes_replicates(self) -> bool:
        """True if kernels run in time order, see `Recurrent`."""
        weight = self.weights(0)[0]
        compiled = weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.float64)
        return compiled and self.engine in ("auto", "sequential") and is_small(self.cell)

    def prepare(self, *, verbose: bool = False) -> None:
        """Compile the kernels ahead of their use; with `verbose` report it."""
        for layer in range(self.num_layers):
            weight, _, bias = self.weights(layer)
            if weight.device.type != "cpu":
                return  # kernels of other devices are compiled on first use
            prepare_projected(
                self.cell, weight.shape[1], bias is not None, weight.dtype, self.engine,
                verbose=verbose,
            )  # fmt: skip

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Recurrent matrices; empty for a cell without matrices."""
        if not self.matrix_names:
            return []
        return [self.get_parameter(f"weight_hh_l{layer}") for layer in range(self.num_layers)]

    def recurrent_blocks(self) -> list[Tensor] | list[dict[str, Tensor]]:
        """Recurrent matrices (K, d_s, d_s) of every layer; a dict by name if there are several."""
        if not self.matrix_names:
            raise ValueError(f"cell {self.cell.name!r} has no recurrent matrices to read")
        weights = [self.weights(layer)[1].detach() for layer in range(self.num_layers)]
        layers = [matrices_of(self.cell, weight_hh.flatten(0, -2)) for weight_hh in weights]
        if len(self.matrix_names) > 1:
            return layers
        return [matrix for matrices in layers for matrix in matrices.values()]

    def weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Projection (m K, in), recurrent parameters and bias (m K,) of a layer."""
        return (
            getattr(self, f"weight_ih_l{layer}"),
            getattr(self, f"weight_hh_l{layer}"),
            getattr(self, f"bias_l{layer}", None),
        )


def weight_shape(cell: Cell, n_blocks: int) -> tuple[int, ...]:
    """Shape of the recurrent parameters of a layer, with axes of matrices if it has no vectors."""
    if not isinstance(cell.step, BlockStep) or cell.step.form.vectors:
        return cell.p, n_blocks
    size, count = cell.step.size, len(cell.step.form.matrices)
    return (*(() if count == 1 else (count,)), size, size, n_blocks)


def matrix_names(cell: Cell) -> tuple[str, ...]:
    """Names of the recurrent matrices of a cell in matrix form; empty for other cells."""
    return cell.step.form.matrices if isinstance(cell.step, BlockStep) else ()


def matrices_of(cell: Cell, params: Tensor) -> dict[str, Tensor]:
    """Recurrent matrices (K, d_s, d_s) by name, the first rows of the parameters (p, K)."""
    if not isinstance(cell.step, BlockStep):
        return {}
    matrices, _ = cell.step.split(params)
    return dict(zip(matrix_names(cell), matrices, strict=True))


def gate(cell: Cell, name: str) -> slice | None:
    """Input fields of a gate, such as "u_f", or None if the cell has no such gate."""
    if not isinstance(cell.step, BlockStep) or name not in cell.step.form.inputs:
        return None
    first = cell.step.form.inputs.index(name) * cell.step.size
    return slice(first, first + cell.step.size)
