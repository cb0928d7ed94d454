"""Specification of a vech model: structure, orders, natural parameters, nested models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tsrnn.linear._mean import Mean, MeanSpecification, level_form
from tsrnn.linear.vech._structure import Structure, coefficients, factors, natural

NESTED_KINDS = {
    "full": ("bekk", "diagonal"),
    "diagonal": ("diagonal bekk",),
    "bekk": ("diagonal bekk",),
    "diagonal bekk": ("scalar",),  # only for starting values
}


@dataclass(frozen=True)
class Specification(MeanSpecification):
    """Structure, orders and conventions of a model."""

    kind: str  # the structure
    p: int  # lags of vech(e e')
    q: int  # lags of h
    targeting: bool
    mean: Mean
    targets: tuple[object, ...]  # names of the n variables
    stationary: bool  # keep the spectral radius below one
    n_starts: int

    @property
    def natural(self) -> Structure:
        """Structure in the reported coordinates."""
        return natural(self.kind, self.n, self.p, self.q, self.targeting)

    @property
    def factors(self) -> Structure:
        """Structure in the coordinates of estimation."""
        return factors(self.kind, self.n, self.p, self.q, self.targeting)

    @property
    def mean_names(self) -> tuple[str, ...]:
        """Names of the coefficients of the mean."""
        return self.mean.names(self.targets)

    @property
    def own_names(self) -> tuple[str, ...]:
        """Names of the parameters of the likelihood, mean first."""
        return self.mean_names + self.natural.names

    def apart(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split parameters (k,) into the likelihood's and the cointegrating vectors (n, rank)."""
        k = len(params) - len(self.relation_names)
        return params[:k], self.mean.relations(params[k:], self.n)

    @property
    def n_params(self) -> int:
        """Number of parameters, without building the structure, whose size grows with n^4."""
        pairs = self.n * (self.n + 1) // 2
        lag = {
            "bekk": self.n**2, "full": pairs**2, "diagonal": pairs, "diagonal bekk": self.n,
            "scalar": 1,
        }[self.kind]  # fmt: skip
        constant = 0 if self.targeting else pairs
        means = len(self.mean_names) + len(self.relation_names)
        return means + constant + (self.p + self.q) * lag

    def model(self, params: np.ndarray, presample: np.ndarray) -> Model:
        """Coefficients at natural parameters (k,); with targeting, `presample` is the target."""
        n, size = self.n, len(presample)
        estimated, beta = self.apart(params)
        coefs = coefficients(self.natural, len(self.mean_names), estimated)
        intercept, lags = level_form(self.mean, coefs.mean, beta)
        theta = np.array(coefs.theta).reshape(self.p, size, size)
        phi = np.array(coefs.phi).reshape(self.q, size, size)
        constant = coefs.intercept
        if constant is None:
            constant = presample - (theta.sum(0) + phi.sum(0)) @ presample
        return Model(intercept.reshape(n), lags, constant, theta, phi)


class Model(NamedTuple):
    """Coefficients of one series; S series have a leading axis."""

    intercept: np.ndarray  # (n,), of the mean of y in levels
    lags: np.ndarray  # (m, n, n)
    constant: np.ndarray  # b, (N,)
    theta: np.ndarray  # (p, N, N)
    phi: np.ndarray  # (q, N, N)


def is_nested_kind(small: str, kind: str) -> bool:
    """Return True if a structure is the same as another or a special case of it."""
    return small == kind or any(is_nested_kind(small, k) for k in NESTED_KINDS.get(kind, ()))


def nested_specifications(spec: Specification) -> list[Specification]:
    """Simpler structures with the same lags and, with several lags, a lag less."""
    nested = [replace(spec, kind=kind) for kind in NESTED_KINDS.get(spec.kind, ())]
    if max(spec.p, spec.q) > 1:
        nested += [replace(spec, p=spec.p - 1)] * (spec.p > 1)
        nested += [replace(spec, q=spec.q - 1)] * (spec.q > 0)
    return nested
