"""Recursions of the variance: GARCH, GJR-GARCH, EGARCH. A further one is an entry in the table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

Fields = tuple[Tensor, ...]

MEAN_SIZE = math.sqrt(2 / math.pi)  # of the absolute value of a standard normal number


@dataclass(frozen=True)
class Volatility:
    r"""A linear recursion for the variance or its logarithm, driven by shocks.

    .. math:: g_t = \omega + \sum_{i=1}^p a_i' s_{t-i} + \sum_{j=1}^q \beta_j g_{t-j}

    with :math:`g_t = h_t` or :math:`\log h_t` and s the `shocks`, functions of the residual and
    its variance. It runs in companion form: field k of the memory is the part of
    :math:`g_{t+k}` that is known before :math:`e_t`, so that field 0 is :math:`g_t`.

    Parameters
    ----------
    name, title : str
        As an argument, and in a summary.
    coefficients : tuple of str
        Greek names of the coefficients of the shocks, ``("alpha", "gamma")``.
    shocks : callable
        ``shocks(e, h) -> tuple`` of tensors.
    expected : tuple of float
        Expectation of the shocks given the past, in units of h.
    log : bool
        Whether g is the logarithm of the variance.
    before : tuple of float
        Shocks before the first observation, for a logarithm; their expectation if empty.
    even : bool
        Whether shocks are even functions of the residual. The expected information of mean and
        variance together is zero then, as densities are symmetric (Engle, 1982).
    without_leverage : Volatility, optional
        The recursion of which this one has the coefficients and further ones.
    """

    name: str
    title: str
    coefficients: tuple[str, ...]
    shocks: Callable[[Tensor, Tensor], Fields]
    expected: tuple[float, ...]
    log: bool = False
    before: tuple[float, ...] = ()
    even: bool = False
    without_leverage: Volatility | None = None

    def names(self, p: int, q: int) -> tuple[str, ...]:
        """Names of the parameters, those of a coefficient together."""
        greek = [*((name, p) for name in self.coefficients), ("beta", q)]
        return ("omega", *(f"{name}[{i + 1}]" for name, n in greek for i in range(n)))

    def variance(self, memory: Fields) -> tuple[Tensor, Tensor]:
        """Return h and log h of this step."""
        g = memory[0]
        return (torch.exp(g), g) if self.log else (g, torch.log(g))

    def advance(
        self, memory: Fields, shocks: Fields, params: Fields, order: tuple[int, int]
    ) -> Fields:
        """Memory after the shocks of a step."""
        (p, q), (omega, *rest) = order, params
        new = []
        for k in range(len(memory)):
            terms = [rest[s * p + k] * shock for s, shock in enumerate(shocks) if k < p]
            terms += [rest[len(shocks) * p + k] * memory[0]] if k < q else []
            terms += [memory[k + 1]] if k + 1 < len(memory) else []
            new.append(sum(terms, start=omega) if k == 0 else sum(terms[1:], start=terms[0]))
        return tuple(new)


def _squares(e: Tensor, h: Tensor) -> Fields:
    return (e * e,)


def _squares_by_sign(e: Tensor, h: Tensor) -> Fields:
    return e * e, torch.where(e < 0, e * e, 0.0)


def _size_and_sign(e: Tensor, h: Tensor) -> Fields:
    z = e / torch.sqrt(h)
    return torch.abs(z) - MEAN_SIZE, z


GARCH = Volatility("garch", "GARCH", ("alpha",), _squares, expected=(1.0,), even=True)
r""":math:`h_t = \omega + \sum_i \alpha_i e_{t-i}^2 + \sum_j \beta_j h_{t-j}`
(Bollerslev, 1986)."""

GJR = Volatility(
    "gjr", "GJR-GARCH", ("alpha", "gamma"), _squares_by_sign, expected=(1.0, 0.5),
    without_leverage=GARCH,
)  # fmt: skip
r""":math:`h_t = \omega + \sum_i (\alpha_i + \gamma_i 1[e_{t-i} < 0]) e_{t-i}^2
+ \sum_j \beta_j h_{t-j}` (Glosten, Jagannathan and Runkle, 1993)."""

EGARCH = Volatility(
    "egarch", "EGARCH", ("alpha", "gamma"), _size_and_sign, expected=(0.0, 0.0), log=True
)
r""":math:`\log h_t = \omega + \sum_i \alpha_i (|z_{t-i}| - \sqrt{2/\pi}) + \gamma_i z_{t-i}
+ \sum_j \beta_j \log h_{t-j}` with :math:`z_t = e_t / \sqrt{h_t}` (Nelson, 1991)."""

EGARCH_TSP = replace(EGARCH, before=(-MEAN_SIZE, 0.0))
"""EGARCH after residuals of zero, as TSP has it."""

VOLATILITIES = {volatility.name: volatility for volatility in (GARCH, GJR, EGARCH)}
