"""Coefficients of a recurrence as functions of parameters, with exact derivatives."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Block(Protocol):
    """An array of coefficients that is a linear or quadratic function of `size` parameters."""

    @property
    def size(self) -> int: ...

    def value(self, params: np.ndarray) -> np.ndarray:
        """The coefficients, of some shape `out`, at parameters (size,)."""

    def jacobian(self, params: np.ndarray) -> np.ndarray:
        """Their derivatives, (size, *out)."""

    def second(self, weights: np.ndarray) -> np.ndarray:
        """Second derivative (size, size) of their sum weighted by `weights` of shape `out`."""


class Linear:
    """Coefficients linear in the parameters.

    Parameters
    ----------
    basis : array of shape (size, *out)
        Of zeros and ones, no two of them at the same place.
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
        """Parameters (..., size) of coefficients (..., *out): the inverse of `value`."""
        basis = self._basis.reshape(self.size, -1)
        flat = value.reshape(*value.shape[: value.ndim - self._basis.ndim + 1], -1)
        return flat @ basis.T / basis.sum(1)

    def weights(self, slopes: np.ndarray) -> np.ndarray:
        """Derivative with respect to the coefficients of what has slopes (size,) in `params`."""
        counts = self._basis.reshape(self.size, -1).sum(1)
        return np.tensordot(slopes / counts, self._basis, 1)


class Quadratic:
    r"""Coefficients :math:`\sum_k \sum_{u,v} F_{ku} F_{kv} Q_{uv}` of a factor F.

    With Q the sandwiches of basis matrices E it is :math:`\sum_k D^+ (A_k' \otimes A_k') D`
    for :math:`A_k = \sum_u F_{ku} E_u`: positive semidefinite for every F.

    Parameters
    ----------
    products : array of shape (g, g, *out)
        Q, symmetric in its first two axes.
    terms, members : array of shape (size,)
        Row k and column u of F of each parameter; the others are zero.
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
