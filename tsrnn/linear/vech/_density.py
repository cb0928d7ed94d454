r"""Gaussian log-density of e with covariance H, and its derivatives with respect to (e, vech H).

.. math:: l = -\tfrac12 (n \log 2 \pi + \log |H| + e' H^{-1} e)

Time is the last axis of all arrays here: arithmetic by matrix elements is fastest this way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tsrnn.linear.vech._structure import half, n_variables, pairs, places


class Density(NamedTuple):
    """Log-density and its derivatives, by time."""

    value: np.ndarray  # (T,)
    precision: np.ndarray  # K, the inverse of H, (n, n, T)
    scaled: np.ndarray  # v = K e, minus the derivative with respect to e, (n, T)
    by_h: np.ndarray  # derivative with respect to vech H, (N, T)


def gaussian_density(e: np.ndarray, h: np.ndarray) -> Density | None:
    """Density of errors (n, T) with vech covariances (N, T); None if any is not definite."""
    n = len(e)
    factored = _inverse_factor(h[places(n)])
    if factored is None:
        return None
    inverse, pivots = factored
    weighted = inverse / pivots[:, None]
    precision = np.einsum("kit,kjt->ijt", weighted, inverse)
    scaled = np.einsum("ijt,jt->it", precision, e)
    value = -0.5 * (n * math.log(2 * math.pi) + np.log(pivots).sum(0) + (e * scaled).sum(0))
    rows, columns = pairs(n)
    by_h = half(n)[:, None] * (scaled[rows] * scaled[columns] - precision[rows, columns])
    return Density(value, precision, scaled, by_h)


def _inverse_factor(H: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Inverse of the unit lower L of H = L D L', and D; None unless D is positive."""
    n = len(H)
    lower, pivots = np.zeros_like(H), np.empty_like(H[0])
    if not np.isfinite(H).all():
        return None
    for j in range(n):
        rest = H[j:, j].copy()
        for k in range(j):
            rest -= lower[j:, k] * (lower[j, k] * pivots[k])
        if not rest[0].min() > 0:  # NaN is refused, too
            return None
        pivots[j], lower[j:, j] = rest[0], rest / rest[0]
    if not np.isfinite(pivots).all():
        return None
    inverse = np.zeros_like(H)
    for i in range(n):
        inverse[i, i] = 1.0
        for k in range(i):
            inverse[i, : k + 1] -= lower[i, k] * inverse[k, : k + 1]
    return inverse, pivots


def information(precision: np.ndarray) -> np.ndarray:
    r"""Expected curvature in vech H, (N, N, T): :math:`\tfrac12 tr(K E_a K E_b)`."""
    n = len(precision)
    rows, columns = pairs(n)
    products = precision[rows[:, None], rows] * precision[columns[:, None], columns]
    products += precision[rows[:, None], columns] * precision[columns[:, None], rows]
    products *= np.outer(half(n), half(n))[..., None]
    return products


def curvature(dens: Density) -> tuple[np.ndarray, np.ndarray]:
    """Minus second derivatives by vech H, (N, N, T), and by vech H and e, (N, n, T).

    The one by e is the precision.
    """
    image = _images(dens.scaled)
    cross = np.einsum("ait,ijt->ajt", image, dens.precision)
    by_h = np.einsum("ajt,bjt->abt", cross, image) - information(dens.precision)
    return by_h, -cross


def _images(vectors: np.ndarray) -> np.ndarray:
    """Products E_a v (N, n, T) of the symmetric basis matrices of vech with vectors (n, T)."""
    rows, columns = pairs(len(vectors))
    order = np.arange(len(rows))
    result = np.zeros((len(rows), *vectors.shape))
    result[order, rows] = vectors[columns]
    result[order, columns] = vectors[rows]
    return result


def squares(e: np.ndarray) -> np.ndarray:
    """Vech of e e', (N, T), of errors (n, T)."""
    rows, columns = pairs(len(e))
    return e[rows] * e[columns]


def square_slopes(e: np.ndarray) -> np.ndarray:
    """Derivatives (N, n, T) of vech(e e') with respect to e (n, T)."""
    return _images(e) / half(len(e))[:, None, None]


def symmetric(adjoint: np.ndarray) -> np.ndarray:
    """Second derivative (n, n, T) of a' vech(e e') with respect to e, for adjoints a (N, T)."""
    n = n_variables(len(adjoint))
    return (adjoint / half(n)[:, None])[places(n)]
