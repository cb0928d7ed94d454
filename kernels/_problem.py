"""A recurrence to run: a cell, its tensors, and the lengths of sequences in a padded batch.

A recurrence does not look ahead, so values after the end of a sequence change nothing before it:
engines that divide time run all sequences over all steps, with harmless values in the padding
(`without_ends`), and `cut` the results or `extend` the gradients.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from tsrnn.kernels._cell import Cell

_MARK = "_tsrnn_checked"  # attribute of checked lengths
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class Problem(NamedTuple):
    """A cell and the tensors that it runs on.

    Inputs have shape (B, T, m) if all units share them. Parameters of shape (R, p, K), a set for
    each group of B / R sequences, are for CPU kernels in time order only. Lengths are None if all
    have T.
    """

    cell: Cell
    inputs: Tensor  # (B, T, m, K)
    params: Tensor  # (p, K)
    initial: Tensor  # (B, n, K)
    lengths: Tensor | None = None  # (B,), int64

    @property
    def steps(self) -> int:
        """Number of steps T."""
        return self.inputs.shape[1]

    @property
    def ends(self) -> Tensor:
        """Lengths (B,), T if none are given."""
        if self.lengths is not None:
            return self.lengths
        batch, steps = self.inputs.shape[:2]
        return torch.full((batch,), steps, dtype=torch.int64, device=self.inputs.device)


def as_lengths(
    lengths: Tensor | Sequence[int] | None,
    batch: int,
    device: torch.device,
    steps: int | None = None,
) -> Tensor | None:
    """Lengths of the sequences of a padded batch as a tensor.

    Under `torch.compile` lengths are checked where the compiled recurrence runs.

    Parameters
    ----------
    lengths : integers of shape (B,) or None
    batch : int
        Number of sequences B.
    device : torch.device
        Device of the result.
    steps : int, optional
        Number of steps T, to check that lengths lie between 0 and T. Functions of this package
        do not check the result again.

    Returns
    -------
    Tensor of shape (B,), int64, or None
        None if no lengths are given, for whole sequences.

    Raises
    ------
    ValueError
        If they are not one integer a sequence, or one is out of range. On a CUDA device lengths are
        not read, so that the host does not wait: the range is then a device-side assertion, whose
        failure ends the process's work on the device.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import as_lengths
    >>> as_lengths([3, 1], 2, torch.device("cpu"))
    tensor([3, 1])
    """
    if lengths is None:
        return None
    if isinstance(lengths, Tensor):
        given = lengths
    else:
        try:
            given = torch.as_tensor(lengths)
        except (TypeError, ValueError, RuntimeError) as error:  # not a sequence of numbers
            raise ValueError(
                f"lengths must be {batch} integers, one a sequence; got {lengths!r}"
            ) from error
    if not batch and not given.numel():
        return torch.zeros(0, dtype=torch.int64, device=device)  # an empty list has no integer type
    if given.shape != (batch,) or given.dtype not in _INTEGERS:
        raise ValueError(
            f"lengths must be {batch} integers, one a sequence; got "
            f"{given.dtype} of shape {tuple(given.shape)}"
        )
    if steps is None or torch.compiler.is_compiling():
        return given.to(device, torch.int64)
    if is_checked(given, steps) and given.device == device:
        return given
    given = given.to(device if device.type == "cpu" else given.device, torch.int64)
    check_range(given, steps)
    # A copy is marked, since the caller may write to the original. From the host it is made
    # asynchronously.
    checked = given.to(device, copy=True, non_blocking=device.type == "cuda").detach()
    if not checked.is_inference():  # whose changes are not counted
        setattr(checked, _MARK, _mark(checked, steps))
    return checked


def is_checked(lengths: Tensor, steps: int) -> bool:
    """Return True if `as_lengths` has checked these lengths against this number of steps."""
    mark = getattr(lengths, _MARK, None)
    return mark is not None and mark == _mark(lengths, steps)


def _mark(lengths: Tensor, steps: int) -> tuple[int, int, int]:
    """Mark of checked lengths, lost by changes and copies."""
    return steps, lengths._version, id(lengths)


def check_range(lengths: Tensor, steps: int) -> None:
    """Raise unless all lengths lie between 0 and T, by a device-side assertion on CUDA devices."""
    lengths = over_replicates(lengths).flatten()
    if lengths.device.type == "cuda":
        within = (lengths.clamp(0, steps) == lengths).all()
        torch._assert_async(within, f"lengths must lie between 0 and T={steps}")
        return
    if isinstance(lengths, FakeTensor):  # it has a shape and no values
        return
    wrong = ((lengths < 0) | (lengths > steps)).nonzero().flatten().tolist()
    if wrong:
        raise ValueError(
            f"lengths must lie between 0 and T={steps}; got {lengths[wrong[0]].item()} for "
            f"sequence {wrong[0]}" + (f" and {len(wrong) - 1} more" if wrong[1:] else "")
        )


def over_replicates(x: Tensor) -> Tensor:
    """Unwrap the replicates of a tensor under `torch.vmap`, for checks and sizes.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        With one more axis for each `torch.vmap` of `x`.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import over_replicates
    >>> def less_the_largest(x):
    ...     return x - over_replicates(x).max()
    >>> torch.vmap(less_the_largest)(torch.tensor([[1, 2], [3, 4]]))
    tensor([[-3, -2],
            [-1,  0]])
    """
    while torch._C._functorch.is_batchedtensor(x):
        x = torch._C._functorch.get_unwrapped(x)
    return x


def without_padding(x: Tensor, lengths: Tensor | Sequence[int] | None) -> Tensor:
    """Write zeros after the end of each sequence of x (B, T, ...), which may hold anything there.

    For use before a matrix product, to keep NaN there out of the gradient of its weights
    (zero times NaN). Without lengths, x is returned unchanged; others must be integers from 0 to T.
    """
    given = as_lengths(lengths, x.shape[0], x.device, x.shape[1])
    if given is None:
        return x
    padding = torch.arange(x.shape[1], device=x.device) >= given[:, None]
    return x.masked_fill(padding.view(*padding.shape, *[1] * (x.ndim - 2)), 0.0)


def in_given_dtypes(device: torch.device) -> AbstractContextManager[object]:
    """Matrix products in the dtypes of their operands, regardless of `torch.autocast`."""
    kind = device.type
    # Not under compilation or export, where contexts would enter the graph.
    if torch.compiler.is_compiling() or not torch.amp.is_autocast_available(kind):
        return nullcontext()
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def in_arithmetic(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast a tensor rounded by `torch.autocast` to the dtype of the parameters of a recurrence.

    Tensors not in the dtype of autocast are returned unchanged. Autocast in float16 is refused: its
    largest number is 65504, which gradients exceed.
    """
    kind = x.device.type
    if not (torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)):
        return x
    low = torch.get_autocast_dtype(kind)
    if low == torch.float16:
        raise ValueError(
            "recurrences run under torch.autocast in bfloat16, not in float16, whose range "
            f"gradients exceed. Write torch.autocast({kind!r}, torch.bfloat16), or "
            "precision='bf16-mixed'"
        )
    return x.to(dtype) if x.dtype == low else x


def is_alive(lengths: Tensor, steps: int) -> Tensor:
    """Mask (B, T, 1, 1) of the steps before the end of their sequence."""
    return (torch.arange(steps, device=lengths.device) < lengths[:, None])[..., None, None]


def without_ends(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Values (B, T, ., .) with ones in the padding, where log, sqrt and division are smooth."""
    if lengths is None:
        return x
    return torch.where(is_alive(lengths, x.shape[1]), x, x.new_ones(()))


def of_all_fields(g_states: Tensor, states: Tensor) -> Tensor:
    """Gradient of all state fields from that of the first ones."""
    missing = states.shape[2] - g_states.shape[2]
    if not missing:
        return g_states
    shape = (*states.shape[:2], missing, states.shape[3])
    return torch.cat([g_states, g_states.new_zeros(shape)], 2)


def cut(
    states: Tensor, final: Tensor, initial: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """States with zeros after the ends, and the final state of each sequence."""
    if lengths is None:
        return states, final
    rows = torch.arange(len(states), device=states.device)
    last = states[rows, (lengths - 1).clamp(min=0)]
    final = torch.where((lengths > 0)[:, None, None], last, initial)
    return torch.where(is_alive(lengths, states.shape[1]), states, states.new_zeros(())), final


def extend(
    g_states: Tensor, g_final: Tensor, lengths: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of whole sequences: of states, of the last state, and what goes to the first.

    The gradient of a final state belongs to the step that it ends with.
    """
    if lengths is None:
        return g_states, g_final, torch.zeros_like(g_final)
    g_states = torch.where(is_alive(lengths, g_states.shape[1]), g_states, g_states.new_zeros(()))
    empty, nothing = (lengths == 0)[:, None, None], torch.zeros_like(g_final)
    rows = torch.arange(len(g_states), device=g_states.device)
    last = (lengths - 1).clamp(min=0)
    g_states[rows, last] += torch.where(empty, nothing, g_final)
    return g_states, nothing, torch.where(empty, g_final, nothing)
