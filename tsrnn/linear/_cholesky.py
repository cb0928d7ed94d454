"""Solve many small positive definite systems, and say which are not."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

_SMALLEST = 1e-14  # square of a diagonal element of the factor, for a matrix of unit diagonal


def solve_positive(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve A x = b by Cholesky's method.

    Parameters
    ----------
    matrices : ndarray of shape (n, k, k)
        Symmetric, with diagonals of about one.
    right : ndarray of shape (n, k)

    Returns
    -------
    solutions : ndarray of shape (n, k)
    failed : boolean ndarray of shape (n,)
        Not positive definite, or so nearly that the solution means nothing.
    """
    n, k = right.shape
    one_by_one = n <= 4 * k  # a call for each costs less than vectors that are so short
    solutions, failed = (_each if one_by_one else _together)(matrices, right)
    return solutions, failed | ~np.isfinite(solutions).all(1)


def _each(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    solutions, failed = np.zeros_like(right), np.ones(len(right), dtype=bool)
    for i, (matrix, b) in enumerate(zip(matrices, right, strict=True)):
        factor, info = lapack.dpotrf(matrix, lower=1)
        if info == 0 and np.diagonal(factor).min() ** 2 > _SMALLEST:
            solutions[i], failed[i] = lapack.dpotrs(factor, b, lower=1)[0], False
    return solutions, failed


def _together(matrices: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Element by element, each of them a vector over all systems."""
    k = right.shape[1]
    a = np.array(np.moveaxis(matrices, 0, -1), order="C")
    x = np.array(right.T)
    failed = np.zeros(len(right), dtype=bool)
    for j in range(k):
        for m in range(j):
            a[j:, j] -= a[j:, m] * a[j, m]
        failed |= ~(a[j, j] > _SMALLEST)
        root = np.sqrt(np.where(failed, 1.0, a[j, j]))
        a[j:, j] /= root
        x[j] = (x[j] - np.einsum("mn,mn->n", a[j, :j], x[:j])) / root
    for j in reversed(range(k)):
        rest = np.einsum("mn,mn->n", a[j + 1 :, j], x[j + 1 :])
        x[j] = (x[j] - rest) / np.where(failed, 1.0, a[j, j])
    return x.T, failed
