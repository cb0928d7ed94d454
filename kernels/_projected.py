"""A recurrence on projected inputs, with small projections inside the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tsrnn.kernels import _dense
from tsrnn.kernels._autograd import best_engine, run
from tsrnn.kernels._backend import is_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._cpu.time_order import prepare
from tsrnn.kernels._derived import projected_key, with_projection
from tsrnn.kernels._matrix_form import is_rolled
from tsrnn.kernels._problem import as_lengths, in_arithmetic, over_replicates, without_padding
from tsrnn.kernels._recurrence import check_cell, check_like, recurrence
from tsrnn.kernels._reference import is_small

# Inputs: a unit keeps m weights for each, and their gradients, in registers; with more inputs a
# matrix product is faster.
WIDEST_FUSED = 8
# Parameters of a unit, including its projection, as of 4 units of an LSTM with 8 inputs: a kernel
# with more takes long to compile.
MOST_FUSED = 208


def projected_recurrence(
    cell: Cell,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    params: Tensor,
    initial: Tensor,
    lengths: Tensor | Sequence[int] | None = None,
    engine: str = "auto",
) -> tuple[Tensor, Tensor]:
    r"""Run `cell` on the inputs :math:`u_t = W x_t + b`.

    The same as `recurrence` on ``torch.nn.functional.linear(x, weight, bias)``. With up
    to 8 inputs that need no gradient and small blocks, on the CPU, u and its gradient are never
    written: the kernel reads x and keeps the sums of the gradient of W in registers.

    Parameters
    ----------
    cell : Cell
    x : Tensor of shape (B, T, width)
    weight : Tensor of shape (m * K, width)
        Row ``i * K + k`` projects to input field i of unit k.
    bias : Tensor of shape (m * K,) or None
    params : Tensor of shape (p, K)
        With a first axis of R replicates, as in `weight` and `bias`, one for each group of B / R
        sequences; for CPU kernels in time order only.
    initial : Tensor of shape (B, n, K)
    lengths : integers of shape (B,), optional
        Steps to run of each sequence; x after the end is not read.
    engine : str, default "auto"
        As in `recurrence`.

    Returns
    -------
    outputs : Tensor of shape (B, T, cell.n_outputs, K)
        Output fields of the state after every step.
    final : Tensor of shape (B, n, K)

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, lengths lie outside 0 to T, or the engine cannot
        run the cell.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, projected_recurrence
    >>> x, weight, bias = torch.ones(1, 5, 3), torch.full((2 * 4, 3), 0.1), torch.zeros(2 * 4)
    >>> w, start = torch.zeros(4, 4), torch.zeros(1, 2, 4)
    >>> outputs, final = projected_recurrence(cells.para_rnn(2), x, weight, bias, w, start)
    >>> outputs.shape, bool(torch.allclose(final, torch.tensor(0.3).tanh()))
    (torch.Size([1, 5, 2, 4]), True)
    """
    check_cell(cell)
    if isinstance(x, Tensor) and isinstance(params, Tensor):
        x = in_arithmetic(x, params.dtype)
    _check_projection(cell, x, weight, bias, params, initial)
    *sets, _, units = params.shape
    batch, steps, width = x.shape
    lengths = as_lengths(lengths, batch, x.device, steps)
    if not _is_fused(cell, x, bias is not None, params, engine):
        # A matrix product follows `torch.autocast`, the recurrence does not.
        inputs = linear(without_padding(x, lengths), weight, bias).to(params.dtype)
        inputs = inputs.unflatten(-1, (cell.m, units))
        if sets:
            key = cell.key
            return run("sequential", key, inputs, params, initial, lengths, cell.n_outputs)[:2]
        return recurrence(cell, inputs, params, initial, lengths, engine, outputs_only=True)
    rows = weight.unflatten(-2, (cell.m, units)).mT.flatten(-3, -2)
    everything = [params, rows]
    if bias is not None:
        everything.append(bias.unflatten(-1, (cell.m, units)))
    key = projected_key(cell, width, bias is not None)
    outputs, final, _ = run(
        "sequential", key, x, torch.cat(everything, -2), initial, lengths, cell.n_outputs
    )
    return outputs, final


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Linear map :math:`W x + b`, for one model or for stacked replicates.

    Parameters
    ----------
    x : Tensor of shape (B, ..., width)
    weight : Tensor of shape (n, width)
        Or (R, n, width), one for each group of B / R rows of `x`.
    bias : Tensor of shape (n,), or (R, n), optional

    Returns
    -------
    Tensor of shape (B, ..., n)

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import linear
    >>> x, weight = torch.ones(4, 2), torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    >>> linear(x, weight).flatten().tolist()
    [3.0, 3.0, 7.0, 7.0]
    """
    if weight.ndim == 2:
        return torch.nn.functional.linear(x, weight, bias)
    rows = x.reshape(len(weight), -1, x.shape[-1])
    if bias is None:
        product = torch.bmm(rows, weight.mT)
    else:
        product = torch.baddbmm(bias[:, None], rows, weight.mT)
    return product.view(*x.shape[:-1], weight.shape[1])


def _is_fused(cell: Cell, x: Tensor, bias: bool, params: Tensor, engine: str) -> bool:
    """True if the projection is part of the kernel: narrow, on the CPU, in time order."""
    if engine not in ("auto", "sequential"):
        return False
    needs_gradient = over_replicates(x).requires_grad and torch.is_grad_enabled()
    if needs_gradient or x.device.type != "cpu" or not is_compiled(x.device, x.dtype):
        return False
    if not _can_be_fused(cell, x.shape[2], bias):
        return False
    # Under torch.compile cells cannot be traced, so the best engine is unknown.
    replicates = params.ndim == 3
    in_time_order = engine == "sequential" or replicates or torch.compiler.is_compiling()
    return in_time_order or best_engine(cell, x, params) == "sequential"


def _can_be_fused(cell: Cell, width: int, bias: bool) -> bool:
    """Return True if the CPU has one kernel for the cell with its projection."""
    parameters = cell.p + cell.m * (width + bias)
    unrolled = is_small(cell) and not is_rolled(cell)
    return unrolled and width <= WIDEST_FUSED and parameters <= MOST_FUSED


def _check_projection(
    cell: Cell, x: Tensor, weight: Tensor, bias: Tensor | None, params: Tensor, initial: Tensor
) -> None:
    if x.ndim != 3 or not (x.shape[1] and x.shape[2]) or not x.is_floating_point():
        raise ValueError(
            "x must be floating point numbers of shape (B, T, width) with T >= 1 and width >= 1; "
            f"got {x.dtype} of shape {tuple(x.shape)}"
        )
    if params.ndim not in (2, 3) or not params.shape[-1]:
        raise ValueError(
            f"params of cell {cell.name!r} must have shape ({cell.p}, K) with K >= 1; "
            f"got {tuple(params.shape)}"
        )
    batch, _, width = x.shape
    *sets, _, units = params.shape
    check_like(cell, "params", params, (*sets, cell.p, units), x)
    check_like(cell, "weight", weight, (*sets, cell.m * units, width), x)
    check_like(cell, "initial", initial, (batch, cell.n, units), x)
    if bias is not None:
        check_like(cell, "bias", bias, (*sets, cell.m * units), x)


def prepare_projected(
    cell: Cell,
    width: int,
    bias: bool,
    dtype: torch.dtype,
    engine: str = "auto",
    *,
    verbose: bool = False,
) -> None:
    """Compile the kernels of `projected_recurrence`, for inputs with and without gradient.

    `width` is the number of inputs a step, engines and `verbose` are as in `recurrence` and
    `prepare`; "reference" has no kernels. A ValueError tells of a cell without a compiled form in
    this dtype.
    """
    if engine == "reference":
        return
    if engine == "dense" or not is_small(cell):
        _dense.prepare(cell, dtype)
        return
    prepare(cell, dtype, verbose=verbose)
    if _can_be_fused(cell, width, bias):
        prepare(with_projection(cell, width, bias), dtype, verbose=verbose)
