"""Estimates and memory as JSON values and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.linear._estimates import BY_UNIT, Estimates
from tsrnn.linear._memory import LinearMemory

_ESTIMATES, STATE, _SCALE = "estimates.", "state.", "target_scale"


def fitted_header(estimates: Estimates) -> dict[str, Any]:
    """JSON values of the estimates."""
    return {
        "names": list(estimates.names),
        "messages": {str(i): list(own) for i, own in enumerate(estimates.messages) if own},
    }


def fitted_arrays(estimates: Estimates, memory: LinearMemory) -> dict[str, np.ndarray]:
    """Arrays of estimates and memory; ids and last times are kept elsewhere."""
    own = {_ESTIMATES + name: getattr(estimates, name) for name in BY_UNIT}
    state = {STATE + name: array for name, array in memory.arrays.items()}
    arrays = own | state | {_SCALE: memory.target_scale}
    return {name: array for name, array in arrays.items() if array is not None}


def estimates_shapes(n_units: int, k: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Dtype and shape of the arrays of the estimates of so many units and parameters."""
    matrices = dict.fromkeys(("hessian", "opg", "information"), ("float64", (n_units, k, k)))
    rows = dict.fromkeys(("params", "gradient"), ("float64", (n_units, k)))
    counts = dict.fromkeys(("n_obs", "iterations", "starts", "agreement"), ("int64", (n_units,)))
    shapes = matrices | rows | counts
    shapes |= {
        "loglik": ("float64", (n_units,)),
        "converged": ("bool", (n_units,)),
        "fixed": ("bool", (n_units, k)),
    }
    return {_ESTIMATES + name: shape for name, shape in shapes.items()}


def revived_estimates(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Estimates:
    """The estimates of which `fitted_header` and `fitted_arrays` hold the parts."""
    own = {name: arrays.get(_ESTIMATES + name) for name in BY_UNIT}
    said = header["messages"]
    messages = tuple(tuple(said.get(str(i), ())) for i in range(len(arrays[f"{_ESTIMATES}params"])))
    return Estimates(names=tuple(header["names"]), messages=messages, **own)  # type: ignore[arg-type]


def revived_memory(
    arrays: dict[str, np.ndarray], ids: pd.Index, last_times: np.ndarray
) -> LinearMemory:
    """The memory of which `fitted_arrays` holds the arrays."""
    state = {
        name.removeprefix(STATE): array for name, array in arrays.items() if name.startswith(STATE)
    }
    return LinearMemory(ids, last_times, arrays[_SCALE], state)
