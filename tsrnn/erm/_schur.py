"""Real Schur forms: diagonal blocks put into groups, and groups decoupled."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

__all__ = ["apart", "bases", "grouped", "triangular"]

LARGEST = 1e150  # entry of a solution whose square does not overflow


def triangular(T: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace each 2 x 2 block by the nearest with a double real eigenvalue, upper triangular."""
    for row, rows in _units(T):
        if rows == 1:
            continue
        pair, swap = slice(row, row + 2), [row + 1, row]
        if abs(T[row, row + 1]) < abs(T[row + 1, row]):
            T[:, pair] = T[:, swap]
            T[pair] = T[swap]
            Q[:, pair] = Q[:, swap]
        T[row + 1, row] = 0.0
    return T, Q


def grouped(T: np.ndarray, Q: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Reorder a Schur form group by group from the top; None where that fails."""
    for top in range(0, len(T) - size, size):
        target = top
        for row, rows in _nearest_units(T[top:, top:], size):
            if top + row != target:
                T, Q, info = lapack.dtrexc(T, Q, top + row + 1, target + 1)
                if info:
                    return None
            target += rows
        if T[top + size, top + size - 1] != 0:
            return None
    return T, Q


def _units(T: np.ndarray) -> list[tuple[int, int]]:
    """First row and number of rows of each diagonal block of a real Schur form."""
    units, row = [], 0
    while row < len(T):
        rows = 2 if row + 1 < len(T) and T[row + 1, row] != 0 else 1
        units.append((row, rows))
        row += rows
    return units


def _eigenvalues(T: np.ndarray) -> np.ndarray:
    """Eigenvalue of the unit of each row, of a conjugate pair that above the real axis."""
    values = np.diag(T).astype(complex)
    for row, rows in _units(T):
        if rows == 2:
            product = -T[row, row + 1] * T[row + 1, row]
            values[row : row + 2] = T[row, row] + 1j * np.sqrt(max(product, 0.0))
    return values


def _nearest_units(T: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Units of `size` rows together with near eigenvalues, in their order in T."""
    values = _eigenvalues(T)
    pairs = _pairs(T, values)
    if size > 2:
        rows = np.array(pairs)
        gaps = np.abs(values[rows][:, None, :, None] - values[rows][None, :, None, :])
        pairs = [pairs[i] for i in _tightest(gaps.min(axis=(2, 3)), size // 2)]
    else:
        pairs = pairs[:1]
    chosen = {row for pair in pairs for row in pair}
    return [unit for unit in _units(T) if unit[0] in chosen]


def _pairs(T: np.ndarray, values: np.ndarray) -> list[tuple[int, int]]:
    """Rows two by two: real eigenvalues with their nearest, nearest first, then conjugate pairs."""
    units = _units(T)
    rest = sorted((row for row, rows in units if rows == 1), key=lambda row: values[row].real)
    pairs = []
    while rest:
        first = int(np.argmin(np.diff(values[rest].real)))
        pairs.append((rest.pop(first), rest.pop(first)))
    return pairs + [(row, row + 1) for row, rows in units if rows == 2]


def _tightest(gaps: np.ndarray, count: int) -> list[int]:
    """Grow the two nearest items to `count` of them, each time by the one nearest to any."""
    gaps = gaps + np.diag(np.full(len(gaps), np.inf))
    group = list(np.unravel_index(np.argmin(gaps), gaps.shape))
    while len(group) < count:
        nearest = gaps[group].min(axis=0)
        nearest[group] = np.inf
        group.append(np.argmin(nearest))
    return [int(item) for item in group]


def apart(T: np.ndarray, shift: float) -> np.ndarray:
    """Draw real eigenvalues of a triangular matrix that are nearer than `shift` apart by it."""
    values = np.diag(T)
    order = np.argsort(values, kind="stable")
    moved = values[order]
    starts = np.flatnonzero(np.diff(moved, prepend=-np.inf) >= shift)
    for cluster in np.split(np.arange(len(moved)), starts[1:]):
        moved[cluster] += shift * (np.arange(len(cluster)) - (len(cluster) - 1) / 2)
    shifted = T.copy()
    shifted[order, order] = moved
    return shifted


def bases(T: np.ndarray, size: int) -> np.ndarray | None:
    """Orthonormal bases of the groups' invariant subspaces, side by side; None if they overflow."""
    found = np.zeros_like(T)
    for top in range(0, len(T), size):
        group = slice(top, top + size)
        columns = np.eye(len(T), size, -top)
        if top:
            X, scale, info = lapack.dtrsyl(T[:top, :top], T[group, group], -T[:top, group], isgn=-1)
            if scale < 1 or info < 0 or not np.abs(X).max() < LARGEST:
                return None
            columns[:top] = X
        found[:, group] = np.linalg.qr(columns)[0]
    return found
