"""Real Jordan form: blocks, curves of their powers, and the structure of a matrix."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import binom

# Jordan blocks of a stack of matrices: index of the matrix, eigenvalue on or above the real axis,
# order.
Structures = tuple[np.ndarray, np.ndarray, np.ndarray]


def jordan_block(modulus: float, angle: float = 0.0, order: int = 1) -> np.ndarray:
    r"""Real Jordan block of a recurrence feature.

    .. math::

        J_n(\lambda) = \lambda I_n + U_n, \qquad
        C_n(\gamma, \theta) = I_n \otimes \gamma \begin{pmatrix} \cos\theta & \sin\theta \\
        -\sin\theta & \cos\theta \end{pmatrix} + U_n \otimes I_2,

    where :math:`U_n` has ones on its first superdiagonal.

    Parameters
    ----------
    modulus : float
        Modulus gamma >= 0 of the eigenvalue.
    angle : float, default 0.0
        Angle theta in radians, from 0 to pi. At 0 and pi the eigenvalue is real, gamma or -gamma
        (type R); between them it belongs to a conjugate pair (type C). With modulus 0 the angle is
        ignored and may be NaN.
    order : int, default 1
        Order n of R-n or C-n.

    Returns
    -------
    ndarray
        Shape (n, n) for type R, (2n, 2n) for type C.

    Raises
    ------
    ValueError
        If the modulus is negative or not finite, the angle not in [0, pi] or the order below 1.
    TypeError
        If the order is not an integer.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Proposition 1 (there the 2 x 2 block lacks gamma).

    Examples
    --------
    >>> from tsrnn.interpret import jordan_block
    >>> jordan_block(0.5, order=2)
    array([[0.5, 1. ],
           [0. , 0.5]])
    """
    modulus, angle, order = _checked(modulus, angle, order)
    if _is_real(angle):
        return _signed(modulus, angle) * np.eye(order) + np.eye(order, k=1)
    cos, sin = math.cos(angle), math.sin(angle)
    turn = modulus * np.array([[cos, sin], [-sin, cos]])
    return np.kron(np.eye(order), turn) + np.kron(np.eye(order, k=1), np.eye(2))


def lag_curves(modulus: float, angle: float, order: int, lags: Any) -> np.ndarray:
    r"""Weights of past inputs in a recurrence feature, by lag.

    They are the first row of :math:`J^j`, the j-th power of the real Jordan block. In a linear
    recurrence :math:`h_t = J h_{t-1} + u_t` they weigh :math:`u_{t-j}` in the first component of
    :math:`h_t`:

    .. math::

        \text{R-}n:\ \binom{j}{i} \lambda^{j-i}, \qquad
        \text{C-}n:\ \binom{j}{i} \gamma^{j-i} \cos((j-i)\theta),\
        \binom{j}{i} \gamma^{j-i} \sin((j-i)\theta), \qquad i = 0, \dots, n-1.

    Parameters
    ----------
    modulus, angle, order
        As in `jordan_block`.
    lags : array_like of int, shape (L,)
        Lags j >= 0 in time steps.

    Returns
    -------
    ndarray
        Shape (L, n) for type R, a column for each i; shape (L, 2n) for type C, a cosine and a sine
        column for each i.

    Raises
    ------
    ValueError
        As in `jordan_block`, and if lags are not a vector of whole numbers from 0 on.
    TypeError
        If the order is not an integer.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Section 3.2 and Figure 1(a), which show n = 1.

    Examples
    --------
    >>> from tsrnn.interpret import lag_curves
    >>> lag_curves(0.5, 0.0, 2, [0, 1, 2, 3])
    array([[1.   , 0.   ],
           [0.5  , 1.   ],
           [0.25 , 1.   ],
           [0.125, 0.75 ]])
    """
    modulus, angle, order = _checked(modulus, angle, order)
    lag = _checked_lags(lags)[:, None]
    index = np.arange(order)[None, :]
    # binom(j, i) is 0 for i > j; the exponent is then 0, so that the power is finite.
    power = np.maximum(lag - index, 0)
    weight = binom(lag, index)
    if _is_real(angle):
        return weight * _signed(modulus, angle) ** power
    envelope = weight * modulus**power
    waves = [envelope * np.cos(power * angle), envelope * np.sin(power * angle)]
    return np.stack(waves, axis=-1).reshape(len(lag), 2 * order)


def _checked(modulus: float, angle: float, order: int) -> tuple[float, float, int]:
    modulus, angle, order = float(modulus), float(angle), operator.index(order)
    if not (math.isfinite(modulus) and modulus >= 0):
        raise ValueError(
            f"`modulus` must be finite and not negative; got {modulus}. "
            "A negative real eigenvalue has a positive modulus and the angle pi."
        )
    if modulus == 0:
        angle = 0.0
    if not 0 <= angle <= math.pi:
        raise ValueError(
            f"`angle` must be in [0, pi] radians; got {angle}. "
            "Of a conjugate pair, give the angle of the eigenvalue above the real axis."
        )
    if order < 1:
        raise ValueError(f"`order` must be at least 1; got {order}.")
    return modulus, angle, order


def _checked_lags(lags: Any) -> np.ndarray:
    values = np.asarray(lags)
    whole = values.dtype.kind in "iuf" and bool(np.all(values == np.floor(values)))
    if values.ndim != 1 or not whole or np.any(values < 0):
        raise ValueError(
            "`lags` must be a vector of whole numbers from 0 on, in time steps; "
            f"got {np.array2string(values, threshold=6, edgeitems=2)}. "
            "np.arange(49) gives the lags 0 to 48."
        )
    return values.astype(float)


def _is_real(angle: float) -> bool:
    return angle in (0.0, math.pi)


def _signed(modulus: float, angle: float) -> float:
    return modulus if angle == 0.0 else -modulus


class JordanBlock(NamedTuple):
    """Block of the real Jordan form, with an eigenvalue on or above the real axis."""

    eigenvalue: complex
    order: int


def default_tolerance(d: int, eps: float) -> float:
    """Relative perturbation of a d x d matrix that is within the precision `eps`."""
    # Similarity transformations and training steps have errors of sqrt(d) eps times a condition
    # number; 10 allows for well-conditioned ones.
    return 10.0 * float(np.sqrt(d)) * eps


def jordan_structure(matrix: np.ndarray, tol: float) -> list[JordanBlock]:
    """Real Jordan structure of a matrix (d, d) in float64 with the error delta = tol * ||W||_2.

    A perturbation of size delta spreads an n-fold defective eigenvalue over a circle of radius
    about delta^(1/n), so that distances do not identify multiple eigenvalues. Their mean moves by
    the order of delta only. Sets of neighbouring eigenvalues are therefore tried from the largest
    down. A set of m with mean mu is one eigenvalue if the nullities of (W - mu I)^j reach m, with
    singular values up to delta counted as zero; otherwise the set is cut at its widest gap.
    Nullities come from successive deflation instead of powers, so that the result is exact for a
    matrix within the order of delta of W (Golub and Wilkinson 1976, SIAM Review 18:578-619).
    """
    # Scaled to a largest entry of 1, so that norms neither over- nor underflow.
    scale = float(np.abs(matrix).max()) or 1.0
    unit = matrix / scale
    delta = tol * float(np.linalg.norm(unit, 2))
    blocks: list[JordanBlock] = []
    pending = [np.linalg.eigvals(unit).astype(complex)]
    while pending:
        cluster = pending.pop()
        if cluster.imag.max() < 0:
            continue  # the conjugate cluster is kept
        center = complex(cluster.mean())
        if cluster.imag.min() <= 0:
            center = complex(center.real)  # closed under conjugation
        if abs(center) <= delta:
            center = 0j
        orders = [1] if len(cluster) == 1 else _orders(unit, center, len(cluster), delta)
        if orders is None:
            pending.extend(_split(cluster))
            continue
        # A pair within delta of zero is two zero eigenvalues.
        copies = 2 if center == 0 and cluster.imag.min() > 0 else 1
        blocks.extend(JordanBlock(center * scale, order) for order in orders * copies)
    return blocks


def _orders(matrix: np.ndarray, center: complex, count: int, delta: float) -> list[int] | None:
    """Orders of the blocks of a `count`-fold eigenvalue at `center`; None if there is none."""
    shift = center.real if center.imag == 0 else center
    shifted = matrix - shift * np.eye(len(matrix))
    # nullity(N^j) - nullity(N^(j-1)) for j = 1, 2, ..., while the sum does not exceed `count`
    increments: list[int] = []
    while sum(increments) < count:
        # Singular values are cheaper than the full decomposition, and mostly decide.
        if np.linalg.svd(shifted, compute_uv=False)[-1] > delta:
            break
        _, singular, right = np.linalg.svd(shifted)
        rank = int(np.sum(singular > delta))
        increments.append(len(singular) - rank)
        # Deflate by restriction to the complement of the null space: powers amplify rounding.
        rest = right[:rank]
        shifted = rest @ shifted @ rest.conj().T
    if sum(increments) != count or sorted(increments, reverse=True) != increments:
        return None
    # increments[j-1] blocks have an order of at least j.
    return [sum(i > k for i in increments) for k in range(increments[0])]


def _split(cluster: np.ndarray) -> list[np.ndarray]:
    """Cut a cluster at all widest links of its minimum spanning tree, conjugate ones included."""
    distance = np.abs(cluster[:, None] - cluster[None, :])
    # Slow to import, and needed for repeated eigenvalues only.
    from scipy.cluster.hierarchy import linkage
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial.distance import squareform

    widest = linkage(squareform(distance, checks=False), "single")[-1, 2]
    count, labels = connected_components(distance < widest, directed=False)
    return [cluster[labels == i] for i in range(count)]


def jordan_structures(stack: np.ndarray, tol: float) -> Structures:
    """Jordan blocks of every matrix of a stack (K, d, d)."""
    if stack.shape[-1] == 1:
        k = len(stack)
        return np.arange(k), stack[:, 0, 0].astype(complex), np.ones(k, dtype=int)
    if stack.shape[-1] == 2:
        return structure_of_twos(stack, tol)
    blocks = [
        (k, *block) for k, matrix in enumerate(stack) for block in jordan_structure(matrix, tol)
    ]
    index, eigenvalue, order = zip(*blocks, strict=True)
    return np.array(index), np.array(eigenvalue, dtype=complex), np.array(order)


def structure_of_twos(stack: np.ndarray, tol: float) -> Structures:
    """Jordan blocks of real 2 x 2 matrices (K, 2, 2), `jordan_structure` in closed form.

    With tau = tr(W) / 2, N = W - tau I and D = -det(N) the eigenvalues are tau +- sqrt(D). With
    delta = tol * ||W||_2 and the singular values s1 >= s2 of N, where s1 s2 = |D|, W has

    - two equal eigenvalues and two blocks, if s1 <= delta,
    - two equal eigenvalues and one block of order 2, if s2 <= delta < s1,
    - else two real eigenvalues (D > 0) or a conjugate pair (D < 0).
    """
    scale = np.abs(stack).max(axis=(1, 2))
    scale[scale == 0] = 1.0
    unit = stack / scale[:, None, None]
    delta = tol * _singular_values(unit)[0]
    tau = 0.5 * (unit[:, 0, 0] + unit[:, 1, 1])
    shifted = unit - tau[:, None, None] * np.eye(2)
    largest, smallest = _singular_values(shifted)
    discriminant = -_determinant(shifted)
    one_block = (smallest <= delta) & (largest > delta)
    pair = (smallest > delta) & (discriminant < 0)

    first, second = _eigenvalues(unit, tau, discriminant, equal=smallest <= delta)
    pair_is_zero = pair & (np.abs(first) <= delta)
    first[np.abs(first) <= delta] = 0
    second[np.abs(second) <= delta] = 0
    has_second = ~one_block & (~pair | pair_is_zero)

    index = np.arange(len(stack))
    rows = np.concatenate([index, index[has_second]])
    values = np.concatenate([first, second[has_second]]) * scale[rows]
    orders = np.concatenate([np.where(one_block, 2, 1), np.ones(has_second.sum(), dtype=int)])
    return rows, values, orders


def _eigenvalues(
    matrices: np.ndarray, tau: np.ndarray, discriminant: np.ndarray, equal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Both eigenvalues, the upper one of a conjugate pair first."""
    root = np.sqrt(np.abs(discriminant))
    large = tau + np.copysign(root, tau)
    # From the determinant, the product of both, to avoid cancellation in the smaller one.
    small = np.divide(_determinant(matrices), large, out=tau - root, where=large != 0)
    real = discriminant >= 0
    first = np.where(real, large, tau + 1j * root)
    second = np.where(real, small, tau - 1j * root)
    return np.where(equal, tau, first), np.where(equal, tau, second)


def _singular_values(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest and smallest singular value of real 2 x 2 matrices."""
    (a, b), (c, d) = np.moveaxis(matrices, 0, -1)
    rotation, reflection = np.hypot(a + d, c - b), np.hypot(a - d, b + c)
    return 0.5 * (rotation + reflection), 0.5 * np.abs(rotation - reflection)


def _determinant(matrices: np.ndarray) -> np.ndarray:
    return matrices[:, 0, 0] * matrices[:, 1, 1] - matrices[:, 0, 1] * matrices[:, 1, 0]
