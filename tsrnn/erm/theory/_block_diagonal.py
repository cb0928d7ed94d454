"""Numerical block diagonalisation of a matrix by similarity: Theorem 1.

Blocks of size 2 can have conjugate pairs of eigenvalues, blocks of size 1 cannot. Proposition 2
gives the probability that a random matrix has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag, lapack, schur

from tsrnn.contract import flag, number, positive_integer

__all__ = ["BlockDiagonalForm", "nearest_block_diagonal", "probability_real_spectrum"]

MAX_CONDITION = 1e6
FIRST_PERTURBATION = 1e-17  # relative; below rounding error
LAST_PERTURBATION = 10.0  # relative; larger ones dominate the matrix
PERTURBATION_RATIO = 1.05  # relative accuracy of the smallest perturbation
SEED = 0  # fixed Gaussian perturbation, so that results depend on the arguments only
LARGEST = 1e150  # largest entry of a solution, whose square does not overflow


@dataclass(frozen=True, eq=False)
class BlockDiagonalForm:
    """Matrix B W~ B^{-1} with W~ block diagonal, near a given matrix W.

    Attributes
    ----------
    blocks : ndarray, shape (K, d_s, d_s)
        Diagonal blocks of W~.
    transformation : ndarray, shape (d, d)
        Matrix B, with orthonormal columns within each block.
    condition : float
        Condition number of B in the spectral norm.
    distance : float
        Frobenius norm of W - B W~ B^{-1}, including rounding.
    relative_distance : float
        Distance divided by the norm of W.

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
        """Return B W~ B^{-1}, shape (d, d)."""
        return _similar(self.transformation, self.blocks)


def nearest_block_diagonal(
    matrix: Any, block_size: int = 2, *, max_condition: float = MAX_CONDITION
) -> BlockDiagonalForm:
    r"""Return a block diagonal matrix to which a real matrix is similar, exactly or nearly.

    .. math:: W \approx B \tilde W B^{-1}, \qquad
        \tilde W = \bigoplus_{k=1}^K \tilde W^{(k)}, \quad
        \tilde W^{(k)} \in \mathbb{R}^{d_s \times d_s}

    By Theorem 1 matrices with equality are dense for every even block size, so that the infimum of
    the distance is zero. They are not dense for block size 1.

    Parameters
    ----------
    matrix : array_like, shape (d, d)
        W, real and finite.
    block_size : int, default 2
        Block size d_s: 1, an even divisor of d, or d itself.
    max_condition : float, default 1e6
        Largest accepted condition number of B, above 1. A larger one allows a smaller distance from
        a defective matrix, but magnifies rounding.

    Returns
    -------
    BlockDiagonalForm
        Form with condition number at most `max_condition`. Its distance is an upper bound on the
        distance to the set; a nearer matrix may exist.

    Raises
    ------
    TypeError, ValueError
        If the matrix is not square, real and finite, `block_size` is not legal, or `max_condition`
        is not above 1.

    Notes
    -----
    The real Schur form is reordered so that each group of d_s rows has near eigenvalues, with
    conjugate pairs together. Sylvester equations decouple the groups, and the columns of B that
    span the invariant subspace of a group are made orthonormal (Bavely and Stewart 1979, SIAM
    Journal on Numerical Analysis 16:359-367). If the spectra of groups nearly coincide, as for a
    defective matrix, B is ill-conditioned. Then a small multiple of a fixed Gaussian matrix is
    added to W. Bisection of its logarithm finds the smallest multiple with a condition number of at
    most `max_condition`. A Gaussian perturbation of relative size epsilon
    makes any matrix diagonalisable with a condition number of the order 1 / epsilon times a
    power of d (Banks, Kulkarni, Mukherjee and Srivastava 2021, Communications on Pure and
    Applied Mathematics 74:2114-2131; for real matrices Jain, Sah and Sawhney 2021, Annals of
    Probability 49:3011-3031), which shifts of eigenvalues do not achieve. If dropping the coupling
    of the groups, with an orthogonal B, gives a smaller distance, that form is returned.

    With block size 1 a conjugate pair must become real. A standardised 2 x 2 block of the Schur
    form with diagonal (a, a) and off-diagonal b, c, bc < 0, changed by (u, -u) on the diagonal
    to the off-diagonal b', c', has real eigenvalues if :math:`u^2 + b'c' \ge 0`. With
    e = (b' + c')/2 and f = (b' - c')/2 that is everything outside the cone
    :math:`u^2 + e^2 < f^2`, and the squared Frobenius distance is twice the Euclidean one of
    (u, e, f). The block lies inside the cone, at u = 0 and :math:`(|f| - |e|)/\sqrt 2` from its
    surface, so its nearest matrix with real eigenvalues is :math:`|f| - |e| = \min(|b|, |c|)`
    away: the smaller of b and c set to zero.
    For d = 2 that is the distance of W to the set. For larger d it is a step towards a bound: the
    resulting double eigenvalues are defective, and eigenvalues closer than epsilon are then
    separated on the real line, again with the smallest epsilon. The symmetric part of W, with an
    orthogonal B, is returned if it is nearer.

    Odd block sizes between 1 and d are refused: a block of odd size has a real eigenvalue, so that
    these matrices are not dense either, and the paper restricts d_s to even numbers. A block
    diagonal matrix is returned unchanged, with B = I.

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
    nearest = min(_similarities(unit, size, limit), key=lambda form: form.distance(unit))
    distance = nearest.distance(unit)
    return BlockDiagonalForm(
        blocks=nearest.blocks * scale,
        transformation=nearest.transformation,
        condition=nearest.condition,
        distance=distance * scale,
        relative_distance=distance / (float(np.linalg.norm(unit)) or 1.0),
    )


def probability_real_spectrum(d: int, *, log: bool = False) -> float:
    r"""Return the probability :math:`2^{-d(d-1)/4}` that a random matrix has only real eigenvalues.

    The matrix is d x d with independent standard normal entries. A recurrent network has only
    recurrence features of type R-1 if the eigenvalues of its recurrent matrix are real and not
    defective; the probability of this is at most the same.

    Parameters
    ----------
    d : int
        Hidden size.
    log : bool, default False
        Return the natural logarithm; the probability itself underflows to 0 from d = 67 on.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        If `d` is no positive integer.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Proposition 2; Edelman (1997), Journal of Multivariate
    Analysis 60:203-232, Corollary 7.1.

    Examples
    --------
    >>> from tsrnn.erm import probability_real_spectrum
    >>> round(probability_real_spectrum(2), 4), probability_real_spectrum(4)
    (0.7071, 0.125)
    """
    size = positive_integer("d", d)
    power = -size * (size - 1) / 4
    return power * math.log(2) if flag("log", log) else 2.0**power


class _Similarity(NamedTuple):
    transformation: np.ndarray
    blocks: np.ndarray
    condition: float

    def distance(self, matrix: np.ndarray) -> float:
        return float(np.linalg.norm(matrix - _similar(self.transformation, self.blocks)))


def _similar(transformation: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    return np.linalg.solve(transformation.T, (transformation @ block_diag(*blocks)).T).T


def _similarities(matrix: np.ndarray, size: int, limit: float) -> list[_Similarity]:
    """Return candidate block diagonal forms with condition numbers of at most `limit`.

    A single exact form if the matrix has one; otherwise those of the least perturbation and of an
    orthogonal B.
    """
    group = np.arange(len(matrix)) // size
    if not np.any(matrix[group[:, None] != group[None, :]]):
        return [_Similarity(np.eye(len(matrix)), _diagonal_blocks(matrix, size), 1.0)]
    decouple = _decoupling(matrix, size)

    def within_limit(perturbation: float) -> _Similarity | None:
        form = decouple(perturbation)
        return form if form is not None and form.condition <= limit else None

    exact = within_limit(0.0)
    if exact is not None:
        return [exact]
    orthogonal = _orthogonal(matrix, size)
    # The least perturbation may have any order of magnitude: try increasing powers of ten, then
    # bisect the logarithm.
    high = FIRST_PERTURBATION
    perturbed = within_limit(high)
    while perturbed is None:
        high *= 10.0
        if high > LAST_PERTURBATION:
            return [orthogonal]
        perturbed = within_limit(high)
    low = high / 10.0
    while high / low > PERTURBATION_RATIO:
        middle = math.sqrt(low * high)
        form = within_limit(middle)
        low, high, perturbed = (middle, high, perturbed) if form is None else (low, middle, form)
    return [perturbed, orthogonal]


def _decoupling(matrix: np.ndarray, size: int) -> Callable[[float], _Similarity | None]:
    """Return a function from a relative perturbation to the perturbed form, None if it fails."""
    if size == 1:
        # Make all eigenvalues real, then separate double ones.
        T, Q = _with_real_eigenvalues(*schur(matrix, output="real"))
        return lambda perturbation: _decoupled(_drawn_apart(T, perturbation), Q, 1)
    noise = np.random.default_rng(SEED).normal(size=matrix.shape)
    noise *= np.linalg.norm(matrix) / np.linalg.norm(noise)

    def decouple(perturbation: float) -> _Similarity | None:
        T, Q = schur(matrix + perturbation * noise, output="real")
        reordered = _grouped(T, Q, size)
        return None if reordered is None else _decoupled(*reordered, size)

    return decouple


def _orthogonal(matrix: np.ndarray, size: int) -> _Similarity:
    """Return a form with orthogonal B: the symmetric part, or the Schur form without coupling."""
    if size == 1:
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        return _Similarity(vectors, values[:, None, None], 1.0)
    T, Q = schur(matrix, output="real")
    T, Q = _grouped(T, Q, size) or (T, Q)
    return _Similarity(Q, _diagonal_blocks(T, size), 1.0)


def _decoupled(T: np.ndarray, Q: np.ndarray, size: int) -> _Similarity | None:
    """Return transformation and blocks of a grouped Schur form, None if they overflow.

    A Sylvester equation with the groups above gives the invariant subspace of each group.
    """
    basis = np.zeros_like(T)
    for top in range(0, len(T), size):
        group = slice(top, top + size)
        columns = np.eye(len(T), size, -top)
        if top:
            X, scale, info = lapack.dtrsyl(T[:top, :top], T[group, group], -T[:top, group], isgn=-1)
            # LAPACK returns scale < 1 to avoid overflow, when spectra of the groups coincide.
            if scale < 1 or info < 0 or not np.abs(X).max() < LARGEST:
                return None
            columns[:top] = X
        # Orthonormal columns have nearly the best condition among bases of the subspace.
        basis[:, group] = np.linalg.qr(columns)[0]
    by_group = basis.reshape(len(T), -1, size).transpose(1, 0, 2)
    blocks = by_group.transpose(0, 2, 1) @ T @ by_group
    return _Similarity(Q @ basis, blocks, float(np.linalg.cond(basis)))


def _grouped(T: np.ndarray, Q: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Reorder a Schur form group by group from the top; return None if that fails."""
    for top in range(0, len(T) - size, size):
        target = top
        for row, rows in _nearest_schur_blocks(T[top:, top:], size):
            if top + row != target:
                T, Q, info = lapack.dtrexc(T, Q, top + row + 1, target + 1)
                if info:
                    return None
            target += rows
        # By rounding, an exchange can turn a conjugate pair into two real eigenvalues, and back.
        if T[top + size, top + size - 1] != 0:
            return None
    return T, Q


def _nearest_schur_blocks(T: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Return diagonal blocks with `size` rows in all and near eigenvalues, in the order of T."""
    values = np.diag(T).astype(complex)  # the upper one of conjugate pairs
    blocks = _schur_blocks(T)
    for row, rows in blocks:
        if rows == 2:
            product = -T[row, row + 1] * T[row + 1, row]
            values[row : row + 2] = T[row, row] + 1j * np.sqrt(max(product, 0.0))
    # Pair real eigenvalues with their nearest, nearest first, then add conjugate pairs.
    real = sorted((row for row, rows in blocks if rows == 1), key=lambda row: values[row].real)
    pairs = []
    while real:
        first = int(np.argmin(np.diff(values[real].real)))
        pairs.append((real.pop(first), real.pop(first)))
    pairs += [(row, row + 1) for row, rows in blocks if rows == 2]
    # Start from the two nearest pairs, and add the pair nearest to any of them.
    nearest = [0]
    if size > 2:
        of_pairs = values[np.array(pairs)]
        gaps = np.abs(of_pairs[:, None, :, None] - of_pairs[None, :, None, :])
        gaps = gaps.min(axis=(2, 3)) + np.diag(np.full(len(pairs), np.inf))
        nearest = [int(pair) for pair in np.unravel_index(np.argmin(gaps), gaps.shape)]
        while len(nearest) < size // 2:
            distances = gaps[nearest].min(axis=0)
            distances[nearest] = np.inf
            nearest.append(int(np.argmin(distances)))
    chosen = {row for pair in nearest for row in pairs[pair]}
    return [block for block in blocks if block[0] in chosen]


def _schur_blocks(T: np.ndarray) -> list[tuple[int, int]]:
    """Return first row and number of rows of each diagonal block of a real Schur form."""
    blocks, row = [], 0
    while row < len(T):
        rows = 2 if row + 1 < len(T) and T[row + 1, row] != 0 else 1
        blocks.append((row, rows))
        row += rows
    return blocks


def _with_real_eigenvalues(T: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace each 2 x 2 block by the nearest with a double real eigenvalue, upper triangular."""
    for row, rows in _schur_blocks(T):
        if rows == 1:
            continue
        # Move the smaller off-diagonal entry below the diagonal, and set it to zero.
        pair, swap = slice(row, row + 2), [row + 1, row]
        if abs(T[row, row + 1]) < abs(T[row + 1, row]):
            T[:, pair] = T[:, swap]
            T[pair] = T[swap]
            Q[:, pair] = Q[:, swap]
        T[row + 1, row] = 0.0
    return T, Q


def _drawn_apart(T: np.ndarray, shift: float) -> np.ndarray:
    """Separate real eigenvalues of a triangular matrix that are closer than `shift`."""
    values = np.diag(T)
    order = np.argsort(values, kind="stable")
    moved = values[order]
    starts = np.flatnonzero(np.diff(moved, prepend=-np.inf) >= shift)
    for cluster in np.split(np.arange(len(moved)), starts[1:]):
        moved[cluster] += shift * (np.arange(len(cluster)) - (len(cluster) - 1) / 2)
    shifted = T.copy()
    shifted[order, order] = moved
    return shifted


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
