"""ARMA and ARIMA models as forecasters."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtri
from tqdm import tqdm

from tsrnn.contract import (
    positive_integer,
    target_scales,
    with_intervals,
    with_shared_arguments,
)
from tsrnn.data import Panel, steps_between
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._estimates import Estimates, concatenated
from tsrnn.linear._hypotheses import COMMON_FACTORS, Restriction
from tsrnn.linear._state import LinearState
from tsrnn.linear._results import Results
from tsrnn.linear.arma._filter import filter_start, innovations, inputs_of, last_memory, memory_size
from tsrnn.linear.arma._fit import fit_units
from tsrnn.linear.arma._forecast import draw_errors, forecast_moments
from tsrnn.linear.arma._prepare import batches, rows_of, unit_data
from tsrnn.linear.arma._results import ARMAResults, check_admissible
from tsrnn.linear.arma._specification import Specification, specification_of


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

    def _fit_panel(self, panel: Panel) -> LinearState:
        estimates = self._fit_batches(panel, None)
        self._set_estimates(estimates)
        return self._memory(panel, estimates.params, np.zeros(panel.n_series, np.int64))

    def _filter_panel(self, panel: Panel, params: np.ndarray) -> LinearState:
        check_admissible(self._spec(), params)
        estimates = self._fit_batches(panel, params)
        lost = np.flatnonzero(~estimates.fitted)
        if len(lost):
            raise ValueError(f"unit {lost[0]} cannot be filtered: {estimates.messages[lost[0]][0]}")
        self._set_estimates(estimates)
        return self._memory(panel, params, np.zeros(panel.n_series, np.int64))

    def _fit_batches(self, panel: Panel, given: np.ndarray | None) -> Estimates:
        """Estimates of all units of a panel, batch by batch."""
        spec, parts, order = self._spec(), [], []
        n_starts = self.arguments_.n_starts
        if n_starts is not None:
            n_starts = positive_integer("n_starts", n_starts)
        n_units = panel.n_series * panel.values.shape[1]
        progress = tqdm(
            total=n_units, desc="ARMA", disable=not self.arguments_.verbose, leave=False
        )
        for units in batches(panel):
            params = None if given is None else given[units]
            y, exog = unit_data(panel, units)
            parts.append(fit_units(spec, y, exog, params, n_starts))
            order.append(units)
            progress.update(len(units))
        progress.close()
        return concatenated(parts).placed(n_units, np.concatenate(order), {})

    def _memory_of(self, panel: Panel) -> LinearState:
        return self._memory(panel, self._params_of(panel.ids), self._steps_before(panel))

    def _memory(self, panel: Panel, params: np.ndarray, steps: np.ndarray) -> LinearState:
        spec, n_targets = self._spec(), panel.values.shape[1]
        memory = np.full((len(params), memory_size(spec)), np.nan)
        for batch in batches(panel):
            units = batch[np.isfinite(params[batch]).all(1)]
            if not len(units):
                continue
            series = units // n_targets
            y, exog = unit_data(panel, units)
            start = filter_start(spec, params[units], y, exog, steps[series])
            left = panel.lengths[series] - start.rows
            memory[units] = last_memory(spec, params[units], start.inputs, start.memory, left)
        arrays = {
            "memory": memory.reshape(panel.n_series, n_targets, -1),
            "steps": steps + panel.lengths,
        }
        return LinearState(panel.ids, panel.last_times, target_scales(panel), arrays)

    def _advance(self, memory: LinearState, panel: Panel) -> LinearState:
        spec, params = self._spec(), self._params_of(memory.ids)
        steps, n_targets = memory.arrays["steps"], panel.values.shape[1]
        state = memory.arrays["memory"].reshape(len(params), -1).copy()
        for units in batches(panel):
            series = units // n_targets
            y, exog = unit_data(panel, units)
            inputs = inputs_of(spec, y, exog, steps[series])
            state[units] = last_memory(
                spec, params[units], inputs, state[units], panel.lengths[series]
            )
        arrays = {
            "memory": state.reshape(memory.arrays["memory"].shape),
            "steps": steps + panel.lengths,
        }
        return LinearState(memory.ids, panel.last_times, memory.target_scale, arrays)

    def _forecast(
        self, memory: LinearState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        spec, params = self._spec(), self._params_of(memory.ids)
        n_series, n_targets, _ = memory.arrays["memory"].shape
        steps = np.repeat(memory.arrays["steps"], n_targets)
        ahead = self._all_ahead(future)
        exog = None if ahead is None else np.repeat(ahead, n_targets, axis=0)
        state = memory.arrays["memory"].reshape(len(params), -1)
        mean, variance = (
            part.reshape(n_series, n_targets, h).swapaxes(1, 2)
            for part in forecast_moments(spec, params, state, steps, h, exog)
        )
        root = np.sqrt(variance)
        return with_intervals(mean, {level: ndtri(0.5 + level / 200) * root for level in levels})

    def _draw_paths(
        self,
        memory: LinearState,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Paths (n, S, h, C): forecasts and errors of normal innovations from the state on."""
        mean, params = self._forecast(memory, h, [], future)[""], self._params_of(memory.ids)
        state = memory.arrays["memory"].reshape(len(params), -1)
        errors = np.full((len(params), h, n), np.nan)
        fitted = np.isfinite(params).all(1)
        errors[fitted] = draw_errors(self._spec(), params[fitted], state[fitted], (h, n), rng)
        return mean + errors.reshape(len(mean), -1, h, n).transpose(3, 0, 2, 1)

    def _in_sample(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        spec, params = self._spec(), self._params_of(panel.ids)
        steps, n_targets = self._steps_before(panel), panel.values.shape[1]
        errors, scaled = [], []
        for batch in batches(panel):
            units = batch[np.isfinite(params[batch]).all(1)]
            if not len(units):
                continue
            y, exog = unit_data(panel, units)
            start = filter_start(spec, params[units], y, exog, steps[units // n_targets])
            e, v = innovations(spec, params[units], start, y.shape[1])
            errors.append((units, e))
            # forecasts without error have a variance of rounding, which may be below 0
            scaled.append((units, e / np.sqrt(np.where(v > 0, v, np.nan))))
        return panel.values - rows_of(panel, errors), rows_of(panel, scaled)

    def _steps_before(self, panel: Panel) -> np.ndarray:
        """Steps (S,) from the first row fitted to to the first one of the panel."""
        origin = self._sample[0][self._series_of(panel.ids)]
        first = panel.times[panel.indptr[:-1]]
        return steps_between(origin, first, panel.freq, panel.layout.tz)

    def _params_of(self, ids: pd.Index) -> np.ndarray:
        """Parameters (S C, k) of the units of some series."""
        params, k = self.estimates_.params, len(self.estimates_.names)
        return params.reshape(len(self.state_.ids), -1, k)[self._series_of(ids)].reshape(-1, k)

    def _spec(self) -> Specification:
        regressors = self._panel_shape[1] if hasattr(self, "_panel_shape") else ()
        given = self.arguments_
        return specification_of(
            given.order, given.trend, given.likelihood, given.missing, regressors
        )

    def _restriction_to(self, smaller: Results) -> Restriction | None:
        if not isinstance(smaller, ARMA):
            return None
        spec, small = self._spec(), smaller._spec()
        lags = spec.p - small.p, spec.q - small.q
        regressors = set(small.regressors) <= set(spec.regressors)
        trend = set(small.trend) - {"n"} <= set(spec.trend)
        if not (min(lags) >= 0 and small.d == spec.d and regressors and trend):
            return None
        return Restriction(reason=COMMON_FACTORS if min(lags) > 0 else "")

    def _param_names(self) -> tuple[str, ...]:
        return self._spec().names

    def _state_shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        n_targets = len(self._panel_shape[0].target_names)
        return {
            "memory": ("float64", (n_targets, memory_size(self._spec()))),
            "steps": ("int64", ()),
        }

    def _model_name(self) -> str:
        spec = self._spec()
        orders = (spec.p, spec.d, spec.q) if spec.d else (spec.p, spec.q)
        return f"AR{'I' * bool(spec.d)}MA{orders}, trend {spec.trend!r}"

    def _n_arma(self) -> int:
        spec = self._spec()
        return spec.p + spec.q

    def _conventions(self) -> dict[str, str]:
        spec = self._spec()
        state = "stationary" if spec.exact else "zero"
        return {
            "Likelihood": "exact" if spec.exact else "conditional",
            "Initial state": f"{state}, {spec.d} rows given" if spec.d else state,
        }

    def _recursion(self, unit: int) -> Recursion:
        spec, params = self._spec(), self.estimates_.params[unit]
        phi, theta = params[spec.n_mean : -1][: spec.p], params[spec.n_mean : -1][spec.p :]
        r = max(spec.p, spec.q, 1)
        phi, theta = padded(phi, r), padded(theta, r)
        mu = params[:1] if "c" in spec.trend else np.zeros(1)
        equation = DifferenceEquation(
            -theta[:, None, None], (phi + theta)[:, None, None], mu * (1 - phi.sum())
        )
        return Recursion(equation, mu, mu)

    @classmethod
    def _named(cls, equation: DifferenceEquation) -> dict[str, float]:
        theta = -equation.recurrent[:, 0, 0]
        phi = equation.inputs[:, 0, 0] - theta
        persistence = 1 - phi.sum()
        lags = range(1, len(theta) + 1)
        return {
            "const": equation.intercept[0] / persistence if persistence else np.nan,
            **{f"ar.L{i}": phi[i - 1] for i in lags},
            **{f"ma.L{i}": theta[i - 1] for i in lags},
        }
