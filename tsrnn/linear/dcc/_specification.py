"""Specification of a conditional correlation model: steps, orders, parameters by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tsrnn.contract import Arguments, FittedData, SeriesArrays, choice, flag, number
from tsrnn.data import quote
from tsrnn.linear._arguments import order_of
from tsrnn.linear._mean import Mean, MeanSpecification, level_form
from tsrnn.linear.garch._specification import Model, check_skipping, univariate_model

INITIAL_VARIANCES = ("backcast", "sample")
LINEAR_VOLATILITIES = ("garch", "gjr")


@dataclass(frozen=True)
class Specification(MeanSpecification):
    """Model of n named variables: first step, order, conventions."""

    step: FirstStep
    order: Order
    targets: tuple[object, ...]
    initial_variance: str | float
    stationary: bool

    @property
    def mean(self) -> Mean:
        return self.step.mean

    @cached_property
    def n_mean(self) -> int:
        """Number of parameters of an equation's mean."""
        return len(self.mean.names(self.targets)) // self.n

    @cached_property
    def n_first(self) -> int:
        """Number of parameters of the first step."""
        return len(self.step.names(self.targets))

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the correlations, row by row."""
        return np.triu_indices(self.n, 1)

    @cached_property
    def own_names(self) -> tuple[str, ...]:
        """Names of the parameters of equations, unconditional correlations, a and b."""
        rho = (f"rho.{self.targets[i]}.{self.targets[j]}" for i, j in zip(*self.pairs, strict=True))
        return (*self.step.names(self.targets), *rho, *self.order.names)

    def level_forms(self, parts: Parts) -> tuple[np.ndarray, np.ndarray]:
        """Intercepts (S, n) and lag matrices (S, m, n, n) of the means in levels."""
        coefficients = zip(parts.coefficients, parts.beta, strict=True)
        pairs = [level_form(self.mean, c, beta) for c, beta in coefficients]
        intercepts, lags = zip(*pairs, strict=True)
        return np.array(intercepts), np.array(lags)

    def parts(self, params: np.ndarray) -> Parts:
        """Split parameters (S, K) by step."""
        (rows, columns), p = self.pairs, self.order.p
        borders = np.cumsum([self.n_first, len(rows), p, self.order.q])
        first, rho, a, b, elements = np.split(params, borders, axis=1)
        equations = first.reshape(len(params), self.n, -1)
        target = np.tile(np.eye(self.n), (len(params), 1, 1))
        target[:, rows, columns] = target[:, columns, rows] = rho
        r = self.n_mean
        beta = self.mean.relations(elements, self.n)
        return Parts(equations[:, :, :r], equations[:, :, r:], target, a, b, beta)


def correlation_specification(
    arguments: Arguments, data: FittedData, garch_order: str, order: Order
) -> Specification:
    """Check the constructor's arguments and make the specification for the targets of the data.

    `garch_order` names the argument with the order of the variances.
    """
    targets = data.layout.target_names
    if len(targets) < 2:
        raise ValueError(
            f"{arguments.class_name} needs at least two targets to correlate; got "
            f"{quote(list(targets))}. Name them by target=[...], or take GARCH for one"
        )
    check_skipping(arguments)
    what = "p lags of squared residuals and q of the variance"
    p, q = order_of(garch_order, getattr(arguments, garch_order), what)
    mean = Mean(arguments.mean, arguments.mean_order, arguments.coint_rank)
    vol = choice("vol", arguments.vol, LINEAR_VOLATILITIES)
    initial = arguments.initial_variance
    if not isinstance(initial, str):
        initial = number("initial_variance", initial, lowest=0.0, open_=True)
    elif initial not in INITIAL_VARIANCES:
        raise ValueError(
            f"initial_variance must be one of {INITIAL_VARIANCES} or a number; got {initial!r}. "
            "It must not move with the parameters here"
        )
    return Specification(
        step=FirstStep(mean, vol, p, q),
        order=order,
        targets=tuple(targets),
        initial_variance=initial,
        stationary=flag("stationary", arguments.stationary),
    )


@dataclass(frozen=True)
class FirstStep:
    """First step of the estimation: a mean of all variables, and a variance for each.

    A constant mean is estimated together with the variance of its variable, as in GARCH. "var"
    and "vecm" are estimated by least squares, and variances from their residuals.
    """

    mean: Mean
    vol: str
    p: int
    q: int

    @property
    def joint(self) -> bool:
        """True if the mean is estimated together with the variance of its variable."""
        return self.mean.kind == "constant"

    def model(self, padded: bool = False, *, gaps: bool = False, with_mean: bool = False) -> Model:
        """Univariate model of the residuals; with `with_mean`, of the data."""
        constant = with_mean and self.joint
        return univariate_model(self.vol, self.p, self.q, constant, padded or gaps, gaps)

    def names(self, targets: Sequence[object]) -> tuple[str, ...]:
        """Names of the parameters, equation by equation."""
        means = self.mean.names(targets)
        r = len(means) // len(targets)
        return tuple(
            name
            for i, target in enumerate(targets)
            for name in (
                *means[i * r : (i + 1) * r],
                *(f"{name}.{target}" for name in self.model().names),
            )
        )


class Order(NamedTuple):
    """Order of the correlations."""

    p: int  # lags of outer products
    q: int  # lags of Q
    corrected: bool  # Aielli's model

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the p + q parameters."""
        return (
            *(f"a[{i}]" for i in range(1, self.p + 1)),
            *(f"b[{j}]" for j in range(1, self.q + 1)),
        )


@dataclass(frozen=True, eq=False)
class Parts(SeriesArrays):
    """Parameters of S series by step."""

    coefficients: np.ndarray  # (S, n, r), of the mean
    variance: np.ndarray  # (S, n, k)
    target: np.ndarray  # S, (S, n, n)
    a: np.ndarray  # (S, p)
    b: np.ndarray  # (S, q)
    beta: np.ndarray  # (S, n, rank), cointegrating vectors

    @property
    def variance_rows(self) -> np.ndarray:
        """Parameters of the variances, a row for each equation, (S n, k)."""
        return self.variance.reshape(-1, self.variance.shape[2])


def check_admissible(parts: Parts) -> None:
    """Raise a ValueError for correlation parameters outside their bounds."""
    dynamic = np.hstack([parts.a, parts.b])
    if (dynamic < 0).any() or (dynamic.sum(1) > 1).any():
        raise ValueError(
            f"a and b must not be negative and sum to at most one; got {dynamic.tolist()}"
        )
    if not (np.linalg.eigvalsh(parts.target)[:, 0] > 0).all():
        raise ValueError("the correlations rho must make a positive definite matrix; they do not")
