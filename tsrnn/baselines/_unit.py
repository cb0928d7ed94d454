"""One unit: its rows, estimates, forecasts and model.

A *unit* is a target of a series, or all targets of a series together in a multivariate model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from scipy.special import ndtri

from tsrnn.contract import Kind, record, seed_of

CONSTANT = "constant"  # in the spec of a unit whose rows do not vary
SEASONLESS = "seasonless"  # in the spec of a unit fitted without the season of the frequency
STARTING = "starting"  # in messages of statsmodels on start values of the optimiser


class Rows(NamedTuple):
    """Rows of one unit: a target of a series, shape (T,), or all targets together, (T, C).

    NaN where missing, if the model takes missing values. `offset` counts the steps from the first
    row of the series at `fit` to the first row here.
    """

    y: np.ndarray
    exog: np.ndarray | None = None
    offset: int = 0

    @property
    def n_exog(self) -> int:
        """Number of regressors."""
        return 0 if self.exog is None else self.exog.shape[1]


class Ahead(NamedTuple):
    """Forecasts of one unit: `mean` (h,) or (h, C), and by level the ends of its interval."""

    mean: np.ndarray
    ends: dict[float, tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class UnitEstimates:
    """Estimates of one unit: `params` (k,) by `names`, from `n_rows` rows.

    `spec` has choices beside the parameters, such as orders, as JSON values. `loglik`, `aic` and
    `bic` are NaN where the method has none. `messages` are warnings of the library, `reason` says
    why there are no parameters, and is empty where there are.
    """

    names: tuple[str, ...] = ()
    params: np.ndarray = field(default_factory=lambda: np.empty(0))
    spec: dict[str, Any] = field(default_factory=dict)
    n_rows: int = 0
    loglik: float = np.nan
    aic: float = np.nan
    bic: float = np.nan
    converged: bool = True
    messages: tuple[str, ...] = ()
    reason: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """Reason why there are no estimates, or the messages."""
        return (self.reason,) if self.reason else self.messages

    @property
    def warnings(self) -> tuple[str, ...]:
        """Messages to warn of: all but those on start values."""
        if self.reason:
            return ()
        texts = tuple(text for text in self.messages if STARTING not in text)
        return texts if self.converged else (*texts, "the optimiser did not converge")


class Unit(NamedTuple):
    """One unit to be forecast after `rows`, at the estimates `fitted`.

    `future` has the regressors of the steps ahead, shape (h, n), or is None.
    """

    fitted: UnitEstimates
    rows: Rows
    future: np.ndarray | None = None


class UnitModel(ABC):
    """Model of one unit. It holds settings only, as other processes receive a copy."""

    multivariate: ClassVar[bool] = False  # whether all targets of a series are one unit
    of_variance: ClassVar[bool] = False  # whether rows without variance cannot be modelled

    @abstractmethod
    def fewest(self, rows: Rows) -> int:
        """Rows that an estimate needs, not counting missing ones."""

    @abstractmethod
    def estimate(self, rows: Rows) -> UnitEstimates:
        """Estimate parameters."""

    @abstractmethod
    def ahead(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        """Forecasts of h steps."""

    def paths(self, unit: Unit, h: int, n: int, seed: int) -> np.ndarray:
        """Paths (n, h) or (n, h, C) that continue the rows."""
        raise NotImplementedError

    @abstractmethod
    def page(self, fitted: UnitEstimates, rows: Rows) -> str:
        """The library's own summary of the fit to `rows`."""

    @abstractmethod
    def spec_kind(self, rows: Rows) -> Kind:
        """Kind of the spec of an estimate in a file."""

    @abstractmethod
    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        """Names that the parameters of an estimate may have."""

    def orders(self, fitted: UnitEstimates) -> str:
        """Orders that were chosen, in a word or two."""
        return ""

    def with_seed(self, random_state: Any) -> UnitModel:
        """Model that draws anew, by `random_state`; itself where nothing is drawn."""
        model = cast(Any, self)
        return replace(model, seed=seed_of(random_state)) if hasattr(model, "seed") else model

    def seasonless(self) -> UnitModel | None:
        """Model without its season, if the frequency implies one; None otherwise."""
        return None

    def season_left_out(self, rows: Rows) -> str:
        """Message that rows are too few for an implied season but enough without; else empty."""
        plain, n = self.seasonless(), len(observed(rows))
        if plain is None or not plain.fewest(rows) <= n < (needed := self.fewest(rows)):
            return ""
        return f"no season: it needs at least {needed} rows; there are {n}"

    def estimated(self, fitted: UnitEstimates) -> UnitModel:
        """Model that gave these estimates: itself, without season, or of a constant."""
        if fitted.spec.get(CONSTANT):
            return ConstantModel()
        return cast("UnitModel", self.seasonless()) if fitted.spec.get(SEASONLESS) else self

    def refusal(self, rows: Rows) -> str:
        """Reason why `rows` cannot be estimated from; empty if they can."""
        seen = observed(rows)
        if len(seen) < self.fewest(rows):
            return f"needs at least {self.fewest(rows)} rows; there are {len(seen)}"
        still = np.flatnonzero(np.ptp(seen.reshape(len(seen), -1), axis=0) == 0)
        if len(still):
            return f"is constant, {seen.reshape(len(seen), -1)[0, still[0]]:g}. Drop it"
        return ""

    def has_constant(self, rows: Rows) -> bool:
        """Return True if the rows are constant and `ConstantModel` can stand in."""
        seen = observed(rows)
        known = self.multivariate or self.of_variance
        return not known and len(seen) > 1 and bool(np.ptp(seen) == 0)


class ConstantModel(UnitModel):
    """Level of a unit whose rows do not vary, for which libraries have no likelihood."""

    def fewest(self, rows: Rows) -> int:
        return 2

    def estimate(self, rows: Rows) -> UnitEstimates:
        return UnitEstimates(("level",), observed(rows)[-1:], {CONSTANT: True}, len(rows.y))

    def ahead(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        mean = np.full(h, self._level(unit))
        return Ahead(mean, dict.fromkeys(levels, (mean, mean)))

    def paths(self, unit: Unit, h: int, n: int, seed: int) -> np.ndarray:
        return np.full((n, h), self._level(unit))

    def page(self, fitted: UnitEstimates, rows: Rows) -> str:
        return f"The rows do not vary: {fitted.params[0]:g} is forecast, and has no error."

    def spec_kind(self, rows: Rows) -> Kind:
        return record({})

    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        return [("level",)]

    def orders(self, fitted: UnitEstimates) -> str:
        return CONSTANT

    def _level(self, unit: Unit) -> float:
        """Last value observed; the fitted level if no row is observed."""
        seen = observed(unit.rows)
        return float(seen[-1] if len(seen) else unit.fitted.params[0])


def observed(rows: Rows) -> np.ndarray:
    """Rows of the targets without a missing value."""
    return rows.y[np.isfinite(rows.y).reshape(len(rows.y), -1).all(1)]


def normal(mean: np.ndarray, error: np.ndarray, levels: Sequence[float]) -> Ahead:
    """Forecasts with normal intervals, from means and standard errors of one shape."""
    half = {level: ndtri(0.5 + level / 200) * error for level in levels}
    return Ahead(mean, {level: (mean - width, mean + width) for level, width in half.items()})
