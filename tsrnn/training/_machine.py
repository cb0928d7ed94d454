"""Device and processes of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from tsrnn.contract import positive_integer

Start = Literal["popen", "spawn", "fork"]

# Lightning's name of a strategy -> start method of its processes.
STRATEGIES: dict[str, Start] = {
    "ddp": "popen",
    "ddp_spawn": "spawn",
    "ddp_fork": "fork",
    "ddp_notebook": "fork",
}


def checked_device(device: Any) -> str:
    """Validate the name of a device of this machine: "cpu", "cuda", "cuda:1" or "mps".

    A CUDA device is returned with its index; "cuda" becomes torch's current device.
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
    # torch stores indices in eight bits: the index of "cuda:999" is negative.
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
    """Processes that train together, each on its share of the batches.

    Parameters
    ----------
    start : {"popen", "spawn", "fork"} or None
        Start method; None for this process only.
    count : int
        Number of processes.

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
    """Validate the arguments `strategy` and `devices`, the number of processes (None for one).

    "ddp" runs the whole script in every process, and all end with the same forecaster. "ddp_spawn"
    starts processes for the training only and copies the data to shared memory; the script needs
    ``if __name__ == "__main__"``. "ddp_fork" and "ddp_notebook" fork, from scripts and notebooks on
    Linux and macOS, before CUDA is used. A device with an index refuses several processes.
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
