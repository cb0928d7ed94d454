"""Recursions of the variance, its root or its logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Fields = tuple[Tensor, ...]

MEAN_SIZE = math.sqrt(2 / math.pi)  # E|z| of a standard normal z


@dataclass(frozen=True)
class Volatility:
    r"""Linear recursion for a transform of the variance, driven by shocks.

    .. math:: g_t = \omega + \sum_{i=1}^p a_i' s_{t-i} + \sum_{j=1}^q \beta_j g_{t-j}

    with :math:`g_t = h_t^\lambda`, or :math:`\log h_t` for :math:`\lambda = 0`, and s the
    `shocks`, functions of the residual and its variance. It runs in companion form: field k of
    the state is the part of :math:`g_{t+k}` known before :math:`e_t`; field 0 is :math:`g_t`.

    Parameters
    ----------
    name, title : str
        Name as an argument, and in a summary.
    coefficients : tuple of str
        Greek names of the coefficients of the shocks, ``("alpha", "gamma")``.
    shocks : callable
        ``shocks(e, h) -> tuple`` of tensors: the size :math:`|e|^{2 \lambda}` of the residual,
        then a part of it, such as the size of negative residuals and zero for others. Logarithms
        have EGARCH's shocks.
    expected : tuple of float
        Expectation of the shocks given the past, relative to the expected size.
    power : {1, 0.5, 0}
        :math:`\lambda`, for a recursion of the variance, its root or its logarithm. Unless it is
        zero, the first coefficient and its sum with each other one are not negative.
    even : bool
        True if shocks are even functions of the residual. The expected cross-information of mean
        and variance is zero then, as densities are symmetric (Engle, 1982).
    without_leverage : Volatility, optional
        The nested recursion, without coefficients of leverage.

    Raises
    ------
    ValueError
        If the power is another, or the numbers of coefficients, expectations and shocks differ.

    Examples
    --------
    >>> from tsrnn.linear import VOLATILITIES
    >>> tgarch = VOLATILITIES["tgarch"]
    >>> tgarch.power, tgarch.expected
    (0.5, (1.0, 0.5))
    >>> tgarch.names(p=1, q=1)
    ('omega', 'alpha[1]', 'gamma[1]', 'beta[1]')
    """

    name: str
    title: str
    coefficients: tuple[str, ...]
    shocks: Callable[[Tensor, Tensor], Fields]
    expected: tuple[float, ...]
    power: float = 1.0
    even: bool = False
    without_leverage: Volatility | None = None

    def __post_init__(self) -> None:
        if self.power not in (1, 0.5, 0):
            raise ValueError(
                "power must be 1, 0.5 or 0, of the variance, its root or its logarithm, whose "
                f"moments are known; got {self.power!r}"
            )
        if len(self.expected) != len(self.coefficients):
            raise ValueError(
                f"expected must have a number for each coefficient of {self.coefficients}; got "
                f"{self.expected!r}"
            )
        unit = torch.ones((), dtype=torch.float64)
        shocks = self.shocks(unit, unit)
        # A fit with too few shocks would raise nothing.
        if not isinstance(shocks, tuple) or len(shocks) != len(self.coefficients):
            received = (
                f"{len(shocks)} shocks" if isinstance(shocks, tuple) else type(shocks).__name__
            )
            raise ValueError(
                "shocks must return a tuple with a tensor for each coefficient of "
                f"{self.coefficients}; got {received}"
            )

    def names(self, p: int, q: int) -> tuple[str, ...]:
        """Names of the parameters: omega, then the lags of each coefficient."""
        greek = [*((name, p) for name in self.coefficients), ("beta", q)]
        return ("omega", *(f"{name}[{i + 1}]" for name, n in greek for i in range(n)))

    @property
    def log(self) -> bool:
        """True for a recursion of the logarithm of the variance."""
        return self.power == 0

    @property
    def root(self) -> bool:
        """True for a recursion of the root of the variance."""
        return self.power == 0.5

    @property
    def kinked(self) -> bool:
        """True if shocks have a kink at a residual of zero, as absolute values have."""
        return self.power < 1

    def transformed(self, h: np.ndarray) -> np.ndarray:
        """Transform g of variances."""
        if self.log:
            return np.log(h)
        return h if self.power == 1 else np.sqrt(h)

    def restored(self, g: np.ndarray) -> np.ndarray:
        """Variances from their transform g."""
        if self.log:
            return np.exp(g)
        return g if self.power == 1 else g * g

    def variance(self, state: Fields) -> tuple[Tensor, Tensor]:
        """Variance h and log h of this step."""
        g, h = state[0], self.variance_alone(state)
        if self.log:
            return h, g
        return h, torch.log(g) if self.power == 1 else 2 * torch.log(g)

    def variance_alone(self, state: Fields) -> Tensor:
        """Variance h of this step alone: simulated paths need no logarithms."""
        g = state[0]
        if self.log:
            return torch.exp(g)
        return g if self.power == 1 else g * g

    def expected_shocks(self, g: Tensor, mean_size: Tensor | float) -> Fields:
        r"""Expected shocks given a transformed variance g and :math:`E|z|`."""
        if self.log:
            return (0 * g + (mean_size - MEAN_SIZE), 0 * g)
        size = mean_size * g if self.root else g
        return tuple(weight * size for weight in self.expected)

    def advance(
        self, state: Fields, shocks: Fields, params: Fields, order: tuple[int, int]
    ) -> Fields:
        """State after the shocks of a step."""
        (p, q), (omega, *rest) = order, params
        new = []
        for k in range(len(state)):
            terms = [rest[s * p + k] * shock for s, shock in enumerate(shocks) if k < p]
            terms += [rest[len(shocks) * p + k] * state[0]] if k < q else []
            terms += [state[k + 1]] if k + 1 < len(state) else []
            new.append(sum(terms, start=omega) if k == 0 else sum(terms[1:], start=terms[0]))
        return tuple(new)


def _squares(e: Tensor, h: Tensor) -> Fields:
    return (e * e,)


def _squares_by_sign(e: Tensor, h: Tensor) -> Fields:
    return e * e, torch.where(e < 0, e * e, 0.0)


def _sizes(e: Tensor, h: Tensor) -> Fields:
    return (torch.abs(e),)


def _sizes_by_sign(e: Tensor, h: Tensor) -> Fields:
    return torch.abs(e), torch.where(e < 0, -e, 0.0)


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
    "egarch", "EGARCH", ("alpha", "gamma"), _size_and_sign, expected=(0.0, 0.0), power=0
)
r""":math:`\log h_t = \omega + \sum_i \alpha_i (|z_{t-i}| - \sqrt{2/\pi}) + \gamma_i z_{t-i}
+ \sum_j \beta_j \log h_{t-j}` with :math:`z_t = e_t / \sqrt{h_t}` (Nelson, 1991)."""

AVGARCH = Volatility(
    "avgarch", "AVGARCH", ("alpha",), _sizes, expected=(1.0,), power=0.5, even=True
)
r""":math:`\sigma_t = \omega + \sum_i \alpha_i |e_{t-i}| + \sum_j \beta_j \sigma_{t-j}`
(Taylor, 1986; Schwert, 1989)."""

TGARCH = Volatility(
    "tgarch", "TGARCH", ("alpha", "gamma"), _sizes_by_sign, expected=(1.0, 0.5), power=0.5,
    without_leverage=AVGARCH,
)  # fmt: skip
r""":math:`\sigma_t = \omega + \sum_i (\alpha_i + \gamma_i 1[e_{t-i} < 0]) |e_{t-i}|
+ \sum_j \beta_j \sigma_{t-j}` (Zakoian, 1994)."""

VOLATILITIES = {volatility.name: volatility for volatility in (GARCH, GJR, EGARCH, AVGARCH, TGARCH)}
