"""What statsmodels' state-space models have in common: estimate, filter, forecast."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from tsrnn.baselines._scaled import ScaledModel
from tsrnn.baselines._unit import Ahead, Fitted, Rows, normal

WITHOUT_UNIT = ("ar.", "ma.", "frequency.", "damping.")  # names of such parameters begin so


class StateSpaceModel(ScaledModel):
    """A model whose likelihood is that of statsmodels' Kalman filter."""

    max_iter: int = 50  # of the optimiser

    @abstractmethod
    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        """Statsmodels' model of the rows."""

    def choose(self, rows: Rows) -> dict[str, Any]:
        """What is chosen before the estimate, such as orders."""
        return {}

    def floats(self, spec: dict[str, Any]) -> bool:
        """Whether the initial level is diffuse, so that a constant may be taken off the rows."""
        return False

    def fewest(self, rows: Rows) -> int:
        return 2

    def solve(self, rows: Rows) -> tuple[Fitted, int]:
        spec = self.choose(rows)
        results = self.fit(rows, spec)
        return fitted_of(results, spec), int(results.loglikelihood_burn)

    def fit(self, rows: Rows, spec: dict[str, Any]) -> Any:
        """Statsmodels' results of scaled rows."""
        model = self.build(self.lowered(rows, spec)[0], spec)
        return model.fit(disp=False, cov_type="none", maxiter=self.max_iter)

    def run(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, levels: Sequence[float]
    ) -> Ahead:
        lowered, origin = self.lowered(rows, fitted.spec)
        results = self.build(lowered, fitted.spec).filter(fitted.params, cov_type="none")
        forecast = results.get_forecast(h, **({} if future is None else {"exog": future}))
        return normal(forecast.predicted_mean + origin, forecast.se_mean, levels)

    def lowered(self, rows: Rows, spec: dict[str, Any]) -> tuple[Rows, float]:
        """Rows less the first value that is seen, and that value, where that is legal.

        The prior of the level has its mean at zero.
        """
        if not self.floats(spec):
            return rows, 0.0
        origin = float(rows.y[np.isfinite(rows.y).argmax()])
        return rows._replace(y=rows.y - origin), origin

    def factors(self, fitted: Fitted, scale: Any) -> np.ndarray:
        powers = [
            0 if name.startswith(WITHOUT_UNIT) else 2 if name.startswith("sigma2") else 1
            for name in fitted.names
        ]
        return scale ** np.array(powers, float)

    def page(self, fitted: Fitted, rows: Rows) -> str:
        """The summary in the unit of the data, with errors found in that of the scaled rows."""
        scale = np.asarray(fitted.spec["scale"])
        factors = self.factors(fitted, scale)
        near = self.lowered(rows._replace(y=rows.y / scale), fitted.spec)[0]
        own = self.build(near, fitted.spec).smooth(fitted.params / factors)
        model = self.build(self.lowered(rows, fitted.spec)[0], fitted.spec)
        if hasattr(model, "initialize_default"):  # of the models with diffuse states
            model.ssm.initial_variance *= scale**2
            model.initialize_default()
        results = model.smooth(fitted.params, cov_type="none")._results  # behind its wrapper
        results.cov_params_default = own.cov_params_default * np.outer(factors, factors)
        for name in ("cov_type", "cov_kwds", "_rank"):
            setattr(results, name, getattr(own, name))
        return str(results.summary())


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
