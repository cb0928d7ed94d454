r"""The structures of a vech model: which Theta and Phi, by which parameters.

Every structure is estimated as a sum of BEKK terms,

.. math:: M = \sum_k D^+ (A_k' \otimes A_k') D, \quad vec(A_k) = E f_k,

with a Cholesky factor F = (f_1, f_2, ...) that makes it positive semidefinite for every value:
"bekk" has one term with all elements of A; "full" as many as A has elements; in "diagonal" the
A_k are diagonal, so that M multiplies by the matrix F' F; "scalar" has one term a I. The
"diagonal bekk", a start for others, has one diagonal term.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from tsrnn.linear.vech._algebra import pairs, sandwich, vech
from tsrnn.linear.vech._blocks import Block, Linear, Quadratic

STRUCTURES = ("full", "diagonal", "scalar", "bekk")


@dataclass(frozen=True, eq=False)
class Structure:
    """Parameters of the variance equation of n variables, in one of two sets of coordinates.

    Parameters
    ----------
    n : int
    intercept : Block or None
        vech of the constant, of shape (N,); none where it is targeted.
    theta : tuple of Block
        Coefficients of vech(e e') by lag, each of shape (N, N).
    phi : tuple of Block
        Coefficients of vech(H) by lag.
    names : tuple of str
        Of all parameters, in the order intercept, theta, phi.
    units : array of shape (size, n)
        Powers of the units of the variables in each parameter.
    """

    n: int
    intercept: Block | None
    theta: tuple[Block, ...]
    phi: tuple[Block, ...]
    names: tuple[str, ...]
    units: np.ndarray

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All of them in order."""
        first = () if self.intercept is None else (self.intercept,)
        return (*first, *self.theta, *self.phi)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return len(self.names)

    @property
    def n_dynamics(self) -> int:
        """Number of parameters of Theta and Phi, which are the last ones."""
        return sum(block.size for block in (*self.theta, *self.phi))


class _Piece(NamedTuple):
    """A block, the endings of its parameters' names and their units."""

    block: Block
    names: list[str]
    units: np.ndarray


@cache
def factors(kind: str, n: int, p: int, q: int, targeting: bool) -> Structure:
    """The structure in the coordinates of estimation: factors, free of constraints."""
    constant = None if targeting else _cholesky(n)
    return _assembled(n, p, q, ("C", constant), ("A", "G"), _terms(kind, n))


@cache
def natural(kind: str, n: int, p: int, q: int, targeting: bool) -> Structure:
    """The structure in the coordinates that are reported: b, Theta and Phi; C, A, G of a BEKK."""
    if kind == "bekk":
        return factors(kind, n, p, q, targeting)
    constant = None if targeting else _constant(n)
    return _assembled(n, p, q, ("b", constant), ("theta", "phi"), _plain(kind, n))


def _assembled(n: int, p: int, q: int, constant: tuple[str, _Piece | None],
               letters: tuple[str, str], piece: _Piece) -> Structure:  # fmt: skip
    prefixes = [f"{letters[0]}{i + 1}" for i in range(p)]
    prefixes += [f"{letters[1]}{j + 1}" for j in range(q)]
    named = [(prefix, piece) for prefix in prefixes]
    prefix, first = constant
    if first is not None:
        named.insert(0, (prefix, first))
    return Structure(
        n,
        None if first is None else first.block,
        (piece.block,) * p,
        (piece.block,) * q,
        tuple(prefix + name for prefix, one in named for name in one.names),
        np.concatenate([one.units for _, one in named]),
    )


def _cholesky(n: int) -> _Piece:
    """vech(C C') by the lower triangle of C in row order."""
    units = np.eye(n)
    products = np.einsum("ui,vj->uvij", units, units)
    products = (products + products.swapaxes(2, 3)) / 2
    rows, columns = np.tril_indices(n)
    block = Quadratic(vech(products), columns, rows)
    return _Piece(block, _places(rows, columns), units[rows])


def _constant(n: int) -> _Piece:
    """The constant by its elements."""
    rows, columns = pairs(n)
    block = Linear(np.eye(len(rows)))
    return _Piece(block, _places(rows, columns), np.eye(n)[rows] + np.eye(n)[columns])


def _terms(kind: str, n: int) -> _Piece:
    """One lag as a sum of BEKK terms."""
    basis = _basis(kind, n)
    products = np.stack([[sandwich(one, other) for other in basis] for one in basis])
    if kind in ("full", "diagonal"):
        # The rows of F are the columns of its Cholesky factor: the k-th begins at element k.
        terms, members = np.triu_indices(len(basis))
    else:
        terms, members = np.zeros(len(basis), dtype=np.int64), np.arange(len(basis))
    block = Quadratic(products, terms, members)
    if kind == "scalar":
        return _Piece(block, [""], np.zeros((1, n)))
    rows, columns = np.array([np.argwhere(one)[0] for one in basis])[members].T
    names = _places(rows, columns)
    if kind in ("full", "diagonal"):
        names = [f".{k + 1}{name}" for k, name in zip(terms, names, strict=True)]
    return _Piece(block, names, np.eye(n)[columns] - np.eye(n)[rows])


def _basis(kind: str, n: int) -> np.ndarray:
    """Matrices E_u that the A of a term combines, (g, n, n)."""
    if kind == "scalar":
        return np.eye(n)[None]
    units = np.eye(n * n).reshape(n * n, n, n)
    return units[:: n + 1] if kind in ("diagonal", "diagonal bekk") else units


def _plain(kind: str, n: int) -> _Piece:
    """One lag with the coefficients themselves as parameters."""
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
