"""VARMA models: family and estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tsrnn.contract import Arguments, FittedData, positive_integer, with_shared_arguments
from tsrnn.data import Panel, quote
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import (
    Ahead,
    Arrays,
    Family,
    Units,
    normal_forecasts,
    of_series,
    set_series,
)
from tsrnn.linear._hypotheses import COMMON_FACTORS, Restriction
from tsrnn.linear._multivariate import spectral_radius
from tsrnn.linear.varma._filter import (
    Forecast,
    State,
    draw_errors,
    forecast_moments,
    predictions,
    standardised_errors,
    state_after,
    state_on,
)
from tsrnn.linear.varma._fit import Search, Standardised, estimates_of, search, standardised
from tsrnn.linear.varma._likelihood import admissible, evaluate
from tsrnn.linear.varma._prepare import fit_scaling, rows_of, sample_of, trend_of
from tsrnn.linear.varma._results import VARMAResults
from tsrnn.linear.varma._specification import Coefficients, Shape, shape_of
from tsrnn.linear.varma._system import system


@dataclass(frozen=True)
class VARMAFamily(Family):
    """VARMA at given orders. A unit is a series with all its targets."""

    multivariate: ClassVar[bool] = True
    shape: Shape
    targets: tuple[str, ...]  # names
    exog: tuple[str, ...] = ()  # names
    n_starts: int = 3  # most searches of a unit

    @property
    def names(self) -> tuple[str, ...]:
        return self.shape.names(list(self.targets), list(self.exog))

    @property
    def title(self) -> str:
        p, q = self.shape.p, self.shape.q
        return f"VARMA({p}, {q})" if q else f"VAR({p})"

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        d = self.shape.d
        return {"mean": (d,), "cov": (d, d)}

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"presample": (self.shape.n,)}

    @property
    def conventions(self) -> dict[str, str]:
        return {"Likelihood": "exact" if self.shape.exact else "conditional"}

    @property
    def n_arma(self) -> int:
        return self.shape.n * (self.shape.p + self.shape.q)

    def mean_parameters(self, estimates: Estimates) -> np.ndarray:
        return np.full(len(estimates.params), self.shape.at_mean.shape[1])

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Standardised | None, dict[int, str]]]:
        sample = sample_of(self.shape, panel)
        if given is None:
            yield standardised(sample, list(self.targets), list(self.exog))
            return
        gaps = np.flatnonzero(sample.n_missing)
        if len(gaps) and not self.shape.exact:
            raise ValueError(
                f"the conditional likelihood needs every value; series {quote(panel.ids[gaps[0]])} "
                f"misses {sample.n_missing[gaps[0]]}. Take likelihood='exact', or fill them"
            )
        usable = admissible(self.shape, given, sample.rows)
        needs = ", the autoregression stationary" if self.shape.exact else ""
        reason = (
            "the parameters given are not admissible: the moving average must be invertible"
            f"{needs} and the entries sqrt.var positive."
        )
        refused = dict.fromkeys(np.flatnonzero(~usable).tolist(), reason)
        units = np.flatnonzero(usable)
        if not len(units):
            yield None, refused
            return
        chosen = sample.select(units)
        scaling = fit_scaling(chosen)
        standard = scaling.standardised(chosen)
        yield Standardised(units, scaling, standard, chosen.presample), refused

    def search(self, sample: Standardised, verbose: int) -> Search:
        count = f"{self.shape.k} parameters of {len(sample.units)} series"
        return search(sample.sample, sample.start, self.n_starts, count if verbose else "")

    def given(self, sample: Standardised, params: np.ndarray) -> Search:
        none, standard = np.zeros(len(params), int), sample.scaling.standard(self.shape, params)
        value = evaluate(standard, sample.sample, exact=False).value
        return Search(standard, value, none, none == 0, none, none)

    def infer(self, sample: Standardised, optimum: Search) -> tuple[Estimates, Arrays]:
        return estimates_of(sample, self.names, optimum), {"presample": sample.presample}

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        state, fitted = self.empty_state(len(units.params)), units.fitted
        if len(fitted):
            sample = sample_of(self.shape, panel, steps, units.constants["presample"])
            after = state_after(self._coefficients(units), sample.select(fitted))
            set_series(state, fitted, after._asdict())
        return state

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        new, fitted = self.empty_state(len(units.params)), units.fitted
        if len(fitted):
            sample = sample_of(self.shape, panel, steps, units.constants["presample"])
            before = State(**of_series(state, fitted))
            after = state_on(self._coefficients(units), sample.select(fitted), before)
            set_series(new, fitted, after._asdict())
        return new

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        trend = trend_of(self.shape, ahead.steps, ahead.h)
        design = np.concatenate([trend] if ahead.exog is None else [trend, ahead.exog], 2)
        coefficients = self.shape.unpack(units.params).design
        mean, cov = self.moments(state, units, design @ coefficients.swapaxes(1, 2))
        return normal_forecasts(mean, np.diagonal(cov, axis1=2, axis2=3), levels)

    def moments(self, state: Arrays, units: Units, effect: np.ndarray) -> Forecast:
        """Forecasts and their covariances, with trend and exogenous part (S, h, n)."""
        matrices = system(self.shape, self.shape.unpack(units.params))
        return forecast_moments(matrices, State(state["mean"], state["cov"]), effect)

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        fitted, mean = units.fitted, self.forecast(state, units, ahead, [])[""]
        errors = np.full((len(units.params), self.shape.n, ahead.h, n), np.nan)
        matrices = system(self.shape, self._coefficients(units))
        errors[fitted] = draw_errors(matrices, state["cov"][fitted], (ahead.h, n), rng)
        return mean + errors.transpose(3, 0, 2, 1)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        sample = sample_of(self.shape, panel, steps, units.constants["presample"])
        mean, scaled = (np.full_like(sample.y, np.nan) for _ in range(2))
        fitted = units.fitted
        if len(fitted):
            chosen = sample.select(fitted)
            predicted, rows = predictions(self._coefficients(units), chosen), chosen.y.shape[1]
            mean[fitted, :rows] = predicted.mean
            scaled[fitted, :rows] = standardised_errors(chosen, predicted)
        return rows_of(panel, mean), rows_of(panel, scaled)

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        facts: dict[str, object] = {"Trend": self.shape.trend}
        if np.isfinite(params).all():
            ar, ma = self.shape.unpack(params[None])[1:3]
            for name, lags in (("Largest AR root", ar), ("Largest MA root", -ma)):
                if lags.shape[1]:
                    facts[name] = f"{spectral_radius(lags)[0]:.4f}"
        return facts

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        if not isinstance(smaller, VARMAFamily):
            return None
        lags = self.shape.p - smaller.shape.p, self.shape.q - smaller.shape.q
        if min(lags) < 0 or not set(smaller.names) <= set(self.names):
            return None
        return Restriction(reason=COMMON_FACTORS if min(lags) > 0 else "")

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        shape, coefficients = self.shape, self.shape.unpack(params[None])
        if shape.n_exog or shape.trend == "ct":
            raise ValueError(
                "the layer takes in the targets alone; a model with a linear trend or exogenous "
                "columns has further inputs. Fit one with trend='c' or 'n' and none of these"
            )
        # M_i = -Theta_i and N_i = Phi_i + Theta_i. Before the data innovations are zero, and y is
        # the presample with the conditional likelihood, its mean with the exact one.
        ar, ma = (padded(lags[0], shape.lags) for lags in (coefficients.ar, coefficients.ma))
        intercept, before = coefficients.design[0].sum(1), constants["presample"]
        if shape.exact:
            before = np.linalg.solve(np.eye(shape.n) - ar.sum(0), intercept)
        return Recursion(DifferenceEquation(-ma, ar + ma, intercept), before, before)

    @classmethod
    def named(cls, equation: DifferenceEquation) -> dict[str, float]:
        recurrent, inputs, intercept = equation
        r, n, _ = inputs.shape
        shape = Shape(n, r, r, "c", 0, exact=True)
        coefficients = Coefficients(
            intercept[None, :, None], (recurrent + inputs)[None], -recurrent[None], np.eye(n)[None]
        )
        names = shape.names([f"y{i + 1}" for i in range(n)], [])
        values = shape.pack(coefficients)[0, : shape.n_mean]
        return dict(zip(names[: shape.n_mean], values.tolist(), strict=True))

    def _coefficients(self, units: Units) -> Coefficients:
        """Matrices of the units with parameters."""
        return self.shape.unpack(units.params[units.fitted])


@with_shared_arguments
class VARMA(VARMAResults):
    r"""Vector autoregressive moving average models by maximum likelihood, one series or many.

    .. math::

        y_t = c + d\,t + B x_t + \sum_{i=1}^p \Phi_i y_{t-i} + e_t
        + \sum_{j=1}^q \Theta_j e_{t-j}, \qquad e_t \sim N(0, \Sigma)

    It is a linear recurrent network: the expectation h_t of y_t given the past follows

    .. math:: h_{t+1} = c + \sum_i (-\Theta_i) h_{t+1-i} + \sum_i (\Phi_i + \Theta_i) y_{t+1-i}

    (Cai et al., 2026, section 2.1, with the opposite sign of the moving average). All targets of a
    series are one unit, and all series are fitted in one batch: Hannan-Rissanen, then Fisher
    scoring, then Newton's method, with exact derivatives. Equation, names and likelihood agree with
    statsmodels' VARMAX: exogenous columns enter the transition.

    Parameters
    ----------
    order : tuple of int, default (1, 0)
        p lags of y and q lags of the innovations, at least one in all.
    trend : {"c", "n", "ct"}
        Constant, no trend, or constant and linear trend; t is 1 in the first row of the data
        fitted to, and in the first row of other data given to `predict`.
    likelihood : {"exact", "conditional"}
        "exact": the state before the first row is normal with its stationary mean and variance, as
        in VARMAX; it needs a stationary autoregression and takes missing values. "conditional":
        the state before the first row is known (Notes). Neither drops rows.
    n_starts : int, default 3
        Number of searches, from the regression's coefficients and from weaker and stronger ones.
        A model with a moving average may have several maxima: if the first optimum is doubtful,
        models of up to 40 parameters also start at the optima of nested models and in the corners
        of the invertible region. 1 runs the first search only.
    cov_type : str, default "hessian"
        Kind of standard errors: "hessian", "opg", "information", "robust" or
        "bollerslev-wooldridge".
    intervals : {"model", "conformal"}
        Intervals of the model, or conformal ones from rolling forecasts of the last rows.
    horizon, id_col, time_col, freq, strict, support, random_state, verbose
        As in all linear models.
    target, known_ahead, static, calendar, holidays
        As in all linear models. Forecasts need every exogenous column in `known_ahead`.
    missing : {"auto", "error", "interpolate", "keep"}
        "keep" takes the exact likelihood of the observed values, also of single targets in a row.

    Attributes
    ----------
    params_, bse_, tvalues_, pvalues_ : DataFrame
        A row for each series: ``intercept.y1`` and ``drift.y1``; ``L1.y2.y1``, the effect of the
        first lag of y2 on y1; ``L1.e(y2).y1``; ``beta.x.y1``; then the lower triangular factor of
        :math:`\Sigma`, ``sqrt.var.y1`` and ``sqrt.cov.y1.y2``.

    Notes
    -----
    ``"exact"`` integrates the presample out: with ``trend="n"`` or ``"c"`` and no exogenous columns
    the likelihood is the joint normal density of all rows of the stationary process. With a linear
    trend or exogenous columns there is no stationary mean. The state before the first row then has
    the mean implied by constant intercept, trend and regressors of the second row, as in
    statsmodels' VARMAX with its default initialization. Values agree with ``VARMAX.loglike`` at any
    parameters if its ``ssm.tolerance`` is 0.

    ``"conditional"`` sets e_t = 0 for t < 1, and y_t for t < 1 to the least-squares trend of the
    series in row 0: its mean with ``trend="c"``, zero with ``"n"``. As no row is dropped,
    log-likelihoods of all orders are of the same n rows. VARMAX has no such likelihood; ``VAR`` of
    statsmodels drops the first p rows.

    With p > 0 and q > 0 the coefficients are identified only if no factors of the two polynomials
    cancel. `messages_` report how far each unit is from that; a unit too close has no standard
    errors.

    The number of parameters grows with the square of the targets, and the time of an evaluation
    faster: an evaluation of 20 targets at order (1, 1) takes most of a minute. ``verbose=1`` shows
    the search. Rows must exceed the coefficients of an equation plus the number of targets;
    otherwise a combination of the targets is fitted without error.

    Intervals are normal with the exact covariance of every step and take the parameters as known:
    their coverage is nominal for normal innovations, up to estimation error.

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
    family_class: ClassVar[type[Family]] = VARMAFamily
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

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

    def _skips_missing(self, arguments: Arguments) -> bool:
        return bool(arguments.likelihood == "exact")

    def _family(self, arguments: Arguments, data: FittedData) -> VARMAFamily:
        targets, exog = (
            tuple(str(name) for name in names)
            for names in (data.layout.target_names, data.exog_names)
        )
        shape = shape_of(arguments.order, arguments.trend, arguments.likelihood, targets, len(exog))
        return VARMAFamily(shape, targets, exog, positive_integer("n_starts", arguments.n_starts))
