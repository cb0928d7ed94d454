"""VARMA models as forecasters."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtri

from tsrnn.contract import (
    positive_integer,
    target_scales,
    with_intervals,
    with_shared_arguments,
)
from tsrnn.data import Panel
from tsrnn.layers import ParaRNN
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._hypotheses import COMMON_FACTORS, Restriction
from tsrnn.linear._state import LinearState
from tsrnn.linear._results import Results
from tsrnn.linear.varma._filter import (
    State,
    predictions,
    standardised_errors,
    state_after,
    state_on,
)
from tsrnn.linear.varma._fit import evaluate_units, fit_units
from tsrnn.linear.varma._forecast import Forecast, draw_errors, forecast_moments
from tsrnn.linear.varma._prepare import Sample, rows_of, sample_of, trend_of
from tsrnn.linear.varma._results import VARMAResults
from tsrnn.linear.varma._specification import Coefficients, Shape, shape_of
from tsrnn.linear.varma._system import spectral_radius, system


@with_shared_arguments
class VARMA(VARMAResults):
    r"""Vector autoregressive moving average models by maximum likelihood, one series or many.

    .. math::

        y_t = c + d\,t + B x_t + \sum_{i=1}^p \Phi_i y_{t-i} + e_t
        + \sum_{j=1}^q \Theta_j e_{t-j}, \qquad e_t \sim N(0, \Sigma)

    It is a linear recurrent network: what is expected of y_t moves by

    .. math:: h_{t+1} = c + \sum_i (-\Theta_i) h_{t+1-i} + \sum_i (\Phi_i + \Theta_i) y_{t+1-i}

    (Cai et al., 2026, section 2.1, who write the moving average with a minus). All targets of a
    series are one unit, and all series are fitted at once: Hannan-Rissanen, then Fisher scoring,
    then Newton's method, with exact derivatives. Equation, names and likelihood are those of
    statsmodels' VARMAX: exogenous columns enter the transition.

    Parameters
    ----------
    order : tuple of int, default (1, 0)
        p lags of y and q lags of the innovations, at least one in all.
    trend : {"c", "n", "ct"}
        Constant, nothing, or constant and linear trend; t is 1 in the first row of the data
        fitted to, and in the first row of other data given to `predict`.
    likelihood : {"exact", "conditional"}
        Before the first row the state is a draw from its stationary distribution, or known:
        no innovations, and y where the trend by itself puts it (zero without a trend).
        The exact one needs a stationary autoregression and takes missing values.
    n_starts : int, default 3
        Most searches for the maximum, of which a model with a moving average may have several;
        further ones begin where the first one is in doubt.
    cov_type : str, default "hessian"
        Kind of standard errors: "hessian", "opg", "information", "robust" or
        "bollerslev-wooldridge".
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, random_state, verbose
        As in all linear models. To forecast, every exogenous column must be in `known_ahead`.
    missing : {"error", "interpolate", "keep"}
        "keep": the exact likelihood of what is there, single targets of a row too.

    Attributes
    ----------
    params_, bse_, tvalues_, pvalues_ : DataFrame
        A row a series: ``intercept.y1`` and ``drift.y1``; ``L1.y2.y1``, the effect of the last
        y2 on y1; ``L1.e(y2).y1``; ``beta.x.y1``; then the lower triangular factor of
        :math:`\Sigma`, ``sqrt.var.y1`` and ``sqrt.cov.y1.y2``.

    Notes
    -----
    With p > 0 and q > 0 the coefficients are identified only if no factors of the two polynomials
    cancel; `messages_` say how far each unit is from that, and one too close has no standard
    errors.

    Parameters grow with the square of the targets, and the time of an evaluation faster: 20 targets
    at order (1, 1) take most of a minute each. ``verbose=1`` shows the search. There must be more
    rows than coefficients of an equation and targets together, as some combination of the targets
    is fitted without error otherwise.

    Intervals are normal with the exact covariance of every step, the parameters taken as known:
    their coverage is the nominal one for normal innovations, up to the error of estimation.

    References
    ----------
    Luetkepohl, H. (2005). New introduction to multiple time series analysis.
    Hannan, E. J., Rissanen, J. (1982). Recursive estimation of mixed autoregressive-moving
    average order.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import VARMA
    >>> y = pd.DataFrame(np.random.default_rng(0).standard_normal((200, 2)), columns=["a", "b"])
    >>> VARMA(order=(1, 0)).fit(y).params_.columns.tolist()[:4]
    ['intercept.a', 'intercept.b', 'L1.a.a', 'L1.b.a']
    """

    column_name: ClassVar[str] = "VARMA"
    multivariate: ClassVar[bool] = True
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("error", "interpolate", "keep")

    def __init__(
        self,
        order: tuple[int, int] = (1, 0),
        trend: str = "c",
        likelihood: str = "exact",
        *,
        n_starts: int = 3,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.order = order
        self.trend = trend
        self.likelihood = likelihood
        self.n_starts = n_starts

    def _fit_panel(self, panel: Panel) -> LinearState:
        shape, names = self._shape(), self._param_names()
        sample, targets = sample_of(shape, panel), [str(name) for name in panel.target_names]
        n_starts = positive_integer("n_starts", self.arguments_.n_starts)
        self._set_estimates(fit_units(sample, names, targets, n_starts, self.arguments_.verbose))
        return self._memory(panel, sample, self.estimates_.params)

    def _filter_panel(self, panel: Panel, params: np.ndarray) -> LinearState:
        shape, names = self._shape(), self._param_names()
        sample = sample_of(shape, panel)
        gaps = np.flatnonzero(sample.n_missing)
        if len(gaps) and not shape.exact:
            raise ValueError(
                f"the conditional likelihood needs every value; series {panel.ids[gaps[0]]!r} "
                f"misses {sample.n_missing[gaps[0]]}. Take likelihood='exact', or fill them"
            )
        self._set_estimates(evaluate_units(sample, params, names))
        return self._memory(panel, sample, self.estimates_.params)

    def _memory_of(self, panel: Panel) -> LinearState:
        presample = self.state_.arrays["presample"][self._series_of(panel.ids)]
        sample = sample_of(self._shape(), panel, presample=presample)
        return self._memory(panel, sample, self._params_of(panel.ids))

    def _memory(self, panel: Panel, sample: Sample, params: np.ndarray) -> LinearState:
        shape, state = self._shape(), self._no_state(panel.n_series)
        usable = np.flatnonzero(np.isfinite(params).all(1))
        if len(usable):
            after = state_after(shape.unpack(params[usable]), sample.select(usable))
            state.mean[usable], state.cov[usable] = after
        arrays = state._asdict() | {"rows": panel.lengths, "presample": sample.presample}
        return LinearState(panel.ids, panel.last_times, target_scales(panel), arrays)

    def _no_state(self, n_series: int) -> State:
        d = self._shape().d
        return State(np.full((n_series, d), np.nan), np.full((n_series, d, d), np.nan))

    def _advance(self, memory: LinearState, panel: Panel) -> LinearState:
        shape, params, old = self._shape(), self._params_of(memory.ids), memory.arrays
        sample = sample_of(shape, panel, old["rows"], old["presample"])
        state = self._no_state(panel.n_series)
        usable = np.flatnonzero(np.isfinite(params).all(1))
        if len(usable):
            before = State(old["mean"][usable], old["cov"][usable])
            after = state_on(shape.unpack(params[usable]), sample.select(usable), before)
            state.mean[usable], state.cov[usable] = after
        arrays = old | state._asdict() | {"rows": old["rows"] + panel.lengths}
        return LinearState(memory.ids, panel.last_times, memory.target_scale, arrays)

    def _forecast(
        self, memory: LinearState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        shape = self._shape()
        exog = self._all_ahead(future)
        trend = trend_of(shape, memory.arrays["rows"], h)
        design = np.concatenate([trend] if exog is None else [trend, exog], 2)
        coefficients = shape.unpack(self._params_of(memory.ids))
        ahead = self._forecast_effect(memory, design @ coefficients.design.swapaxes(1, 2))
        root = np.sqrt(np.diagonal(ahead.cov, axis1=2, axis2=3))
        return with_intervals(
            ahead.mean, {level: ndtri(0.5 + level / 200) * root for level in levels}
        )

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
        usable, shape = np.isfinite(params).all(1), self._shape()
        matrices = system(shape, shape.unpack(params[usable]))
        errors = np.full((len(params), shape.n, h, n), np.nan)
        errors[usable] = draw_errors(matrices, memory.arrays["cov"][usable], (h, n), rng)
        return mean + errors.transpose(3, 0, 2, 1)

    def _forecast_effect(self, memory: LinearState, effect: np.ndarray) -> Forecast:
        shape = self._shape()
        matrices = system(shape, shape.unpack(self._params_of(memory.ids)))
        return forecast_moments(
            matrices, State(memory.arrays["mean"], memory.arrays["cov"]), effect
        )

    def _in_sample(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        shape, params = self._shape(), self._params_of(panel.ids)
        presample = self.state_.arrays["presample"][self._series_of(panel.ids)]
        sample = sample_of(shape, panel, presample=presample)
        mean, scaled = (np.full_like(sample.y, np.nan) for _ in range(2))
        usable = np.flatnonzero(np.isfinite(params).all(1))
        if len(usable):
            chosen = sample.select(usable)
            predicted = predictions(shape.unpack(params[usable]), chosen)
            steps = chosen.y.shape[1]
            mean[usable, :steps] = predicted.mean
            scaled[usable, :steps] = standardised_errors(chosen, predicted)
        return rows_of(panel, mean), rows_of(panel, scaled)

    def _params_of(self, ids: pd.Index) -> np.ndarray:
        return self._fitted().params[self._series_of(ids)]

    def _coefficients(self, unit: int) -> Coefficients:
        return self._shape().unpack(self._fitted().params[unit : unit + 1])

    def _shape(self) -> Shape:
        given, (layout, exog) = self.arguments_, self._panel_shape[:2]
        return shape_of(given.order, given.trend, given.likelihood, layout.target_names, len(exog))

    def _restriction_to(self, smaller: Results) -> Restriction | None:
        if not isinstance(smaller, VARMA):
            return None
        shape, small = self._shape(), smaller._shape()
        lags = shape.p - small.p, shape.q - small.q
        if min(lags) < 0 or not set(smaller._fitted().names) <= set(self._fitted().names):
            return None
        return Restriction(reason=COMMON_FACTORS if min(lags) > 0 else "")

    def _param_names(self) -> tuple[str, ...]:
        targets, exog = (
            [str(name) for name in names]
            for names in (self._panel_shape[0].target_names, self._panel_shape[1])
        )
        return self._shape().names(targets, exog)

    def _state_shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        shape = self._shape()
        return {
            "mean": ("float64", (shape.d,)),
            "cov": ("float64", (shape.d, shape.d)),
            "rows": ("int64", ()),
            "presample": ("float64", (shape.n,)),
        }

    def _check_settings(self) -> None:
        super()._check_settings()
        positive_integer("n_starts", self.arguments_.n_starts)

    def _model_name(self) -> str:
        shape = self._shape()
        return f"VARMA({shape.p}, {shape.q})" if shape.q else f"VAR({shape.p})"

    def _n_arma(self) -> int:
        shape = self._shape()
        return shape.n * (shape.p + shape.q)

    def _conventions(self) -> dict[str, str]:
        return {"Likelihood": self.arguments_.likelihood}

    def _facts(self, unit: int) -> dict[str, object]:
        facts: dict[str, object] = {"Trend": self.arguments_.trend}
        if self._fitted().fitted[unit]:
            ar, ma = self._coefficients(unit)[1:3]
            for name, lags in (("Largest AR root", ar), ("Largest MA root", -ma)):
                if lags.shape[1]:
                    facts[name] = f"{spectral_radius(lags)[0]:.4f}"
        return facts

    def _recursion(self, unit: int) -> Recursion:
        shape, coefficients = self._shape(), self._coefficients(unit)
        if shape.n_exog or shape.trend == "ct":
            raise ValueError(
                "the layer takes in the targets alone; a model with a linear trend or exogenous "
                "columns has further inputs. Fit one with trend='c' or 'n' and none of these"
            )
        # M_i = -Theta_i and N_i = Phi_i + Theta_i. Before the data there are no innovations, and
        # y is at the presample under the conditional likelihood, at its mean under the exact one.
        ar, ma = (padded(lags[0], shape.lags) for lags in (coefficients.ar, coefficients.ma))
        intercept = coefficients.design[0].sum(1)
        before = self.state_.arrays["presample"][unit]
        if shape.exact:
            before = np.linalg.solve(np.eye(shape.n) - ar.sum(0), intercept)
        return Recursion(DifferenceEquation(-ma, ar + ma, intercept), before, before)

    @classmethod
    def _outputs_of(cls, layer: ParaRNN) -> int:
        return int(layer.input_size)

    @classmethod
    def _named(cls, equation: DifferenceEquation) -> dict[str, float]:
        recurrent, inputs, intercept = equation
        r, n, _ = inputs.shape
        shape = Shape(n, r, r, "c", 0, exact=True)
        coefficients = Coefficients(
            intercept[None, :, None], (recurrent + inputs)[None], -recurrent[None], np.eye(n)[None]
        )
        names = shape.names([f"y{i + 1}" for i in range(n)], [])
        values = shape.pack(coefficients)[0, : shape.n_mean]
        return dict(zip(names[: shape.n_mean], values.tolist(), strict=True))
