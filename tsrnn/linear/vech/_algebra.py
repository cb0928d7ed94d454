"""Half-vectorization: the lower triangle of a symmetric matrix, column by column."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the N = n (n + 1) / 2 elements of vech, each of shape (N,)."""
    columns, rows = np.triu_indices(n)
    return rows, columns


@cache
def places(n: int) -> np.ndarray:
    """Where each element of a symmetric matrix stands in its vech, (n, n)."""
    rows, columns = pairs(n)
    where = np.empty((n, n), dtype=np.int64)
    where[rows, columns] = where[columns, rows] = np.arange(len(rows))
    return where


def n_variables(size: int) -> int:
    """The n of which N = n (n + 1) / 2 is `size`."""
    return int((np.sqrt(8 * size + 1) - 1) / 2)


def vech(matrices: np.ndarray) -> np.ndarray:
    """Lower triangles (..., N) of (..., n, n)."""
    return matrices[(..., *pairs(matrices.shape[-1]))]


def unvech(halves: np.ndarray) -> np.ndarray:
    """Symmetric matrices (..., n, n) of lower triangles (..., N)."""
    return halves[..., places(n_variables(halves.shape[-1]))]


def sandwich(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    r"""Matrix (N, N) of :math:`X \mapsto \tfrac12 (A' X B + B' X A)` in terms of vech.

    It is :math:`D^+ (A' \otimes B') D` with the duplication matrix D, so that
    ``sandwich(A, A)`` is the coefficient of a BEKK term :math:`A' X A`.
    """
    rows, columns = pairs(len(left))
    # X = E_kl + E_lk for k > l, E_kk else: the response of element (i, j) of A' X B.
    twice = np.where(rows == columns, 1.0, 2.0)

    def product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        one = first[rows][:, rows].T * second[columns][:, columns].T
        other = first[columns][:, rows].T * second[rows][:, columns].T
        return (one + other) / 2

    return (product(left, right) + product(right, left)) / 2 * twice


@cache
def half(n: int) -> np.ndarray:
    """One half for diagonal elements of vech, one for the others, (N,)."""
    rows, columns = pairs(n)
    return np.where(rows == columns, 0.5, 1.0)
