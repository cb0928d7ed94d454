"""A model put together: its steps, its order, its parameters by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tsrnn.linear.dcc._equations import FirstStep
from tsrnn.linear.dcc._fit import Order


class Parts(NamedTuple):
    """Parameters of S series.

    Mean (S, n, r), variance (S, n, k), S, a (S, p), b (S, q), and cointegrating vectors
    (S, n, rank).
    """

    coefficients: np.ndarray
    variance: np.ndarray
    target: np.ndarray
    a: np.ndarray
    b: np.ndarray
    beta: np.ndarray


@dataclass(frozen=True)
class Specification:
    """A model of n named variables: its first step, its order, its conventions."""

    step: FirstStep
    order: Order
    targets: tuple[object, ...]
    initial_variance: str | float
    stationary: bool

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.targets)

    @property
    def n_mean(self) -> int:
        """Parameters of the mean of an equation."""
        return len(self.step.mean.names(self.targets)) // self.n

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the correlations, row by row."""
        return np.triu_indices(self.n, 1)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters: equations, unconditional correlations, a, b, beta."""
        return (*self.own_names, *self.relation_names)

    @property
    def relation_names(self) -> tuple[str, ...]:
        """Names of the elements of the cointegrating vectors."""
        return self.step.mean.relation_names(self.targets)

    @cached_property
    def own_names(self) -> tuple[str, ...]:
        """Names of all parameters but the cointegrating vectors."""
        rho = (f"rho.{self.targets[i]}.{self.targets[j]}" for i, j in zip(*self.pairs, strict=True))
        return (*self.step.names(self.targets), *rho, *self.order.names)

    def parts(self, params: np.ndarray) -> Parts:
        """Take parameters (S, K) apart."""
        (rows, columns), p = self.pairs, self.order.p
        borders = np.cumsum([len(self.step.names(self.targets)), len(rows), p, self.order.q])
        first, rho, a, b, elements = np.split(params, borders, axis=1)
        equations = first.reshape(len(params), self.n, -1)
        target = np.tile(np.eye(self.n), (len(params), 1, 1))
        target[:, rows, columns] = target[:, columns, rows] = rho
        r = self.n_mean
        beta = self.step.mean.relations(elements, self.n)
        return Parts(equations[:, :, :r], equations[:, :, r:], target, a, b, beta)
