"""Models of statsmodels on standardised rows, in particular those with a Kalman filter."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, ClassVar, Self

import numpy as np

from tsrnn.baselines._fitted import UnitForecaster
from tsrnn.baselines._unit import Ahead, Rows, Unit, UnitEstimates, UnitModel, normal
from tsrnn.contract import Kind, listed, positive, real, record, refuse, with_shared_arguments

REGRESSOR = re.compile(r"(?:^|\.)x(\d+)(?:\.|$)")  # in names of coefficients
WITHOUT_UNIT = ("ar.", "ma.", "frequency.", "damping.")  # prefixes of unit-free parameters
ORIGIN = "origin"  # in a spec: the mean that was subtracted from scaled rows
LONGEST = 24  # steps of a season with a state each, as in R's forecast package
MOST_STATES = 2000  # of a model in a file: matrices have the square of it


@dataclass(frozen=True, kw_only=True)
class ScaledModel(UnitModel):
    """Model of targets and regressors divided by their standard deviations at `fit`.

    Optimisers and diffuse priors of a fixed variance depend on the unit of the data; scaling
    removes that. Parameters, criteria and forecasts are reported in the unit of the data. The spec
    keeps the scale of targets, a number or a list, and of regressors.
    """

    standardize: bool = True  # False passes the rows on as they are
    season: int = 1  # steps of a season; 1 for none
    implied: bool = False  # whether the season is that of the frequency
    longest: ClassVar[float] = np.inf  # steps of an implied season that is modelled

    @abstractmethod
    def solve(self, rows: Rows) -> tuple[UnitEstimates, int]:
        """Estimates of scaled rows, and the number of first rows that the likelihood leaves out."""

    @abstractmethod
    def run(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        """Forecasts after scaled rows, at the parameters of scaled rows."""

    def draw(
        self, unit: Unit, shape: tuple[int, int], generator: np.random.Generator
    ) -> np.ndarray:
        """Paths (n, h) or (n, h, C) after scaled rows, for shape = (n, h)."""
        raise NotImplementedError

    @abstractmethod
    def factors(self, fitted: UnitEstimates, scale: Any) -> np.ndarray:
        """Factor of each parameter (k,) of scaled rows in the unit of the data."""

    def seasonless(self) -> Self | None:
        return replace(self, season=1, implied=False) if self.implied else None

    def season_left_out(self, rows: Rows) -> str:
        if self.implied and self.season > self.longest:
            return (
                f"no season: that of the frequency has {self.season} steps, and more than "
                f"{self.longest} are taken only when asked for"
            )
        return super().season_left_out(rows)

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

    def estimate(self, rows: Rows) -> UnitEstimates:
        scale = self.scale_of(rows.y)
        spec: dict[str, Any] = {"scale": scale.tolist()}
        if rows.exog is not None:
            spec["exog_scale"] = self.scale_of(rows.exog).tolist()
        fitted, n_outside = self.solve(scaled(rows, spec))
        fitted = replace(fitted, spec=fitted.spec | spec)
        # The density of y is that of y / scale, divided by scale.
        counted = np.isfinite(rows.y[n_outside:]).sum(axis=0)
        jacobian = float((counted * np.log(scale)).sum())
        return replace(
            fitted,
            params=self.unscaled(fitted),
            loglik=fitted.loglik - jacobian,
            aic=fitted.aic + 2 * jacobian,
            bic=fitted.bic + 2 * jacobian,
        )

    def ahead(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        scale = np.asarray(unit.fitted.spec["scale"])
        ahead = self.run(self.in_scale(unit), h, levels)
        ends = {level: (low * scale, high * scale) for level, (low, high) in ahead.ends.items()}
        return Ahead(ahead.mean * scale, ends)

    def paths(self, unit: Unit, h: int, n: int, seed: int) -> np.ndarray:
        drawn = self.draw(self.in_scale(unit), (n, h), np.random.default_rng(seed))
        return drawn * np.asarray(unit.fitted.spec["scale"])

    def in_scale(self, unit: Unit) -> Unit:
        """Parameters, rows and regressors ahead in units of the scales."""
        fitted, rows, future = unit
        params = self.scaled_params(fitted)
        ahead = None if future is None else future / fitted.spec["exog_scale"]
        return Unit(replace(fitted, params=params), scaled(rows, fitted.spec), ahead)

    def scale_of(self, y: np.ndarray) -> np.ndarray:
        """Scale () or (C,) of rows (T,) or (T, C): standard deviations; 1 for constants."""
        deviation = np.asarray(np.nanstd(y, axis=0))
        return np.where(self.standardize & (deviation > 0), deviation, 1.0)

    def unscaled(self, fitted: UnitEstimates) -> np.ndarray:
        """Parameters (k,) in the unit of the data, from those of scaled rows."""
        return fitted.params * self.all_factors(fitted)

    def scaled_params(self, fitted: UnitEstimates) -> np.ndarray:
        """Parameters (k,) of scaled rows, from those in the unit of the data."""
        return fitted.params / self.all_factors(fitted)

    def all_factors(self, fitted: UnitEstimates) -> np.ndarray:
        """Factors of the parameters by the scales of targets and of regressors."""
        factors = self.factors(fitted, np.asarray(fitted.spec["scale"]))
        for i, name in enumerate(fitted.names):
            if regressor := REGRESSOR.search(name):
                factors[i] /= fitted.spec["exog_scale"][int(regressor[1]) - 1]
        return factors


def scaled(rows: Rows, spec: dict[str, Any]) -> Rows:
    """Rows in units of the scales that a spec holds."""
    exog = None if rows.exog is None else rows.exog / spec["exog_scale"]
    return rows._replace(y=rows.y / spec["scale"], exog=exog)


@with_shared_arguments
class StandardizedForecaster(UnitForecaster):
    """Base of the models of statsmodels whose results depend on the unit of the data.

    Parameters
    ----------
    standardize : bool, default True
        Whether statsmodels is given the data divided by their standard deviations, as its results
        depend on the unit. False gives the numbers of a direct call on the same data.
    **shared
        As in all forecasters.
    """

    def __init__(self, *, standardize: bool = True, **shared: Any) -> None:
        super().__init__(**shared)
        self.standardize = standardize


class StateSpaceModel(ScaledModel):
    """Model whose likelihood is that of statsmodels' Kalman filter."""

    max_iter: int = 50  # of the optimiser

    @abstractmethod
    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        """Statsmodels' model of the rows."""

    @abstractmethod
    def n_states(self, rows: Rows, spec: dict[str, Any]) -> int:
        """Approximate number of states of the filter, whose matrices have its square."""

    def spec_kind(self, rows: Rows) -> Kind:
        kind = super().spec_kind(rows)

        def check(value: Any, place: str) -> None:
            kind({name: value[name] for name in value if name != ORIGIN}, place)
            if (ORIGIN in value) != (self.standardize and self.has_intercept(value)):
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
        """Spec that is chosen before the estimate, such as orders."""
        return {}

    def is_diffuse(self, spec: dict[str, Any]) -> bool:
        """Whether the initial level is diffuse, so that a constant may be subtracted."""
        return False

    def has_intercept(self, spec: dict[str, Any]) -> bool:
        """Whether an intercept can take up a constant that is subtracted from the rows."""
        return False

    def fewest(self, rows: Rows) -> int:
        return 2

    def solve(self, rows: Rows) -> tuple[UnitEstimates, int]:
        spec = self.with_origin(rows, self.choose(rows))
        results = self.fit(rows, spec)
        return fitted_of(results, spec), int(results.loglikelihood_burn)

    def fit(self, rows: Rows, spec: dict[str, Any]) -> Any:
        """Statsmodels' results of scaled rows."""
        model = self.build(self.less_origin(rows, spec)[0], spec)
        return model.fit(disp=False, cov_type="none", maxiter=self.max_iter)

    def run(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        filtered, origin = self.filtered(unit, h)
        mean = filtered.forecasts[:, -h:].T + origin
        variance = np.diagonal(filtered.forecasts_error_cov[..., -h:])
        shape = h, *unit.rows.y.shape[1:]
        return normal(mean.reshape(shape), np.sqrt(variance).reshape(shape), levels)

    def filtered(self, unit: Unit, h: int) -> tuple[Any, float]:
        """Statsmodels' filter over the rows and h missing ones, and the constant subtracted.

        Its predictions of the missing rows are the forecasts, in one pass of one model.
        """
        fitted, rows, future = unit
        less, origin = self.less_origin(rows, fitted.spec)
        y = np.concatenate([less.y, np.full((h, *less.y.shape[1:]), np.nan)])
        exog = None if less.exog is None or future is None else np.concatenate([less.exog, future])
        model = self.build(less._replace(y=y, exog=exog), fitted.spec)
        return model.filter(fitted.params, return_ssm=True), origin

    def draw(
        self, unit: Unit, shape: tuple[int, int], generator: np.random.Generator
    ) -> np.ndarray:
        """Forecasts plus errors: of the state after the rows, of its shocks, of observation."""
        n, h = shape
        filtered, origin = self.filtered(unit, h)
        names = ("transition", "selection", "state_cov", "design", "obs_cov")
        T, R, Q, Z, H = (np.atleast_3d(getattr(filtered, name))[..., -1] for name in names)

        def normal_draws(covariance: np.ndarray) -> np.ndarray:
            return generator.multivariate_normal(np.zeros(len(covariance)), covariance, n)

        # Deviations from the mean that the filter gives; the last state is uncertain as well.
        state, errors = normal_draws(filtered.predicted_state_cov[..., -h - 1]), []
        for _ in range(h):
            errors.append(state @ Z.T + normal_draws(H))
            state = state @ T.T + normal_draws(Q) @ R.T
        mean = filtered.forecasts[:, -h:].T + origin
        return (mean + np.stack(errors, 1)).reshape(n, h, *unit.rows.y.shape[1:])

    def transition(self, unit: Unit) -> np.ndarray:
        """Transition matrix (r, r) of the state."""
        fitted, rows, _ = self.in_scale(unit)
        model = self.build(self.less_origin(rows, fitted.spec)[0], fitted.spec)
        model.update(fitted.params)
        return np.atleast_3d(model.ssm["transition"])[..., -1]

    def with_origin(self, rows: Rows, spec: dict[str, Any]) -> dict[str, Any]:
        """Spec with the mean of scaled rows, which is subtracted if there is an intercept."""
        if not (self.standardize and self.has_intercept(spec)):
            return spec
        return spec | {ORIGIN: float(np.nanmean(rows.y))}

    def less_origin(self, rows: Rows, spec: dict[str, Any]) -> tuple[Rows, float]:
        """Rows less a constant, and that constant.

        With a diffuse level, whose prior is about zero, it is the first value observed.
        """
        origin = spec.get(ORIGIN, 0.0)
        if self.standardize and self.is_diffuse(spec):
            origin = float(rows.y[np.isfinite(rows.y).argmax()])
        return rows._replace(y=rows.y - origin), origin

    def unscaled(self, fitted: UnitEstimates) -> np.ndarray:
        params = super().unscaled(fitted)
        if ORIGIN in fitted.spec:
            params[fitted.names.index("intercept")] += self.origin_in_intercept(fitted)
        return params

    def scaled_params(self, fitted: UnitEstimates) -> np.ndarray:
        params = fitted.params.copy()
        if ORIGIN in fitted.spec:
            params[fitted.names.index("intercept")] -= self.origin_in_intercept(fitted)
        return params / self.all_factors(fitted)

    def origin_in_intercept(self, fitted: UnitEstimates) -> float:
        r"""Intercept of the mean that was subtracted: :math:`\phi(1) \Phi(1)` times that mean."""
        lags = [0.0, 0.0]
        for name, value in zip(fitted.names, fitted.params, strict=True):
            if name.startswith("ar."):
                lags[name.startswith("ar.S.")] += value
        return (1 - lags[0]) * (1 - lags[1]) * fitted.spec[ORIGIN] * fitted.spec["scale"]

    def factors(self, fitted: UnitEstimates, scale: Any) -> np.ndarray:
        powers = [
            0 if name.startswith(WITHOUT_UNIT) else 2 if name.startswith("sigma2") else 1
            for name in fitted.names
        ]
        return scale ** np.array(powers, float)

    def page(self, fitted: UnitEstimates, rows: Rows) -> str:
        """Summary in the unit of the data, with standard errors from the scaled rows."""
        spec, factors = fitted.spec | {ORIGIN: 0.0}, self.all_factors(fitted)
        scaled_rows, _ = self.less_origin(scaled(rows, spec), spec)
        standard = self.build(scaled_rows, spec).smooth(fitted.params / factors)
        model = self.build(self.less_origin(rows, spec)[0], spec)
        model.ssm.tolerance *= float(np.min(spec["scale"])) ** 4  # of squares of variances
        if hasattr(model, "initialize_default"):  # of the models with diffuse states
            model.ssm.initial_variance *= spec["scale"] ** 2
            model.initialize_default()
        results = model.smooth(fitted.params, cov_type="none")._results  # behind its wrapper
        results.cov_params_default = standard.cov_params_default * np.outer(factors, factors)
        for name in ("cov_type", "cov_kwds", "_rank"):
            setattr(results, name, getattr(standard, name))
        return str(results.summary())


class StateSpaceForecaster(StandardizedForecaster):
    """Base of forecasters with one state space for all units."""

    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        """Transition matrices of the fitted state spaces, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "transition", shape (U, r, r), of the units that were fitted. Differences, stochastic
            levels and seasons have eigenvalues of modulus one.
        """
        answers = self._fitted_model().ask("transition", self.state_, None)
        return [{"transition": np.stack([matrix for matrix in answers if matrix is not None])}]


def fitted_of(results: Any, spec: dict[str, Any]) -> UnitEstimates:
    """Estimates from statsmodels' results of a maximum likelihood fit."""
    return UnitEstimates(
        names=tuple(results.model.param_names),
        params=np.asarray(results.params, float),
        spec=spec,
        loglik=float(results.llf),
        aic=float(results.aic),
        bic=float(results.bic),
        converged=bool(results.mle_retvals["converged"]),
    )
