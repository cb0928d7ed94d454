"""The one entry: run a cell over a batch of sequences with the chosen engine."""

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._reference import reference
from tsrnn.kernels._sequential import sequential

ENGINES = {"reference": reference, "sequential": sequential}


def recurrence(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor | None = None,
    lengths: Tensor | None = None,
    engine: str = "auto",
) -> tuple[Tensor, Tensor]:
    r"""Run ``state_t = step(state_{t-1}, inputs_t, params)`` over time for K units at once.

    Parameters
    ----------
    cell : Cell
        The recurrence, for example ``tsrnn.kernels.cells.para_rnn(2)``.
    inputs : Tensor of shape (B, T, m, K)
        Pre-projected inputs, T >= 1.
    params : Tensor of shape (p, K)
        Parameters of every unit.
    initial : Tensor of shape (B, n, K), optional
        State before the first step; zero by default.
    lengths : integer Tensor of shape (B,), optional
        Steps to run of each sequence, between 0 and T. States after the end are
        zero, and nothing flows back from there. All of T by default.
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
        If shapes, dtypes or devices do not fit, or the engine is unknown or
        does not run there.
    """
    _check_tensors(cell, inputs, params, initial)
    batch, steps, _, units = inputs.shape
    if initial is None:
        initial = inputs.new_zeros(batch, cell.n, units)
    lengths = _checked_lengths(lengths, batch, steps, inputs.device)
    run = ENGINES[_chosen(engine, inputs)]
    return run(cell, inputs, params, initial, lengths)


def _check_tensors(cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor | None) -> None:
    if inputs.ndim != 4 or inputs.shape[2] != cell.m or not inputs.shape[1]:
        raise ValueError(
            f"inputs of cell {cell.name!r} must have shape (B, T, {cell.m}, K) with T >= 1; "
            f"got {tuple(inputs.shape)}"
        )
    batch, _, _, units = inputs.shape
    expected = {"params": (params, (cell.p, units)), "initial": (initial, (batch, cell.n, units))}
    for name, (tensor, shape) in expected.items():
        if tensor is None:
            continue
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


def _checked_lengths(
    lengths: Tensor | None, batch: int, steps: int, device: torch.device
) -> Tensor:
    if lengths is None:
        return torch.full((batch,), steps, dtype=torch.int64, device=device)
    lengths = torch.as_tensor(lengths, device=device)
    if lengths.shape != (batch,) or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(
            f"lengths must be {batch} integers, one a sequence; got "
            f"{lengths.dtype} of shape {tuple(lengths.shape)}"
        )
    if batch and not (0 <= int(lengths.min()) and int(lengths.max()) <= steps):
        raise ValueError(f"lengths must lie between 0 and T={steps}; got {lengths.tolist()}")
    return lengths.to(torch.int64)


def _chosen(engine: str, inputs: Tensor) -> str:
    compiled = inputs.device.type == "cpu" and inputs.dtype in (torch.float32, torch.float64)
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
