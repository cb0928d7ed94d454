"""The argument about the machine: where to train."""

from __future__ import annotations

from typing import Any

import torch


def checked_device(device: Any) -> str:
    """Name of a device that is there.

    Parameters
    ----------
    device : str
        "cpu", "cuda", "cuda:1" or "mps".

    Returns
    -------
    str
        With its number, if it is of CUDA: "cuda" is the current device of torch.

    Raises
    ------
    TypeError, ValueError
        If torch does not know it or it is not on this machine.

    Examples
    --------
    >>> from tsrnn.training import checked_device
    >>> checked_device("cpu")
    'cpu'
    """
    if not isinstance(device, str):
        raise TypeError(f"device must be a name such as 'cpu' or 'cuda'; got {device!r}")
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device must be 'cpu', 'cuda' or 'mps'; got {device!r}") from error
    counts = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }
    if place.type not in counts:
        raise ValueError(f"device must be 'cpu', 'cuda' or 'mps'; got {device!r}")
    if (place.index or 0) >= counts[place.type]:
        raise ValueError(
            f"device={str(device)!r} must be one that torch can use; of this type it finds "
            f"{counts[place.type]} on this machine. Use another, such as device='cpu'"
        )
    if place.type == "cuda" and place.index is None:
        return f"cuda:{torch.cuda.current_device()}"  # the one that torch's tensors go to
    return "cpu" if place.type == "cpu" else str(place)
