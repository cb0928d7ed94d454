"""The stationary variance of an ARMA state."""

from __future__ import annotations

from collections.abc import Sequence

from tsrnn.linear.arma._entries import Entry, Matrix, add, dot, inverse, mul, sub


def stationary_variance(phi: Sequence[Entry], theta: Sequence[Entry]) -> Matrix:
    r"""Variance P of the state of an ARMA in units of sigma2: P = T P T' + K K'.

    With the companion matrix T, the first row v of P says the rest,

    .. math:: P_{ij} = \phi_i \phi_j v_0 + \phi_i v_{j+1} + \phi_j v_{i+1} + K_i K_j
                       + P_{i+1,j+1},

    and its entries for i = 0 are r linear equations in v. Eliminated from the last unknown up,
    their pivots are positive where phi is stationary: there is nothing to exchange.

    Parameters
    ----------
    phi, theta : sequences of p and q numbers, arrays or tensors

    Returns
    -------
    list of r = max(p, q, 1) lists of r entries
    """
    r = max(len(phi), len(theta), 1)
    phi, theta = ([*given, *[0] * (r - len(given))] for given in (phi, theta))
    K = [add(f, t) for f, t in zip(phi, theta, strict=True)]
    v = [*_first_row(phi, K), 0]
    P: Matrix = [[0] * r for _ in range(r)]
    for i in range(r - 1, -1, -1):
        for j in range(i, r):
            own = dot([mul(phi[i], phi[j]), phi[i], phi[j], K[i]], [v[0], v[j + 1], v[i + 1], K[j]])
            P[i][j] = P[j][i] = add(own, P[i + 1][j + 1] if j + 1 < r else 0)
    return P


def _first_row(phi: Sequence[Entry], K: Sequence[Entry]) -> list[Entry]:
    r = len(phi)
    A = _equations(phi)
    v: list[Entry] = [dot(K[: r - j], K[j:]) for j in range(r)]
    for pivot in range(r - 1, 0, -1):
        one_over = inverse(A[pivot][pivot])
        for row in range(pivot):
            factor = mul(A[row][pivot], one_over)
            v[row] = sub(v[row], mul(factor, v[pivot]))
            for column in range(pivot):
                A[row][column] = sub(A[row][column], mul(factor, A[pivot][column]))
    for row in range(r):
        known = dot(A[row][:row], v[:row])
        v[row] = mul(sub(v[row], known), inverse(A[row][row]))
    return v


def _equations(phi: Sequence[Entry]) -> Matrix:
    r = len(phi)
    A: Matrix = [[int(i == j) for j in range(r)] for i in range(r)]
    for j in range(r):
        for k in range(r - j):
            A[j][0] = sub(A[j][0], mul(phi[k], phi[k + j]))
            if k + j + 1 < r:
                A[j][k + j + 1] = sub(A[j][k + j + 1], phi[k])
            if k + 1 < r:
                A[j][k + 1] = sub(A[j][k + 1], phi[k + j])
    return A
