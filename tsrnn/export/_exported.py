"""What an export gives back, says of itself, and how its file is written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tsrnn.export._program import Program
from tsrnn.forecasters import RecurrentForecaster

FORMAT = 1
METADATA = "tsrnn"  # the name under which files hold it

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Exported:
    """A program that was written, and what it has to be given of the series fitted to.

    Attributes
    ----------
    path : Path
    metadata : dict
        What the file says of itself, JSON values: names of columns, horizon, frequency, levels,
        and the shape of every input and output.
    ids : list
        Series that the forecaster remembers.
    memory : ndarray of shape (S, M)
        What the program carries of each of them. The rows of series stand by themselves: take
        those that are to be forecast, in any order. It is no part of the file; keep it with
        `numpy.save`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from tsrnn.export import Exported
    >>> exported = Exported(Path("model.onnx"), {"horizon": 6}, ["a", "b"], np.zeros((2, 9)))
    >>> chosen = [exported.ids.index("b")]
    >>> exported.memory[chosen].shape
    (1, 9)
    """

    path: Path
    metadata: dict[str, Any]
    ids: list[Any]
    memory: np.ndarray


def metadata_of(forecaster: RecurrentForecaster, program: Program) -> dict[str, Any]:
    """What a file says of itself."""
    layout, exog_names = forecaster._panel_shape
    targets, h = list(layout.target_names), program.settings.horizon
    columns, known = len(targets) + len(exog_names), list(forecaster.known_ahead_)
    size, levels = sum(program.shape.sizes), program.levels
    future = {"future": ["series", h, len(known)]} if known else {}
    ends = ("lower", "upper") if levels else ()
    return {
        "format": FORMAT,
        "version": version("tsrnn"),
        "forecaster": type(forecaster).__name__,
        "horizon": h,
        "freq": forecaster.freq_,
        "targets": targets,
        "exogenous": list(exog_names),
        "known_ahead": known,
        "levels": levels,
        "intervals": program.settings.intervals,
        "input_size": program.settings.input_size,
        "inputs": {
            "rows": ["series", "rows", columns],
            "lengths": ["series"],
            "memory": ["series", size],
        } | future,
        "outputs": {
            "forecast": ["series", h, len(targets)],
            **{end: ["series", h, len(targets), len(levels)] for end in ends},
            "memory_after": ["series", size],
        },
    }  # fmt: skip
