"""Lengths of the sequences of a padded batch."""

from collections.abc import Sequence

import torch
from torch import Tensor

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def as_lengths(
    lengths: Tensor | Sequence[int] | None, batch: int, device: torch.device
) -> Tensor | None:
    """Lengths as an int64 tensor of shape (B,); None where all sequences are whole.

    Raises
    ------
    ValueError
        If they are not one integer a sequence.
    """
    if lengths is None:
        return None
    given = lengths.to(device) if isinstance(lengths, Tensor) else _numbers(lengths, batch, device)
    if not batch and not given.numel():
        return given.new_zeros(0, dtype=torch.int64)
    if given.shape != (batch,) or given.dtype not in _INTEGERS:
        raise ValueError(
            f"lengths must be {batch} integers, one a sequence; got "
            f"{given.dtype} of shape {tuple(given.shape)}"
        )
    return given.to(torch.int64)


def _numbers(lengths: Sequence[int], batch: int, device: torch.device) -> Tensor:
    try:
        return torch.as_tensor(lengths, device=device)
    except (TypeError, ValueError, RuntimeError) as error:  # of what is no sequence of numbers
        raise ValueError(
            f"lengths must be {batch} integers, one a sequence; got {lengths!r}"
        ) from error


def check_range(lengths: Tensor, steps: int) -> None:
    """Raise unless all lengths lie between 0 and T."""
    if lengths.is_cuda and torch.cuda.is_current_stream_capturing():
        return  # their values cannot be read while a graph is captured
    wrong = ((lengths < 0) | (lengths > steps)).nonzero().flatten().tolist()
    if wrong:
        raise ValueError(
            f"lengths must lie between 0 and T={steps}; got {lengths[wrong[0]].item()} for "
            f"sequence {wrong[0]}" + (f" and {len(wrong) - 1} more" if wrong[1:] else "")
        )


def whole(lengths: Tensor | None, inputs: Tensor) -> Tensor:
    """Lengths as they are, all of T of inputs (B, T, ...) where there are none."""
    if lengths is not None:
        return lengths
    batch, steps = inputs.shape[:2]
    return torch.full((batch,), steps, dtype=torch.int64, device=inputs.device)


def is_alive(lengths: Tensor, steps: int) -> Tensor:
    """Which steps (B, T, 1, 1) come before the end of their sequence."""
    return (torch.arange(steps, device=lengths.device) < lengths[:, None])[..., None, None]


def without_padding(x: Tensor, lengths: Tensor | Sequence[int] | None) -> Tensor:
    """Write zeros after the end of each sequence, where `x` may hold anything.

    For use before a matrix product, which would carry NaN from there to the gradient
    of its weights, as zero times NaN.

    Parameters
    ----------
    x : Tensor of shape (B, T, ...)
    lengths : integers of shape (B,) or None
        Where it is None there is no padding, and `x` comes back as it is.

    Returns
    -------
    Tensor of the shape of x

    Raises
    ------
    ValueError
        If lengths are not one integer a sequence between 0 and T.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import without_padding
    >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, float("nan"), float("nan")]])
    >>> without_padding(x, [3, 1])
    tensor([[1., 2., 3.],
            [4., 0., 0.]])
    """
    given = as_lengths(lengths, x.shape[0], x.device)
    if given is None:
        return x
    if not torch.compiler.is_compiling():
        check_range(given, x.shape[1])
    padding = torch.arange(x.shape[1], device=x.device) >= given[:, None]
    return x.masked_fill(padding.view(*padding.shape, *[1] * (x.ndim - 2)), 0.0)
