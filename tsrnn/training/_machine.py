"""The machine that trains: its device, and how many processes share the batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from tsrnn.contract import positive_integer

Start = Literal["popen", "spawn", "fork"]

# Names of Lightning, and how each starts its processes.
STRATEGIES: dict[str, Start] = {
    "ddp": "popen",
    "ddp_spawn": "spawn",
    "ddp_fork": "fork",
    "ddp_notebook": "fork",
}


def checked_device(device: Any) -> str:
    """Name of a device of this machine.

    Parameters
    ----------
    device : str
        "cpu", "cuda", "cuda:1" or "mps".

    Returns
    -------
    str
        With its number if it is a CUDA device: "cuda" is the current device of torch.

    Raises
    ------
    TypeError, ValueError
        If torch does not know the device or this machine does not have it.

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
    # torch keeps indices in eight bits: that of "cuda:999" is negative.
    if not 0 <= (place.index or 0) < counts[place.type]:
        raise ValueError(
            f"device={str(device)!r} must be one that torch can use; of this type it finds "
            f"{counts[place.type]} on this machine. Use another, such as device='cpu'"
        )
    if place.type == "cuda" and place.index is None:
        return f"cuda:{torch.cuda.current_device()}"  # where torch puts tensors of device "cuda"
    return "cpu" if place.type == "cpu" else str(place)


@dataclass(frozen=True)
class Processes:
    """Processes that train together, each on its part of the batches.

    Parameters
    ----------
    start : {"popen", "spawn", "fork"} or None
        How they are started; None is this process alone.
    count : int
        How many there are.

    Examples
    --------
    >>> from tsrnn.training import Processes
    >>> Processes()
    Processes(start=None, count=1)
    >>> Processes("spawn", 2).count
    2
    """

    start: Start | None = None
    count: int = 1


def checked_processes(strategy: Any, devices: Any, device: Any) -> Processes:
    """Processes that the arguments `strategy` and `devices` describe.

    Parameters
    ----------
    strategy : {"ddp", "ddp_spawn", "ddp_fork", "ddp_notebook"} or None
        "ddp" runs a script anew in every further process: all of them go through the whole script
        and end with the same forecaster. "ddp_spawn" starts processes for the training alone,
        from a script whose work stands behind ``if __name__ == "__main__"``; it copies the data
        to shared memory. "ddp_fork", also called "ddp_notebook", does so by a fork, from scripts
        and notebooks on Linux and macOS, before anything has used CUDA.
    devices : int or None
        How many processes; None is one.
    device : str
        Type of their devices.

    Returns
    -------
    Processes

    Raises
    ------
    ValueError, TypeError
        If the strategy is unknown, devices are no positive integer or need a strategy, or
        `device` names a single one.

    Examples
    --------
    >>> from tsrnn.training import checked_processes
    >>> checked_processes(None, None, "cpu")
    Processes(start=None, count=1)
    >>> checked_processes("ddp", 2, "cpu")
    Processes(start='popen', count=2)
    """
    count = 1 if devices is None else positive_integer("devices", devices)
    if strategy is None:
        if count > 1:
            raise ValueError(
                f"devices={count} needs a strategy: 'ddp' in a script, 'ddp_notebook' in a "
                "notebook; got strategy=None. Give one, or leave devices out"
            )
        return Processes()
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise ValueError(f"strategy must be None or one of {[*STRATEGIES]}; got {strategy!r}")
    if isinstance(device, str) and ":" in device:
        raise ValueError(
            f"strategy={strategy!r} takes the first devices of a type; got device={device!r}. Use "
            f"device={device.partition(':')[0]!r}"
        )
    return Processes(STRATEGIES[strategy], count)
