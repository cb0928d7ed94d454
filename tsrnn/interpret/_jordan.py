"""The Jordan structure of one real matrix, in floating point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

__all__ = ["JordanBlock", "default_tolerance", "jordan_structure"]


class JordanBlock(NamedTuple):
    """One block of the real Jordan form.

    Attributes
    ----------
    eigenvalue : complex
        On or above the real axis; above it, the block stands for the conjugate pair.
    order : int
        n: the block is n x n for a real eigenvalue and 2n x 2n for a pair.
    """

    eigenvalue: complex
    order: int

    @property
    def size(self) -> int:
        """Number of rows of the real Jordan block."""
        return self.order * (2 if self.eigenvalue.imag > 0 else 1)


def default_tolerance(d: int, eps: float) -> float:
    """Relative perturbation below which a d x d matrix of precision `eps` is not known.

    A similarity transformation or a training step in floating point leaves errors of the order
    sqrt(d) eps times a condition number; 10 leaves room for well-conditioned ones.
    """
    return 10.0 * float(np.sqrt(d)) * eps


def jordan_structure(matrix: np.ndarray, tol: float) -> list[JordanBlock]:
    r"""Real Jordan structure of a matrix known up to a relative error.

    Parameters
    ----------
    matrix : ndarray, shape (d, d)
        Real, float64.
    tol : float
        delta = tol * ||W||_2 is the size of a perturbation of W regarded as no change.

    Returns
    -------
    list of JordanBlock
        Their sizes sum to d.

    Notes
    -----
    A perturbation of size delta spreads an n-fold defective eigenvalue over a circle of radius
    about delta^(1/n), so distances between eigenvalues alone cannot tell what is one eigenvalue.
    Their mean, however, moves by the order of delta only. Therefore sets of neighbouring
    eigenvalues are tried from the largest down: a set of m with mean mu is one eigenvalue if the
    nullities of (W - mu I)^j, j = 1, 2, ..., reach m, singular values up to delta counting as
    zero; otherwise the set is cut at its widest gap. The nullities are found by deflating one
    null space after the other instead of forming powers, so that the answer is the structure of
    a matrix within the order of delta of W (Golub and Wilkinson 1976, SIAM Review 18:578-619).
    """
    scale = float(np.abs(matrix).max()) or 1.0
    blocks = _unscaled_structure(matrix / scale, tol)
    return [JordanBlock(block.eigenvalue * scale, block.order) for block in blocks]


def _unscaled_structure(matrix: np.ndarray, tol: float) -> list[JordanBlock]:
    """`jordan_structure` of a matrix whose norm neither over- nor underflows."""
    delta = tol * float(np.linalg.norm(matrix, 2))
    eigenvalues = np.linalg.eigvals(matrix).astype(complex)
    blocks: list[JordanBlock] = []
    pending = [eigenvalues]
    while pending:
        cluster = pending.pop()
        if cluster.imag.max() < 0:
            continue  # the conjugate cluster speaks for it
        orders = _cluster_orders(matrix, cluster, delta)
        if orders is None:
            pending.extend(_split(cluster))
        else:
            center = _center(cluster, delta)
            # A pair not told from zero is no pair: each of the two is an eigenvalue zero.
            copies = 2 if center == 0 and cluster.imag.min() > 0 else 1
            blocks.extend(JordanBlock(center, order) for order in orders * copies)
    return blocks


def _center(cluster: np.ndarray, delta: float) -> complex:
    """Mean of a cluster: real if closed under conjugation, zero if not told from zero."""
    mean = complex(cluster.mean())
    if cluster.imag.min() <= 0:
        mean = complex(mean.real)
    return 0j if abs(mean) <= delta else mean


def _cluster_orders(matrix: np.ndarray, cluster: np.ndarray, delta: float) -> list[int] | None:
    """Orders of the Jordan blocks of a cluster taken as one eigenvalue, None if it is not one."""
    if len(cluster) == 1:
        return [1]
    center = _center(cluster, delta)
    shift = center.real if center.imag == 0 else center
    increments = _nullity_increments(matrix - shift * np.eye(len(matrix)), len(cluster), delta)
    if sum(increments) != len(cluster) or sorted(increments, reverse=True) != increments:
        return None
    # increments[j-1] blocks have an order of at least j.
    return [sum(i > k for i in increments) for k in range(increments[0])]


def _nullity_increments(shifted: np.ndarray, most: int, delta: float) -> list[int]:
    """nullity(N^j) - nullity(N^(j-1)) for j = 1, 2, ..., while the sum does not exceed `most`."""
    increments: list[int] = []
    while sum(increments) < most:
        if np.linalg.svd(shifted, compute_uv=False)[-1] > delta:
            break
        _, singular, right = np.linalg.svd(shifted)
        rank = int(np.sum(singular > delta))
        increments.append(len(singular) - rank)
        rest = right[:rank]
        shifted = rest @ shifted @ rest.conj().T
    return increments


def _split(cluster: np.ndarray) -> list[np.ndarray]:
    """Cut a cluster at the widest link of its minimum spanning tree.

    All links of that width go, so that conjugate parts are cut alike.
    """
    distance = np.abs(cluster[:, None] - cluster[None, :])
    widest = linkage(squareform(distance, checks=False), "single")[-1, 2]
    count, labels = connected_components(distance < widest, directed=False)
    return [cluster[labels == i] for i in range(count)]
