"""The one entry: run a cell over a batch of sequences with the chosen engine."""

from collections.abc import Sequence

from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._lengths import checked_lengths
from tsrnn.kernels._reference import reference
from tsrnn.kernels._sequential import COMPILED_DTYPES, sequential

ENGINES = {"reference": reference, "sequential": sequential}


def recurrence(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    engine: str = "auto",
) -> tuple[Tensor, Tensor]:
    r"""Run ``state_t = step(state_{t-1}, inputs_t, params)`` over time for K units at once.

    Parameters
    ----------
    cell : Cell
        The recurrence, for example ``tsrnn.kernels.cells.para_rnn(2)``.
    inputs : Tensor of shape (B, T, m, K)
        Pre-projected inputs, T >= 1 and K >= 1.
    params : Tensor of shape (p, K)
        Parameters of every unit.
    initial : Tensor of shape (B, n, K), optional
        State before the first step; zero by default.
    lengths : integers of shape (B,), optional
        Steps to run of each sequence, between 0 and T. States after the end are
        zero, inputs there are not read, and their gradients are zero. All of T by
        default.
    engine : {"auto", "reference", "sequential"}
        "sequential" is compiled, float32 or float64, on the CPU, with first
        derivatives. "reference" is a loop in torch, for any device, dtype and
        order of derivative. "auto" takes "sequential" on the CPU and
        "reference" on other devices.

    Returns
    -------
    states : Tensor of shape (B, T, n, K)
        State after every step.
    final : Tensor of shape (B, n, K)
        State after the last step of each sequence.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, the engine is unknown or does not
        run there, or the cell has no compiled form and the engine needs one.

    Notes
    -----
    Compiled functions are within a few units in the last place of torch's. Gradients of
    `params` are summed over sequences in a fixed order, so that they are the same bit
    by bit for any number of threads.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, recurrence
    >>> states, final = recurrence(
    ...     cells.para_rnn(2), inputs=torch.randn(3, 10, 2, 4), params=torch.randn(4, 4)
    ... )
    >>> states.shape, final.shape
    (torch.Size([3, 10, 2, 4]), torch.Size([3, 2, 4]))
    """
    _check_tensors(cell, inputs, params, initial)
    batch, steps, _, units = inputs.shape
    if initial is None:
        initial = inputs.new_zeros(batch, cell.n, units)
    run = ENGINES[_chosen(engine, inputs)]
    return run(cell, inputs, params, initial, checked_lengths(lengths, batch, steps, inputs.device))


def _check_tensors(cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor | None) -> None:
    if cell.shared:
        raise ValueError(
            f"cell {cell.name!r} has inputs that all units share; recurrence runs cells whose "
            "units have inputs of their own"
        )
    if inputs.ndim != 4 or inputs.shape[2] != cell.m or not (inputs.shape[1] and inputs.shape[3]):
        raise ValueError(
            f"inputs of cell {cell.name!r} must have shape (B, T, {cell.m}, K) with T >= 1 and "
            f"K >= 1; got {tuple(inputs.shape)}"
        )
    if not (inputs.is_floating_point() or inputs.is_complex()):
        raise ValueError(
            f"inputs of cell {cell.name!r} must be floating point numbers; got {inputs.dtype}"
        )
    batch, _, _, units = inputs.shape
    check_like(cell, "params", params, (cell.p, units), inputs)
    if initial is not None:
        check_like(cell, "initial", initial, (batch, cell.n, units), inputs)


def check_like(
    cell: Cell, name: str, tensor: Tensor, shape: tuple[int, ...], inputs: Tensor
) -> None:
    """Raise unless a tensor has the shape that is due and the dtype and device of the inputs."""
    if tuple(tensor.shape) != shape:
        raise ValueError(
            f"{name} of cell {cell.name!r} must have shape {shape} for inputs of shape "
            f"{tuple(inputs.shape)}; got {tuple(tensor.shape)}"
        )
    if (tensor.dtype, tensor.device) != (inputs.dtype, inputs.device):
        raise ValueError(
            f"{name} must have the dtype and device of inputs, {inputs.dtype} on "
            f"{inputs.device}; got {tensor.dtype} on {tensor.device}"
        )


def _chosen(engine: str, inputs: Tensor) -> str:
    compiled = inputs.device.type == "cpu" and inputs.dtype in COMPILED_DTYPES
    if engine == "auto":
        return "sequential" if compiled else "reference"
    if engine not in ENGINES:
        raise ValueError(f"engine must be 'auto' or one of {sorted(ENGINES)}; got {engine!r}")
    if engine == "sequential" and not compiled:
        raise ValueError(
            "engine 'sequential' runs float32 and float64 on the CPU; got "
            f"{inputs.dtype} on {inputs.device}. Use engine='reference' there"
        )
    return engine
