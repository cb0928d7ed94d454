"""A block diagonal matrix to which a matrix is nearly similar: Theorem 1 made numeric."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag, schur

from tsrnn.contract import number, positive_integer
from tsrnn.erm._schur import apart, bases, grouped, triangular

__all__ = ["BlockDiagonalForm", "nearest_block_diagonal"]

MAX_CONDITION = 1e6
FIRST_PERTURBATION = 1e-17  # relative; below what rounding leaves
LAST_PERTURBATION = 10.0  # beyond it nothing of the matrix would be left
PERTURBATION_RATIO = 1.05  # to which the smallest one is found
SEED = 0


@dataclass(frozen=True, eq=False)
class BlockDiagonalForm:
    """A matrix B W~ B^{-1} with W~ block diagonal, near a given one.

    Attributes
    ----------
    blocks : ndarray, shape (K, d_s, d_s)
        Diagonal blocks of W~.
    transformation : ndarray, shape (d, d)
        B. Its columns belonging to one block are orthonormal.
    condition : float
        Condition number of B in the spectral norm.
    distance : float
        Frobenius norm of W - B W~ B^{-1}, as computed, with rounding.
    relative_distance : float
        The same, divided by the norm of W.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.erm import BlockDiagonalForm
    >>> form = BlockDiagonalForm(np.array([[[2.0]], [[3.0]]]), np.eye(2), 1.0, 0.0, 0.0)
    >>> form.matrix()
    array([[2., 0.],
           [0., 3.]])
    """

    blocks: np.ndarray
    transformation: np.ndarray
    condition: float
    distance: float
    relative_distance: float

    def matrix(self) -> np.ndarray:
        """B W~ B^{-1}, of shape (d, d)."""
        return _similar(self.transformation, self.blocks)


def nearest_block_diagonal(
    matrix: Any, block_size: int = 2, *, max_condition: float = MAX_CONDITION
) -> BlockDiagonalForm:
    r"""Block diagonal matrix to which a real matrix is similar, exactly or nearly.

    .. math:: W \approx B \tilde W B^{-1}, \qquad
        \tilde W = \bigoplus_{k=1}^K \tilde W^{(k)}, \quad
        \tilde W^{(k)} \in \mathbb{R}^{d_s \times d_s}

    By Theorem 1 the matrices for which this is an equality are dense for every even block size,
    so that the infimum of the distance is zero. They are not dense for block size 1.

    Parameters
    ----------
    matrix : array_like, shape (d, d)
        W, real and finite.
    block_size : int, default 2
        d_s: 1, an even divisor of d, or d itself.
    max_condition : float, default 1e6
        Largest condition number of B that is accepted, above 1. A larger one gives a smaller
        distance from a defective matrix, and a transformation that magnifies rounding more.

    Returns
    -------
    BlockDiagonalForm
        Its distance is an upper bound on the distance to the set, with the condition number
        at most `max_condition`; no nearer matrix is ruled out.

    Raises
    ------
    TypeError, ValueError
        If the matrix is not square, real and finite, `block_size` is not one of those described
        or `max_condition` not above 1.

    Notes
    -----
    The real Schur form is reordered so that near eigenvalues come into one group of d_s rows, a
    conjugate pair always; groups are decoupled by Sylvester equations, and the columns of B
    that span the invariant subspace of a group are made orthonormal (Bavely and Stewart 1979,
    SIAM Journal on Numerical Analysis 16:359-367). Where the spectra of groups nearly coincide,
    as those of a defective matrix do, B is ill-conditioned. Then a small multiple of one fixed
    Gaussian matrix is added to W, the smallest, by bisection of its logarithm, that brings the
    condition number down to `max_condition`. A Gaussian perturbation of relative size epsilon
    makes any matrix diagonalisable with a condition number of the order 1 / epsilon times a
    power of d (Banks, Kulkarni, Mukherjee and Srivastava 2021, Communications on Pure and
    Applied Mathematics 74:2114-2131; for real matrices Jain, Sah and Sawhney 2021, Annals of
    Probability 49:3011-3031), which shifts of eigenvalues do not achieve. Where dropping the
    coupling of the groups altogether is nearer, with an orthogonal B, that is returned.

    With block size 1 a conjugate pair must become real. A standardised 2 x 2 block of the Schur
    form with diagonal (a, a) and off-diagonal b, c, bc < 0, changed by (u, -u) on the diagonal
    to the off-diagonal b', c', has real eigenvalues if :math:`u^2 + b'c' \ge 0`. With
    e = (b' + c')/2 and f = (b' - c')/2 that is everything outside the cone
    :math:`u^2 + e^2 < f^2`, and the squared Frobenius distance is twice the Euclidean one of
    (u, e, f). The block lies inside the cone, at u = 0 and :math:`(|f| - |e|)/\sqrt 2` from its
    surface, so its nearest matrix with real eigenvalues is :math:`|f| - |e| = \min(|b|, |c|)`
    away: the smaller of b and c set to zero.
    For d = 2 that is the distance of W to the set. For larger d it is a step towards a bound:
    the double eigenvalues that arise are defective, and eigenvalues nearer to each other than
    epsilon are then drawn apart on the real line, again with the smallest epsilon. The symmetric
    part of W, whose B is orthogonal, is returned where it is nearer.

    Odd block sizes between 1 and d are refused: each block of odd size has a real eigenvalue,
    so they are not dense either, and the paper restricts d_s to even numbers. A matrix
    that is block diagonal already comes back as it is, with B = I.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Theorem 1 and equation (6); Hartfiel (1995),
    Proceedings of the American Mathematical Society 123:1669-1672.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.erm import nearest_block_diagonal
    >>> form = nearest_block_diagonal(np.random.default_rng(0).normal(size=(6, 6)))
    >>> form.blocks.shape, form.relative_distance < 1e-12
    ((3, 2, 2), True)

    A quarter turn has no real eigenvalues, and no matrix of that kind is near it:

    >>> turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> round(nearest_block_diagonal(turn, block_size=1).distance, 5)
    1.0
    """
    W = _checked_matrix(matrix)
    size = _checked_size(block_size, len(W))
    limit = number("max_condition", max_condition, lowest=1.0, open_=True)
    # A power of two, so that no digit is lost.
    scale = float(np.ldexp(1.0, np.frexp(np.abs(W).max())[1] - 1)) if W.any() else 1.0
    unit = W / scale
    best = min(_candidates(unit, size, limit), key=lambda candidate: candidate.distance(unit))
    distance = best.distance(unit)
    return BlockDiagonalForm(
        blocks=best.blocks * scale,
        transformation=best.transformation,
        condition=best.condition,
        distance=distance * scale,
        relative_distance=distance / (float(np.linalg.norm(unit)) or 1.0),
    )


class _Candidate(NamedTuple):
    transformation: np.ndarray
    blocks: np.ndarray
    condition: float

    def distance(self, matrix: np.ndarray) -> float:
        return float(np.linalg.norm(matrix - _similar(self.transformation, self.blocks)))


def _candidates(matrix: np.ndarray, size: int, limit: float) -> list[_Candidate]:
    """Forms that keep to the condition number; one only if it needs no perturbation."""
    if _is_block_diagonal(matrix, size):
        return [_Candidate(np.eye(len(matrix)), _diagonal_blocks(matrix, size), 1.0)]
    attempt = _drawn_apart(matrix) if size == 1 else _disturbed(matrix, size)

    def accepted(perturbation: float) -> _Candidate | None:
        made = attempt(perturbation)
        return made if made is not None and made.condition <= limit else None

    exact = accepted(0.0)
    if exact is not None:
        return [exact]
    perturbed = _smallest(accepted)
    orthogonal = _symmetric(matrix) if size == 1 else _uncoupled(matrix, size)
    return [orthogonal] if perturbed is None else [perturbed, orthogonal]


def _smallest(accepted: Callable[[float], _Candidate | None]) -> _Candidate | None:
    """What is accepted at about the smallest perturbation, by bisection of its logarithm."""
    high = FIRST_PERTURBATION
    found = accepted(high)
    while found is None:
        high *= 10.0
        if high > LAST_PERTURBATION:
            return None
        found = accepted(high)
    low = high / 10.0
    while high / low > PERTURBATION_RATIO:
        middle = math.sqrt(low * high)
        made = accepted(middle)
        low, high, found = (middle, high, found) if made is None else (low, middle, made)
    return found


def _disturbed(matrix: np.ndarray, size: int) -> Callable[[float], _Candidate | None]:
    """Decouple the matrix plus a multiple of a Gaussian one, always the same."""
    noise = np.random.default_rng(SEED).normal(size=matrix.shape)
    noise *= np.linalg.norm(matrix) / np.linalg.norm(noise)

    def attempt(perturbation: float) -> _Candidate | None:
        T, Q = schur(matrix + perturbation * noise, output="real")
        reordered = grouped(T, Q, size)
        return None if reordered is None else _decoupled(*reordered, size)

    return attempt


def _drawn_apart(matrix: np.ndarray) -> Callable[[float], _Candidate | None]:
    """Make the eigenvalues real, and near ones distinct."""
    T, Q = schur(matrix, output="real")
    T, Q = triangular(T, Q)
    return lambda perturbation: _decoupled(apart(T, perturbation), Q, 1)


def _symmetric(matrix: np.ndarray) -> _Candidate:
    """The symmetric part, whose transformation is orthogonal."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return _Candidate(vectors, values[:, None, None], 1.0)


def _uncoupled(matrix: np.ndarray, size: int) -> _Candidate:
    """The Schur form without what couples its groups; its transformation is orthogonal."""
    T, Q = schur(matrix, output="real")
    T, Q = grouped(T, Q, size) or (T, Q)
    return _Candidate(Q, _diagonal_blocks(T, size), 1.0)


def _similar(transformation: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    return np.linalg.solve(transformation.T, (transformation @ block_diag(*blocks)).T).T


def _decoupled(T: np.ndarray, Q: np.ndarray, size: int) -> _Candidate | None:
    """Transformation and blocks of a grouped Schur form; None if they overflow."""
    columns = bases(T, size)
    if columns is None:
        return None
    of_groups = columns.reshape(len(T), -1, size).transpose(1, 0, 2)
    blocks = of_groups.transpose(0, 2, 1) @ T @ of_groups
    return _Candidate(Q @ columns, blocks, float(np.linalg.cond(columns)))


def _is_block_diagonal(matrix: np.ndarray, size: int) -> bool:
    group = np.arange(len(matrix)) // size
    return not np.any(matrix[group[:, None] != group[None, :]])


def _diagonal_blocks(matrix: np.ndarray, size: int) -> np.ndarray:
    starts = range(0, len(matrix), size)
    return np.array([matrix[i : i + size, i : i + size] for i in starts])


def _checked_matrix(matrix: Any) -> np.ndarray:
    values = np.asarray(matrix)
    if values.dtype.kind not in "iuf":
        raise TypeError(f"matrix must hold real numbers; got dtype {values.dtype}")
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ValueError(f"matrix must be square, of shape (d, d); got shape {values.shape}")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = (int(i) for i in bad[0])
        raise ValueError(
            f"matrix must be finite; {len(bad)} entries are not, the first at row {row}, column "
            f"{column}"
        )
    return values.astype(float)


def _checked_size(block_size: Any, d: int) -> int:
    size = positive_integer("block_size", block_size)
    legal = [s for s in range(1, d + 1) if d % s == 0 and (s in (1, d) or s % 2 == 0)]
    if size not in legal:
        raise ValueError(
            f"block_size of a {d} x {d} matrix must be 1, {d} or an even divisor of it, one of "
            f"{legal}; got {size}"
        )
    return size
