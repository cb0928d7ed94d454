"""Models whose library depends on the unit of the data, given rows of a spread of 1."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tsrnn.baselines._unit import Ahead, Fitted, Rows, UnitModel


class ScaledModel(UnitModel):
    """A model that sees rows divided by their standard deviation at `fit`.

    Optimisers and diffuse priors of a fixed variance depend on the unit of the data; here they
    cannot. What is told, parameters, criteria and forecasts, is in the unit of the data; the
    scale is kept in the spec, a number or a list by target.
    """

    @abstractmethod
    def solve(self, rows: Rows) -> tuple[Fitted, int]:
        """Estimates of scaled rows, and the first rows that are not in the likelihood."""

    @abstractmethod
    def run(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, levels: Sequence[float]
    ) -> Ahead:
        """Forecasts after scaled rows, at the parameters of scaled rows."""

    @abstractmethod
    def factors(self, fitted: Fitted, scale: Any) -> np.ndarray:
        """What each parameter (k,) of scaled rows is multiplied by in the unit of the data."""

    def estimate(self, rows: Rows) -> Fitted:
        scale = spread(rows.y)
        own, n_outside = self.solve(rows._replace(y=rows.y / scale))
        counted = np.isfinite(rows.y[n_outside:]).sum(axis=0)
        lost = float((counted * np.log(scale)).sum())
        return replace(
            own,
            params=own.params * self.factors(own, scale),
            spec=own.spec | {"scale": scale.tolist()},
            loglik=own.loglik - lost,
            aic=own.aic + 2 * lost,
            bic=own.bic + 2 * lost,
        )

    def ahead(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, levels: Sequence[float]
    ) -> Ahead:
        scale = np.asarray(fitted.spec["scale"])
        own = replace(fitted, params=fitted.params / self.factors(fitted, scale))
        found = self.run(own, rows._replace(y=rows.y / scale), future, h, levels)
        ends = {level: (low * scale, high * scale) for level, (low, high) in found.ends.items()}
        return Ahead(found.mean * scale, ends)


def spread(y: np.ndarray) -> np.ndarray:
    """Standard deviation () or (C,) of rows (T,) or (T, C); 1 where they do not vary."""
    found = np.asarray(np.nanstd(y, axis=0))
    return np.where(found > 0, found, 1.0)
