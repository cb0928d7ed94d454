"""A model put together: mean, variance and density, their parameters, and the cell of a step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tsrnn.kernels import Cell
from tsrnn.linear.garch._density import Density, Normal, Student
from tsrnn.linear.garch._mean import Mean
from tsrnn.linear.garch._vol_egarch import EGARCH
from tsrnn.linear.garch._vol_garch import GARCH
from tsrnn.linear.garch._vol_gjr import GJR
from tsrnn.linear.garch._volatility import Volatility

Fields = tuple[Tensor, ...]

VOLATILITIES: dict[str, Volatility] = {vol.name: vol for vol in (GARCH, GJR, EGARCH)}
DENSITIES: dict[str, Density] = {density.name: density for density in (Normal(), Student())}
AUXILIARY = ("l", "log_h", "e", "h", "w")


@dataclass(frozen=True)
class Model:
    """Mean, variance recursion with p lags of shocks and q of itself, and density.

    Parameters are in the order of `names`: mean, variance, shape. A `padded` model has a last
    input that is 1 where there is an observation and 0 where a series has ended.
    """

    mean: Mean
    vol: Volatility
    density: Density
    p: int
    q: int
    padded: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the k parameters."""
        return (*self.mean.names, *self.vol.names(self.p, self.q), *self.density.names)

    @cached_property
    def mean_part(self) -> slice:
        """Where the parameters of the mean stand."""
        return slice(0, len(self.mean.names))

    @cached_property
    def vol_part(self) -> slice:
        """Where the parameters of the variance stand, omega first."""
        return slice(len(self.mean.names), len(self.names) - len(self.density.names))

    @cached_property
    def shape_part(self) -> slice:
        """Where the parameters of the density stand."""
        return slice(len(self.names) - len(self.density.names), len(self.names))

    @cached_property
    def omega(self) -> int:
        """Where omega stands."""
        return self.vol_part.start

    @cached_property
    def beta(self) -> slice:
        """Where the coefficients of the lagged variance stand."""
        return slice(self.vol_part.stop - self.q, self.vol_part.stop)

    def shock_coefficients(self, s: int) -> slice:
        """Where the p coefficients of shock s stand."""
        start = self.omega + 1 + s * self.p
        return slice(start, start + self.p)

    @cached_property
    def n_vol(self) -> int:
        """Memory fields of the variance."""
        return max(self.p, self.q)

    @cached_property
    def n_memory(self) -> int:
        """Memory fields: those of the mean, then those of the variance."""
        return self.mean.n_ma + self.n_vol

    @cached_property
    def cell(self) -> Cell:
        """The recurrence, in memory fields and then `AUXILIARY` ones that it does not read."""
        memory = (
            *(f"m{i + 1}" for i in range(self.mean.n_ma)),
            *(f"s{i + 1}" for i in range(self.n_vol)),
        )
        inputs = ("y", *(f"y_{lag}" for lag in self.mean.lags), *(("observed",) * self.padded))
        params = tuple(name.translate(str.maketrans(".[", "__", "]")) for name in self.names)
        step = Step(self)
        return Cell(
            f"{self.vol.name}-{self.density.name}-{self.p}-{self.q}",
            n=self.n_memory + len(AUXILIARY),
            m=len(inputs),
            p=len(params),
            step=step,
            names=((*memory, *AUXILIARY), inputs, tuple(f"p_{name}" for name in params)),
        )


@dataclass(frozen=True)
class Step:
    """One observation: residual, variance, log-likelihood, and the memory after it."""

    model: Model

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        """Return the new memory and the auxiliary fields."""
        if not self.model.padded:
            return self._observed(state, inputs, params)
        *inputs_, observed = inputs
        new = self._observed(state, tuple(inputs_), params)
        n, there = self.model.n_memory, observed > 0.5
        kept = (torch.where(there, a, b) for a, b in zip(new[:n], state, strict=False))
        return (*kept, *(torch.where(there, field, 0.0) for field in new[n:]))

    def _observed(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        model = self.model
        memory = state[: model.n_memory]
        h, log_h = model.vol.variance(memory[model.mean.n_ma :])
        predicted = model.mean.predicted(
            memory[: model.mean.n_ma], inputs[1:], params[model.mean_part]
        )
        e = inputs[0] - predicted
        w = 1 / h
        loglik = model.density.log_kernel(e * e * w, log_h, params[model.shape_part])
        return (*self.remembered(memory, e, h, params), loglik, log_h, e, h, w)

    def remembered(self, memory: Fields, e: Tensor, h: Tensor, params: Fields) -> Fields:
        """Memory after a residual whose variance is h."""
        model, n_ma = self.model, self.model.mean.n_ma
        shocks = model.vol.shocks(e, h)
        order = (model.p, model.q)
        return (
            *model.mean.advance(memory[:n_ma], e, params[model.mean_part]),
            *model.vol.advance(memory[n_ma:], shocks, params[model.vol_part], order),
        )
