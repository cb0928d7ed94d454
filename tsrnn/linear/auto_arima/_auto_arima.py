"""Automatic ARIMA: family and estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    FittedData,
    choice,
    flag,
    positive_integer,
    unit_index,
    with_intervals,
    with_shared_arguments,
)
from tsrnn.data import Panel, quote
from tsrnn.linear._arguments import season_length
from tsrnn.linear._as_rnn import Recursion, padded
from tsrnn.linear._base import MeanForecaster
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Ahead, Arrays, Family, Units
from tsrnn.linear._hypotheses import Restriction
from tsrnn.linear._regressors import with_regressors
from tsrnn.linear.arma._arma import ARMAFamily
from tsrnn.linear.arma._seasonal_filter import state_size
from tsrnn.linear.arma._specification import MOST_LAGS, MOST_MULTIPLIED
from tsrnn.linear.auto_arima._fit import ORDER, Choice, Sample, Search, inferred, samples, search

LONGEST_SEASON = 52  # with two seasonal lags and a difference the state has 160 elements
CRITERIA = ("aicc", "aic", "bic")


@dataclass(frozen=True)
class AutoARIMAFamily(Family):
    """Seasonal ARIMA models, chosen unit by unit."""

    models: Choice
    n_targets: int = 1  # of a series, each a unit

    @property
    def names(self) -> tuple[str, ...]:
        models, low, high = self.models, self.models.lowest, self.models.highest
        # The constant is a mean without differences, a drift after one difference.
        trend = ["const"] * (sum(low) == 0) + ["drift"] * (sum(low) <= 1 <= sum(high))
        lags = models.specification(models.widest).names[len(models.regressors) :]
        return (*trend, *models.regressors, *lags)

    @property
    def title(self) -> str:
        return "ARIMA"

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        spec = self.models.specification(self.models.widest)
        return {"memory": (self.n_targets, state_size(spec))}

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            "order": (self.n_targets, len(ORDER)),
            "candidates": (self.n_targets, self.models.most_models, 6),
        }

    @property
    def conventions(self) -> dict[str, str]:
        return {"Likelihood": "exact", "Initial state": "stationary"}

    def mean_parameters(self, estimates: Estimates) -> np.ndarray:
        assert estimates.n_params is not None  # models differ from unit to unit
        return estimates.n_params - 1

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Sample | None, dict[int, str]]]:
        return samples(self.models, panel)

    def search(self, sample: Sample, verbose: int) -> Search:
        return search(self.models.with_regressors(sample.kept), sample)

    def given(self, sample: Sample, params: np.ndarray) -> Any:
        raise ValueError("parameters are those of one model: filter by ARMA(order, seasonal_order)")

    def infer(self, sample: Sample, optimum: Search) -> tuple[Estimates, Arrays]:
        candidates = np.full((len(sample.units), *self.constant_shapes["candidates"][1:]), np.nan)
        for rows, trace in zip(candidates, optimum.trace, strict=True):
            rows[: len(trace)] = [(*order, value) for order, value in trace.items()]
        constants = {"order": optimum.orders.astype(float), "candidates": candidates}
        models = self.models.with_regressors(sample.kept)
        estimates = with_regressors(
            inferred(models, self.names, sample, optimum), self.names, self.models.regressors,
            sample.kept, "others, or with the constant once differenced,",
        )  # fmt: skip
        return estimates, constants

    # The recursions of the chosen models' families.

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        memory = np.full((len(units.params), self.state_shapes["memory"][1]), np.nan)
        for family, numbers, params in self._groups(units):
            part, _ = self._part(panel, numbers)
            state = family.filter(part, Units(params, {}), steps[numbers // self.n_targets])
            memory[numbers] = padded(state["memory"][:, 0].T, memory.shape[1]).T
        return {"memory": memory.reshape(panel.n_series, self.n_targets, -1)}

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        memory = state["memory"].reshape(len(units.params), -1).copy()
        for family, numbers, params in self._groups(units):
            moving = panel.lengths[numbers // self.n_targets] > 0
            numbers, params = numbers[moving], params[moving]
            if not len(numbers):
                continue
            part, _ = self._part(panel, numbers)
            before = {"memory": memory[numbers, None, : state_size(family.spec)]}
            after = family.advance(
                before, part, Units(params, {}), steps[numbers // self.n_targets]
            )
            memory[numbers] = padded(after["memory"][:, 0].T, memory.shape[1]).T
        return {"memory": memory.reshape(state["memory"].shape)}

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        names = with_intervals(np.zeros(0), dict.fromkeys(levels, np.zeros(0)))
        forecasts = {name: np.full((len(units.params), ahead.h), np.nan) for name in names}
        for family, numbers, params, before, of_units in self._ahead(state, units, ahead):
            parts = family.forecast(before, Units(params, {}), of_units, levels)
            for name, values in parts.items():
                forecasts[name][numbers] = values[:, :, 0]
        shape = len(ahead.steps), self.n_targets, ahead.h
        return {name: part.reshape(shape).swapaxes(1, 2) for name, part in forecasts.items()}

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        paths = np.full((n, len(units.params), ahead.h), np.nan)
        for family, numbers, params, before, of_units in self._ahead(state, units, ahead):
            paths[:, numbers] = family.simulate(before, Units(params, {}), of_units, n, rng)[..., 0]
        return paths.reshape(n, -1, self.n_targets, ahead.h).swapaxes(2, 3)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        fitted, scaled = np.full((2, *panel.values.shape), np.nan)
        for family, numbers, params in self._groups(units):
            part, places = self._part(panel, numbers)
            values = family.in_sample(part, Units(params, {}), steps[numbers // self.n_targets])
            for target, each in zip((fitted, scaled), values, strict=True):
                target[places] = each[:, 0]
        return fitted, scaled

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        family = self._family_of(constants["order"])
        return family.recursion(self._params_of(family, params), {})

    def names_of(self, constants: Arrays) -> tuple[str, ...]:
        order = constants["order"]
        return self._family_of(order).names if np.isfinite(order).all() else self.names

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        if not np.isfinite(params).all():
            return {}
        models = self.models
        tests = {
            name: how if value is None else "given"
            for name, value, how in zip("dD", models.given, ("by KPSS", "by strength"), strict=True)
            if name == "d" or models.period > 1
        }
        values = constants["candidates"][:, -1]
        return {
            "Chosen": order_title(constants["order"], models.period),
            **tests,
            models.criterion.upper().replace("AICC", "AICc"): f"{np.nanmin(values):.3f}",
            "of": f"{int(np.isfinite(constants['candidates'][:, 0]).sum())} models",
        }

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        return None  # which models are nested differs from unit to unit

    def _family_of(self, order: np.ndarray) -> ARMAFamily:
        return ARMAFamily(self.models.specification(tuple(int(part) for part in order)))

    def _params_of(self, family: ARMAFamily, params: np.ndarray) -> np.ndarray:
        """Parameters (..., k) of a model, from parameters of all models."""
        return params[..., [self.names.index(name) for name in family.names]]

    def _groups(self, units: Units) -> Iterator[tuple[ARMAFamily, np.ndarray, np.ndarray]]:
        """Yield families of equal orders with their units' numbers and parameters."""
        fitted, orders = units.fitted, units.constants["order"]
        for order in np.unique(orders[fitted], axis=0):
            numbers = fitted[(orders[fitted] == order).all(1)]
            family = self._family_of(order)
            yield family, numbers, self._params_of(family, units.params[numbers])

    def _ahead(
        self, state: Arrays, units: Units, ahead: Ahead
    ) -> Iterator[tuple[ARMAFamily, np.ndarray, np.ndarray, Arrays, Ahead]]:
        """Yield groups with their states and the rows to forecast."""
        memory = state["memory"].reshape(len(units.params), -1)
        for family, numbers, params in self._groups(units):
            series = numbers // self.n_targets
            exog = None if ahead.exog is None else ahead.exog[series]
            before = {"memory": memory[numbers, None, : state_size(family.spec)]}
            yield family, numbers, params, before, Ahead(ahead.h, ahead.steps[series], exog)

    def _part(
        self, panel: Panel, numbers: np.ndarray
    ) -> tuple[Panel, tuple[np.ndarray, np.ndarray]]:
        """Panel with a series for each of the given units, and the places of its rows."""
        series, target = np.divmod(numbers, self.n_targets)
        lengths = panel.lengths[series]
        rows = np.concatenate([np.arange(*panel.indptr[i : i + 2]) for i in series])
        places = rows, target.repeat(lengths)
        part = replace(
            panel,
            values=panel.values[places][:, None],
            indptr=np.concatenate([[0], np.cumsum(lengths)]),
            ids=pd.RangeIndex(len(numbers)),
            times=panel.times[rows],
            exog=panel.exog[rows],
        )
        return part, places


def order_title(order: np.ndarray, period: int) -> str:
    """Orders in the notation of Box and Jenkins, such as "ARIMA(0,1,1)(0,1,1)[12]"."""
    p, d, q, P, D, Q, constant = (int(part) for part in order)
    title = f"ARIMA({p},{d},{q})"
    if period > 1 and P + D + Q:
        title += f"({P},{D},{Q})[{period}]"
    if constant:
        title += " with drift" if d + D else " with mean"
    return title


@with_shared_arguments
class AutoARIMA(MeanForecaster):
    r"""Seasonal ARIMA with automatic choice of orders for each series.

    .. math::

        y_t = x_t'\beta + u_t, \qquad
        \phi(B) \Phi(B^m) (1 - B)^d (1 - B^m)^D u_t = \theta(B) \Theta(B^m) e_t,
        \qquad e_t \sim N(0, \sigma^2)

    by the method of Hyndman and Khandakar (2008): D by the strength of the season, d by KPSS tests,
    then p, q, P, Q and a constant by an information criterion of the exact likelihood. All series
    take the steps of the search together.

    Parameters
    ----------
    d, D : int, optional
        Numbers of differences and seasonal differences; None chooses them by tests.
    max_p, max_q : int, default 5
    max_P, max_Q : int, default 2
        Highest orders, which are also at most a third of a series' rows, or of its seasons.
    max_order : int, default 5
        Largest p + q + P + Q of a full search.
    max_d, max_D : int, default 1
        Largest numbers of differences chosen by tests. R's ``forecast`` has ``max_d=2``, which
        differences a quarter of short yearly series twice and forecasts them worse.
    season_length : int, optional
        Rows m of a season, 1 for none; by default from the frequency, up to 52. Model longer
        seasons by regressors.
    criterion : {"aicc", "aic", "bic"}
    stepwise : bool, default True
        Search in steps from a few models, else fit all models.
    missing : {"auto", "error", "interpolate", "keep"}
        "keep" leaves missing values out of the likelihood of the chosen model, which with
        differences begins at the first d + m D consecutive observations. The choice interpolates.
    cov_type : str, default "hessian"
        Kind of standard errors, as in `ARMA`; they ignore the choice of the orders.
    parameter_uncertainty, outliers, intervals
        As in `ARMA`.
    horizon, id_col, time_col, freq, strict, support, random_state, verbose
        As in all linear models.
    target, known_ahead, static, calendar, holidays
        As in all linear models. Exogenous columns are regressors; forecasts need all of them in
        `known_ahead`.

    Notes
    -----
    A regressor that is constant or collinear with others in the rows fitted to is left out, with a
    warning that names it. Regressors are differenced like the series; a linear trend is constant
    after one difference.

    `orders_` has the model of each unit, `candidates_` the criteria of all models fitted to it.
    Candidates are fitted to 0.001 in log-likelihood, the chosen model to convergence; criteria of
    candidates that were given up are upper bounds. A model is not chosen if its autoregression has
    a root of modulus below 1.01. A moving average with a root on the unit circle may be chosen;
    `messages_` report it, as in `ARMA`, and its coefficients have no standard errors. Models have a
    constant only if d + D is at most one.

    A step goes to the best of all models one order away, or two orders of a kind, until none is
    better; R's ``forecast`` goes to the first better model. Intervals ignore the choice of orders.

    References
    ----------
    Hyndman, R. J., Khandakar, Y. (2008). Automatic time series forecasting: the forecast package
    for R. Journal of Statistical Software.

    Examples
    --------
    >>> from tsrnn.linear import AutoARIMA
    >>> from tsrnn.datasets import load_nile
    >>> model = AutoARIMA().fit(load_nile())
    >>> model.orders_.tolist()
    ['ARIMA(1,1,1)']
    """

    column_name: ClassVar[str] = "AutoARIMA"
    family_class: ClassVar[type[Family]] = AutoARIMAFamily
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def __init__(
        self,
        d: int | None = None,
        D: int | None = None,
        max_p: int = 5,
        max_q: int = 5,
        max_P: int = 2,
        max_Q: int = 2,
        max_order: int = 5,
        max_d: int = 1,
        max_D: int = 1,
        season_length: int | None = None,
        criterion: str = "aicc",
        stepwise: bool = True,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.d = d
        self.D = D
        self.max_p = max_p
        self.max_q = max_q
        self.max_P = max_P
        self.max_Q = max_Q
        self.max_order = max_order
        self.max_d = max_d
        self.max_D = max_D
        self.season_length = season_length
        self.criterion = criterion
        self.stepwise = stepwise

    @property
    def orders_(self) -> pd.Series:
        """Model of each unit, such as "ARIMA(0,1,1)(0,1,1)[12] with drift"; "" without one."""
        family: Any = self.fitted_.family
        titles = [
            order_title(order, family.models.period) if np.isfinite(order).all() else ""
            for order in self.fitted_.constants["order"]
        ]
        return self._series(np.array(titles, object), "order")

    @property
    def candidates_(self) -> pd.DataFrame:
        """Criteria of the models fitted to each unit, best first.

        Infinite if the autoregression is close to a unit root, or the series too short.
        """
        family: Any = self.fitted_.family
        constants, data = self.fitted_.constants, self.fitted_.data
        labels = unit_index(data.layout, data.ids, multivariate=False)
        parts = []
        for order, rows in zip(constants["order"], constants["candidates"], strict=True):
            rows = rows[np.isfinite(rows[:, 0])]
            rows = rows[np.argsort(rows[:, -1], kind="stable")]
            titles = [
                order_title(np.array([p, order[1], q, P, order[4], Q, c]), family.models.period)
                for p, q, P, Q, c, _ in rows
            ]
            parts.append(pd.DataFrame({"model": titles, family.models.criterion: rows[:, -1]}))
        return pd.concat(parts, keys=labels, names=[*labels.names, "place"])

    def filter(self, df: Any, params: Any) -> AutoARIMA:
        """Raise a ValueError, as AutoARIMA has many models; use `ARMA`."""
        raise ValueError(
            "parameters are those of one model, and AutoARIMA chooses among many. Take "
            "ARMA(order, seasonal_order=...).filter"
        )

    def _family(self, arguments: Arguments, data: FittedData) -> AutoARIMAFamily:
        d, D = (
            None if value is None else _order(name, value, most=2)
            for name, value in (("d", arguments.d), ("D", arguments.D))
        )
        p, q, P, Q = (
            _order(name, getattr(arguments, name), most=MOST_LAGS)
            for name in ("max_p", "max_q", "max_P", "max_Q")
        )
        max_d, max_D = (
            _order(name, getattr(arguments, name), most=2) for name in ("max_d", "max_D")
        )
        period = season_length(arguments.season_length, data, LONGEST_SEASON)
        if period == 1:  # no season
            D = max_D = P = Q = 0
        regressors = tuple(str(name) for name in data.exog_names)
        models = Choice(
            period, (d, D), (max_d, max_D), (p, q, P, Q),
            _order("max_order", arguments.max_order, most=4 * MOST_LAGS),
            choice("criterion", arguments.criterion, CRITERIA),
            flag("stepwise", arguments.stepwise), regressors,
        )  # fmt: skip
        family = AutoARIMAFamily(models, data.n_targets)
        most = models.highest
        if max(p + most[0] + period * (P + most[1]), q + period * Q) > MOST_MULTIPLIED:
            raise ValueError(
                f"lags may be up to {MOST_MULTIPLIED} when multiplied; got a season of {period} "
                f"rows with max_P={P}, max_Q={Q}. Take lower orders, or model a long season by "
                "regressors: calendar or Fourier terms"
            )
        if len(set(family.names)) < len(family.names):
            raise ValueError(
                "names of exogenous columns must differ from those of parameters; got "
                f"{quote(list(regressors))}. Rename the columns"
            )
        return family


def _order(name: str, value: Any, most: int) -> int:
    """Check an integer from 0 to `most`."""
    if value is not False and value == 0 and not isinstance(value, bool | str):
        return 0
    number = positive_integer(name, value)
    if number > most:
        raise ValueError(f"{name} must be at most {most}; got {quote(value)}")
    return number
