"""Lag polynomials over many units: admissibility, roots, reflection, impulse responses.

Coefficients (lags, N) "of an AR" are those of phi(B) = 1 - phi_1 B - ... For a moving average
theta(B) = 1 + theta_1 B + ..., pass -theta.
"""

from __future__ import annotations

import numpy as np


def partial_autocorrelations(phi: np.ndarray) -> np.ndarray:
    """Reflection coefficients of an AR by the Durbin-Levinson step-down, shape (p, N).

    All roots of phi lie outside the unit circle if and only if all are below one in modulus. Going
    down from the last, coefficients after the first violation are NaN.
    """
    result = np.empty_like(phi)
    rest = phi
    for k in range(len(phi) - 1, -1, -1):
        last = result[k] = rest[k]
        # NaN avoids a division by zero on the circle, and overflow beyond it.
        inside = np.where(np.abs(last) < 1, last, np.nan)
        rest = (rest[:k] + inside * rest[:k][::-1]) / (1 - inside**2)
    return result


def is_stable(phi: np.ndarray) -> np.ndarray:
    """Mask (N,) of ARs whose roots all lie outside the unit circle."""
    with np.errstate(invalid="ignore"):
        return (np.abs(partial_autocorrelations(phi)) < 1).all(0)


def from_partial(partial: np.ndarray) -> np.ndarray:
    """Coefficients of the AR with the given partial autocorrelations, shape (p, N)."""
    phi = partial[:0]
    for k in range(len(partial)):
        phi = np.concatenate([phi - partial[k] * phi[::-1], partial[k : k + 1]])
    return phi


def inverse_roots(phi: np.ndarray) -> np.ndarray:
    """Inverse roots of an AR, the eigenvalues of its companion matrix, complex (p, N)."""
    p, n = phi.shape
    if p == 0:
        return np.empty((0, n), dtype=complex)
    if p == 1:
        return phi.astype(complex)
    companion = np.zeros((n, p, p))
    companion[:, range(p - 1), range(1, p)] = 1
    companion[:, :, 0] = phi.T
    return np.linalg.eigvals(companion).astype(complex).T


def from_inverse_roots(roots: np.ndarray) -> np.ndarray:
    """Coefficients of the AR with the given inverse roots, shape (p, N)."""
    polynomial = np.ones((1, roots.shape[1]), dtype=complex)
    for root in roots:
        zero = np.zeros_like(polynomial[:1])
        polynomial = np.concatenate([polynomial, zero]) - root * np.concatenate([zero, polynomial])
    return -polynomial[1:].real


def with_inverse_root(phi: np.ndarray, root: complex) -> np.ndarray:
    """Coefficients (p + 1, N) of the AR with a further inverse root, complex if the root is."""
    zero = np.zeros((1, phi.shape[1]))
    padded = np.concatenate([zero + 1, -phi])
    return -(np.concatenate([padded, zero]) - root * np.concatenate([zero, padded]))[1:]


def reflected(phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reflect roots inside the unit circle to the outside.

    Returns coefficients (p, N) and a factor (N,), the product of the squared moduli of the
    reflected inverse roots. A moving average keeps its autocovariances if the variance of its
    innovations is multiplied by the factor.
    """
    phi, factor = phi.copy(), np.ones(phi.shape[1])
    unstable = np.flatnonzero(~is_stable(phi))
    if len(unstable):
        roots = inverse_roots(phi[:, unstable])
        modulus = np.abs(roots)
        outside = modulus > 1
        factor[unstable] = np.prod(np.where(outside, modulus, 1) ** 2, axis=0)
        roots = np.where(outside, 1 / np.where(outside, roots, 1).conj(), roots)
        phi[:, unstable] = from_inverse_roots(roots)
    return phi, factor


def integration(d: int, D: int, m: int) -> np.ndarray:
    """Coefficients (d + m D,) of the AR (1 - B)^d (1 - B^m)^D."""
    polynomial = np.ones(1)
    for lag in (1,) * d + (m,) * D:
        polynomial = np.append(polynomial, np.zeros(lag)) - np.append(np.zeros(lag), polynomial)
    return -polynomial[1:]


def psi_weights(phi: np.ndarray, theta: np.ndarray, h: int) -> np.ndarray:
    r"""Weights psi (h + 1, N) of u_t = sum of psi_j e_{t-j}.

    .. math:: \psi_0 = 1, \quad \psi_j = \theta_j + \sum_{i=1}^{\min(j, p)} \phi_i \psi_{j-i}
    """
    psi = np.zeros((h + 1, phi.shape[1]))
    psi[0] = 1
    for j in range(1, h + 1):
        if j <= len(theta):
            psi[j] = theta[j - 1]
        for i in range(1, min(j, len(phi)) + 1):
            psi[j] += phi[i - 1] * psi[j - i]
    return psi


def psi_weight_derivatives(phi: np.ndarray, theta: np.ndarray, h: int) -> np.ndarray:
    r"""Derivatives of `psi_weights` by phi, then theta: shape (p + q, h + 1, N).

    With :math:`\psi(B) = \theta(B) / \phi(B)`, the derivative by phi_i is
    :math:`B^i \psi(B) / \phi(B)`, by theta_j :math:`B^j / \phi(B)`.
    """
    inverse_phi = psi_weights(phi, phi[:0], h)
    psi = psi_weights(phi, theta, h)
    convolved = np.stack([(inverse_phi[: j + 1] * psi[: j + 1][::-1]).sum(0) for j in range(h + 1)])
    shifts = [(convolved, i + 1) for i in range(len(phi))]
    shifts += [(inverse_phi, i + 1) for i in range(len(theta))]
    result = np.zeros((len(shifts), h + 1, phi.shape[1]))
    for row, (series, lag) in zip(result, shifts, strict=True):
        row[lag:] = series[: max(h + 1 - lag, 0)]
    return result
