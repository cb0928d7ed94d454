"""Where a search ended, and the directions in which parameters are free there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._presample import persistence_weights


class Found(NamedTuple):
    """Where the search for N standardised units ended.

    `dropped` is the parameter that the others imply where the persistence is held at one,
    else -1. `kinked` are those that ended on a kink of the likelihood. `agreement` of the `starts`
    that were tried came close to the highest value.
    """

    params: np.ndarray
    value: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray
    dropped: np.ndarray
    kinked: np.ndarray
    starts: np.ndarray
    agreement: np.ndarray


def better(one: Found, other: Found) -> Found:
    """Whichever of two ends is higher, unit by unit."""
    higher = other.value > one.value
    return Found(*(
        np.where(higher.reshape(-1, *(1,) * (a.ndim - 1)), b, a)
        for a, b in zip(one, other, strict=True)
    ))  # fmt: skip


def chosen(found: Found, units: np.ndarray) -> Found:
    """Ends of some units, by number."""
    return Found(*(part[units] for part in found))


def replaced(found: Found, units: np.ndarray, new: Found) -> Found:
    """Ends with those of some units changed."""
    whole = Found(*(part.copy() for part in found))
    for all_, some in zip(whole, new, strict=True):
        all_[units] = some
    return whole


def reductions(model: Model, found: Found) -> np.ndarray:
    """Derivatives (N, k, k) of the parameters by those that are free, the others following.

    What follows is gamma where alpha + gamma is held at zero, and a parameter of the variance
    where the persistence is held at one.
    """
    n, k = found.params.shape
    result = np.tile(np.eye(k), (n, 1, 1))
    alpha = np.arange(k)[model.shock_coefficients(0)]
    for s in range(1, 1 if model.vol.log else len(model.vol.coefficients)):
        for a, gamma in zip(alpha, np.arange(k)[model.shock_coefficients(s)], strict=True):
            held = found.at_bound[:, gamma]
            result[held, gamma] = -np.eye(k)[a]
    weight = persistence_weights(model)
    for i in np.flatnonzero(found.dropped >= 0):
        j = found.dropped[i]
        result[i, j] = -(np.where(np.arange(k) == j, 0.0, weight) @ result[i]) / weight[j]
    return result
