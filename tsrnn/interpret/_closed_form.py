"""The Jordan structure of thousands of 1 x 1 or 2 x 2 matrices at once."""

from __future__ import annotations

import numpy as np

__all__ = ["Rows", "structure_of_ones", "structure_of_twos"]

# Per Jordan block: the index of its matrix in the stack, its eigenvalue (on or above the real
# axis) and its order.
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def structure_of_ones(stack: np.ndarray) -> Rows:
    """Jordan blocks of a stack of scalars, shape (K, 1, 1): the scalars."""
    k = len(stack)
    return np.arange(k), stack[:, 0, 0].astype(complex), np.ones(k, dtype=int)


def structure_of_twos(stack: np.ndarray, tol: float) -> Rows:
    r"""Jordan blocks of a stack of real 2 x 2 matrices, shape (K, 2, 2).

    Notes
    -----
    With tau = tr(W) / 2, N = W - tau I and the discriminant D = -det(N) the eigenvalues are
    tau +- sqrt(D). With delta = tol * ||W||_2 and the singular values s1 >= s2 of N, where
    s1 s2 = |D|, W is within delta of a matrix with

    - two equal eigenvalues and two blocks, if s1 <= delta,
    - two equal eigenvalues and one block of order 2, if s2 <= delta < s1,

    and has otherwise two real eigenvalues (D > 0) or a conjugate pair (D < 0): the rule of
    `tsrnn.interpret._jordan.jordan_structure` in closed form.
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
    """Both eigenvalues, of a conjugate pair the upper one first."""
    root = np.sqrt(np.abs(discriminant))
    large = tau + np.copysign(root, tau)
    # The product of the two is the determinant: no cancellation in the smaller one.
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
