"""Hypotheses as users state them, and models that may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._memory import LinearMemory


def restriction_matrix(restrictions: Any, names: Sequence[str]) -> np.ndarray:
    """Linear restrictions as a matrix (J, k), from names of parameters or a matrix.

    Raises
    ------
    ValueError
        If a name is unknown, or there are none.
    """
    if isinstance(restrictions, str):
        restrictions = [restrictions]
    if np.ndim(restrictions) == 0 or len(restrictions) == 0:
        raise ValueError(
            f"restrictions must be names of parameters, some of {tuple(names)}, or a matrix with a "
            f"column for each; got {restrictions!r}"
        )
    if not all(isinstance(item, str) for item in restrictions):
        return np.atleast_2d(np.asarray(restrictions, float))
    unknown = [name for name in restrictions if name not in names]
    if unknown:
        raise ValueError(f"restrictions must name some of {tuple(names)}; got {unknown}")
    return np.eye(len(names))[[names.index(name) for name in restrictions]]


def restriction_values(values: Any, n: int) -> np.ndarray:
    """Values (n,) that restrictions give; one is for all.

    Raises
    ------
    ValueError
        If there are neither one nor as many as restrictions.
    """
    array = np.asarray(values, float)
    if array.shape not in {(), (n,)}:
        raise ValueError(
            f"values must be one number or {n}, one for each restriction; got shape {array.shape}"
        )
    return np.broadcast_to(array, n)


def check_same_data(
    ours: pd.Index, theirs: pd.Index, our_memory: LinearMemory, their_memory: LinearMemory
) -> None:
    """Refuse models of other units or other values.

    Raises
    ------
    ValueError
    """
    if not ours.equals(theirs):
        raise ValueError(
            f"both models must be fitted to the same series; the units of the one are "
            f"{list(ours[:3])}..., of the other {list(theirs[:3])}..."
        )
    scales = our_memory.target_scale, their_memory.target_scale
    if not np.allclose(*scales, rtol=1e-9, atol=0, equal_nan=True):
        raise ValueError("both models must be fitted to the same values; these differ")


def check_same_sample(units: pd.Index, ours: Estimates, theirs: Estimates) -> None:
    """Refuse likelihoods of other rows, such as those that lags leave.

    Raises
    ------
    ValueError
    """
    differ = np.flatnonzero((ours.n_obs != theirs.n_obs) & ours.fitted & theirs.fitted)
    if len(differ):
        i = differ[0]
        raise ValueError(
            f"both likelihoods must be of the same observations; in {len(differ)} of {len(units)} "
            f"units, first {units[i]!r}, the one has {ours.n_obs[i]} and the other "
            f"{theirs.n_obs[i]}. Fit both to the same rows (lags and differences drop the first "
            "ones)"
        )


def check_same_likelihood(ours: dict[str, str], theirs: dict[str, str]) -> None:
    """Refuse likelihoods of other conventions, whose values do not compare.

    Raises
    ------
    ValueError
    """
    if ours != theirs:
        raise ValueError(
            f"both likelihoods must follow the same conventions; they are {ours} and {theirs}"
        )
