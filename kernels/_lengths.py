"""Lengths of the sequences of a padded batch."""

from collections.abc import Sequence

import torch
from torch import Tensor

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def checked_lengths(
    lengths: Tensor | Sequence[int] | None, batch: int, steps: int, device: torch.device
) -> Tensor:
    """Lengths as an int64 tensor of shape (B,); all of T where they are not given.

    Raises
    ------
    ValueError
        If they are not one integer a sequence between 0 and T.
    """
    if lengths is None:
        return torch.full((batch,), steps, dtype=torch.int64, device=device)
    given = torch.as_tensor(lengths, device=device)
    if not batch and not given.numel():
        return given.new_zeros(0, dtype=torch.int64)
    if given.shape != (batch,) or given.dtype not in _INTEGERS:
        raise ValueError(
            f"lengths must be {batch} integers, one a sequence; got "
            f"{given.dtype} of shape {tuple(given.shape)}"
        )
    wrong = ((given < 0) | (given > steps)).nonzero().flatten().tolist()
    if wrong:
        raise ValueError(
            f"lengths must lie between 0 and T={steps}; got {given[wrong[0]].item()} for "
            f"sequence {wrong[0]}" + (f" and {len(wrong) - 1} more" if wrong[1:] else "")
        )
    return given.to(torch.int64)


def without_padding(x: Tensor, lengths: Tensor | Sequence[int] | None) -> Tensor:
    """Write zeros after the end of each sequence, where `x` may hold anything.

    For use before a matrix product, which would carry NaN from there to the gradient
    of its weights, as zero times NaN.

    Parameters
    ----------
    x : Tensor of shape (B, T, ...)
    lengths : integers of shape (B,), optional
        Where it is None there is no padding, and `x` comes back as it is.

    Returns
    -------
    Tensor of the shape of x

    Raises
    ------
    ValueError
        If lengths are not one integer a sequence between 0 and T.
    """
    if lengths is None:
        return x
    steps = checked_lengths(lengths, x.shape[0], x.shape[1], x.device)
    padding = torch.arange(x.shape[1], device=x.device) >= steps[:, None]
    return x.masked_fill(padding.view(*padding.shape, *[1] * (x.ndim - 2)), 0.0)
