"""Base of the models of conditional correlation behind the forecaster contract."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from tsrnn.contract import choice, flag, positive_integer, target_scales
from tsrnn.data import Panel
from tsrnn.linear._hypotheses import Restriction
from tsrnn.linear._matrices import Forecast, MatrixForecaster, Path
from tsrnn.linear._mean import Mean
from tsrnn.linear._multivariate import check_long_enough, series_of
from tsrnn.linear._results import Results
from tsrnn.linear._state import LinearState
from tsrnn.linear._summary import LinearSummary
from tsrnn.linear.dcc._filter import CorrelationState, advance_dcc, filter_dcc
from tsrnn.linear.dcc._fit import Fit, dcc_at, fit_dcc
from tsrnn.linear.dcc._forecast import draw_ahead, draw_dcc, forecast_dcc
from tsrnn.linear.dcc._specification import (
    FirstStep,
    Order,
    Parts,
    Specification,
    fixed_initial_variance,
)
from tsrnn.linear.garch._inference import transition
from tsrnn.linear.garch._volatility import VOLATILITIES

COVARIANCES = ("robust", "hessian")
LINEAR_VOLATILITIES = ("garch", "gjr")


class ConditionalCorrelation(MatrixForecaster):
    """Base of `CCC` and `DCC`; not to be used by itself."""

    vol: str
    mean: str
    mean_order: int
    coint_rank: int
    initial_variance: str | float
    stationary: bool

    @abstractmethod
    def _order(self) -> Order:
        """Order of the correlations."""

    @abstractmethod
    def _own_name(self) -> str:
        """The model of the correlations with its orders."""

    @abstractmethod
    def _variance_order(self) -> tuple[int, int]:
        """Order (p, q) of the variances."""

    def summary(self, unit: Any = None, cov_type: str | None = None) -> LinearSummary:
        """Everything about one unit, or a table of many; print the result.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; by default the only one, or all in a table.
        cov_type : {"robust", "hessian"}, optional
            Kind of standard errors; that of the constructor by default.
        """
        if cov_type is not None:
            choice("cov_type", cov_type, COVARIANCES)
        return super().summary(unit, cov_type)

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of variances and correlations, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "variance", shape (S n, r, r): the companion matrices by chosen forecasts of variances
            move, as those of `GARCH`, series by series and target by target. With dynamic
            correlations "correlation", (S, r, r): that of :math:`a_i + b_i`, by chosen forecasts of
            :math:`Q` return to its mean.
        """
        spec, estimates = self._specification(), self._fitted()
        parts = spec.parts(estimates.params[estimates.fitted])
        variance = parts.variance.reshape(-1, parts.variance.shape[2])
        blocks = {"variance": transition(spec.step.model(), variance)[0]}
        p, q = parts.a.shape[1], parts.b.shape[1]
        if p:
            matrices = np.tile(np.eye(max(p, q), k=1), (len(parts.a), 1, 1))
            matrices[:, :p, 0] += parts.a
            matrices[:, :q, 0] += parts.b
            blocks["correlation"] = matrices
        return [blocks]

    def _restriction_to(self, smaller: Results) -> Restriction | None:
        if not isinstance(smaller, ConditionalCorrelation):
            return None
        spec, small = self._specification(), smaller._specification()
        order, inner = spec.order, small.order
        given, inner_given = self.arguments_, smaller.arguments_
        variances = zip(smaller._variance_order(), self._variance_order(), strict=True)
        nested = (
            all(a <= b for a, b in variances)
            and inner.p <= order.p
            and inner.q <= order.q
            and (not inner.p or inner.corrected == order.corrected)
            and (inner_given.vol, given.vol) in ((given.vol, given.vol), ("garch", "gjr"))
            and set(smaller._fitted().names) <= set(self._fitted().names)
            and not (given.stationary and not inner_given.stationary)
        )
        if not nested:
            return None
        reason = (
            "estimated in steps, the parameters do not maximise the likelihood together, and its "
            "ratio has no chi-square limit"
        )
        if order.q and not inner.p:
            reason = (
                "b is not identified where a is zero, and parameters are estimated in steps; take "
                "constant_correlation_test"
            )
        return Restriction(reason=reason, joint=False)

    def constant_correlation_test(self, lags: int = 5) -> pd.DataFrame:
        r"""Test of constant against dynamic correlation (Engle and Sheppard, 2001).

        Products :math:`\epsilon_i \epsilon_j` of residuals without variance dynamics and
        correlation are regressed on a constant and their own lags, all pairs together; under
        constant correlations all coefficients are zero.

        Parameters
        ----------
        lags : int, default 5

        Returns
        -------
        DataFrame
            Columns ``statistic``, ``df`` = lags, ``p_value``, a row a series.

        Notes
        -----
        The statistic is that of Engle and Sheppard, who compare it with a chi-square of
        lags + 1 degrees of freedom. The residuals are freed of their own correlations, so that
        the products sum to zero and the constant of the regression is fitted beforehand: lags
        degrees are left. With one more the test rejects too rarely: at a level of 5 percent in
        2.5 percent of samples with five lags, in 1.3 percent with one.
        """
        lags = positive_integer("lags", lags)
        panel = self._data(None)
        statistics = np.full(panel.n_series, np.nan)
        for i, path in self._paths(panel).items():
            if len(path.errors) > 2 * lags:
                scale = np.sqrt(np.diagonal(path.covariances, axis1=1, axis2=2))
                statistics[i] = constancy_statistic(path.errors / scale, lags)
        columns = {"statistic": statistics, "df": lags, "p_value": chi2.sf(statistics, lags)}
        return pd.DataFrame(columns, index=self.units_)

    def _covariance(self, cov_type: str | None) -> np.ndarray:
        if cov_type is not None:
            choice("cov_type", cov_type, COVARIANCES)
        return super()._covariance(cov_type)

    def _begin(self, panel: Panel) -> None:
        choice("cov_type", self.arguments_.cov_type, COVARIANCES)
        names = panel.target_names
        if len(names) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two targets to correlate; got "
                f"{list(names)}. Name them by target=[...], or take GARCH for one"
            )
        super()._begin(panel)

    def _fit_panel(self, panel: Panel) -> LinearState:
        fitted = fit_dcc(self._specification(), series_of(panel), self.arguments_.verbose)
        return self._remember(panel, fitted)

    def _filter_panel(self, panel: Panel, params: np.ndarray) -> LinearState:
        return self._remember(panel, dcc_at(self._specification(), series_of(panel), params))

    def _remember(self, panel: Panel, fitted: Fit) -> LinearState:
        self._set_estimates(fitted.estimates)
        arrays = {"presample": fitted.presample}
        if not fitted.estimates.fitted.any():  # refused with the reason by the base class
            return LinearState(panel.ids, panel.last_times, target_scales(panel), arrays)
        return self._memory(panel, fitted.estimates.params, arrays)

    def _memory_of(self, panel: Panel) -> LinearState:
        chosen = self._series_of(panel.ids)
        arrays = {"presample": self.state_.arrays["presample"][chosen]}
        return self._memory(panel, self.estimates_.params[chosen], arrays)

    def _memory(
        self, panel: Panel, params: np.ndarray, arrays: dict[str, np.ndarray]
    ) -> LinearState:
        _, state = self._run(panel, params, arrays["presample"])
        return LinearState(
            panel.ids, panel.last_times, target_scales(panel), arrays | state._asdict()
        )

    def _advance(self, memory: LinearState, panel: Panel) -> LinearState:
        spec, parts = self._specification(), self._parts_of(memory)
        new = {name: memory.arrays[name].copy() for name in CorrelationState._fields}
        for length in np.unique(panel.lengths):
            chosen = np.flatnonzero(panel.lengths == length)
            values = np.array([panel.series(int(i)) for i in chosen])
            state = advance_dcc(
                spec, Parts(*(part[chosen] for part in parts)),
                CorrelationState(*(new[name][chosen] for name in CorrelationState._fields)), values,
            )  # fmt: skip
            for name, array in state._asdict().items():
                new[name][chosen] = array
        return LinearState(memory.ids, panel.last_times, memory.target_scale, memory.arrays | new)

    def _forecasts(self, memory: LinearState, h: int) -> Forecast:
        state = CorrelationState(*(memory.arrays[name] for name in CorrelationState._fields))
        parts = self._parts_of(memory)
        return forecast_dcc(self._specification(), parts, state, h)

    def _paths(self, panel: Panel) -> dict[int, Path]:
        chosen, arrays = self._series_of(panel.ids), self.state_.arrays
        return self._run(panel, self.estimates_.params[chosen], arrays["presample"][chosen])[0]

    def _draw(
        self,
        params: np.ndarray,
        series: np.ndarray,
        rows: tuple[int, int],
        rng: np.random.Generator,
    ) -> np.ndarray:
        spec = self._specification()
        return draw_dcc(spec, spec.parts(params), rows, rng)

    def _draw_ahead(
        self, memory: LinearState, h: int, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        spec, state = (
            self._specification(),
            CorrelationState(*(memory.arrays[k] for k in CorrelationState._fields)),
        )
        shocks = rng.standard_normal((len(memory.ids), n, h, spec.n))
        return draw_ahead(spec, self._parts_of(memory), state, shocks)

    def _run(
        self, panel: Panel, params: np.ndarray, presample: np.ndarray
    ) -> tuple[dict[int, Path], CorrelationState]:
        """Paths of the series that have parameters, by number, and the state of all."""
        spec = self._specification()
        check_long_enough(panel, spec.step.mean.n_lags)
        used = np.flatnonzero(np.isfinite(params).all(1))
        if not len(used):
            shapes = [self.state_.arrays[name].shape[1:] for name in CorrelationState._fields]
            return {}, CorrelationState(*(np.full((panel.n_series, *s), np.nan) for s in shapes))
        series = [panel.series(int(i)) for i in used]
        parts = spec.parts(params[used])
        paths, state = filter_dcc(spec, parts, presample[used], series)
        whole = []
        for array in state:
            full = np.full((panel.n_series, *array.shape[1:]), np.nan)
            full[used] = array
            whole.append(full)
        return dict(zip(used.tolist(), paths, strict=True)), CorrelationState(*whole)

    def _parts_of(self, memory: LinearState) -> Parts:
        params = self.estimates_.params[self._series_of(memory.ids)]
        return self._specification().parts(params)

    def _specification(self) -> Specification:
        p, q = self._variance_order()
        given = self.arguments_
        mean = Mean(given.mean, given.mean_order, given.coint_rank)
        vol = choice("vol", given.vol, LINEAR_VOLATILITIES)
        return Specification(
            step=FirstStep(mean, vol, p, q),
            order=self._order(),
            targets=tuple(self._panel_shape[0].target_names),
            initial_variance=fixed_initial_variance(given.initial_variance),
            stationary=flag("stationary", given.stationary),
        )

    def _param_names(self) -> tuple[str, ...]:
        return self._specification().names

    def _state_shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        spec = self._specification()
        n, mean, order = spec.n, spec.step.mean, spec.order
        shapes = {
            "history": (mean.n_lags, n),
            "variance": (n, spec.step.model().n_memory),
            "outer": (order.p, n, n),
            "q": (max(order.q, 1), n, n),
            "presample": (n,),
        }
        return {name: ("float64", shape) for name, shape in shapes.items()}

    def _check_settings(self) -> None:
        super()._check_settings()
        choice("cov_type", self.arguments_.cov_type, COVARIANCES)

    def _model_name(self) -> str:
        return self._own_name()

    def _facts(self, unit: int) -> dict[str, object]:
        step = self._specification().step
        return {
            "Distribution": "normal",
            "Variances": f"{VOLATILITIES[step.vol].title}({step.p}, {step.q})",
            "Mean": self.arguments_.mean,
        }

    def _n_arma(self) -> int:
        return self._specification().step.mean.n_lags * len(self._panel_shape[0].target_names)

    def _conventions(self) -> dict[str, str]:
        return {
            "Estimation": "in steps",
            "Presample variance": str(self.arguments_.initial_variance),
        }

    def _notes(self, unit: int) -> list[str]:
        spec = self._specification()
        return [
            "Robust standard errors are those of all steps of the estimation together; 'hessian' "
            "takes earlier steps as known.",
            *spec.step.mean.notes(spec.targets),
        ]


def constancy_statistic(z: np.ndarray, lags: int) -> float:
    r"""Statistic of standardised residuals (T, n), chi-square with as many degrees as lags.

    With :math:`\epsilon_t = R^{-1/2} z_t` and Y the products :math:`\epsilon_i \epsilon_j` of
    all pairs, stacked, the regression :math:`Y_t = \delta_0 + \sum_l \delta_l Y_{t-l}` has
    :math:`\delta = 0` under constant correlations; the statistic is
    :math:`\hat\delta' X' X \hat\delta / \hat\sigma^2`. R is that of z itself, so that Y sums
    to zero: the constant adds nothing to the statistic, and no degree of freedom.
    """
    root = np.sqrt((z**2).mean(0))
    standard = z / root
    values, vectors = np.linalg.eigh(standard.T @ standard / len(z))
    whitened = standard @ (vectors / np.sqrt(values)) @ vectors.T
    rows, columns = np.triu_indices(z.shape[1], 1)
    products = whitened[:, rows] * whitened[:, columns]
    steps = len(products)
    y = products[lags:].ravel()
    regressors = [np.ones_like(y)]
    regressors += [products[lags - i : steps - i].ravel() for i in range(1, lags + 1)]
    x = np.stack(regressors, 1)
    delta = np.linalg.lstsq(x, y, rcond=None)[0]
    fitted = x @ delta
    variance = ((y - fitted) ** 2).sum() / (len(y) - len(delta))
    return float(fitted @ fitted / variance)
