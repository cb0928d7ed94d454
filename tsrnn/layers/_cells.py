"""The cell of a layer: one of the catalogue by name, or a user's own."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from tsrnn.kernels import BlockStep, Cell, cells
from tsrnn.layers._checks import check_choice, check_sizes

CELLS: dict[str, Callable[..., Cell]] = {
    "rnn": cells.para_rnn,
    "gru": cells.para_gru,
    "lstm": cells.para_lstm,
}
NONLINEARITIES = ("tanh", "relu", "identity")
BLOCK_SIZE = 2


def check_cell(cell: Any) -> None:
    """Raise unless it is the name of a cell or a cell that a layer can run."""
    if not isinstance(cell, Cell):
        if isinstance(cell, str) and cell in CELLS:
            return
        raise ValueError(
            f"cell must be one of {tuple(CELLS)} or a tsrnn.kernels.Cell; got {cell!r}"
        )
    if cell.shared or not cell.m:
        raise ValueError(
            f"the cell of a layer must have inputs, of its own for each unit; {cell.name!r} has "
            f"m={cell.m}, shared={cell.shared}"
        )


def check_saveable(cell: Any) -> None:
    """Raise if a model with this cell cannot be written to a file."""
    if isinstance(cell, Cell):
        raise TypeError(
            f"to be saved, cell must be one by name; got the cell {cell.name!r}, whose step is "
            "code, which files do not hold. Use pickle"
        )


def block_size_of(cell: str | Cell, block_size: int | None) -> int:
    """Units that a block hands on: 2 by default, of an own cell the number of its outputs."""
    if isinstance(cell, str):
        return BLOCK_SIZE if block_size is None else block_size
    if block_size not in (None, cell.n_outputs):
        raise ValueError(
            f"block_size of cell {cell.name!r} is the number of its outputs, {cell.n_outputs}; "
            f"got {block_size!r}. Leave it out"
        )
    return cell.n_outputs


def make_cell(cell: str | Cell, block_size: int, nonlinearity: str) -> Cell:
    """The cell that a layer runs.

    Raises
    ------
    ValueError
        If the block size or the nonlinearity is not legal, or the cell takes none.
    """
    check_choice("nonlinearity", nonlinearity, NONLINEARITIES)
    check_sizes(block_size=block_size)
    if cell == "rnn":
        return cells.para_rnn(block_size, nonlinearity)
    if nonlinearity != "tanh":
        raise ValueError(
            "nonlinearity is a choice of cell='rnn'; got "
            f"nonlinearity={nonlinearity!r} with cell={_name(cell)!r}"
        )
    return CELLS[cell](block_size) if isinstance(cell, str) else cell


def _name(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.name


def weight_shape(cell: Cell, n_blocks: int) -> tuple[int, ...]:
    """Shape of a layer's recurrent parameters: that of its matrices if it has nothing else."""
    if not isinstance(cell.step, BlockStep) or cell.step.form.vectors:
        return cell.p, n_blocks
    size, count = cell.step.size, len(cell.step.form.matrices)
    return (*(() if count == 1 else (count,)), size, size, n_blocks)


def matrix_names(cell: Cell) -> tuple[str, ...]:
    """Names of the recurrent matrices of a cell; only cells of a matrix form have any."""
    return cell.step.form.matrices if isinstance(cell.step, BlockStep) else ()


def matrices_of(cell: Cell, params: Tensor) -> dict[str, Tensor]:
    """Recurrent matrices (K, d_s, d_s) by name, from parameters (p, K) of which they come first."""
    if not isinstance(cell.step, BlockStep):
        return {}
    matrices, _ = cell.step.split(params)
    return dict(zip(matrix_names(cell), matrices, strict=True))


def gate(cell: Cell, name: str) -> slice | None:
    """Input fields of a gate, such as "u_f", where the cell is a matrix form that has it."""
    if not isinstance(cell.step, BlockStep) or name not in cell.step.form.inputs:
        return None
    first = cell.step.form.inputs.index(name) * cell.step.size
    return slice(first, first + cell.step.size)
