"""Exponential smoothing: components of a model, its parameters, and the models to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from tsrnn.linear._samples import Sample, Scaled

KINDS = ("none", "add", "mul")
SMOOTHING = ("alpha", "beta", "gamma", "phi")
SIGMA2 = "sigma2"
# Positions of the damping and of the first level among the parameters of a recursion.
PHI, LEVEL = SMOOTHING.index("phi"), len(SMOOTHING)


@dataclass(frozen=True)
class Components:
    """Error, trend and season of a model."""

    error: str
    trend: str
    damped: bool
    seasonal: str
    period: int  # rows of a season; 1 without one
    columns: tuple[int, ...] = ()  # positions of the exogenous columns with a coefficient

    @property
    def title(self) -> str:
        """Model in Hyndman's notation, such as "ETS(M, Ad, N)"."""
        letters = {"none": "N", "add": "A", "mul": "M"}
        trend = letters[self.trend] + "d" * self.damped
        return f"ETS({letters[self.error]}, {trend}, {letters[self.seasonal]})"

    @property
    def positive(self) -> bool:
        """True if data must be positive."""
        return "mul" in (self.error, self.trend, self.seasonal)

    @property
    def linear(self) -> bool:
        """True if means are linear in the states."""
        return "mul" not in (self.trend, self.seasonal)

    @property
    def recursion(self) -> Recursion:
        """Recursion of the means."""
        return Recursion(self.trend == "mul", self.seasonal, self.period, self.columns)

    def scaled(self, sample: Sample) -> Scaled:
        """Scaled series for the model: centred, unless it divides by the level."""
        return sample.sized if self.positive else sample.centred

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters of the mean: smoothing, initial states, coefficients."""
        free = zip(self.recursion.names, self.free, strict=True)
        return tuple(name for name, here in free if here)

    @cached_property
    def free(self) -> np.ndarray:
        """Mask of the parameters of the recursion that the model has."""
        absent = {
            "beta": self.trend == "none",
            "gamma": self.seasonal == "none",
            "phi": not self.damped,
            "trend": self.trend == "none",
        }
        return np.array([not absent.get(name, False) for name in self.recursion.names])


class Recursion(NamedTuple):
    """Recursion of the means, shared by models with different free parameters."""

    product: bool  # the trend multiplies
    seasonal: str
    period: int
    columns: tuple[int, ...] = ()  # exogenous columns, by their place

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters.

        States are before the first row. The last state of a season follows from the others, as the
        sum is zero or the mean one. Coefficients of exogenous columns come last.
        """
        season = (f"season[{i}]" for i in range(1, self.period))
        return (*SMOOTHING, "level", "trend", *season, *map(column_name, self.columns))

    @property
    def states(self) -> slice:
        """Positions of the states before the first row among the parameters."""
        return slice(LEVEL, LEVEL + 1 + self.period)

    @property
    def slopes(self) -> slice:
        """Positions of the coefficients of exogenous columns among the parameters."""
        return slice(LEVEL + 1 + self.period, None)

    @property
    def neutral(self) -> np.ndarray:
        """Values of parameters that a model lacks."""
        values = np.zeros(len(self.names))
        values[3], values[5] = 1.0, float(self.product)
        return values

    @property
    def n_states(self) -> int:
        """Number of states: level, trend and season."""
        return 2 + self.period * (self.seasonal != "none")

    def split(self, params: np.ndarray, slope: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Split parameters (..., k) into those (..., 4) of the cell and its states (..., q).

        `slope` says that they are a direction rather than a point.
        """
        smoothing, states = params[..., :4], params[..., self.states]
        if self.seasonal == "none":
            return smoothing, states
        total = 0.0 if slope or self.seasonal == "add" else self.period
        last = total - states[..., 2:].sum(-1, keepdims=True)
        return smoothing, np.concatenate([states, last], -1)


def candidates(
    error: str, trend: str, damped: bool | None, seasonal: str, period: int
) -> tuple[Components, ...]:
    """Models to choose among, where an argument is "auto" or `damped` is None.

    As in R's forecast, an automatic choice excludes multiplicative trends, additive errors with a
    multiplicative season, and multiplicative errors and trend with an additive season.
    """
    chosen = []
    errors = ("add", "mul") if error == "auto" else (error,)
    trends = ("none", "add") if trend == "auto" else (trend,)
    seasons = ("none", "add", "mul") if seasonal == "auto" else (seasonal,)
    if seasonal == "auto" and period == 1:
        seasons = ("none",)
    dampings = (False, True) if damped is None else (damped,)
    automatic = "auto" in (error, trend, seasonal)
    for e, t, d, s in product(errors, trends, dampings, seasons):
        unstable = (e, s) == ("add", "mul") or (e, t, s) == ("mul", "mul", "add")
        if (automatic and unstable) or (t == "none" and d and (trend == "auto" or damped is None)):
            continue
        chosen.append(Components(e, t, d, s, period if s != "none" else 1))
    return tuple(chosen)


def column_name(place: int) -> str:
    """Name of the coefficient of an exogenous column among the parameters of a recursion."""
    return f"column[{place}]"


def with_columns(models: Sequence[Components], columns: tuple[int, ...]) -> tuple[Components, ...]:
    """Set the exogenous columns of every model."""
    return tuple(replace(model, columns=columns) for model in models)


def union_names(models: Sequence[Components]) -> tuple[str, ...]:
    """Names of the parameters that at least one model has."""
    every = {name for model in models for name in model.names}
    widest = max((model.recursion for model in models), key=lambda r: r.period)
    return tuple(name for name in widest.names if name in every)


def placed(model: Components, names: Sequence[str], params: np.ndarray) -> np.ndarray:
    """Parameters (N, k) in the order of a recursion, from those of a family."""
    full = np.tile(model.recursion.neutral, (len(params), 1))
    for i, name in enumerate(model.recursion.names):
        if name in model.names:
            full[:, i] = params[:, names.index(name)]
    return full


def fewest_rows(model: Components) -> int:
    """Fewest observations: the corrected criterion exists, and a season is seen twice."""
    return max(len(model.names) + 3, 2 * model.period if model.seasonal != "none" else 0)
