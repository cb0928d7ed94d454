"""ARMA and ARIMA models: the family and its estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from tsrnn.contract import (
    Arguments,
    FittedData,
    positive_integer,
    unit_index,
    with_shared_arguments,
)
from tsrnn.data import Panel
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Ahead, Arrays, Family, Units, all_given, normal_forecasts
from tsrnn.linear._hypotheses import COMMON_FACTORS, Restriction
from tsrnn.linear.arma._filter import inputs_of
from tsrnn.linear.arma._fit import (
    Sample,
    Search,
    ends_at,
    estimates_of,
    exact_estimates,
    samples,
    search,
    seasonal_search,
)
from tsrnn.linear.arma._prepare import batches, rows_of, unit_data
from tsrnn.linear.arma._results import ARMAResults, check_admissible, recursions
from tsrnn.linear.arma._seasonal_filter import whole
from tsrnn.linear.arma._seasonal_fit import SeasonalLikelihood
from tsrnn.linear.arma._specification import Specification, arma_specification


@dataclass(frozen=True)
class ARMAFamily(Family):
    """ARMA at given orders: units are series of one target, batched by their lengths.

    Attributes
    ----------
    spec : Specification
    n_targets : int
        Targets of a series.
    n_starts : int or None
        Starts of every unit, besides the optima of nested models; None for as many as needed.
    """

    spec: Specification
    n_targets: int = 1
    n_starts: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.spec.names

    @property
    def title(self) -> str:
        spec = self.spec
        p, d, q = spec.p, spec.d, spec.q
        if spec.m:
            seasonal = f"({spec.P}, {spec.D}, {spec.Q})[{spec.m}]"
            return f"Seasonal ARIMA({p}, {d}, {q}){seasonal}, trend {spec.trend!r}"
        orders = (p, d, q) if d else (p, q)
        return f"AR{'I' * bool(d)}MA{orders}, trend {self.spec.trend!r}"

    @property
    def recursions(self) -> ModuleType:
        """Filter, forecasts and draws at the orders of the family."""
        return recursions(self.spec)

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"memory": (self.n_targets, self.recursions.state_size(self.spec))}

    @property
    def conventions(self) -> dict[str, str]:
        exact, d = self.spec.exact, self.spec.lost
        state = "stationary" if exact else "zero"
        return {
            "Likelihood": "exact" if exact else "conditional",
            "Initial state": f"{state}, {d} rows given" if d else state,
        }

    @property
    def n_arma(self) -> int:
        return self.spec.p + self.spec.q + self.spec.P + self.spec.Q

    def mean_parameters(self, estimates: Estimates) -> np.ndarray:
        return np.full(len(estimates.params), len(self.names) - 1)

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Sample | None, dict[int, str]]]:
        if given is not None:
            labels = unit_index(panel.layout, panel.ids, multivariate=False)
            check_admissible(self.spec, given, labels)
        parts = (samples(self.spec, units, *unit_data(panel, units)) for units in batches(panel))
        return all_given(chain.from_iterable(parts), panel, given)

    def search(self, sample: Sample, verbose: int) -> Search | None:
        if sample.exact:
            return None
        if isinstance(sample.likelihood, SeasonalLikelihood):
            return seasonal_search(sample.prepared, sample.likelihood, self.n_starts)
        return search(sample.prepared, sample.likelihood, self.n_starts)

    def given(self, sample: Sample, params: np.ndarray) -> Search:
        return ends_at(sample, params)

    def infer(self, sample: Sample, optimum: Search | None) -> tuple[Estimates, Arrays]:
        if optimum is None:
            return exact_estimates(self.spec, sample), {}
        return estimates_of(self.spec, sample, optimum), {}

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        spec, params, n_targets = self.spec, units.params, self.n_targets
        state = np.full((len(params), self.recursions.state_size(spec)), np.nan)
        for numbers in fitted_batches(panel, units):
            series = numbers // n_targets
            y, exog = unit_data(panel, numbers)
            start = self.recursions.filter_start(spec, params[numbers], y, exog, steps[series])
            left = panel.lengths[series] - start.rows
            state[numbers] = self.recursions.last_state(
                spec, params[numbers], start.inputs, start.state, left
            )
        return {"memory": state.reshape(panel.n_series, n_targets, -1)}

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        spec, params, before = self.spec, units.params, state["memory"]
        after = before.reshape(len(params), -1).copy()
        for numbers in batches(panel):
            series = numbers // self.n_targets
            y, exog = unit_data(panel, numbers)
            inputs = inputs_of(spec, y, exog, steps[series])
            after[numbers] = self.recursions.last_state(
                spec, params[numbers], inputs, after[numbers], panel.lengths[series]
            )
        return {"memory": after.reshape(before.shape)}

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        n_targets, last = self.n_targets, state["memory"]
        exog = None if ahead.exog is None else np.repeat(ahead.exog, n_targets, axis=0)
        by_unit = Ahead(ahead.h, np.repeat(ahead.steps, n_targets), exog)
        states = last.reshape(len(units.params), -1)
        mean, variance = (
            part.reshape(len(last), n_targets, ahead.h).swapaxes(1, 2)
            for part in self.recursions.forecast_moments(self.spec, units.params, states, by_unit)
        )
        return normal_forecasts(mean, variance, levels)

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        h, mean = ahead.h, self.forecast(state, units, ahead, [])[""]
        last, fitted = state["memory"].reshape(len(units.params), -1), units.fitted
        errors = np.full((len(units.params), h, n), np.nan)
        errors[fitted] = self.recursions.draw_errors(
            self.spec, units.params[fitted], last[fitted], (h, n), rng
        )
        return mean + errors.reshape(-1, self.n_targets, h, n).transpose(3, 0, 2, 1)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        errors, scaled = [], []
        for numbers in fitted_batches(panel, units):
            params, (y, exog) = units.params[numbers], unit_data(panel, numbers)
            start = self.recursions.filter_start(
                self.spec, params, y, exog, steps[numbers // self.n_targets]
            )
            e, v = self.recursions.innovations(self.spec, params, start, y.shape[1])
            errors.append((numbers, e))
            # forecasts without error have a variance of rounding, which may be below 0
            scaled.append((numbers, e / np.sqrt(np.where(v > 0, v, np.nan))))
        return panel.values - rows_of(panel, errors), rows_of(panel, scaled)

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        if not isinstance(smaller, ARMAFamily):
            return None
        spec, small = self.spec, smaller.spec
        lags = spec.p - small.p, spec.q - small.q
        seasonal = spec.P - small.P, spec.Q - small.Q
        regressors = set(small.regressors) <= set(spec.regressors)
        trend = set(small.trend) - {"n"} <= set(spec.trend)
        same = (small.d, small.D) == (spec.d, spec.D) and small.m in (0, spec.m)
        if not (min(*lags, *seasonal) >= 0 and same and regressors and trend):
            return None
        common = min(lags) > 0 or min(seasonal) > 0
        return Restriction(reason=COMMON_FACTORS if common else "")

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        spec = self.spec
        if spec.m:  # all lags of the multiplied polynomials, differences among them
            phi, theta = (lags[:, 0] for lags in whole(spec, params[None]))
        else:
            phi, theta = params[spec.n_mean : -1][: spec.p], params[spec.n_mean : -1][spec.p :]
            r = max(spec.p, spec.q, 1)
            phi, theta = padded(phi, r), padded(theta, r)
        mu = params[:1] if "c" in spec.trend else np.zeros(1)
        equation = DifferenceEquation(
            -theta[:, None, None], (phi + theta)[:, None, None], mu * (1 - phi.sum())
        )
        return Recursion(equation, mu, mu)

    @classmethod
    def named(cls, equation: DifferenceEquation) -> dict[str, float]:
        theta = -equation.recurrent[:, 0, 0]
        phi = equation.inputs[:, 0, 0] - theta
        persistence = 1 - phi.sum()
        lags = range(1, len(theta) + 1)
        return {
            "const": equation.intercept[0] / persistence if persistence else np.nan,
            **{f"ar.L{i}": phi[i - 1] for i in lags},
            **{f"ma.L{i}": theta[i - 1] for i in lags},
        }


def fitted_batches(panel: Panel, units: Units) -> Iterator[np.ndarray]:
    """Batches of the units of a panel that have parameters, by number."""
    fitted = np.isfinite(units.params).all(1)
    for numbers in batches(panel):
        if len(kept := numbers[fitted[numbers]]):
            yield kept


@with_shared_arguments
class ARMA(ARMAResults):
    r"""ARMA, ARIMA and seasonal ARIMA models with regressors by maximum likelihood.

    .. math::

        y_t = x_t'\beta + u_t, \qquad
        \phi(B) (1 - B)^d u_t = \theta(B) e_t, \qquad e_t \sim N(0, \sigma^2)

    with :math:`\phi(B) = 1 - \phi_1 B - \dots - \phi_p B^p` and
    :math:`\theta(B) = 1 + \theta_1 B + \dots + \theta_q B^q`. Its one-step forecasts are the
    states of a linear recurrent network, for p = q = 1
    :math:`h_t = \Theta h_{t-1} + (\Phi - \Theta) y_{t-1}` with :math:`\Phi = \phi_1` and
    :math:`\Theta = -\theta_1` (Cai et al., 2026, section 2.1). A seasonal model multiplies
    polynomials of the season,

    .. math::

        \phi(B) \Phi(B^m) (1 - B)^d (1 - B^m)^D u_t = \theta(B) \Theta(B^m) e_t

    Every series and target is fitted by itself, all of them in one batch: Fisher scoring, then
    Newton's method, with exact derivatives; seasonal ones and those of many lags by a quasi-Newton
    method. A series needs, beside those lost by differencing, twice as many observations as there
    are coefficients of lags and one for each other parameter. Names, parameters and log-likelihood
    are those of statsmodels' ARIMA and SARIMAX.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        (p, q), or (p, d, q) with d differences. Up to 12 lags; with the exact likelihood and a
        moving average up to 6. Beyond 4, the first fit compiles for some seconds, and second
        derivatives are differences of exact gradients, of some ten digits.
    trend : {"n", "c", "t", "ct"}, optional
        Among the regressors: nothing, a constant (parameter ``const``), the number of the row
        from 1 (``drift``), or both. By default "c" with d = D = 0, else "n". Terms of an order
        below d + D are refused.
    likelihood : {"exact", "conditional"}
        From the stationary distribution of the state, or from a state that is zero before the
        first row. With differences both are given the first d + m D observations.
    n_starts : int, optional
        Starting values of every series, besides the optima of the models nested in this one. By
        default one, and all kinds that are known to matter where that leaves doubt.
        `agreement_` says how many of `starts_` reached the highest log-likelihood.
    seasonal_order : tuple of int, optional
        (P, D, Q, m): lags, differences and lags of innovations that are m rows apart, such as
        (0, 1, 1, 12) of monthly data. The lags of the multiplied polynomials may be up to 250.
    cov_type : str, default "hessian"
        Kind of standard errors: "hessian", "opg" (statsmodels' default), "information",
        "robust" or "bollerslev-wooldridge".
    missing : {"auto", "error", "interpolate", "keep"}
        "keep" leaves missing values out of the exact likelihood. With differences it begins at the
        first d + m D observations in a row; those before them are left out, as `messages_` say.
    parameter_uncertainty : bool, default True
        Whether intervals know that k parameters are estimated from n rows: Student's t with n - k
        degrees of freedom, and the final prediction error, (n + k) / (n - k) times the variance.
    outliers : {"pulse"} or None
        "pulse" skips gross errors of single rows as ``missing="keep"`` skips missing ones: the
        likelihood of a pulse in the row, with a flat prior, but for a constant.
        They are those that `tsrnn.prior.find_outliers` finds in the target as it is, effects of
        columns included; `outliers_` lists them, and level shifts, which stay. `update` and
        `predict_rolling` take new rows as they are.
    intervals : {"model", "conformal"}
        Those of the model, or conformal ones, by errors of rolling forecasts of the last rows.
    horizon, id_col, time_col, freq, strict, support, random_state, verbose
        As in all linear models.
    target, known_ahead, static, calendar, holidays
        As in all linear models. Exogenous columns are regressors; to forecast, name them all
        in `known_ahead`.

    Notes
    -----
    Estimates are the highest of several local maxima where roots of both sides are close to
    each other or a root of the moving average is close to the unit circle, which is where
    others exist. They are stationary, and invertible but for roots on the unit circle, which
    is a boundary: parameters there have no standard error, nor have those of roots that cancel.
    With the conditional likelihood, roots of the autoregression are not restricted, but those of
    seasonal models are stationary as well.

    Intervals hold if the model is right and its innovations are normal. Rows are
    counted on the calendar, from the first one fitted to, also where `predict` is given data
    that begin elsewhere. Regressors must be known for every row.

    `to_rnn` is the network of the series less drift and regressors, differenced d times; that of a
    seasonal model is of the series itself, its differences among the roots of the recurrence.

    References
    ----------
    Hannan, E., Rissanen, J. (1982). Recursive estimation of mixed autoregressive-moving average
    order. Biometrika.
    de Jong, P. (1988). The likelihood for a state space model. Biometrika.
    Pearlman, J. (1980). An algorithm for the exact likelihood of a high-order autoregressive-
    moving average process. Biometrika.
    Cai, Li, Huang and Li (2026), section 2.1.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import ARMA
    >>> noise = np.random.default_rng(0).normal(size=(2, 201))
    >>> series = pd.DataFrame(noise[:, 1:].T + 0.5 * noise[:, :-1].T, columns=["a", "b"])
    >>> model = ARMA(order=(0, 1)).fit(series)
    >>> model.params_.shape
    (2, 3)
    >>> model.predict(h=2).shape
    (2, 2)
    """

    column_name: ClassVar[str] = "ARMA"
    family_class: ClassVar[type[Family]] = ARMAFamily
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def __init__(
        self,
        order: tuple[int, ...] = (1, 1),
        trend: str | None = None,
        likelihood: str = "exact",
        n_starts: int | None = None,
        seasonal_order: tuple[int, int, int, int] | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.order = order
        self.trend = trend
        self.likelihood = likelihood
        self.n_starts = n_starts
        self.seasonal_order = seasonal_order

    def _skips_missing(self, arguments: Arguments) -> bool:
        return bool(arguments.likelihood == "exact")

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        header["params"].setdefault("seasonal_order", None)

    def _family(self, arguments: Arguments, data: FittedData) -> ARMAFamily:
        spec = arma_specification(arguments, data.exog_names)
        n_starts = arguments.n_starts
        if n_starts is not None:
            n_starts = positive_integer("n_starts", n_starts)
        return ARMAFamily(spec, data.n_targets, n_starts)
