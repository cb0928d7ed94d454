"""GARCH models behind the forecaster contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from tsrnn.contract import (
    choice,
    flag,
    level_name,
    positive_integer,
    seed_of,
    target_scales,
    with_shared_arguments,
)
from tsrnn.data import Panel
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._hypotheses import COMMON_FACTORS, Restriction
from tsrnn.linear._results import Results
from tsrnn.linear._state import LinearState
from tsrnn.linear.garch._filter import VarianceState, advance_garch, begin_garch, filter_garch
from tsrnn.linear.garch._fit import Fit, fit_garch, garch_at
from tsrnn.linear.garch._forecast import (
    analytic_quantiles,
    expected_mean,
    simulate_garch,
    simulated_quantiles,
)
from tsrnn.linear.garch._inference import half_life, persistence, unconditional_variance
from tsrnn.linear.garch._prepare import rows_of, units_of
from tsrnn.linear.garch._results import VarianceResults, state_of
from tsrnn.linear.garch._specification import NU, Model, initial_variance_of, model_of
from tsrnn.linear.garch._volatility import EGARCH_TSP

INTERVALS = ("simulated", "analytic")
LARGEST_NU = NU[1] * (1 - 1e-9)  # at the bound, which stands for the normal distribution


@with_shared_arguments
class GARCH(VarianceResults):
    r"""GARCH, GJR-GARCH and EGARCH by maximum likelihood, one series or many.

    .. math::

        y_t = \mu_t + e_t, \qquad e_t = \sqrt{h_t}\, z_t, \qquad
        h_t = \omega + \sum_{i=1}^p \alpha_i e_{t-i}^2 + \sum_{j=1}^q \beta_j h_{t-j}

    with independent :math:`z_t` of variance one; ``vol="gjr"`` adds
    :math:`\gamma_i 1[e_{t-i} < 0] e_{t-i}^2`, and ``vol="egarch"`` is
    :math:`\log h_t = \omega + \sum_i (\alpha_i (|z_{t-i}| - \sqrt{2/\pi}) + \gamma_i z_{t-i})
    + \sum_j \beta_j \log h_{t-j}`. In :math:`e_t^2` it is a linear recurrent network with the
    state h (Cai et al., 2026, section 2.1; for GARCH(1,1) also Zhao et al., 2024).

    Every series and target is fitted by itself, all of them in one batch: Fisher scoring, then
    Newton's method, with exact derivatives of the whole likelihood. Names, parameters and
    log-likelihood are those of the package arch.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        p lags of squared residuals (alpha, and gamma) and q lags of the variance (beta), as
        in arch.
    mean : {"constant", "zero", "ar", "arma"}
        Conditional mean :math:`\mu_t`. Lags of y drop as many first rows from the likelihood;
        moving averages begin with residuals of zero.
    mean_order : int, list of int or tuple of int, optional
        Lags of "ar", 1 by default; (p, q) of "arma", (1, 1) by default.
    distribution : {"normal", "t"}
        Of z; Student's t is scaled to a variance of one and has nu degrees of freedom.
    vol : {"garch", "gjr", "egarch"}
    initial_variance : {"backcast", "sample", "fcp", "unconditional", "tsp"} or float
        Variance before the first observation, and in place of the squared residuals there:
        the mean of the first 75 squared residuals at the starting values with weights
        0.94^t, as in arch; the mean of all of them; that mean at the current parameters of
        the mean (Fiorentini, Calzolari and Panattoni, 1996); what the current parameters
        imply; for "egarch", that of "fcp" after residuals of zero, as TSP has it, where all others
        put :math:`|z| - \sqrt{2/\pi}` and z at their expectation; or a number. TSP's GARCH has
        "fcp" by default, "sample" as HINIT=OLS and "unconditional" as HINIT=STEADY.
    stationary : bool, default True
        Hold the persistence at one where the likelihood rises beyond it ("garch", "gjr").
    intervals : {"simulated", "analytic"}
        Prediction intervals beyond the first step: quantiles of simulated paths, or the
        shape of the innovations with the variance of the forecast error, which later steps
        do not have exactly.
    n_simulations : int, default 2000
        Paths of each series.
    n_starts : int, optional
        Starting values of every series. With more than one lag, the optima of the models nested
        in this one are tried besides. By default one for models of one lag, and more where that
        leaves doubt; the best of each part of a grid for others. `agreement_` says how many of
        `starts_` reached the highest log-likelihood.
    cov_type : str, default "robust"
        Kind of standard errors: that of quasi maximum likelihood, "hessian", "opg",
        "information", "bollerslev-wooldridge" or "arch-robust".
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing, verbose
        As in all linear models. GARCH takes no exogenous columns.
    random_state : int, numpy random generator or None
        For intervals that are simulated.

    Notes
    -----
    The likelihood of more than one lag has several maxima as a rule. The search begins from the
    optima of the models with a lag less and, for "gjr", of the one without leverage, each found
    in the same way, so that none of them is ever higher; and from others. No search knows that
    there is no higher maximum.

    Intervals take the parameters as known; their coverage is the nominal one if the model is
    right, up to that and to the error of simulation. Forecasts of variances of "egarch" beyond
    the first step are means of simulated paths, whose expectation is infinite for Student's t
    unless the effect of shocks is negative.

    Bounds: omega at least 1e-8 of the variance of the series, alpha, alpha + gamma and beta not
    negative, beta at most one ("egarch": below one in absolute value), nu from 2.05 to 500. A
    parameter on its bound has no standard error.

    References
    ----------
    Bollerslev, T. (1986). Generalized autoregressive conditional heteroskedasticity.
    Fiorentini, G., Calzolari, G., Panattoni, L. (1996). Analytic derivatives and the
    computation of GARCH estimates.
    Glosten, L., Jagannathan, R., Runkle, D. (1993). On the relation between the expected value
    and the volatility of the nominal excess return on stocks.
    Nelson, D. (1991). Conditional heteroskedasticity in asset returns: a new approach.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import GARCH
    >>> returns = pd.Series(np.random.default_rng(0).normal(size=500), name="r")
    >>> GARCH(order=(1, 0)).fit(returns).params_.columns.tolist()
    ['mu', 'omega', 'alpha[1]']
    """

    column_name: ClassVar[str] = "GARCH"
    _guarantee: ClassVar[str] = (
        "Simulated, the parameters taken as known. Holds if the model and the distribution of its "
        "innovations are right."
    )

    def __init__(
        self,
        order: tuple[int, int] = (1, 1),
        mean: str = "constant",
        mean_order: Any = None,
        distribution: str = "normal",
        vol: str = "garch",
        initial_variance: str | float = "backcast",
        stationary: bool = True,
        intervals: str = "simulated",
        n_simulations: int = 2000,
        n_starts: int | None = None,
        *,
        cov_type: str = "robust",
        **shared: Any,
    ) -> None:
        super().__init__(cov_type=cov_type, **shared)
        self.order = order
        self.mean = mean
        self.mean_order = mean_order
        self.distribution = distribution
        self.vol = vol
        self.initial_variance = initial_variance
        self.stationary = stationary
        self.intervals = intervals
        self.n_simulations = n_simulations
        self.n_starts = n_starts

    def _fit_panel(self, panel: Panel) -> LinearState:
        model, (y, lengths) = self._model_for(panel), units_of(panel)
        arguments = self.arguments_
        initial, n_starts = self._initial_variance(model), arguments.n_starts
        n_starts = None if n_starts is None else positive_integer("n_starts", n_starts)
        return self._remember(
            panel, fit_garch(model, y, lengths, initial, arguments.stationary, n_starts)
        )

    def _filter_panel(self, panel: Panel, params: np.ndarray) -> LinearState:
        model, (y, lengths) = self._model_for(panel), units_of(panel)
        self._check_long_enough(panel, 1)
        initial = self._initial_variance(model)
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = garch_at(model, y, lengths, params, initial)
        bad = np.flatnonzero(~np.isfinite(fitted.estimates.loglik))
        if len(bad):
            raise ValueError(
                f"params must give positive, finite variances; those of unit {bad[0]}, "
                f"{dict(zip(model.names, params[bad[0]].tolist(), strict=True))}, do not"
            )
        return self._remember(panel, fitted)

    def _remember(self, panel: Panel, fitted: Fit) -> LinearState:
        """Keep the estimates, and return the memory of the series."""
        self._set_estimates(fitted.estimates)
        return self._memory(panel, fitted.estimates.params, fitted.presample)

    def _memory_of(self, panel: Panel) -> LinearState:
        self._check_long_enough(panel, 0)
        presample = self.state_.arrays["presample"][self._series_of(panel.ids)]
        return self._memory(panel, self._params_of(panel.ids), presample.reshape(-1))

    def _memory(self, panel: Panel, params: np.ndarray, presample: np.ndarray) -> LinearState:
        state = begin_garch(self._model_for(panel), params, presample, *units_of(panel))
        arrays = _by_series(panel.n_series, state) | {
            "presample": presample.reshape(panel.n_series, -1)
        }
        return LinearState(panel.ids, panel.last_times, target_scales(panel), arrays)

    def _advance(self, memory: LinearState, panel: Panel) -> LinearState:
        params = self._params_of(memory.ids)
        state = advance_garch(self._model_for(panel), params, state_of(memory), *units_of(panel))
        arrays = memory.arrays | _by_series(panel.n_series, state)
        return LinearState(memory.ids, panel.last_times, memory.target_scale, arrays)

    def _forecast(
        self, memory: LinearState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        model, params, state = self._model(), self._params_of(memory.ids), state_of(memory)
        forecasts = {"": expected_mean(model, params, state, h)}
        if levels:
            ends = [0.5 + sign * level / 200 for level in levels for sign in (-1, 1)]
            names = [f"-{end}-{level_name(level)}" for level in levels for end in ("lo", "hi")]
            quantiles = self._quantiles(model, params, state, h, ends)
            forecasts |= dict(zip(names, quantiles, strict=True))
        n_series = len(memory.ids)
        return {
            name: values.reshape(n_series, -1, h).swapaxes(1, 2)
            for name, values in forecasts.items()
        }

    def _draw_paths(
        self,
        memory: LinearState,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Paths (n, S, h, C) with innovations of the model's distribution from the state on."""
        model, params = self._model(), self._params_of(memory.ids)
        z = np.full((len(params), h, n), np.nan)
        for i in np.flatnonzero(np.isfinite(params).all(1)):
            z[i] = model.density.draw(rng, (h, n), params[i : i + 1, model.shape_part])[0]
        paths = simulate_garch(model, params, state_of(memory), z).y
        return paths.reshape(len(memory.ids), -1, h, n).transpose(3, 0, 2, 1)

    def _quantiles(
        self, model: Model, params: np.ndarray, state: VarianceState, h: int, ends: list[float]
    ) -> np.ndarray:
        given = self.arguments_
        intervals = choice("intervals", given.intervals, INTERVALS)
        if h == 1 or (intervals == "analytic" and not model.vol.log):
            return analytic_quantiles(model, params, state, h, ends)
        if intervals == "analytic":
            raise ValueError(
                "vol='egarch' has no analytic forecasts of variances beyond the first step; take "
                "intervals='simulated', or h=1"
            )
        shape = h, positive_integer("n_simulations", given.n_simulations)
        return simulated_quantiles(model, params, state, shape, seed_of(given.random_state), ends)

    def _in_sample(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        e, h = self._residuals_and_variances(panel)
        return panel.values - e, e / np.sqrt(h)

    def _residuals_and_variances(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and conditional variances, each (rows, C), at the estimates."""
        presample = self.state_.arrays["presample"][self._series_of(panel.ids)].reshape(-1)
        params = self._params_of(panel.ids)
        e, h = filter_garch(self._model_for(panel), params, presample, *units_of(panel))
        return rows_of(panel, e), rows_of(panel, h)

    def _restriction_to(self, smaller: Results) -> Restriction | None:
        if not isinstance(smaller, GARCH):
            return None
        model, small = self._model(), smaller._model()
        mean, inner = model.mean, small.mean
        lags = model.p - small.p, model.q - small.q
        mean_lags = len(mean.lags) - len(inner.lags), mean.n_ma - inner.n_ma
        nested = (
            min(*lags, mean_lags[1], mean.constant - inner.constant) >= 0
            and set(inner.lags) <= set(mean.lags)
            and small.vol in (model.vol, model.vol.without_leverage)
            and set(small.density.names) <= set(model.density.names)
            and not (self.arguments_.stationary and not smaller.arguments_.stationary)
        )
        if not nested:
            return None
        normal = model.density != small.density
        # Shocks of a lag more are two in a GJR model: alpha and alpha + gamma, both not negative.
        positive = 0 if model.vol.log else lags[0] * len(model.vol.coefficients) + lags[1]
        return Restriction(
            boundary=positive + normal,
            reason=COMMON_FACTORS if min(lags) > 0 or min(mean_lags) > 0 else "",
            reached=self._fitted().params[:, -1] >= LARGEST_NU if normal else None,
        )

    def _initial_variance(self, model: Model) -> str | float:
        return initial_variance_of(self.arguments_.initial_variance, model.mean, model.vol.name)

    def _model(self, padded: bool = False) -> Model:
        given = self.arguments_
        variance = given.distribution, given.vol
        return model_of(given.order, given.mean, given.mean_order, *variance, padded)

    def _model_for(self, panel: Panel) -> Model:
        """The model, with a mark of the ends of series where these differ."""
        flag("stationary", self.arguments_.stationary)
        model = self._model(padded=len(np.unique(panel.lengths)) > 1)
        initial = self.arguments_.initial_variance
        zero_residuals = model.vol.log and isinstance(initial, str) and initial == "tsp"
        return replace(model, vol=EGARCH_TSP) if zero_residuals else model

    def _params_of(self, ids: pd.Index) -> np.ndarray:
        """Parameters (S C, k) of the units of some series."""
        params, k = self.estimates_.params, len(self.estimates_.names)
        return params.reshape(len(self.state_.ids), -1, k)[self._series_of(ids)].reshape(-1, k)

    def _check_long_enough(self, panel: Panel, more: int) -> None:
        least = self._model().mean.n_dropped + more
        short = np.flatnonzero(panel.lengths < least)
        if len(short):
            raise ValueError(
                f"lags of y need at least {least} rows of each series; series "
                f"{panel.ids[short[0]]!r} has {panel.lengths[short[0]]}"
            )

    def _param_names(self) -> tuple[str, ...]:
        return self._model().names

    def _state_shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        model, n = self._model(), len(self._panel_shape[0].target_names)
        return {
            "memory": ("float64", (n, model.n_memory)),
            "recent": ("float64", (n, model.mean.n_dropped)),
            "presample": ("float64", (n,)),
        }

    def _check_settings(self) -> None:
        super()._check_settings()
        given, model = self.arguments_, self._model()
        choice("intervals", given.intervals, INTERVALS)
        positive_integer("n_simulations", given.n_simulations)
        self._initial_variance(model)
        flag("stationary", given.stationary)

    def _model_name(self) -> str:
        model = self._model()
        return f"{model.vol.title}({model.p}, {model.q}), {self.arguments_.mean} mean"

    def _recursion(self, unit: int) -> Recursion:
        model, params = self._model(), self.estimates_.params[unit]
        if model.vol.log:
            raise ValueError(
                "an EGARCH is no linear network: its input, the standardised residual, depends on "
                "its state. GARCH and GJR-GARCH are: use vol='garch' or 'gjr'"
            )
        r, expected = model.n_vol, np.array(model.vol.expected)
        inputs = [padded(params[model.shock_coefficients(s)], r) for s in range(len(expected))]
        equation = DifferenceEquation(
            padded(params[model.beta], r)[:, None, None],
            np.stack(inputs, 1)[:, None],
            params[[model.omega]],
        )
        before = self.state_.arrays["presample"].reshape(-1)[unit]
        return Recursion(equation, np.array([before]), before * expected)

    @classmethod
    def _named(cls, equation: DifferenceEquation) -> dict[str, float]:
        names = ("alpha", "gamma")[: equation.inputs.shape[2]]
        lags = range(1, len(equation.recurrent) + 1)
        return {
            "omega": equation.intercept[0],
            **{
                f"{name}[{i}]": equation.inputs[i - 1, 0, s]
                for s, name in enumerate(names)
                for i in lags
            },
            **{f"beta[{i}]": equation.recurrent[i - 1, 0, 0] for i in lags},
        }

    def _n_arma(self) -> int:
        mean = self._model().mean
        return len(mean.lags) + mean.n_ma

    def _conventions(self) -> dict[str, str]:
        return {"Presample variance": str(self.arguments_.initial_variance)}

    def _facts(self, unit: int) -> dict[str, object]:
        distribution = {"normal": "normal", "t": "Student's t"}[self.arguments_.distribution]
        row = self.estimates_.params[unit : unit + 1]
        if not np.isfinite(row).all():
            return {"Distribution": distribution}
        model = self._model()
        if not row[0, model.omega + 1 : model.beta.start].any():  # beta is not identified
            return {"Distribution": distribution, "Persistence": "none: no effect of shocks"}
        return {
            "Distribution": distribution,
            "Persistence": f"{persistence(model, row)[0]:.4f}",
            "Half-life": f"{half_life(model, row)[0]:.4g}",
            "Uncond. variance": f"{unconditional_variance(model, row)[0]:.5g}",
        }


def _by_series(n_series: int, state: VarianceState) -> dict[str, np.ndarray]:
    """Arrays with the series as their first axis."""
    return {
        name: np.array(array).reshape(n_series, len(array) // n_series, array.shape[-1])
        for name, array in state._asdict().items()
    }
