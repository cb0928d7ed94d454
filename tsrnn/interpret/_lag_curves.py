"""The real Jordan block of a recurrence feature and what its powers weigh the past with."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from scipy.special import binom

__all__ = ["jordan_block", "lag_curves"]


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
        gamma >= 0, the modulus of the eigenvalue.
    angle : float, default 0.0
        theta in radians, from 0 to pi. At 0 and at pi the eigenvalue is the real number gamma or
        -gamma (type R), between them one of a conjugate pair (type C). Where the modulus is 0 the
        angle plays no role and may be NaN.
    order : int, default 1
        n of R-n and C-n.

    Returns
    -------
    ndarray
        Shape (n, n) for type R, (2n, 2n) for type C.

    Raises
    ------
    ValueError
        If the modulus is negative or not finite, the angle not in [0, pi] or the order below 1.
    TypeError
        If the order is no integer.

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
    r"""Weights with which a recurrence feature carries inputs of the past into the present.

    The first row of :math:`J^j`, the j-th power of the real Jordan block, for each lag j. In a
    linear recurrence :math:`h_t = J h_{t-1} + u_t` it weighs :math:`u_{t-j}` in the first
    component of :math:`h_t`:

    .. math::

        \text{R-}n:\ \binom{j}{i} \lambda^{j-i}, \qquad
        \text{C-}n:\ \binom{j}{i} \gamma^{j-i} \cos((j-i)\theta),\
        \binom{j}{i} \gamma^{j-i} \sin((j-i)\theta), \qquad i = 0, \dots, n-1.

    Parameters
    ----------
    modulus, angle, order
        As in `jordan_block`.
    lags : array_like of int, shape (L,)
        j >= 0, in time steps.

    Returns
    -------
    ndarray
        Shape (L, n) for type R, a column for each i; shape (L, 2n) for type C, the cosine and the
        sine curve of each i side by side.

    Raises
    ------
    ValueError
        As in `jordan_block`, and if lags are not a vector of whole numbers from 0 on.
    TypeError
        If the order is no integer.

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
    # binom(j, i) is 0 for i > j; the power is then kept at 0 to stay finite.
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
