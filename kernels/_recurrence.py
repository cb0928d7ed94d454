"""Recurrence of a cell over a batch of sequences, on the chosen engine."""

from collections.abc import Sequence
from typing import Literal, overload

import torch
from torch import Tensor

from tsrnn.kernels._autograd import run
from tsrnn.kernels._backend import DTYPES, is_compiled
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._convergence import Convergence, explained
from tsrnn.kernels._matrix_form import BlockStep
from tsrnn.kernels._problem import Problem, as_lengths, in_arithmetic
from tsrnn.kernels._reference import LARGEST_SMALL_BLOCK, is_small, reference
from tsrnn.kernels._time_parallel import boundary_steps
from tsrnn.kernels._trace import is_linear

NAMES = ("auto", "reference", "sequential", "scan", "shooting", "newton", "dense")
_COMPILED = ("sequential", "scan", "shooting")
_IN_TIME_ORDER = ("sequential", "dense", "reference")


@overload
def recurrence(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    engine: str = "auto",
    *,
    outputs_only: bool = False,
    full_output: Literal[False] = False,
) -> tuple[Tensor, Tensor]: ...


@overload
def recurrence(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    engine: str = "auto",
    *,
    outputs_only: bool = False,
    full_output: Literal[True],
) -> tuple[Tensor, Tensor, Convergence]: ...


def recurrence(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor | None = None,
    lengths: Tensor | Sequence[int] | None = None,
    engine: str = "auto",
    *,
    outputs_only: bool = False,
    full_output: bool = False,
) -> tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Convergence]:
    r"""Run ``state_t = step(state_{t-1}, inputs_t, params)`` over time for K units at once.

    "auto" takes "dense" for blocks of more than 8 states and "reference" without kernels for the
    device or dtype; on CUDA devices it refuses float16. Else it takes "sequential", unless chunks
    of time pay for few lanes and long sequences: on the CPU a single lane of 65,536 steps of a cell
    with gates. On a CUDA device "newton" reads its convergence from the device, so that a graph
    cannot capture it; other engines read nothing, except for the warning of ``full_output=True``.

    Results of more than a megabyte on the CPU are in reused memory, which torch cannot enlarge: as
    for tensors from `torch.from_numpy`, ``resize_`` to a larger size raises RuntimeError. Use a
    ``clone`` for that.

    Newton's method may need one iteration for each chunk or step. Lanes that have not converged
    after a dozen, or 48 with a `structure` that drops entries, run in time order instead and are
    marked in `convergence`: results are always exact.

    Derivatives exist up to the order of those of the cell. First derivatives are kernels; higher
    ones run the backward pass as a recurrence of its own.

    Compiled functions are within a few units in the last place of torch's. Gradients of
    `params` are summed over sequences in a fixed order, so that they are bit-equal for any
    number of threads; those of "dense" are matrix products of torch, reproducible for a given
    number of threads.

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
        zero, inputs there are not read, and their gradients are zero. T by default.
        See :func:`as_lengths` for the checks.
    engine : str
        Method; all engines give the same numbers up to rounding.

        - "sequential": in time order, compiled, lanes (B x K) side by side.
        - "scan": parallel in time for cells that are linear in their state.
        - "shooting": parallel in time for any cell, Newton's method on the boundaries of
          chunks; for long sequences with few lanes.
        - "newton": parallel in time for any cell, Newton's method on every step
          (Danieli et al., 2025), in torch; for study, on any device.
        - "dense": a matrix product a step, for cells of large blocks.
        - "reference": a loop in torch, for any device, dtype and cell.
        - "auto", the default: see Notes.

        "sequential", "scan" and "shooting" run float32 and float64, and on CUDA devices also
        bfloat16, with float32 arithmetic.
    outputs_only : bool, default False
        Return only the first ``cell.n_outputs`` fields of the states, the outputs of a layer, as
        a view that must not be modified in place. The backward pass then moves less memory.
    full_output : bool, default False
        Return the convergence of a time-parallel engine.

    Returns
    -------
    states : Tensor of shape (B, T, n, K)
        State after every step; (B, T, cell.n_outputs, K) with ``outputs_only=True``.
    final : Tensor of shape (B, n, K)
        State after the last step of each sequence.
    convergence : Convergence
        With ``full_output=True`` only.

    Raises
    ------
    ValueError
        If shapes, dtypes or devices do not fit, the engine is unknown or cannot run the
        cell there, or the cell has no compiled form and the engine needs one.

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
    if isinstance(inputs, Tensor) and isinstance(params, Tensor):
        inputs = in_arithmetic(inputs, params.dtype)
    _check_tensors(cell, inputs, params, initial)
    for name, value in (("outputs_only", outputs_only), ("full_output", full_output)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False; got {value!r}")
    batch, steps, _, units = inputs.shape
    if initial is None:
        initial = inputs.new_zeros(batch, cell.n, units)
    steps_of_each = as_lengths(lengths, batch, inputs.device, steps)
    fields = cell.n_outputs if outputs_only else cell.n
    chosen = _checked_engine(engine, cell, inputs)
    if chosen == "reference":
        states, final = reference(Problem(cell, inputs, params, initial, steps_of_each))
        states = states[:, :, :fields]
        convergence = None
    else:
        states, final, convergence = run(
            chosen, cell.key, inputs, params, initial, steps_of_each, fields
        )
    if not full_output:
        return states, final
    if convergence is None:
        return states, final, Convergence.exact(initial)
    # Reading `fell_back` would end a capture.
    is_readable = not (inputs.is_cuda and torch.cuda.is_current_stream_capturing())
    if chosen not in _IN_TIME_ORDER and not torch.compiler.is_compiling() and is_readable:
        problem = Problem(cell, inputs, params, initial, steps_of_each)
        chunk = 1 if chosen == "newton" else boundary_steps(cell, inputs)
        convergence = explained(convergence, problem, final, chunk)
    return states, final, convergence


def _check_tensors(cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor | None) -> None:
    check_cell(cell)
    for name, tensor in (("inputs", inputs), ("params", params), ("initial", initial)):
        if not (isinstance(tensor, Tensor) or (initial is None and name == "initial")):
            raise ValueError(f"{name} must be a torch tensor; got a {type(tensor).__name__}")
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


def check_cell(cell: object) -> None:
    """Raise unless `cell` is a Cell."""
    if not isinstance(cell, Cell):
        raise ValueError(f"cell must be a tsrnn.kernels.Cell; got {cell!r}")


def check_like(
    cell: Cell, name: str, tensor: Tensor, shape: tuple[int, ...], inputs: Tensor
) -> None:
    """Raise unless a tensor has the given shape and the dtype and device of the inputs."""
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


def check_engine(engine: str, cell: Cell, called: str | None = None) -> None:
    """Refuse an engine that cannot run a cell on any device; the message names another that can.

    `called` describes the cell in the message, such as "cell='lstm'"; by default its name.
    """
    if not isinstance(engine, str) or engine not in NAMES:
        raise ValueError(f"engine must be one of {NAMES}; got {engine!r}")
    words = f"cell {cell.name!r}" if called is None else called
    if engine in _COMPILED and not is_small(cell):
        raise ValueError(
            f"engine {engine!r} runs matrices of up to {LARGEST_SMALL_BLOCK} rows; those of "
            f"{words} are larger. Use engine='dense'"
        )
    if engine == "dense" and not isinstance(cell.step, BlockStep):
        raise ValueError(
            f"engine 'dense' runs cells in matrix form, such as those of MatrixForm.block; {words} "
            "has none. Use engine='sequential'"
        )
    # Cells cannot be traced under torch.compile, so linearity is not checked there.
    if engine == "scan" and not torch.compiler.is_compiling() and not is_linear(cell):
        raise ValueError(
            f"engine 'scan' runs cells that are linear in their state; {words} is not. Use "
            "engine='shooting'"
        )


def _checked_engine(engine: str, cell: Cell, inputs: Tensor) -> str:
    """Engine to run, possibly "auto"; raise if it cannot run here."""
    check_engine(engine, cell)
    compiled, small = is_compiled(inputs.device, inputs.dtype), is_small(cell)
    # Blocks too large to unroll have one engine for all dtypes.
    nothing_better = inputs.is_complex() or (not compiled and small)
    if engine == "auto" and inputs.device.type == "cuda" and inputs.dtype == torch.float16:
        raise ValueError(
            "there are no kernels in float16, whose range gradients exceed; got engine='auto' on "
            f"{inputs.device}. Use bfloat16 or float32, torch.autocast in bfloat16 around float32, "
            "or engine='reference', a loop in torch that is slow on a GPU"
        )
    if engine == "reference" or (engine == "auto" and nothing_better):
        return "reference"
    if inputs.is_complex():
        raise ValueError(
            f"complex inputs run with engine='reference' only; got {inputs.dtype} with "
            f"engine={engine!r}. Write real and imaginary part as fields, as cells.lru() does"
        )
    if engine in _COMPILED and not compiled:
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES["cpu"])
        raise ValueError(
            f"engine {engine!r} runs {known} on the CPU, and bfloat16 too on CUDA devices; got "
            f"{inputs.dtype} on {inputs.device}. Use engine='reference' there"
        )
    if engine == "newton" and torch.compiler.is_compiling() and not small:
        raise ValueError(
            f"engine 'newton' of blocks as large as those of cell {cell.name!r} does not run "
            "under torch.compile. Use engine='dense'"
        )
    return engine
