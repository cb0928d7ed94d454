"""Family of linear models: the mathematics of a class at the orders that its arguments give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from tsrnn.contract import SeriesArrays, unit_index, with_intervals
from tsrnn.data import Panel, quote
from tsrnn.layers import ParaRNN
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._hypotheses import Restriction
from tsrnn.linear._inference import KINDS, covariance

Arrays = dict[str, np.ndarray]


def of_series(arrays: Arrays, series: np.ndarray | int) -> Arrays:
    """Select series, the first axis of the arrays of a state."""
    return {name: array[series] for name, array in arrays.items()}


def set_series(arrays: Arrays, series: np.ndarray | int, new: Arrays) -> None:
    """Replace series of a state in place."""
    for name, array in arrays.items():
        array[series] = new[name]


def raise_if_given(
    samples: Iterable[tuple[Any, dict[int, str]]], panel: Panel, given: np.ndarray | None
) -> Iterator[tuple[Any, dict[int, str]]]:
    """Pass samples on; raise if parameters are given for a unit that is refused."""
    for sample, refused in samples:
        if refused and given is not None:
            unit, reason = next(iter(refused.items()))
            label = unit_index(panel.layout, panel.ids, multivariate=False)[unit]
            raise ValueError(f"{quote(label)} cannot be filtered: {reason}")
        yield sample, refused


@dataclass(frozen=True, eq=False)
class Units(SeriesArrays):
    """Parameters of units, NaN if a unit was not fitted, and constants of their likelihoods."""

    params: np.ndarray  # (N, k)
    constants: Arrays  # by name, such as presample variances; N is the first axis

    @property
    def fitted(self) -> np.ndarray:
        """Positions of units with parameters."""
        return np.flatnonzero(np.isfinite(self.params).all(1))

    def unit(self, i: int) -> tuple[np.ndarray, Arrays]:
        """Parameters (k,) and constants of one unit."""
        return self.params[i], of_series(self.constants, i)


class Ahead(NamedTuple):
    """Rows to be forecast."""

    h: int
    steps: np.ndarray  # (S,), from the first row fitted to, to the first row ahead
    exog: np.ndarray | None  # (S, h, n), exogenous columns in the order of those fitted to


class CannotFitError(ValueError):
    """Reason why the units of a sample have no estimates."""


class Family(ABC):
    """Model at given orders, without data and estimates; a frozen dataclass of its choices.

    A unit is a series with all its targets, or each target of a series by itself; units are
    numbered series by series, within a series target by target. A fit calls `prepare`, then
    `search` and `infer` for every sample (see `estimate` in `tsrnn/linear/_fitted.py`). Forecasts
    call the other methods with the estimates. States are dicts of arrays of the shapes
    `state_shapes`, with the series as first axis.
    """

    multivariate: ClassVar[bool] = False  # whether all targets of a series are one unit
    cov_kinds: ClassVar[tuple[str, ...]] = KINDS  # kinds of standard errors
    filters_at_fit: ClassVar[bool] = False  # whether a fit asks for the state after the last row
    guarantee: ClassVar[str] = (
        "Asymptotic, the parameters taken as known. Holds if the model is right and its "
        "innovations are normal."
    )

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the k parameters of a unit."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Model with its orders, such as "ARMA(1, 1)"."""

    @property
    @abstractmethod
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays of a state by name, without the axis of the series."""

    def empty_state(self, n_series: int) -> Arrays:
        """State of NaN, of series without parameters."""
        shapes = self.state_shapes.items()
        return {name: np.full((n_series, *shape), np.nan) for name, shape in shapes}

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the constants of a series by name."""
        return {}

    @property
    def conventions(self) -> dict[str, str]:
        """Conventions of the likelihood, equal for comparable likelihoods."""
        return {}

    @property
    def n_arma(self) -> int:
        """Number of autoregressive and moving average parameters of the mean."""
        return 0

    # A fit.

    @abstractmethod
    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Any, dict[int, str]]]:
        """Yield samples of units to fit together, with the reasons of refused units.

        A sample has an attribute `units`, their numbers; it is None if no unit is left. Parameters
        (N, k) that are `given` to be evaluated may determine the sample.
        """

    @abstractmethod
    def search(self, sample: Any, verbose: int) -> Any:
        """Maximise the likelihood of a sample, or raise `CannotFitError`."""

    @abstractmethod
    def given(self, sample: Any, params: np.ndarray) -> Any:
        """Counterpart of `search` with parameters (n, k) in the units of the data.

        A `ValueError` says that they are not admissible.
        """

    @abstractmethod
    def infer(self, sample: Any, optimum: Any) -> tuple[Estimates, Arrays]:
        """Estimates in the units of the data with messages, and constants by unit."""

    # The recursion at given parameters.

    @abstractmethod
    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        """State after the rows of a panel.

        Its series begin `steps` (S,) rows after the first row fitted to.
        """

    @abstractmethod
    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        """State after further rows; `steps` (S,) is the number of the first of them."""

    @abstractmethod
    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        """Forecasts (S, h, C) by suffix, as in `FittedModel.forecast`."""

    @abstractmethod
    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Paths (n, S, h, C) after a state; NaN for units without parameters."""

    @abstractmethod
    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fitted values and standardised residuals, each (rows, C).

        NaN in rows that the likelihood does not use, and for units without parameters.
        """

    # Inference and interpretation.

    def covariance(self, estimates: Estimates, constants: Arrays, kind: str) -> np.ndarray:
        """Covariance (N, k, k) of the parameters."""
        return covariance(estimates, kind)

    def variance_correction(self, constants: Arrays) -> np.ndarray | float:
        """Factor by which forecasts already widen the estimated variance."""
        return 1.0

    def mean_parameters(self, estimates: Estimates) -> np.ndarray | None:
        """Number (N,) of parameters of the mean, for `variance_factor`.

        None if the variance is modelled, or forecasts apply the factor themselves.
        """
        return None

    def names_of(self, constants: Arrays) -> tuple[str, ...]:
        """Names of the parameters of a unit, if the family chooses among models."""
        return self.names

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        """Further facts on a unit with parameters (k,), for the head of the summary."""
        return {}

    def notes(self) -> list[str]:
        """Further notes under the summary."""
        return []

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        """Restriction of this model, at parameters (N, k), to a nested one; None if not nested."""
        nested = type(smaller) is type(self) and set(smaller.names) <= set(self.names)
        return Restriction() if nested else None

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        """Linear recursion of a unit with its presample; ValueError if not linear."""
        raise ValueError(f"the recursion of {self.title} is not linear")

    @classmethod
    def named(cls, equation: DifferenceEquation) -> dict[str, float]:
        """Parameters of a linear recursion, by name."""
        raise TypeError(f"{cls.__name__} is not read from layers")

    @classmethod
    def outputs_of(cls, layer: ParaRNN) -> int:
        """Number n of outputs of the recursion in a layer; by default it has n inputs, too."""
        return int(layer.input_size) if cls.multivariate else 1


def normal_forecasts(mean: np.ndarray, variance: np.ndarray, levels: list[float]) -> Arrays:
    """Forecasts with normal intervals from means and variances (S, h, C)."""
    # A variance from too few rows may be negative by rounding: no interval then.
    root = np.sqrt(np.where(variance >= 0, variance, np.nan))
    return with_intervals(mean, {level: ndtri(0.5 + level / 200) * root for level in levels})


def variance_factor(n_obs: np.ndarray, k: np.ndarray | int) -> np.ndarray:
    r"""Unbiased variance of innovations over their mean square, :math:`n / (n - k)`.

    n residuals remain from a mean with k estimated parameters, without the variance. Every
    classical model of a mean forecasts with this variance, as R's forecast does, even where
    parameters are taken as known: fitted residuals are too small.
    """
    return n_obs / np.maximum(n_obs - k, 1)
