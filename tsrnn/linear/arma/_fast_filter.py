r"""Exact likelihood of complete seasonal series without matrices, and its gradient by the adjoint.

The state of an ARMA in innovation form is as long as the longest lag of its multiplied polynomials,
too long for a variance matrix at each row. The variance of a stationary model starts at its
stationary value, so that its change from row to row has rank one (Morf, Sidhu and Kailath, 1974;
Pearlman, 1980),

.. math::
    P_{t+1} - P_t = M_t L_t L_t', \qquad F_{t+1} = F_t + M_t \ell_t^2, \qquad
    G_{t+1} = G_t + M_t \ell_t T L_t, \\
    L_{t+1} = T L_t - G_{t+1} \ell_t / F_{t+1}, \qquad M_{t+1} = M_t + M_t^2 \ell_t^2 / F_t, \\
    v_t = u_t - Z a_t, \qquad a_{t+1} = T a_t + G_t v_t / F_t, \qquad \ell_t = Z L_t,

from :math:`L_1 = G_1`, :math:`M_1 = -1 / F_1`: the cost of a row is linear in the length of the
state. Coefficients of the multiplied polynomials are padded with zeros, so that models of all
orders are lanes of one batch. Lanes are the last axis of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Innovations(NamedTuple):
    """One-step forecast errors of N lanes, with the terms of the recursion for the adjoint."""

    v: Array  # (T, N), errors
    F: Array  # (T, N), their variances in units of sigma2
    G: Array  # (T + 1, r, N), or (1, r, N) of the last row if rows are not kept
    L: Array  # as G
    M: Array  # (T + 1, N)
    state: Array  # (r, N), a after the last row


def stationary_start(phi: Array, theta: Array) -> tuple[Array, Array | None]:
    """First column (r, N) of the state's stationary variance, and the matrices A of its equations.

    phi and theta have shape (r, N). Without an autoregression phi has no rows, and A is None.
    """
    r, n = theta.shape
    K = theta if not len(phi) else phi + theta
    b = correlation(K, K)
    if not len(phi):
        return b, None
    A = np.zeros((n, r, r), dtype=b.dtype)
    A[:, range(r), range(r)] = 1.0
    A[:, :, 0] -= correlation(phi, phi).T
    lags = phi.T
    for j in range(r):
        A[:, j, j + 1 :] -= lags[:, : r - 1 - j]
        last = min(r - j, r - 1)
        A[:, j, 1 : last + 1] -= lags[:, j : j + last]
    return solution(A, b.T[:, :, None])[:, :, 0].T, A


def solution(A: Array, b: Array) -> Array:
    """Solutions (N, r, w) of A x = b; NaN for a matrix that rounding makes singular.

    Matrices are nearly singular next to the unit circle; such a lane must not stop the others.
    """
    try:
        return np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        # det and solve use the same factors: the determinant is zero if and only if solve fails.
        singular = np.linalg.det(A) == 0
        x = np.full(b.shape, np.nan, np.result_type(A, b))
        x[~singular] = np.linalg.solve(A[~singular], b[~singular])
        return x


def correlation(a: Array, b: Array) -> Array:
    """Sums over k of a_k b_{k+j} for j = 0, ..., r - 1, of arrays (r, N)."""
    r = len(a)
    return np.stack([(a[: r - j] * b[j:]).sum(0) for j in range(r)])


def convolution(a: Array, b: Array) -> Array:
    """Sums over k of a_k b_{j-k} for j = 0, ..., r - 1, of arrays (r, N)."""
    result = np.zeros_like(b)
    for k in range(len(a)):
        result[k:] += a[k] * b[: len(b) - k]
    return result


def innovations(phi: Array, theta: Array, u: Array, kept: Array | None = None) -> Innovations:
    """Innovations of series u (T, N) with coefficients (r, N); phi may have no rows.

    With a buffer `kept` of at least 2 (T + 1) r N floats, all rows of G and L are written to it:
    allocating memory at each call would take longer than the recursion.
    """
    (T, n), r = u.shape, len(theta)
    ar = len(phi) > 0
    first, _ = stationary_start(phi, theta)
    keep, kind = kept is not None, np.result_type(first, u)
    shape = (2, T + 1 if keep else 1, r, n)
    G, L = np.empty(shape, kind) if kept is None else kept[: np.prod(shape)].reshape(shape)
    v, F, M = np.empty((T, n), kind), np.empty((T + 1, n), kind), np.empty((T + 1, n), kind)
    g, spare = G[0], np.empty((r, n), kind)
    g[:-1], g[-1] = first[1:], 0.0
    g += theta
    if ar:
        g += phi * (first[0] + 1)
    L[0], F[0] = g, first[0] + 1
    M[0] = -1 / F[0]
    a, moved = np.zeros((r, n), kind), np.empty((r, n), kind)
    for t in range(T):
        now, after = (t, t + 1) if keep else (0, 0)
        g, x = G[now], L[now]
        ell = x[0].copy()
        np.subtract(u[t], a[0], out=v[t])
        # a' = T a + G v / F
        np.multiply(g, v[t] / F[t], out=moved)
        moved[:-1] += a[1:]
        if ar:
            moved += np.multiply(phi, a[0], out=spare)
        a, moved = moved, a
        # F', M', G' and L' follow from T L.
        TL = L[after]
        TL[:-1] = x[1:]
        TL[-1] = 0.0
        if ar:
            TL += np.multiply(phi, ell, out=spare)
        c = ell * M[t]
        F[t + 1] = F[t] + ell * c
        M[t + 1] = M[t] + c * c / F[t]
        np.multiply(TL, c, out=spare)
        np.add(g, spare, out=G[after])
        TL -= np.multiply(G[after], ell / F[t + 1], out=spare)
    return Innovations(v, F[:-1], G, L, M, a)


def adjoint(
    phi: Array, theta: Array, u: Array, path: Innovations, d_v: Array, d_F: Array
) -> tuple[Array, Array, Array]:
    """Derivatives by phi, theta (r, N) and u (T, N) of a function of the innovations.

    `path` must have kept its rows; d_v and d_F (T, N) are the function's derivatives by v and F.
    """
    v, F_rows, G, L, M, _ = path
    (T, n), r = v.shape, len(theta)
    ar = len(phi) > 0
    d_phi, d_u = np.zeros_like(phi), np.empty((T, n))
    a_bar, G_bar, L_bar = np.zeros((3, r, n))
    F_bar, M_bar = np.zeros((2, n))
    spare, T_bar = np.empty((2, r, n))
    F_next = F_rows[-1] + L[T - 1][0] ** 2 * M[T - 1]
    for t in range(T - 1, -1, -1):
        F, ell, m = F_rows[t], L[t][0], M[t]
        c, s, q = ell * m, ell / F_next, v[t] / F
        # L' = T L - G' s
        s_bar = -np.einsum("rn,rn->n", L_bar, G[t + 1])
        G_bar -= np.multiply(L_bar, s, out=spare)
        F_bar = F_bar - s_bar * s / F_next
        # G' = G + T L c, F' = F + l c, M' = M + c^2 / F; T L = L' + G' s
        TL_G = np.einsum("rn,rn->n", L[t + 1], G_bar)
        TL_G += s * np.einsum("rn,rn->n", G[t + 1], G_bar)
        np.multiply(G_bar, c, out=T_bar)
        T_bar += L_bar
        c_bar = TL_G + ell * F_bar + 2 * c / F * M_bar
        ell_bar = s_bar / F_next + c * F_bar + m * c_bar
        F_before = F_bar - c * c / (F * F) * M_bar
        M_bar = M_bar + ell * c_bar
        # a' = T a + G q
        q_bar = np.einsum("rn,rn->n", a_bar, G[t])
        G_bar += np.multiply(a_bar, q, out=spare)
        v_bar = q_bar / F + d_v[t]
        F_bar = F_before - q_bar * q / F + d_F[t]
        a0_bar = -v_bar
        d_u[t] = v_bar
        if ar:
            ell_bar = ell_bar + np.einsum("rn,rn->n", phi, T_bar)
            a0_bar = a0_bar + np.einsum("rn,rn->n", phi, a_bar)
            d_phi += np.multiply(T_bar, ell, out=spare)
            d_phi += np.multiply(a_bar, u[t] - v[t], out=spare)
        L_bar[1:], L_bar[0] = T_bar[:-1], ell_bar
        a_bar[1:] = a_bar[:-1].copy()
        a_bar[0] = a0_bar
        F_next = F
    G_bar += L_bar
    F_bar = F_bar + M_bar / F_rows[0] ** 2
    return *_start_adjoint(phi, theta, F_bar, G_bar, d_phi), d_u


def _start_adjoint(
    phi: Array, theta: Array, F_bar: Array, G_bar: Array, d_phi: Array
) -> tuple[Array, Array]:
    """Add derivatives through the first F and G to those by phi and theta."""
    first, A = stationary_start(phi, theta)
    first_bar = np.zeros_like(theta)
    first_bar[1:] = G_bar[:-1]
    first_bar[0] = F_bar
    if A is None:
        K_bar = correlation(first_bar, theta) + convolution(first_bar, theta)
        return d_phi, G_bar + K_bar
    first_bar[0] += np.einsum("rn,rn->n", phi, G_bar)
    # A first = b: derivatives by b are y, those by A are -y first'.
    y = solution(A.transpose(0, 2, 1), first_bar.T[:, :, None])[:, :, 0].T
    K, later = phi + theta, np.zeros_like(first)
    later[:-1] = first[1:]
    K_bar = correlation(y, K) + convolution(y, K)
    d_phi = d_phi + G_bar * (first[0] + 1) + K_bar
    d_phi += first[0] * (correlation(y, phi) + convolution(y, phi))
    d_phi += correlation(y, later) + convolution(y, later)
    return d_phi, G_bar + K_bar
