"""Densities of standardised innovations: normal, Student t."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy import special, stats
from torch import Tensor

Fields = tuple[Tensor, ...]

_EULER = (1, 5, 61, 1385, 50521, 2702765)
_SHIFT = 8  # added to x, so that six terms of the series are exact to rounding


class ByShape(NamedTuple):
    """Function of the shape parameter with its derivatives, each of shape (N,)."""

    value: np.ndarray
    slope: np.ndarray
    bend: np.ndarray


class UnitInformation(NamedTuple):
    """Expected information of an observation about residual, log-variance and shape, each (N,)."""

    residual: np.ndarray  # for h = 1, to be divided by h
    log_variance: np.ndarray
    cross: np.ndarray  # of log-variance and shape
    shape: np.ndarray


class Density(ABC):
    """Density of variance one; its parameters `shape` have shape (N, n_shape)."""

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]]

    @abstractmethod
    def log_kernel(self, z2: Tensor, log_h: Tensor, shape: Fields) -> Tensor:
        """Log-density of a residual without its constant; z2 is the squared residual over h."""

    @abstractmethod
    def constant(self, shape: np.ndarray) -> ByShape:
        """Constant that `log_kernel` leaves out."""

    @abstractmethod
    def information(self, shape: np.ndarray) -> UnitInformation:
        """Expected information of an observation."""

    @abstractmethod
    def kurtosis(self, shape: np.ndarray) -> np.ndarray:
        """Fourth moment (N,), inf if there is none."""

    @abstractmethod
    def mean_size(self, shape: np.ndarray) -> ByShape:
        """Expectation of the absolute value."""

    @abstractmethod
    def mean_size_at(self, shape: Fields) -> Tensor | float:
        """Expectation of the absolute value, in operations that kernels compile."""

    @abstractmethod
    def quantile(self, probability: float, shape: np.ndarray) -> np.ndarray:
        """Quantile (N,)."""

    @abstractmethod
    def draw(
        self, generator: np.random.Generator, size: tuple[int, ...], shape: np.ndarray
    ) -> np.ndarray:
        """Draws (N, *size)."""


@dataclass(frozen=True)
class Normal(Density):
    r""":math:`-\frac12 (\log 2\pi + \log h + e^2/h)`."""

    name = "normal"
    names = ()

    def log_kernel(self, z2: Tensor, log_h: Tensor, shape: Fields) -> Tensor:
        return -0.5 * (log_h + z2)

    def constant(self, shape: np.ndarray) -> ByShape:
        zero = np.zeros(len(shape))
        return ByShape(zero - 0.5 * math.log(2 * math.pi), zero, zero)

    def information(self, shape: np.ndarray) -> UnitInformation:
        ones, zeros = np.ones(len(shape)), np.zeros(len(shape))
        return UnitInformation(ones, ones / 2, zeros, zeros)

    def kurtosis(self, shape: np.ndarray) -> np.ndarray:
        return np.full(len(shape), 3.0)

    def mean_size(self, shape: np.ndarray) -> ByShape:
        zero = np.zeros(len(shape))
        return ByShape(zero + math.sqrt(2 / math.pi), zero, zero)

    def mean_size_at(self, shape: Fields) -> float:
        return math.sqrt(2 / math.pi)

    def quantile(self, probability: float, shape: np.ndarray) -> np.ndarray:
        return np.full(len(shape), special.ndtri(probability))

    def draw(
        self, generator: np.random.Generator, size: tuple[int, ...], shape: np.ndarray
    ) -> np.ndarray:
        return generator.standard_normal((len(shape), *size))


@dataclass(frozen=True)
class Student(Density):
    r"""Student's t of :math:`\nu > 2` degrees of freedom with variance one.

    .. math::

        \log\frac{\Gamma(\frac{\nu+1}2)}{\Gamma(\frac\nu2) \sqrt{\pi (\nu - 2)}}
        - \tfrac12 \log h - \tfrac{\nu+1}2 \log\Bigl(1 + \frac{e^2}{(\nu - 2) h}\Bigr)
    """

    name = "t"
    names = ("nu",)

    def log_kernel(self, z2: Tensor, log_h: Tensor, shape: Fields) -> Tensor:
        (nu,) = shape
        return -0.5 * (log_h + (nu + 1) * torch.log(1 + z2 / (nu - 2)))

    def constant(self, shape: np.ndarray) -> ByShape:
        nu = shape[:, 0]
        a, b, c = (nu + 1) / 2, nu / 2, nu - 2
        return ByShape(
            special.gammaln(a) - special.gammaln(b) - 0.5 * np.log(np.pi * c),
            0.5 * (special.psi(a) - special.psi(b) - 1 / c),
            0.25 * (special.polygamma(1, a) - special.polygamma(1, b)) + 0.5 / c**2,
        )

    def information(self, shape: np.ndarray) -> UnitInformation:
        """Information of location, log s² and nu, in terms of h and nu: s² = h (nu - 2) / nu."""
        nu = shape[:, 0]
        scale = nu / (2 * (nu + 3))
        cross = -1 / ((nu + 1) * (nu + 3))
        trigamma = special.polygamma(1, nu / 2) - special.polygamma(1, (nu + 1) / 2)
        by_nu_alone = 0.25 * trigamma - (nu + 5) / (2 * nu * (nu + 1) * (nu + 3))
        log_scale_by_nu = 2 / (nu * (nu - 2))  # derivative of log s² at fixed h
        return UnitInformation(
            nu * (nu + 1) / ((nu - 2) * (nu + 3)),
            scale,
            cross + scale * log_scale_by_nu,
            by_nu_alone + 2 * cross * log_scale_by_nu + scale * log_scale_by_nu**2,
        )

    def kurtosis(self, shape: np.ndarray) -> np.ndarray:
        nu = shape[:, 0]
        return np.where(nu > 4, 3 + 6 / np.where(nu > 4, nu - 4, 1.0), np.inf)

    def mean_size(self, shape: np.ndarray) -> ByShape:
        nu = shape[:, 0]
        a, b, c = (nu - 1) / 2, nu / 2, nu - 2
        value = np.sqrt(c / np.pi) * np.exp(special.gammaln(a) - special.gammaln(b))
        # Derivatives of the logarithm of the value.
        slope = 0.5 * (1 / c + special.psi(a) - special.psi(b))
        bend = 0.25 * (special.polygamma(1, a) - special.polygamma(1, b)) - 0.5 / c**2
        return ByShape(value, value * slope, value * (bend + slope**2))

    def mean_size_at(self, shape: Fields) -> Tensor:
        r"""Expectation of the absolute value, with :math:`\Gamma(x) / \Gamma(x + 1/2)` by a series.

        With :math:`u = 4x - 1` and Euler's numbers 1, 5, 61, ... its logarithm is
        :math:`\log(2 / \sqrt u) + \sum_k (-1)^k E_k / (4 k u^{2k})`.
        """
        (nu,) = shape
        ratio, below = 1.0 + 0 * nu, 1.0 + 0 * nu
        for k in range(_SHIFT):  # the series is exact to rounding for large x only
            ratio, below = ratio * (nu + 2 * k), below * (nu + 2 * k - 1)
        u = 2 * nu - 3 + 4 * _SHIFT
        total = 0 * nu
        for k, number in reversed([*enumerate(_EULER, 1)]):
            total = (total + (-1) ** k * number / (4 * k)) / (u * u)
        return torch.sqrt((nu - 2) * 4 / (math.pi * u)) * torch.exp(total) * ratio / below

    def quantile(self, probability: float, shape: np.ndarray) -> np.ndarray:
        nu = shape[:, 0]
        return stats.t.ppf(probability, nu) * np.sqrt((nu - 2) / nu)

    def draw(
        self, generator: np.random.Generator, size: tuple[int, ...], shape: np.ndarray
    ) -> np.ndarray:
        nu = shape[:, 0].reshape(-1, *(1 for _ in size))
        return generator.standard_t(nu, (len(shape), *size)) * np.sqrt((nu - 2) / nu)


DENSITIES: dict[str, Density] = {density.name: density for density in (Normal(), Student())}
