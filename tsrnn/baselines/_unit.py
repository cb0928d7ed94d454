"""One unit: its rows, what is estimated of it, and the questions that a model answers about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import ndtri

from tsrnn.contract import Kind

SEASONLESS = "seasonless"  # in the spec of a unit that is without the season of the frequency


class Rows(NamedTuple):
    """Rows of one unit: a target of a series, or all targets of a series together.

    Attributes
    ----------
    y : ndarray of shape (T,), or (T, C) of all targets together
        NaN where missing, if the model takes missing values.
    exog : ndarray of shape (T, n) or None
    offset : int
        Steps from the first row fitted to, of the same series, to the first one here.
    """

    y: np.ndarray
    exog: np.ndarray | None = None
    offset: int = 0


class Ahead(NamedTuple):
    """Forecasts of one unit.

    Attributes
    ----------
    mean : ndarray of shape (h,) or (h, C)
    ends : dict
        By level, the lower and the upper end of the interval, of the shape of `mean`.
    """

    mean: np.ndarray
    ends: dict[float, tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Fitted:
    """What is estimated of one unit.

    Attributes
    ----------
    names : tuple of str
        Of the parameters.
    params : ndarray of shape (k,)
    spec : dict
        What was chosen beside the parameters, such as orders, as JSON values.
    n_rows : int
        Rows estimated from.
    loglik, aic, bic : float
        NaN where the method has none.
    converged : bool
    messages : tuple of str
        Warnings of the library, in order.
    reason : str
        Why there are no parameters; empty where there are.
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


class UnitModel(ABC):
    """A model with its settings; instances travel to other processes, so they hold nothing else."""

    @abstractmethod
    def fewest(self, rows: Rows) -> int:
        """Rows, missing ones not counted, that an estimate needs."""

    @abstractmethod
    def estimate(self, rows: Rows) -> Fitted:
        """Estimate parameters."""

    @abstractmethod
    def ahead(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, levels: Sequence[float]
    ) -> Ahead:
        """Forecasts after `rows` at the parameters of `fitted`; `future` is (h, n)."""

    def paths(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, n: int, seed: int
    ) -> np.ndarray:
        """Paths (n, h) or (n, h, C) that go on from `rows`; `future` is (h, exogenous)."""
        raise NotImplementedError

    @abstractmethod
    def page(self, fitted: Fitted, rows: Rows) -> str:
        """The library's own summary of the fit to `rows`."""

    @abstractmethod
    def spec_kind(self, rows: Rows) -> Kind:
        """What the spec of an estimate must be in a file."""

    @abstractmethod
    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        """Names that the parameters of an estimate may have."""

    def orders(self, fitted: Fitted) -> str:
        """What was chosen, in a word or two."""
        return ""

    def seasonless(self) -> UnitModel | None:
        """The model without its season, where the frequency implies that; None elsewhere."""
        return None

    def season_left_out(self, rows: Rows) -> str:
        """Why a season that the frequency implies is not for these rows; empty if it is."""
        plain = self.seasonless()
        return "" if plain is None else self.too_few(rows, plain)

    def too_few(self, rows: Rows, plain: UnitModel) -> str:
        """That rows are enough for a model without a season only; empty if not so."""
        n, needed = len(observed(rows)), self.fewest(rows)
        if not plain.fewest(rows) <= n < needed:
            return ""
        return f"no season: it needs at least {needed} rows; there are {n}"

    def of(self, fitted: Fitted) -> UnitModel:
        """The model that was estimated, which may be without the season."""
        return cast("UnitModel", self.seasonless()) if fitted.spec.get(SEASONLESS) else self

    def refusal(self, rows: Rows) -> str:
        """Why there is nothing to estimate in `rows`; empty if there is."""
        seen = observed(rows)
        if len(seen) < self.fewest(rows):
            return f"needs at least {self.fewest(rows)} rows; there are {len(seen)}"
        still = np.flatnonzero(np.ptp(seen.reshape(len(seen), -1), axis=0) == 0)
        if len(still):
            return f"is constant, {seen.reshape(len(seen), -1)[0, still[0]]:g}. Drop it"
        return ""


def moving_errors(
    weights: np.ndarray, covariance: np.ndarray, n: int, generator: np.random.Generator
) -> np.ndarray:
    r"""Errors (n, h, C) of forecasts, :math:`\sum_{i<k} \Psi_i e_{k-i}` with normal innovations.

    Parameters
    ----------
    weights : array of shape (h, C, C)
        The moving average, from the identity on.
    covariance : array of shape (C, C)
        Of the innovations.
    n : int
    generator : numpy.random.Generator
    """
    h, size = weights.shape[:2]
    e = generator.multivariate_normal(np.zeros(size), covariance, (n, h))
    errors = np.zeros_like(e)
    for i, weight in enumerate(weights):
        errors[:, i:] += e[:, : h - i] @ weight.T
    return errors


def observed(rows: Rows) -> np.ndarray:
    """Rows of the targets without a missing value."""
    return rows.y[np.isfinite(rows.y).reshape(len(rows.y), -1).all(1)]


def normal(mean: np.ndarray, error: np.ndarray, levels: Sequence[float]) -> Ahead:
    """Forecasts with normal intervals, from means and standard errors of one shape."""
    half = {level: ndtri(0.5 + level / 200) * error for level in levels}
    return Ahead(mean, {level: (mean - width, mean + width) for level, width in half.items()})
