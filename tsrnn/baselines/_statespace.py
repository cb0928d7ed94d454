"""What statsmodels' state-space models have in common: estimate, filter, forecast."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from tsrnn.baselines._unit import Ahead, Fitted, Rows, UnitModel, normal


class StateSpaceModel(UnitModel):
    """A model whose likelihood is that of statsmodels' Kalman filter."""

    max_iter: int = 50  # of the optimiser

    @abstractmethod
    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        """Statsmodels' model of the rows."""

    def choose(self, rows: Rows) -> dict[str, Any]:
        """What is chosen before the estimate, such as orders."""
        return {}

    def fewest(self, rows: Rows) -> int:
        return 2

    def estimate(self, rows: Rows) -> Fitted:
        spec = self.choose(rows)
        results = self.build(rows, spec).fit(disp=False, cov_type="none", maxiter=self.max_iter)
        return fitted_of(results, spec)

    def ahead(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, levels: Sequence[float]
    ) -> Ahead:
        results = self.build(rows, fitted.spec).filter(fitted.params, cov_type="none")
        forecast = results.get_forecast(h, **({} if future is None else {"exog": future}))
        return normal(forecast.predicted_mean, forecast.se_mean, levels)

    def page(self, fitted: Fitted, rows: Rows) -> str:
        return str(self.build(rows, fitted.spec).smooth(fitted.params).summary())


def fitted_of(results: Any, spec: dict[str, Any]) -> Fitted:
    """What is kept of statsmodels' results of a maximum likelihood fit."""
    return Fitted(
        names=tuple(results.model.param_names),
        params=np.asarray(results.params, float),
        spec=spec,
        loglik=float(results.llf),
        aic=float(results.aic),
        bic=float(results.bic),
        converged=bool(results.mle_retvals["converged"]),
    )
