r"""Structures of a vech model: Theta and Phi as functions of parameters.

Every structure is estimated as a sum of BEKK terms,

.. math:: M = \sum_k D^+ (A_k' \otimes A_k') D, \quad vec(A_k) = E f_k,

with a Cholesky factor F = (f_1, f_2, ...), which is positive semidefinite for every value. "bekk"
has one term with all elements of A, "full" a term for each element of A. In "diagonal" the A_k
are diagonal, so that M multiplies elementwise by F' F. "scalar" has one term a I. "diagonal bekk",
a start for other structures, has one diagonal term. vech is the lower triangle of a symmetric
matrix, column by column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

STRUCTURES = ("full", "diagonal", "scalar", "bekk")


@dataclass(frozen=True, eq=False)
class Structure:
    """Parameters of the variance equation of n variables, natural or as factors."""

    n: int
    intercept: Block | None  # vech of the constant, (N,); None with targeting
    theta: tuple[Block, ...]  # coefficients of vech(e e') by lag, each (N, N)
    phi: tuple[Block, ...]  # coefficients of vech(H) by lag
    names: tuple[str, ...]  # in the order intercept, theta, phi
    units: np.ndarray  # (size, n), powers of the variables' scales in each parameter

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks of the constant, Theta and Phi, in order."""
        first = () if self.intercept is None else (self.intercept,)
        return (*first, *self.theta, *self.phi)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.names)

    @property
    def n_dynamics(self) -> int:
        """Number of parameters of Theta and Phi, the last parameters."""
        return sum(block.size for block in (*self.theta, *self.phi))


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Coefficients, and their parameters block by block."""

    mean: np.ndarray  # (n, r)
    intercept: np.ndarray | None  # (N,)
    theta: list[np.ndarray]  # each (N, N)
    phi: list[np.ndarray]
    parts: list[np.ndarray]  # parameters of every block of the structure


def coefficients(structure: Structure, n_mean: int, params: np.ndarray) -> Coefficients:
    """Coefficients at parameters of the mean (row by row) and of the structure."""
    ends = np.cumsum([n_mean, *(block.size for block in structure.blocks)])
    mean, *parts = np.split(params, ends[:-1])
    values = [b.value(part) for b, part in zip(structure.blocks, parts, strict=True)]
    intercept = None if structure.intercept is None else values.pop(0)
    p = len(structure.theta)
    return Coefficients(mean.reshape(structure.n, -1), intercept, values[:p], values[p:], parts)


@cache
def factors(kind: str, n: int, p: int, q: int, targeting: bool) -> Structure:
    """Structure in the coordinates of estimation: factors, without constraints."""
    constant = None if targeting else _cholesky(n)
    return _assembled(n, p, q, ("C", constant), ("A", "G"), _terms(kind, n))


@cache
def natural(kind: str, n: int, p: int, q: int, targeting: bool) -> Structure:
    """Structure in the reported coordinates: b, Theta and Phi; C, A and G of a BEKK."""
    if kind == "bekk":
        return factors(kind, n, p, q, targeting)
    constant = None if targeting else _constant(n)
    return _assembled(n, p, q, ("b", constant), ("theta", "phi"), _elements(kind, n))


class _Piece(NamedTuple):
    """Block with the endings of its parameters' names and the powers of scales in them."""

    block: Block
    names: list[str]
    units: np.ndarray


def _assembled(n: int, p: int, q: int, constant: tuple[str, _Piece | None],
               letters: tuple[str, str], piece: _Piece) -> Structure:  # fmt: skip
    symbol, first = constant
    pieces = [] if first is None else [(symbol, first)]
    pieces += [(f"{letters[0]}{i + 1}", piece) for i in range(p)]
    pieces += [(f"{letters[1]}{j + 1}", piece) for j in range(q)]
    return Structure(
        n,
        None if first is None else first.block,
        (piece.block,) * p,
        (piece.block,) * q,
        tuple(symbol + name for symbol, part in pieces for name in part.names),
        np.concatenate([part.units for _, part in pieces]),
    )


def _cholesky(n: int) -> _Piece:
    """Block of vech(C C') in the lower triangle of C, in row order."""
    units = np.eye(n)
    products = np.einsum("ui,vj->uvij", units, units)
    products = (products + products.swapaxes(2, 3)) / 2
    rows, columns = np.tril_indices(n)
    block = Quadratic(vech(products), columns, rows)
    return _Piece(block, _places(rows, columns), units[rows])


def _constant(n: int) -> _Piece:
    """Block of the constant in its elements."""
    rows, columns = pairs(n)
    block = Linear(np.eye(len(rows)))
    return _Piece(block, _places(rows, columns), np.eye(n)[rows] + np.eye(n)[columns])


def _terms(kind: str, n: int) -> _Piece:
    """Block of one lag as a sum of BEKK terms."""
    # Basis matrices E_u of A, (g, n, n).
    basis = np.eye(n)[None]
    if kind != "scalar":
        basis = np.eye(n * n).reshape(n * n, n, n)
        basis = basis[:: n + 1] if kind in ("diagonal", "diagonal bekk") else basis
    products = np.stack([[sandwich(left, right) for right in basis] for left in basis])
    if kind in ("full", "diagonal"):
        # Row k of F is column k of a Cholesky factor, which begins at element k.
        terms, members = np.triu_indices(len(basis))
    else:
        terms, members = np.zeros(len(basis), dtype=np.int64), np.arange(len(basis))
    block = Quadratic(products, terms, members)
    if kind == "scalar":
        return _Piece(block, [""], np.zeros((1, n)))
    rows, columns = np.array([np.argwhere(unit)[0] for unit in basis])[members].T
    names = _places(rows, columns)
    if kind in ("full", "diagonal"):
        names = [f".{k + 1}{name}" for k, name in zip(terms, names, strict=True)]
    return _Piece(block, names, np.eye(n)[columns] - np.eye(n)[rows])


def _elements(kind: str, n: int) -> _Piece:
    """Block of one lag in its coefficients."""
    rows, columns = pairs(n)
    size = len(rows)
    if kind == "scalar":
        return _Piece(Linear(np.eye(size)[None]), [""], np.zeros((1, n)))
    units = np.eye(size * size).reshape(size * size, size, size)
    if kind == "diagonal":
        names = _places(rows, columns)
        return _Piece(Linear(units[:: size + 1]), names, np.zeros((size, n)))
    where = [f"{i + 1}{j + 1}" for i, j in zip(rows, columns, strict=True)]
    powers = np.eye(n)[rows] + np.eye(n)[columns]
    names = [f"[{row},{column}]" for row in where for column in where]
    return _Piece(Linear(units), names, (powers[:, None] - powers).reshape(-1, n))


def _places(rows: np.ndarray, columns: np.ndarray) -> list[str]:
    return [f"[{i + 1},{j + 1}]" for i, j in zip(rows, columns, strict=True)]


class Block(Protocol):
    """Array of coefficients that is a linear or quadratic function of `size` parameters."""

    @property
    def size(self) -> int: ...

    def value(self, params: np.ndarray) -> np.ndarray:
        """Coefficients, of shape `out`, at parameters (size,)."""

    def jacobian(self, params: np.ndarray) -> np.ndarray:
        """Derivatives (size, *out) of the coefficients."""

    def second(self, weights: np.ndarray) -> np.ndarray:
        """Second derivative (size, size) of the sum of coefficients times `weights` (*out)."""


class Linear:
    """Coefficients linear in the parameters, by a basis (size, *out) of zeros and ones.

    Each coefficient has at most one parameter.
    """

    def __init__(self, basis: np.ndarray) -> None:
        self._basis = basis
        self.size = len(basis)

    def value(self, params: np.ndarray) -> np.ndarray:
        return np.tensordot(params, self._basis, 1)

    def jacobian(self, params: np.ndarray) -> np.ndarray:
        return self._basis

    def second(self, weights: np.ndarray) -> np.ndarray:
        return np.zeros((self.size, self.size))

    def params(self, value: np.ndarray) -> np.ndarray:
        """Parameters (..., size) of coefficients (..., *out), the inverse of `value`."""
        basis = self._basis.reshape(self.size, -1)
        flat = value.reshape(*value.shape[: value.ndim - self._basis.ndim + 1], -1)
        return flat @ basis.T / basis.sum(1)

    def weights(self, slopes: np.ndarray) -> np.ndarray:
        """Derivatives by the coefficients from derivatives (size,) by the parameters."""
        counts = self._basis.reshape(self.size, -1).sum(1)
        return np.tensordot(slopes / counts, self._basis, 1)


class Quadratic:
    r"""Coefficients :math:`\sum_k \sum_{u,v} F_{ku} F_{kv} Q_{uv}` of a factor F.

    With Q the `sandwich` of basis matrices E it is :math:`\sum_k D^+ (A_k' \otimes A_k') D`
    for :math:`A_k = \sum_u F_{ku} E_u`, which is positive semidefinite for every F. `products`
    are Q, (g, g, *out), symmetric in the first two axes; `terms` and `members` (size,) are row k
    and column u in F of each parameter. Other elements of F are zero.
    """

    def __init__(self, products: np.ndarray, terms: np.ndarray, members: np.ndarray) -> None:
        g = len(products)
        self._products = products.reshape(g * g, -1)
        self._out, self._g = products.shape[2:], g
        self.terms, self.members = terms, members
        self.size = len(terms)
        self._same_term = terms[:, None] == terms

    def value(self, params: np.ndarray) -> np.ndarray:
        factor = self._factor(params)
        return ((factor.T @ factor).ravel() @ self._products).reshape(self._out)

    def jacobian(self, params: np.ndarray) -> np.ndarray:
        g = self._g
        rows = 2 * self._factor(params) @ self._products.reshape(g, -1)
        return rows.reshape(-1, g, *self._out)[self.terms, self.members]

    def second(self, weights: np.ndarray) -> np.ndarray:
        weighted = 2 * (self._products @ weights.ravel()).reshape(self._g, self._g)
        return np.where(self._same_term, weighted[np.ix_(self.members, self.members)], 0.0)

    def _factor(self, params: np.ndarray) -> np.ndarray:
        factor = np.zeros((self.terms[-1] + 1, self._g))
        factor[self.terms, self.members] = params
        return factor


@cache
def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the N = n (n + 1) / 2 elements of vech, each (N,)."""
    columns, rows = np.triu_indices(n)
    return rows, columns


@cache
def places(n: int) -> np.ndarray:
    """Place of each element of a symmetric matrix in its vech, (n, n)."""
    rows, columns = pairs(n)
    where = np.empty((n, n), dtype=np.int64)
    where[rows, columns] = where[columns, rows] = np.arange(len(rows))
    return where


def n_variables(size: int) -> int:
    """Number n of variables from the size n (n + 1) / 2 of vech."""
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
    # Response of element (i, j) of A' X B to X = E_kl + E_lk for k > l, or X = E_kk.
    twice = np.where(rows == columns, 1.0, 2.0)

    def product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        straight = first[rows][:, rows].T * second[columns][:, columns].T
        crossed = first[columns][:, rows].T * second[rows][:, columns].T
        return (straight + crossed) / 2

    return (product(left, right) + product(right, left)) / 2 * twice


@cache
def half(n: int) -> np.ndarray:
    """Weights (N,) of vech: one half for diagonal elements, one for others."""
    rows, columns = pairs(n)
    return np.where(rows == columns, 0.5, 1.0)
