"""ARMA and ARIMA models: family and estimator."""

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
from tsrnn.linear._family import Ahead, Arrays, Family, Units, normal_forecasts, raise_if_given
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
    """ARMA at given orders. A unit is one target of a series; batches have similar lengths."""

    spec: Specification
    n_targets: int = 1  # of a series
    n_starts: int | None = None  # of every unit, besides nested optima; None to decide by unit

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
        """Module with filter, forecasts and draws at the family's orders."""
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
        return raise_if_given(chain.from_iterable(parts), panel, given)

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
            # A perfect forecast has a variance of rounding, which may be negative.
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
        if spec.m:  # lags of the multiplied polynomials, which include differences
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
    """Batches of a panel's units that have parameters, by number."""
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
    :math:`\theta(B) = 1 + \theta_1 B + \dots + \theta_q B^q`. One-step forecasts are the states
    of a linear recurrent network. For p = q = 1 it is
    :math:`h_t = \Theta h_{t-1} + (\Phi - \Theta) y_{t-1}` with :math:`\Phi = \phi_1` and
    :math:`\Theta = -\theta_1` (Cai et al., 2026, section 2.1). A seasonal model multiplies by
    polynomials in :math:`B^m`,

    .. math::

        \phi(B) \Phi(B^m) (1 - B)^d (1 - B^m)^D u_t = \theta(B) \Theta(B^m) e_t

    Every series and target is fitted by itself, all in one batch: Fisher scoring, then Newton's
    method, with exact derivatives; seasonal models and models of many lags by a quasi-Newton
    method. After differencing, a series needs two observations for each coefficient of a lag and
    one for each other parameter. Names, parameters and log-likelihood agree with statsmodels' ARIMA
    and SARIMAX.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        (p, q), or (p, d, q) with d differences. Up to 12 lags; with the exact likelihood and a
        moving average up to 6. Beyond 4 lags the first fit compiles for some seconds, and second
        derivatives are differences of exact gradients, accurate to about ten digits.
    trend : {"n", "c", "t", "ct"}, optional
        Deterministic regressors: none, a constant (parameter ``const``), the row number from 1
        (``drift``), or both. By default "c" with d = D = 0, else "n". Terms of an order below
        d + D are refused.
    likelihood : {"exact", "conditional"}
        Start from the stationary distribution of the state, or from a state of zero before the
        first row. With differences both condition on the first d + m D observations.
    n_starts : int, optional
        Number of starting values of every series, besides the optima of nested models. By default
        one, and further starts of all known kinds if its optimum is doubtful. `agreement_` counts
        how many of `starts_` reached the highest log-likelihood.
    seasonal_order : tuple of int, optional
        (P, D, Q, m): seasonal lags, differences and lags of innovations, m rows apart, such as
        (0, 1, 1, 12) for monthly data. Lags of the multiplied polynomials may be up to 250.
    cov_type : str, default "hessian"
        Kind of standard errors: "hessian", "opg" (statsmodels' default), "information",
        "robust" or "bollerslev-wooldridge".
    missing : {"auto", "error", "interpolate", "keep"}
        "keep" leaves missing values out of the exact likelihood. With differences the likelihood
        begins at the first d + m D consecutive observations and leaves out earlier ones;
        `messages_` report it.
    parameter_uncertainty : bool, default True
        Widen intervals for k parameters estimated from n rows: Student's t with n - k degrees of
        freedom, and the final prediction error, (n + k) / (n - k) times the variance.
    outliers : {"pulse"} or None
        "pulse" skips gross errors of single rows as ``missing="keep"`` skips missing values. Up to
        a constant this is the likelihood with a pulse in the row and a flat prior on its size.
        `tsrnn.prior.find_outliers` finds them in the target, with effects of columns included.
        `outliers_` lists them, and level shifts, which are not skipped. `update` and
        `predict_rolling` keep gross errors in new rows.
    intervals : {"model", "conformal"}
        Intervals of the model, or conformal ones from rolling forecasts of the last rows.
    horizon, id_col, time_col, freq, strict, support, random_state, verbose
        As in all linear models.
    target, known_ahead, static, calendar, holidays
        As in all linear models. Exogenous columns are regressors; forecasts need all of them in
        `known_ahead`.

    Notes
    -----
    The likelihood can have several local maxima if roots of both sides nearly cancel, or if a root
    of the moving average is close to the unit circle; the search then takes the highest of several.
    Estimates are stationary and invertible, except for moving-average roots on the unit circle.
    Parameters on this boundary have no standard error, nor have parameters of roots that cancel.
    With the conditional likelihood the autoregression is not restricted, unless the model is
    seasonal.

    Intervals hold if the model is right and its innovations are normal. Rows are counted on the
    calendar from the first row fitted to, even if data given to `predict` begin elsewhere.
    Regressors must be known for every row.

    `to_rnn` returns the network of the series without drift and regressors, differenced d times.
    For a seasonal model it is the network of the series itself, whose recurrence includes the
    roots of the differences.

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
