"""Where the time of a call goes: own seconds of functions by the package that they stand in."""

from __future__ import annotations

import cProfile
import pstats
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import lightning
import numpy as np
import pandas as pd
import scipy
import torch

import tsrnn
from tsrnn import datasets, kernels

REST = "the rest"
# The first place that a file stands below is its part.
PLACES = {
    "kernels": Path(kernels.__file__).parent,
    "datasets": Path(datasets.__file__).parent,
    "tsrnn": Path(tsrnn.__file__).parent,
    "torch": Path(torch.__file__).parent,
    "Lightning": Path(lightning.__file__).parent,
    "numpy, scipy, pandas": Path(np.__file__).parent,
    "scipy": Path(scipy.__file__).parent,
    "pandas": Path(pd.__file__).parent,
}
SAME = {"scipy": "numpy, scipy, pandas", "pandas": "numpy, scipy, pandas"}


def seconds_by_part(work: Callable[[], object]) -> dict[str, float]:
    """Seconds of a call by part, largest first; rooms of tsrnn are parts of their own.

    A function of C counts for those that call it. The profiler takes time with every call of a
    function of Python, so that parts of many short ones look longer than they are.
    """
    profile = cProfile.Profile()
    profile.runcall(work)
    parts: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if file != "~":
            parts[part_of(file)] += own
        else:
            for (caller, _, _), (_, _, seconds, _) in callers.items():
                parts[part_of(caller)] += seconds
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def part_of(file: str) -> str:
    """Room of tsrnn or package of a file."""
    for name, place in PLACES.items():
        if Path(file).is_relative_to(place):
            inside = Path(file).relative_to(place).parts
            return f"tsrnn.{inside[0]}" if name == "tsrnn" else SAME.get(name, name)
    return REST


def part_rows(parts: dict[str, float], per: int = 1) -> list[list[str]]:
    """Rows of a table: part, milliseconds and share; of parts below a percent as one."""
    total = sum(parts.values())
    shown = {name: s for name, s in parts.items() if s >= 0.01 * total and name != REST}
    shown[REST] = total - sum(shown.values())
    shown["all"] = total
    return [[name, f"{1e3 * s / per:.1f}", f"{100 * s / total:.0f} %"] for name, s in shown.items()]
