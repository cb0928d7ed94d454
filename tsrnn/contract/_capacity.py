"""Memory of the machine, and the refusal of work that would not fit in it."""

from __future__ import annotations

import os
from pathlib import Path

UNKNOWN = 2**40  # bytes, where the system does not say: more than most machines have
CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")  # limit of a container


def check_fits(asked: str, n_bytes: float, advice: str) -> None:
    """Refuse work whose arrays would not fit in the memory of this machine.

    Parameters
    ----------
    asked : str
        What is asked for and of how much data, the beginning of the message.
    n_bytes : float
        Estimate of the memory that it takes, of which only the size counts.
    advice : str
        What to do, the end of the message.

    Raises
    ------
    ValueError
        If there is less memory.

    Examples
    --------
    >>> from tsrnn.contract import check_fits
    >>> check_fits("h=12 steps of 3 series", 3 * 12 * 8, "Take a smaller h")
    >>> check_fits("h=10**15 steps of 3 series", 3e15 * 8, "Take a smaller h")
    Traceback (most recent call last):
        ...
    ValueError: h=10**15 steps of 3 series would take about 22,000 TiB of memory...
    """
    available = _memory()
    if n_bytes > available:
        raise ValueError(
            f"{asked} would take about {_shown(n_bytes)} of memory; this machine has "
            f"{_shown(available)}. {advice}"
        )


def _memory() -> float:
    """Bytes of memory that this process may use at most."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN
    try:
        return min(physical, int(CONTROL_GROUP.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return physical


def _shown(n_bytes: float) -> str:
    """Two digits of a number of bytes."""
    unit = "TiB" if n_bytes >= 2**40 else "GiB"
    value = n_bytes / (2**40 if unit == "TiB" else 2**30)
    return f"{float(f'{value:.2g}'):,.10g} {unit}"
