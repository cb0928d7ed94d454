"""Models whose library depends on the unit of the data, given rows of a spread of 1."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tsrnn.baselines._unit import Ahead, Fitted, Rows, UnitModel
from tsrnn.contract import Kind, listed, positive, record

REGRESSOR = re.compile(r"(?:^|\.)x(\d+)(?:\.|$)")  # in names of coefficients


@dataclass(frozen=True, kw_only=True)
class ScaledModel(UnitModel):
    """A model that sees targets and regressors divided by their standard deviations at `fit`.

    Optimisers and diffuse priors of a fixed variance depend on the unit of the data; here they
    cannot. What is told, parameters, criteria and forecasts, is in the unit of the data; the
    scale is kept in the spec, a number or a list by target, and that of regressors beside it.
    """

    standardize: bool = True  # else the library sees the rows as they are
    implied: bool = False  # whether the season is that of the frequency

    @abstractmethod
    def solve(self, rows: Rows) -> tuple[Fitted, int]:
        """Estimates of scaled rows, and the first rows that are not in the likelihood."""

    @abstractmethod
    def run(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, levels: Sequence[float]
    ) -> Ahead:
        """Forecasts after scaled rows, at the parameters of scaled rows."""

    def draw(
        self,
        fitted: Fitted,
        rows: Rows,
        future: np.ndarray | None,
        shape: tuple[int, int],
        generator: np.random.Generator,
    ) -> np.ndarray:
        """Paths (n, h) or (n, h, C) after scaled rows, for shape = (n, h)."""
        raise NotImplementedError

    @abstractmethod
    def factors(self, fitted: Fitted, scale: Any) -> np.ndarray:
        """What each parameter (k,) of scaled rows is multiplied by in the unit of the data."""

    def spec_kind(self, rows: Rows) -> Kind:
        kinds: dict[str, Kind] = {"scale": positive}
        if rows.y.ndim == 2:
            kinds["scale"] = listed(positive, rows.y.shape[1])
        if rows.exog is not None:
            kinds["exog_scale"] = listed(positive, rows.exog.shape[1])
        return record(kinds | self.choices())

    def choices(self) -> dict[str, Kind]:
        """Further fields of a spec."""
        return {}

    def estimate(self, rows: Rows) -> Fitted:
        scale = self.unit_of(rows.y)
        spec: dict[str, Any] = {"scale": scale.tolist()}
        if rows.exog is not None:
            spec["exog_scale"] = self.unit_of(rows.exog).tolist()
        own, n_outside = self.solve(scaled(rows, spec))
        own = replace(own, spec=own.spec | spec)
        counted = np.isfinite(rows.y[n_outside:]).sum(axis=0)
        lost = float((counted * np.log(scale)).sum())
        return replace(
            own,
            params=self.told(own),
            loglik=own.loglik - lost,
            aic=own.aic + 2 * lost,
            bic=own.bic + 2 * lost,
        )

    def ahead(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, levels: Sequence[float]
    ) -> Ahead:
        scale = np.asarray(fitted.spec["scale"])
        found = self.run(*self.in_scale(fitted, rows, future), h, levels)
        ends = {level: (low * scale, high * scale) for level, (low, high) in found.ends.items()}
        return Ahead(found.mean * scale, ends)

    def paths(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, n: int, seed: int
    ) -> np.ndarray:
        generator = np.random.default_rng(seed)
        drawn = self.draw(*self.in_scale(fitted, rows, future), (n, h), generator)
        return drawn * np.asarray(fitted.spec["scale"])

    def in_scale(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None
    ) -> tuple[Fitted, Rows, np.ndarray | None]:
        """Parameters, rows and regressors ahead in units of the scales."""
        own = replace(fitted, params=self.inner(fitted))
        ahead = None if future is None else future / fitted.spec["exog_scale"]
        return own, scaled(rows, fitted.spec), ahead

    def unit_of(self, y: np.ndarray) -> np.ndarray:
        """What rows are divided by, () or (C,)."""
        found = spread(y)
        return found if self.standardize else np.ones_like(found)

    def told(self, own: Fitted) -> np.ndarray:
        """Parameters (k,) in the unit of the data, of those of scaled rows."""
        return own.params * self.units(own)

    def inner(self, fitted: Fitted) -> np.ndarray:
        """Parameters (k,) of scaled rows, of those in the unit of the data."""
        return fitted.params / self.units(fitted)

    def units(self, fitted: Fitted) -> np.ndarray:
        """The factors, with the units of regressors as well."""
        factors = self.factors(fitted, np.asarray(fitted.spec["scale"]))
        for i, name in enumerate(fitted.names):
            if found := REGRESSOR.search(name):
                factors[i] /= fitted.spec["exog_scale"][int(found[1]) - 1]
        return factors


def scaled(rows: Rows, spec: dict[str, Any]) -> Rows:
    """Rows in units of the scales that a spec holds."""
    exog = None if rows.exog is None else rows.exog / spec["exog_scale"]
    return rows._replace(y=rows.y / spec["scale"], exog=exog)


def spread(y: np.ndarray) -> np.ndarray:
    """Standard deviation () or (C,) of rows (T,) or (T, C); 1 where they do not vary."""
    found = np.asarray(np.nanstd(y, axis=0))
    return np.where(found > 0, found, 1.0)
