"""What statsmodels' state-space models have in common: estimate, filter, forecast."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tsrnn.baselines._scaled import ScaledModel, scaled
from tsrnn.baselines._standardized import StandardizedForecaster
from tsrnn.baselines._unit import Ahead, Fitted, Rows, normal
from tsrnn.contract import Kind, real, refuse

WITHOUT_UNIT = ("ar.", "ma.", "frequency.", "damping.")  # names of such parameters begin so

ORIGIN = "origin"
MOST_STATES = 2000  # of a model in a file: matrices are of their square


class StateSpaceModel(ScaledModel):
    """A model whose likelihood is that of statsmodels' Kalman filter."""

    max_iter: int = 50  # of the optimiser

    @abstractmethod
    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        """Statsmodels' model of the rows."""

    @abstractmethod
    def n_states(self, rows: Rows, spec: dict[str, Any]) -> int:
        """States of the filter, about; matrices are of their square."""

    def spec_kind(self, rows: Rows) -> Kind:
        kind = super().spec_kind(rows)

        def check(value: Any, place: str) -> None:
            kind({name: value[name] for name in value if name != ORIGIN}, place)
            if (ORIGIN in value) != (self.standardize and self.centres(value)):
                raise refuse(place, f"without {ORIGIN!r}, or with it if centred", value)
            if ORIGIN in value:
                real(value[ORIGIN], f"{place}.{ORIGIN}")
                if not isfinite(value[ORIGIN]):
                    raise refuse(f"{place}.{ORIGIN}", "a finite number", value[ORIGIN])

        return check

    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        states = self.n_states(rows, spec)
        if states > MOST_STATES:
            raise ValueError(f"their filter has {states} states; files may have {MOST_STATES}")
        return [tuple(self.build(rows, spec).param_names)]

    def choose(self, rows: Rows) -> dict[str, Any]:
        """What is chosen before the estimate, such as orders."""
        return {}

    def floats(self, spec: dict[str, Any]) -> bool:
        """Whether the initial level is diffuse, so that a constant may be taken off the rows."""
        return False

    def centres(self, spec: dict[str, Any]) -> bool:
        """Whether there is an intercept to take up a constant that is taken off the rows."""
        return False

    def fewest(self, rows: Rows) -> int:
        return 2

    def solve(self, rows: Rows) -> tuple[Fitted, int]:
        spec = self.placed(rows, self.choose(rows))
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

    def draw(
        self,
        fitted: Fitted,
        rows: Rows,
        future: np.ndarray | None,
        shape: tuple[int, int],
        generator: np.random.Generator,
    ) -> np.ndarray:
        """Forecasts plus errors: of the state after the rows, of its shocks, of observation."""
        n, h = shape
        lowered, origin = self.lowered(rows, fitted.spec)
        results = self.build(lowered, fitted.spec).filter(fitted.params, cov_type="none")
        forecast = results.get_forecast(h, **({} if future is None else {"exog": future}))
        names = ("transition", "selection", "state_cov", "design", "obs_cov")
        T, R, Q, Z, H = (np.atleast_3d(results.model.ssm[name])[..., -1] for name in names)

        def normal_draws(covariance: np.ndarray) -> np.ndarray:
            return generator.multivariate_normal(np.zeros(len(covariance)), covariance, n)

        state, errors = normal_draws(results.predicted_state_cov[..., -1]), []
        for _ in range(h):
            errors.append(state @ Z.T + normal_draws(H))
            state = state @ T.T + normal_draws(Q) @ R.T
        mean = np.asarray(forecast.predicted_mean) + origin
        return mean + np.stack(errors, 1).reshape(n, *mean.shape)

    def transition(self, fitted: Fitted, rows: Rows, future: np.ndarray | None) -> np.ndarray:
        """Matrix (r, r) that takes the state one step on."""
        own, near, _ = self.in_scale(fitted, rows, None)
        model = self.build(self.lowered(near, own.spec)[0], own.spec)
        model.update(own.params)
        return np.atleast_3d(model.ssm["transition"])[..., -1]

    def placed(self, rows: Rows, spec: dict[str, Any]) -> dict[str, Any]:
        """The spec with the mean of scaled rows that an intercept is estimated without."""
        if not (self.standardize and self.centres(spec)):
            return spec
        return spec | {ORIGIN: float(np.nanmean(rows.y))}

    def lowered(self, rows: Rows, spec: dict[str, Any]) -> tuple[Rows, float]:
        """Rows less a constant, and that constant.

        It is the first value seen where the level is diffuse, with a prior about zero.
        """
        origin = spec.get(ORIGIN, 0.0)
        if self.standardize and self.floats(spec):
            origin = float(rows.y[np.isfinite(rows.y).argmax()])
        return rows._replace(y=rows.y - origin), origin

    def told(self, own: Fitted) -> np.ndarray:
        params = super().told(own)
        params[self.intercept(own)] += self.constant(own)
        return params

    def inner(self, fitted: Fitted) -> np.ndarray:
        params = fitted.params.copy()
        params[self.intercept(fitted)] -= self.constant(fitted)
        return params / self.units(fitted)

    def intercept(self, fitted: Fitted) -> list[int]:
        """Where the intercept is that takes up the constant, if there is one."""
        return [fitted.names.index("intercept")] if ORIGIN in fitted.spec else []

    def constant(self, fitted: Fitted) -> float:
        """What the constant taken off adds to the intercept, in the unit of the data."""
        if ORIGIN not in fitted.spec:
            return 0.0
        lags = [0.0, 0.0]
        for name, value in zip(fitted.names, fitted.params, strict=True):
            if name.startswith("ar."):
                lags[name.startswith("ar.S.")] += value
        return (1 - lags[0]) * (1 - lags[1]) * fitted.spec[ORIGIN] * fitted.spec["scale"]

    def factors(self, fitted: Fitted, scale: Any) -> np.ndarray:
        powers = [
            0 if name.startswith(WITHOUT_UNIT) else 2 if name.startswith("sigma2") else 1
            for name in fitted.names
        ]
        return scale ** np.array(powers, float)

    def page(self, fitted: Fitted, rows: Rows) -> str:
        """The summary in the unit of the data, with errors found in that of the scaled rows."""
        spec, factors = fitted.spec | {ORIGIN: 0.0}, self.units(fitted)
        near, _ = self.lowered(scaled(rows, spec), spec)
        own = self.build(near, spec).smooth(fitted.params / factors)
        model = self.build(self.lowered(rows, spec)[0], spec)
        model.ssm.tolerance *= float(np.min(spec["scale"])) ** 4  # of squares of variances
        if hasattr(model, "initialize_default"):  # of the models with diffuse states
            model.ssm.initial_variance *= spec["scale"] ** 2
            model.initialize_default()
        results = model.smooth(fitted.params, cov_type="none")._results  # behind its wrapper
        results.cov_params_default = own.cov_params_default * np.outer(factors, factors)
        for name in ("cov_type", "cov_kwds", "_rank"):
            setattr(results, name, getattr(own, name))
        return str(results.summary())


class StateSpaceForecaster(StandardizedForecaster):
    """Base of the forecasters of which all units have one state space; not to be used by itself."""

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        """Transition matrices of the fitted state spaces, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "transition", shape (U, r, r), of the units that were fitted: how states, and with them
            forecasts, move. Differences, levels and seasons that wander are eigenvalues of one.
        """
        check_is_fitted(self, "memory_")
        answers = self._run("transition", self.memory_, None)
        return [{"transition": np.stack([one for one in answers if one is not None])}]


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
