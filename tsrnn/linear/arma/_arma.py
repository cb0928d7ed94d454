"""ARMA and ARIMA models: the family and its estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from tsrnn.linear._family import Ahead, Arrays, Family, Units, normal_forecasts
from tsrnn.linear._hypotheses import COMMON_FACTORS, Restriction
from tsrnn.linear.arma._filter import (
    draw_errors,
    filter_start,
    forecast_moments,
    innovations,
    inputs_of,
    last_state,
    state_size,
)
from tsrnn.linear.arma._fit import Sample, Search, ends_at, estimates_of, samples, search
from tsrnn.linear.arma._prepare import batches, rows_of, unit_data
from tsrnn.linear.arma._results import ARMAResults, check_admissible
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
        p, d, q = self.spec.p, self.spec.d, self.spec.q
        orders = (p, d, q) if d else (p, q)
        return f"AR{'I' * bool(d)}MA{orders}, trend {self.spec.trend!r}"

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"memory": (self.n_targets, state_size(self.spec))}

    @property
    def conventions(self) -> dict[str, str]:
        exact, d = self.spec.exact, self.spec.d
        state = "stationary" if exact else "zero"
        return {
            "Likelihood": "exact" if exact else "conditional",
            "Initial state": f"{state}, {d} rows given" if d else state,
        }

    @property
    def n_arma(self) -> int:
        return self.spec.p + self.spec.q

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Sample | None, dict[int, str]]]:
        labels = unit_index(panel.layout, panel.ids, multivariate=False)
        if given is not None:
            check_admissible(self.spec, given, labels)
        for units in batches(panel):
            for sample, refused in samples(self.spec, units, *unit_data(panel, units)):
                if refused and given is not None:
                    unit, reason = next(iter(refused.items()))
                    raise ValueError(f"{labels[unit]!r} cannot be filtered: {reason}")
                yield sample, refused

    def search(self, sample: Sample, verbose: int) -> Search:
        return search(sample.prepared, sample.likelihood, self.n_starts)

    def given(self, sample: Sample, params: np.ndarray) -> Search:
        return ends_at(sample, params)

    def infer(self, sample: Sample, optimum: Search) -> tuple[Estimates, Arrays]:
        return estimates_of(self.spec, sample, optimum), {}

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        spec, params, n_targets = self.spec, units.params, self.n_targets
        state = np.full((len(params), state_size(spec)), np.nan)
        for numbers in fitted_batches(panel, units):
            series = numbers // n_targets
            y, exog = unit_data(panel, numbers)
            start = filter_start(spec, params[numbers], y, exog, steps[series])
            left = panel.lengths[series] - start.rows
            state[numbers] = last_state(spec, params[numbers], start.inputs, start.state, left)
        return {"memory": state.reshape(panel.n_series, n_targets, -1)}

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        spec, params, before = self.spec, units.params, state["memory"]
        after = before.reshape(len(params), -1).copy()
        for numbers in batches(panel):
            series = numbers // self.n_targets
            y, exog = unit_data(panel, numbers)
            inputs = inputs_of(spec, y, exog, steps[series])
            after[numbers] = last_state(
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
            for part in forecast_moments(self.spec, units.params, states, by_unit)
        )
        return normal_forecasts(mean, variance, levels)

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        h, mean = ahead.h, self.forecast(state, units, ahead, [])[""]
        last, fitted = state["memory"].reshape(len(units.params), -1), units.fitted
        errors = np.full((len(units.params), h, n), np.nan)
        errors[fitted] = draw_errors(self.spec, units.params[fitted], last[fitted], (h, n), rng)
        return mean + errors.reshape(-1, self.n_targets, h, n).transpose(3, 0, 2, 1)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        errors, scaled = [], []
        for numbers in fitted_batches(panel, units):
            params, (y, exog) = units.params[numbers], unit_data(panel, numbers)
            start = filter_start(self.spec, params, y, exog, steps[numbers // self.n_targets])
            e, v = innovations(self.spec, params, start, y.shape[1])
            errors.append((numbers, e))
            # forecasts without error have a variance of rounding, which may be below 0
            scaled.append((numbers, e / np.sqrt(np.where(v > 0, v, np.nan))))
        return panel.values - rows_of(panel, errors), rows_of(panel, scaled)

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        if not isinstance(smaller, ARMAFamily):
            return None
        spec, small = self.spec, smaller.spec
        lags = spec.p - small.p, spec.q - small.q
        regressors = set(small.regressors) <= set(spec.regressors)
        trend = set(small.trend) - {"n"} <= set(spec.trend)
        if not (min(lags) >= 0 and small.d == spec.d and regressors and trend):
            return None
        return Restriction(reason=COMMON_FACTORS if min(lags) > 0 else "")

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        spec = self.spec
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
    r"""ARMA and ARIMA models with regressors by maximum likelihood, one series or many.

    .. math::

        y_t = x_t'\beta + u_t, \qquad
        \phi(B) (1 - B)^d u_t = \theta(B) e_t, \qquad e_t \sim N(0, \sigma^2)

    with :math:`\phi(B) = 1 - \phi_1 B - \dots - \phi_p B^p` and
    :math:`\theta(B) = 1 + \theta_1 B + \dots + \theta_q B^q`. Its one-step forecasts are the
    states of a linear recurrent network, for p = q = 1
    :math:`h_t = \Theta h_{t-1} + (\Phi - \Theta) y_{t-1}` with :math:`\Phi = \phi_1` and
    :math:`\Theta = -\theta_1` (Cai et al., 2026, section 2.1).

    Every series and target is fitted by itself, all of them in one batch: Fisher scoring, then
    Newton's method, with exact derivatives. Names, parameters and log-likelihood are those of
    statsmodels' ARIMA.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        (p, q), or (p, d, q) with d differences. Up to 12 lags; with the exact likelihood and a
        moving average up to 6. Beyond 4, the first fit compiles for some seconds, and second
        derivatives are differences of exact gradients, of some ten digits.
    trend : {"n", "c", "t", "ct"}, optional
        Among the regressors: nothing, a constant (parameter ``const``), the number of the row
        from 1 (``drift``), or both. By default "c" with d = 0, else "n". Terms of an order
        below d are refused.
    likelihood : {"exact", "conditional"}
        From the stationary distribution of the state, or from a state that is zero before the
        first row. With d > 0 both are given the first d observations.
    n_starts : int, optional
        Starting values of every series, besides the optima of the models nested in this one. By
        default one, and all kinds that are known to matter where that leaves doubt.
        `agreement_` says how many of `starts_` reached the highest log-likelihood.
    cov_type : str, default "hessian"
        Kind of standard errors: "hessian", "opg" (statsmodels' default), "information",
        "robust" or "bollerslev-wooldridge".
    missing : {"error", "interpolate", "keep"}
        "keep" leaves missing values out of the exact likelihood.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, random_state, verbose
        As in all linear models. Exogenous columns are regressors; to forecast, name them all
        in `known_ahead`.

    Notes
    -----
    Estimates are the highest of several local maxima where roots of both sides are close to
    each other or a root of the moving average is close to the unit circle, which is where
    others exist. They are stationary, and invertible but for roots on the unit circle, which
    is a boundary: parameters there have no standard error, nor have those of roots that cancel.
    With the conditional likelihood, roots of the autoregression are not restricted.

    Intervals are normal, take the parameters as known, and hold if the model is right. Rows are
    counted on the calendar, from the first one fitted to, also where `predict` is given data
    that begin elsewhere. Regressors must be known for every row.

    `to_rnn` is the network of the series less drift and regressors, differenced d times.

    References
    ----------
    Hannan, E., Rissanen, J. (1982). Recursive estimation of mixed autoregressive-moving average
    order. Biometrika.
    de Jong, P. (1988). The likelihood for a state space model. Biometrika.
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
    legal_missing: ClassVar[tuple[str, ...]] = ("error", "interpolate", "keep")

    def __init__(
        self,
        order: tuple[int, ...] = (1, 1),
        trend: str | None = None,
        likelihood: str = "exact",
        n_starts: int | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.order = order
        self.trend = trend
        self.likelihood = likelihood
        self.n_starts = n_starts

    def _family(self, arguments: Arguments, data: FittedData) -> ARMAFamily:
        spec = arma_specification(arguments, data.exog_names)
        n_starts = arguments.n_starts
        if n_starts is not None:
            n_starts = positive_integer("n_starts", n_starts)
        return ARMAFamily(spec, data.n_targets, n_starts)
